//! The offset for a store time: lower is the first message at or after it, or the end of the queue when there is none;
//! upper is the last one at or before it, the last message when the time is after all. Equal times have two ends. An empty
//! queue gives 0. From memory, from files, and after a restart alike.

mod support;

use std::sync::Arc;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_store::Boundary::{Lower, Upper};
use cometmq_store::FlushMode::Async;
use cometmq_store::disk::Faulty;
use cometmq_store::{Options, QueueRef, Store};
use support::{ROOT, body, options, send, settle};

const T: i64 = 1_750_000_000_000;
/// Store times of ten messages, less `T`: ties at the ends and inside.
const TIMES: [i64; 10] = [0, 0, 10, 20, 30, 30, 30, 40, 50, 50];

fn open(disk: &Faulty, clock: &Clock) -> Store {
    let options = Options { tail_bytes: 600, ..options(ROOT, Async) };
    Store::open(options, Arc::new(disk.clone()), clock.clone()).unwrap()
}

fn finds(store: &Store, queue: &QueueRef, time: i64, lower: i64, upper: i64) {
    let found = [Lower, Upper].map(|boundary| store.offset_by_time(queue, T + time, boundary).unwrap());
    assert_eq!(found, [lower, upper], "at {time}");
}

fn finds_all(store: &Store) {
    let queue = store.queue("t", 0).unwrap();
    for (time, lower, upper) in [
        (-1, 0, 0), // Before the first: Java answers the first, not "none".
        (0, 0, 1),
        (1, 2, 1),
        (9, 2, 1),
        (10, 2, 2),
        (20, 3, 3),
        (25, 4, 3),
        (30, 4, 6),
        (31, 7, 6),
        (40, 7, 7),
        (50, 8, 9),
        (51, 10, 9),
        (1_000_000, 10, 9),
    ] {
        finds(store, &queue, time, lower, upper);
    }
    let far = |time| [Lower, Upper].map(|boundary| store.offset_by_time(&queue, time, boundary).unwrap());
    assert_eq!((far(0), far(i64::MIN), far(i64::MAX)), ([0, 0], [0, 0], [10, 9]));
    assert_eq!(store.earliest_time(&queue).unwrap(), Some(T));
    for (offset, time) in (0..).zip(TIMES) {
        assert_eq!(store.time_of(&queue, offset).unwrap(), Some(T + time));
    }
    let empty = store.queue("empty", 0).unwrap();
    finds(store, &empty, 0, 0, 0);
    assert_eq!(store.earliest_time(&empty).unwrap(), None);
}

#[test]
fn a_search_by_time_finds_either_end() {
    let disk = Faulty::healthy();
    let clock = Clock::manual(T);
    let store = open(&disk, &clock);
    for (at, time) in TIMES.into_iter().enumerate() {
        let before = at.checked_sub(1).map_or(0, |at| TIMES[at]);
        clock.advance(Duration::from_millis((time - before) as u64));
        send(&store, &store.queue("t", 0).unwrap(), &[body("m", 600)]).unwrap();
    }
    finds_all(&store);
    settle(&store);
    finds_all(&store);
    store.close().unwrap();
    finds_all(&open(&disk, &clock));
}

#[test]
fn store_times_never_go_backwards() {
    let disk = Faulty::healthy();
    let store = open(&disk, &Clock::manual(T + 100));
    send(&store, &store.queue("t", 0).unwrap(), &["a"]).unwrap();
    store.close().unwrap();
    drop(store);
    // The machine's clock was set back, and the store opened after a clean stop and after a kill.
    for n in 1..3 {
        let store = open(&disk, &Clock::manual(T));
        assert_eq!(send(&store, &store.queue("t", 0).unwrap(), &["b"]).unwrap()[0].store_ms, T + 100);
        let queue = store.queue("t", 0).unwrap();
        finds(&store, &queue, 99, 0, 0);
        finds(&store, &queue, 100, 0, n);
    }
}
