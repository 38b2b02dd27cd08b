//! Brokers register over real sockets, in both body forms, and clients get exactly the bytes that Java's name server sends
//! them: integer keys bare for old clients, quoted for new ones and for those who ask.

mod common;

use cometmq_wire::RequestCode;
use cometmq_wire::header::SerializeType::{Compact, Json};
use cometmq_wire::version::{V4_9_4, V5_5_0};
use common::{Broker, Fixture, Raw, refusal, request, text};

const ROUTE: &str = r#"{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"},"brokerName":"b1","cluster":"c1","enableActingMaster":false},{"brokerAddrs":{"0":"10.0.0.3:10911"},"brokerName":"b2","cluster":"c1","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b1","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4},{"brokerName":"b2","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}"#;

fn bare() -> String {
    ROUTE.replace("\"0\":", "0:").replace("\"1\":", "1:")
}

async fn three_brokers() -> Fixture {
    let f = Fixture::start();
    let master = Broker::new("b1", "10.0.0.1:10911", &["orders", "bills"]);
    let slave = Broker { id: 1, ..Broker::new("b1", "10.0.0.2:10911", &["orders", "bills"]) };
    let compressed = Broker { compressed: true, ..Broker::new("b2", "10.0.0.3:10911", &["orders", "mails"]) };
    for broker in [master, slave, compressed] {
        assert_eq!(refusal(&f.register(&broker).await), (0, String::new()));
    }
    f
}

#[tokio::test]
async fn routes_are_byte_for_byte_javas() {
    let f = three_brokers().await;
    let mut raw = Raw::connect(&f.addr()).await;
    let standard = [("topic", "orders"), ("acceptStandardJsonOnly", "true")];
    for (version, fields, expected) in [
        (V5_5_0, &standard[..1], ROUTE.to_owned()),
        (V4_9_4, &standard[..1], ROUTE.to_owned()),
        (V4_9_4 - 1, &standard[..1], bare()),
        (0, &standard[..1], bare()),
        (0, &standard[..], ROUTE.to_owned()),
    ] {
        for kind in [Json, Compact] {
            raw.send(&request(kind, 105, 7, 0, version, fields)).await;
            let answer = raw.receive().await.unwrap();
            assert_eq!(text(&answer), expected, "version {version}");
            let head = answer.frame().head;
            assert_eq!((head.kind, head.opaque), (kind, 7));
        }
    }
    f.stop();
}

#[tokio::test]
async fn a_missing_topic_has_javas_remark() {
    let f = three_brokers().await;
    let answer = f.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &[("topic", "nope")], b"").await;
    let remark = "No topic route info in name server for the topic: nope\n\
                  See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";
    assert_eq!(refusal(&answer), (17, remark.to_owned()));
    let answer = f.call(RequestCode::GET_ROUTEINFO_BY_TOPIC, &[("topic", &"x".repeat(256))], b"").await;
    assert_eq!(refusal(&answer), (29, "the topic name is longer than 255 bytes".to_owned()));
    f.stop();
}

#[tokio::test]
async fn a_slave_learns_its_master_and_a_broken_body_is_refused() {
    let f = three_brokers().await;
    let slave = Broker { id: 1, ..Broker::new("b1", "10.0.0.2:10911", &["orders", "bills"]) };
    let answer = f.register(&slave).await;
    assert_eq!(answer.ext().find("masterAddr").as_deref(), Some("10.0.0.1:10911"));
    assert_eq!(answer.ext().find("haServerAddr").as_deref(), Some("10.0.0.1:10912"));
    let damaged = Broker { crc32: Some(7), ..slave.clone() };
    assert_eq!(refusal(&f.register(&damaged).await), (1, "crc32 not match".to_owned()));
    let lone = Broker::new("b9", "10.0.0.9:10911", &["orders"]);
    assert_eq!(refusal(&f.register(&lone).await), (1, "register broker failed".to_owned()));
    let fields = [slave.identity().as_slice(), &[("haServerAddr", "h:1"), ("compressed", "true")]].concat();
    let (code, remark) = refusal(&f.call(RequestCode::REGISTER_BROKER, &fields, b"no zlib").await);
    assert_eq!(code, 1);
    assert!(remark.starts_with("body: compressed registration: "), "{remark}");
    f.stop();
}

