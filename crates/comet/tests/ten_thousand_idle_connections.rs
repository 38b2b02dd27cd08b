//! Ten thousand connections that say next to nothing cost little memory and nobody any time, and go when they stay unfinished.
//! Method: a real process with an idle limit of a few seconds. So many peers connect, send the first byte of a frame and no
//! more; the anonymous memory of the process and the times of another client's sends are compared with those before.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::*;

const CONNECTIONS: u64 = 10_000;
/// What a connection may cost: 40 MB for all.
const BYTES_EACH: u64 = 4_000;
/// Descriptors for other things, in either process.
const SPARE: u64 = 500;
const IDLE: Duration = Duration::from_secs(10);

/// Raises the limit of this process, which its children inherit; returns how many connections that allows.
fn connections() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = CONNECTIONS + SPARE;
    let allowed = limit.maximum.map_or(wanted, |max| max.min(wanted));
    if limit.current.is_some_and(|now| now < allowed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: limit.maximum }).unwrap();
    }
    allowed - SPARE
}

#[test]
fn ten_thousand_idle_connections() {
    let dir = tempfile::tempdir().unwrap();
    let connections = connections();
    let idle = format!("serverChannelMaxIdleTimeSeconds={}", IDLE.as_secs());
    let args = ["--namesrv-port", "0", "--broker-port", "0", "--set", &idle];
    let comet = Comet::start_with(&dir.path().join("data"), &args);
    let mut peer = Peer::connect(comet.broker);
    peer.ok(&create_topic("orders", 1, 6));
    slowest_but_one_percent(&mut peer);
    let alone = slowest_but_one_percent(&mut peer);
    let before = anonymous_memory(comet.pid());

    let mut idle = Vec::new();
    let idle_since = Instant::now();
    let mut last_sent = Instant::now();
    for _ in 0..connections {
        let mut stream = TcpStream::connect(comet.broker).unwrap();
        stream.write_all(&[0]).unwrap();
        idle.push(stream);
        if last_sent.elapsed() > IDLE / 4 {
            // This one is not idle.
            peer.ok(&send("orders", 0, "x"));
            last_sent = Instant::now();
        }
    }
    let mut open = 0;
    while open < connections && idle_since.elapsed() < IDLE / 2 {
        open = peer.ok(&Ask::new(28)).counter("comet.net.connections");
    }
    let grown = anonymous_memory(comet.pid()).saturating_sub(before);
    let crowded = slowest_but_one_percent(&mut peer);
    assert!(idle_since.elapsed() < IDLE, "too slow to measure: {:?}", idle_since.elapsed());
    assert!(open >= connections, "only {open} were open {:?} after the first", IDLE / 2);
    assert!(grown <= connections * BYTES_EACH, "{} KiB for {connections} connections", grown >> 10);
    let limit = 2 * alone + Duration::from_millis(1);
    assert!(crowded < limit, "p99 of sends was {alone:?} and is {crowded:?}");

    // None has sent a whole frame, so all are closed.
    let end = Instant::now() + IDLE + LONG;
    for mut stream in idle {
        peer.ok(&send("orders", 0, "x"));
        stream.set_read_timeout(Some(end.saturating_duration_since(Instant::now()).max(IDLE))).unwrap();
        match stream.read(&mut [0; 16]) {
            Ok(0) => {}
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("not closed: {other:?}"),
        }
    }
    peer.ok(&send("orders", 0, "x"));
    assert_eq!(peer.ok(&Ask::new(28)).counter("comet.net.idleClosed"), connections);
    assert!(comet.terminate().success());
}
