//! A waiting pull that wants a tag is not answered because of messages with other tags: it stays, wakes for a message that
//! it wants, and at its deadline says how far it has looked, so that the next pull does not look again.
//! Method: one pull waits on one connection while another connection sends; a request behind the pull on the same connection
//! shows that the pull is still unanswered after each message.

mod support;

use std::time::{Duration, Instant};

use cometmq_store::disk::Faulty;
use support::*;

/// Topic and group are there: what creates them first would let a pull come late.
fn prepare(peer: &mut Peer) {
    peer.ok(&create_topic("orders", 1, 6));
    assert_eq!(peer.ask(&pull("orders", 0, 0)).code, 19);
}

fn send_others(sender: &mut Peer, count: i64) {
    for _ in 0..count {
        sender.ok(&send_with("orders", 0, "other", "TAGS", "other"));
    }
}

/// The next answer on `puller`'s connection is the one of a request sent just now, not the pull's.
fn assert_still_waits(puller: &mut Peer, end: i64) {
    assert_eq!(puller.ok(&max_offset("orders", 0)).num("offset"), end);
}

#[test]
fn a_parked_poll_stays_until_its_tag_comes() {
    let broker = TestBroker::start(&[]);
    let (mut puller, mut sender) = (broker.connect(), broker.connect());
    prepare(&mut sender);
    let waiting = puller.post(&parked("orders", 0, 0, "paid || sent", LONG));
    assert_still_waits(&mut puller, 0);
    for n in 1..=5 {
        send_others(&mut sender, 1);
        assert_still_waits(&mut puller, n);
    }
    sender.ok(&send_with("orders", 0, "a paid one", "TAGS", "paid"));
    let got = puller.receive();
    assert_eq!((got.opaque, got.code), (waiting, 0));
    assert_eq!(got.messages(), [(5, b"a paid one".to_vec())]);
    assert_eq!(got.num("nextBeginOffset"), 6);
    broker.stop();
}

#[test]
fn at_its_deadline_it_says_how_far_it_looked() {
    let broker = TestBroker::start(&[]);
    let (mut puller, mut sender) = (broker.connect(), broker.connect());
    prepare(&mut sender);
    let (suspend, began) = (Duration::from_millis(400), Instant::now());
    puller.post(&parked("orders", 0, 0, "paid", suspend));
    assert_still_waits(&mut puller, 0);
    send_others(&mut sender, 7);
    let got = puller.receive();
    let took = began.elapsed();
    assert_eq!(got.code, 19, "PULL_NOT_FOUND: {got:?}");
    assert_eq!((got.num("nextBeginOffset"), got.num("minOffset"), got.num("maxOffset")), (7, 0, 7));
    assert!(took >= suspend && took < suspend + Duration::from_secs(2), "{took:?}");
    broker.stop();
}

/// Its entries may be in files by the time it is woken, and not readable without waiting for the disk.
#[test]
fn it_stays_when_what_it_looks_through_is_not_in_memory() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(
        disk.clone(),
        &[("flushIntervalConsumeQueue", "1"), ("flushIntervalCommitLog", "1")],
    );
    let (mut puller, mut sender) = (broker.connect(), broker.connect());
    prepare(&mut sender);
    disk.make_cold(true);
    puller.post(&parked("orders", 0, 0, "paid", LONG));
    for n in 0..1000 {
        assert_still_waits(&mut puller, n);
        send_others(&mut sender, 1);
    }
    sender.ok(&send_with("orders", 0, "a paid one", "TAGS", "paid"));
    assert_eq!(puller.receive().messages(), [(1000, b"a paid one".to_vec())]);
    broker.stop();
}

#[test]
fn a_poll_that_goes_with_its_connection_disturbs_nobody() {
    let broker = TestBroker::start(&[]);
    let (mut gone, mut stays, mut sender) = (broker.connect(), broker.connect(), broker.connect());
    prepare(&mut sender);
    gone.post(&parked("orders", 0, 0, "*", LONG));
    assert_still_waits(&mut gone, 0);
    stays.post(&parked("orders", 0, 0, "*", LONG));
    assert_still_waits(&mut stays, 0);
    drop(gone);
    sender.ok(&send("orders", 0, "first"));
    assert_eq!(stays.receive().messages(), [(0, b"first".to_vec())]);
    broker.stop();
}
