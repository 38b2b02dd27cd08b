//! What the tests of the store share: small files, so that a few messages roll segments and queue files; numbered
//! messages, so that a body says which message it is; and a reader that checks everything that it sees.

#![allow(dead_code)] // Each test uses its part.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_store::disk::{Disk, Faulty};
use cometmq_store::{
    Appended, Batch, Error, FlushMode, Limits, Options, QueueRef, Read, Retention, Status, Store, Wait,
};
use cometmq_wire::record::{Draft, Record};

/// Where the store lies on a disk in memory.
pub const ROOT: &str = "/data/store";
pub const SEGMENT: u64 = 4096;
/// Five entries.
pub const QUEUE_FILE: u64 = 100;
/// An index file.
pub const INDEX_SLOTS: u64 = 50;
pub const INDEX_ITEMS: u64 = 200;
/// Longer than any test waits for what must come.
pub const LONG: Duration = Duration::from_secs(20);

/// Small files; the background threads do what they are asked for and otherwise sleep.
pub fn options(root: impl AsRef<Path>, flush: FlushMode) -> Options {
    Options {
        segment_bytes: Some(SEGMENT),
        queue_file_bytes: Some(QUEUE_FILE),
        index_slots: Some(INDEX_SLOTS as u32),
        index_items: Some(INDEX_ITEMS as u32),
        index_interval: Duration::ZERO,
        flush,
        flush_interval: Duration::from_millis(5),
        dispatch_interval: Duration::from_millis(2),
        checkpoint_interval: Duration::ZERO,
        tail_bytes: 1500,
        ..Options::new(root.as_ref())
    }
}

pub fn open(disk: &Faulty, flush: FlushMode) -> Result<Store, Error> {
    Store::open(options(ROOT, flush), Arc::new(disk.clone()), Clock::manual(1_000))
}

pub fn open_at(root: impl AsRef<Path>, flush: FlushMode) -> Result<Store, Error> {
    Store::open(options(root, flush), Arc::new(cometmq_store::disk::Real), Clock::System)
}

/// An hour, for clocks and files.
pub const HOUR: Duration = Duration::from_secs(3600);

/// Files that were not written for an hour expire at 04:00 UTC; runs follow each other closely.
pub fn retention() -> Retention {
    Retention {
        reserved: HOUR,
        hours: vec![4],
        batch_max: usize::MAX,
        pause: Duration::ZERO,
        queue_pause: Duration::ZERO,
        free_min: 0,
        interval: Duration::from_millis(1),
        first_after: Duration::ZERO,
        space_interval: Duration::from_millis(2),
        hour_of: |ms| (ms / 3_600_000 % 24) as u32,
        ..Retention::default()
    }
}

/// A store whose files are stamped by `clock`.
pub fn open_keeping(disk: &Faulty, retention: Retention, clock: &Clock) -> Result<Store, Error> {
    disk.set_clock(clock.clone());
    let options = Options { retention, ..options(ROOT, FlushMode::Async) };
    Store::open(options, Arc::new(disk.clone()), clock.clone())
}

/// Waits for two whole runs of the cleaning: what it would delete is gone.
pub fn cleaned(store: &Store) {
    let runs = || store.stats().clean_runs.load(std::sync::atomic::Ordering::Acquire);
    let before = runs();
    wait_until("cleaned", || runs() >= before + 2);
}

pub fn draft<'a>(topic: &'a str, body: &'a [u8], properties: &'a str) -> Draft<'a> {
    Draft {
        topic,
        queue_id: 0,
        flag: 0,
        sys_flag: 0,
        born_ms: 1,
        born_host: "10.0.0.1:4000".parse().unwrap(),
        store_host: "10.0.0.2:10911".parse().unwrap(),
        reconsume_times: 0,
        prepared_offset: 0,
        body,
        properties,
    }
}

