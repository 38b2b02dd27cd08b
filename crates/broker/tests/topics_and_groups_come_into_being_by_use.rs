//! A topic is there after the first send to it, a group after its first pull or heartbeat, its retry topic with the heartbeat
//! of a consumer; clients find such a topic at the name server at once. Each can be switched off, and then says so.
//! Method: raw requests to a broker that is registered at a real name server.

mod support;

use support::*;

const TOPIC_NOT_EXIST: i32 = 17;
const GROUP_NOT_EXIST: i32 = 26;

fn topic_config(peer: &mut Peer, topic: &str) -> Option<String> {
    let got = peer.ask(&Ask::new(351).field("topic", topic));
    assert!(got.code == 0 || got.code == TOPIC_NOT_EXIST, "{got:?}");
    (got.code == 0).then(|| String::from_utf8(got.body).unwrap())
}

fn has_group(peer: &mut Peer, group: &str) -> bool {
    let got = peer.ask(&Ask::new(352).field("group", group));
    assert!(got.code == 0 || got.code == GROUP_NOT_EXIST, "{got:?}");
    got.code == 0
}

#[test]
fn a_topic_by_a_send() {
    let names = TestNameServer::start();
    let broker = TestBroker::start(&[("namesrvAddr", &names.addr())]);
    let (mut peer, mut asker) = (broker.connect(), names.connect());
    assert_eq!(topic_config(&mut peer, "orders"), None);
    assert_eq!(peer.ok(&send("orders", 3, "x")).num("queueOffset"), 0);
    let config = topic_config(&mut peer, "orders").unwrap();
    for part in ["\"writeQueueNums\":4", "\"readQueueNums\":4", "\"perm\":6"] {
        assert!(config.contains(part), "no {part} in {config}");
    }
    // As many queues as the client asks for, and not more than the pattern topic has.
    for (topic, asked, queues) in [("narrow", 1, 1), ("wide", 100, 8)] {
        peer.ok(&send(topic, 0, "x").field("d", asked));
        let config = topic_config(&mut peer, topic).unwrap();
        assert!(config.contains(&format!("\"writeQueueNums\":{queues}")), "{config}");
    }
    wait_until("in the route", || {
        let got = asker.ask(&Ask::new(105).field("topic", "wide"));
        got.code == 0 && String::from_utf8_lossy(&got.body).contains(&broker.server.address().to_string())
    });
    broker.stop();
}

/// Many at once create one topic, and all of them are served.
#[test]
fn a_topic_by_many_sends_at_once() {
    let broker = TestBroker::start(&[]);
    let mut peers: Vec<Peer> = (0..8).map(|_| broker.connect()).collect();
    for peer in &mut peers {
        for _ in 0..5 {
            peer.post(&send("orders", 0, "x"));
        }
    }
    let mut offsets = Vec::new();
    for peer in &mut peers {
        for _ in 0..5 {
            let got = peer.receive();
            assert_eq!(got.code, 0, "{}", got.remark);
            offsets.push(got.num("queueOffset"));
        }
    }
    offsets.sort_unstable();
    assert!((0..40).eq(offsets));
    drop(peers);
    broker.stop();
}

#[test]
fn no_topic_by_a_send_when_that_is_off() {
    let broker = TestBroker::start(&[("autoCreateTopicEnable", "false")]);
    let mut peer = broker.connect();
    let got = peer.ask(&send("orders", 0, "x"));
    assert_eq!(got.code, TOPIC_NOT_EXIST);
    assert!(got.remark.contains("topic[orders] not exist, apply first please!"), "{}", got.remark);
    assert_eq!(topic_config(&mut peer, "orders"), None);
    peer.ok(&create_topic("orders", 1, 6));
    peer.ok(&send("orders", 0, "x"));
    drop(peer);
    broker.stop();
}

#[test]
fn a_group_by_a_pull_and_by_a_heartbeat() {
    // Without notifications, every next frame is an answer.
    let broker = TestBroker::start(&[("notifyConsumerIdsChangedEnable", "false")]);
    let mut peer = broker.connect();
    peer.ok(&send("orders", 0, "x"));
    assert!(!has_group(&mut peer, "readers") && !has_group(&mut peer, "billing"));
    peer.ok(&pull("orders", 0, 0));
    assert!(has_group(&mut peer, "readers"));
    // A reader has no retry topic; a consumer that is told by heartbeat has.
    assert_eq!(topic_config(&mut peer, "%RETRY%readers"), None);
    peer.ok(&heartbeat("client-1", "billing", "orders"));
    assert!(has_group(&mut peer, "billing"));
    let retry = topic_config(&mut peer, "%RETRY%billing").unwrap();
    assert!(retry.contains("\"writeQueueNums\":1") && retry.contains("\"perm\":6"), "{retry}");
    // With the subscription of the heartbeat a pull needs none of its own.
    let by_heartbeat = pull("orders", 0, 0).field("consumerGroup", "billing").field("sysFlag", 0);
    assert_eq!(peer.ok(&by_heartbeat.field("subVersion", 1)).messages(), [(0, b"x".to_vec())]);
    drop(peer);
    broker.stop();
}

#[test]
fn no_group_by_use_when_that_is_off() {
    let broker = TestBroker::start(&[("autoCreateSubscriptionGroup", "false")]);
    let mut peer = broker.connect();
    peer.ok(&send("orders", 0, "x"));
    let got = peer.ask(&pull("orders", 0, 0));
    assert_eq!(got.code, GROUP_NOT_EXIST);
    assert!(got.remark.contains("subscription group [readers] does not exist"), "{}", got.remark);
    // The heartbeat of such a group is passed over, its pulls say why.
    peer.ok(&heartbeat("client-1", "billing", "orders"));
    assert!(!has_group(&mut peer, "billing"));
    assert_eq!(topic_config(&mut peer, "%RETRY%billing"), None);
    peer.ok(&Ask::new(200).body(r#"{"groupName":"readers"}"#));
    peer.ok(&pull("orders", 0, 0));
    drop(peer);
    broker.stop();
}
