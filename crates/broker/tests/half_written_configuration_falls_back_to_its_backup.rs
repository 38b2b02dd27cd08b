//! A configuration file that is missing or half-written after a crash is read from its `.bak`, each of Java's that we use; those
//! that we do not use are not touched. Method: two saves, so that a backup is there; a kill; the file is cut or removed.

mod support;

use std::path::{Path, PathBuf};

use cometmq_store::disk::{Disk, Faulty, Open};
use support::*;

fn path(name: &str) -> PathBuf {
    Path::new(ROOT).join("config").join(name)
}

/// Java's files that have no reader here.
const OTHERS: [&str; 6] = [
    "consumerFilter.json",
    "timermetrics",
    "timercheck",
    "transactionMetrics.bak",
    "topicQueueMapping.json",
    "lmq.json",
];

#[test]
fn topics_groups_and_offsets_are_read_from_their_backups() {
    let disk = Faulty::healthy();
    disk.create_dirs(&Path::new(ROOT).join("config")).unwrap();
    for name in OTHERS {
        disk.open(&path(name), Open::Create).unwrap().write_all_at(name.as_bytes(), 0).unwrap();
    }
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    for name in ["orders", "later"] {
        peer.ok(&create_topic(name, 4, 4));
    }
    peer.ok(&send("orders", 0, "x"));
    for name in ["billing", "later"] {
        peer.ok(&Ask::new(200).body(format!(r#"{{"groupName":"{name}","retryMaxTimes":7,"consumeEnable":true}}"#)));
    }
    drop(peer);
    broker.stop();
    let names = ["topics.json", "subscriptionGroup.json", "consumerOffset.json"];
    for damage in ["cut", "missing"] {
        // Started and stopped once more: whatever the file says now, its backup says, too.
        TestBroker::start_in_memory(disk.clone(), &[]).stop();
        for name in names {
            let backup = path(&format!("{name}.bak"));
            assert!(disk.open(&path(name), Open::Read).is_ok(), "{name}");
            match (damage, disk.open(&backup, Open::Read).is_ok()) {
                (_, false) => {}
                ("cut", true) => disk.open(&path(name), Open::Write).unwrap().set_len(9).unwrap(),
                (_, true) => disk.remove(&path(name)).unwrap(),
            }
        }
        let broker = TestBroker::start_in_memory(disk.clone(), &[]);
        let mut peer = broker.connect();
        let topic = peer.ask(&Ask::new(351).field("topic", "orders"));
        assert_eq!(topic.code, 0, "{damage}: {}", topic.remark);
        let group = peer.ask(&Ask::new(352).field("group", "billing"));
        assert!(String::from_utf8(group.body).unwrap().contains(r#""retryMaxTimes":7"#), "{damage}");
        assert_eq!(peer.ok(&max_offset("orders", 0)).num("offset"), 1, "{damage}");
        drop(peer);
        broker.stop();
    }
    for name in OTHERS {
        assert_eq!(disk.read_all(&path(name)).unwrap(), name.as_bytes(), "{name}");
    }
}
