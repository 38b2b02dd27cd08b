//! A request that cannot be served is answered with the code that clients know and a sentence that says why, and hurts
//! nobody else: the next request on its connection works, and so does everything on other connections.
//! Method: a table of bad requests, each followed by a good one on the same connection, while another connection sends.

mod support;

use std::time::{Duration, Instant};

use cometmq_wire::record::BatchItem;
use support::*;

const SYSTEM_ERROR: i32 = 1;
const NOT_SUPPORTED: i32 = 3;
const MESSAGE_ILLEGAL: i32 = 13;
const NO_PERMISSION: i32 = 16;
const TOPIC_NOT_EXIST: i32 = 17;
const SUBSCRIPTION_NOT_EXIST: i32 = 24;
const GROUP_NOT_EXIST: i32 = 26;
const INVALID_PARAMETER: i32 = 29;

const BODY_MAX: usize = 4 * 1024 * 1024;

fn prepared(set: &[(&str, &str)]) -> TestBroker {
    let broker = TestBroker::start(set);
    let mut peer = broker.connect();
    for (topic, perm) in [("orders", 6), ("write-only", 2)] {
        peer.ok(&create_topic(topic, 4, perm));
    }
    peer.ok(&send("orders", 0, "a good message"));
    peer.ok(&pull("orders", 0, 0));
    broker
}

/// Asks each, and something good behind it on the same connection.
fn check(broker: &TestBroker, table: &[(&str, Ask, i32, &str)]) {
    let steady = SteadySender::start(broker, "steady");
    let mut peer = broker.connect();
    for (name, ask, code, words) in table {
        let began = Instant::now();
        let got = peer.ask(ask);
        assert_eq!(got.code, *code, "{name}: {}", got.remark);
        assert!(got.remark.contains(words), "{name}: '{}' does not say '{words}'", got.remark);
        assert!(began.elapsed() < Duration::from_secs(5), "{name}");
        assert_eq!(peer.ok(&pull("orders", 0, 0)).messages(), [(0, b"a good message".to_vec())], "after {name}");
    }
    steady.goes_on(1);
    steady.stop();
}

#[test]
fn requests_that_nobody_can_serve() {
    let broker = prepared(&[]);
    let pull_of = |name: &str, value: &str| pull("orders", 0, 0).field(name, value);
    check(
        &broker,
        &[
            ("unknown code", Ask::new(31_000), NOT_SUPPORTED, " request type 31000 not supported"),
            ("a code that is not built", Ask::new(200_050), NOT_SUPPORTED, " request type 200050 not supported"),
            ("missing field", pull("orders", 0, 0).without("queueId"), SYSTEM_ERROR, "<queueId> is null"),
            ("no fields", Ask::new(310).body("x"), SYSTEM_ERROR, "is null"),
            ("bad number", pull_of("queueOffset", "12x"), SYSTEM_ERROR, "<queueOffset> has the value '12x'"),
            ("number too large", pull_of("queueId", "2147483648"), SYSTEM_ERROR, "expected a 32-bit integer"),
            ("body that is no JSON", Ask::new(34).body("{\"clientID\":"), SYSTEM_ERROR, "body: "),
            ("body too large", Ask::new(34).body(vec![b' '; 1_048_577]), SYSTEM_ERROR, "1048577 bytes, limit 1048576"),
            (
                "body of too many values",
                Ask::new(34).body(vec![b'['; 16_385]),
                SYSTEM_ERROR,
                "16385 objects and lists, limit 16384",
            ),
            ("large body", Ask::new(34).body(vec![b' '; 1_048_576]), SYSTEM_ERROR, "body: "),
            ("heartbeat of nobody", Ask::new(34).body("{}"), INVALID_PARAMETER, "clientID"),
        ],
    );
    broker.stop();
}

/// Also cases C01 and C07.
#[test]
fn sends_that_are_refused() {
    let broker = prepared(&[]);
    let property = |name: &str, value: &str| send_with("orders", 0, "x", name, value);
    let named = |name: &str| send(name, 0, "x");
    let long_value = "v".repeat(32_768);
    let mut with_empty = Vec::new();
    BatchItem { flag: 0, body: b"x", properties: "" }.encode(&mut with_empty);
    BatchItem { flag: 0, body: b"", properties: "" }.encode(&mut with_empty);
    let with_empty = send("orders", 0, with_empty).field("m", "true");
    check(
        &broker,
        &[
            ("body too large", send("orders", 0, vec![b'x'; BODY_MAX + 1]), MESSAGE_ILLEGAL, "4194304"),
            ("empty body", send("orders", 0, ""), MESSAGE_ILLEGAL, "msg body"),
            ("properties too long", property("KEYS", &long_value), MESSAGE_ILLEGAL, "properties too long"),
            ("blank topic", named(""), INVALID_PARAMETER, "topic is blank"),
            ("topic with a space", named("my orders"), INVALID_PARAMETER, "my orders, contains illegal characters"),
            ("topic with a slash", named("../orders"), INVALID_PARAMETER, "contains illegal characters"),
            ("topic of 128", named(&"t".repeat(128)), INVALID_PARAMETER, "longer than topic max length: 127"),
            ("queue too high", send("orders", 99, "x"), INVALID_PARAMETER, "request queueId[99] is illegal"),
            ("system topic", named("SCHEDULE_TOPIC_XXXX"), NO_PERMISSION, "topic[SCHEDULE_TOPIC_XXXX] is forbidden"),
            ("unknown default topic", named("new").field("c", "no-such"), TOPIC_NOT_EXIST, "topic[new] not exist"),
            ("delayed by nonsense", property("DELAY", "4x"), MESSAGE_ILLEGAL, "DELAY has the value '4x'"),
            ("timed", property("TIMER_DELIVER_MS", "1900000000000"), NOT_SUPPORTED, "TIMER_"),
            ("timed in seconds", property("TIMER_DELAY_SEC", "10"), NOT_SUPPORTED, "TIMER_"),
            ("half of a transaction", property("TRAN_MSG", "true"), NOT_SUPPORTED, "TRAN_MSG"),
            ("transaction by flag", send("orders", 0, "x").field("f", 4), NOT_SUPPORTED, "sysFlag"),
            ("light queue", property("INNER_MULTI_DISPATCH", "%LMQ%a"), NOT_SUPPORTED, "INNER_MULTI_DISPATCH"),
            ("batch with an empty body", with_empty, MESSAGE_ILLEGAL, "message 1 of the batch has an empty body"),
            ("batch of nothing", send("orders", 0, "").field("m", "true"), MESSAGE_ILLEGAL, "msg body"),
            ("batch of rubbish", send("orders", 0, "12345").field("m", "true"), MESSAGE_ILLEGAL, "batch"),
        ],
    );
    assert_eq!(broker.connect().ok(&max_offset("orders", 0)).num("offset"), 1, "a refused send left a message");
    broker.stop();
}

