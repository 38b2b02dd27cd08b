//! Thousands of polls wait for one queue; some of their connections go away, and one message comes. Every poll that is left
//! is answered, once: with the message, or with the word to ask again where its connection has more to read already.

mod support;

use std::time::Duration;

use support::*;

const RETRY_IMMEDIATELY: i32 = 20;
const POLLS: usize = 4_000;
const CONNECTIONS: usize = 4;

#[test]
fn every_one_of_many_polls_is_answered_once() {
    let broker = TestBroker::start(&[]);
    let mut sender = broker.connect();
    sender.ok(&create_topic("orders", 1, 6));
    let mut peers: Vec<Peer> = (0..CONNECTIONS).map(|_| broker.connect()).collect();
    let ask = parked("orders", 0, 0, "*", Duration::from_secs(600));
    for peer in &mut peers {
        for _ in 0..POLLS {
            peer.post(&ask);
        }
        // Answered behind them: they wait.
        peer.ok(&max_offset("orders", 0));
    }
    peers.truncate(CONNECTIONS / 2);
    sender.ok(&send("orders", 0, "x"));
    for peer in &mut peers {
        let mut found = 0;
        let mut unanswered: std::collections::HashSet<i32> = (1..=POLLS as i32).collect();
        for _ in 0..POLLS {
            let got = peer.receive();
            assert!(unanswered.remove(&got.opaque), "twice: {got:?}");
            match got.code {
                0 => found += 1,
                code => assert_eq!(code, RETRY_IMMEDIATELY, "{got:?}"),
            }
        }
        assert!(found > 0);
        peer.ok(&max_offset("orders", 0));
    }
    broker.stop();
}
