//! DELETE_EXPIRED_COMMITLOG (329) deletes files of the log that are old enough, at any hour; then queues begin at their first
//! message that is left. CLEAN_EXPIRED_CONSUMEQUEUE (306) removes queues without messages that no topic has any more, and
//! CLEAN_UNUSED_TOPIC (316) topics that are not configured.

mod support;

use cometmq_store::disk::{Disk, Faulty};
use support::*;

/// Five of them fill a file of the log.
const LARGE: usize = 200_000;

fn queue_files(disk: &Faulty, topic: &str, id: i32) -> usize {
    disk.list(format!("{ROOT}/consumequeue/{topic}/{id}").as_ref()).map_or(0, |files| files.len())
}

fn min_offset(peer: &mut Peer, topic: &str, queue: i32) -> i64 {
    peer.ok(&Ask::new(31).field("topic", topic).field("queueId", queue)).num("offset")
}

fn max_offset(peer: &mut Peer, topic: &str, queue: i32) -> i64 {
    peer.ok(&Ask::new(30).field("topic", topic).field("queueId", queue)).num("offset")
}

/// Six files of log: queues 0 and 1 of `wide` have messages in the first only, `orders` in all. Files may go at any age.
fn filled(disk: &Faulty) -> (TestBroker, Peer) {
    // Runs are far apart: the first order is one run.
    let set = [("fileReservedTime", "0"), ("deleteWhen", ""), ("cleanResourceInterval", "1000000")];
    let broker = TestBroker::start_in_memory(disk.clone(), &set);
    let mut peer = broker.connect();
    peer.ok(&create_topic("wide", 2, 6));
    peer.ok(&create_topic("orders", 1, 6));
    for queue in [0, 1] {
        peer.ok(&send("wide", queue, "old"));
    }
    for i in 0..26u8 {
        peer.ok(&send("orders", 0, vec![i; LARGE]));
    }
    // What is not in our checkpoint yet stays.
    wait_until("checkpointed", || {
        let text = disk.read_all(format!("{ROOT}/comet/checkpoint").as_ref()).unwrap_or_default();
        let text = String::from_utf8(text).unwrap();
        let dispatched = text.lines().find_map(|l| l.strip_prefix("dispatched ")).map_or(0, |n| n.parse().unwrap());
        dispatched > 5 << 20
    });
    (broker, peer)
}

#[test]
fn queues_begin_at_their_first_message_that_is_left() {
    let disk = Faulty::healthy();
    let (broker, mut peer) = filled(&disk);
    assert_eq!((min_offset(&mut peer, "orders", 0), max_offset(&mut peer, "orders", 0)), (0, 26));
    peer.ok(&Ask::new(329));
    wait_until("deleted", || min_offset(&mut peer, "orders", 0) == 25);
    assert_eq!(max_offset(&mut peer, "orders", 0), 26);
    for old in [0, 24] {
        let got = peer.ask(&pull("orders", 0, old));
        assert_eq!((got.code, got.remark.as_str()), (21, "OFFSET_TOO_SMALL"), "{old}");
        assert_eq!((got.num("nextBeginOffset"), got.num("minOffset"), got.num("maxOffset")), (25, 25, 26), "{old}");
    }
    assert_eq!(drain(&mut peer, "orders", 0, 25), [vec![25; LARGE]]);
    assert_eq!((min_offset(&mut peer, "wide", 0), max_offset(&mut peer, "wide", 0)), (1, 1));
    assert_eq!(peer.ok(&Ask::new(28)).counter("commitLogMinOffset"), 5 << 20);
    assert_eq!(broker.counter("comet.store.logFilesDeleted"), 5);
    assert_eq!(peer.ok(&send("orders", 0, "next")).num("queueOffset"), 26);
}

#[test]
fn queues_without_messages_go_unless_their_topic_has_them() {
    let disk = Faulty::healthy();
    let (_broker, mut peer) = filled(&disk);
    peer.ok(&create_topic("wide", 1, 6));
    peer.ok(&Ask::new(306));
    assert_eq!((queue_files(&disk, "wide", 0), queue_files(&disk, "wide", 1)), (1, 1), "they have messages");
    peer.ok(&Ask::new(329));
    wait_until("deleted", || min_offset(&mut peer, "wide", 0) == 1);
    peer.ok(&Ask::new(306));
    assert_eq!((queue_files(&disk, "wide", 0), queue_files(&disk, "wide", 1)), (1, 0));
    assert_eq!(peer.ok(&send("wide", 0, "its numbers go on")).num("queueOffset"), 1);
    peer.ok(&create_topic("wide", 2, 6));
    assert_eq!(peer.ok(&send("wide", 1, "a queue like a new one")).num("queueOffset"), 0);
}

#[test]
fn topics_that_are_not_configured_go() {
    let disk = Faulty::healthy();
    drop(filled(&disk));
    let disk = disk.surviving_kill();
    let path = format!("{ROOT}/config/topics.json");
    let text = String::from_utf8(disk.read_all(path.as_ref()).unwrap()).unwrap();
    let text = text.replace("\"orders\"", "\"renamed\"");
    disk.replace(path.as_ref(), format!("{ROOT}/config/new").as_ref(), text.as_bytes()).unwrap();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    assert_eq!((queue_files(&disk, "wide", 0), queue_files(&disk, "orders", 0)), (1, 1));
    peer.ok(&Ask::new(316));
    assert_eq!((queue_files(&disk, "wide", 0), queue_files(&disk, "orders", 0)), (1, 0));
    assert_eq!(drain(&mut peer, "wide", 0, 0), [b"old".to_vec()]);
    peer.ok(&create_topic("orders", 1, 6));
    assert_eq!(peer.ok(&send("orders", 0, "new")).num("queueOffset"), 0);
}
