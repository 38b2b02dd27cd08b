//! A disk in memory that loses power, runs full or fails to sync, on order.
//!
//! Fault model. Each changing operation (write, length, allocate, create, remove, rename, sync) has a number. At the number
//! set by [`Faulty::lose_power_at`] the operation does not happen, and every later one fails. What is left
//! ([`Faulty::surviving`]): of each file everything up to its last sync, and of each later write every 512-byte sector or
//! not, by a coin (but nothing behind the end of the file as long as a length that was set is not there: file systems order
//! the two); of each directory everything up to its last sync, and of later creations, removals and renames each or
//! not, by a coin (a directory that goes takes along what is in it). A rename never loses both names' content.

mod survive;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cometmq_base::Clock;

use super::{Disk, Entry, File, Open, Space};

const SECTOR: usize = 512;

#[derive(Clone)]
pub struct Faulty {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: Vec<Inode>,
    /// Names now, and as of the last sync of their directory.
    names: BTreeMap<PathBuf, usize>,
    kept_names: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
    kept_dirs: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    ops: u64,
    lose_power_at: Option<u64>,
    capacity: Option<u64>,
    fail_sync: bool,
    cold: bool,
    /// What files are stamped with; without one, 0.
    clock: Option<Clock>,
    seed: u64,
}

#[derive(Default, Clone)]
struct Inode {
    now: Vec<u8>,
    /// Length of `now` as of the last sync, and the sectors written since.
    synced: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// The length that was set since.
    set_len: Option<usize>,
    allocated: u64,
    modified_ms: i64,
}

struct FaultyFile {
    disk: Faulty,
    inode: usize,
}

impl Default for Faulty {
    fn default() -> Self {
        Self::healthy()
    }
}

