//! The seam between the store and the disk. [`Real`] is the file system; [`Faulty`] keeps files in memory and can lose
//! power at any operation. The fault model is written on top of `faulty.rs`.

mod real;
mod faulty;
mod read_only;

pub use faulty::Faulty;
pub use read_only::ReadOnly;
pub use real::Real;

use std::io;
use std::path::Path;
use std::sync::Arc;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Read,
    Write,
    /// Read and write, created when it is missing.
    Create,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub name: String,
    pub is_dir: bool,
}

/// The room of a file system, in bytes. Java: `UtilAll.getDiskPartitionSpaceUsedPercent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    pub used: u64,
    /// What this process may still use; less than `total - used` where some is kept for root.
    pub free: u64,
}

impl Space {
    /// The used part of what this process can use, rounded up, as Java does.
    pub fn used_percent(&self) -> u32 {
        let all = u128::from(self.used) + u128::from(self.free);
        if all == 0 { 100 } else { (u128::from(self.used) * 100).div_ceil(all) as u32 }
    }
}

pub trait Disk: Send + Sync + 'static {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;
    /// The entries of a directory, in no order; a missing directory is `NotFound`.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;
    /// Creates a directory and those above it. A power cut may take them until their parents are synced.
    fn create_dirs_unsynced(&self, dir: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory that is empty.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes creations, removals and renames in `dir` survive a power cut.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes everything of the file system that `dir` lies on durable.
    fn sync_all(&self, dir: &Path) -> io::Result<()>;
    /// The room of the file system that `path`, which exists, lies on.
    fn space(&self, path: &Path) -> io::Result<Space>;
    /// Takes the exclusive lock of a store: byte 0 of the file, as Java's `FileChannel.tryLock(0, 1)`.
    /// `None` = somebody else holds it. Held until the value is dropped.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>>;

    /// Shares the lock of a store with others that only read, without changing a byte. `None` = somebody holds it alone.
    /// A missing file is `NotFound`.
    fn lock_shared(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>>;

    /// Whether nothing can be changed here.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Creates a directory and those above it, so that they survive a power cut.
    fn create_dirs(&self, dir: &Path) -> io::Result<()> {
        let here = |dir: &Path| if dir.as_os_str().is_empty() { Path::new(".") } else { dir }.to_path_buf();
        let missing: Vec<&Path> = dir.ancestors().take_while(|d| self.list(&here(d)).is_err()).collect();
        self.create_dirs_unsynced(dir)?;
        missing.iter().filter_map(|d| d.parent()).try_for_each(|parent| self.sync_dir(&here(parent)))
    }

    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, Open::Read)?;
        let mut bytes = vec![0; file.size()? as usize];
        let n = file.read_at(&mut bytes, 0, true)?;
        bytes.truncate(n);
        Ok(bytes)
    }

    /// Replaces a whole file so that a crash leaves the old or the new content. `temp` lies on the same file system.
    fn replace(&self, path: &Path, temp: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(temp, Open::Create)?;
        file.set_len(0)?;
        file.write_all_at(bytes, 0)?;
        file.sync_data()?;
        self.rename(temp, path)?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(dir))
    }
}

pub trait File: Send + Sync {
    /// Reads until `buf` is full or the file ends. `may_block = false`: `WouldBlock` if the bytes are not in memory.
    fn read_at(&self, buf: &mut [u8], at: u64, may_block: bool) -> io::Result<usize>;
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    fn size(&self) -> io::Result<u64>;
    /// When it was last written, epoch milliseconds.
    fn modified_ms(&self) -> io::Result<i64>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves blocks, so that a later write cannot meet a full disk. The length stays.
    fn allocate(&self, at: u64, len: u64) -> io::Result<()>;
    fn sync_data(&self) -> io::Result<()>;
    /// Where data follows at or behind `at`; `None` = only holes up to the end.
    fn next_data(&self, at: u64) -> io::Result<Option<u64>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_part_is_a_whole_percent_rounded_up() {
        let percent = |used, free| Space { total: 0, used, free }.used_percent();
        assert_eq!([percent(0, 10), percent(1, 999), percent(90, 10), percent(9001, 999)], [0, 1, 90, 91]);
        assert_eq!((percent(0, 0), percent(u64::MAX, u64::MAX)), (100, 50));
    }

    #[test]
    fn a_real_disk_says_its_room_and_the_time_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let space = Real.space(dir.path()).unwrap();
        assert!(space.total >= space.used + space.free && space.used > 0 && space.used_percent() <= 100, "{space:?}");
        let path = dir.path().join("f");
        let file = Real.open(&path, Open::Create).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(file.modified_ms().unwrap(), 1_700_000_000_123);
        assert!(Real.space(&dir.path().join("nothing")).is_err());
    }
}
