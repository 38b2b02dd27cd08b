//! At each limit the last good value works and the first bad one is refused with the limit in the remark: lengths of
//! properties and names, offsets at the ends of a queue, properties inside a batch, topics that belong to the system.
//! Method: raw requests one step on either side of each limit.

mod support;

use cometmq_wire::record::{BatchItem, records};
use support::*;

const MESSAGE_ILLEGAL: i32 = 13;
const NO_PERMISSION: i32 = 16;
const TOPIC_NOT_EXIST: i32 = 17;
const PULL_NOT_FOUND: i32 = 19;
const PULL_OFFSET_MOVED: i32 = 21;
const INVALID_PARAMETER: i32 = 29;

const PROPERTIES_MAX: usize = 32_767;

fn batch(topic: &str, of_batch: &str, items: &[&str]) -> Ask {
    let mut body = Vec::new();
    for properties in items {
        BatchItem { flag: 0, body: b"x", properties }.encode(&mut body);
    }
    send(topic, 0, body).field("m", "true").field("i", of_batch)
}

/// The properties of every message of queue 0, as they are stored.
fn stored(peer: &mut Peer, topic: &str) -> Vec<String> {
    let got = peer.ok(&pull(topic, 0, 0));
    records(&got.body).map(|record| record.unwrap().properties().to_string()).collect()
}

fn refused(peer: &mut Peer, ask: &Ask, code: i32, words: &str) {
    let got = peer.ask(ask);
    assert_eq!(got.code, code, "{}", got.remark);
    assert!(got.remark.contains(words), "'{}' does not say '{words}'", got.remark);
}

/// Case C02. The limit is that of the record, which holds what the broker adds as well.
#[test]
fn properties_of_a_message() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    // With a key, so that the broker adds none.
    let text = |len: usize| format!("UNIQ_KEY\u{1}{}\u{2}k\u{1}{}\u{2}", "0".repeat(32), "v".repeat(len - 45));
    peer.ok(&send("orders", 0, "x").field("i", text(1000)));
    let added = stored(&mut peer, "orders")[0].len() - text(1000).len();
    for (len, is_good) in [(PROPERTIES_MAX - added, true), (PROPERTIES_MAX - added + 1, false), (40_000, false)] {
        let ask = send("orders", 0, "x").field("i", text(len));
        match is_good {
            true => assert_eq!(peer.ok(&ask).num("queueOffset"), 1),
            false => refused(&mut peer, &ask, MESSAGE_ILLEGAL, "properties too long"),
        }
    }
    assert_eq!(stored(&mut peer, "orders")[1].len(), PROPERTIES_MAX);
    broker.stop();
}

/// Cases C02 and C04: every message of a batch keeps just its own properties, whether or not they end with a separator.
#[test]
fn properties_inside_a_batch() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    let open = ["TAGS\u{1}A\u{2}k\u{1}1", "TAGS\u{1}B"];
    let closed = ["TAGS\u{1}A\u{2}k\u{1}1\u{2}", "TAGS\u{1}B\u{2}"];
    peer.ok(&batch("orders", "KEYS\u{1}of the batch\u{2}", &open));
    peer.ok(&batch("orders", "KEYS\u{1}of the batch\u{2}", &closed));
    let tags = |peer: &mut Peer, tag: &str| {
        let got = peer.ok(&pull("orders", 0, 0).field("subscription", tag));
        got.messages().iter().map(|(offset, _)| *offset).collect::<Vec<_>>()
    };
    assert_eq!((tags(&mut peer, "A"), tags(&mut peer, "B")), (vec![0, 2], vec![1, 3]));
    for (properties, sent) in stored(&mut peer, "orders").iter().zip(open.iter().chain(&closed)) {
        assert_eq!(properties.trim_end_matches('\u{2}'), sent.trim_end_matches('\u{2}'));
    }
    let longest = format!("k\u{1}{}\u{2}", "v".repeat(PROPERTIES_MAX - 3));
    assert_eq!(peer.ok(&batch("orders", "", &[&longest])).num("queueOffset"), 4);
    for over in [1, 7_233] {
        let long = format!("{longest}{}", "w".repeat(over));
        refused(&mut peer, &batch("orders", "", &["TAGS\u{1}A", &long]), MESSAGE_ILLEGAL, "properties too long");
    }
    assert_eq!(peer.ok(&max_offset("orders", 0)).num("offset"), 5, "of a refused batch nothing is kept");
    broker.stop();
}