#[test]
fn pulls_and_commits_that_are_refused() {
    let broker = prepared(&[]);
    let sql = pull("orders", 0, 0).field("expressionType", "SQL92").field("subscription", "a > 1");
    let of_heartbeat = pull("orders", 0, 0).field("sysFlag", 0);
    check(
        &broker,
        &[
            ("queue too high", pull("orders", 99, 0), INVALID_PARAMETER, "queueId[99] is illegal, topic:[orders]"),
            ("queue below zero", pull("orders", -1, 0), INVALID_PARAMETER, "queueId[-1] is illegal"),
            ("no read permission", pull("write-only", 0, 0), NO_PERMISSION, "the topic[write-only] pulling message"),
            ("unknown topic", pull("nowhere", 0, 0), TOPIC_NOT_EXIST, "topic[nowhere] not exist"),
            ("SQL", sql, SYSTEM_ERROR, "The broker does not support consumer to filter message by SQL92"),
            ("no tags", pull("orders", 0, 0).field("subscription", "||"), 23, "parse the consumer's subscription"),
            ("no heartbeat", of_heartbeat, SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist"),
            ("negative commit", commit("readers", "orders", 0, -1), INVALID_PARAMETER, "commitOffset -1 of queueId 0"),
            ("commit of queue -1", commit("readers", "orders", -1, 0), INVALID_PARAMETER, "queueId -1"),
            ("commit of no group", commit("nobody", "orders", 0, 0), GROUP_NOT_EXIST, "Group nobody not exist!"),
            ("commit to no topic", commit("readers", "nowhere", 0, 0), TOPIC_NOT_EXIST, "Topic nowhere not exist!"),
            ("a system topic", create_topic("TBW102", 4, 6), INVALID_PARAMETER, "conflict with system topic"),
            ("too many queues", create_topic("wide", 65_536, 6), INVALID_PARAMETER, "expected 0 to 65535"),
            ("perm 8", create_topic("odd", 1, 8), INVALID_PARAMETER, "perm is 8"),
        ],
    );
    assert_eq!(broker.connect().ask(&committed("readers", "orders", 0)).num("offset"), 0);
    broker.stop();
}

#[test]
fn a_broken_header_is_answered_and_the_connection_goes_on() {
    let broker = prepared(&[]);
    let steady = SteadySender::start(&broker, "steady");
    let mut peer = broker.connect();
    let framed = |kind: u32, header: &[u8]| {
        let mut bytes = (header.len() as u32 + 4).to_be_bytes().to_vec();
        bytes.extend((header.len() as u32 | kind << 24).to_be_bytes());
        bytes.extend(header);
        bytes
    };
    let headers: [(u32, &[u8], i32); 5] = [
        (0, br#"{"code":1x,"opaque":77}"#, 77),
        (0, br#"{"code":10,"opaque":78,"extFields":{"#, 78),
        (0, b"\xff\xfe not text", 0),
        (1, &[0, 10, 0], 0),
        (9, br#"{"code":10,"opaque":79}"#, 79),
    ];
    for (kind, header, opaque) in headers {
        peer.write(&framed(kind, header));
        let got = peer.receive();
        let what = String::from_utf8_lossy(header);
        assert_eq!((got.code, got.is_answer), (SYSTEM_ERROR, true), "{what}: {got:?}");
        if kind == 0 {
            assert_eq!(got.opaque, opaque, "{what}");
        }
        assert!(!got.remark.is_empty(), "{what}");
        peer.ok(&max_offset("orders", 0));
    }
    steady.goes_on(1);
    steady.stop();
    broker.stop();
}

#[test]
fn a_one_way_request_is_never_answered() {
    let broker = prepared(&[]);
    let mut peer = broker.connect();
    peer.post(&Ask::new(31_000).oneway());
    peer.post(&send("bad topic", 0, "x").oneway());
    peer.post(&pull("orders", 99, 0).oneway());
    peer.post(&pull("orders", 0, 0).oneway());
    peer.post(&send("orders", 0, "of the one-way send").oneway());
    let mut other = broker.connect();
    wait_until("appended", || other.ok(&max_offset("orders", 0)).num("offset") == 2);
    // The next frame on the connection is the answer of this one.
    peer.ok(&max_offset("orders", 0));
    broker.stop();
}
