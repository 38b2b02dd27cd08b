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

/// Case C11: a delay level wins over each way to ask for a time, and nothing of that is left.
#[test]
fn a_level_wins_over_a_time() {
    let (_broker, mut peer) = prepared(&[("messageDelayLevel", "1h 1h 1s 1h")]);
    let timed = [("TIMER_DELIVER_MS", "4102444800000"), ("TIMER_DELAY_SEC", "3600"), ("TIMER_DELAY_MS", "3600000")];
    for (name, value) in timed {
        let properties = format!("{name}\u{1}{value}\u{2}DELAY\u{1}3\u{2}a\u{1}b\u{2}");
        peer.ok(&send("orders", 0, name).field("i", properties));
    }
    for (offset, (name, _)) in (0..).zip(timed) {
        let body = arrives(&mut peer, "orders", offset);
        let record = Record::parse(&body).unwrap();
        assert_eq!(record.body(), name.as_bytes());
        assert_eq!((record.property(name), record.property("a")), (None, Some("b")), "{name}");
        assert_eq!(record.property("DELAY"), Some("3"), "{name}");
    }
}

/// Case C07.
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

/// Case C38, of a consumer that gives back.
#[test]
fn no_retry_allowed_or_a_negative_level_means_dead_at_once_with_its_origin() {
    for (level, max) in [(0, 0), (-1, 16)] {
        let (_broker, mut peer) = prepared(&[]);
        let sent = peer.ok(&send("orders", 0, "poison").field("i", "a\u{1}b\u{2}TAGS\u{1}A\u{2}KEYS\u{1}k\u{2}"));
        let first = all(&mut peer, "orders").remove(0);
        let back = give_back("billing", &Record::parse(&first).unwrap(), level).field("maxReconsumeTimes", max);
        peer.ok(&back);
        let body = arrives(&mut peer, "%DLQ%billing", 0);
        let dead = Record::parse(&body).unwrap();
        assert_eq!(dead.property("ORIGIN_MESSAGE_ID"), sent.fields.get("msgId").map(String::as_str));
        assert_eq!(dead.property("RETRY_TOPIC"), Some("orders"));
        assert_eq!(["a", "TAGS", "KEYS"].map(|name| dead.property(name)), [Some("b"), Some("A"), Some("k")]);
        assert_eq!(peer.ok(&max_offset("%RETRY%billing", 0)).num("offset"), 0);
    }
}

/// Case C20: the limit is on the body, not on the record, which grows with each return.
#[test]
fn a_body_of_the_largest_size_can_be_given_back() {
    for (set, size) in [(&[("maxMessageSize", "1000")][..], 1000), (&[], 4 << 20)] {
        let (_broker, mut peer) = prepared(set);
        assert_eq!(peer.ask(&send("orders", 0, vec![7; size + 1])).code, 13);
        peer.ok(&send("orders", 0, vec![7; size]));
        let mut record = all(&mut peer, "orders").remove(0);
        for times in 1..=2 {
            peer.ok(&give_back("billing", &Record::parse(&record).unwrap(), 1));
            record = arrives(&mut peer, "%RETRY%billing", i64::from(times) - 1);
            let again = Record::parse(&record).unwrap();
            assert_eq!((again.body().len(), again.reconsume_times()), (size, times));
        }
    }
}

/// What the client of a consumer in order sends of a message that its listener does not take, after its one retry.
fn ordered_retry(group: &str, properties: &str) -> Ask {
    let topic = format!("%RETRY%{group}");
    send(&topic, 0, "poison").field("a", "CLIENT_INNER_PRODUCER").field("j", 1).field("l", 1).field("i", properties)
}

fn lock(group: &str) -> Ask {
    let queue = r#"[{"brokerName":"b1","queueId":0,"topic":"orders"}]"#;
    let body = format!(r#"{{"clientId":"c1","consumerGroup":"{group}","mqSet":{queue},"onlyThisBroker":false}}"#);
    Ask::new(41).body(body)
}

/// Cases C36 and C38, of a consumer in order: it has done its retries in place, so nothing goes round the retry topic.
#[test]
fn what_an_ordered_consumer_gives_up_is_dead_at_once_with_its_origin() {
    let (_broker, mut peer) = prepared(&[]);
    peer.ok(&lock("billing"));
    let properties = [("ORIGIN_MESSAGE_ID", "FIRST"), ("RETRY_TOPIC", "orders"), ("UNIQ_KEY", "U1"), ("a", "b")];
    let text: String = properties.iter().map(|(name, value)| format!("{name}\u{1}{value}\u{2}")).collect();
    let sent = peer.ok(&ordered_retry("billing", &format!("DELAY\u{1}4\u{2}{text}")));
    assert_eq!((sent.num("queueId"), sent.num("queueOffset")), (0, 0));
    let body = arrives(&mut peer, "%DLQ%billing", 0);
    let dead = Record::parse(&body).unwrap();
    assert_eq!((dead.topic(), dead.body()), ("%DLQ%billing", &b"poison"[..]));
    for (name, value) in properties {
        assert_eq!(dead.property(name), Some(value), "{name}");
    }
    for queue in ["%RETRY%billing", "SCHEDULE_TOPIC_XXXX"] {
        assert_eq!((0..18).map(|id| peer.ok(&max_offset(queue, id)).num("offset")).sum::<i64>(), 0, "{queue}");
    }
}

/// Case C39: the subscription by tag lets the retry pass, in either way that a pull can carry it.
#[test]
fn a_retry_passes_the_filter_of_a_subscription_by_tag() {
    for tags in ["A||B", "A || B"] {
        let (broker, mut peer) = prepared(&[]);
        for tag in ["A", "B", "C"] {
            peer.ok(&send_with("orders", 0, tag, "TAGS", tag));
        }
        let mut member = broker.connect();
        member.post(&heartbeat_with("c1", "billing", &[("orders", tags), ("%RETRY%billing", tags)]));
        // Its answer, and the news that the group has a member.
        [member.receive(), member.receive()].iter().for_each(|f| assert!(!f.is_answer || f.code == 0, "{f:?}"));
        let by_heartbeat = |topic: &str| pull(topic, 0, 0).field("consumerGroup", "billing").field("sysFlag", 0);
        let by_request = |topic: &str| pull(topic, 0, 0).field("consumerGroup", "billing").field("subscription", tags);
        let bodies = |got: &Got| got.messages().into_iter().map(|(_, body)| body).collect::<Vec<_>>();
        for ask in [by_heartbeat("orders"), by_request("orders")] {
            assert_eq!(bodies(&peer.ok(&ask)), [b"A", b"B"], "{tags}");
        }
        let first = all(&mut peer, "orders").remove(0);
        peer.ok(&give_back("billing", &Record::parse(&first).unwrap(), 1));
        arrives(&mut peer, "%RETRY%billing", 0);
        for ask in [by_heartbeat("%RETRY%billing"), by_request("%RETRY%billing")] {
            let got = peer.ok(&ask);
            assert_eq!(bodies(&got), [b"A"], "{tags}: once");
            assert_eq!(got.num("nextBeginOffset"), 1);
        }
    }
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
    peer.ok(&lock("billing"));
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
