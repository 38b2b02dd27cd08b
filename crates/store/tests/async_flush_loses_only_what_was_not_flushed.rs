//! Under ASYNC_FLUSH a power cut costs at most what was appended and not flushed: each queue comes back as it was up to
//! some message that is not before its last flushed one, without holes, and goes on from there.
//! Method: as `acked_messages_survive_power_loss`, with the durable watermark of the moment before the cut as the promise.
//! And the queue files never point past it, whatever of them and of the log is kept.

mod support;

use std::path::Path;

use cometmq_store::disk::{Disk, Faulty};
use cometmq_store::{FlushMode, Store};
use support::{LONG, ROOT, body, drain, files, open, send};

const SEEDS: u64 = 6;
const QUEUES: [(&str, i32); 3] = [("a", 0), ("a", 1), ("b", 0)];

/// Bodies with the end of their record in the log, a list a queue.
type Books = [Vec<(Vec<u8>, u64)>; 3];

fn workload(store: &Store, life: &str, rounds: usize, books: &mut Books) -> bool {
    for round in 0..rounds {
        for (at, (topic, id)) in QUEUES.into_iter().enumerate() {
            let Ok(queue) = store.queue(topic, id) else { return false };
            let bodies = [body(&format!("{life} {topic}-{id} {round}"), 30 + 170 * ((round + at) % 4))];
            let Ok(placed) = send(store, &queue, &bodies) else { return false };
            let [sent] = bodies;
            books[at].push((sent, placed[0].log_end));
        }
        if round % 5 == 4 && !store.wait_durable(store.written(), LONG) {
            return false;
        }
    }
    true
}

/// What is there is what was sent, up to a point that is not before `durable`.
fn check(store: &Store, books: &mut Books, durable: u64, when: &str) {
    for ((topic, id), sent) in QUEUES.into_iter().zip(books) {
        let found = drain(store, topic, id);
        // The record that failed may be there or not.
        let known = found.len().min(sent.len());
        assert!(found.len() <= sent.len() + 1, "{when}: {topic}-{id} has {} of {}", found.len(), sent.len());
        assert!(found[..known].iter().eq(sent[..known].iter().map(|(body, _)| body)), "{when}: {topic}-{id} differs");
        let flushed = sent.iter().filter(|(_, log_end)| *log_end <= durable).count();
        assert!(found.len() >= flushed, "{when}: {topic}-{id} has {} of {flushed} flushed", found.len());
        *sent = found.into_iter().map(|body| (body, 0)).collect();
    }
}

/// No entry in the files of a queue is of a record behind `durable`.
fn entries_are_durable(disk: &Faulty, durable: u64, when: &str) {
    for (topic, id) in QUEUES {
        let dir = Path::new(ROOT).join(format!("consumequeue/{topic}/{id}"));
        for name in files(disk, &dir) {
            let bytes = disk.read_all(&dir.join(&name)).unwrap();
            for entry in bytes.chunks_exact(20) {
                let at = u64::from_be_bytes(*entry.first_chunk().unwrap());
                let len = u32::from_be_bytes(*entry[8..].first_chunk().unwrap());
                assert!(at + u64::from(len) <= durable, "{when}: {topic}-{id}: {at} + {len} is behind {durable}");
            }
        }
    }
}

#[test]
fn async_flush_loses_only_what_was_not_flushed() {
    let mut lost = 0;
    for op in 0.. {
        let mut completed = 0;
        for seed in 0..SEEDS {
            let when = format!("power lost at operation {op}, seed {seed}");
            let disk = Faulty::lose_power_at(op, seed);
            let mut books = Books::default();
            let mut durable = 0;
            if let Ok(store) = open(&disk, FlushMode::Async) {
                completed += u64::from(workload(&store, "first", 14, &mut books));
                // Stops the threads; with the power lost it can do no more.
                let _ = store.close();
                durable = store.durable();
            }
            entries_are_durable(&disk, durable, &when);
            let survived = disk.surviving();
            let before: usize = books.iter().map(Vec::len).sum();
            for life in ["second", "third"] {
                let store = open(&survived, FlushMode::Async).unwrap();
                check(&store, &mut books, durable, &when);
                lost += before.saturating_sub(books.iter().map(Vec::len).sum());
                assert!(workload(&store, life, 2, &mut books), "{when}");
                store.close().unwrap();
                durable = u64::MAX;
            }
            check(&open(&survived, FlushMode::Async).unwrap(), &mut books, durable, &when);
        }
        if completed == SEEDS {
            break;
        }
    }
    assert!(lost > 100, "the cuts cost {lost} messages: the promise was not put to the test");
}