/// Case C06.
#[test]
fn a_batch_is_not_delayed() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    let later =
        ["DELAY\u{1}3", "TIMER_DELIVER_MS\u{1}1900000000000", "TIMER_DELAY_SEC\u{1}10", "TIMER_DELAY_MS\u{1}10"];
    for property in later {
        refused(
            &mut peer,
            &batch("orders", "", &["TAGS\u{1}A", property]),
            MESSAGE_ILLEGAL,
            "message 1 of the batch is delayed",
        );
        refused(&mut peer, &batch("orders", property, &["TAGS\u{1}A"]), MESSAGE_ILLEGAL, "a batch cannot be delayed");
    }
    assert_eq!(peer.ok(&max_offset("orders", 0)).num("offset"), 0);
    broker.stop();
}

/// Cases C14 and C15.
#[test]
fn names_of_topics() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    let (longest, too_long) = ("t".repeat(127), "t".repeat(128));
    for name in [&longest, "ok%|-_9"] {
        peer.ok(&create_topic(name, 1, 6));
        assert_eq!(peer.ok(&send(name, 0, "x")).num("queueOffset"), 0, "{name}");
        assert_eq!(peer.ok(&pull(name, 0, 0)).messages().len(), 1, "{name}");
    }
    let bad = [
        (too_long.as_str(), "longer than topic max length: 127"),
        ("a.b", "a.b, contains illegal characters"),
        ("a b", "a b, contains illegal characters"),
        ("44334\u{2248}\u{2202}\u{e7}", "contains illegal characters"),
        ("", "topic is blank"),
    ];
    for (name, words) in bad {
        for ask in [create_topic(name, 1, 6), send(name, 0, "x")] {
            refused(&mut peer, &ask, INVALID_PARAMETER, words);
        }
        assert_ne!(peer.ask(&Ask::new(351).field("topic", name)).code, 0, "{name}");
    }
    broker.stop();
}

/// Case C19.
#[test]
fn topics_of_the_system() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    for name in ["SCHEDULE_TOPIC_XXXX", "TBW102", "RMQ_SYS_TRANS_HALF_TOPIC"] {
        let config = peer.ok(&Ask::new(351).field("topic", name)).body;
        refused(&mut peer, &create_topic(name, 3, 4), INVALID_PARAMETER, "conflict with system topic");
        refused(&mut peer, &Ask::new(215).field("topic", name), INVALID_PARAMETER, "conflict with system topic");
        refused(&mut peer, &send(name, 0, "x"), NO_PERMISSION, "is forbidden");
        assert_eq!(peer.ok(&Ask::new(351).field("topic", name)).body, config, "{name}");
        assert_eq!(peer.ok(&max_offset(name, 0)).num("offset"), 0, "{name}");
    }
    broker.stop();
}

/// Case C28.
#[test]
fn offsets_at_the_ends_of_a_queue() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    for _ in 0..10 {
        peer.ok(&send("orders", 0, "x"));
    }
    let places = [
        (9, 0, 10),
        (10, PULL_NOT_FOUND, 10),
        (11, PULL_OFFSET_MOVED, 10),
        (1000, PULL_OFFSET_MOVED, 10),
        (i64::MAX, PULL_OFFSET_MOVED, 10),
        (-1, PULL_OFFSET_MOVED, 0),
        (i64::MIN, PULL_OFFSET_MOVED, 0),
    ];
    for (offset, code, next) in places {
        let got = peer.ask(&pull("orders", 0, offset));
        assert_eq!((got.code, got.num("nextBeginOffset")), (code, next), "pull at {offset}");
        assert_eq!((got.num("minOffset"), got.num("maxOffset")), (0, 10), "pull at {offset}");
    }
    refused(&mut peer, &pull("nowhere", 0, 0), TOPIC_NOT_EXIST, "topic[nowhere] not exist");
    broker.stop();
}

/// Case C27: a young queue is consumed from its start, unless the client wants to decide by itself.
#[test]
fn offset_of_a_group_that_has_none() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    for _ in 0..5 {
        peer.ok(&send("orders", 0, "x"));
    }
    assert_eq!(peer.ok(&committed("new", "orders", 0)).num("offset"), 0);
    assert_eq!(peer.ok(&committed("new", "orders", 0).field("setZeroIfNotFound", true)).num("offset"), 0);
    let got = peer.ask(&committed("new", "orders", 0).field("setZeroIfNotFound", false));
    assert_eq!((got.code, got.fields.get("offset")), (22, None));
    broker.stop();
}
