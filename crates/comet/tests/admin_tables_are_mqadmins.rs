//! `comet admin` prints what mqadmin 5.5.0 prints: the same words, columns, widths and numbers, so that scripts that read
//! them go on working. `mqadmin-5.5.0-output.txt` is what Apache's tool printed against this server, command after command;
//! ours runs the same commands on a server in the same state. What a clock or a disk decides is masked in both.

#[path = "support/admin.rs"]
mod support;

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use cometmq_client::{Client, ClientOptions, Message, Producer};
use support::*;

const RECORDED: &str = include_str!("mqadmin-5.5.0-output.txt");
/// In a row of clusterList: messages per second in and out, and the used part of the disk.
const CLUSTER_LIST_FIGURES: &[(usize, usize)] = &[(95, 104), (121, 130), (196, 202)];
/// In a row of all groups: messages per second.
const GROUP_FIGURES: &[(usize, usize)] = &[(122, 129)];

/// Commands and what they printed.
fn recorded() -> Vec<(&'static str, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for line in RECORDED.lines().skip_while(|line| line.starts_with("# ")) {
        match (line.strip_prefix("> "), all.last_mut()) {
            (Some(command), _) => all.push((command, String::new())),
            (None, Some((_, printed))) => *printed += &format!("{line}\n"),
            (None, None) => panic!("no command before {line}"),
        }
    }
    all
}

/// Points in time become zeros, figures that change by themselves become `#`.
fn masked(command: &str, printed: &str) -> String {
    let mask = |line: &str| {
        if let Some((what, _)) = line.split_once(" TPS: ") {
            return format!("{what} TPS: #");
        }
        let mut bytes = line.as_bytes().to_vec();
        let figures = match command {
            _ if line.starts_with('#') => &[][..],
            "clusterList" => CLUSTER_LIST_FIGURES,
            "consumerProgress" => GROUP_FIGURES,
            _ => &[],
        };
        figures.iter().for_each(|figure| bytes[figure.0..figure.1].fill(b'#'));
        let mut line = String::from_utf8(bytes).unwrap();
        // The last column of topicStatus and consumerProgress.
        if let Some(at) = line.rfind("  20").or(line.rfind(" 20")).filter(|at| line[*at..].trim().len() >= 19) {
            let time: String = line[at..].chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            line.replace_range(at.., &time);
        }
        line
    };
    printed.lines().map(|line| mask(line) + "\n").collect()
}

