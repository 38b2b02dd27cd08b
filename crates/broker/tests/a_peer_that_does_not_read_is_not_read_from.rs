//! A peer that asks and asks and never takes its answers costs the broker a bounded amount of memory, no processor time and
//! nobody else's time; when it reads at last, it gets every answer.
//! Method: one connection sends pulls of large messages without reading, until the broker reads no more of it; meanwhile
//! another connection works, and the memory and processor time of this process, which runs the broker, are looked at.

mod support;

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cometmq_store::disk::Faulty;
use support::*;

const PAUSED: &str = "comet.net.readPaused";
const MESSAGE: usize = 60_000;
const MESSAGES: i64 = 64;
/// Each is answered with 4 messages, about 256 KiB: 500 MB in all.
const PULLS: i32 = 2000;
/// What the answers may cost while they wait; sockets hold some more, outside of the process.
const MEMORY_MAX: u64 = 48 << 20;

/// What a test measures is of the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn fill(broker: &TestBroker) {
    let mut peer = broker.connect();
    peer.ok(&create_topic("backlog", 1, 6));
    for n in 0..MESSAGES {
        peer.ok(&send("backlog", 0, vec![n as u8; MESSAGE]));
    }
    peer.ok(&pull("backlog", 0, 0));
}

/// Anonymous memory of this process, bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // utime and stime, in ticks of 10 ms.
    let ticks: u64 = fields[11..13].iter().map(|f| f.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}

/// Pulls, of which the answers are not read, on a thread of its own; then everything that is to hold meanwhile.
fn check(broker: &TestBroker, pull_bytes: i32) {
    let mut steady = [broker.connect(), broker.connect()];
    steady.iter_mut().for_each(|peer| drop(peer.ok(&send("steady", 0, "x"))));
    let (before, paused) = (memory(), broker.counter(PAUSED));
    let mut greedy = broker.connect();
    let ask = pull("backlog", 0, 0).field("maxMsgBytes", pull_bytes);
    let frames: Vec<u8> = (0..PULLS).flat_map(|n| ask.frame(n)).collect();
    let mut writer = greedy.writer();
    // Ends when the broker reads again, further down.
    let writing = std::thread::spawn(move || writer.write_all(&frames));
    wait_until("paused", || broker.counter(PAUSED) > paused);

    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    while began.elapsed() < Duration::from_secs(1) {
        for peer in &mut steady {
            let asked = Instant::now();
            peer.ok(&send("steady", 0, "x"));
            slowest = slowest.max(asked.elapsed());
        }
    }
    assert!(slowest < Duration::from_secs(1), "another connection waited {slowest:?}");
    let grown = memory().saturating_sub(before);
    assert!(grown < MEMORY_MAX, "{} MiB for a peer that does not read", grown >> 20);

    // Nothing to do for anybody: a stretch of time is what is measured here.
    let (busy, began) = (processor_time(), Instant::now());
    std::thread::sleep(Duration::from_millis(500));
    let (busy, stretch) = (processor_time() - busy, began.elapsed());
    assert!(busy < stretch / 4, "{busy:?} of processor time in {stretch:?} of waiting for a peer");

    let mut opaques: Vec<i32> = Vec::new();
    for _ in 0..PULLS {
        let got = greedy.receive();
        assert_eq!((got.code, got.messages()[0].0), (0, 0));
        opaques.push(got.opaque);
    }
    writing.join().unwrap().unwrap();
    opaques.sort_unstable();
    assert!((0..PULLS).eq(opaques), "an answer is missing");
}

/// Each of these is read by a thread that may wait for the disk.
#[test]
fn pulls_from_a_cold_disk() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    fill(&broker);
    broker.stop();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    disk.make_cold(true);
    check(&broker, 65_536);
    broker.stop();
}

/// One message that wakes them all is not copied for each of them. They are asked to come again, and find it then.
#[test]
fn waiting_pulls_that_one_message_wakes() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const WAITING: i32 = 2000;
    let broker = TestBroker::start(&[]);
    fill(&broker);
    let (mut greedy, mut sender) = (broker.connect(), broker.connect());
    let mut witnesses = [broker.connect(), broker.connect()];
    let waits = parked("backlog", 0, MESSAGES, "*", LONG);
    (0..WAITING).for_each(|n| greedy.write(&waits.frame(n)));
    assert_eq!(greedy.ok(&max_offset("backlog", 0)).num("offset"), MESSAGES);
    let before = memory();
    let body = vec![b'x'; 1_000_000];
    sender.ok(&send("backlog", 0, body.clone()));
    // One on either shard: its answer comes behind the wake-up.
    witnesses.iter_mut().for_each(|peer| drop(peer.ok(&max_offset("backlog", 0))));
    let grown = memory().saturating_sub(before);
    assert!(grown < MEMORY_MAX, "{} MiB for {WAITING} waiting pulls", grown >> 20);
    let (mut found, mut again) = (0, 0);
    for _ in 0..WAITING {
        let got = greedy.receive();
        match got.code {
            0 => found += got.messages().len(),
            20 => again += usize::from(got.num("nextBeginOffset") == MESSAGES),
            other => panic!("code {other}: {}", got.remark),
        }
    }
    assert!(found > 0 && again > 0 && found + again == WAITING as usize, "{found} found, {again} to come again");
    assert!(greedy.ok(&pull("backlog", 0, MESSAGES)).messages() == [(MESSAGES, body)]);
    broker.stop();
}

#[test]
fn pulls_from_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = TestBroker::start(&[]);
    fill(&broker);
    check(&broker, 262_144);
    broker.stop();
}
