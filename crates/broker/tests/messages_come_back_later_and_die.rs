//! Delay levels, messages that a consumer gives back (36), and dead letters: each arrives once, after its time, with the
//! properties that consumers and tools look for; after `kill -9` what was delivered is not delivered again, and what was
//! not is. Method: raw requests; levels of a few milliseconds; the disk in memory for the kill.

mod support;

use cometmq_store::disk::Faulty;
use cometmq_wire::record::{Record, records};
use support::*;

const LEVELS: (&str, &str) = ("messageDelayLevel", "1s 2s 3s 1s");

fn all(peer: &mut Peer, topic: &str) -> Vec<Vec<u8>> {
    let got = peer.ask(&pull(topic, 0, 0));
    records(&got.body).map(|r| r.unwrap().bytes().to_vec()).collect()
}

/// Waits for message `offset` of queue 0.
fn arrives(peer: &mut Peer, topic: &str, offset: i64) -> Vec<u8> {
    let got = peer.ask(&parked(topic, 0, offset, "*", LONG));
    assert_eq!(got.code, 0, "{}", got.remark);
    got.body
}

fn give_back(group: &str, record: &Record<'_>, level: i32) -> Ask {
    let ask = Ask::new(36).field("group", group).field("offset", record.log_offset()).field("delayLevel", level);
    ask.field("originMsgId", "x").field("originTopic", record.topic()).field("unitMode", false)
}

