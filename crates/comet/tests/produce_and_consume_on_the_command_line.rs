//! `comet produce` turns lines into messages, `comet consume` prints them: as a reader that leaves no trace, or as a member
//! of a group that goes on where the group was. What goes wrong is one sentence on standard error and exit code 1.
//! Method: the real commands against a real server, their output compared line by line.

mod support;

use std::process::{Command, Stdio};

use support::*;

struct Server {
    _comet: Comet,
    namesrv: String,
    _dir: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let comet = Comet::start(&dir.path().join("data"));
        Self { namesrv: comet.namesrv.to_string(), _comet: comet, _dir: dir }
    }

    fn run(&self, args: &[&str], input: &str) -> Ended {
        comet(&[args, &["--namesrv", &self.namesrv]].concat(), input)
    }

    /// Runs a command that must succeed.
    fn ok(&self, args: &[&str], input: &str) -> Ended {
        let ended = self.run(args, input);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
        ended
    }
}

fn sorted(ended: &Ended) -> Vec<&str> {
    let mut lines = ended.lines();
    lines.sort_unstable();
    lines
}

#[test]
fn lines_become_messages_and_messages_lines() {
    let server = Server::start();
    let sent = server.ok(&["produce", "orders"], "one\ntwo\n\nthree");
    assert!(sent.out.starts_with("sent 3 messages (11 bytes) to orders in "), "{}", sent.out);
    let read = server.ok(&["consume", "orders", "--from", "first"], "");
    assert_eq!(sorted(&read), ["one", "three", "two"]);
    // It left no trace: the same again.
    assert_eq!(sorted(&server.ok(&["consume", "orders"], "")), ["one", "three", "two"]);
    assert_eq!(server.ok(&["consume", "orders", "--max", "2"], "").lines().len(), 2);
    assert!(server.ok(&["consume", "orders", "--from", "last"], "").out.is_empty());
    let sent = server.ok(&["produce", "load", "--count", "500", "--size", "100", "--window", "32"], "");
    assert!(sent.out.starts_with("sent 500 messages (50000 bytes) to load in "), "{}", sent.out);
    assert_eq!(server.ok(&["consume", "load"], "").lines().len(), 500);
}

#[test]
fn a_message_has_its_tag_keys_and_properties() {
    let server = Server::start();
    let paid = ["produce", "orders", "--tag", "paid", "--key", "k1", "--key", "k2", "--property", "shop=berlin"];
    server.ok(&paid, "a paid one\n");
    server.ok(&["produce", "orders", "--tag", "sent"], "a sent one\n");
    server.ok(&["produce", "orders"], "a plain one\n");
    assert_eq!(server.ok(&["consume", "orders", "--tag", "paid"], "").lines(), ["a paid one"]);
    assert_eq!(sorted(&server.ok(&["consume", "orders", "--tag", "paid||sent"], "")), ["a paid one", "a sent one"]);
    assert!(server.ok(&["consume", "orders", "--tag", "lost"], "").out.is_empty());

    let read = server.ok(&["consume", "orders", "--tag", "paid", "--format", "json"], "");
    let message: serde_json::Value = serde_json::from_str(&read.out).unwrap();
    assert_eq!(message["topic"], "orders");
    assert_eq!(message["body"], "a paid one");
    assert_eq!(message["properties"]["TAGS"], "paid");
    assert_eq!(message["properties"]["KEYS"], "k1 k2");
    assert_eq!(message["properties"]["shop"], "berlin");
    assert_eq!(message["queueOffset"], 0);
    assert_eq!(message["reconsumeTimes"], 0);
    assert!(message["queueId"].as_i64().is_some_and(|id| (0..8).contains(&id)), "{message}");
    let (id, offset_id) = (message["msgId"].as_str().unwrap(), message["offsetMsgId"].as_str().unwrap());
    assert!(id.len() == 32 && offset_id.len() == 32 && id != offset_id, "{message}");
    assert_eq!(message["properties"]["UNIQ_KEY"], id);
    let (born, stored) = (message["bornTimestamp"].as_i64().unwrap(), message["storeTimestamp"].as_i64().unwrap());
    assert!(born > 1_700_000_000_000 && stored >= born, "{message}");
    for host in ["bornHost", "storeHost"] {
        assert!(message[host].as_str().unwrap().starts_with("127.0.0.1:"), "{message}");
    }
}

