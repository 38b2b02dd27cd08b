//! With several directories the files of the log are made in them in turn, as Java chooses: file `n` in directory `n` modulo their
//! number, in order of name. A start after a kill finds all of them, a torn end is cut in whichever it lies, a directory
//! that became read-only keeps its files and gets no new ones, and one that is not named any more is missed by name.

mod support;

use std::fs;
use std::path::Path;

use cometmq_base::Clock;
use cometmq_store::FlushMode::Async;
use cometmq_store::disk::Real;
use cometmq_store::{Error, Options, Store};
use std::sync::Arc;
use support::{SEGMENT, body, drain, files, options, send, settle};

fn open(root: &Path, dirs: &[&str], read_only: &[&str]) -> Result<Store, Error> {
    let paths = |names: &[&str]| names.iter().map(|name| root.join(name)).collect();
    let (log_dirs, read_only_log_dirs) = (paths(dirs), paths(read_only));
    let options = Options { log_dirs, read_only_log_dirs, ..options(root.join("store"), Async) };
    Store::open(options, Arc::new(Real), Clock::System)
}

fn bodies(range: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    range.map(|n| body(&format!("message {n}"), 1000)).collect()
}

/// Numbers of the files in a directory.
fn numbers(root: &Path, dir: &str) -> Vec<u64> {
    files(&Real, root.join(dir)).iter().map(|name| name.parse::<u64>().unwrap() / SEGMENT).collect()
}

#[test]
fn in_turn_and_across_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let store = open(root, &["b", "a"], &[]).unwrap();
    let queue = store.queue("t", 0).unwrap();
    for body in bodies(0..12) {
        send(&store, &queue, &[body]).unwrap();
    }
    settle(&store);
    drop(store);
    let all = [numbers(root, "a"), numbers(root, "b")].concat();
    assert!(all.len() >= 4 && numbers(root, "a").iter().all(|n| n % 2 == 0), "{all:?}");
    assert!(numbers(root, "b").iter().all(|n| n % 2 == 1), "{all:?}");
    assert!(!root.join("store/commitlog").exists());

    let store = open(root, &["b", "a"], &[]).unwrap();
    assert_eq!(drain(&store, "t", 0), bodies(0..12));
    let end = store.written();
    drop(store);
    // Garbage behind the end, in the directory of the last file.
    let last =
        [root.join("a"), root.join("b")][(end / SEGMENT % 2) as usize].join(format!("{:020}", end / SEGMENT * SEGMENT));
    let mut bytes = fs::read(&last).unwrap();
    bytes[(end % SEGMENT) as usize + 8] = 7;
    fs::write(&last, bytes).unwrap();

    let store = open(root, &["c"], &["a", "b"]).unwrap();
    assert!(root.join(format!("store/comet/cut-{end}")).exists());
    let (a, b) = (numbers(root, "a"), numbers(root, "b"));
    let queue = store.queue("t", 0).unwrap();
    for body in bodies(12..24) {
        send(&store, &queue, &[body]).unwrap();
    }
    settle(&store);
    store.close().unwrap();
    assert_eq!((numbers(root, "a"), numbers(root, "b")), (a, b), "no new files");
    assert!(numbers(root, "c").len() >= 2);
    assert_eq!(drain(&open(root, &["c"], &["b", "a"]).unwrap(), "t", 0), bodies(0..24));

    let error = open(root, &["c"], &["a"]).err().unwrap().to_string();
    assert!(
        error
            .ends_with("00000000000000004096: this file is missing: the next one is 00000000000000008192; put it back"),
        "{error}"
    );
}
