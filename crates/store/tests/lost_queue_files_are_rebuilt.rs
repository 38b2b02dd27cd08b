//! Consume queues are derived from the log: files that are gone or cut short, a directory that is gone, all of them gone,
//! and the next start brings the same queues back, after a clean stop and after a kill.

mod support;

use std::fs::{OpenOptions, remove_dir_all, remove_file};
use std::path::Path;

use cometmq_store::FlushMode::Async;
use support::{body, drain, open_at, send, settle};

const QUEUES: [(&str, i32); 3] = [("a", 0), ("a", 1), ("b", 0)];

fn come_back(what: &str, lose: impl Fn(&Path)) {
    for clean in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let store = open_at(dir.path(), Async).unwrap();
        let bodies: Vec<Vec<u8>> = (0..13).map(|n| body(&format!("message {n}"), 120)).collect();
        for (topic, id) in QUEUES {
            send(&store, &store.queue(topic, id).unwrap(), &bodies).unwrap();
        }
        settle(&store);
        if clean {
            store.close().unwrap();
        }
        drop(store);
        lose(&dir.path().join("consumequeue"));
        for life in 0..2 {
            let when = format!("{what}, clean {clean}, life {life}");
            let store = open_at(dir.path(), Async).unwrap();
            for (topic, id) in QUEUES {
                assert_eq!(drain(&store, topic, id)[..13], bodies, "{when}: {topic}-{id}");
                let placed = send(&store, &store.queue(topic, id).unwrap(), &["next"]).unwrap();
                assert_eq!(placed[0].queue_offset, 13 + life, "{when}: {topic}-{id}");
            }
            store.close().unwrap();
        }
    }
}

/// Light queues share the records of other topics; which ones belong to them is not read here.
#[test]
fn light_queues_stay_as_java_left_them() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_at(dir.path(), Async).unwrap();
    send(&store, &store.queue("a", 0).unwrap(), &["one", "two", "three"]).unwrap();
    settle(&store);
    store.close().unwrap();
    drop(store);
    let queues = dir.path().join("consumequeue");
    let entries = std::fs::read(queues.join("a/0/00000000000000000000")).unwrap();
    let light = queues.join("%LMQ%light/0");
    std::fs::create_dir_all(&light).unwrap();
    std::fs::write(light.join("00000000000000000000"), &entries).unwrap();
    for life in 0..2 {
        remove_file(dir.path().join("comet/checkpoint")).unwrap();
        let store = open_at(dir.path(), Async).unwrap();
        assert_eq!(drain(&store, "a", 0), [&b"one"[..], b"two", b"three"]);
        store.close().unwrap();
        assert!(std::fs::read(light.join("00000000000000000000")).unwrap() == entries, "life {life}");
    }
}

#[test]
fn a_file_is_gone() {
    for name in ["00000000000000000000", "00000000000000000100", "00000000000000000200"] {
        come_back(name, |queues| remove_file(queues.join("a/0").join(name)).unwrap());
    }
}

#[test]
fn a_file_is_short() {
    for (name, len) in [("00000000000000000000", 0), ("00000000000000000100", 50), ("00000000000000000200", 21)] {
        come_back(name, |queues| {
            let file = OpenOptions::new().write(true).open(queues.join("a/1").join(name)).unwrap();
            file.set_len(len).unwrap();
        });
    }
}

#[test]
fn a_directory_is_gone() {
    come_back("queue", |queues| remove_dir_all(queues.join("a/1")).unwrap());
    come_back("topic", |queues| remove_dir_all(queues.join("a")).unwrap());
    come_back("all", |queues| remove_dir_all(queues).unwrap());
}
