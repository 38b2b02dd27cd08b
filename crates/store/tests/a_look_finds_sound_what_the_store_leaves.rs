//! What a store of ours leaves is sound to who looks at it: after a clean stop, with files that expired, with topics that were deleted
//! and made anew; and after a power cut there is no error, wherever it falls, nor after the start that follows.
//! Method: the disk in memory; every look is a whole check, and its findings are compared.

mod support;

use std::sync::Arc;

use cometmq_base::Clock;
use cometmq_store::disk::{Disk, Faulty, Open};
use cometmq_store::{Checked, Error, FlushMode, Inspect, Severity, Store};
use support::*;

fn look(disk: &Faulty) -> Result<Checked, Error> {
    let store = Inspect::open(options(ROOT, FlushMode::Sync), Arc::new(disk.clone()))?;
    store.check(&|_| true, &mut |_, _| {})
}

fn says(checked: &Checked) -> Vec<String> {
    let line = |f: &cometmq_store::Finding| {
        format!(
            "{:?} {}{}: {}",
            f.severity,
            f.file.display(),
            f.offset.map_or(String::new(), |o| format!(" {o}")),
            f.what
        )
    };
    checked.findings.list.iter().map(line).collect()
}

fn range(checked: &Checked, topic: &str) -> (i64, i64) {
    let queue = checked.queues[&(topic.to_string(), 0)];
    (queue.min, queue.max)
}

fn fill(store: &Store, topic: &str, count: usize) {
    let queue = store.queue(topic, 0).unwrap();
    (0..count).for_each(|i| drop(send(store, &queue, &[body(&format!("{topic} {i}"), 500)]).unwrap()));
}

#[test]
fn after_files_expired() {
    let (disk, clock) = (Faulty::healthy(), Clock::manual(2 * 3_600_000));
    let store = open_keeping(&disk, retention(), &clock).unwrap();
    fill(&store, "gone", 3);
    fill(&store, "t", 13);
    settle(&store);
    clock.advance(HOUR + HOUR / 2);
    fill(&store, "t", 6);
    settle(&store);
    clock.advance(HOUR / 2);
    wait_until("expired", || store.log_start() == 2 * SEGMENT);
    cleaned(&store);
    store.close().unwrap();
    let checked = look(&disk).unwrap();
    assert_eq!(says(&checked), Vec::<String>::new());
    assert_eq!((range(&checked, "t"), checked.summary.records), ((9, 19), 10));
}

#[test]
fn after_a_topic_was_deleted_and_made_anew() {
    let disk = Faulty::healthy();
    let store = open(&disk, FlushMode::Async).unwrap();
    fill(&store, "a", 8);
    fill(&store, "b", 8);
    settle(&store);
    store.delete_topic("a").unwrap();
    store.delete_topic("b").unwrap();
    fill(&store, "a", 2);
    store.close().unwrap();
    let checked = look(&disk).unwrap();
    assert_eq!(says(&checked), Vec::<String>::new());
    assert_eq!((range(&checked, "a"), checked.queues.len(), checked.summary.records), ((0, 2), 1, 18));

    // As a Java broker leaves it, which does not note deletions.
    disk.remove(std::path::Path::new(&format!("{ROOT}/comet/deleted"))).unwrap();
    let store = Inspect::open(options(ROOT, FlushMode::Sync), Arc::new(disk)).unwrap();
    let checked = store.check(&|topic| topic == "a", &mut |_, _| {}).unwrap();
    let left = "Warn consumequeue/b/0: 8 records of a queue without files, in a topic that was deleted";
    let found = says(&checked);
    let anew =
        "Warn commitlog/00000000000000008192 2396: the offsets of a-0 go back from 8 to 0: the topic was made anew";
    assert_eq!(found, [anew, left]);
}

#[test]
fn while_a_broker_has_it_nobody_looks() {
    let disk = Faulty::healthy();
    let store = open(&disk, FlushMode::Sync).unwrap();
    assert!(matches!(look(&disk), Err(Error::Locked { .. })));
    store.close().unwrap();
    assert_eq!(says(&look(&disk).unwrap()), Vec::<String>::new());
}

#[test]
fn a_look_changes_nothing() {
    let disk = Faulty::healthy();
    let store = open(&disk, FlushMode::Sync).unwrap();
    fill(&store, "a", 20);
    drop(store);
    // As a crash leaves the last file.
    let last = format!("{ROOT}/commitlog/{:020}", 4 * SEGMENT);
    drop(disk.open(std::path::Path::new(&last), Open::Create).unwrap());
    let ops = disk.ops();
    look(&disk).unwrap();
    assert_eq!(disk.ops(), ops, "operations that change something");
}

/// Works until the power goes or all is done; `true` = it was closed.
fn life(disk: &Faulty, rounds: usize) -> bool {
    let Ok(store) = open(disk, FlushMode::Sync) else { return false };
    for round in 0..rounds {
        for topic in ["orders", "bills"] {
            let Ok(queue) = store.queue(topic, 0) else { return false };
            let sent = send(&store, &queue, &[body(topic, 40 + 150 * (round % 3)), body(topic, 300)]);
            if !sent.is_ok_and(|placed| store.wait_durable(placed[1].log_end, LONG)) {
                return false;
            }
        }
    }
    wait_until("dispatched", || store.dispatched() == store.written() || store.write_refusal().is_some());
    store.close().is_ok()
}

#[test]
fn a_power_cut_is_no_damage() {
    let mut looks = 0;
    for op in 0.. {
        let mut completed = 0;
        for seed in 0..4 {
            let disk = Faulty::lose_power_at(op, seed);
            completed += u64::from(life(&disk, 5));
            let survived = disk.surviving();
            let when = format!("power lost at operation {op}, seed {seed}");
            match look(&survived) {
                Ok(checked) => {
                    looks += 1;
                    let errors = checked.findings.list.iter().filter(|f| f.severity == Severity::Error).count();
                    assert_eq!(errors, 0, "{when}: {:#?}", says(&checked));
                }
                // The power went before there was a log.
                Err(Error::NotAStore { .. }) => {}
                Err(error) => panic!("{when}: {error}"),
            }
            assert!(life(&survived, 1), "{when}");
            assert_eq!(says(&look(&survived).unwrap()), Vec::<String>::new(), "{when}, and the next life");
        }
        if completed == 4 {
            break;
        }
    }
    assert!(looks > 300, "{looks} looks");
}
