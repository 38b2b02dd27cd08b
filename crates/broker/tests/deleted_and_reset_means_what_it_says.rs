//! Deleting a topic or a group takes its offsets along and both stay gone after `kill -9`; a reset of offsets moves a group
//! whose consumers run, and one whose do not, exactly where it was told.

mod support;

use std::path::Path;
use std::time::UNIX_EPOCH;

use cometmq_store::disk::{Disk, Faulty};
use cometmq_wire::body::{ConsumeStats, ConsumerOffsetTable};
use cometmq_wire::json;
use cometmq_wire::record::Record;
use support::*;

fn offset_of(peer: &mut Peer, group: &str, topic: &str) -> Option<i64> {
    let got = peer.ask(&committed(group, topic, 0).field("setZeroIfNotFound", false));
    match got.code {
        0 => Some(got.num("offset")),
        22 => None,
        code => panic!("{code}: {}", got.remark),
    }
}

fn filled(broker: &TestBroker, messages: usize) -> Peer {
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    peer.ok(&create_group("billing"));
    for i in 0..messages {
        peer.ok(&send("orders", 0, format!("m{i}")));
    }
    peer
}

fn reset(timestamp: i64) -> Ask {
    let ask = Ask::new(222).field("topic", "orders").field("group", "billing").field("timestamp", timestamp);
    ask.field("isForce", true)
}

/// `config/consumerOffset.json` as it is on the disk.
fn offsets_on_disk(disk: &dyn Disk) -> ConsumerOffsetTable {
    json::from_slice(&disk.read_all(&Path::new(ROOT).join("config/consumerOffset.json")).unwrap()).unwrap()
}

fn create_group(name: &str) -> Ask {
    Ask::new(200).body(format!(r#"{{"groupName":"{name}"}}"#))
}

/// How far a group is behind in a topic (208): offsets of broker and consumer, queue by queue.
fn lag(peer: &mut Peer, group: &str, topic: &str) -> Vec<(i64, i64)> {
    let got = peer.ok(&Ask::new(208).field("consumerGroup", group).field("topic", topic));
    let stats: ConsumeStats = json::from_slice(&got.body).unwrap();
    stats.offset_table.values().map(|at| (at.broker_offset, at.consumer_offset)).collect()
}

#[test]
fn a_deleted_topic_takes_its_messages_and_offsets_along() {
    let disk = Faulty::healthy();
    {
        let broker = TestBroker::start_in_memory(disk.clone(), &[]);
        let mut peer = filled(&broker, 5);
        peer.ok(&commit("billing", "orders", 0, 4));
        peer.ok(&Ask::new(215).field("topic", "orders"));
        assert_eq!(peer.ask(&Ask::new(351).field("topic", "orders")).code, 17);
        assert_eq!(peer.ask(&pull("orders", 0, 0)).code, 17);
        assert_eq!(offset_of(&mut peer, "billing", "orders"), None);
    }
    let broker = TestBroker::start_in_memory(disk.surviving_kill(), &[]);
    let mut peer = broker.connect();
    assert_eq!(peer.ask(&Ask::new(351).field("topic", "orders")).code, 17, "after kill -9");
    assert_eq!(offset_of(&mut peer, "billing", "orders"), None);
    // A new life of the name starts at 0, with its own messages.
    peer.ok(&create_topic("orders", 1, 6));
    assert_eq!(peer.ok(&send("orders", 0, "new")).num("queueOffset"), 0);
    assert_eq!(drain(&mut peer, "orders", 0, 0), [b"new".to_vec()]);
    for (name, words) in [("SCHEDULE_TOPIC_XXXX", "conflict with system topic"), (" ", "blank")] {
        let got = peer.ask(&Ask::new(215).field("topic", name));
        assert_eq!(got.code, 29);
        assert!(got.remark.contains(words), "{}", got.remark);
    }
}

#[test]
fn a_deleted_group_keeps_or_loses_its_offsets_as_asked() {
    let broker = TestBroker::start(&[]);
    let mut peer = filled(&broker, 5);
    peer.ok(&commit("billing", "orders", 0, 3));
    peer.ok(&Ask::new(207).field("groupName", "billing").field("cleanOffset", false));
    assert_eq!(peer.ask(&Ask::new(352).field("group", "billing")).code, 26);
    assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(3));
    peer.ok(&Ask::new(207).field("groupName", "billing").field("cleanOffset", true));
    assert_eq!(offset_of(&mut peer, "billing", "orders"), None);
}

/// Case C33.
#[test]
fn a_group_deleted_with_its_offsets_starts_anew() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = filled(&broker, 60);
    peer.ok(&create_group("other"));
    peer.ok(&commit("billing", "orders", 0, 50));
    peer.ok(&commit("other", "orders", 0, 7));
    peer.ok(&Ask::new(207).field("groupName", "billing").field("cleanOffset", true));
    let table = offsets_on_disk(&disk);
    assert_eq!(table.offset_table.keys().collect::<Vec<_>>(), ["orders@other"]);
    assert_eq!(table.offset_table["orders@other"], [(0, 7)].into());
    // The group again, from first.
    peer.ok(&create_group("billing"));
    assert_eq!(offset_of(&mut peer, "billing", "orders"), None);
    assert_eq!(peer.ok(&committed("billing", "orders", 0)).num("offset"), 0);
    drop(broker);
    let broker = TestBroker::start_in_memory(disk.surviving_kill(), &[]);
    assert_eq!(offset_of(&mut broker.connect(), "billing", "orders"), None, "after kill -9");
    assert_eq!(offset_of(&mut broker.connect(), "other", "orders"), Some(7));
}

