//! What admins tell the name server is on disk when they get their answer: the KV table, and the server's own keys.

mod common;

use cometmq_wire::RequestCode;
use common::{Broker, Fixture, refusal, text};

const ORDERS: [(&str, &str); 3] = [("namespace", "ORDER_TOPIC_CONFIG"), ("key", "orders"), ("value", "b1:4;b2:4")];

#[tokio::test]
async fn kv_config_survives_a_restart() {
    let f = Fixture::start();
    assert_eq!(text(&f.call(RequestCode::PUT_KV_CONFIG, &ORDERS, b"").await), "");
    let other = [("namespace", "ORDER_TOPIC_CONFIG"), ("key", "bills"), ("value", "b1:1")];
    f.call(RequestCode::PUT_KV_CONFIG, &other, b"").await;
    f.call(RequestCode::DELETE_KV_CONFIG, &other[..2], b"").await;
    let file = std::fs::read_to_string(f.kv_config_path()).unwrap();
    assert_eq!(file, r#"{"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"b1:4;b2:4"}}}"#);

    let f = f.restart();
    let answer = f.call(RequestCode::GET_KV_CONFIG, &ORDERS[..2], b"").await;
    assert_eq!(answer.ext().find("value").as_deref(), Some("b1:4;b2:4"));
    let list = f.call(RequestCode::GET_KVLIST_BY_NAMESPACE, &ORDERS[..1], b"").await;
    assert_eq!(text(&list), r#"{"table":{"orders":"b1:4;b2:4"}}"#);
    let missing = f.call(RequestCode::GET_KV_CONFIG, &other[..2], b"").await;
    assert_eq!(refusal(&missing), (22, "No config item, Namespace: ORDER_TOPIC_CONFIG Key: bills".to_owned()));
    let missing = f.call(RequestCode::GET_KVLIST_BY_NAMESPACE, &[("namespace", "n")], b"").await;
    assert_eq!(refusal(&missing), (22, "No config item, Namespace: n".to_owned()));
    let partial = f.call(RequestCode::PUT_KV_CONFIG, &ORDERS[..1], b"").await;
    assert_eq!(refusal(&partial), (1, "the custom field <key> is null".to_owned()));
    f.stop();
}

#[tokio::test]
async fn ordered_topics_reach_brokers_and_with_the_setting_clients() {
    let f = Fixture::start();
    let broker = Broker::new("b1", "10.0.0.1:10911", &["orders", "bills"]);
    assert_eq!(text(&f.register(&broker).await), "", "nothing is ordered yet");
    f.call(RequestCode::PUT_KV_CONFIG, &ORDERS, b"").await;
    assert_eq!(text(&f.register(&broker).await), r#"{"table":{"orders":"b1:4;b2:4"}}"#);
    let order_conf = async |f: &Fixture| {
        let route = f.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &ORDERS_TOPIC, b"").await;
        text(&route).contains(r#""orderTopicConf":"b1:4;b2:4""#)
    };
    const ORDERS_TOPIC: [(&str, &str); 1] = [("topic", "orders")];
    assert!(!order_conf(&f).await);
    f.call(RequestCode::UPDATE_NAMESRV_CONFIG, &[], b"orderMessageEnable=true\n").await;
    assert!(order_conf(&f).await);

    let f = f.restart();
    f.register(&broker).await;
    assert!(order_conf(&f).await);
    f.stop();
}

#[tokio::test]
async fn settings_are_listed_changed_and_guarded() {
    let f = Fixture::start_with(&[("enableAllTopicList", "false")]);
    let config = f.call(RequestCode::GET_NAMESRV_CONFIG, &[], b"").await;
    let port = format!("\nlistenPort={}\n", f.server.addr().port());
    assert!(text(&config).contains(&port));
    assert!(text(&config).contains("\nenableAllTopicList=false\n"));
    let list = f.call(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, &[], b"").await;
    assert_eq!(refusal(&list), (1, "disable".to_owned()));
    let update = f.call(RequestCode::UPDATE_NAMESRV_CONFIG, &[], b"kvConfigPath=/tmp/x\n").await;
    assert_eq!(refusal(&update), (16, "Can not update config in black list.".to_owned()));
    let update = f.call(RequestCode::UPDATE_NAMESRV_CONFIG, &[], b"enableAllTopicList=maybe\n").await;
    assert_eq!(refusal(&update), (1, "enableAllTopicList = \"maybe\": expected true or false".to_owned()));
    assert_eq!(text(&f.call(RequestCode::UPDATE_NAMESRV_CONFIG, &[], b"").await), "");
    f.stop();
}

#[tokio::test]
async fn routes_can_be_withheld_until_brokers_had_time_to_come_back() {
    let f = Fixture::start_with(&[("needWaitForService", "true")]);
    f.register(&Broker::new("b1", "10.0.0.1:10911", &["orders", "bills"])).await;
    f.clock.advance(std::time::Duration::from_millis(44_999));
    let early = f.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &[("topic", "orders")], b"").await;
    assert_eq!(refusal(&early), (1, "name server not ready".to_owned()));
    f.clock.advance(std::time::Duration::from_millis(1));
    let route = f.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &[("topic", "orders")], b"").await;
    assert_eq!(route.code().0, 0);
    f.stop();
}

/// A pipelined put and delete of one key act in the order they were sent.
#[tokio::test]
async fn writes_of_one_connection_keep_their_order() {
    use cometmq_wire::header::SerializeType::Compact;
    let f = Fixture::start();
    let mut raw = common::Raw::connect(&f.addr()).await;
    let mut pipeline = Vec::new();
    for opaque in 0..40 {
        let value = opaque.to_string();
        let fields = [("namespace", "n"), ("key", "k"), ("value", value.as_str())];
        pipeline.extend(common::request(Compact, if opaque % 4 == 3 { 102 } else { 100 }, opaque, 0, 513, &fields));
    }
    let last = [("namespace", "n"), ("key", "k"), ("value", "last")];
    pipeline.extend(common::request(Compact, 100, 40, 0, 513, &last));
    raw.send(&pipeline).await;
    for opaque in 0..=40 {
        let answer = raw.receive().await.unwrap();
        assert_eq!((answer.frame().head.opaque, answer.code().0), (opaque, 0));
    }
    let file = std::fs::read_to_string(f.kv_config_path()).unwrap();
    assert_eq!(file, r#"{"configTable":{"n":{"k":"last"}}}"#);
    f.stop();
}
