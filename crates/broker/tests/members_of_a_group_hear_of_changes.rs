//! When a consumer joins a group, leaves it or is gone, every member that is there hears of it at once
//! (NOTIFY_CONSUMER_IDS_CHANGED) and then finds the new list of members, so that queues change hands without delay.
//! Method: members on raw connections to both shards, whose next frames are looked at; nothing is waited out.

mod support;

use support::*;

const GROUP: &str = "billing";

/// The next frame is the notification of the group; answers to requests come later.
fn hears(peer: &mut Peer) {
    let got = peer.receive();
    assert!(!got.is_answer && got.code == 40, "{got:?}");
    assert_eq!(got.fields.get("consumerGroup").map(String::as_str), Some(GROUP));
}

/// Joins; the newcomer hears of itself as well, as Java's clients expect, before or behind the answer.
fn join(peer: &mut Peer, client: &str) {
    peer.post(&beat(client));
    let (one, other) = (peer.receive(), peer.receive());
    assert!(one.is_answer != other.is_answer && one.code + other.code == 40, "{one:?} {other:?}");
}

fn members(peer: &mut Peer) -> Vec<String> {
    let got = peer.ask(&Ask::new(38).field("consumerGroup", GROUP));
    if got.code == 1 {
        assert!(got.remark.contains("no consumer for this group"), "{}", got.remark);
        return Vec::new();
    }
    let list: cometmq_wire::body::GetConsumerListByGroupResponseBody =
        cometmq_wire::json::from_slice(&got.body).unwrap();
    list.consumer_id_list
}

fn beat(client: &str) -> Ask {
    heartbeat(client, GROUP, "orders")
}

fn leave(client: &str) -> Ask {
    Ask::new(35).field("clientID", client).field("consumerGroup", GROUP)
}

#[test]
fn on_join_leave_and_close() {
    let broker = TestBroker::start(&[]);
    // Alternately on one shard and the other.
    let (mut a, mut b, mut c, mut watcher) = (broker.connect(), broker.connect(), broker.connect(), broker.connect());
    watcher.ok(&create_topic("orders", 4, 6));

    join(&mut a, "a");
    assert_eq!(members(&mut watcher), ["a"]);
    join(&mut b, "b");
    hears(&mut a);
    assert_eq!(members(&mut watcher), ["a", "b"]);
    join(&mut c, "c");
    hears(&mut a);
    hears(&mut b);
    assert_eq!(members(&mut watcher), ["a", "b", "c"]);

    drop(c);
    hears(&mut a);
    hears(&mut b);
    assert_eq!(members(&mut watcher), ["a", "b"]);

    b.ok(&leave("b"));
    hears(&mut a);
    assert_eq!(members(&mut watcher), ["a"]);

    // A heartbeat that changes nothing is no news: the next frame is the answer.
    a.ok(&beat("a"));
    a.ok(&max_offset("orders", 0));
    drop((a, b));
    wait_until("empty", || members(&mut watcher).is_empty());
    drop(watcher);
    broker.stop();
}

#[test]
fn not_when_it_is_switched_off() {
    let broker = TestBroker::start(&[("notifyConsumerIdsChangedEnable", "false")]);
    let (mut a, mut b) = (broker.connect(), broker.connect());
    a.ok(&beat("a"));
    b.ok(&beat("b"));
    drop(b);
    wait_until("gone", || members(&mut a) == ["a"]);
    a.ok(&beat("a"));
    drop(a);
    broker.stop();
}