impl Faulty {
    pub fn healthy() -> Self {
        let state = State { seed: 0x9E37_79B9_7F4A_7C15, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    pub fn lose_power_at(op: u64, seed: u64) -> Self {
        let disk = Self::healthy();
        let mut state = disk.state();
        state.lose_power_at = Some(op);
        state.seed ^= seed.wrapping_mul(0xD134_2543_DE82_EF95);
        drop(state);
        disk
    }

    /// Another fate at the next cut.
    pub fn set_seed(&self, seed: u64) {
        self.state().seed = seed | 1;
    }

    /// Fails writes and allocations beyond this many bytes in all files.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    pub fn fail_syncs(&self, fail: bool) {
        self.state().fail_sync = fail;
    }

    /// From now on writes stamp their file with the time of `clock`.
    pub fn set_clock(&self, clock: Clock) {
        self.state().clock = Some(clock);
    }

    /// Reads that may not block find nothing in memory.
    pub fn make_cold(&self, cold: bool) {
        self.state().cold = cold;
    }

    /// Loses power when `ops` more operations were done.
    pub fn lose_power_after(&self, ops: u64) {
        let mut state = self.state();
        state.lose_power_at = Some(state.ops + ops);
    }

    /// Changing operations so far.
    pub fn ops(&self) -> u64 {
        self.state().ops
    }

    pub fn power_is_lost(&self) -> bool {
        let state = self.state();
        state.lose_power_at.is_some_and(|at| state.ops > at)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inode {
    fn sync(&mut self) {
        self.synced = self.now.clone();
        self.dirty.clear();
        self.set_len = None;
    }
}

impl State {
    fn coin(&mut self) -> bool {
        // xorshift: the same seed gives the same disk.
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed & 1 == 1
    }

    /// Counts a changing operation.
    fn op(&mut self) -> io::Result<()> {
        let lost = self.lose_power_at.is_some_and(|at| self.ops >= at);
        self.ops += 1;
        if lost { Err(io::Error::other("power lost")) } else { Ok(()) }
    }

    fn now_ms(&self) -> i64 {
        self.clock.as_ref().map_or(0, Clock::now_ms)
    }

    fn check_capacity(&self, inode: usize, end: u64) -> io::Result<()> {
        let used = |(i, f): (usize, &Inode)| if i == inode { f.allocated.max(end) } else { f.allocated };
        let total: u64 = self.files.iter().enumerate().map(used).sum();
        if self.capacity.is_some_and(|c| total > c) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }
}

impl Disk for Faulty {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let inode = match (state.names.get(path), how) {
            (Some(inode), _) => *inode,
            (None, Open::Create) => {
                if !path.parent().is_some_and(|dir| state.dirs.contains(dir)) {
                    return Err(io::Error::from(io::ErrorKind::NotFound));
                }
                state.op()?;
                state.files.push(Inode::default());
                let inode = state.files.len() - 1;
                state.names.insert(path.to_path_buf(), inode);
                inode
            }
            (None, _) => return Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        Ok(Arc::new(FaultyFile { disk: self.clone(), inode }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let state = self.state();
        if !state.dirs.contains(dir) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let entry = |path: &PathBuf, is_dir| {
            let name = path.strip_prefix(dir).ok()?.to_str()?;
            (!name.is_empty() && !name.contains('/')).then(|| Entry { name: name.to_string(), is_dir })
        };
        let files = state.names.keys().filter_map(|p| entry(p, false));
        Ok(files.chain(state.dirs.iter().filter_map(|p| entry(p, true))).collect())
    }

    fn create_dirs_unsynced(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.op()?;
        state.dirs.extend(dir.ancestors().map(Path::to_path_buf));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.op()?;
        let inode = state.names.remove(path).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        state.files[inode].allocated = 0;
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.op()?;
        state.dirs.remove(dir);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.op()?;
        let inode = state.names.remove(from).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if let Some(replaced) = state.names.insert(to.to_path_buf(), inode) {
            state.files[replaced].allocated = 0;
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.op()?;
        let here = |path: &Path| path.parent() == Some(dir);
        state.kept_names.retain(|path, _| !here(path));
        let below: Vec<_> = state.dirs.iter().filter(|d| here(d)).cloned().collect();
        state.kept_dirs.extend(below);
        let now: Vec<_> = state.names.iter().filter(|(p, _)| here(p)).map(|(p, i)| (p.clone(), *i)).collect();
        state.kept_names.extend(now);
        Ok(())
    }

    fn sync_all(&self, _dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.op()?;
        if state.fail_sync {
            return Err(io::Error::other("sync failed"));
        }
        for file in &mut state.files {
            file.sync();
        }
        state.kept_names = state.names.clone();
        state.kept_dirs = state.dirs.clone();
        Ok(())
    }

    /// A disk without a capacity has a pebibyte.
    fn space(&self, path: &Path) -> io::Result<Space> {
        let state = self.state();
        if !state.dirs.contains(path) && !state.names.contains_key(path) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let total = state.capacity.unwrap_or(1 << 50);
        let used = state.files.iter().map(|f| f.allocated).sum::<u64>().min(total);
        Ok(Space { total, used, free: total - used })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        struct Held(Faulty, PathBuf);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.state().locked.remove(&self.1);
            }
        }
        self.open(path, Open::Create)?;
        let fresh = self.state().locked.insert(path.to_path_buf());
        Ok(fresh.then(|| Box::new(Held(self.clone(), path.to_path_buf())) as Box<dyn Send + Sync>))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        self.open(path, Open::Read)?;
        Ok((!self.state().locked.contains(path)).then(|| Box::new(()) as Box<dyn Send + Sync>))
    }
}

impl File for FaultyFile {
    fn read_at(&self, buf: &mut [u8], at: u64, may_block: bool) -> io::Result<usize> {
        let state = self.disk.state();
        if state.cold && !may_block {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        let bytes = state.files[self.inode].now.get(at as usize..).unwrap_or_default();
        let n = bytes.len().min(buf.len());
        buf[..n].copy_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.op()?;
        let (at, end) = (at as usize, at as usize + bytes.len());
        state.check_capacity(self.inode, end as u64)?;
        let now_ms = state.now_ms();
        let file = &mut state.files[self.inode];
        file.modified_ms = now_ms;
        file.allocated = file.allocated.max(end as u64);
        if file.now.len() < end {
            file.now.resize(end, 0);
        }
        file.now[at..end].copy_from_slice(bytes);
        file.dirty.extend(at / SECTOR..end.div_ceil(SECTOR));
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.inode].now.len() as u64)
    }

    fn modified_ms(&self) -> io::Result<i64> {
        Ok(self.disk.state().files[self.inode].modified_ms)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.op()?;
        let now_ms = state.now_ms();
        let file = &mut state.files[self.inode];
        file.modified_ms = now_ms;
        file.now.resize(len as usize, 0);
        file.set_len = Some(len as usize);
        Ok(())
    }

    fn allocate(&self, at: u64, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.op()?;
        state.check_capacity(self.inode, at + len)?;
        let file = &mut state.files[self.inode];
        file.allocated = file.allocated.max(at + len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.op()?;
        if state.fail_sync {
            return Err(io::Error::other("sync failed"));
        }
        state.files[self.inode].sync();
        Ok(())
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let state = self.disk.state();
        let bytes = state.files[self.inode].now.get(at as usize..).unwrap_or_default();
        Ok(bytes.iter().position(|b| *b != 0).map(|i| at + i as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_survives_and_the_rest_is_a_coin() {
        let (mut lost, mut kept) = (0, 0);
        for seed in 0..64 {
            let disk = Faulty::lose_power_at(u64::MAX, seed);
            let dir = Path::new("/d");
            disk.create_dirs(dir).unwrap();
            let file = disk.open(&dir.join("f"), Open::Create).unwrap();
            file.write_all_at(&[1; 1024], 0).unwrap();
            file.sync_data().unwrap();
            disk.sync_dir(dir).unwrap();
            file.write_all_at(&[2; 512], 0).unwrap();
            let after = disk.surviving().read_all(&dir.join("f")).unwrap();
            assert_eq!(after.len(), 1024);
            assert_eq!(after[512..], [1; 512]);
            if after[0] == 2 { kept += 1 } else { lost += 1 }
        }
        assert!(lost > 5 && kept > 5, "{lost} lost, {kept} kept");
    }

    #[test]
    fn after_the_cut_nothing_works() {
        let disk = Faulty::lose_power_at(3, 1);
        disk.create_dirs(Path::new("/d")).unwrap();
        let file = disk.open(Path::new("/d/f"), Open::Create).unwrap();
        assert!(!disk.power_is_lost());
        assert!(file.write_all_at(b"x", 0).is_err());
        assert!(file.sync_data().is_err());
        assert!(disk.power_is_lost());
        assert_eq!(disk.ops(), 5);
    }
}
