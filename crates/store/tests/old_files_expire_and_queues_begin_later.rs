//! Files of the log that were not written for `fileReservedTime` are deleted in an hour of `deleteWhen`, on order, or when the
//! disk fills up; on a disk that is nearly full the oldest go whatever their age, until that is over. Queues begin at their
//! first message that is left, their files follow, and a queue without any keeps its next offset.

mod support;

use std::time::Duration;

use cometmq_base::Clock;
use cometmq_store::disk::{Disk, Faulty};
use cometmq_store::{Retention, Status, Store};
use support::*;

/// 02:00 UTC.
fn at_two() -> Clock {
    Clock::manual(20_000 * 24 * 3_600_000 + 2 * 3_600_000)
}

/// Appends `count` messages of 600 bytes or so: six fill a file of the log, five a file of the queue.
fn fill(disk: &Faulty, store: &Store, topic: &str, count: usize) -> Vec<Vec<u8>> {
    let queue = store.queue(topic, 0).unwrap();
    let bodies: Vec<_> = (0..count).map(|i| body(&format!("{topic} {i}"), 500)).collect();
    bodies.iter().for_each(|b| drop(send(store, &queue, std::slice::from_ref(b)).unwrap()));
    settle(store);
    // No file goes before our checkpoint covers it; Java's is written last, its sixth field says how far it is.
    let covered = || disk.read_all(&std::path::Path::new(ROOT).join("checkpoint")).unwrap_or_default();
    let end = store.written().to_be_bytes();
    wait_until("covered", || covered().get(40..48) == Some(&end[..]));
    bodies
}

fn log_files(disk: &Faulty) -> Vec<u64> {
    files(disk, format!("{ROOT}/commitlog")).iter().map(|name| name.parse::<u64>().unwrap() / SEGMENT).collect()
}

/// First offsets of the files of a queue.
fn queue_files(disk: &Faulty, topic: &str) -> Vec<u64> {
    files(disk, format!("{ROOT}/consumequeue/{topic}/0")).iter().map(|name| name.parse::<u64>().unwrap() / 20).collect()
}

#[test]
fn in_the_hour_of_delete_when_and_not_before() {
    let (disk, clock) = (Faulty::healthy(), at_two());
    let store = open_keeping(&disk, retention(), &clock).unwrap();
    let mut sent = fill(&disk, &store, "t", 16);
    assert_eq!((log_files(&disk), queue_files(&disk, "t")), (vec![0, 1, 2], vec![0, 5, 10, 15]));
    clock.advance(HOUR + HOUR / 2);
    cleaned(&store);
    assert_eq!(log_files(&disk), [0, 1, 2], "03:30: old enough, but not the hour");
    sent.extend(fill(&disk, &store, "t", 6));
    assert_eq!(log_files(&disk), [0, 1, 2, 3]);
    clock.advance(HOUR / 2 - Duration::from_millis(1));
    cleaned(&store);
    assert_eq!(log_files(&disk), [0, 1, 2, 3], "03:59:59.999");
    clock.advance(Duration::from_millis(1));
    cleaned(&store);
    assert_eq!(log_files(&disk), [2, 3], "04:00: the third was written half an hour ago");
    assert_eq!(store.log_start(), 2 * SEGMENT);

    let queue = store.queue("t", 0).unwrap();
    assert_eq!((queue.min(), queue.end()), (12, 22));
    assert_eq!(queue_files(&disk, "t"), [10, 15, 20], "the first still has 12 to 14");
    assert_eq!(drain(&store, "t", 0), sent[12..]);
    for from in [0, 11] {
        let read = read(&store, &queue, from, 32);
        assert_eq!((read.status, read.next, read.min, read.end), (Status::BeforeStart, 12, 12, 22), "{from}");
    }
    assert_eq!(store.stats().damaged.load(std::sync::atomic::Ordering::Relaxed), 0);
    clock.advance(HOUR);
    cleaned(&store);
    assert_eq!(log_files(&disk), [2, 3], "05:00");
    clock.advance(23 * HOUR);
    cleaned(&store);
    assert_eq!(log_files(&disk), [3], "the last one stays");
    store.close().unwrap();
    assert_eq!(drain(&open_keeping(&disk, retention(), &clock).unwrap(), "t", 0), sent[18..]);
}

