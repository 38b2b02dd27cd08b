//! Wherever the power goes while old files are deleted: the store opens, every message that its log still has is read, each
//! queue goes on at its next offset, and the next start brings the deletion to its end. What is left needs no rebuilding:
//! the checkpoint counts no more bytes of queue files than there are.
//! Method: fill a store, let the hour of deletion come, and lose the power once per disk operation.

mod support;

use cometmq_base::Clock;
use cometmq_store::Retention;
use cometmq_store::disk::{Disk, Faulty};
use support::*;

const SEEDS: u64 = 4;
/// The first loses all of its messages, the second nearly all, the third some.
const QUEUES: [(&str, usize); 3] = [("gone", 12), ("old", 11), ("mixed", 14)];

/// A settled store with seven files of log, four of them old. Returns the bodies of each queue.
fn filled(disk: &Faulty, clock: &Clock) -> Vec<Vec<Vec<u8>>> {
    let store = open_keeping(disk, retention(), clock).unwrap();
    let bodies = |topic: &str, count| (0..count).map(|i| body(&format!("{topic} {i}"), 500)).collect::<Vec<_>>();
    let all: Vec<_> = QUEUES.map(|(topic, count)| bodies(topic, count)).into();
    let append = |which: usize, range: std::ops::Range<usize>| {
        let queue = store.queue(QUEUES[which].0, 0).unwrap();
        range.for_each(|i| drop(send(&store, &queue, &all[which][i..=i]).unwrap()));
    };
    append(0, 0..12);
    append(1, 0..10);
    append(2, 0..7);
    settle(&store);
    clock.advance(HOUR / 2);
    append(2, 7..14);
    append(1, 10..11);
    settle(&store);
    store.close().unwrap();
    all
}

/// Each queue holds the end of what was sent, from the first message on that the log still has.
fn check(store: &cometmq_store::Store, sent: &[Vec<Vec<u8>>], when: &str) {
    for ((topic, count), sent) in QUEUES.iter().zip(sent) {
        let queue = store.queue(topic, 0).unwrap();
        assert_eq!(queue.end(), *count as i64, "{when}: the next offset of {topic}");
        let left = drain(store, topic, 0);
        assert!(sent.ends_with(&left), "{when}: {topic} has {} messages", left.len());
        if queue.min() < queue.end() {
            assert!(store.log_offset_of(&queue, queue.min()).unwrap() >= store.log_start(), "{when}: {topic}");
        }
    }
    assert_eq!(store.stats().damaged.load(std::sync::atomic::Ordering::Relaxed), 0, "{when}");
}

/// What our checkpoint says the queue files have, and what they have.
fn queue_bytes(disk: &Faulty) -> (u64, u64) {
    let text = disk.read_all(format!("{ROOT}/comet/checkpoint").as_ref()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let said = text.lines().find_map(|l| l.strip_prefix("queues ")).unwrap().parse().unwrap();
    let dirs = QUEUES.map(|(topic, _)| format!("{ROOT}/consumequeue/{topic}/0"));
    let lens = |dir: &String| -> u64 {
        let len = |name: &String| disk.read_all(format!("{dir}/{name}").as_ref()).unwrap().len() as u64;
        files(disk, dir).iter().map(len).sum()
    };
    (said, dirs.iter().map(lens).sum())
}

#[test]
fn a_deletion_cut_short_leaves_a_store_that_opens() {
    let mut cuts = 0;
    for op in 0.. {
        let mut completed = 0;
        for seed in 0..SEEDS {
            let when = format!("power lost at operation {op} of the deletion, seed {seed}");
            // 03:00 UTC
            let clock = Clock::manual(20_000 * 24 * 3_600_000 + 3 * 3_600_000);
            let disk = Faulty::lose_power_at(u64::MAX, seed);
            let sent = filled(&disk, &clock);
            let store = open_keeping(&disk, retention(), &clock).unwrap();
            disk.lose_power_after(op);
            clock.advance(HOUR / 2);
            wait_until("deleted", || {
                let deleted = store.stats().queue_files_deleted.load(std::sync::atomic::Ordering::Acquire);
                deleted == 4 || disk.power_is_lost()
            });
            if disk.power_is_lost() {
                cuts += 1
            } else {
                completed += 1
            }
            drop(store);

            let survivor = disk.surviving();
            let (said, there) = queue_bytes(&survivor);
            assert!(said <= there, "{when}: {said} bytes of queue files, there are {there}");
            let idle = Retention { first_after: LONG * 100, ..retention() };
            let store = open_keeping(&survivor, idle, &clock).unwrap_or_else(|e| panic!("{when}: {e}"));
            check(&store, &sent, &when);
            drop(store);
            let store = open_keeping(&survivor, retention(), &clock).unwrap();
            wait_until("deleted", || files(&survivor, format!("{ROOT}/consumequeue/gone/0")).len() == 1);
            wait_until("deleted", || store.log_start() == 4 * SEGMENT);
            cleaned(&store);
            check(&store, &sent, &format!("{when}, then brought to its end"));
            let left = QUEUES.map(|(topic, _)| files(&survivor, format!("{ROOT}/consumequeue/{topic}/0")).len());
            assert_eq!(left, [1, 1, 3], "{when}");
            store.close().unwrap();
            check(&open_keeping(&survivor, retention(), &clock).unwrap(), &sent, &format!("{when}, restarted"));
        }
        if completed == SEEDS {
            break;
        }
    }
    assert!(cuts > 40, "{cuts} power cuts");
}
