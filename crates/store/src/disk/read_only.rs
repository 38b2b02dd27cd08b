//! Another disk on which nothing can be changed: for whoever looks at a store and must not touch it.
//! What is opened to be written can be read; every change fails.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Disk, Entry, File, Open, Space};

pub struct ReadOnly(pub Arc<dyn Disk>);

struct ReadOnlyFile(Arc<dyn File>);

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for ReadOnly {
    fn open(&self, path: &Path, _how: Open) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(ReadOnlyFile(self.0.open(path, Open::Read)?)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.0.list(dir)
    }

    fn create_dirs_unsynced(&self, dir: &Path) -> io::Result<()> {
        self.0.list(dir).map(|_| ())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _dir: &Path) -> io::Result<()> {
        refused()
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_all(&self, _dir: &Path) -> io::Result<()> {
        refused()
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.0.space(path)
    }

    fn lock(&self, _path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        refused()
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.0.lock_shared(path)
    }

    fn is_read_only(&self) -> bool {
        true
    }
}

impl File for ReadOnlyFile {
    fn read_at(&self, buf: &mut [u8], at: u64, may_block: bool) -> io::Result<usize> {
        self.0.read_at(buf, at, may_block)
    }

    fn write_all_at(&self, _bytes: &[u8], _at: u64) -> io::Result<()> {
        refused()
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn modified_ms(&self) -> io::Result<i64> {
        self.0.modified_ms()
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        refused()
    }

    fn allocate(&self, _at: u64, _len: u64) -> io::Result<()> {
        refused()
    }

    fn sync_data(&self) -> io::Result<()> {
        refused()
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        self.0.next_data(at)
    }
}
