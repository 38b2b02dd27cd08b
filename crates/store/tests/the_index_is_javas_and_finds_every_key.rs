//! The index of the two store directories that Apache RocketMQ 5.5.0 wrote (see `fixtures/README.md`): made again from the
//! log it is Java's byte for byte; opened as it is, it is gone on with and never written twice; and every key of every
//! message in the list that a Java consumer read finds exactly the messages that carry it.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cometmq_base::Clock;
use cometmq_store::disk::Real;
use cometmq_store::{Error, KeyKind, Options, Query, Store};
use cometmq_wire::json;
use cometmq_wire::record::Record;
use support::{send, settle};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("java-store-5.5.0-{name}"))
}

fn unpack(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let archive = fixture(&format!("{name}.tar.gz"));
    let done = Command::new("tar").arg("--sparse").arg("-xzf").arg(archive).arg("-C").arg(dir.path()).status().unwrap();
    assert!(done.success());
    dir
}

/// Without the keys of the index: they are told from Java's files.
fn open(root: &Path) -> Store {
    Store::open(Options::new(root), Arc::new(Real), Clock::System).unwrap()
}

fn open_with_geometry(root: &Path, slots: u32, items: u32) -> Result<Store, Error> {
    let options = Options { index_slots: Some(slots), index_items: Some(items), ..Options::new(root) };
    Store::open(options, Arc::new(Real), Clock::System)
}

/// The index files, in order of their names.
fn index(root: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root.join("index")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn aside(root: &Path) -> usize {
    let names = fs::read_dir(root.join("comet")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("index-")).count()
}

/// (topic, kind, key) → log offsets, as the list of the Java consumer says.
fn expected(name: &str) -> BTreeMap<(String, &'static str, String), BTreeSet<u64>> {
    let out = Command::new("gzip").arg("-dc").arg(fixture(&format!("{name}.jsonl.gz"))).output().unwrap();
    let mut all: BTreeMap<(String, &'static str, String), BTreeSet<u64>> = BTreeMap::new();
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        let (fields, properties) = line.split_once(",\"properties\":").unwrap();
        let fields: BTreeMap<String, String> = json::from_slice(format!("{fields}}}").as_bytes()).unwrap();
        let properties: BTreeMap<String, String> =
            json::from_slice(&properties.as_bytes()[..properties.len() - 1]).unwrap();
        let at: u64 = fields["commitLogOffset"].parse().unwrap();
        let mut add = |kind, key: &str| {
            all.entry((fields["topic"].clone(), kind, key.to_string())).or_default().insert(at);
        };
        add("unique", &properties["UNIQ_KEY"]);
        properties.get("KEYS").iter().flat_map(|keys| keys.split(' ')).for_each(|key| add("key", key));
        properties.get("TAGS").iter().for_each(|tags| add("tag", tags));
    }
    all
}

fn finds_every_key(store: &Store, name: &str, keys_min: usize) {
    let expected = expected(name);
    assert!(expected.len() >= keys_min, "{}", expected.len());
    for ((topic, kind, key), offsets) in expected {
        let kind = match kind {
            "unique" => KeyKind::Unique,
            "key" => KeyKind::Key,
            _ => KeyKind::Tag,
        };
        let query = Query { topic: &topic, key: &key, kind, max: 10_000, begin_ms: 0, end_ms: i64::MAX };
        let found = store.query(&query).unwrap();
        let found: Vec<u64> = found.records.iter().map(|r| Record::parse(r).unwrap().log_offset() as u64).collect();
        assert_eq!(found, offsets.into_iter().collect::<Vec<_>>(), "{topic} {kind:?} {key}");
    }
}

/// Javas index is read, or made again, and is the same afterwards.
fn is_javas(name: &str, keys_min: usize) {
    let dir = unpack(name);
    let root = dir.path();
    let javas = index(root);
    assert_eq!((javas.len(), javas[0].len()), (1, 40 + 4 * 500 + 20 * 2000));

    let error = open_with_geometry(root, 400, 2000).err().unwrap().to_string();
    assert!(error.starts_with("maxHashSlotNum=400 contradicts the index files: "), "{error}");
    let error = open_with_geometry(root, 500, 2001).err().unwrap().to_string();
    assert!(error.starts_with("maxIndexNum=2001 contradicts the index files: "), "{error}");
    // A start that was refused left no mark of a crash, and took none away.
    assert_eq!(root.join("abort").exists(), name == "killed");

    let store = open(root);
    finds_every_key(&store, name, keys_min);
    settle(&store);
    store.close().unwrap();
    assert!(index(root) == javas, "what a clean stop of Java's or a crash of it left is Java's");
    assert_eq!(aside(root), usize::from(name == "killed"), "after a crash Java makes it again, too");

    // Again, now known by our checkpoint; and from nothing.
    let store = open_with_geometry(root, 500, 2000).unwrap();
    finds_every_key(&store, name, keys_min);
    store.close().unwrap();
    assert!(index(root) == javas);
    fs::remove_dir_all(root.join("index")).unwrap();
    let store = open_with_geometry(root, 500, 2000).unwrap();
    finds_every_key(&store, name, keys_min);
    store.close().unwrap();
    assert!(index(root) == javas, "a lost index is made again");

    // It goes on: a message more is an item more.
    let store = open(root);
    send(&store, &store.queue("fixture_order", 1).unwrap(), &["more"]).unwrap();
    store.close().unwrap();
    let count = |bytes: &[u8]| u32::from_be_bytes(bytes[36..40].try_into().unwrap());
    assert_eq!(count(&index(root)[0]), count(&javas[0]) + 1);
    finds_every_key(&open(root), name, keys_min);
}

#[test]
fn of_the_one_that_was_stopped() {
    is_javas("clean", 300);
}

#[test]
fn of_the_one_that_was_killed() {
    is_javas("killed", 600);
}