/// Appends `bodies` to one queue in one batch.
pub fn send<B: AsRef<[u8]>>(store: &Store, queue: &QueueRef, bodies: &[B]) -> Result<Vec<Appended>, Error> {
    let mut batch = Batch::default();
    for body in bodies {
        batch.push(&draft(queue.topic(), body.as_ref(), "TAGS\u{1}a\u{2}"), queue)?;
    }
    store.append(&mut batch)?;
    Ok((0..batch.len()).map(|i| batch.placed(i).expect("appended without an error")).collect())
}

/// A body of `len` bytes at least, that starts with a name.
pub fn body(name: &str, len: usize) -> Vec<u8> {
    let mut body = name.as_bytes().to_vec();
    let fill = name.bytes().fold(7u8, |h, b| h.wrapping_mul(31).wrapping_add(b));
    while body.len() < len {
        body.push(fill.wrapping_add(body.len() as u8));
    }
    body
}

pub fn limits(count: usize) -> Limits {
    Limits {
        count,
        hot_count: usize::MAX,
        hot_bytes: usize::MAX,
        cold_count: usize::MAX,
        cold_bytes: usize::MAX,
        hot_window: u64::MAX,
    }
}

pub fn read(store: &Store, queue: &QueueRef, from: i64, count: usize) -> Read {
    store.read(queue, from, &limits(count), Wait::Yes, &|_| true).unwrap()
}

/// The bodies of a queue from its first offset to its end. Every record says the queue and the offset that it was read
/// from and is intact; no offset is missing.
pub fn drain(store: &Store, topic: &str, id: i32) -> Vec<Vec<u8>> {
    let found = drain_with_holes(store, topic, id);
    let queue = store.queue(topic, id).unwrap();
    let offsets: Vec<i64> = found.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, (queue.min()..queue.end()).collect::<Vec<_>>(), "offsets of {topic}-{id}");
    found.into_iter().map(|(_, body)| body).collect()
}

/// As [`drain`], with the offsets, of which some may be missing.
pub fn drain_with_holes(store: &Store, topic: &str, id: i32) -> Vec<(i64, Vec<u8>)> {
    let queue = store.queue(topic, id).unwrap();
    let mut found: Vec<(i64, Vec<u8>)> = Vec::new();
    let mut next = queue.min();
    while next < queue.end() {
        let read = read(store, &queue, next, 7);
        assert!(matches!(read.status, Status::Found | Status::NoMatch), "{topic}-{id} at {next}: {read:?}");
        assert!(read.next > next, "{topic}-{id} at {next}: {read:?}");
        for bytes in &read.records {
            let record = Record::parse(bytes).unwrap();
            assert!(record.body_is_intact(), "{topic}-{id} offset {}", record.queue_offset());
            assert_eq!((record.topic(), record.queue_id(), record.len()), (topic, id, bytes.len()));
            let offset = record.queue_offset();
            assert!((next..read.next).contains(&offset), "{topic}-{id} at {next}: offset {offset}");
            assert!(found.last().is_none_or(|(last, _)| *last < offset), "{topic}-{id}: {offset} is repeated");
            found.push((offset, record.body().to_vec()));
        }
        next = read.next;
    }
    assert_eq!(next, queue.end(), "{topic}-{id}");
    found
}

/// Waits until everything that is written is durable and in the queue files, and checkpointed.
pub fn settle(store: &Store) {
    assert!(store.wait_durable(store.written(), LONG));
    wait_until("dispatched", || store.dispatched() == store.written());
}

/// For what has no event to wait for.
pub fn wait_until(what: &str, done: impl Fn() -> bool) {
    let end = std::time::Instant::now() + LONG;
    while !done() {
        assert!(std::time::Instant::now() < end, "not {what} within {LONG:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Names of the files in a directory, sorted.
pub fn files(disk: &dyn Disk, dir: impl AsRef<Path>) -> Vec<String> {
    let mut names: Vec<String> = disk
        .list(dir.as_ref())
        .map(|entries| entries.into_iter().filter(|e| !e.is_dir).map(|e| e.name).collect())
        .unwrap_or_default();
    names.sort();
    names
}