#[tokio::test]
async fn tools_see_the_cluster_and_its_topics() {
    let f = three_brokers().await;
    let cluster = f.call(RequestCode::GET_BROKER_CLUSTER_INFO, &[], b"").await;
    let expected = r#"{"brokerAddrTable":{"b1":{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"b1","cluster":"c1","enableActingMaster":false},"b2":{"brokerAddrs":{0:"10.0.0.3:10911"},"brokerName":"b2","cluster":"c1","enableActingMaster":false}},"clusterAddrTable":{"c1":["b1","b2"]}}"#;
    assert_eq!(text(&cluster), expected);
    let list = |code: RequestCode, fields: &'static [(&str, &str)]| f.call(code, fields, b"");
    let all = list(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, &[]).await;
    assert_eq!(text(&all), r#"{"topicList":["bills","mails","orders"]}"#);
    let of_cluster = list(RequestCode::GET_TOPICS_BY_CLUSTER, &[("cluster", "c1")]).await;
    assert_eq!(text(&of_cluster), text(&all));
    let system = list(RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_NS, &[]).await;
    assert_eq!(text(&system), r#"{"brokerAddr":"10.0.0.1:10911","topicList":["b1","b2","c1"]}"#);
    let units = list(RequestCode::GET_UNIT_TOPIC_LIST, &[]).await;
    assert_eq!(text(&units), r#"{"topicList":[]}"#);
    let members = [("clusterName", "c1"), ("brokerName", "b2")];
    let members = f.call(RequestCode::GET_BROKER_MEMBER_GROUP, &members, b"").await;
    let expected = r#"{"brokerMemberGroup":{"brokerAddrs":{0:"10.0.0.3:10911"},"brokerName":"b2","cluster":"c1"}}"#;
    assert_eq!(text(&members), expected);
    f.stop();
}

#[tokio::test]
async fn tools_change_permissions_and_delete_topics() {
    let f = three_brokers().await;
    let wiped = f.call(RequestCode::WIPE_WRITE_PERM_OF_BROKER, &[("brokerName", "b1")], b"").await;
    assert_eq!(wiped.ext().find("wipeTopicCount").as_deref(), Some("2"));
    assert_eq!(f.server.routes().route("bills").unwrap().queue_datas[0].perm, 4);
    let added = f.call(RequestCode::ADD_WRITE_PERM_OF_BROKER, &[("brokerName", "b1")], b"").await;
    assert_eq!(added.ext().find("addTopicCount").as_deref(), Some("2"));
    assert_eq!(f.server.routes().route("bills").unwrap().queue_datas[0].perm, 6);
    f.call(RequestCode::DELETE_TOPIC_IN_NAMESRV, &[("topic", "bills")], b"").await;
    assert_eq!(f.server.routes().route("bills"), None);
    let queue = br#"{"queueDatas":[{"brokerName":"b1","perm":6,"readQueueNums":4,"writeQueueNums":4}]}"#;
    f.call(RequestCode::REGISTER_TOPIC_IN_NAMESRV, &[("topic", "bills")], queue).await;
    assert!(f.server.routes().route("bills").is_some());
    f.stop();
}

#[tokio::test]
async fn a_broker_asks_whether_its_version_is_known() {
    let f = Fixture::start();
    let broker = Broker::new("b1", "10.0.0.1:10911", &["orders", "bills"]);
    let ask = async |version: &str| {
        let answer = f.call(RequestCode::QUERY_DATA_VERSION, &broker.identity(), version.as_bytes()).await;
        (answer.ext().find("changed").unwrap().into_owned(), text(&answer).to_owned())
    };
    let same = r#"{"counter":1,"stateVersion":0,"timestamp":1750000000000}"#;
    assert_eq!(ask(same).await, ("true".to_owned(), String::new()));
    f.register(&broker).await;
    assert_eq!(ask(same).await, ("false".to_owned(), same.to_owned()));
    assert_eq!(ask(&same.replace(":1,", ":2,")).await, ("true".to_owned(), same.to_owned()));
    assert_eq!(ask("").await.0, "true");
    f.stop();
}
