//! A consumer that asks for a large backlog and never reads an answer costs the server next to no memory, and nobody any time.
//! Method: a real process with 200 MB of messages. A peer writes pulls of all of it until nobody takes them any more; the
//! anonymous memory of the process and the times of another client's sends are compared with those before.

mod support;

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

use support::*;

const BODY: usize = 100_000;
const MESSAGES: i64 = 2_000;
const MEMORY_MAX: u64 = 2 << 20;

fn ask(n: i64) -> Vec<u8> {
    pull("backlog", 0, (2 * n) % MESSAGES).frame(n as i32)
}

/// Writes until the server takes no more; how many pulls that were.
fn pull_all_and_never_read(peer: &Peer) -> i64 {
    let mut writer = peer.writer();
    writer.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    for n in 0.. {
        match writer.write_all(&ask(n)) {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return n,
            Err(e) => panic!("{e}"),
        }
    }
    unreachable!()
}

/// As many pulls at once as a read of the server takes, and their answers: what the server needs for anybody is in use
/// afterwards, on the threads of two connections.
fn pull_and_read(addr: SocketAddr) {
    let mut peers = [Peer::connect(addr), Peer::connect(addr)];
    for peer in &mut peers {
        let asks: Vec<u8> = (0..MESSAGES / 2).flat_map(ask).collect();
        let mut writer = peer.writer();
        let writing = std::thread::spawn(move || writer.write_all(&asks).unwrap());
        (0..MESSAGES / 2).for_each(|_| assert_eq!(peer.receive().code, 0));
        writing.join().unwrap();
    }
}

#[test]
fn a_consumer_that_never_reads() {
    let dir = tempfile::tempdir().unwrap();
    let comet = Comet::start(&dir.path().join("data"));
    let mut peer = Peer::connect(comet.broker);
    for topic in ["orders", "backlog"] {
        peer.ok(&create_topic(topic, 1, 6));
    }
    for n in 0..MESSAGES {
        peer.ok(&send("backlog", 0, vec![n as u8; BODY]));
    }
    pull_and_read(comet.broker);
    slowest_but_one_percent(&mut peer);
    let alone = slowest_but_one_percent(&mut peer);
    let before = anonymous_memory(comet.pid());

    let greedy = Peer::connect(comet.broker);
    let asked = pull_all_and_never_read(&greedy);
    // Now, since the sends that follow are kept in memory for a while.
    let grown = anonymous_memory(comet.pid()).saturating_sub(before);
    let beside = slowest_but_one_percent(&mut peer);
    assert!(grown <= MEMORY_MAX, "{} KiB for a peer that does not read the answers to {asked} pulls", grown >> 10);
    let limit = 2 * alone + Duration::from_millis(1);
    assert!(beside < limit, "p99 of sends was {alone:?} and is {beside:?}");
    assert!(peer.ok(&Ask::new(28)).counter("comet.net.readPaused") > 0, "the greedy one was never paused");
    drop(greedy);
    assert!(comet.terminate().success());
}
