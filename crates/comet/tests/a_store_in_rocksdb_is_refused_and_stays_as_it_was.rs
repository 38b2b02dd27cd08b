//! A Java store that keeps queues or configuration in RocksDB is refused with a sentence that says what to do, whether a key
//! or a folder shows it, and nothing below its root changes: no file, no byte, no folder. What a default Java broker leaves
//! in `rocksdbstore/` is no reason: that store runs.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use support::*;

/// Files with their bytes, folders with nothing.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(fs::read(path).unwrap()));
        }
    }
    found
}

/// What a Java broker leaves that was killed, as far as it matters here.
fn java_store(root: &Path) {
    let files: [(&str, &[u8]); 7] = [
        ("lock", b"lock"),
        ("abort", b"627"),
        ("checkpoint", &[0; 4096]),
        ("config/topics.json", b"{\"topicConfigTable\":{}}"),
        ("rocksdbstore/CURRENT", b"MANIFEST-000005\n"),
        ("rocksdbstore/LOCK", b""),
        ("rocksdbstore/000004.log", b""),
    ];
    files.iter().for_each(|(name, bytes)| put(root, name, bytes));
    fs::create_dir_all(root.join("commitlog")).unwrap();
}

fn put(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn by_key_or_by_folder_and_nothing_is_touched() {
    let rows: [(&str, &str, &str); 10] = [
        ("", "storeType=defaultRocksDB", "storeType=default"),
        ("", "configManagerVersion=v2", "configManagerVersion=v1"),
        ("", "rocksdbCQDoubleWriteEnable=true", "set it to false"),
        ("", "timerRocksDBEnable=true", "let Java deliver them"),
        ("", "transRocksDBEnable=true", "let Java deliver them"),
        ("", "enableDLegerCommitLog=true", "DLedger"),
        ("consumequeue_rocksdb/CURRENT", "storeType=default", "Move this folder away"),
        ("config/topics/CURRENT", "storeType=default", "rocksDBConfigToJson"),
        ("config/metadata/CURRENT", "storeType=default", "rocksDBConfigToJson"),
        ("config/rdb/CURRENT", "storeType=default", "rocksDBConfigToJson"),
    ];
    for (file, set, says) in rows {
        let dir = tempfile::tempdir().unwrap();
        java_store(dir.path());
        if !file.is_empty() {
            put(dir.path(), file, b"MANIFEST-000001\n");
        }
        let before = tree(dir.path());
        let args = ["--namesrv-port", "0", "--broker-port", "0", "--set", set];
        let ended = run(&mut serve(dir.path(), &args), "");
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{file} {set}: {ended:?}");
        let named = if file.is_empty() { set } else { file.rsplit_once('/').unwrap().0 };
        let last = ended.err.lines().last().unwrap_or_default();
        for words in [named, says, "nothing was touched"] {
            assert!(last.contains(words), "{file} {set}: no '{words}' in {last}");
        }
        assert!(tree(dir.path()) == before, "{file} {set}: the store changed");
    }
}

#[test]
fn an_empty_rocksdbstore_is_no_reason() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    java_store(&root);
    fs::create_dir_all(root.join("consumequeue_rocksdb")).unwrap();
    let rocksdb = tree(&root.join("rocksdbstore"));
    let comet = Comet::start(&root);
    assert_eq!(Peer::connect(comet.broker).ask(&send("orders", 0, "x")).code, 0);
    assert!(comet.terminate().success());
    assert!(tree(&root.join("rocksdbstore")) == rocksdb);
}
