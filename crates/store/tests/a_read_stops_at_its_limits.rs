//! One read answers at most `count` records, and within it the count and bytes that hold for records in memory or on disk,
//! whichever a record is; the first record always. Java: `DefaultMessageStore.isTheBatchFull`.

mod support;

use cometmq_store::FlushMode::Async;
use cometmq_store::disk::Faulty;
use cometmq_store::{Limits, Status, Wait};
use support::{draft, limits, open, send, settle};

/// Ten records of one length.
const LEN: usize = 200;

fn sizes(limits: &Limits) -> (usize, i64) {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    let fixed = draft("t", b"", "TAGS\u{1}a\u{2}").encode(&mut Vec::new()).unwrap();
    // One by one, so that each is in the tail on its own.
    (0..10).for_each(|_| drop(send(&store, &queue, &[vec![7; LEN - fixed]]).unwrap()));
    let read = |store: &cometmq_store::Store| store.read(&queue, 0, limits, Wait::Yes, &|_| true).unwrap();
    let memory = read(&store);
    settle(&store);
    let files = read(&store);
    assert_eq!((memory.status, files.status), (Status::Found, Status::Found));
    assert_eq!(memory.records, files.records);
    assert!(memory.records.iter().all(|r| r.len() == LEN));
    (memory.records.len(), memory.next)
}

#[test]
fn count() {
    assert_eq!(sizes(&limits(1)), (1, 1));
    assert_eq!(sizes(&limits(4)), (4, 4));
    assert_eq!(sizes(&Limits { hot_count: 3, ..limits(32) }), (3, 3));
    assert_eq!(sizes(&Limits { cold_count: 3, hot_window: 0, ..limits(32) }), (3, 3));
}

#[test]
fn bytes() {
    for (bytes, expected) in [(0, 1), (LEN - 1, 1), (LEN, 1), (2 * LEN - 1, 1), (2 * LEN, 2), (4 * LEN + 7, 4)] {
        assert_eq!(sizes(&Limits { hot_bytes: bytes, ..limits(32) }), (expected, expected as i64), "{bytes}");
        let cold = Limits { cold_bytes: bytes, hot_window: 0, ..limits(32) };
        assert_eq!(sizes(&cold), (expected, expected as i64), "{bytes}");
    }
}

#[test]
fn what_is_cold_lies_before_the_window() {
    // The window takes in the last seven records: of the three before it two are answered.
    let window = Limits { cold_count: 2, hot_window: 7 * LEN as u64, ..limits(32) };
    assert_eq!(sizes(&window), (2, 2));
    let window = Limits { hot_count: 4, cold_count: 32, hot_window: 7 * LEN as u64, ..limits(32) };
    assert_eq!(sizes(&window), (4, 4));
}
