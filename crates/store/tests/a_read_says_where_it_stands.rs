//! A read that finds nothing says why and where to go on: the queue is empty, the offset is its end, behind it or before its
//! start, or nothing from there on passes the filter. `Wait::No` never waits for the disk.

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cometmq_base::Clock;
use cometmq_store::FlushMode::Async;
use cometmq_store::disk::{Disk, Faulty};
use cometmq_store::{Batch, Options, Read, Status, Store, Wait};
use cometmq_wire::java_hash::tags_code;
use support::{ROOT, body, draft, drain, limits, open, options, read, send, settle};

fn stands(read: &Read) -> (Status, i64, i64, i64, usize) {
    (read.status, read.next, read.min, read.end, read.records.len())
}

#[test]
fn by_offset() {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    for from in [0, 1, 100] {
        assert_eq!(stands(&read(&store, &queue, from, 32)), (Status::Empty, 0, 0, 0, 0));
    }
    send(&store, &queue, &["a", "b", "c"]).unwrap();
    assert_eq!(stands(&read(&store, &queue, 0, 32)), (Status::Found, 3, 0, 3, 3));
    assert_eq!(stands(&read(&store, &queue, 1, 1)), (Status::Found, 2, 0, 3, 1));
    assert_eq!(stands(&read(&store, &queue, 3, 32)), (Status::AtEnd, 3, 0, 3, 0));
    assert_eq!(stands(&read(&store, &queue, 4, 32)), (Status::BeyondEnd, 3, 0, 3, 0));
    assert_eq!(stands(&read(&store, &queue, i64::MAX, 32)), (Status::BeyondEnd, 3, 0, 3, 0));
    assert_eq!(stands(&read(&store, &queue, -1, 32)), (Status::BeforeStart, 0, 0, 3, 0));
    // Of another queue.
    assert_eq!(stands(&read(&store, &store.queue("t", 1).unwrap(), 0, 32)), (Status::Empty, 0, 0, 0, 0));
}

#[test]
fn a_queue_whose_first_messages_are_gone() {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    let bodies: Vec<Vec<u8>> = (0..20).map(|n| body(&format!("{n}"), 500)).collect();
    let placed = send(&store, &queue, &bodies).unwrap();
    store.close().unwrap();
    // As retention leaves it: the first file of the log is gone, the queue's file is not.
    disk.remove(&std::path::Path::new(ROOT).join("commitlog/00000000000000000000")).unwrap();
    let first = placed.iter().find(|p| p.log_offset >= 4096).unwrap().queue_offset;
    for life in 0..2 {
        let store = open(&disk, Async).unwrap();
        assert_eq!(store.log_start(), 4096);
        let queue = store.queue("t", 0).unwrap();
        assert_eq!((queue.min(), queue.end()), (first, 20), "life {life}");
        assert_eq!(stands(&read(&store, &queue, 0, 32)), (Status::BeforeStart, first, first, 20, 0));
        assert_eq!(drain(&store, "t", 0), bodies[first as usize..]);
    }
}

#[test]
fn with_a_filter() {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    let mut batch = Batch::default();
    for n in 0..2000 {
        let tags = if n % 1000 == 999 { "TAGS\u{1}rare\u{2}" } else { "TAGS\u{1}often\u{2}" };
        batch.push(&draft("t", format!("{n}").as_bytes(), tags), &queue).unwrap();
    }
    batch.push(&draft("t", b"untagged", ""), &queue).unwrap();
    store.append(&mut batch).unwrap();
    for life in ["memory", "files"] {
        if life == "files" {
            settle(&store);
        }
        let rare = |from| store.read(&queue, from, &limits(32), Wait::Yes, &|tag| tag == tags_code("rare")).unwrap();
        let mut found = Vec::new();
        let mut next = 0;
        while next < queue.end() {
            let read = rare(next);
            assert_eq!(read.status, if read.records.is_empty() { Status::NoMatch } else { Status::Found });
            assert!(read.next > next && read.next <= next + 800, "{life}: one read looks at 800 entries at most");
            found.extend(read.records);
            next = read.next;
        }
        let offsets: Vec<i64> =
            found.iter().map(|r| cometmq_wire::record::Record::parse(r).unwrap().queue_offset()).collect();
        assert_eq!(offsets, [999, 1999], "{life}");
        let none = store.read(&queue, 1990, &limits(32), Wait::Yes, &|_| false).unwrap();
        assert_eq!((none.status, none.records.len()), (Status::NoMatch, 0));
        let untagged = store.read(&queue, 2000, &limits(32), Wait::Yes, &|tag| tag == 0).unwrap();
        assert_eq!(stands(&untagged), (Status::Found, 2001, 0, 2001, 1), "{life}");
    }
}

#[test]
fn without_waiting() {
    let disk = Faulty::healthy();
    let open = |tail_bytes| {
        let options = Options { tail_bytes, queue_file_bytes: Some(2000), ..options(ROOT, Async) };
        Store::open(options, Arc::new(disk.clone()), Clock::manual(1_000)).unwrap()
    };
    let store = open(1000);
    let queue = store.queue("t", 0).unwrap();
    let bodies: Vec<Vec<u8>> = (0..6).map(|n| body(&format!("{n}"), 300)).collect();
    bodies.iter().for_each(|b| drop(send(&store, &queue, &[b]).unwrap()));
    disk.make_cold(true);
    let no_wait = |from| store.read(&queue, from, &limits(32), Wait::No, &|_| true).unwrap();
    // The entries are all in memory or in a file; the last two records are in the tail.
    assert_eq!(stands(&no_wait(0)), (Status::Cold, 0, 0, 6, 0));
    settle(&store);
    assert_eq!(stands(&no_wait(4)), (Status::Cold, 4, 0, 6, 0), "the entries are in the queue's file now");
    assert_eq!(store.stats().tail_reads.load(Relaxed) + store.stats().file_reads.load(Relaxed), 0);
    disk.make_cold(false);
    assert_eq!(stands(&no_wait(4)), (Status::Found, 6, 0, 6, 2));
    assert_eq!((store.stats().tail_reads.load(Relaxed), store.stats().file_reads.load(Relaxed)), (2, 0));
    assert_eq!(stands(&no_wait(0)), (Status::Found, 6, 0, 6, 6));
    // Neighbours come with one call, also those that are in memory.
    assert_eq!((store.stats().tail_reads.load(Relaxed), store.stats().file_reads.load(Relaxed)), (2, 1));
    assert_eq!(drain(&store, "t", 0), bodies);
}
