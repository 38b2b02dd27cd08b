//! QUERY_MESSAGE (12) and VIEW_MESSAGE_BY_ID (33): codes, remarks and header fields of Java's `QueryMessageProcessor`, for
//! messages whose send was answered a moment ago. Only what carries the key is answered (C22), and a unique key is found
//! whatever the clocks say (C23).

mod support;

use cometmq_store::disk::Faulty;
use cometmq_wire::message_id::parse_offset_id;
use support::*;

fn query(topic: &str, key: &str) -> Ask {
    let ask = Ask::new(12).field("topic", topic).field("key", key).field("maxNum", 32);
    ask.field("beginTimestamp", 0).field("endTimestamp", i64::MAX)
}

fn view(offset: i64) -> Ask {
    Ask::new(33).field("offset", offset)
}

/// Sends a message with a unique key, keys and a tag; returns where it lies.
fn put(peer: &mut Peer, topic: &str, unique: &str, keys: &str, tag: &str) -> i64 {
    let properties = format!("UNIQ_KEY\u{1}{unique}\u{2}KEYS\u{1}{keys}\u{2}TAGS\u{1}{tag}\u{2}");
    let sent = peer.ok(&send(topic, 0, unique).field("i", properties));
    parse_offset_id(&sent.fields["msgId"]).unwrap().1
}

fn bodies(got: &Got) -> Vec<String> {
    assert_eq!(got.code, 0, "{}", got.remark);
    got.messages().into_iter().map(|(_, body)| String::from_utf8(body).unwrap()).collect()
}

fn is_not_found(got: &Got) {
    assert_eq!((got.code, got.remark.as_str()), (22, "can not find message, maybe time range not correct"));
    assert_eq!((got.num("indexLastUpdateTimestamp"), got.num("indexLastUpdatePhyoffset"), got.body.len()), (0, 0, 0));
}

fn finds(peer: &mut Peer, orders: &[i64]) {
    assert_eq!(bodies(&peer.ok(&query("orders", "red"))), ["u1", "u2"]);
    assert_eq!(bodies(&peer.ok(&query("orders", "red").field("indexType", "K"))), ["u1", "u2"]);
    assert_eq!(bodies(&peer.ok(&query("orders", "red").field("maxNum", 1))), ["u2"], "the newest");
    is_not_found(&peer.ask(&query("orders", "red").field("maxNum", 0)));
    is_not_found(&peer.ask(&query("orders", "red").field("maxNum", -1)));
    assert_eq!(bodies(&peer.ok(&query("orders", "TagA").field("indexType", "T"))), ["u1"]);
    is_not_found(&peer.ask(&query("orders", "TagA")));
    for unique in
        [query("orders", "u2").field("indexType", "U"), query("orders", "u2").field("_UNIQUE_KEY_QUERY", true)]
    {
        assert_eq!(bodies(&peer.ok(&unique)), ["u2"]);
        // The id was made by a client whose clock is ahead.
        let ahead = unique.field("beginTimestamp", i64::MAX - 1);
        assert_eq!(bodies(&peer.ok(&ahead)), ["u2"]);
    }
    is_not_found(&peer.ask(&query("orders", "red").field("_UNIQUE_KEY_QUERY", true)));
    let found = peer.ok(&query("orders", "blue"));
    assert_eq!(bodies(&found), ["u2"]);
    assert_eq!(found.num("indexLastUpdatePhyoffset"), orders[2], "the last message with a key");
    let stored = found.num("indexLastUpdateTimestamp");
    assert!(stored > 1_750_000_000_000, "{stored}");
    is_not_found(&peer.ask(&query("orders", "blue").field("beginTimestamp", stored + 1)));
    is_not_found(&peer.ask(&query("orders", "blue").field("endTimestamp", 1_000)));
    is_not_found(&peer.ask(&query("bills", "red")));
    is_not_found(&peer.ask(&query("missing", "red")));

    let whole = peer.ok(&view(orders[1]));
    assert_eq!(bodies(&whole), ["u2"]);
    assert_eq!(bodies(&peer.ok(&view(orders[1]).field("topic", "whatever"))), ["u2"]);
    for wrong in [orders[1] + 1, -1, i64::MAX, i64::MIN] {
        let got = peer.ask(&view(wrong));
        assert_eq!((got.code, got.remark), (1, format!("can not find message by the offset, {wrong}")));
    }
    let got = peer.ask(&query("orders", "red").without("key"));
    assert_eq!(got.code, 1);
    assert!(got.remark.contains("key"), "{}", got.remark);
}

#[test]
fn at_once_and_after_a_restart() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    let orders = [
        put(&mut peer, "orders", "u1", "red", "TagA"),
        put(&mut peer, "orders", "u2", "blue red", "TagB"),
        put(&mut peer, "bills", "u3", "other", "TagA"),
    ];
    finds(&mut peer, &orders);
    drop(peer);
    let killed = disk.surviving_kill();
    broker.stop();
    for disk in [disk, killed] {
        let broker = TestBroker::start_in_memory(disk, &[]);
        finds(&mut broker.connect(), &orders);
        broker.stop();
    }
}

/// "Aa" and "BB" have one hash.
#[test]
fn keys_with_one_hash_are_told_apart() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    put(&mut peer, "AaTopic", "u1", "Aa", "t");
    put(&mut peer, "BBTopic", "u2", "BB", "t");
    put(&mut peer, "BBTopic", "u3", "Aa", "t");
    is_not_found(&peer.ask(&query("AaTopic", "BB")));
    assert_eq!(bodies(&peer.ok(&query("AaTopic", "Aa"))), ["u1"]);
    assert_eq!(bodies(&peer.ok(&query("BBTopic", "BB"))), ["u2"]);
    assert_eq!(bodies(&peer.ok(&query("BBTopic", "Aa"))), ["u3"]);
}

#[test]
fn limits_are_the_brokers_too() {
    let broker = TestBroker::start(&[("maxMsgsNumBatch", "3"), ("defaultQueryMaxNum", "2")]);
    let mut peer = broker.connect();
    for n in 0..5 {
        put(&mut peer, "orders", "same", &format!("red k{n}"), "t");
    }
    assert_eq!(bodies(&peer.ok(&query("orders", "red"))).len(), 3);
    assert_eq!(bodies(&peer.ok(&query("orders", "red").field("maxNum", i32::MAX))).len(), 3);
    assert_eq!(bodies(&peer.ok(&query("orders", "same").field("_UNIQUE_KEY_QUERY", true))).len(), 2);
    assert_eq!(bodies(&peer.ok(&query("orders", "same").field("indexType", "U"))).len(), 3);
}

#[test]
fn turned_off_it_finds_nothing() {
    for key in ["messageIndexEnable", "indexFileWriteEnable", "indexFileReadEnable"] {
        let broker = TestBroker::start(&[(key, "false")]);
        let mut peer = broker.connect();
        let at = put(&mut peer, "orders", "u1", "red", "t");
        is_not_found(&peer.ask(&query("orders", "red")));
        assert_eq!(bodies(&peer.ok(&view(at))), ["u1"], "{key}");
    }
}
