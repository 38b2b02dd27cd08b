//! Behind the durable offset the log ends at the first record that is not whole, as a power cut leaves it: a torn record,
//! a hole of zeros with whole records behind it, garbage behind the end. What lies behind goes to `comet/cut-<offset>`,
//! zeros take its place, and nothing of it comes back later: not from the log when it grows over that place, and not from
//! queue entries that were already written for it.

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_store::FlushMode::Async;
use cometmq_store::disk::{Disk, Faulty, Open};
use cometmq_store::{Appended, Options, Store};
use support::{LONG, ROOT, body, drain, files, options, send, wait_until};

/// One segment; the durable offset of the checkpoint stays where the last clean stop left it.
fn open(disk: &Faulty) -> Store {
    let options = Options {
        segment_bytes: Some(64 << 10),
        checkpoint_interval: Duration::from_secs(3600),
        tail_bytes: 0,
        ..options(ROOT, Async)
    };
    Store::open(options, Arc::new(disk.clone()), Clock::manual(1_000)).unwrap()
}

fn path(name: impl AsRef<Path>) -> PathBuf {
    Path::new(ROOT).join(name)
}

fn log(disk: &Faulty) -> Vec<u8> {
    disk.read_all(&path("commitlog/00000000000000000000")).unwrap()
}

fn overwrite(disk: &Faulty, at: u64, bytes: &[u8]) {
    disk.open(&path("commitlog/00000000000000000000"), Open::Write).unwrap().write_all_at(bytes, at).unwrap();
}

/// A clean stop, then ten messages in two queues whose entries are in their files, and a kill.
fn killed() -> (Faulty, Vec<Appended>) {
    let disk = Faulty::healthy();
    let store = open(&disk);
    send(&store, &store.queue("a", 0).unwrap(), &[body("before", 200)]).unwrap();
    store.close().unwrap();
    let store = open(&disk);
    let mut placed = Vec::new();
    for n in 0..5 {
        placed.extend(send(&store, &store.queue("a", 0).unwrap(), &[body(&format!("a {n}"), 300)]).unwrap());
        placed.extend(send(&store, &store.queue("b", 0).unwrap(), &[body(&format!("b {n}"), 300)]).unwrap());
    }
    assert!(store.wait_durable(store.written(), LONG));
    wait_until("dispatched", || store.dispatched() == store.written());
    (disk, placed)
}

fn bodies(topic: &str, n: usize) -> Vec<Vec<u8>> {
    let before = (topic == "a").then(|| body("before", 200));
    before.into_iter().chain((0..n).map(|n| body(&format!("{topic} {n}"), 300))).collect()
}

/// `a` and `b` messages are left and the log ends at `end`; `behind` was set aside. Then the log grows over that place
/// with messages of another queue, and the next clean stop and start find these and no others.
fn is_cut(disk: &Faulty, end: u64, a: usize, b: usize, behind: &[u8]) {
    let store = open(disk);
    assert_eq!(store.written(), end);
    assert_eq!((drain(&store, "a", 0), drain(&store, "b", 0)), (bodies("a", a), bodies("b", b)));
    let aside = path(format!("comet/cut-{end}"));
    if behind.is_empty() {
        assert!(!files(disk, path("comet")).iter().any(|name| name.starts_with("cut-")));
    } else {
        let mut copy = disk.read_all(&aside).unwrap();
        assert!(copy.split_off(behind.len()).iter().all(|byte| *byte == 0));
        assert!(copy == behind);
    }
    assert!(log(disk)[end as usize..].iter().all(|byte| *byte == 0));

    let others: Vec<Vec<u8>> = (0..20).map(|n| body(&format!("other {n}"), 300)).collect();
    send(&store, &store.queue("c", 0).unwrap(), &others).unwrap();
    store.close().unwrap();
    let store = open(disk);
    assert_eq!((drain(&store, "a", 0), drain(&store, "b", 0)), (bodies("a", a), bodies("b", b)));
    assert_eq!(drain(&store, "c", 0), others);
    let placed = send(&store, &store.queue("b", 0).unwrap(), &["next"]).unwrap();
    assert_eq!(placed[0].queue_offset, b as i64);
}

#[test]
fn a_torn_last_record() {
    let (disk, placed) = killed();
    let last = placed[9];
    let whole = log(&disk)[..last.log_end as usize].to_vec();
    for tear in [0, 4, 90, 250] {
        let (disk, _) = killed();
        let torn = last.log_offset as usize + tear..last.log_end as usize;
        overwrite(&disk, torn.start as u64, &vec![0; torn.len()]);
        let behind = &whole[last.log_offset as usize..torn.start];
        is_cut(&disk, last.log_offset, 5, 4, behind);
    }
}

#[test]
fn a_hole_with_whole_records_behind_it() {
    let (disk, placed) = killed();
    let (hole, end) = (placed[6], placed[9].log_end as usize);
    overwrite(&disk, hole.log_offset, &vec![0; (hole.log_end - hole.log_offset) as usize]);
    let mut behind = log(&disk)[hole.log_offset as usize..end].to_vec();
    behind[..(hole.log_end - hole.log_offset) as usize].fill(0);
    is_cut(&disk, hole.log_offset, 3, 3, &behind);
}

#[test]
fn a_flipped_bit_in_a_body() {
    let (disk, placed) = killed();
    let (flipped, end) = (placed[3], placed[9].log_end as usize);
    let at = flipped.log_offset + 150;
    overwrite(&disk, at, &[log(&disk)[at as usize] ^ 4]);
    let behind = log(&disk)[flipped.log_offset as usize..end].to_vec();
    is_cut(&disk, flipped.log_offset, 2, 1, &behind);
}

#[test]
fn garbage_behind_the_end() {
    let (disk, placed) = killed();
    let end = placed[9].log_end;
    overwrite(&disk, end, b"garbage");
    is_cut(&disk, end, 5, 5, b"garbage");
    let (disk, _) = killed();
    overwrite(&disk, end + 500, &[0xAB; 3]);
    let mut behind = vec![0; 503];
    behind[500..].fill(0xAB);
    is_cut(&disk, end, 5, 5, &behind);
}

#[test]
fn an_old_record_behind_the_end_does_not_come_back() {
    let (disk, placed) = killed();
    let end = placed[9].log_end;
    // A whole record that says it lies where it lies: only its place behind zeros says that it is not of this log.
    let store = open(&disk);
    let twin = body("b 4", 300);
    let ghost = send(&store, &store.queue("b", 0).unwrap(), &[twin.clone(), twin]).unwrap();
    drop(store);
    overwrite(&disk, end, &vec![0; (ghost[0].log_end - end) as usize]);
    let store = open(&disk);
    assert_eq!(store.written(), end);
    // A record of the same length grows up to where the ghost was.
    send(&store, &store.queue("b", 0).unwrap(), &[body("b 5", 300)]).unwrap();
    assert_eq!(store.written(), ghost[1].log_offset);
    drop(store);
    assert_eq!(drain(&open(&disk), "b", 0), bodies("b", 6));
}

#[test]
fn nothing_to_cut() {
    let (disk, placed) = killed();
    is_cut(&disk, placed[9].log_end, 5, 5, b"");
}