fn prepared(set: &[(&str, &str)]) -> (TestBroker, Peer) {
    let set: Vec<_> = [LEVELS].iter().chain(set).copied().collect();
    let broker = TestBroker::start(&set);
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    peer.ok(&Ask::new(200).body(r#"{"groupName":"billing"}"#));
    (broker, peer)
}

#[test]
fn a_delayed_message_arrives_after_its_level_and_says_where_it_was() {
    let (_broker, mut peer) = prepared(&[]);
    let timed = "DELAY\u{1}1\u{2}TIMER_DELAY_MS\u{1}60000\u{2}TIMER_DELAY_SEC\u{1}60\u{2}TIMER_DELIVER_MS\u{1}99\u{2}KEYS\u{1}k\u{2}";
    peer.ok(&send_with("orders", 0, "at once", "DELAY", "0"));
    peer.ok(&send("orders", 0, "later").field("i", timed));
    peer.ok(&send_with("orders", 0, "at once too", "DELAY", "-1"));
    let body = arrives(&mut peer, "orders", 2);
    let later = Record::parse(&body).unwrap();
    assert_eq!(later.body(), b"later");
    assert_eq!(later.property("DELAY"), Some("1"));
    assert_eq!((later.property("REAL_TOPIC"), later.property("REAL_QID")), (Some("orders"), Some("0")));
    assert_eq!(later.property("KEYS"), Some("k"));
    for gone in ["TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS"] {
        assert_eq!(later.property(gone), None, "{gone}");
    }
    let first = Record::parse(&body).unwrap().store_ms();
    let sent = Record::parse(&all(&mut peer, "orders")[0]).unwrap().store_ms();
    assert!((990..5000).contains(&(first - sent)), "delivered after {} ms, level 1 is 1 s", first - sent);
}

#[test]
fn a_level_above_the_highest_is_the_highest() {
    let (_broker, mut peer) = prepared(&[]);
    peer.ok(&send_with("orders", 0, "high", "DELAY", "100"));
    let body = arrives(&mut peer, "orders", 0);
    assert_eq!(Record::parse(&body).unwrap().property("DELAY"), Some("4"));
}

#[test]
fn a_message_given_back_comes_again_and_after_too_often_is_a_dead_letter() {
    let (_broker, mut peer) = prepared(&[]);
    let sent = peer.ok(&send_with("orders", 0, "poison", "UNIQ_KEY", "U1"));
    let first = all(&mut peer, "orders").remove(0);
    peer.ok(&give_back("billing", &Record::parse(&first).unwrap(), 1).field("maxReconsumeTimes", 1));
    let body = arrives(&mut peer, "%RETRY%billing", 0);
    let again = Record::parse(&body).unwrap();
    assert_eq!((again.body(), again.reconsume_times()), (&b"poison"[..], 1));
    assert_eq!(again.property("RETRY_TOPIC"), Some("orders"));
    assert_eq!(again.property("ORIGIN_MESSAGE_ID"), sent.fields.get("msgId").map(String::as_str));
    assert_eq!(again.property("UNIQ_KEY"), Some("U1"));
    // The retry topic belongs to the delay; the origin stays what it first was.
    peer.ok(&give_back("billing", &again, 1).field("maxReconsumeTimes", 1));
    let body = arrives(&mut peer, "%DLQ%billing", 0);
    let dead = Record::parse(&body).unwrap();
    assert_eq!((dead.body(), dead.reconsume_times()), (&b"poison"[..], 2));
    assert_eq!(dead.property("RETRY_TOPIC"), Some("orders"));
    assert_eq!(dead.property("ORIGIN_MESSAGE_ID"), sent.fields.get("msgId").map(String::as_str));
    assert_eq!(all(&mut peer, "orders").len(), 1, "the original stays");
}

#[test]
fn no_retry_allowed_or_a_negative_level_means_dead_at_once_with_its_origin() {
    for (level, max) in [(0, 0), (-1, 16)] {
        let (_broker, mut peer) = prepared(&[]);
        let sent = peer.ok(&send_with("orders", 0, "poison", "a", "b"));
        let first = all(&mut peer, "orders").remove(0);
        let back = give_back("billing", &Record::parse(&first).unwrap(), level).field("maxReconsumeTimes", max);
        peer.ok(&back);
        let body = arrives(&mut peer, "%DLQ%billing", 0);
        let dead = Record::parse(&body).unwrap();
        assert_eq!(dead.property("ORIGIN_MESSAGE_ID"), sent.fields.get("msgId").map(String::as_str));
        assert_eq!((dead.property("RETRY_TOPIC"), dead.property("a")), (Some("orders"), Some("b")));
    }
}

#[test]
fn a_body_of_the_largest_size_can_be_given_back() {
    let (_broker, mut peer) = prepared(&[("maxMessageSize", "1000")]);
    peer.ok(&send("orders", 0, vec![7; 1000]));
    let first = all(&mut peer, "orders").remove(0);
    peer.ok(&give_back("billing", &Record::parse(&first).unwrap(), 1));
    let body = arrives(&mut peer, "%RETRY%billing", 0);
    let again = Record::parse(&body).unwrap();
    assert_eq!((again.body().len(), again.reconsume_times()), (1000, 1));
}

#[test]
fn a_retry_that_is_sent_and_not_given_back_goes_to_the_dead_letters_when_it_is_due_there() {
    let (_broker, mut peer) = prepared(&[]);
    // What a client sends whose send-back failed: still within its retries.
    let within = send("%RETRY%billing", 0, "within").field("j", 1).field("l", 3);
    peer.ok(&within);
    assert_eq!(Record::parse(&arrives(&mut peer, "%RETRY%billing", 0)).unwrap().body(), b"within");
    // Too often.
    peer.ok(&send("%RETRY%billing", 0, "too often").field("j", 4).field("l", 3).field("i", "DELAY\u{1}3\u{2}"));
    assert_eq!(Record::parse(&arrives(&mut peer, "%DLQ%billing", 0)).unwrap().body(), b"too often");
    // A group that holds queue locks consumes in order: it has done its retries itself.
    let queue = r#"[{"brokerName":"b1","queueId":0,"topic":"orders"}]"#;
    let lock = format!(r#"{{"clientId":"c1","consumerGroup":"billing","mqSet":{queue},"onlyThisBroker":false}}"#);
    peer.ok(&Ask::new(41).body(lock));
    peer.ok(&send("%RETRY%billing", 0, "ordered").field("j", 1).field("l", 3));
    let body = arrives(&mut peer, "%DLQ%billing", 1);
    assert_eq!(Record::parse(&body).unwrap().body(), b"ordered");
}

#[test]
fn an_unknown_offset_and_a_group_without_retries() {
    let (_broker, mut peer) = prepared(&[]);
    peer.ok(&send("orders", 0, "x"));
    let first = all(&mut peer, "orders").remove(0);
    let record = Record::parse(&first).unwrap();
    for offset in [1, 100_000, i64::MAX] {
        let got = peer.ask(&give_back("billing", &record, 1).field("offset", offset));
        assert_eq!(got.code, 1, "{offset}");
        assert!(got.remark.contains("look message by offset failed"), "{}", got.remark);
    }
    assert_eq!(peer.ask(&give_back("billing", &record, 1).field("offset", -1)).code, 29);
    let group = r#"{"groupName":"once","consumeEnable":true,"retryQueueNums":0}"#;
    peer.ok(&Ask::new(200).body(group));
    peer.ok(&give_back("once", &record, 1));
    assert_eq!(peer.ok(&max_offset("SCHEDULE_TOPIC_XXXX", 0)).num("offset"), 0, "nothing is stored");
}

#[test]
fn a_kill_neither_loses_nor_doubles_delayed_messages() {
    let disk = Faulty::healthy();
    let levels = ("messageDelayLevel", "1s 1h");
    {
        let broker = TestBroker::start_in_memory(disk.clone(), &[levels]);
        let mut peer = broker.connect();
        peer.ok(&create_topic("orders", 1, 6));
        for i in 0..3 {
            peer.ok(&send_with("orders", 0, &format!("short {i}"), "DELAY", "1"));
            peer.ok(&send_with("orders", 0, &format!("long {i}"), "DELAY", "2"));
        }
        (0..3).for_each(|offset| drop(arrives(&mut peer, "orders", offset)));
    }
    let broker = TestBroker::start_in_memory(disk.surviving_kill(), &[levels]);
    let mut peer = broker.connect();
    // A marker of the first level: what stands before it was there before it.
    peer.ok(&send_with("orders", 0, "marker", "DELAY", "1"));
    let body = arrives(&mut peer, "orders", 3);
    assert_eq!(Record::parse(&body).unwrap().body(), b"marker");
    let bodies: Vec<_> = drain(&mut peer, "orders", 0, 0);
    assert_eq!(bodies[..4], [b"short 0".to_vec(), b"short 1".to_vec(), b"short 2".to_vec(), b"marker".to_vec()]);
    assert_eq!(peer.ok(&max_offset("SCHEDULE_TOPIC_XXXX", 1)).num("offset"), 3, "the long ones still wait");
}
