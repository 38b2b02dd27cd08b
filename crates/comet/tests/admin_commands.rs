//! `comet admin` does to a cluster what mqadmin does, with its flags and columns, and says what changed. Every test starts
//! the real binary twice: `comet serve` on free ports, and the command as a process of its own, whose output and exit
//! code are looked at. What mqadmin's own tables look like: `admin_tables_are_mqadmins.rs`.

#[path = "support/admin.rs"]
mod support;

use std::io::{BufRead, BufReader};

use serde_json::Value;
use support::*;

#[test]
fn topics_are_created_changed_and_deleted() {
    let server = Server::start();
    let broker = &server.broker;
    let out = server.admin(0, "updateTopic -c DefaultCluster -t orders -r 4 -w 4");
    assert_has_line(&out, &format!("create topic to {broker} success."));
    assert_has_line(
        &out,
        "TopicConfig [topicName=orders, readQueueNums=4, writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, \
         topicSysFlag=0, order=false, attributes={}]",
    );
    assert_has_line(&out, &format!("{broker}: created"));
    let again = server.admin(2, "updateTopic -c DefaultCluster -t orders -r 4 -w 4");
    assert_has_line(&again, &format!("{broker}: nothing changed"));
    let more = server.json(0, &format!("updateTopic -b {broker} -t orders -r 8 -w 4"));
    let change = &more["changes"][0];
    assert_eq!((&change["before"]["readQueueNums"], &change["after"]["readQueueNums"]), (&4.into(), &8.into()));
    assert_eq!(change["changed"], true);

    assert_has_line(&server.admin(0, "topicList"), "orders");
    assert_has_line(&server.admin(0, "TOPICLIST"), "orders");
    assert_eq!(server.admin(0, "topicClusterList -t orders"), "DefaultCluster\n");
    let route: Value = server.json(0, "topicRoute -topic orders");
    assert_eq!(route["queueDatas"][0]["readQueueNums"], 8);
    assert_eq!(route["brokerDatas"][0]["brokerAddrs"]["0"], broker.as_str());

    let perm = server.admin(0, &format!("updateTopicPerm -t orders -p 4 -b {broker}"));
    assert_has_line(&perm, &format!("update topic perm from 6 to 4 in {broker} success."));
    assert_has_line(&perm, &format!("{broker}: perm 6 -> 4"));
    assert_has_line(
        &server.admin(2, "updateTopicPerm -t orders -p 4 -c DefaultCluster"),
        "new perm equals to the old one!",
    );
    assert_eq!(server.json(0, "topicRoute -t orders")["queueDatas"][0]["readQueueNums"], 8);

    let out = server.admin(0, "deleteTopic -c DefaultCluster -t orders");
    assert_has_line(&out, "delete topic [orders] from cluster [DefaultCluster] success.");
    assert_has_line(&out, "delete topic [orders] from NameServer success.");
    assert_has_line(&server.admin(2, "deleteTopic -c DefaultCluster -t orders"), &format!("{broker}: nothing changed"));
    assert!(server.admin(1, "topicRoute -t orders").contains("TOPIC_NOT_EXIST (17)"));
}

