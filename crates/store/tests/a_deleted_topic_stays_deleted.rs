//! A topic that was deleted does not come back, whatever happens afterwards, and a topic of the same name starts at offset
//! 0 with its own messages only. Its old records are still in the log, so every way to read the log again is tried: from
//! the checkpoint, without one, after a kill and after a power cut at each operation of the deletion.

mod support;

use cometmq_store::FlushMode::{Async, Sync};
use cometmq_store::Store;
use cometmq_store::disk::{Disk, Faulty};
use support::{ROOT, body, drain, files, open, open_at, send, settle};

const OLD: usize = 12;

fn old_life(disk: &Faulty) -> Store {
    let store = open(disk, Sync).unwrap();
    for i in 0..OLD {
        send(&store, &store.queue("t", 0).unwrap(), &[body(&format!("old {i}"), 150)]).unwrap();
        send(&store, &store.queue("other", 0).unwrap(), &[body(&format!("other {i}"), 60)]).unwrap();
    }
    settle(&store);
    store
}

fn others() -> Vec<Vec<u8>> {
    (0..OLD).map(|i| body(&format!("other {i}"), 60)).collect()
}

#[test]
fn through_every_kind_of_restart() {
    for checkpoint in ["kept", "gone"] {
        for stop in ["closed", "killed"] {
            let disk = Faulty::healthy();
            let store = old_life(&disk);
            let old = store.queue("t", 0).unwrap();
            store.delete_topic("t").unwrap();
            assert!(!files(&disk, ROOT).iter().any(|f| f.starts_with("consumequeue/t/")), "{:?}", files(&disk, ROOT));
            assert!(send(&store, &old, &[body("late", 20)]).is_err(), "a retired queue takes nothing");
            let new = store.queue("t", 0).unwrap();
            assert_eq!((new.min(), new.end()), (0, 0));
            let bodies = [body("new 0", 90), body("new 1", 90)];
            assert_eq!(send(&store, &new, &bodies).unwrap()[0].queue_offset, 0);
            settle(&store);
            if stop == "closed" {
                store.close().unwrap()
            } else {
                drop(store)
            }
            if checkpoint == "gone" {
                disk.remove(&std::path::Path::new(ROOT).join("comet/checkpoint")).unwrap();
            }
            for life in 0..2 {
                let store = open(&disk, Async).unwrap();
                assert_eq!(drain(&store, "t", 0), bodies, "{checkpoint}, {stop}, life {life}");
                assert_eq!(drain(&store, "other", 0), others(), "{checkpoint}, {stop}, life {life}");
            }
        }
    }
}

#[test]
fn a_power_cut_on_the_way_leaves_the_old_topic_whole_or_gone() {
    let old: Vec<Vec<u8>> = (0..OLD).map(|i| body(&format!("old {i}"), 150)).collect();
    for op in 0..30 {
        for seed in 0..3 {
            let disk = Faulty::lose_power_at(u64::MAX, seed);
            let store = old_life(&disk);
            disk.lose_power_after(op);
            let answered = store.delete_topic("t").is_ok();
            drop(store);
            let store = open(&disk.surviving(), Async).unwrap();
            let found = drain(&store, "t", 0);
            assert!(found.is_empty() || (!answered && found == old), "op {op}, seed {seed}: {} messages", found.len());
            assert_eq!(drain(&store, "other", 0), others(), "op {op}, seed {seed}");
        }
    }
}

/// Queue files are being written and synced all the time; none of that may miss a file that a deletion took.
#[test]
fn while_queue_files_are_written_and_synced() {
    // A real disk, whose syncs take their time.
    let dir = tempfile::tempdir().unwrap();
    let store = open_at(dir.path(), Async).unwrap();
    for round in 0..60 {
        let topic = format!("t{}", round % 3);
        for id in 0..8 {
            send(&store, &store.queue(&topic, id).unwrap(), &[body("short", 10)]).unwrap();
        }
        if round % 2 == 0 {
            settle(&store);
        }
        store.delete_topic(&topic).unwrap();
        assert!(store.poison().is_none(), "round {round}: {:?}", store.poison());
    }
    send(&store, &store.queue("t", 0).unwrap(), &[body("still taken", 20)]).unwrap();
    store.close().unwrap();
}
