//! A broker started on a store directory that Apache RocketMQ 5.5.0 wrote, stopped cleanly or killed, goes on from it: every
//! message of its list comes by a pull, by its unique key and keys, and by its offset id, as one and the same record; topics,
//! groups and committed offsets are Java's; messages sent now follow the ones that are there.
//! (That each record has the values of the list, to the last property, is shown by the store's own test of the fixtures.)

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use cometmq_wire::record::{Record, records};
use serde_json::Value;
use support::*;

fn fixture(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures").join(format!("java-store-5.5.0-{file}"))
}

fn unpack(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let archive = fixture(&format!("{name}.tar.gz"));
    let done = Command::new("tar").arg("--sparse").arg("-xzf").arg(archive).arg("-C").arg(dir.path()).status().unwrap();
    assert!(done.success());
    dir
}

fn messages(name: &str) -> Vec<Value> {
    let out = Command::new("gzip").arg("-dc").arg(fixture(&format!("{name}.jsonl.gz"))).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn config<T: serde::de::DeserializeOwned>(root: &Path, file: &str) -> T {
    cometmq_wire::json::from_slice(&std::fs::read(root.join("config").join(file)).unwrap()).unwrap()
}

fn query(topic: &str, key: &str, kind: &str) -> Ask {
    let ask = Ask::new(12).field("topic", topic).field("key", key).field("indexType", kind).field("maxNum", 64);
    ask.field("beginTimestamp", 0).field("endTimestamp", i64::MAX)
}

/// The records of an answer, by log offset.
fn by_place(got: &Got) -> BTreeMap<i64, Vec<u8>> {
    let mut rest = &got.body[..];
    let lens: Vec<_> = records(rest).map(|r| r.unwrap()).map(|r| (r.log_offset(), r.len())).collect();
    let mut cut = |(at, len)| {
        let (record, behind) = rest.split_at(len);
        rest = behind;
        (at, record.to_vec())
    };
    lens.into_iter().map(&mut cut).collect()
}

fn goes_on(name: &str, count: usize) {
    let dir = unpack(name);
    let root = dir.path();
    let topics: Value = config(root, "topics.json");
    let groups: Value = config(root, "subscriptionGroup.json");
    let offsets: Value = config(root, "consumerOffset.json");
    let broker = TestBroker::start_at(root.to_path_buf(), &[("brokerName", "broker-a")]);
    let mut peer = broker.connect();
    for topic in topics["topicConfigTable"].as_object().unwrap().keys() {
        let got: Value = serde_json::from_slice(&peer.ok(&Ask::new(351).field("topic", topic)).body).unwrap();
        let (known, java) = (&got["topicName"], &topics["topicConfigTable"][topic]);
        assert_eq!(
            (known, &got["writeQueueNums"], &got["perm"]),
            (&java["topicName"], &java["writeQueueNums"], &java["perm"])
        );
    }
    for group in groups["subscriptionGroupTable"].as_object().unwrap().keys() {
        let got: Value = serde_json::from_slice(&peer.ok(&Ask::new(352).field("group", group)).body).unwrap();
        assert_eq!(got["groupName"], group.as_str());
    }
    let mut committed_offsets = 0;
    for (at, queues) in offsets["offsetTable"].as_object().unwrap() {
        let (topic, group) = at.split_once('@').unwrap();
        for (queue, offset) in queues.as_object().unwrap() {
            let got = peer.ok(&committed(group, topic, queue.parse().unwrap()));
            assert_eq!(got.num("offset"), offset.as_i64().unwrap(), "{at} {queue}");
            committed_offsets += 1;
        }
    }
    assert!(committed_offsets >= 4);

    let list = messages(name);
    assert_eq!(list.len(), count);
    let mut ends: BTreeMap<(&str, i32), i64> = BTreeMap::new();
    for message in &list {
        let text = |field: &str| message[field].as_str().unwrap();
        let number = |field: &str| message[field].as_i64().unwrap();
        let (topic, queue, offset) = (text("topic"), number("queueId") as i32, number("queueOffset"));
        let (place, what) = (number("commitLogOffset"), format!("{topic}-{queue} at {offset}"));
        let end = ends.entry((topic, queue)).or_default();
        *end = (*end).max(offset + 1);
        let record = peer.ok(&pull(topic, queue, offset).field("maxMsgNums", 1)).body;
        let parsed = Record::parse(&record).unwrap();
        assert_eq!((parsed.log_offset(), parsed.queue_offset()), (place, offset), "{what}");
        assert_eq!(parsed.len() as i64, number("storeSize"), "{what}");
        assert!(peer.ok(&Ask::new(33).field("offset", place)).body == record, "{what}, by its id");
        let unique = by_place(&peer.ok(&query(topic, text("msgId"), "U")));
        assert!(unique.get(&place) == Some(&record), "{what}, by its unique key");
        let keys = message["properties"]["KEYS"].as_str().unwrap_or_default();
        for key in keys.split(' ').filter(|key| !key.is_empty()) {
            let found = by_place(&peer.ok(&query(topic, key, "K").field("maxNum", 64)));
            let stored = number("storeTimestamp");
            let then = query(topic, key, "K").field("beginTimestamp", stored).field("endTimestamp", stored);
            assert!(found.len() == 64 || found.contains_key(&place), "{what}, by {key}");
            assert!(by_place(&peer.ok(&then)).get(&place) == Some(&record), "{what}, by {key} and its time");
        }
    }
    for ((topic, queue), end) in ends {
        if topic == "fixture_delay" {
            // What was due is delivered now.
            assert!(peer.ok(&max_offset(topic, queue)).num("offset") >= end, "{topic}-{queue}");
            continue;
        }
        assert_eq!(peer.ok(&max_offset(topic, queue)).num("offset"), end, "{topic}-{queue}");
        assert_eq!(peer.ok(&send(topic, queue, "of the next life")).num("queueOffset"), end, "{topic}-{queue}");
        let got = peer.ok(&pull(topic, queue, end));
        assert_eq!(got.messages(), [(end, b"of the next life".to_vec())]);
    }
    broker.stop();
}

#[test]
fn that_was_stopped() {
    goes_on("clean", 273);
}

#[test]
fn that_was_killed() {
    goes_on("killed", 546);
}
