//! A frame is served whole however its bytes come: a large one in many odd pieces, many small ones in one piece. Neither
//! costs more than it has to: requests that come together are read, stored and answered together.
//! Method: raw writes of chosen sizes; the broker's own counters say how many reads, frames and appends there were.

mod support;

use std::io::Write;

use support::*;

/// `maxMessageSize`.
const BODY_MAX: usize = 4 * 1024 * 1024;

/// Bytes that show any shift or hole.
fn patterned(len: usize) -> Vec<u8> {
    (0..len as u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).take(len).collect()
}

#[test]
fn a_body_of_4_mib_in_odd_pieces() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    let body = patterned(BODY_MAX);
    let frame = send("orders", 0, body.clone()).frame(9);
    let sizes = [1, 3, 1, 2, 1, 7, 100, 1009, 4099, 65_537, 262_144, 262_145, 13, 1_000_003];
    let mut at = 0;
    for size in sizes.into_iter().cycle() {
        let end = (at + size).min(frame.len());
        peer.write(&frame[at..end]);
        at = end;
        if at == frame.len() {
            break;
        }
    }
    let sent = peer.receive();
    assert_eq!((sent.code, sent.opaque, sent.num("queueOffset")), (0, 9, 0), "{}", sent.remark);
    let got = peer.ok(&pull("orders", 0, 0));
    assert!(got.messages() == [(0, body)], "the body differs");
    broker.stop();
}

#[test]
fn small_frames_byte_by_byte() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    let frames: Vec<u8> = (1..=3).flat_map(|n| send("orders", 0, "x").frame(n)).collect();
    for byte in &frames {
        peer.write(std::slice::from_ref(byte));
    }
    for n in 1..=3 {
        let got = peer.receive();
        assert_eq!((got.opaque, got.code, got.num("queueOffset")), (n, 0, i64::from(n) - 1));
    }
    broker.stop();
}

#[test]
fn a_thousand_sends_in_one_write_are_served_together_and_in_order() {
    const SENDS: i32 = 1000;
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    let before = peer.ok(&Ask::new(28));
    let frames: Vec<u8> = (0..SENDS).flat_map(|n| send("orders", 0, format!("message {n}")).frame(n)).collect();
    // The answers are read at the same time: a peer that only writes is made to wait.
    let mut writer = peer.writer();
    let writing = std::thread::spawn(move || writer.write_all(&frames).unwrap());
    for n in 0..SENDS {
        let got = peer.receive();
        assert_eq!((got.opaque, got.code, got.num("queueOffset")), (n, 0, i64::from(n)), "{}", got.remark);
    }
    writing.join().unwrap();
    let after = peer.ok(&Ask::new(28));
    let grown = |name: &str| after.counter(name) - before.counter(name);
    let (frames, reads) = (grown("comet.net.frames"), grown("comet.net.reads"));
    assert!(frames > SENDS as u64 && frames > 4 * reads, "{frames} frames in {reads} reads");
    let (records, appends) = (grown("comet.store.records"), grown("comet.store.appends"));
    assert!(records == SENDS as u64 && records > 4 * appends, "{records} records in {appends} appends");
    let bodies = drain(&mut peer, "orders", 0, 0);
    assert!((0..SENDS).map(|n| format!("message {n}").into_bytes()).eq(bodies));
    broker.stop();
}
