//! Under SYNC_FLUSH a message that was acknowledged (appended, and the durable watermark behind it) is there after a power
//! cut, wherever the cut falls, and what the cut tore is never read.
//! Method: run a workload of several queues, batches and segments once per disk operation, with the power lost at that
//! operation; restart on what the disk kept, where the power goes once more, in recovery or soon after; read everything,
//! append more, and restart again.

mod support;

use std::collections::BTreeMap;

use cometmq_store::disk::Faulty;
use cometmq_store::{FlushMode, Store};
use support::{LONG, body, drain, open, send, wait_until};

const SEEDS: u64 = 4;
const QUEUES: [(&str, i32); 3] = [("orders", 0), ("orders", 1), ("bills", 7)];

/// What is known of each queue, in order: bodies, and how many of them were acknowledged.
#[derive(Default, Debug)]
struct Sent {
    bodies: Vec<Vec<u8>>,
    acked: usize,
}

type Books = BTreeMap<(&'static str, i32), Sent>;

/// Sends until all is done or the disk fails. A batch that fails may be in the log or not.
fn workload(store: &Store, life: &str, rounds: usize, books: &mut Books) -> bool {
    for round in 0..rounds {
        for (at, (topic, id)) in QUEUES.into_iter().enumerate() {
            let Ok(queue) = store.queue(topic, id) else { return false };
            let bodies: Vec<Vec<u8>> =
                (0..=at).map(|n| body(&format!("{life} {topic}-{id} {round}.{n}"), 40 + 150 * (round % 3))).collect();
            let sent = books.entry((topic, id)).or_default();
            sent.bodies.extend(bodies.iter().cloned());
            let Ok(placed) = send(store, &queue, &bodies) else { return false };
            if !store.wait_durable(placed.last().map_or(0, |p| p.log_end), LONG) {
                return false;
            }
            sent.acked = sent.bodies.len();
        }
    }
    true
}

/// Reads every queue and compares: all that was acknowledged, then at most what was tried, in order, each once.
fn check(store: &Store, books: &mut Books, when: &str) {
    for ((topic, id), sent) in books {
        let found = drain(store, topic, *id);
        assert!(found.len() >= sent.acked, "{when}: {topic}-{id} has {} of {} acknowledged", found.len(), sent.acked);
        assert!(found.len() <= sent.bodies.len(), "{when}: {topic}-{id} has {} messages", found.len());
        assert!(found[..] == sent.bodies[..found.len()], "{when}: {topic}-{id} differs");
        // What was found once is there to stay.
        sent.acked = found.len();
        sent.bodies.truncate(found.len());
    }
}

/// One life: opens, works, lets the queue files and checkpoints catch up, and stops without closing. `true` = the power
/// held until all of it was done.
fn life(disk: &Faulty, name: &str, rounds: usize, books: &mut Books) -> bool {
    let store = match open(disk, FlushMode::Sync) {
        Ok(store) => store,
        Err(_) if disk.power_is_lost() => return false,
        Err(error) => panic!("{name}: {error}"),
    };
    check(&store, books, &format!("{name} begins"));
    if !workload(&store, name, rounds, books) {
        return false;
    }
    let done = || store.dispatched() == store.written() || store.write_refusal().is_some();
    wait_until("dispatched", done);
    store.close().is_ok()
}

#[test]
fn acked_messages_survive_power_loss() {
    let mut cuts = 0;
    for op in 0.. {
        let mut completed = 0;
        for seed in 0..SEEDS {
            let when = format!("power lost at operation {op}, seed {seed}");
            let disk = Faulty::lose_power_at(op, seed);
            let mut books = Books::new();
            if life(&disk, "first", 4, &mut books) {
                completed += 1;
            }
            cuts += u64::from(disk.power_is_lost());
            let again = disk.surviving();
            again.lose_power_after((op * 7 + seed * 11) % 60);
            life(&again, "cut short", 1, &mut books);
            let survived = again.surviving();
            for name in ["second", "third"] {
                assert!(life(&survived, name, 1, &mut books), "{when}: the {name} life fails");
            }
            let store = open(&survived, FlushMode::Sync).unwrap();
            check(&store, &mut books, &when);
            assert!(books.values().all(|sent| sent.acked == sent.bodies.len()), "{when}");
        }
        if completed == SEEDS {
            break;
        }
    }
    assert!(cuts > 300, "{cuts} power cuts");
}
