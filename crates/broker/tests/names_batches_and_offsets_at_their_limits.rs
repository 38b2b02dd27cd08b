//! At each limit the last good value works and the first bad one is refused with the limit in the remark: lengths of
//! properties and names, offsets at the ends of a queue, properties inside a batch, topics that belong to the system.
//! Method: raw requests one step on either side of each limit.

mod support;

use cometmq_store::disk::{Disk, Faulty};
use cometmq_wire::record::{BatchItem, Record, records};
use support::*;

const MESSAGE_ILLEGAL: i32 = 13;
const NO_PERMISSION: i32 = 16;
const TOPIC_NOT_EXIST: i32 = 17;
const PULL_NOT_FOUND: i32 = 19;
const PULL_OFFSET_MOVED: i32 = 21;
const QUERY_NOT_FOUND: i32 = 22;
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
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    // With a key, so that the broker adds none.
    let text = |len: usize| format!("UNIQ_KEY\u{1}{}\u{2}k\u{1}{}\u{2}", "0".repeat(32), "v".repeat(len - 45));
    peer.ok(&send("orders", 0, "x").field("i", text(1000)));
    let added = stored(&mut peer, "orders")[0].len() - text(1000).len();
    for (len, is_good) in [
        (PROPERTIES_MAX - added, true),
        (PROPERTIES_MAX - added + 1, false),
        (PROPERTIES_MAX + 1, false),
        (40_000, false),
    ] {
        let ask = send("orders", 0, "x").field("i", text(len));
        match is_good {
            true => assert_eq!(peer.ok(&ask).num("queueOffset"), 1),
            false => refused(&mut peer, &ask, MESSAGE_ILLEGAL, "properties too long"),
        }
    }
    peer.ok(&send("orders", 0, "behind them").field("i", text(100)));
    let before = stored(&mut peer, "orders");
    assert_eq!(before.iter().map(String::len).collect::<Vec<_>>(), [1000 + added, PROPERTIES_MAX, 100 + added]);
    broker.stop();
    let broker = TestBroker::start_in_memory(disk, &[]);
    assert_eq!(stored(&mut broker.connect(), "orders"), before, "after a restart");
    broker.stop();
}

/// Cases C02 and C04: every message of a batch keeps just its own properties, whether or not they end with a separator.
#[test]
fn properties_inside_a_batch() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
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
    for len in [PROPERTIES_MAX + 1, 40_000] {
        let long = format!("{longest}{}", "w".repeat(len - PROPERTIES_MAX));
        refused(&mut peer, &batch("orders", "", &["TAGS\u{1}A", &long]), MESSAGE_ILLEGAL, "properties too long");
    }
    assert_eq!(peer.ok(&max_offset("orders", 0)).num("offset"), 5, "of a refused batch nothing is kept");
    let before = stored(&mut peer, "orders");
    broker.stop();
    let broker = TestBroker::start_in_memory(disk, &[]);
    assert_eq!(stored(&mut broker.connect(), "orders"), before, "after a restart");
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

/// Case C07: the default levels are 18. What is no level is told to the sender, and nothing of it is kept.
#[test]
fn delay_levels() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    for (n, level) in ["18", "19", "100", "2147483647"].into_iter().enumerate() {
        peer.ok(&send_with("orders", 0, level, "DELAY", level));
        let kept = peer.ok(&pull("SCHEDULE_TOPIC_XXXX", 17, n as i64));
        let record = Record::parse(&kept.body).unwrap();
        assert_eq!((record.body(), record.property("DELAY")), (level.as_bytes(), Some("18")));
    }
    for (n, level) in ["0", "-1", "-2147483648"].into_iter().enumerate() {
        assert_eq!(peer.ok(&send_with("orders", 0, level, "DELAY", level)).num("queueOffset"), n as i64);
        let got = peer.ok(&pull("orders", 0, n as i64));
        assert_eq!(got.messages(), [(n as i64, level.as_bytes().to_vec())], "at once");
    }
    for level in ["4x", "1.5", "2147483648", " 3"] {
        let words = format!("the property DELAY has the value '{level}'");
        refused(&mut peer, &send_with("orders", 0, "x", "DELAY", level), MESSAGE_ILLEGAL, &words);
        let of_item = format!("DELAY\u{1}{level}");
        refused(&mut peer, &batch("orders", "", &["TAGS\u{1}A", &of_item]), MESSAGE_ILLEGAL, &words);
    }
    assert_eq!(peer.ok(&max_offset("orders", 0)).num("offset"), 3);
    assert_eq!(peer.ok(&max_offset("SCHEDULE_TOPIC_XXXX", 17)).num("offset"), 4);
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

/// Ten messages in queue 0 of `orders`, the first five in a file of the log that is then deleted.
fn without_first_messages() -> TestBroker {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    for n in 0..10 {
        // Five of them fill a file.
        peer.ok(&send("orders", 0, vec![n; 200_000]));
    }
    broker.stop();
    disk.remove(&std::path::Path::new(ROOT).join("commitlog/00000000000000000000")).unwrap();
    TestBroker::start_in_memory(disk, &[])
}

/// Case C28.
#[test]
fn offsets_of_a_queue_whose_first_messages_are_gone() {
    let broker = without_first_messages();
    let mut peer = broker.connect();
    for offset in [2, 0, 4, -1] {
        let got = peer.ask(&pull("orders", 0, offset));
        assert_eq!((got.code, got.num("nextBeginOffset")), (PULL_OFFSET_MOVED, 5), "pull at {offset}");
        assert_eq!((got.num("minOffset"), got.num("maxOffset")), (5, 10), "pull at {offset}");
    }
    let found: Vec<Vec<u8>> = (5..10).map(|n| vec![n; 200_000]).collect();
    assert_eq!(drain(&mut peer, "orders", 0, 5), found);
    let got = peer.ask(&pull("orders", 0, 11));
    assert_eq!((got.code, got.num("nextBeginOffset")), (PULL_OFFSET_MOVED, 10));
    broker.stop();
}

/// Case C27: a group must not start at a message that is gone.
#[test]
fn offset_of_a_new_group_where_the_first_messages_are_gone() {
    let broker = without_first_messages();
    let mut peer = broker.connect();
    for ask in ["true", "false"].map(|zero| committed("new", "orders", 0).field("setZeroIfNotFound", zero)) {
        assert_eq!(peer.ask(&ask).code, QUERY_NOT_FOUND, "{ask:?}");
    }
    assert_eq!(peer.ask(&committed("new", "orders", 0)).code, QUERY_NOT_FOUND);
    assert_eq!(peer.ask(&committed("new", "empty", 0)).code, QUERY_NOT_FOUND);
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
    assert_eq!((got.code, got.fields.get("offset")), (QUERY_NOT_FOUND, None));
    broker.stop();
}
