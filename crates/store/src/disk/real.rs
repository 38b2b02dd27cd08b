//! The file system of the machine.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use super::{Disk, Entry, File, Open, Space};

#[derive(Debug, Default, Clone, Copy)]
pub struct Real;

struct RealFile(fs::File);

impl Disk for Real {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(how != Open::Read)
            .create(how == Open::Create)
            .truncate(false)
            .open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let is_dir = entry.file_type()?.is_dir();
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(Entry { name, is_dir });
            }
        }
        Ok(entries)
    }

    fn create_dirs_unsynced(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn sync_all(&self, dir: &Path) -> io::Result<()> {
        Ok(rustix::fs::syncfs(fs::File::open(dir)?)?)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let stat = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        let used = stat.f_blocks.saturating_sub(stat.f_bfree);
        Ok(Space { total: bytes(stat.f_blocks), used: bytes(used), free: bytes(stat.f_bavail) })
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        lock(path, true)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        lock(path, false)
    }
}

fn lock(path: &Path, alone: bool) -> io::Result<Option<Box<dyn Send + Sync>>> {
    // These locks belong to the process: it does not exclude itself, and closing the file once more gives them up.
    static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    struct Held(Option<OwnedFd>, PathBuf);
    impl Drop for Held {
        fn drop(&mut self) {
            let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.take();
            held.remove(&self.1);
        }
    }
    let name = path.parent().map_or_else(|| Ok(path.to_path_buf()), fs::canonicalize)?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.contains(&name) {
        return Ok(None);
    }
    let file = fs::OpenOptions::new().read(true).write(alone).create(alone).truncate(false).open(path)?;
    // Java locks byte 0..1 with POSIX record locks; rustix's fcntl_lock takes the whole file, which overlaps it.
    // `flock` (Rust's `File::try_lock`) would not see Java's lock at all.
    let how = if alone { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
    match rustix::fs::fcntl_lock(&file, how) {
        Ok(()) => {
            if alone {
                file.write_all_at(b"lock", 0)?;
            }
            held.insert(name.clone());
            Ok(Some(Box::new(Held(Some(OwnedFd::from(file)), name))))
        }
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], at: u64, may_block: bool) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let n = if may_block {
                self.0.read_at(&mut buf[done..], at + done as u64)
            } else {
                let mut slices = [IoSliceMut::new(&mut buf[done..])];
                let read = rustix::io::preadv2(self.0.as_fd(), &mut slices, at + done as u64, ReadWriteFlags::NOWAIT);
                match read {
                    // A file system without support for it: read as usual rather than never.
                    Err(Errno::OPNOTSUPP) => self.0.read_at(&mut buf[done..], at + done as u64),
                    other => other.map_err(io::Error::from),
                }
            };
            match n {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn modified_ms(&self) -> io::Result<i64> {
        let since = self.0.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, at: u64, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::KEEP_SIZE, at, len) {
            // Not every file system can; a full disk is then met by the write itself.
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.0, SeekFrom::Data(at)) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
