//! The commit log on disk: files of one size, named by the offset of their first byte (20 digits).
//!
//! Disk     a file gets its full length at once (Java checks it) and real blocks in windows ahead of the head, so that a
//!          full disk is met by the allocation and not by a write
//! Crash    behind the last record lie zeros, or what a crash tore; `recover` decides
//! Java     `MappedFileQueue`, `AllocateMappedFileService`

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use crate::Error;
use crate::disk::{Disk, File, Open};
use crate::error::IoContext;
use crate::store::lock;

pub(crate) const SEGMENT_BYTES_DEFAULT: u64 = 1 << 30;
/// Blocks are reserved in steps of this many bytes.
const WINDOW: u64 = 64 << 20;

pub(crate) struct Segment {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    allocated: AtomicU64,
}

impl Segment {
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes
    }

    /// Reserves blocks up to `upto` (bytes of this file) if they are not.
    pub(crate) fn reserve(&self, upto: u64) -> Result<(), Error> {
        let have = self.allocated.load(Ordering::Relaxed);
        if upto <= have {
            return Ok(());
        }
        let target = upto.next_multiple_of(WINDOW).min(self.bytes);
        match self.file.allocate(have, target - have) {
            Ok(()) => {
                self.allocated.store(target, Ordering::Relaxed);
                Ok(())
            }
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull || e.kind() == std::io::ErrorKind::QuotaExceeded => {
                let path = self.path.display();
                Err(Error::DiskFull(format!("{path}: no room for {} bytes more ({e})", target - have)))
            }
            Err(e) => Err(e).at("allocate", &self.path),
        }
    }
}

pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    pub(crate) segment_bytes: u64,
    segments: RwLock<Arc<Vec<Arc<Segment>>>>,
    /// Made ahead of time by the flush thread.
    spare: Mutex<Option<Arc<Segment>>>,
}

pub(crate) fn file_name(offset: u64) -> String {
    format!("{offset:020}")
}

/// The offset that a file name of 20 digits stands for.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    (name.len() == 20 && name.bytes().all(|b| b.is_ascii_digit())).then(|| name.parse().ok())?
}

impl Log {
    /// Opens the segments that are there. A directory with an odd file is refused, not repaired.
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: PathBuf, configured: Option<u64>) -> Result<Self, Error> {
        disk.create_dirs(&dir).at("create", &dir)?;
        let mut found = Vec::new();
        for entry in disk.list(&dir).at("list", &dir)? {
            let base = parse_file_name(&entry.name).filter(|_| !entry.is_dir).ok_or_else(|| Error::Layout {
                path: dir.join(&entry.name),
                what: "not a commit-log file (a name of 20 digits is expected); move it away".to_string(),
            })?;
            found.push((base, dir.join(&entry.name)));
        }
        found.sort();
        let mut segments: Vec<Arc<Segment>> = Vec::with_capacity(found.len());
        for (base, path) in found {
            let file = disk.open(&path, Open::Write).at("open", &path)?;
            let bytes = file.size().at("stat", &path)?;
            if let Some(before) = segments.last()
                && (bytes == 0 || bytes != before.bytes || before.end() != base)
            {
                let what = format!(
                    "{bytes} bytes from offset {base}, but the file before it ends at {} and has {} bytes",
                    before.end(),
                    before.bytes
                );
                return Err(Error::Layout { path, what });
            }
            segments.push(Arc::new(Segment { base, bytes, path, file, allocated: AtomicU64::new(0) }));
        }
        if segments.len() == 1 && segments[0].bytes == 0 {
            // Created by a start that was cut off before it had its length.
            let path = segments.remove(0).path.clone();
            disk.remove(&path).at("remove", &path)?;
        }
        let there = segments.first().map(|s| s.bytes);
        if let (Some(found), Some(configured)) = (there, configured)
            && found != configured
        {
            return Err(Error::FileSize { key: "mappedFileSizeCommitLog", configured, found, path: dir });
        }
        let segment_bytes = there.or(configured).unwrap_or(SEGMENT_BYTES_DEFAULT);
        Ok(Self { disk, dir, segment_bytes, segments: RwLock::new(Arc::new(segments)), spare: Mutex::new(None) })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn segments(&self) -> Arc<Vec<Arc<Segment>>> {
        self.segments.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(crate) fn start(&self) -> u64 {
        self.segments().first().map_or(0, |s| s.base)
    }

    /// The segment that holds `offset`.
    pub(crate) fn segment_of(&self, offset: u64) -> Option<Arc<Segment>> {
        let segments = self.segments();
        let i = segments.partition_point(|s| s.base <= offset);
        segments.get(i.checked_sub(1)?).filter(|s| offset < s.end()).cloned()
    }

    fn create(&self, base: u64) -> Result<Arc<Segment>, Error> {
        let path = self.dir.join(file_name(base));
        let made = self.disk.open(&path, Open::Create).at("create", &path)?;
        made.set_len(self.segment_bytes).at("set the length of", &path)?;
        let segment = Segment { base, bytes: self.segment_bytes, path, file: made, allocated: AtomicU64::new(0) };
        segment.reserve(1)?;
        self.disk.sync_dir(&self.dir).at("sync", &self.dir)?;
        Ok(Arc::new(segment))
    }

    /// The segment that starts at `base`, made now if it was not made ahead.
    pub(crate) fn roll(&self, base: u64) -> Result<Arc<Segment>, Error> {
        let spare = lock(&self.spare).take().filter(|s| s.base == base);
        let next = match spare {
            Some(segment) => segment,
            None => self.create(base)?,
        };
        let mut segments = self.segments.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut list = segments.as_ref().clone();
        list.push(next.clone());
        *segments = Arc::new(list);
        Ok(next)
    }

    /// Called by the flush thread: blocks ahead of the head, and the next file before it is needed.
    pub(crate) fn prepare(&self, head: u64) -> Result<(), Error> {
        let Some(last) = self.segments().last().cloned() else { return Ok(()) };
        let used = head.saturating_sub(last.base);
        last.reserve((used + WINDOW / 2).min(last.bytes))?;
        if last.bytes - used.min(last.bytes) < (last.bytes / 4).min(2 * WINDOW) {
            let mut spare = lock(&self.spare);
            if spare.as_ref().is_none_or(|s| s.base != last.end())
                && self.segments().last().is_some_and(|l| l.base == last.base)
            {
                *spare = Some(self.create(last.end())?);
            }
        }
        Ok(())
    }

    /// Takes the files behind `last_base` out of the log and gives them to `away`.
    pub(crate) fn drop_after(&self, last_base: u64, away: impl Fn(&Segment) -> Result<(), Error>) -> Result<(), Error> {
        let segments = self.segments();
        let (keep, gone): (Vec<_>, Vec<_>) = segments.iter().cloned().partition(|s| s.base <= last_base);
        for segment in &gone {
            away(segment)?;
        }
        *self.segments.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(keep);
        if gone.is_empty() { Ok(()) } else { self.disk.sync_dir(&self.dir).at("sync", &self.dir) }
    }

    /// Reads `buf.len()` bytes from `offset`, which must lie in one segment.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8], may_block: bool) -> std::io::Result<()> {
        let segment = self.segment_of(offset).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))?;
        let n = segment.file.read_at(buf, offset - segment.base, may_block)?;
        if n == buf.len() { Ok(()) } else { Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)) }
    }
}