#[test]
fn every_command_prints_what_mqadmin_prints() {
    let server = Server::start();
    server.with_progress();
    // Ports have as many digits in both, so columns are as wide.
    let there =
        |text: &str| text.replace("127.0.0.1:39876", &server.namesrv).replace("127.0.0.1:40911", &server.broker);
    assert_eq!((server.namesrv.len(), server.broker.len()), (15, 15));
    let recorded = recorded();
    assert_eq!(recorded.len(), 39);
    for (command, printed) in recorded {
        let words: Vec<String> = there(command).split(' ').map(str::to_string).collect();
        let words: Vec<&str> = ["admin"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let output = server.run(&words);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(
            matches!(output.status.code(), Some(0 | 2)) && err.is_empty(),
            "{command}: {:?}\n{out}{err}",
            output.status
        );
        let (mut wanted, mut found) = (masked(command, &there(&printed)), masked(command, &out));
        if command == "topicList" {
            // mqadmin's order is that of a Java hash table.
            let sorted = |text: String| {
                let mut lines: Vec<&str> = text.lines().collect();
                lines.sort_unstable();
                lines.join("\n")
            };
            (wanted, found) = (sorted(wanted), sorted(found));
        }
        // Behind mqadmin's text, what changed: `target: what`.
        let added = found.strip_prefix(&wanted).unwrap_or_else(|| panic!("{command}:\n{found}\nmqadmin:\n{wanted}"));
        const VERBS: [&str; 7] = ["update", "delete", "reset", "skip", "clone", "wipe", "add"];
        let changes = VERBS.iter().any(|verb| command.starts_with(verb)) && !command.ends_with("-m get");
        assert!(if changes { added.contains(": ") } else { added.is_empty() }, "{command}: {added}");
    }
}

#[test]
fn topics_are_listed_with_their_groups_in_mqadmins_columns() {
    let server = Server::start();
    server.with_progress();
    // Not every server can tell who consumes a topic; the list is printed nevertheless.
    let listed = text(&server.run(&["admin", "topicList", "-c"]).stdout);
    let row = |cluster: &str, topic: &str| format!("{cluster:<20}  {topic:<48}  {:<48}", "#Consumer Group");
    assert_eq!(listed.lines().next(), Some(row("#Cluster Name", "#Topic").as_str()));
    assert_has_line(&listed, &format!("{:<20}  {:<64}  {:<64}", "DefaultCluster", "orders", ""));
}

/// A consumer of topic orders that goes on; killed when dropped.
struct Following {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(server: &Server) -> Self {
        let mut process = comet()
            .args(["consume", "orders", "--group", "billing", "--from", "first", "--follow", "-n", &server.namesrv])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn clients_are_shown_in_mqadmins_columns() {
    let server = Server::start();
    server.admin(0, "updateTopic -c DefaultCluster -t orders -r 2 -w 2");
    let mut consumer = Following::start(&server);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let producer = runtime.block_on(async {
        let mut options = ClientOptions::new(&server.namesrv).unwrap();
        // The broker hears of a producer with its first heartbeat after a send.
        options.heartbeat_interval = Duration::from_millis(100);
        let client = Client::start(options).await.unwrap();
        let producer = Producer::builder(&client, "shop").start().await.unwrap();
        producer.send(Message::new("orders", b"12345678".to_vec())).await.unwrap();
        producer
    });
    // Who has received something is a member of the group.
    assert_eq!(consumer.line().len(), 8);
    let client = |json: &serde_json::Value| {
        let at = |key: &str| json["connections"][0][key].as_str().unwrap().to_string();
        [at("clientId"), at("clientAddr"), at("language"), at("version")]
    };
    let consumers = server.admin(0, "consumerConnection -g billing");
    let [id, addr, language, version] = client(&server.json(0, "consumerConnection -g billing"));
    assert_eq!(language, "RUST");
    let groups = server.admin(0, "consumerProgress");
    let deadline = Instant::now() + Duration::from_secs(20);
    let producers = loop {
        let output = server.run(&["admin", "producerConnection", "-g", "shop", "-t", "orders"]);
        if output.status.success() {
            break text(&output.stdout);
        }
        assert!(Instant::now() < deadline, "{}", text(&output.stderr));
    };
    let [p_id, p_addr, p_language, p_version] = client(&server.json(0, "producerConnection -g shop -t orders"));
    drop(producer);
    assert_eq!(
        consumers,
        format!(
            "#ClientId                            #ClientAddr            #Language  #Version\n\
             {id:<36} {addr:<22} {language:<10} {version}\n\n\
             Below is subscription:\n\
             #Topic               #SubExpression\n\
             %RETRY%billing       *\n\
             orders               *\n\n\
             ConsumeType: CONSUME_PASSIVELY\n\
             MessageModel: CLUSTERING\n\
             ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET\n"
        )
    );
    assert_eq!(producers, format!("0001  {p_id:<32} {p_addr:<22} {p_language:<8} {p_version}\n"));
    let row = "billing                                                           1       V5_5_0                   PUSH   CLUSTERING      ";
    assert!(groups.lines().nth(1).is_some_and(|line| line.starts_with(row)), "{groups}");
}

#[test]
fn sends_to_each_broker_are_measured_until_nobody_reads() {
    let server = Server::start();
    let measure = |more: &[&str]| {
        let mut process = comet()
            .args(["admin", "clusterRT", "-a", "3", "-i", "1", "-n", &server.namesrv])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Vec<String> =
            BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap).take(3).collect();
        // Its next round finds nobody.
        assert_eq!(end_of(process).code(), Some(0));
        lines
    };
    let [head, first, second] = measure(&[]).try_into().unwrap();
    assert_eq!(head, "#Cluster Name             #Broker Name              #RT   #successCount  #failCount");
    for row in [first, second] {
        let cells: Vec<&str> = row.split_whitespace().collect();
        let [cluster, broker, rt, good, bad] = cells[..] else { panic!("five cells: {row}") };
        assert!(
            rt.parse::<f64>().is_ok_and(|ms| ms > 0.0) && rt.split('.').nth(1).is_some_and(|d| d.len() == 2),
            "{row}"
        );
        assert_eq!((cluster, broker, good, bad), ("DefaultCluster", "broker-a", "3", "0"));
        assert_eq!(row, format!("{cluster:<24}  {broker:<24}  {rt:<8}  {good:<16}  {bad:<16}"));
    }
    let status = server.json(0, "topicStatus -t broker-a");
    let stored: i64 = status["queues"].as_array().unwrap().iter().map(|q| q["maxOffset"].as_i64().unwrap()).sum();
    assert!(stored >= 6, "{stored} messages");
    for line in measure(&["-p", "true", "-m", "room1"]) {
        let (time, rest) = line.split_once('|').unwrap();
        assert_eq!(time.len(), "2026-11-30 08:00:00".len(), "{line}");
        let milliseconds = rest.strip_prefix("room1|DefaultCluster|broker-a|").unwrap_or_else(|| panic!("{line}"));
        assert!(milliseconds.parse::<u32>().is_ok(), "{line}");
    }
    assert!(server.admin(1, "clusterRT -c Elsewhere").contains("knows no cluster Elsewhere"));
}
