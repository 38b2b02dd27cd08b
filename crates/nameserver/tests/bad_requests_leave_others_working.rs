//! Requests that are wrong in every way: unknown codes, missing and unreadable fields, headers that do not decode, bytes
//! that are no frames. Each gets the answer it deserves, and the next one on the line, or the neighbour, is served.

mod common;

use cometmq_wire::RequestCode;
use cometmq_wire::frame::{FLAG_ONEWAY, FLAG_RESPONSE};
use cometmq_wire::header::SerializeType::{Compact, Json};
use common::{Broker, Fixture, Raw, framed, refusal, request};

async fn next(raw: &mut Raw) -> (i32, i32, String) {
    let answer = raw.receive().await.expect("the connection is open");
    let (code, remark) = refusal(&answer);
    (answer.frame().head.opaque, code, remark)
}

#[tokio::test]
async fn an_unknown_code_is_not_supported() {
    let f = Fixture::start();
    let mut raw = Raw::connect(&f.addr()).await;
    for (kind, code) in [(Json, 200_050), (Compact, 10), (Json, -1)] {
        raw.send(&request(kind, code, 9, 0, 513, &[])).await;
        assert_eq!(next(&mut raw).await, (9, 3, format!(" request type {code} not supported")));
    }
    f.stop();
}

#[tokio::test]
async fn bad_headers_are_answered_and_the_connection_goes_on() {
    let f = Fixture::start();
    let mut raw = Raw::connect(&f.addr()).await;
    let unreadable = [("brokerName", "b"), ("brokerAddr", "a"), ("clusterName", "c"), ("brokerId", "zero")];
    let mut pipeline = request(Json, 105, 1, 0, 513, &[]);
    pipeline.extend(request(Json, 104, 2, 0, 513, &unreadable));
    pipeline.extend(framed(0, br#"{"code":1x5,"opaque":3}"#));
    pipeline.extend(framed(9, br#"{"code":105,"opaque":4}"#));
    pipeline.extend(request(Json, 322, 5, 0, 513, &unreadable[..3]));
    pipeline.extend(request(Compact, 106, 6, 0, 513, &[]));
    raw.send(&pipeline).await;
    let is = |opaque: i32, code: i32, remark: &str| (opaque, code, remark.to_owned());
    assert_eq!(next(&mut raw).await, is(1, 1, "the custom field <topic> is null"));
    let number = "the custom field <brokerId> has the value 'zero', expected a 64-bit integer";
    assert_eq!(next(&mut raw).await, is(2, 1, number));
    assert_eq!(next(&mut raw).await, is(3, 1, "header: expected a 32-bit integer at byte 11"));
    assert_eq!(next(&mut raw).await, is(4, 1, "serialize type 9 is neither 0 (JSON) nor 1 (ROCKETMQ)"));
    assert_eq!(next(&mut raw).await, is(5, 1, "the custom field <brokerId> is null"));
    assert_eq!(next(&mut raw).await, is(6, 0, ""));
    f.stop();
}

#[tokio::test]
async fn one_way_requests_and_answers_are_not_answered() {
    let f = Fixture::start();
    let mut raw = Raw::connect(&f.addr()).await;
    let put = [("namespace", "n"), ("key", "k"), ("value", "v")];
    raw.send(&request(Json, 99, 1, FLAG_ONEWAY, 513, &[])).await;
    raw.send(&request(Json, 105, 2, FLAG_ONEWAY, 513, &[])).await;
    raw.send(&request(Json, 100, 3, FLAG_ONEWAY, 513, &put)).await;
    raw.send(&request(Json, 0, 4, FLAG_RESPONSE, 513, &[])).await;
    // Behind the one-way write in the queue to the disk: its answer comes last of all.
    raw.send(&request(Json, 102, 5, 0, 513, &put[..2])).await;
    assert_eq!(next(&mut raw).await, (5, 0, String::new()));
    assert_eq!(std::fs::read_to_string(f.kv_config_path()).unwrap(), r#"{"configTable":{"n":{}}}"#);
    f.stop();
}

#[tokio::test]
async fn broken_framing_ends_that_connection_only() {
    let f = Fixture::start();
    f.register(&Broker::new("b1", "10.0.0.1:10911", &["orders", "bills"])).await;
    for garbage in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 3, 0, 0, 0, 0], &[0x16, 3, 1, 2, 0, 1, 0, 1]]
    {
        let mut raw = Raw::connect(&f.addr()).await;
        raw.send(garbage).await;
        // Where the peer may speak our protocol after all, a last frame says what was wrong.
        while let Some(farewell) = raw.receive().await {
            assert_eq!(farewell.code().0, 1);
        }
    }
    let answer = f.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &[("topic", "orders")], b"").await;
    assert_eq!(answer.code().0, 0);
    assert!(f.server.routes().route("orders").is_some());
    f.stop();
}

#[tokio::test]
async fn half_a_frame_holds_up_nobody() {
    let f = Fixture::start();
    let mut raw = Raw::connect(&f.addr()).await;
    let whole = request(Json, 106, 1, 0, 513, &[]);
    raw.send(&whole[..whole.len() / 2]).await;
    assert_eq!(f.call(RequestCode::GET_BROKER_CLUSTER_INFO, &[], b"").await.code().0, 0);
    raw.send(&whole[whole.len() / 2..]).await;
    assert_eq!(next(&mut raw).await, (1, 0, String::new()));
    f.stop();
}

#[tokio::test]
async fn a_configuration_without_end_is_refused() {
    let f = Fixture::start();
    let text = |len: usize| vec![b'\n'; len];
    let answer = f.call(RequestCode::UPDATE_NAMESRV_CONFIG, &[], &text(65_537)).await;
    assert_eq!(refusal(&answer), (1, "the body has 65537 bytes, limit 65536".to_owned()));
    let answer = f.call(RequestCode::UPDATE_NAMESRV_CONFIG, &[], &text(65_536)).await;
    assert_eq!(refusal(&answer), (0, String::new()));
    f.stop();
}
