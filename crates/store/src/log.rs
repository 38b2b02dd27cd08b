//! The commit log on disk: files of one size, named by the offset of their first byte (20 digits), in one or several
//! directories. File `n` is made in directory `n` modulo their number, in order of name, of those that are not full.
//!
//! Disk     a file gets its full length at once (Java checks it) and real blocks in windows ahead of the head, so that a
//!          full disk is met by the allocation and not by a write
//! Crash    behind the last record lie zeros, or what a crash tore; `recover` decides
//! Java     `MappedFileQueue`, `MultiPathMappedFileQueue`, `AllocateMappedFileService`

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use crate::Error;
use crate::disk::{Disk, File, Open};
use crate::error::IoContext;
use crate::store::lock;

pub(crate) const SEGMENT_BYTES_DEFAULT: u64 = 1 << 30;
/// Blocks are reserved in steps of this many bytes; on a disk that has not so many, in small ones.
const WINDOW: u64 = 64 << 20;
const WINDOW_SMALL: u64 = 1 << 20;

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
        let target = |window| upto.next_multiple_of(window).min(self.bytes);
        let reserve = |upto| self.file.allocate(have, upto - have).at("allocate", &self.path).map(|()| upto);
        let reserved = match reserve(target(WINDOW)) {
            Err(Error::DiskFull(_)) if target(WINDOW_SMALL) < target(WINDOW) => reserve(target(WINDOW_SMALL))?,
            other => other?,
        };
        self.allocated.store(reserved, Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    /// Where files are made, sorted; never empty.
    dirs: Vec<PathBuf>,
    full: Mutex<Vec<PathBuf>>,
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

/// Adds the files of a directory of the log to `found`.
fn list(disk: &dyn Disk, dir: &Path, found: &mut Vec<(u64, PathBuf)>) -> Result<(), Error> {
    for entry in disk.list(dir).at("list", dir)? {
        let base = parse_file_name(&entry.name).filter(|_| !entry.is_dir).ok_or_else(|| Error::Layout {
            path: dir.join(&entry.name),
            what: "not a commit-log file (a name of 20 digits is expected); move it away".to_string(),
        })?;
        found.push((base, dir.join(&entry.name)));
    }
    Ok(())
}

impl Log {
    /// Opens the segments that are there. A directory with an odd file is refused, not repaired.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        mut dirs: Vec<PathBuf>,
        read_only: &[PathBuf],
        configured: Option<u64>,
    ) -> Result<Self, Error> {
        dirs.sort();
        dirs.dedup();
        let all = dirs.clone();
        dirs.retain(|dir| !read_only.contains(dir));
        let Some(dir) = dirs.first().cloned() else {
            let what =
                "readOnlyCommitLogStorePaths has every path of storePathCommitLog: no file could be made".to_string();
            return Err(Error::Layout { path: all.first().cloned().unwrap_or_default(), what });
        };
        let mut found = Vec::new();
        for dir in &dirs {
            disk.create_dirs(dir).at("create", dir)?;
            list(disk.as_ref(), dir, &mut found)?;
        }
        for dir in read_only.iter().filter(|dir| disk.list(dir).is_ok()) {
            list(disk.as_ref(), dir, &mut found)?;
        }
        found.sort();
        found.dedup();
        let mut opened = Vec::with_capacity(found.len());
        for (base, path) in found {
            // The file that is still written may lie on a path that takes no new ones, and others on a disk that takes nothing.
            let file = match disk.open(&path, Open::Write) {
                Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                    disk.open(&path, Open::Read)
                }
                other => other,
            };
            let file = file.at("open", &path)?;
            let bytes = file.size().at("stat", &path)?;
            opened.push((base, bytes, path, file));
        }
        let there = opened.iter().map(|(_, bytes, ..)| *bytes).find(|bytes| *bytes > 0);
        if let (Some(found), Some(configured)) = (there, configured)
            && found != configured
        {
            return Err(Error::FileSize { key: "mappedFileSizeCommitLog", configured, found, path: dir });
        }
        let segment_bytes = there.or(configured).unwrap_or(SEGMENT_BYTES_DEFAULT);
        let mut segments: Vec<Arc<Segment>> = Vec::with_capacity(opened.len());
        for (base, bytes, path, file) in opened {
            let expected = segments.last().map_or(base, |before| before.end());
            if base > expected {
                let name = file_name(expected);
                let what = format!("this file is missing: the next one is {}; put it back", file_name(base));
                let beside = path.parent().map_or_else(|| dir.clone(), Path::to_path_buf);
                return Err(Error::Layout { path: beside.join(name), what });
            }
            if base != expected || (bytes != segment_bytes && bytes != 0) {
                let what = format!(
                    "{bytes} bytes from offset {base}, but files here have {segment_bytes} bytes and this one starts at \
                     {expected}"
                );
                return Err(Error::Layout { path, what });
            }
            if bytes == 0 && !disk.is_read_only() {
                // A crash came between its creation and its length. What lies behind it is looked at when the log is read.
                file.set_len(segment_bytes).at("set the length of", &path)?;
            }
            segments.push(Arc::new(Segment { base, bytes: segment_bytes, path, file, allocated: AtomicU64::new(0) }));
        }
        let (segments, spare, full) = (RwLock::new(Arc::new(segments)), Mutex::new(None), Mutex::default());
        Ok(Self { disk, dirs, full, segment_bytes, segments, spare })
    }

    /// The first of the directories.
    pub(crate) fn dir(&self) -> &Path {
        self.dirs.first().map_or(Path::new(""), PathBuf::as_path)
    }

    pub(crate) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    pub(crate) fn set_full(&self, full: Vec<PathBuf>) {
        *lock(&self.full) = full;
    }

    /// Where the file that starts at `base` is made.
    fn dir_for(&self, base: u64) -> &Path {
        let full = lock(&self.full);
        let mut free: Vec<&PathBuf> = self.dirs.iter().filter(|dir| !full.contains(dir)).collect();
        if free.is_empty() {
            free = self.dirs.iter().collect();
        }
        free[(base / self.segment_bytes) as usize % free.len()]
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

    /// Makes a file; on a full disk elsewhere, if there is an elsewhere.
    fn create(&self, base: u64) -> Result<Arc<Segment>, Error> {
        let mut tries = self.dirs.len();
        loop {
            let dir = self.dir_for(base);
            let why = match self.create_in(dir, base) {
                Err(Error::DiskFull(why)) if tries > 1 => why,
                other => return other,
            };
            // Two files of one name in two directories would be no log.
            let path = dir.join(file_name(base));
            self.disk.remove(&path).at("remove", &path)?;
            tracing::warn!(why, "the next file of the commit log is made in another directory");
            lock(&self.full).push(dir.to_path_buf());
            tries -= 1;
        }
    }

    fn create_in(&self, dir: &Path, base: u64) -> Result<Arc<Segment>, Error> {
        let path = dir.join(file_name(base));
        let made = self.disk.open(&path, Open::Create).at("create", &path)?;
        made.set_len(self.segment_bytes).at("set the length of", &path)?;
        let segment = Segment { base, bytes: self.segment_bytes, path, file: made, allocated: AtomicU64::new(0) };
        segment.reserve(1)?;
        // Before anything is written behind it: after a power cut only the last file may be without its length.
        segment.file.sync_data().at("sync", &segment.path)?;
        self.disk.sync_dir(dir).at("sync", dir)?;
        Ok(Arc::new(segment))
    }

    /// The segment that starts at `base`, made now if it was not made ahead.
    pub(crate) fn roll(&self, base: u64) -> Result<Arc<Segment>, Error> {
        // Made ahead before a clean stop.
        if let Some(there) = self.segments().iter().find(|s| s.base == base) {
            return Ok(there.clone());
        }
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
        let Some(current) = self.segment_of(head) else { return Ok(()) };
        let used = head - current.base;
        current.reserve((used + WINDOW / 2).min(current.bytes))?;
        if current.bytes - used < (current.bytes / 4).min(2 * WINDOW) {
            let mut spare = lock(&self.spare);
            if spare.as_ref().is_none_or(|s| s.base != current.end())
                && self.segments().last().is_some_and(|l| l.base == current.base)
            {
                *spare = Some(self.create(current.end())?);
            }
        }
        Ok(())
    }

    /// Takes the files behind `last_base` out of the log and gives them to `away`, the last one first: a crash on the way
    /// leaves no gap.
    pub(crate) fn drop_after(&self, last_base: u64, away: impl Fn(&Segment) -> Result<(), Error>) -> Result<(), Error> {
        let segments = self.segments();
        let (keep, gone): (Vec<_>, Vec<_>) = segments.iter().cloned().partition(|s| s.base <= last_base);
        for segment in gone.iter().rev() {
            away(segment)?;
            let dir = segment.path.parent().unwrap_or(self.dir());
            self.disk.sync_dir(dir).at("sync", dir)?;
        }
        *self.segments.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(keep);
        Ok(())
    }

    /// Forgets the first file; what was opened stays readable.
    pub(crate) fn drop_first(&self, base: u64) {
        let mut segments = self.segments.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let rest = segments.iter().filter(|s| s.base != base).cloned().collect();
        *segments = Arc::new(rest);
    }

    /// Reads `buf.len()` bytes from `offset`, which must lie in one segment.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8], may_block: bool) -> std::io::Result<()> {
        let segment = self.segment_of(offset).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))?;
        let n = segment.file.read_at(buf, offset - segment.base, may_block)?;
        if n == buf.len() { Ok(()) } else { Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Faulty;

    fn open(disk: &Faulty, configured: Option<u64>) -> Result<Log, Error> {
        Log::open(Arc::new(disk.clone()), vec!["/s/commitlog".into()], &[], configured)
    }

    fn bases(log: &Log) -> Vec<u64> {
        log.segments().iter().map(|s| s.base).collect()
    }

    #[test]
    fn a_file_that_was_made_ahead_is_used_and_not_made_twice() {
        let disk = Faulty::healthy();
        let log = open(&disk, Some(100)).unwrap();
        log.roll(0).unwrap();
        log.prepare(90).unwrap();
        assert_eq!(bases(&log), [0], "made, but not in use");
        let log = open(&disk, None).unwrap();
        assert_eq!((bases(&log), log.segment_bytes), (vec![0, 100], 100));
        log.prepare(90).unwrap();
        assert_eq!(log.roll(100).unwrap().base, 100);
        assert_eq!(bases(&log), [0, 100]);
        log.prepare(110).unwrap();
        assert_eq!(log.roll(200).unwrap().base, 200);
        assert_eq!(bases(&log), [0, 100, 200]);
    }

    fn open_in(disk: &Faulty, dirs: &[&str], read_only: &[&str]) -> Result<Log, Error> {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        Log::open(Arc::new(disk.clone()), paths(dirs), &paths(read_only), Some(100))
    }

    fn dirs_of(log: &Log) -> Vec<String> {
        log.segments().iter().map(|s| s.path.parent().unwrap().display().to_string()).collect()
    }

    #[test]
    fn files_are_made_in_several_directories_as_java_chooses() {
        let disk = Faulty::healthy();
        let log = open_in(&disk, &["/c", "/a", "/b", "/a"], &["/old"]).unwrap();
        (0..4).for_each(|n| _ = log.roll(n * 100).unwrap());
        assert_eq!(dirs_of(&log), ["/a", "/b", "/c", "/a"]);
        // Two left: 400 and 500 are numbers 4 and 5 of two.
        log.set_full(vec!["/b".into()]);
        (4..6).for_each(|n| _ = log.roll(n * 100).unwrap());
        assert_eq!(dirs_of(&log)[4..], ["/a", "/c"]);
        log.set_full(vec!["/a".into(), "/b".into(), "/c".into()]);
        assert_eq!(log.roll(600).unwrap().path, Path::new("/a/00000000000000000600"), "all full: as if none were");

        // One becomes read-only: its files stay in the log, none is added.
        let log = open_in(&disk, &["/a", "/b"], &["/c"]).unwrap();
        assert_eq!(dirs_of(&log), ["/a", "/b", "/c", "/a", "/a", "/c", "/a"]);
        assert_eq!(log.roll(700).unwrap().path, Path::new("/b/00000000000000000700"));
        let error = open_in(&disk, &["/a", "/b"], &[]).err().map(|e| e.to_string());
        let missing =
            "/a/00000000000000000200: this file is missing: the next one is 00000000000000000300; put it back";
        assert_eq!(error.as_deref(), Some(missing));
        let error = open_in(&disk, &["/a"], &["/a", "/b"]).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.starts_with("/a: readOnlyCommitLogStorePaths has every path"), "{error}");
    }

    #[test]
    fn a_full_disk_sends_the_next_file_elsewhere() {
        let disk = Faulty::healthy();
        let log = open_in(&disk, &["/a", "/b"], &[]).unwrap();
        log.roll(0).unwrap();
        disk.set_capacity(Some(100));
        assert!(matches!(log.roll(100), Err(Error::DiskFull(_))));
        assert_eq!((bases(&log), disk.list(Path::new("/b")).unwrap().len()), (vec![0], 0), "tried, and taken back");
        disk.set_capacity(None);
        assert_eq!(log.roll(100).unwrap().path.parent(), Some(Path::new("/a")), "until somebody says otherwise");
        log.set_full(Vec::new());
        assert_eq!(log.roll(200).unwrap().path.parent(), Some(Path::new("/a")));
        assert_eq!(log.roll(300).unwrap().path.parent(), Some(Path::new("/b")));
    }

    #[test]
    fn a_file_that_is_deleted_stays_readable_to_who_has_it() {
        let disk = Faulty::healthy();
        let log = open(&disk, Some(100)).unwrap();
        log.roll(0).unwrap().file.write_all_at(b"first", 0).unwrap();
        log.roll(100).unwrap();
        let readers = log.segments();
        disk.remove(&readers[0].path).unwrap();
        log.drop_first(0);
        assert_eq!((bases(&log), log.start()), (vec![100], 100));
        let mut bytes = [0; 5];
        readers[0].file.read_at(&mut bytes, 0, true).unwrap();
        assert_eq!(&bytes, b"first");
        assert_eq!(log.read(0, &mut bytes, true).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        assert_eq!(bases(&open(&disk, None).unwrap()), [100]);
    }

    #[test]
    fn odd_files_are_refused_by_name() {
        let says = |make: &dyn Fn(&Faulty)| {
            let disk = Faulty::healthy();
            open(&disk, Some(100)).unwrap().roll(0).unwrap();
            make(&disk);
            open(&disk, None).err().map(|e| e.to_string())
        };
        let file = |disk: &Faulty, name: &str, len: u64| {
            disk.open(&Path::new("/s/commitlog").join(name), Open::Create).unwrap().set_len(len).unwrap();
        };
        let name = "/s/commitlog/00000000000000000";
        let expected = |rest: &str| Some(format!("{name}{rest}"));
        assert_eq!(
            says(&|disk| file(disk, "00000000000000000100", 99)),
            expected("100: 99 bytes from offset 100, but files here have 100 bytes and this one starts at 100")
        );
        assert_eq!(
            says(&|disk| file(disk, "00000000000000000300", 100)),
            expected("100: this file is missing: the next one is 00000000000000000300; put it back")
        );
        assert_eq!(
            says(&|disk| file(disk, "00000000000000000050", 100)),
            expected("050: 100 bytes from offset 50, but files here have 100 bytes and this one starts at 100")
        );
        assert!(
            says(&|disk| file(disk, "x.tmp", 1)).is_some_and(|e| e.starts_with("/s/commitlog/x.tmp: not a commit"))
        );
        assert_eq!(says(&|disk| file(disk, "00000000000000000100", 0)), None, "a crash leaves this");
        let disk = Faulty::healthy();
        open(&disk, Some(100)).unwrap().roll(0).unwrap();
        let error = open(&disk, Some(200)).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.starts_with("mappedFileSizeCommitLog=200 contradicts"), "{error}");
    }
}