/// Case C34: nothing of a topic's first life counts in its second.
#[test]
fn a_topic_that_was_deleted_starts_anew() {
    const RETRIES: [&str; 2] = ["%RETRY%billing_orders", "%RETRY%other_orders"];
    let disk = Faulty::healthy();
    // Java also keeps how far groups have pulled.
    let file = Path::new(ROOT).join("config/consumerOffset.json");
    disk.create_dirs(file.parent().unwrap()).unwrap();
    let java = br#"{"offsetTable":{"orders@billing":{0:80}},"pullOffsetTable":{"orders@billing":{0:90}}}"#;
    disk.open(&file, cometmq_store::disk::Open::Create).unwrap().write_all_at(java, 0).unwrap();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    assert_eq!(offsets_on_disk(&disk).pull_offset_table["orders@billing"], [(0, 90)].into());
    let mut peer = filled(&broker, 100);
    peer.ok(&create_group("other"));
    peer.ok(&commit("other", "orders", 0, 3));
    for name in RETRIES {
        peer.ok(&create_topic(name, 1, 6));
        peer.ok(&send(name, 0, "a retry of POP"));
        peer.ok(&commit("billing", name, 0, 1));
    }
    assert_eq!(lag(&mut peer, "billing", "orders"), [(100, 80)]);
    // A reset that no consumer has seen yet.
    peer.ok(&reset(0).field("queueId", 0).field("offset", 85));
    peer.ok(&Ask::new(215).field("topic", "orders"));
    for name in RETRIES {
        assert_eq!(peer.ask(&Ask::new(351).field("topic", name)).code, 17, "{name}");
    }
    let left = offsets_on_disk(&disk);
    assert_eq!((left.offset_table.len(), left.pull_offset_table.len()), (0, 0), "{left:?}");

    peer.ok(&create_topic("orders", 1, 6));
    for n in 0..3i64 {
        assert_eq!(peer.ok(&send("orders", 0, format!("new {n}"))).num("queueOffset"), n);
    }
    assert_eq!(lag(&mut peer, "billing", "orders"), [(3, 0)]);
    assert_eq!(peer.ok(&committed("billing", "orders", 0)).num("offset"), 0);
    let got = peer.ok(&pull("orders", 0, 0).field("consumerGroup", "billing"));
    let bodies: Vec<_> = got.messages().into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [b"new 0", b"new 1", b"new 2"], "the reset is gone, too");
    peer.ok(&commit("billing", "orders", 0, 3));
    assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(3));
    for name in RETRIES {
        peer.ok(&create_topic(name, 1, 6));
        assert_eq!(peer.ok(&max_offset(name, 0)).num("offset"), 0, "{name}");
    }
}

