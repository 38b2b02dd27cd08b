//! `comet store dump` prints what a Java consumer read from the stores that Java wrote: every message of the lists beside them, with the
//! same values, bodies decompressed. `comet store stat` counts the same. Neither changes the store.

mod support;
#[path = "support/stores.rs"]
mod stores;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};
use stores::*;
use support::*;

/// Place in the log → message, without what the client that read it added.
fn list(name: &str) -> BTreeMap<i64, Value> {
    let out = Command::new("gzip").arg("-dc").arg(fixture(&format!("{name}.jsonl.gz"))).output().unwrap();
    let message = |line: &str| {
        let mut message: Value = serde_json::from_str(line).unwrap();
        let properties = message["properties"].as_object_mut().unwrap();
        properties.remove("MIN_OFFSET").and(properties.remove("MAX_OFFSET")).unwrap();
        (message["commitLogOffset"].as_i64().unwrap(), message)
    };
    String::from_utf8(out.stdout).unwrap().lines().map(message).collect()
}

fn store(command: &str, root: &std::path::Path, args: &[&str]) -> Ended {
    let before = tree(root);
    let ended = comet(&[&["store", command, &root.display().to_string()], args].concat(), "");
    assert!(tree(root) == before, "{command} changed the store");
    ended
}

fn dump(root: &std::path::Path, args: &[&str]) -> Vec<Value> {
    let ended = store("dump", root, &[args, &["--format", "json"]].concat());
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{args:?}");
    ended.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_its_list(name: &str, count: usize, of_system: usize) {
    let (dir, list) = (java_store(name), list(name));
    let topics: BTreeSet<&str> = list.values().map(|m| m["topic"].as_str().unwrap()).collect();
    let dumped = dump(dir.path(), &[]);
    let (of_list, others): (Vec<&Value>, Vec<&Value>) =
        dumped.iter().partition(|m| topics.contains(m["topic"].as_str().unwrap()));
    assert_eq!((list.len(), of_list.len(), others.len()), (count, count, of_system));
    for (found, expected) in of_list.iter().zip(list.values()) {
        assert_eq!(*found, expected);
    }
}

#[test]
fn the_dump_of_a_store_that_was_stopped_is_its_list() {
    is_its_list("clean", 273, 12);
}

#[test]
fn the_dump_of_a_store_that_was_killed_is_its_list() {
    is_its_list("killed", 546, 21);
}

#[test]
fn parts_are_chosen_by_topic_queue_offset_and_number() {
    let dir = java_store("clean");
    let root = dir.path();
    let offsets = |args: &[&str]| -> Vec<(i64, i64)> {
        let pair = |m: &Value| (m["queueId"].as_i64().unwrap(), m["queueOffset"].as_i64().unwrap());
        dump(root, args).iter().map(pair).collect()
    };
    let queue = ["--topic", "fixture_normal", "--queue", "1"];
    assert_eq!(offsets(&[&queue[..], &["--from", "67"]].concat()), [(1, 67), (1, 68), (1, 69)]);
    assert_eq!(offsets(&[&queue[..], &["--from", "67", "--max", "2"]].concat()), [(1, 67), (1, 68)]);
    assert_eq!(offsets(&[&queue[..], &["--from", "70"]].concat()), []);
    assert_eq!(offsets(&["--topic", "fixture_delay"]).len(), 2);
    assert_eq!(offsets(&["--topic", "none"]), []);
    assert_eq!(offsets(&["--from", "309", "--max", "1"]), [(1, 0)]);
    let text = store("dump", root, &["--from", "309", "--max", "1"]);
    let line = "fixture_normal-1 0 log=309 size=276 stored=1796051637981 id=FD0000000000000000000000000000027DD230946E09989D2EC00001 tags=TagB body=body 1 1\n";
    assert_eq!((text.code, text.out.as_str()), (0, line));
    let alone = comet(&["store", "dump", &root.display().to_string(), "--queue", "1"], "");
    assert_eq!((alone.code, alone.out.as_str()), (2, ""), "{}", alone.err);
}

#[test]
fn damage_is_stepped_over_and_named() {
    let dir = java_store("clean");
    flip(&dir.path().join("commitlog/00000000000000000000"), 309 + 88);
    let ended = store("dump", dir.path(), &["--format", "json"]);
    assert_eq!((ended.code, ended.lines().len()), (1, 284));
    let says = "comet: damaged from log offset 309 to 585: a body that does not match its crc\n";
    assert_eq!(ended.err, says);
}

#[test]
fn the_figures_are_those_of_the_store() {
    let dir = java_store("killed");
    let ended = store("stat", dir.path(), &["--format", "json"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let stat: Value = serde_json::from_str(&ended.out).unwrap();
    let expected = json!({
        "crashed": true, "logStart": 0, "logEnd": 161_604, "segmentBytes": 524_288, "messages": 567,
        "firstStoreTimestamp": 1_796_051_637_889_i64, "lastStoreTimestamp": 1_796_051_701_859_i64,
        "queueFileBytes": 2000, "queueFiles": 23, "indexKeys": 1322,
        "segments": [{ "file": "commitlog/00000000000000000000", "bytes": 524_288 }],
        "indexFiles": [{ "file": "index/20261130151357933", "bytes": 42_040 }],
        "groupsWithOffsets": ["CID_RMQ_SYS_TRANS", "fixture_group"],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&stat[key], value, "{key}");
    }
    let queue = json!({ "topic": "fixture_normal", "queueId": 3, "minOffset": 0, "maxOffset": 122 });
    assert!(stat["queues"].as_array().unwrap().contains(&queue));
    assert_eq!((stat["queues"].as_array().unwrap().len(), stat["groups"].as_array().unwrap().len()), (21, 10));
    assert!(stat["diskBytes"].as_u64().unwrap() > 161_604);
    let text = store("stat", dir.path(), &[]).out;
    assert!(text.contains("\nmessages  567 in 21 queues of 9 topics\n"), "{text}");
}
