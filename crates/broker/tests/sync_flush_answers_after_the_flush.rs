//! Under SYNC_FLUSH a send is answered SEND_OK when its message is on the disk, not before, and consumers see no message
//! that is not. A flush that is slow or fails is told to the sender, and nothing is lost of what was acknowledged.
//! Method: a disk in memory whose syncs are held up, fail, or after which the power is cut.

mod support;

use std::time::{Duration, Instant};

use cometmq_store::disk::Faulty;
use support::gated::Gated;
use support::*;

const FLUSH_DISK_TIMEOUT: i32 = 10;
const SERVICE_NOT_AVAILABLE: i32 = 14;
const PULL_NOT_FOUND: i32 = 19;

const SYNC: (&str, &str) = ("flushDiskType", "SYNC_FLUSH");

/// A topic `orders` whose queue 0 has one flushed message.
fn prepare(broker: &TestBroker) -> Peer {
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    assert_eq!(peer.ok(&send("orders", 0, "first")).num("queueOffset"), 0);
    assert_eq!(peer.ok(&pull("orders", 0, 0)).messages().len(), 1);
    peer
}

fn assert_nothing_after_first(peer: &mut Peer) {
    assert_eq!(peer.ok(&max_offset("orders", 0)).num("offset"), 1);
    assert_eq!(peer.ask(&pull("orders", 0, 1)).code, PULL_NOT_FOUND);
}

#[test]
fn neither_the_sender_nor_a_consumer_hears_of_it_before() {
    let disk = Gated::new();
    let broker = TestBroker::start_in_memory(disk.clone(), &[SYNC]);
    let (mut sender, mut consumer) = (prepare(&broker), broker.connect());
    disk.hold("commitlog");
    let waiting = consumer.post(&parked("orders", 0, 1, "*", LONG));
    let sent = sender.post(&send("orders", 0, "second"));
    disk.wait_for_sync();
    // Other requests are answered on both connections; the send and the pull are not.
    assert_nothing_after_first(&mut sender);
    assert_nothing_after_first(&mut consumer);
    disk.release();
    let got = sender.receive();
    assert_eq!((got.opaque, got.code, got.num("queueOffset")), (sent, 0, 1), "{}", got.remark);
    let got = consumer.receive();
    assert_eq!((got.opaque, got.messages()), (waiting, vec![(1, b"second".to_vec())]));
    broker.stop();
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[SYNC]);
    let mut sender = prepare(&broker);
    let mut bodies = vec![b"first".to_vec()];
    for n in 0..40 {
        let body = format!("message {n}");
        sender.ok(&send("orders", 0, body.clone()));
        bodies.push(body.into_bytes());
        if n % 8 == 0 {
            let after = TestBroker::start_in_memory(disk.surviving(), &[SYNC]);
            assert_eq!(drain(&mut after.connect(), "orders", 0, 0), bodies, "power cut after message {n}");
            after.stop();
        }
    }
    broker.stop();
}

#[test]
fn a_slow_flush_is_told_and_the_message_comes_later() {
    let disk = Gated::new();
    let broker = TestBroker::start_in_memory(disk.clone(), &[SYNC, ("syncFlushTimeout", "200")]);
    let mut sender = prepare(&broker);
    disk.hold("commitlog");
    let began = Instant::now();
    let got = sender.ask(&send("orders", 0, "second"));
    let took = began.elapsed();
    assert_eq!((got.code, got.num("queueOffset")), (FLUSH_DISK_TIMEOUT, 1));
    assert!(got.remark.contains("not flushed to disk in time") && got.fields.contains_key("msgId"), "{got:?}");
    assert!(took >= Duration::from_millis(200) && took < Duration::from_secs(3), "{took:?}");
    assert_nothing_after_first(&mut sender);
    disk.release();
    let got = sender.ok(&parked("orders", 0, 1, "*", LONG));
    assert_eq!(got.messages(), [(1, b"second".to_vec())]);
    sender.ok(&send("orders", 0, "third"));
    broker.stop();
}

#[test]
fn who_does_not_want_to_wait_is_answered_at_once() {
    let disk = Gated::new();
    let broker = TestBroker::start_in_memory(disk.clone(), &[SYNC]);
    let mut sender = prepare(&broker);
    disk.hold("commitlog");
    let waits = sender.post(&send_with("orders", 0, "second", "WAIT", "true"));
    disk.wait_for_sync();
    let got = sender.ok(&send_with("orders", 0, "third", "WAIT", "false"));
    assert_eq!(got.num("queueOffset"), 2);
    assert_nothing_after_first(&mut sender);
    disk.release();
    let got = sender.receive();
    assert_eq!((got.opaque, got.code), (waits, 0));
    broker.stop();
}

#[test]
fn after_a_failed_flush_nothing_is_accepted_and_nothing_unflushed_is_shown() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[SYNC]);
    let (mut sender, mut consumer) = (prepare(&broker), broker.connect());
    disk.fail_syncs(true);
    let got = sender.ask(&send("orders", 0, "second"));
    assert!([FLUSH_DISK_TIMEOUT, SERVICE_NOT_AVAILABLE].contains(&got.code), "{got:?}");
    assert!(got.remark.contains("sync failed"), "{got:?}");
    // It may be well again: what the failed sync left on the disk, nobody knows.
    disk.fail_syncs(false);
    for wait in ["true", "false"] {
        let got = sender.ask(&send_with("orders", 0, "third", "WAIT", wait));
        assert_eq!(got.code, SERVICE_NOT_AVAILABLE);
        assert!(got.remark.contains("takes no more writes") && got.remark.contains("sync failed"), "{}", got.remark);
    }
    assert_nothing_after_first(&mut consumer);
    // What was flushed is still delivered.
    assert_eq!(consumer.ok(&pull("orders", 0, 0)).messages(), [(0, b"first".to_vec())]);
    drop(broker);
    let after = TestBroker::start_in_memory(disk.surviving_kill(), &[SYNC]);
    let bodies = drain(&mut after.connect(), "orders", 0, 0);
    assert!(bodies == [b"first".to_vec()] || bodies == [b"first".to_vec(), b"second".to_vec()], "{bodies:?}");
    after.stop();
}
