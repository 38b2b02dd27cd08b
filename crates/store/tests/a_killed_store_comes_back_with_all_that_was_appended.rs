//! A process that is killed loses nothing that was appended, flushed or not: the kernel has it. What the checkpoints say is
//! only where recovery starts: without them, with garbage in them, or when another broker was here since, the content is
//! the same.

mod support;

use cometmq_store::FlushMode::{self, Async, Sync};
use cometmq_store::disk::{Disk, Faulty, Open};
use cometmq_store::{Options, Store};
use support::{ROOT, body, drain, files, open, options, send, settle, wait_until};

const QUEUES: [(&str, i32); 3] = [("a", 0), ("b", 5), ("c", 1)];

fn path(name: &str) -> std::path::PathBuf {
    std::path::Path::new(ROOT).join(name)
}

/// A store that was killed: checkpoints in the middle, then more messages. Returns all bodies, a list a queue.
fn killed(disk: &Faulty, flush: FlushMode) -> Vec<Vec<Vec<u8>>> {
    let mut sent = vec![Vec::new(); QUEUES.len()];
    for part in ["checkpointed", "behind"] {
        let store = open(disk, flush).unwrap();
        for round in 0..8 {
            for ((topic, id), sent) in QUEUES.into_iter().zip(&mut sent) {
                let bodies =
                    [body(&format!("{part} {topic} {round}"), 90), body(&format!("{part} {topic} {round}b"), 20)];
                send(&store, &store.queue(topic, id).unwrap(), &bodies).unwrap();
                sent.extend(bodies);
            }
        }
        if part == "checkpointed" {
            settle(&store);
        }
    }
    sent
}

fn comes_back(flush: FlushMode, what: &str, tamper: impl FnOnce(&Faulty)) {
    let disk = Faulty::healthy();
    let sent = killed(&disk, flush);
    let pid = std::process::id().to_string();
    assert_eq!(disk.read_all(&path("abort")).unwrap(), pid.as_bytes(), "{what}");
    tamper(&disk);
    for life in 0..3 {
        let store = open(&disk, flush).unwrap();
        for ((topic, id), sent) in QUEUES.into_iter().zip(&sent) {
            assert_eq!(&drain(&store, topic, id), sent, "{flush:?}, {what}, life {life}");
        }
        assert_eq!(store.stats().damaged.load(std::sync::atomic::Ordering::Relaxed), 0, "{what}");
        if life == 1 {
            store.close().unwrap();
            assert!(!files(&disk, ROOT).contains(&"abort".to_string()), "{what}");
        }
    }
}

#[test]
fn with_its_checkpoints() {
    comes_back(Async, "untouched", |_| {});
    comes_back(Sync, "untouched", |_| {});
}

#[test]
fn without_checkpoints() {
    for gone in [&["comet/checkpoint"][..], &["checkpoint"], &["checkpoint", "comet/checkpoint"]] {
        comes_back(Async, &format!("{gone:?} gone"), |disk| {
            gone.iter().for_each(|name| disk.remove(&path(name)).unwrap());
        });
    }
}

#[test]
fn with_garbage_in_a_checkpoint() {
    for name in ["comet/checkpoint", "checkpoint"] {
        for garbage in [&[0xff; 48][..], b"", b"comet checkpoint 9\n"] {
            comes_back(Async, &format!("garbage in {name}"), |disk| {
                let file = disk.open(&path(name), Open::Write).unwrap();
                file.set_len(0).unwrap();
                file.write_all_at(garbage, 0).unwrap();
            });
        }
    }
}

#[test]
fn with_the_checkpoint_of_another_broker() {
    comes_back(Async, "another broker was here", |disk| {
        let file = disk.open(&path("checkpoint"), Open::Write).unwrap();
        let mut time = [0; 8];
        file.read_at(&mut time, 0, true).unwrap();
        assert_eq!(i64::from_be_bytes(time), 1_000); // The manual clock's.
        file.write_all_at(&1_001i64.to_be_bytes(), 0).unwrap();
    });
}

#[test]
fn with_a_checkpoint_of_a_longer_log() {
    comes_back(Async, "the log was put back from a backup", |disk| {
        let text = String::from_utf8(disk.read_all(&path("comet/checkpoint")).unwrap()).unwrap();
        let (body, _) = text.split_once("crc ").unwrap();
        let body: String = body
            .lines()
            .map(|l| if l.starts_with("java") || !l.contains(' ') { format!("{l}\n") } else { format!("{l}99999\n") })
            .collect();
        let body = body.replace("comet checkpoint 199999", "comet checkpoint 1");
        let crc = cometmq_wire::record::body_crc(body.as_bytes());
        let own = path("comet/checkpoint");
        disk.replace(&own, &path("comet/new"), format!("{body}crc {crc:08x}\n").as_bytes()).unwrap();
    });
}

/// A start that had to read much notes soon how far it came: a broker that is killed again and again gets on.
#[test]
fn a_long_recovery_is_not_done_twice() {
    let dir = tempfile::tempdir().unwrap();
    let long = std::time::Duration::from_secs(3600);
    let keep = || Options { segment_bytes: Some(64 << 20), checkpoint_interval: long, ..options(dir.path(), Async) };
    let open = || Store::open(keep(), std::sync::Arc::new(cometmq_store::disk::Real), cometmq_base::Clock::System);
    let store = open().unwrap();
    let queue = store.queue("t", 0).unwrap();
    for _ in 0..10 {
        send(&store, &queue, &vec![vec![b'x'; 1 << 20]; 4]).unwrap();
    }
    let end = store.written();
    drop(store);
    let checkpoint = dir.path().join("comet/checkpoint");
    assert!(!checkpoint.exists());
    let store = open().unwrap();
    assert_eq!((store.written(), store.queue("t", 0).unwrap().end()), (end, 40));
    let noted = format!("\ndispatched {end}\n");
    wait_until("noted", || std::fs::read_to_string(&checkpoint).is_ok_and(|text| text.contains(&noted)));
}
