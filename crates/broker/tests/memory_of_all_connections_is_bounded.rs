//! However many peers send large frames slowly, or take no answers, together they hold a bounded amount of memory: requests
//! that find no room in time are refused with SYSTEM_BUSY and the figures, pulls are delayed, who is in the way of others is
//! closed, and everybody else's work goes on.
//! Method: many peers misbehave at once; others work meanwhile; memory of this process, which runs the broker, and the
//! counters of 28 are looked at.

mod support;

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use support::*;

/// Beyond what the accounts allow (8 MiB each): buffers that grow by doubling, and what the allocator keeps.
const MEMORY_MAX: u64 = 48 << 20;
const PEERS: usize = 64;

/// What a test measures is of the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Anonymous memory of this process, bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Writes as much as the broker takes without waiting for it.
fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> usize {
    stream.set_nonblocking(true).unwrap();
    let mut written = 0;
    let mut idle = Instant::now();
    while written < bytes.len() && idle.elapsed() < Duration::from_millis(200) {
        match stream.write(&bytes[written..]) {
            Ok(n) => {
                written += n;
                idle = Instant::now();
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(e) => panic!("{e}"),
        }
    }
    stream.set_nonblocking(false).unwrap();
    written
}

/// Frames of 4 MB of which the last byte does not come: two fit at a time. The others are refused, and their connections
/// are of use again once they have sent the rest; the two are closed since others wait for what they hold.
#[test]
fn large_frames_that_stay_unfinished() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = TestBroker::start(&[]);
    broker.connect().ok(&create_topic("large", 1, 6));
    let steady = SteadySender::start(&broker, "steady");
    let before = memory();
    let frame = send("large", 0, vec![b'x'; 4_000_000]).frame(7);
    let unfinished = &frame[..frame.len() - 1];
    let mut peers: Vec<(Peer, usize)> = Vec::new();
    for _ in 0..PEERS {
        let peer = broker.connect();
        let written = write_some(&mut peer.writer(), unfinished);
        peers.push((peer, written));
        let grown = memory().saturating_sub(before);
        assert!(grown < MEMORY_MAX, "{} MiB for {} unfinished frames", grown >> 20, peers.len());
    }
    steady.goes_on(100);
    // Two have leave to be sent, and do not use it.
    let mut refused = 0;
    for (peer, written) in peers.iter_mut().skip(2) {
        let got = peer.receive();
        assert_eq!((got.code, got.opaque), (2, 7));
        let says = got.remark.split("waited").next().unwrap();
        assert_eq!(says, format!("[OVERLOAD]system busy, a request of {} bytes ", frame.len()));
        assert!(got.remark.contains(", large ones ") && got.remark.ends_with("limit 8388608"), "{}", got.remark);
        peer.write(&frame[*written..]);
        peer.ok(&send("steady", 0, "after a refused one"));
        refused += 1;
    }
    assert_eq!(refused, PEERS - 2);
    assert!(broker.counter("comet.net.memoryRefused") >= (PEERS - 2) as u64);

    // Somebody waits for what the two hold; in the end they are closed, and there is room.
    let mut large = broker.connect();
    let began = Instant::now();
    loop {
        let got = large.ask(&send("large", 0, vec![b'x'; 4_000_000]));
        if got.code == 0 {
            break;
        }
        assert_eq!(got.code, 2, "{}", got.remark);
        assert!(began.elapsed() < Duration::from_secs(30), "there was never room again");
    }
    assert_eq!(broker.counter("comet.net.stalledClosed"), 2);
    assert_eq!(broker.counter("comet.net.largeFrameBytes"), 0);
    steady.goes_on(100);
    assert!(steady.stop() < Duration::from_secs(3), "another client waited");
    broker.stop();
}

/// Frames that are finished in turn are all taken, however many come at once.
#[test]
fn large_frames_that_come_at_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = TestBroker::start(&[]);
    broker.connect().ok(&create_topic("large", 1, 6));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut peer = broker.connect();
                for _ in 0..5 {
                    peer.ok(&send("large", 0, vec![b'x'; 4_000_000]));
                }
            });
        }
    });
    assert_eq!(broker.connect().ok(&max_offset("large", 0)).num("offset"), 40);
    assert_eq!(broker.counter("comet.net.memoryRefused"), 0);
    broker.stop();
}

/// Consumers that take no answers: when they hold all that answers may, the pulls of others wait, and are answered once
/// those in the way are closed. Sends go on all the time.
#[test]
fn answers_that_nobody_takes() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = TestBroker::start(&[]);
    let mut filler = broker.connect();
    filler.ok(&create_topic("backlog", 1, 6));
    for n in 0..64u8 {
        filler.ok(&send("backlog", 0, vec![n; 60_000]));
    }
    let steady = SteadySender::start(&broker, "steady");
    let before = memory();
    let ask = pull("backlog", 0, 0);
    // Each answer has 256 KiB; sockets take some MB of them.
    let frames: Vec<u8> = (0..100).flat_map(|n| ask.frame(n)).collect();
    let mut deaf: Vec<Peer> = Vec::new();
    for _ in 0..PEERS {
        let mut peer = broker.connect();
        peer.write(&frames);
        deaf.push(peer);
    }
    let full = broker.counter("comet.net.responseBytesMax");
    wait_until("full", || broker.counter("comet.net.responseBytes") >= full);
    let grown = memory().saturating_sub(before);
    assert!(grown < MEMORY_MAX, "{} MiB for answers that are not taken", grown >> 20);
    steady.goes_on(100);

    let mut consumer = broker.connect();
    let waits = consumer.post(&parked("backlog", 0, 0, "*", Duration::from_secs(60)));
    let got = consumer.receive_within(Duration::from_secs(40)).expect("an answer, once those in the way are closed");
    assert_eq!((got.opaque, got.code, got.messages()[0].0), (waits, 0, 0));
    assert!(broker.counter("comet.net.stalledClosed") > 0);
    assert!(steady.stop() < Duration::from_secs(3), "another client waited");
    broker.stop();
}
