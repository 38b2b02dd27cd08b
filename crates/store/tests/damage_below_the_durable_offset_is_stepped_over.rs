//! A record that was durable and no longer reads back is the disk's fault: exactly this record is missing, it is counted,
//! and nothing in the log is changed. It holds when the record is met by a reader and when it is met by recovery, whichever
//! byte is wrong.

mod support;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use cometmq_store::FlushMode::Async;
use cometmq_store::disk::{Disk, Faulty, Open};
use cometmq_store::{Appended, Store};
use support::{ROOT, SEGMENT, body, drain_with_holes, files, open, send};

const LOST: usize = 4;

fn bodies() -> Vec<Vec<u8>> {
    (0..12).map(|n| body(&format!("message {n}"), 100 + 200 * (n % 4))).collect()
}

/// Twelve messages in a queue, over several segments and queue files, and a clean stop.
fn stopped() -> (Faulty, Vec<Appended>) {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    let placed: Vec<Appended> = bodies().iter().flat_map(|b| send(&store, &queue, &[b]).unwrap()).collect();
    store.close().unwrap();
    assert!(placed.last().unwrap().log_offset > SEGMENT);
    (disk, placed)
}

fn segment(at: u64) -> PathBuf {
    Path::new(ROOT).join(format!("commitlog/{:020}", at - at % SEGMENT))
}

/// Flips a bit of the lost record, `at` bytes from its start.
fn flip(disk: &Faulty, record: &Appended, at: u64) {
    let file = disk.open(&segment(record.log_offset), Open::Write).unwrap();
    let at = record.log_offset % SEGMENT + at;
    let mut byte = [0];
    file.read_at(&mut byte, at, true).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

fn log(disk: &Faulty) -> Vec<u8> {
    let dir = Path::new(ROOT).join("commitlog");
    files(disk, &dir).iter().flat_map(|name| disk.read_all(&dir.join(name)).unwrap()).collect()
}

fn damaged(store: &Store) -> u64 {
    store.stats().damaged.load(Ordering::Relaxed)
}

/// Everything but the lost record, at its old offset.
fn expected() -> Vec<(i64, Vec<u8>)> {
    (0..).zip(bodies()).filter(|(n, _)| *n != LOST as i64).collect()
}

/// Total size, magic, crc, log offset, body, length of topic and of properties: what a checksum or a length covers.
fn wrong_bytes(record: &Appended) -> [u64; 8] {
    let len = record.log_end - record.log_offset;
    [1, 3, 5, 10, 33, 88 + 20, len - 11, len - 9]
}

#[test]
fn met_by_a_reader() {
    let (_, placed) = stopped();
    for at in wrong_bytes(&placed[LOST]) {
        let (disk, _) = stopped();
        flip(&disk, &placed[LOST], at);
        let before = log(&disk);
        let store = open(&disk, Async).unwrap();
        assert_eq!(damaged(&store), 0, "byte {at}: recovery has no reason to look there");
        let found = drain_with_holes(&store, "t", 0);
        assert_eq!(found, expected(), "byte {at}");
        assert_eq!(damaged(&store), 1, "byte {at}");
        assert!(log(&disk) == before, "byte {at}");
    }
}

#[test]
fn met_by_recovery() {
    let (_, placed) = stopped();
    for at in wrong_bytes(&placed[LOST]) {
        let (disk, _) = stopped();
        flip(&disk, &placed[LOST], at);
        let before = log(&disk);
        // Without its files the queue is rebuilt from the log.
        let queue = Path::new(ROOT).join("consumequeue/t/0");
        files(&disk, &queue).iter().for_each(|name| disk.remove(&queue.join(name)).unwrap());
        let store = open(&disk, Async).unwrap();
        assert_eq!(damaged(&store), 1, "byte {at}");
        assert_eq!(drain_with_holes(&store, "t", 0), expected(), "byte {at}");
        assert!(log(&disk) == before, "byte {at}");
        assert!(!files(&disk, Path::new(ROOT).join("comet")).iter().any(|name| name.starts_with("cut-")));

        // And it stays so when the rebuilt files are read, after a clean stop.
        let queue = store.queue("t", 0).unwrap();
        assert_eq!(send(&store, &queue, &["after"]).unwrap()[0].queue_offset, 12, "byte {at}");
        store.close().unwrap();
        let store = open(&disk, Async).unwrap();
        let mut all = expected();
        all.push((12, b"after".to_vec()));
        assert_eq!(drain_with_holes(&store, "t", 0), all, "byte {at}");
        assert_eq!(store.queue("t", 0).unwrap().min(), 0, "byte {at}");
    }
}

#[test]
fn the_last_record_before_the_durable_end() {
    let (disk, placed) = stopped();
    let last = placed.last().unwrap();
    flip(&disk, last, 100);
    disk.remove(&Path::new(ROOT).join("consumequeue/t/0/00000000000000000000")).unwrap();
    let before = log(&disk);
    let store = open(&disk, Async).unwrap();
    assert_eq!(damaged(&store), 1);
    assert_eq!(store.written(), last.log_end, "the log goes on behind what was durable");
    let found: Vec<Vec<u8>> = drain_with_holes(&store, "t", 0).into_iter().map(|(_, body)| body).collect();
    assert_eq!(found, bodies()[..11]);
    assert!(log(&disk) == before);
}
