//! The seam between the store and the disk. [`Real`] is the file system; [`Faulty`] keeps files in memory and can lose
//! power at any operation. The fault model is written on top of `faulty.rs`.

mod real;
mod faulty;

pub use faulty::Faulty;
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
    /// Takes the exclusive lock of a store: byte 0 of the file, as Java's `FileChannel.tryLock(0, 1)`.
    /// `None` = somebody else holds it. Held until the value is dropped.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>>;

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
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves blocks, so that a later write cannot meet a full disk. The length stays.
    fn allocate(&self, at: u64, len: u64) -> io::Result<()>;
    fn sync_data(&self) -> io::Result<()>;
    /// Where data follows at or behind `at`; `None` = only holes up to the end.
    fn next_data(&self, at: u64) -> io::Result<Option<u64>>;
}
