//! Deleting a topic or a group takes its offsets along and both stay gone after `kill -9`; a reset of offsets moves a group
//! whose consumers run, and one whose do not, exactly where it was told.

mod support;

use cometmq_store::disk::Faulty;
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
    peer.ok(&Ask::new(200).body(r#"{"groupName":"billing"}"#));
    for i in 0..messages {
        peer.ok(&send("orders", 0, format!("m{i}")));
    }
    peer
}

fn reset(timestamp: i64) -> Ask {
    let ask = Ask::new(222).field("topic", "orders").field("group", "billing").field("timestamp", timestamp);
    ask.field("isForce", true)
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