#[test]
fn on_order_at_any_hour_but_only_what_is_old() {
    let (disk, clock) = (Faulty::healthy(), at_two());
    let store = open_keeping(&disk, Retention { interval: LONG * 100, ..retention() }, &clock).unwrap();
    let sent = fill(&disk, &store, "t", 13);
    store.delete_expired();
    cleaned_once(&store, 1);
    assert_eq!(log_files(&disk), [0, 1, 2], "nothing is an hour old");
    clock.advance(HOUR);
    store.delete_expired();
    cleaned_once(&store, 2);
    assert_eq!(log_files(&disk), [2]);
    assert_eq!(drain(&store, "t", 0), sent[12..]);
}

/// Beside the run at the start.
fn cleaned_once(store: &Store, orders: u64) {
    let runs = || store.stats().clean_runs.load(std::sync::atomic::Ordering::Acquire);
    wait_until("cleaned", || runs() > orders);
}

#[test]
fn at_most_a_batch_in_a_run() {
    let (disk, clock) = (Faulty::healthy(), at_two());
    let store = open_keeping(&disk, Retention { interval: LONG * 100, batch_max: 2, ..retention() }, &clock).unwrap();
    fill(&disk, &store, "t", 31);
    assert_eq!(log_files(&disk), [0, 1, 2, 3, 4, 5]);
    clock.advance(HOUR);
    for (order, left) in [(1, vec![2, 3, 4, 5]), (2, vec![4, 5]), (3, vec![5])] {
        store.delete_expired();
        cleaned_once(&store, order);
        assert_eq!(log_files(&disk), left);
    }
}

/// A disk that is `percent` full.
fn full_to(disk: &Faulty, percent: u64) {
    disk.set_capacity(None);
    let used = disk.space(ROOT.as_ref()).unwrap().used;
    disk.set_capacity(Some((used * 100).div_ceil(percent)));
    assert_eq!(u64::from(disk.space(ROOT.as_ref()).unwrap().used_percent()), percent);
}

#[test]
fn a_disk_that_fills_up_loses_old_files_and_a_nearly_full_one_the_oldest() {
    let (disk, clock) = (Faulty::healthy(), at_two());
    let off = Retention { used_max: 100, used_forcibly: 100, used_full: 100, ..retention() };
    let store = open_keeping(&disk, off, &clock).unwrap();
    let sent = fill(&disk, &store, "t", 6 * 20 + 1);
    assert_eq!(log_files(&disk).len(), 21);
    store.close().unwrap();

    let mild = Retention { used_max: 75, forcibly: false, used_full: 100, ..retention() };
    full_to(&disk, 88);
    let store = open_keeping(&disk, mild.clone(), &clock).unwrap();
    cleaned(&store);
    assert_eq!(log_files(&disk).len(), 21, "nothing is old, and nothing is to be forced");
    store.close().unwrap();

    // Each file is 4.x % of the disk: without one it is at 84 %.
    let store = open_keeping(&disk, Retention { forcibly: true, ..mild.clone() }, &clock).unwrap();
    cleaned(&store);
    assert_eq!((log_files(&disk).len(), disk.space(ROOT.as_ref()).unwrap().used_percent()), (20, 84));
    assert_eq!(drain(&store, "t", 0), sent[6..]);
    clock.advance(HOUR);
    cleaned(&store);
    assert_eq!(log_files(&disk), [20], "more than 75 % used: all that is old");
    assert_eq!(drain(&store, "t", 0), sent[120..]);
}