/// Case C30: "now" leaves no lag, whether it is sent as −1 or as a time after the last message.
#[test]
fn a_reset_to_now_is_a_reset_to_the_end() {
    let broker = TestBroker::start(&[]);
    let mut peer = filled(&broker, 100);
    peer.ok(&commit("billing", "orders", 0, 100));
    let last = peer.ok(&pull("orders", 0, 99));
    let last_ms = Record::parse(&last.body).unwrap().store_ms();
    let now = || i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    wait_until("later than the last message", || now() > last_ms);
    for time in [now(), -1] {
        for before in [100, 40] {
            peer.ok(&reset(0).field("queueId", 0).field("offset", before));
            peer.ok(&reset(time));
            assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(100), "{time}");
            assert_eq!(lag(&mut peer, "billing", "orders"), [(100, 100)], "{time}");
        }
    }
    // The time of the last message itself finds that message.
    peer.ok(&reset(last_ms));
    assert!(offset_of(&mut peer, "billing", "orders").unwrap() < 100);
}

#[test]
fn a_reset_moves_the_group_and_its_next_pull() {
    let broker = TestBroker::start(&[]);
    let mut peer = filled(&broker, 5);
    peer.ok(&commit("billing", "orders", 0, 2));
    // To the end: nothing is left, whether "now" is a time or −1.
    for now in [i64::MAX, -1] {
        peer.ok(&reset(now));
        assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(5));
    }
    // A consumer that still runs where it was does not undo it…
    let ignored = peer.ok(&commit("billing", "orders", 0, 2));
    assert_eq!(ignored.remark, "Offset has been previously reset");
    assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(5));
    // …and its next pull sends it there, once.
    let ask = pull("orders", 0, 2).field("consumerGroup", "billing");
    let moved = peer.ask(&ask);
    assert_eq!((moved.code, moved.num("nextBeginOffset")), (21, 5));
    assert_eq!(peer.ask(&ask).code, 0);
    peer.ok(&commit("billing", "orders", 0, 4));
    assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(4));
    // To the start, and to one offset of one queue.
    peer.ok(&reset(0));
    assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(0));
    peer.ok(&reset(0).field("queueId", 0).field("offset", 3));
    assert_eq!(offset_of(&mut peer, "billing", "orders"), Some(3));
    let got = peer.ask(&reset(0).field("queueId", 0).field("offset", 6));
    assert_eq!((got.code, got.remark.as_str()), (1, "Target offset 6 not in consume queue range [0-5]"));
    assert_eq!(peer.ask(&reset(0).field("topic", "none")).code, 17);
    assert_eq!(peer.ask(&reset(0).field("group", "none")).code, 26);
}

#[test]
fn without_server_side_resets_the_consumers_are_told() {
    let broker = TestBroker::start(&[("useServerSideResetOffset", "false")]);
    let mut peer = filled(&broker, 5);
    peer.ok(&commit("billing", "orders", 0, 4));
    let mut member = broker.connect();
    member.post(&heartbeat("c1", "billing", "orders"));
    let mut from_member = [member.receive(), member.receive()];
    from_member.sort_by_key(|f| f.is_answer);
    assert_eq!((from_member[0].code, from_member[1].code), (40, 0));
    peer.ok(&reset(0));
    let told = member.receive();
    assert_eq!((told.code, told.is_answer), (220, false));
    assert_eq!(told.body, br#"{"offsetTable":{{"brokerName":"b1","queueId":0,"topic":"orders"}:0}}"#);
    drop(member);
    wait_until("the consumer is gone", || {
        let got = peer.ask(&reset(0));
        got.code == 206 && got.remark.contains("Consumer not online")
    });
}
