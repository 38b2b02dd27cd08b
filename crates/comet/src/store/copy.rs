//! A copy of a directory: holes stay holes, and files keep their times, by which old ones are deleted.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Context;
use cometmq_store::disk::{Disk, Open, Real};

use super::shown;

const READ: usize = 1 << 20;
/// Zeros of this many bytes become a hole.
const BLOCK: usize = 64 << 10;

/// Copies what is below `from` to `to`, which is new or empty. Links are followed. Not the lock: who closes that file gives up the lock
/// that this process has on it.
pub(super) fn tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| shown(to))?;
    for entry in fs::read_dir(from).with_context(|| shown(from))? {
        let name = entry.with_context(|| shown(from))?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        if fs::metadata(&from).with_context(|| shown(&from))?.is_dir() {
            tree(&from, &to)?;
        } else if name != "lock" {
            file(&from, &to).with_context(|| format!("copying {} to {}", shown(&from), shown(&to)))?;
        }
    }
    fs::File::open(to).and_then(|dir| dir.sync_all()).with_context(|| shown(to))
}

fn file(from: &Path, to: &Path) -> io::Result<()> {
    let (source, meta) = (Real.open(from, Open::Read)?, fs::metadata(from)?);
    let copy = fs::OpenOptions::new().write(true).create_new(true).open(to)?;
    copy.set_len(meta.len())?;
    let mut bytes = vec![0; READ];
    let mut at = 0;
    while let Some(data) = source.next_data(at)?.filter(|data| *data < meta.len()) {
        at = data;
        let n = source.read_at(&mut bytes, at, true)?;
        if n == 0 {
            break;
        }
        for block in bytes[..n].chunks(BLOCK) {
            if block.iter().any(|b| *b != 0) {
                copy.write_all_at(block, at)?;
            }
            at += block.len() as u64;
        }
    }
    copy.set_permissions(meta.permissions())?;
    copy.set_modified(meta.modified()?)?;
    copy.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn holes_and_times_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir_all(from.join("x")).unwrap();
        let file = fs::File::create(from.join("x/f")).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"in the middle", 30_000_000).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        file.set_modified(time).unwrap();
        tree(&from, &to).unwrap();
        let meta = fs::metadata(to.join("x/f")).unwrap();
        assert_eq!((meta.len(), meta.modified().unwrap()), (64 << 20, time));
        assert!(meta.blocks() * 512 <= 1 << 20, "{} blocks", meta.blocks());
        assert!(fs::read(from.join("x/f")).unwrap() == fs::read(to.join("x/f")).unwrap());
        assert!(tree(&from, &to).is_err(), "nothing is overwritten");
    }
}