/// Cases C14, C15 and C19.
#[test]
fn names_that_no_topic_may_have() {
    let server = Server::start();
    let (longest, too_long) = ("t".repeat(127), "t".repeat(128));
    let run = |code: i32, words: &[&str]| {
        let output = server.run(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", text(&output.stdout));
        if code == 1 { text(&output.stderr) } else { text(&output.stdout) }
    };
    let update = |code, name: &str| run(code, &["admin", "updateTopic", "-b", &server.broker, "-t", name]);
    for name in [longest.as_str(), "ok%|-_9"] {
        assert_has_line(&update(0, name), &format!("create topic to {} success.", server.broker));
    }
    let bad = [
        (too_long.as_str(), "is longer than topic max length: 127"),
        ("a.b", "The specified topic: a.b, contains illegal characters"),
        ("a b", "The specified topic: a b, contains illegal characters"),
        ("44334\u{2248}\u{2202}\u{e7}", "contains illegal characters"),
        ("", "The specified topic is blank."),
        (" ", "The specified topic is blank."),
    ];
    for (name, words) in bad {
        let said = update(1, name);
        assert!(said.contains(words), "'{said}' does not say '{words}'");
    }
    for name in ["SCHEDULE_TOPIC_XXXX", "TBW102", "RMQ_SYS_TRANS_HALF_TOPIC"] {
        let before = server.json(0, &format!("topicRoute -t {name}"));
        let words = format!("The topic[{name}] is conflict with system topic.");
        assert!(update(1, name).contains(&words));
        assert!(server.admin(1, &format!("deleteTopic -c DefaultCluster -t {name}")).contains(&words));
        assert_eq!(server.json(0, &format!("topicRoute -t {name}")), before, "{name}");
        let sent = server.run(&["produce", name, "--count", "1", "--size", "8"]);
        assert!(text(&sent.stderr).contains(&format!("Sending message to topic[{name}] is forbidden.")));
    }
}

#[test]
fn ordered_topics_have_fixed_queue_counts() {
    let server = Server::start();
    let (broker, namesrv) = (&server.broker, &server.namesrv);
    let out = server.admin(0, &format!("updateTopic -b {broker} -t bills -w 4 -o true"));
    assert_has_line(&out, "set broker orderConf. isOrder=true, orderConf=[broker-a:4]");
    assert_has_line(
        &server.admin(0, "updateOrderConf -t bills -m get"),
        "get orderConf success. topic=[bills], orderConf=[broker-a:4] ",
    );
    let out = server.admin(0, "updateOrderConf -t bills -m put -v broker-a:2;broker-b:2");
    assert_has_line(&out, &format!("{namesrv}: broker-a:4 -> broker-a:2;broker-b:2"));
    let out = server.admin(0, &format!("updateTopic -b {broker} -t bills -w 4 -o true"));
    assert_eq!(out.lines().next(), Some("set broker orderConf. isOrder=true, orderConf=[broker-a:4]"));
    assert_has_line(&out, &format!("{namesrv} ORDER_TOPIC_CONFIG: broker-a:2;broker-b:2 -> broker-a:4;broker-b:2"));
    server.admin(0, "updateOrderConf -t bills -m delete");
    server.admin(2, "updateOrderConf -t bills -m delete");
    assert!(server.admin(1, "updateOrderConf -t bills -m get").contains("QUERY_NOT_FOUND (22)"));
}

#[test]
fn groups_are_created_changed_and_deleted() {
    let server = Server::start();
    let broker = &server.broker;
    assert_has_line(&server.admin(0, "updateSubGroup -c DefaultCluster -g billing"), &format!("{broker}: created"));
    server.admin(2, "updateSubGroup -c DefaultCluster -g billing");
    let out = server.admin(0, "updateSubGroup -c DefaultCluster -g billing -r 3 -s false");
    assert_has_line(&out, &format!("{broker}: consumeEnable true -> false, retryMaxTimes 16 -> 3"));
    let out = server.admin(0, "deleteSubGroup -c DefaultCluster -g billing -r true");
    assert_has_line(
        &out,
        &format!("delete subscription group [billing] from broker [{broker}] in cluster [DefaultCluster] success."),
    );
    server.admin(2, &format!("deleteSubGroup -b {broker} -g billing"));
    assert!(server.admin(1, "updateSubGroup -c DefaultCluster -g x -p {").contains("not a retry policy"));
}

#[test]
fn topics_and_groups_come_from_files() {
    let server = Server::start();
    let broker = &server.broker;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let topics = file(
        "topics.json",
        r#"[{"topicName":"orders","readQueueNums":3,"writeQueueNums":2,"perm":4,"attributes":{"+message.type":"FIFO"}},
            {"topicName":"bills"}]"#,
    );
    assert_eq!(
        server.admin(0, &format!("updateTopicList -c DefaultCluster -f {topics}")),
        format!(
            "submit batch of topic config to {broker} success, please check the result later.\n\
             {broker} orders: created\n{broker} bills: created\n"
        )
    );
    let queues = &server.json(0, "topicRoute -t orders")["queueDatas"][0];
    assert_eq!(
        (&queues["readQueueNums"], &queues["writeQueueNums"], &queues["perm"]),
        (&3.into(), &2.into(), &4.into())
    );
    // The defaults of Java's TopicConfig.
    let queues = &server.json(0, "topicRoute -t bills")["queueDatas"][0];
    assert_eq!((&queues["readQueueNums"], &queues["perm"]), (&16.into(), &6.into()));
    server.admin(2, &format!("updateTopicList -b {broker} -f {topics}"));

    let groups = file("groups.json", r#"[{"groupName":"billing","retryMaxTimes":3},{"groupName":"audit"}]"#);
    assert_eq!(
        server.admin(0, &format!("updateSubGroupList -c DefaultCluster -f {groups}")),
        format!(
            "submit batch of subscription group config to {broker} success, please check the result later.\n\
             {broker} billing: created\n{broker} audit: created\n"
        )
    );
    let again = server.admin(2, &format!("updateSubGroupList -b {broker} -f {groups}"));
    assert!(again.starts_with(&format!("submit batch of group config to {broker} success, ")), "{again}");
    let shown = server.json(0, "getConsumerConfig -g billing");
    assert_eq!((&shown[0]["brokerName"], &shown[0]["config"]["retryMaxTimes"]), (&"broker-a".into(), &3.into()));

    // A row that the broker refuses keeps no other from being done.
    let one_wrong = file("one-wrong.json", r#"[{"topicName":"TBW102"},{"topicName":"refunds"}]"#);
    let said = server.admin(1, &format!("updateTopicList -b {broker} -f {one_wrong}"));
    assert!(said.contains("TBW102") && said.lines().count() == 1, "{said}");
    assert_has_line(&server.admin(0, "topicList"), "refunds");
    for (text, what) in [
        (r#"{"topicName":"a"}"#, "not a JSON list"),
        (r#"[{"topicName":"a"},{"topicNam":"b"}]"#, "row 2 has an unknown field topicNam"),
        (r#"[{"topicName":"a","perm":"all"}]"#, "row 1: "),
    ] {
        let wrong = file("wrong.json", text);
        let said = server.admin(1, &format!("updateTopicList -b {broker} -f {wrong}"));
        assert!(said.starts_with(&format!("comet admin: -f {wrong}: {what}")), "{said}");
    }
    assert!(!server.admin(0, "topicList").lines().any(|line| line == "a"));
    assert!(server.admin(1, &format!("updateTopicList -b {broker} -f nosuch")).starts_with("comet admin: -f nosuch: "));
}

/// `comet admin clusterList -i 1 | head -1` ends.
#[test]
fn a_table_that_is_printed_again_ends_with_its_reader() {
    let server = Server::start();
    let mut again = comet()
        .args(["admin", "clusterList", "-i", "1", "-n", &server.namesrv])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut head = String::new();
    BufReader::new(again.stdout.take().unwrap()).read_line(&mut head).unwrap();
    assert!(head.starts_with("#Cluster Name "), "{head}");
    assert_eq!(end_of(again).code(), Some(0));
}

#[test]
fn groups_are_moved() {
    let server = Server::start();
    server.with_progress();
    let progress = |group: &str| {
        let json = server.json(0, &format!("consumerProgress -g {group} -t orders"));
        let queues = json["queues"].as_array().unwrap().clone();
        let offsets: Vec<i64> = queues.iter().map(|q| q["consumerOffset"].as_i64().unwrap()).collect();
        (offsets, json["diffTotal"].as_i64().unwrap())
    };
    assert_eq!(progress("billing"), (vec![5, 5], 0));
    // Case C30: of what is consumed nothing comes again.
    server.admin(2, "resetOffsetByTime -g billing -t orders -s now");
    assert_eq!(progress("billing"), (vec![5, 5], 0));
    let out = server.admin(0, "resetOffsetByTime -g billing -t orders -s 2026-01-01T00:00:00Z");
    assert_has_line(&out, "broker-a queue 0: 5 -> 0");
    assert_eq!(progress("billing"), (vec![0, 0], 10));
    server.admin(2, "resetOffsetByTime -g billing -t orders -s 0");
    assert_has_line(&server.admin(0, "resetOffsetByTime -g billing -t orders -s now"), "broker-a queue 0: 0 -> 5");
    assert_eq!(progress("billing"), (vec![5, 5], 0));
    server.admin(0, "resetOffsetByTime -g billing -t orders -s 0");
    let out = server.admin(0, "skipAccumulatedMessage -g billing -t orders");
    assert_has_line(&out, "broker-a queue 1: 0 -> 5");
    server.admin(2, "skipAccumulatedMessage -g billing -t orders");
    let one = format!("resetOffsetByTime -g billing -t orders -s 0 -b {} -q 1 -o 2", server.broker);
    assert_has_line(&server.admin(0, &one), &format!("{} queue 1: 5 -> 2", server.broker));
    assert_eq!(progress("billing"), (vec![5, 2], 3));

    server.admin(0, "updateSubGroup -c DefaultCluster -g copy");
    let out = server.admin(0, "cloneGroupOffset -s billing -d copy -t orders");
    assert_has_line(&out, "clone group offset success. srcGroup[billing], destGroup=[copy], topic[orders]");
    assert_has_line(&out, "broker-a queue 1: none -> 2");
    assert_eq!(progress("copy"), (vec![5, 2], 3));
    server.admin(2, "cloneGroupOffset -s billing -d copy -t orders");
    assert!(server.admin(1, "cloneGroupOffset -s nobody -d copy -t orders").contains("nobody has no offsets"));
    assert!(
        server.admin(1, "resetOffsetByTime -g billing -t orders -s tomorrow").contains("-s tomorrow: expected now")
    );
}

#[test]
fn a_group_without_clients_is_an_error() {
    let server = Server::start();
    server.admin(0, "updateTopic -c DefaultCluster -t orders -r 2 -w 2");
    assert!(server.admin(1, "consumerConnection -g billing").contains("no consumer of group billing is connected"));
    assert!(server.admin(1, "producerConnection -g x -t orders").contains("no producer of group x is connected"));
    assert!(server.admin(1, "getConsumerConfig -g billing").contains("has group billing"));
}

#[test]
fn configuration_is_shown_and_changed() {
    let server = Server::start();
    let (broker, namesrv) = (&server.broker, &server.namesrv);
    assert!(
        server.admin(0, &format!("brokerStatus -b {broker}")).contains("brokerVersionDesc               : V5_5_0\n")
    );
    assert_eq!(server.json(0, "brokerStatus -c DefaultCluster")[broker]["brokerActive"], "true");
    let config = server.admin(0, "getBrokerConfig -c DefaultCluster");
    assert!(config.starts_with(&format!("============Master: {broker}============\n")), "{config}");
    assert_has_line(&config, "brokerName                                        =  broker-a");
    assert_eq!(server.json(0, &format!("getBrokerConfig -b {broker}"))[broker]["brokerName"], "broker-a");

    assert!(server.admin(0, "getNamesrvConfig").starts_with(&format!("============{namesrv}============\n")));
    let out = server.admin(0, "updateNamesrvConfig -k scanNotActiveBrokerInterval -v 4000");
    assert_has_line(&out, &format!("{namesrv}: scanNotActiveBrokerInterval 5000 -> 4000"));
    server.admin(2, "updateNamesrvConfig -k scanNotActiveBrokerInterval -v 4000");
    let out = server.admin(2, "updateNamesrvConfig -k noSuchKey -v 1");
    assert_has_line(&out, &format!("{namesrv} has no key noSuchKey"));

    server.admin(0, "updateKvConfig -s space -k key -v value");
    server.admin(2, "updateKvConfig -s space -k key -v value");
    let deleted = server.json(0, "deleteKvConfig -s space -k key");
    assert_eq!((&deleted["changes"][0]["before"], &deleted["changes"][0]["after"]), (&"value".into(), &Value::Null));
    server.admin(2, "deleteKvConfig -s space -k key");

    let out = server.admin(0, "wipeWritePerm -b broker-a");
    assert!(out.starts_with(&format!("wipe write perm of broker[broker-a] in name server[{namesrv}] OK, ")), "{out}");
    server.admin(2, "wipeWritePerm -b broker-a");
    server.admin(0, "addWritePerm -b broker-a");
    server.admin(2, "addWritePerm -b nobody");
    let shares = server.json(0, "allocateMQ -t broker-a -i 10.0.0.1,10.0.0.2");
    assert!(shares["result"]["10.0.0.1"].is_array(), "{shares}");
}

#[test]
fn old_data_is_cleaned() {
    let server = Server::start();
    server.with_progress();
    for command in ["deleteExpiredCommitLog", "cleanExpiredCQ", "cleanUnusedTopic"] {
        for at in ["", " -c DefaultCluster", &format!(" -b {}", server.broker)] {
            assert_eq!(server.admin(0, &format!("{command}{at}")), "success\n", "{command}{at}");
        }
        let told = server.json(0, command);
        assert_eq!(told, serde_json::json!({"brokers": [server.broker], "failures": []}), "{command}");
        let refused = server.admin(1, &format!("{command} -c Nowhere"));
        assert!(refused.contains("knows no cluster Nowhere"), "{refused}");
    }
    assert!(server.admin(0, "topicStatus -t orders").contains("broker-a"), "nothing was old, or not configured");
}

#[test]
fn failures_are_one_sentence() {
    let server = Server::start();
    let (broker, namesrv) = (&server.broker, &server.namesrv);
    assert_eq!(
        server.admin(1, "topicRoute -t nosuch"),
        format!(
            "comet admin: {namesrv} answered GET_ROUTEINFO_BY_TOPIC (105) for topic nosuch with TOPIC_NOT_EXIST (17): no \
             broker has it\n"
        )
    );
    assert_eq!(
        server.admin(1, "deleteTopic -t t -c Elsewhere"),
        format!("comet admin: {namesrv} knows no cluster Elsewhere; it knows: DefaultCluster\n")
    );
    let unreachable = server.admin(1, "topicList -n 127.0.0.1:1");
    assert!(
        unreachable.starts_with(
            "comet admin: GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206) for the cluster at 127.0.0.1:1: cannot connect to \
             127.0.0.1:1: "
        ) && unreachable.lines().count() == 1,
        "{unreachable}"
    );
    // A name server has no figures of a broker.
    assert_eq!(
        server.admin(1, &format!("brokerStatus -b {namesrv}")),
        format!(
            "comet admin: {namesrv} does not support GET_BROKER_RUNTIME_INFO (28), which this command needs: it answered \
             REQUEST_CODE_NOT_SUPPORTED (3): request type 28 not supported\n"
        )
    );
    assert!(server.admin(1, &format!("updateTopic -b {broker} -t TBW102")).contains("conflict with system topic"));
    assert!(
        server.admin(1, "queryMsgById -i 1").contains("queryMsgById is a command of mqadmin that comet does not have")
    );
    assert!(server.admin(1, "nosuch").contains("unrecognized subcommand"));
    assert!(server.admin(1, "topicRoute").contains("--topic"));
}

#[test]
fn help_completions_and_manual_know_every_command() {
    let print = |words: &[&str]| {
        let output = comet().args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let help = print(&["admin", "--help"]);
    for command in ["updateTopic", "allocateMQ", "cloneGroupOffset", "updateNamesrvConfig"] {
        assert!(help.contains(command), "{help}");
        assert!(print(&["admin", "help", command]).contains("Examples:\n  comet admin"));
        for shell in ["bash", "zsh", "fish"] {
            assert!(print(&["completions", shell]).contains(command), "{shell} {command}");
        }
        assert!(print(&["man", "admin", command]).contains(&format!("comet\\-admin\\-{command}")));
    }
    assert_eq!(print(&["admin"]), help);
    assert!(print(&["man"]).starts_with(".ie"));
}
