//! A disk in memory whose syncs can be held up, by the path of the file: what is acknowledged meanwhile was acknowledged
//! too early.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use cometmq_store::disk::{Disk, Entry, Faulty, File, Open, Space};

use super::peer::LONG;

#[derive(Clone)]
pub struct Gated {
    pub disk: Faulty,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    /// Part of the paths whose syncs wait, and how many do.
    held: Mutex<(Option<&'static str>, usize)>,
    moved: Condvar,
}

struct GatedFile {
    file: Arc<dyn File>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl Gated {
    pub fn new() -> Self {
        Self { disk: Faulty::healthy(), gate: Arc::default() }
    }

    /// From now on, syncs of files with `part` in their path wait.
    pub fn hold(&self, part: &'static str) {
        self.gate.held.lock().unwrap().0 = Some(part);
    }

    pub fn release(&self) {
        self.gate.held.lock().unwrap().0 = None;
        self.gate.moved.notify_all();
    }

    /// Returns once a sync waits.
    pub fn wait_for_sync(&self) {
        let held = self.gate.held.lock().unwrap();
        let late = self.gate.moved.wait_timeout_while(held, LONG, |held| held.1 == 0).unwrap().1;
        assert!(!late.timed_out(), "nobody syncs");
    }
}

impl Gate {
    fn pass(&self, path: &Path) -> io::Result<()> {
        let mut held = self.held.lock().unwrap();
        if held.0.is_none_or(|part| !path.to_string_lossy().contains(part)) {
            return Ok(());
        }
        held.1 += 1;
        self.moved.notify_all();
        let (mut held, late) = self.moved.wait_timeout_while(held, LONG, |held| held.0.is_some()).unwrap();
        held.1 -= 1;
        if late.timed_out() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl Disk for Gated {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(path, how)?;
        Ok(Arc::new(GatedFile { file, path: path.to_path_buf(), gate: self.gate.clone() }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.disk.list(dir)
    }

    fn create_dirs_unsynced(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dirs_unsynced(dir)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn sync_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_all(dir)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.disk.space(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.disk.lock_shared(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.disk.lock(path)
    }
}

impl File for GatedFile {
    fn read_at(&self, buf: &mut [u8], at: u64, may_block: bool) -> io::Result<usize> {
        self.file.read_at(buf, at, may_block)
    }

    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn modified_ms(&self) -> io::Result<i64> {
        self.file.modified_ms()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, at: u64, len: u64) -> io::Result<()> {
        self.file.allocate(at, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass(&self.path)?;
        self.file.sync_data()
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        self.file.next_data(at)
    }
}