#[test]
fn a_group_goes_on_where_it_was() {
    let server = Server::start();
    let consume = |more: &[&str]| {
        let args = ["consume", "orders", "--group", "billing", "--from", "first", "--idle", "1"];
        server.ok(&[&args, more].concat(), "")
    };
    server.ok(&["produce", "orders"], "one\ntwo\nthree\n");
    assert_eq!(sorted(&consume(&[])), ["one", "three", "two"]);
    server.ok(&["produce", "orders"], "four\n");
    assert_eq!(consume(&[]).lines(), ["four"]);
    assert!(consume(&[]).out.is_empty());
    // What was printed is done, and no more than that: the rest comes with the next run.
    server.ok(&["produce", "orders"], "five\nsix\nseven\n");
    let first = consume(&["--max", "1"]);
    let rest = consume(&[]);
    let mut all = [first.lines(), rest.lines()].concat();
    assert_eq!(first.lines().len(), 1);
    all.sort_unstable();
    assert_eq!(all, ["five", "seven", "six"]);
}

#[test]
fn following_gets_what_comes_later() {
    let server = Server::start();
    server.ok(&["produce", "orders"], "before\n");
    for more in [&["--max", "3"][..], &["--max", "3", "--group", "followers"]] {
        let mut command = Command::new(COMET);
        command.args(["consume", "orders", "--follow", "--from", "first", "--namesrv", &server.namesrv]).args(more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let next = || lines.recv_timeout(LONG).unwrap_or_else(|e| panic!("{more:?}: {e}"));
        assert_eq!(next(), "before");
        if more.len() > 2 {
            // What the first follower got as it came.
            let mut found = [next(), next()];
            found.sort_unstable();
            assert_eq!(found, ["later", "later still"]);
        } else {
            for line in ["later", "later still"] {
                server.ok(&["produce", "orders"], line);
                assert_eq!(next(), line);
            }
        }
        assert!(wait(&mut child, "consume --follow").success());
    }
}

#[test]
fn what_goes_wrong_is_one_sentence() {
    let server = Server::start();
    let says = |ended: &Ended, words: &[&str]| {
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.out.is_empty(), "{ended:?}");
        assert!(ended.err.starts_with("comet: ") && ended.err.lines().count() == 1, "{ended:?}");
        words.iter().for_each(|word| assert!(ended.err.contains(word), "no '{word}' in {}", ended.err));
    };
    let nobody = format!("127.0.0.1:{}", free_port());
    for command in [&["produce", "orders"][..], &["consume", "orders"], &["consume", "orders", "--group", "g"]] {
        let ended = comet(&[command, &["--namesrv", &nobody]].concat(), "x\n");
        says(&ended, &[&nobody]);
    }
    says(&server.run(&["consume", "nowhere"], ""), &["nowhere", &server.namesrv]);
    says(&server.run(&["produce", "bad topic"], "x\n"), &["bad topic", "illegal characters"]);
    says(&server.run(&["consume", "orders", "--from", "yesterday"], ""), &["--from yesterday", "2026-11-30T08:00:00Z"]);
    says(&server.run(&["produce", "orders", "--file", "/no/such/file"], ""), &["/no/such/file", "No such file"]);
    says(&server.run(&["produce", "orders", "--property", "x"], "x\n"), &["--property x", "KEY=VALUE"]);
    says(&comet(&["produce", "orders", "--namesrv", "nonsense"], "x\n"), &["nonsense", "host:port"]);
}
