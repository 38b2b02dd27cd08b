//! Who armed a queue is told once when it has a new visible message: under ASYNC_FLUSH with the append, under SYNC_FLUSH
//! after the flush and never before. Arming and looking again loses no message, however the append falls in between.

mod support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use cometmq_base::Clock;
use cometmq_store::FlushMode::{self, Async, Sync};
use cometmq_store::disk::Faulty;
use cometmq_store::{Options, QueueRef, Store, Wake};
use support::{LONG, ROOT, options, send, wait_until};

/// Counts calls, and notes what was visible when they came, and what a power cut would have left.
#[derive(Default)]
struct Counter {
    queues: Mutex<Vec<(i32, i64)>>,
    woken: Condvar,
    durable_calls: AtomicU64,
    disk: Option<Faulty>,
    survives: OnceLock<Faulty>,
}

impl Wake for Counter {
    fn queues(&self, queues: Vec<QueueRef>) {
        if let Some(disk) = &self.disk {
            self.survives.get_or_init(|| disk.surviving());
        }
        self.queues.lock().unwrap().extend(queues.iter().map(|q| (q.id(), q.end())));
        self.woken.notify_all();
    }

    fn durable(&self) {
        self.durable_calls.fetch_add(1, SeqCst);
    }
}

impl Counter {
    fn count(&self) -> usize {
        self.queues.lock().unwrap().len()
    }

    fn wait_for(&self, count: usize) {
        let queues = self.queues.lock().unwrap();
        let (queues, timeout) = self.woken.wait_timeout_while(queues, LONG, |q| q.len() < count).unwrap();
        assert!(!timeout.timed_out(), "woken {} times, not {count}", queues.len());
    }
}

fn open(disk: &Faulty, flush: FlushMode, wakers: &[Arc<Counter>]) -> Arc<Store> {
    let options = Options {
        segment_bytes: Some(64 << 10),
        queue_file_bytes: Some(4_000),
        checkpoint_interval: LONG,
        ..options(ROOT, flush)
    };
    let store = Arc::new(Store::open(options, Arc::new(disk.clone()), Clock::System).unwrap());
    store.set_wakers(wakers.iter().map(|w| w.clone() as Arc<dyn Wake>).collect());
    store
}

#[test]
fn with_the_append_under_async_flush() {
    let shards = [Arc::new(Counter::default()), Arc::new(Counter::default())];
    let store = open(&Faulty::healthy(), Async, &shards);
    let queue = store.queue("t", 3).unwrap();
    send(&store, &queue, &["nobody waits"]).unwrap();
    assert_eq!((shards[0].count(), shards[1].count()), (0, 0));
    queue.arm(1);
    queue.arm(1);
    send(&store, &store.queue("t", 4).unwrap(), &["another queue"]).unwrap();
    assert_eq!((shards[0].count(), shards[1].count()), (0, 0));
    send(&store, &queue, &["a", "b"]).unwrap();
    assert_eq!(shards[1].queues.lock().unwrap()[..], [(3, 3)], "called by the append, once a batch");
    send(&store, &queue, &["c"]).unwrap();
    assert_eq!((shards[0].count(), shards[1].count()), (0, 1), "once");
    (0..2).for_each(|shard| queue.arm(shard));
    send(&store, &queue, &["d"]).unwrap();
    assert_eq!((shards[0].count(), shards[1].count()), (1, 2));
    store.close().unwrap();
    assert_eq!(shards[0].durable_calls.load(SeqCst), 0, "only under SYNC_FLUSH");
}

#[test]
fn after_the_flush_under_sync_flush() {
    let disk = Faulty::healthy();
    let shard = Arc::new(Counter { disk: Some(disk.clone()), ..Counter::default() });
    let store = open(&disk, Sync, std::slice::from_ref(&shard));
    let queue = store.queue("t", 3).unwrap();
    queue.arm(0);
    send(&store, &queue, &["a"]).unwrap();
    shard.wait_for(1);
    assert_eq!(queue.end(), 1);
    let survives = shard.survives.get().unwrap();
    assert_eq!(support::drain(&open(survives, Sync, &[]), "t", 3), [b"a"], "a power cut at that moment leaves it");
    wait_until("told", || shard.durable_calls.load(SeqCst) > 0);

    queue.arm(0);
    disk.fail_syncs(true);
    send(&store, &queue, &["never durable"]).unwrap();
    assert!(!store.wait_durable(store.written(), LONG));
    assert_eq!((shard.count(), queue.end()), (1, 1), "nobody sees what is not durable");
}

struct LastRound<'a>(&'a AtomicI64);

impl Drop for LastRound<'_> {
    fn drop(&mut self) {
        self.0.store(i64::MAX, SeqCst);
    }
}

/// One thread arms and looks again, the other appends at the same moment: either the first sees the message or it is woken.
fn race(flush: FlushMode, rounds: i64) {
    let shard = Arc::new(Counter::default());
    let store = open(&Faulty::healthy(), flush, std::slice::from_ref(&shard));
    let queue = store.queue("t", 0).unwrap();
    let go = AtomicI64::new(0);
    let (mut seen, mut slept) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                while go.load(SeqCst) < round {
                    std::thread::yield_now();
                }
                send(&store, &queue, &["x"]).unwrap();
            }
        });
        // When this side fails, the other one must not wait for it.
        let _end = LastRound(&go);
        for round in 0..rounds {
            let woken = shard.count();
            go.store(round + 1, SeqCst);
            (0..round % 2048).for_each(|_| std::hint::spin_loop());
            queue.arm(0);
            if queue.end() > round {
                seen += 1;
            } else {
                slept += 1;
                shard.wait_for(woken + 1);
            }
            wait_until("visible", || queue.end() == round + 1);
        }
    });
    assert_eq!(seen + slept, rounds);
    assert_eq!(queue.end(), rounds);
}

#[test]
fn no_wake_up_is_lost_under_async_flush() {
    race(Async, 10_000);
}

#[test]
fn no_wake_up_is_lost_under_sync_flush() {
    race(Sync, 10_000);
}

#[test]
fn every_message_becomes_visible_under_sync_flush() {
    // And before its sender learns that it is stored: the flush does not pass it by on the way.
    let store = open(&Faulty::healthy(), Sync, &[]);
    let ids: HashSet<i32> = (0..4).collect();
    std::thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| {
                let queue = store.queue("t", *id).unwrap();
                for n in 1..=500 {
                    let placed = send(&store, &queue, &["x"]).unwrap();
                    assert!(store.wait_durable(placed[0].log_end, LONG));
                    assert!(queue.end() >= n, "message {n} is acknowledged and not visible");
                }
            });
        }
    });
}
