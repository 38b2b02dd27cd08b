//! A Java broker keeps topics with `queue.type=BatchCQ` in queues of another kind, which nothing here reads: sends to such a topic
//! and pulls from it are refused by name, while other topics are served and its configuration is kept.

mod support;

use std::path::Path;

use cometmq_store::disk::{Disk, Faulty, Open};
use support::*;

const TOPICS: &str = r#"{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1},"topicConfigTable":{"packed":{
    "attributes":{"queue.type":"BatchCQ"},"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",
    "topicName":"packed","topicSysFlag":0,"writeQueueNums":4}}}"#;

#[test]
fn sends_and_pulls_say_so() {
    let disk = Faulty::healthy();
    let config = Path::new(ROOT).join("config");
    disk.create_dirs(&config).unwrap();
    let path = config.join("topics.json");
    disk.open(&path, Open::Create).unwrap().write_all_at(TOPICS.as_bytes(), 0).unwrap();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    for ask in [send("packed", 0, "x"), pull("packed", 0, 0)] {
        let got = peer.ask(&ask);
        let remark = "queue.type=BatchCQ of topic[packed] is not supported by this version";
        assert_eq!((got.code, got.remark.as_str()), (3, remark));
    }
    assert_eq!(peer.ask(&send("orders", 0, "x")).code, 0);
    drop(peer);
    broker.stop();
    let saved = String::from_utf8(disk.read_all(&path).unwrap()).unwrap();
    assert!(saved.contains("BatchCQ") && saved.contains("orders"), "{saved}");
}
