//! Code 208 says how many messages a second a group takes from the topics asked for, by pulls that are answered at once and
//! by those that waited. Method: what was taken within the first ten seconds counts over ten seconds.

mod support;

use cometmq_wire::body::ConsumeStats;
use cometmq_wire::json;
use support::*;

fn rate(peer: &mut Peer, group: &str, topics: &[&str]) -> f64 {
    let got = peer.ok(&Ask::new(208).field("consumerGroup", group).field("topicList", topics.join(";")));
    json::from_slice::<ConsumeStats>(&got.body).unwrap().consume_tps
}

#[test]
fn the_rate_of_a_group_is_what_it_takes() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    for topic in ["orders", "bills"] {
        peer.ok(&create_topic(topic, 1, 6));
        (0..10).for_each(|n| drop(peer.ok(&send(topic, 0, format!("{n}")))));
        assert_eq!(peer.ok(&pull(topic, 0, 0).field("consumerGroup", "billing")).messages().len(), 10);
    }
    // Nothing is found, which is no message; then one is, by a pull that waited.
    assert_eq!(peer.ask(&pull("orders", 0, 10).field("consumerGroup", "billing")).code, 19);
    let mut waiting = broker.connect();
    waiting.post(&parked("orders", 0, 10, "*", LONG).field("consumerGroup", "billing"));
    // Answered behind it: it waits.
    waiting.ok(&max_offset("orders", 0));
    peer.ok(&send("orders", 0, "10"));
    assert_eq!(waiting.receive().messages().len(), 1);
    assert_eq!(rate(&mut peer, "billing", &["orders"]), 1.1);
    assert_eq!(rate(&mut peer, "billing", &["orders", "bills"]), 2.1);
    assert_eq!(rate(&mut peer, "others", &["orders", "bills"]), 0.0);
    broker.stop();
}
