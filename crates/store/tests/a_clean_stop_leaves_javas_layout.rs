//! After a clean stop the directory is what Java would have written, byte for byte where Java looks: names and lengths of
//! all files, records one behind the other with a filler at the end of a file, queue entries, the checkpoint, no `abort`.
//! The test reads the files itself. Opened again, everything is there and offsets go on.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cometmq_base::Clock;
use cometmq_store::disk::Real;
use cometmq_store::{FlushMode, Store};
use cometmq_wire::java_hash::tags_code;
use cometmq_wire::record::{MAGIC_BLANK, MAGIC_V1, Record};
use support::{INDEX_ITEMS, INDEX_SLOTS, QUEUE_FILE, SEGMENT, body, drain, options, send};

const NOW: i64 = 1_750_000_000_000;

/// Every file below `root` with its length.
fn tree(root: &Path) -> BTreeMap<String, u64> {
    fn walk(dir: &Path, root: &Path, out: &mut BTreeMap<String, u64>) {
        for entry in fs::read_dir(dir).unwrap() {
            let (path, meta) = entry.map(|e| (e.path(), e.metadata().unwrap())).unwrap();
            if meta.is_dir() {
                walk(&path, root, out);
            } else {
                out.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_string(), meta.len());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(root, root, &mut out);
    out
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(*bytes[at..].first_chunk().unwrap())
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(*bytes[at..].first_chunk().unwrap())
}

fn open(root: &Path) -> Store {
    Store::open(options(root, FlushMode::Async), Arc::new(Real), Clock::manual(NOW)).unwrap()
}

#[test]
fn a_clean_stop_leaves_javas_layout() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let store = open(root);
    let mut sent: BTreeMap<(&str, i32), Vec<Vec<u8>>> = BTreeMap::new();
    for round in 0..11 {
        for (topic, id) in [("orders", 0), ("orders", 3), ("bills", 0)] {
            let bodies = [body(&format!("{topic}-{id} {round}"), 100 + 37 * round)];
            send(&store, &store.queue(topic, id).unwrap(), &bodies).unwrap();
            sent.entry((topic, id)).or_default().extend(bodies);
        }
    }
    let end = store.written();
    assert!(root.join("abort").exists());
    store.close().unwrap();

    let log = log_is_javas(root, end);
    queues_are_javas(root, &log, &sent);
    checkpoint_is_javas(root, end);
    let segments = end.div_ceil(SEGMENT);
    let mut expected: BTreeMap<String, u64> =
        (0..segments).map(|n| (format!("commitlog/{:020}", n * SEGMENT), SEGMENT)).collect();
    for (topic, id) in sent.keys() {
        expected.extend((0..3).map(|n| (format!("consumequeue/{topic}/{id}/{:020}", n * QUEUE_FILE), QUEUE_FILE)));
    }
    expected.extend([("checkpoint".to_string(), 4096), ("lock".to_string(), 4)]);
    let mut found = tree(root);
    found.retain(|name, _| !name.starts_with("comet/"));
    // One made ahead is Java's habit too.
    found.remove(&format!("commitlog/{:020}", segments * SEGMENT));
    // Named by the local time of its first key, which is in the middle of June everywhere: 2025-06-15 15:06:40,000 UTC.
    let index: Vec<_> = found.keys().filter(|name| name.starts_with("index/")).cloned().collect();
    assert!(index.len() == 1 && index[0].starts_with("index/2025061") && index[0].ends_with("40000"), "{index:?}");
    assert_eq!((index[0].len(), found.remove(&index[0])), (6 + 17, Some(40 + 4 * INDEX_SLOTS + 20 * INDEX_ITEMS)));
    assert_eq!(found, expected);
    assert_eq!(fs::read(root.join("lock")).unwrap(), b"lock");

    goes_on(root, &sent);
}

/// Walks the commit log; returns (topic, queue id, queue offset) → (log offset, record).
fn log_is_javas(root: &Path, end: u64) -> BTreeMap<(String, i32, i64), (u64, Vec<u8>)> {
    let mut log = BTreeMap::new();
    let mut fillers = 0;
    for base in (0..end).step_by(SEGMENT as usize) {
        let bytes = fs::read(root.join(format!("commitlog/{base:020}"))).unwrap();
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let (len, magic) = (i32_at(rest, 0) as usize, i32_at(rest, 4) as u32);
            if magic == MAGIC_BLANK {
                assert_eq!(len, rest.len(), "a filler reaches to the end of its file");
                fillers += 1;
                break;
            }
            if base + at as u64 == end {
                assert!(rest.iter().all(|b| *b == 0), "zeros behind the end");
                break;
            }
            assert_eq!(magic, MAGIC_V1);
            assert!(len + 8 <= rest.len(), "room for a filler stays");
            let record = Record::parse(&rest[..len]).unwrap();
            assert_eq!(record.log_offset() as u64, base + at as u64);
            assert_eq!(record.store_ms(), NOW);
            let key = (record.topic().to_string(), record.queue_id(), record.queue_offset());
            assert!(log.insert(key, (base + at as u64, rest[..len].to_vec())).is_none());
            at += len;
        }
    }
    assert_eq!(log.len(), 33);
    assert!(fillers >= 2, "{fillers}");
    log
}

fn queues_are_javas(
    root: &Path,
    log: &BTreeMap<(String, i32, i64), (u64, Vec<u8>)>,
    sent: &BTreeMap<(&str, i32), Vec<Vec<u8>>>,
) {
    for ((topic, id), bodies) in sent {
        let per_file = QUEUE_FILE as usize / 20;
        for n in 0..bodies.len().next_multiple_of(per_file) {
            let name = format!("consumequeue/{topic}/{id}/{:020}", (n / per_file) as u64 * QUEUE_FILE);
            let file = fs::read(root.join(name)).unwrap();
            let entry = &file[n % per_file * 20..][..20];
            let Some(body) = bodies.get(n) else {
                assert_eq!(entry, [0; 20]);
                continue;
            };
            let (at, record) = &log[&(topic.to_string(), *id, n as i64)];
            assert_eq!(Record::parse(record).unwrap().body(), body);
            assert_eq!(i64_at(entry, 0), *at as i64);
            assert_eq!(i32_at(entry, 8), record.len() as i32);
            assert_eq!(i64_at(entry, 12), tags_code("a"));
        }
    }
}

fn checkpoint_is_javas(root: &Path, end: u64) {
    let bytes = fs::read(root.join("checkpoint")).unwrap();
    let fields: Vec<i64> = (0..6).map(|n| i64_at(&bytes, n * 8)).collect();
    assert_eq!(fields, [NOW, NOW, 0, 0, end as i64, end as i64]);
    assert!(bytes[48..].iter().all(|b| *b == 0));
}

fn goes_on(root: &Path, sent: &BTreeMap<(&str, i32), Vec<Vec<u8>>>) {
    for life in 0..2 {
        let store = open(root);
        for ((topic, id), bodies) in sent {
            let found = drain(&store, topic, *id);
            assert_eq!(found[..bodies.len()], bodies[..]);
            let placed = send(&store, &store.queue(topic, *id).unwrap(), &["more"]).unwrap();
            assert_eq!(placed[0].queue_offset, bodies.len() as i64 + life);
        }
        store.close().unwrap();
        assert!(!root.join("abort").exists());
    }
}
