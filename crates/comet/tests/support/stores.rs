//! Stores to look at: those that Java wrote, unpacked, one of ours, and how to spoil them.

#![allow(dead_code)] // Each test uses its part.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Comet, comet};

pub fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures");
    fixtures.join(format!("java-store-5.5.0-{name}"))
}

/// A store that Java 5.5.0 wrote: `clean` or `killed`.
pub fn java_store(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let archive = fixture(&format!("{name}.tar.gz"));
    let done = Command::new("tar").arg("--sparse").arg("-xzf").arg(archive).arg("-C").arg(dir.path()).status().unwrap();
    assert!(done.success());
    dir
}

/// Files with their bytes and times, folders with nothing.
pub fn tree(dir: &Path) -> BTreeMap<PathBuf, Option<(Vec<u8>, std::time::SystemTime)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
            found.insert(path, None);
        } else {
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            found.insert(path.clone(), Some((fs::read(path).unwrap(), modified)));
        }
    }
    found
}

pub fn read_at(path: &Path, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fs::File::open(path).unwrap().read_exact_at(&mut bytes, at).unwrap();
    bytes
}

pub fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// Changes the bits of one byte.
pub fn flip(path: &Path, at: u64) {
    write_at(path, at, &[!read_at(path, at, 1)[0]]);
}

pub const SMALL: [&str; 10] = [
    "--namesrv-port",
    "0",
    "--broker-port",
    "0",
    "--set",
    "mappedFileSizeCommitLog=65536",
    "--set",
    "mappedFileSizeConsumeQueue=2000",
    "--set",
    "maxIndexNum=500",
];

/// 300 messages in five files of the log.
pub fn ours(root: &Path) -> Comet {
    let comet_ = Comet::start_with(root, &SMALL);
    let namesrv = comet_.namesrv.to_string();
    let args = ["produce", "orders", "--count", "300", "--tag", "a", "--key", "k", "-n", &namesrv];
    assert_eq!(comet(&args, "").code, 0);
    comet_
}