#[test]
fn a_queue_whose_messages_are_all_gone_keeps_its_next_offset() {
    // 10 fills its second file exactly; 12 leaves a third one begun.
    for count in [10, 12] {
        let (disk, clock) = (Faulty::healthy(), at_two());
        let store = open_keeping(&disk, retention(), &clock).unwrap();
        fill(&disk, &store, "gone", count);
        let sent = fill(&disk, &store, "t", 12);
        clock.advance(2 * HOUR);
        cleaned(&store);
        let last = (count as u64 - 1) / 5 * 5;
        let gone = store.queue("gone", 0).unwrap();
        assert_eq!((gone.min(), gone.end()), (count as i64, count as i64));
        assert_eq!(queue_files(&disk, "gone"), [last]);
        assert_eq!(read(&store, &gone, 0, 1).status, Status::BeforeStart);
        assert_eq!(read(&store, &gone, count as i64, 1).status, Status::AtEnd);
        store.close().unwrap();

        let store = open_keeping(&disk, retention(), &clock).unwrap();
        let gone = store.queue("gone", 0).unwrap();
        assert_eq!((gone.min(), gone.end()), (count as i64, count as i64), "after a restart");
        let placed = send(&store, &gone, &["again"]).unwrap();
        assert_eq!(placed[0].queue_offset, count as i64);
        settle(&store);
        assert_eq!(drain(&store, "gone", 0), [b"again".to_vec()]);
        let left = drain(&store, "t", 0);
        assert!(!left.is_empty() && sent.ends_with(&left));
        // And when all queue files are made anew, its numbers go on, too.
        drop(store);
        let survivor = disk.surviving_kill();
        for topic in ["gone", "t"] {
            for name in files(&survivor, format!("{ROOT}/consumequeue/{topic}/0")) {
                survivor.remove(format!("{ROOT}/consumequeue/{topic}/0/{name}").as_ref()).unwrap();
            }
        }
        let store = open_keeping(&survivor, retention(), &clock).unwrap();
        assert_eq!(drain(&store, "gone", 0), [b"again".to_vec()]);
        assert_eq!(store.queue("gone", 0).unwrap().min(), count as i64);
        assert_eq!(drain(&store, "t", 0), left);
    }
}

#[test]
fn queues_that_nobody_asked_for_expire_as_well() {
    let (disk, clock) = (Faulty::healthy(), at_two());
    {
        let store = open_keeping(&disk, retention(), &clock).unwrap();
        fill(&disk, &store, "t", 22);
        store.close().unwrap();
    }
    clock.advance(2 * HOUR);
    let store = open_keeping(&disk, retention(), &clock).unwrap();
    wait_until("deleted", || queue_files(&disk, "t") == [15, 20]);
    assert_eq!(log_files(&disk), [3]);
    let queue = store.queue("t", 0).unwrap();
    assert_eq!((queue.min(), queue.end()), (18, 22));
}

#[test]
fn queues_without_messages_are_cleaned_unless_they_are_kept() {
    let (disk, clock) = (Faulty::healthy(), at_two());
    let store = open_keeping(&disk, retention(), &clock).unwrap();
    fill(&disk, &store, "gone", 8);
    fill(&disk, &store, "kept", 8);
    let sent = fill(&disk, &store, "t", 12);
    let gone = store.queue("gone", 0).unwrap();
    assert_eq!(store.clean_expired_queues(|_, _| false).unwrap(), 0, "all have messages");
    clock.advance(2 * HOUR);
    cleaned(&store);
    assert_eq!(store.clean_expired_queues(|topic, _| topic == "kept").unwrap(), 1);
    let topics: Vec<_> =
        disk.list(format!("{ROOT}/consumequeue").as_ref()).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(topics, ["kept", "t"]);
    assert!(send(&store, &gone, &["late"]).is_err_and(|e| e.to_string() == "the queue gone-0 was deleted"));
    let again = store.queue("gone", 0).unwrap();
    assert_eq!(send(&store, &again, &["new"]).unwrap()[0].queue_offset, 0);
    settle(&store);
    assert_eq!(drain(&store, "gone", 0), [b"new".to_vec()]);
    let left = drain(&store, "t", 0);
    assert!(!left.is_empty() && sent.ends_with(&left));
    store.close().unwrap();
    let store = open_keeping(&disk, retention(), &clock).unwrap();
    assert_eq!(drain(&store, "gone", 0), [b"new".to_vec()]);
    assert_eq!(store.queue("kept", 0).unwrap().end(), 8);
}
