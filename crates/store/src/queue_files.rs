//! The files of consume queues: `consumequeue/<topic>/<queue id>/<first byte, 20 digits>`, 20-byte entries, big-endian.
//!
//! Disk     a file is created at its full length (Java checks it), sparse; entry `n` of a queue is at byte `20 n` of all
//! Crash    derived data: written only for records that are durable in the log, so an entry never points past it
//! Threads  one writer (dispatch); readers open the same descriptors; at most `OPEN_MAX` are open
//! Java     `ConsumeQueue`, `ConsumeQueueStore`

mod expired;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::Error;
use crate::cut::free_name;
use crate::disk::{Disk, File, Open};
use crate::error::IoContext;
use crate::log::{file_name, parse_file_name};
use crate::queue::{ENTRY_BYTES, Entry, Queue};
use crate::store::lock;

pub(crate) const QUEUE_FILE_BYTES_DEFAULT: u64 = 300_000 * ENTRY_BYTES;
const OPEN_MAX: usize = 256;

pub(crate) struct QueueFiles {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    pub(crate) file_bytes: u64,
    /// Topics whose queues lie in `batchconsumequeue`: a Java broker does not start when it finds them in both places.
    batch: HashSet<String>,
    /// Length of all files together.
    bytes: AtomicU64,
    open: Mutex<OpenFiles>,
}

#[derive(Default)]
struct OpenFiles {
    by_path: HashMap<PathBuf, (Arc<dyn File>, u64)>,
    clock: u64,
    /// Written since the last [`QueueFiles::sync`], and directories that got a file.
    unsynced: HashSet<PathBuf>,
    new_in: HashSet<PathBuf>,
    /// Expired and about to be removed; not counted in `bytes` any more.
    doomed: HashSet<PathBuf>,
}

impl QueueFiles {
    /// Opens the queue files below `root`. Those of another length than most are set aside in `own_dir`: what they say is in
    /// the log, too.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        root: &Path,
        own_dir: &Path,
        configured: Option<u64>,
    ) -> Result<Self, Error> {
        let dir = root.join("consumequeue");
        disk.create_dirs(&dir).at("create", &dir)?;
        let (this, has_odd) = Self::look(disk, root, configured)?;
        if has_odd {
            this.set_odd_aside(own_dir)?;
        }
        Ok(this)
    }

    /// Opens the queue files below `root` and changes nothing; also says whether files are of another length than most.
    pub(crate) fn look(disk: Arc<dyn Disk>, root: &Path, configured: Option<u64>) -> Result<(Self, bool), Error> {
        let dir = root.join("consumequeue");
        let batch = disk.list(&root.join("batchconsumequeue")).unwrap_or_default();
        let batch = batch.into_iter().filter(|e| e.is_dir).map(|e| e.name).collect();
        let this = Self { disk, dir, file_bytes: 0, batch, bytes: AtomicU64::new(0), open: Mutex::default() };
        let lengths = this.survey()?;
        let whole = lengths.iter().filter(|(bytes, _)| *bytes % ENTRY_BYTES == 0);
        let there = whole.max_by_key(|(bytes, (count, _))| (*count, Some(**bytes) == configured, **bytes));
        if let (Some((found, (_, path))), Some(configured)) = (there, configured)
            && *found != configured
        {
            let path = path.clone();
            return Err(Error::FileSize { key: "mappedFileSizeConsumeQueue", configured, found: *found, path });
        }
        let file_bytes = there.map(|(bytes, _)| *bytes).or(configured).unwrap_or(QUEUE_FILE_BYTES_DEFAULT);
        if file_bytes == 0 || file_bytes % ENTRY_BYTES != 0 {
            let what = format!("consume-queue files of {file_bytes} bytes: not a multiple of {ENTRY_BYTES}");
            return Err(Error::Layout { path: this.dir, what });
        }
        let has_odd = lengths.keys().any(|bytes| *bytes != file_bytes);
        Ok((Self { file_bytes, ..this }, has_odd))
    }

    /// Adds up the lengths of all files. Returns how many there are of each length, with one of them. An empty file does not
    /// count: a crash leaves it, and it gets its length when it is written.
    fn survey(&self) -> Result<BTreeMap<u64, (u64, PathBuf)>, Error> {
        let mut lengths = BTreeMap::new();
        self.each_file(|_, path, bytes| {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            if bytes > 0 {
                lengths.entry(bytes).or_insert_with(|| (0, path.to_path_buf())).0 += 1;
            }
            Ok(())
        })?;
        Ok(lengths)
    }

    /// Calls `visit` with queue, path and length of each queue file.
    pub(crate) fn each_file(&self, mut visit: impl FnMut(&str, &Path, u64) -> Result<(), Error>) -> Result<(), Error> {
        for (topic, id) in self.queues()? {
            let dir = self.queue_dir(&topic, id);
            for base in self.bases(&dir)? {
                let path = dir.join(file_name(base));
                let bytes = self.disk.open(&path, Open::Read).and_then(|f| f.size()).at("stat", &path)?;
                visit(&format!("{topic}-{id}"), &path, bytes)?;
            }
        }
        Ok(())
    }

    /// Whether a file has another length than most, or does not start where a file does.
    pub(crate) fn is_odd(&self, path: &Path, bytes: u64) -> bool {
        let base = path.file_name().and_then(|n| parse_file_name(n.to_str()?));
        bytes > 0 && (bytes != self.file_bytes || base.is_some_and(|b| b % self.file_bytes != 0))
    }

    fn set_odd_aside(&self, own_dir: &Path) -> Result<(), Error> {
        self.each_file(|queue, path, bytes| {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if !self.is_odd(path, bytes) {
                return Ok(());
            }
            let to = free_name(self.disk.as_ref(), own_dir.join(format!("queue-{queue}-{name}")));
            tracing::warn!(
                path = %path.display(), bytes, expected = self.file_bytes, to = %to.display(),
                "a consume-queue file of a wrong length is set aside; its entries are made again from the commit log"
            );
            self.disk.rename(path, &to).at("rename", path)?;
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            path.parent().map_or(Ok(()), |dir| self.disk.sync_dir(dir).at("sync", dir))
        })
    }

    /// The queues that have a directory.
    pub(crate) fn queues(&self) -> Result<Vec<(String, i32)>, Error> {
        let mut queues = Vec::new();
        let topics = match self.disk.list(&self.dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other.at("list", &self.dir)?,
        };
        for topic in topics.into_iter().filter(|e| e.is_dir) {
            let dir = self.dir.join(&topic.name);
            let ids = self.disk.list(&dir).at("list", &dir)?.into_iter().filter(|e| e.is_dir);
            queues.extend(ids.filter_map(|id| Some((topic.name.clone(), id.name.parse().ok()?))));
        }
        Ok(queues)
    }

    /// Whether a topic's queues are of the kind that only Java reads (`queue.type=BatchCQ`).
    pub(crate) fn is_batch(&self, topic: &str) -> bool {
        !self.batch.is_empty() && self.batch.contains(topic)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Length of all queue files together.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn queue_dir(&self, topic: &str, id: i32) -> PathBuf {
        self.dir.join(topic).join(id.to_string())
    }

    fn bases(&self, dir: &Path) -> Result<Vec<u64>, Error> {
        let entries = match self.disk.list(dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e).at("list", dir),
        };
        let mut bases: Vec<u64> = entries.iter().filter_map(|e| parse_file_name(&e.name)).collect();
        bases.sort_unstable();
        Ok(bases)
    }

    /// Reads the range of a queue from its files: (min, end). Entries at or behind `log_end` do not count, nor do those
    /// before `log_start` (their messages are gone).
    pub(crate) fn range(&self, topic: &str, id: i32, log_start: u64, log_end: u64) -> Result<(i64, i64), Error> {
        let dir = self.queue_dir(topic, id);
        let bases = self.bases(&dir)?;
        let (Some(first), Some(last)) = (bases.first(), bases.last()) else { return Ok((0, 0)) };
        let low = (first / ENTRY_BYTES) as i64;
        let high = ((last + self.file_bytes) / ENTRY_BYTES) as i64;
        let valid = |n: i64| -> io::Result<bool> {
            let entry = self.entry(topic, id, n)?;
            Ok(entry.is_some_and(|e| e.is_written() && (e.is_filler() || e.log_end() <= log_end)))
        };
        let end = partition(low, high, valid).at("read", &dir)?;
        Ok((self.first_live(topic, id, low..end, log_start).at("read", &dir)?, end))
    }

    /// The first of the entries `range` whose message lies at or behind `log_start`; the end of the range if none does.
    pub(crate) fn first_live(&self, topic: &str, id: i32, range: Range<i64>, log_start: u64) -> io::Result<i64> {
        // A filler counts as what follows it: it stands before the first entry, or where a message was damaged.
        let before = |mut n: i64| -> io::Result<bool> {
            while n < range.end && self.entry(topic, id, n)?.is_some_and(|e| e.is_filler()) {
                n += 1;
            }
            Ok(n == range.end || self.entry(topic, id, n)?.is_some_and(|e| e.log_at < log_start))
        };
        let mut min = partition(range.start, range.end, before)?;
        while min < range.end && self.entry(topic, id, min)?.is_some_and(|e| e.is_filler()) {
            min += 1;
        }
        Ok(min)
    }

    pub(crate) fn place(&self, topic: &str, id: i32, n: i64) -> (PathBuf, u64) {
        let byte = n as u64 * ENTRY_BYTES;
        let base = byte - byte % self.file_bytes;
        (self.queue_dir(topic, id).join(file_name(base)), byte - base)
    }

    fn file(&self, path: &Path, create: bool) -> io::Result<Arc<dyn File>> {
        let mut open = lock(&self.open);
        open.clock += 1;
        let now = open.clock;
        if let Some((file, used)) = open.by_path.get_mut(path) {
            *used = now;
            return Ok(file.clone());
        }
        let file = match self.disk.open(path, Open::Write) {
            Err(e) if create && e.kind() == io::ErrorKind::NotFound => {
                let dir = path.parent().unwrap_or(&self.dir);
                self.disk.create_dirs_unsynced(dir)?;
                open.new_in.extend(dir.ancestors().take_while(|d| d.starts_with(&self.dir)).map(Path::to_path_buf));
                self.disk.open(path, Open::Create)?
            }
            other => other?,
        };
        let there = file.size()?;
        if there < self.file_bytes {
            if !create {
                // Left so by a crash; kept open, it would never get its length.
                return Ok(file);
            }
            file.set_len(self.file_bytes)?;
            self.bytes.fetch_add(self.file_bytes - there, Ordering::Relaxed);
        }
        if open.by_path.len() >= OPEN_MAX
            && let Some(oldest) = open.by_path.iter().min_by_key(|(_, (_, used))| *used).map(|(p, _)| p.clone())
        {
            open.by_path.remove(&oldest);
        }
        open.by_path.insert(path.to_path_buf(), (file.clone(), now));
        Ok(file)
    }

    /// Entry `n`, if its file is there.
    pub(crate) fn entry(&self, topic: &str, id: i32, n: i64) -> io::Result<Option<Entry>> {
        let (path, at) = self.place(topic, id, n);
        let file = match self.file(&path, false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut bytes = [0; ENTRY_BYTES as usize];
        let n = file.read_at(&mut bytes, at, true)?;
        Ok((n == bytes.len()).then(|| Entry::from_bytes(bytes)))
    }

    /// Calls `visit` with each written entry of a queue and its offset, in order.
    pub(crate) fn each_entry(
        &self,
        topic: &str,
        id: i32,
        mut visit: impl FnMut(i64, Entry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let dir = self.queue_dir(topic, id);
        let mut bytes = vec![0; 3200 * ENTRY_BYTES as usize];
        for base in self.bases(&dir)? {
            let path = dir.join(file_name(base));
            let file = self.disk.open(&path, Open::Read).at("open", &path)?;
            let mut at = 0;
            while let Some(data) = file.next_data(at).at("seek", &path)? {
                at = data - data % ENTRY_BYTES;
                let n = file.read_at(&mut bytes, at, true).at("read", &path)?;
                for entry in bytes[..n].as_chunks::<{ ENTRY_BYTES as usize }>().0 {
                    let entry = Entry::from_bytes(*entry);
                    if entry.is_written() {
                        visit(((base + at) / ENTRY_BYTES) as i64, entry)?;
                    }
                    at += ENTRY_BYTES;
                }
                if n < bytes.len() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Entries `from..to` that lie in one file, as many as there are.
    pub(crate) fn read(
        &self,
        queue: &Queue,
        from: i64,
        to: i64,
        may_block: bool,
        out: &mut Vec<Entry>,
    ) -> io::Result<()> {
        let (path, at) = self.place(&queue.topic, queue.id, from);
        let room = (self.file_bytes - at).min((to - from) as u64 * ENTRY_BYTES);
        let mut bytes = vec![0; room as usize];
        let n = self.file(&path, false)?.read_at(&mut bytes, at, may_block)?;
        let (entries, _) = bytes[..n].as_chunks::<{ ENTRY_BYTES as usize }>();
        out.extend(entries.iter().map(|e| Entry::from_bytes(*e)).take_while(Entry::is_written));
        Ok(())
    }

    /// Writes `entries` from offset `from` on; creates files as needed. A queue that starts inside of a file gets Java's
    /// filler before its first entry.
    pub(crate) fn write(&self, queue: &Queue, mut from: i64, mut entries: &[Entry]) -> io::Result<()> {
        let mut bytes = Vec::new();
        while !entries.is_empty() {
            let (path, at) = self.place(&queue.topic, queue.id, from);
            let file = self.file(&path, true)?;
            // Whenever the first entry is written: of an earlier attempt a crash may have kept the file and not the filler.
            // What is before the first entry after all messages expired are the entries of those.
            let is_first = at > 0 && from == queue.min.load(Ordering::Acquire);
            let is_after = |e: Entry| e.is_written() && !e.is_filler();
            if is_first && !self.entry(&queue.topic, queue.id, from - 1)?.is_some_and(is_after) {
                file.write_all_at(&Entry::FILLER.to_bytes().repeat((at / ENTRY_BYTES) as usize), 0)?;
            }
            let room = ((self.file_bytes - at) / ENTRY_BYTES) as usize;
            let (now, rest) = entries.split_at(entries.len().min(room));
            bytes.clear();
            now.iter().for_each(|e| bytes.extend_from_slice(&e.to_bytes()));
            file.write_all_at(&bytes, at)?;
            lock(&self.open).unsynced.insert(path);
            from += now.len() as i64;
            entries = rest;
        }
        Ok(())
    }

    /// Takes back the entries of a queue from `next` on: they point at nothing, and would at something else later.
    pub(crate) fn cut(&self, topic: &str, id: i32, next: i64) -> io::Result<()> {
        let dir = self.queue_dir(topic, id);
        let mut bytes = [0; 4096];
        for name in self.disk.list(&dir)?.into_iter().filter(|e| !e.is_dir).map(|e| e.name) {
            let Some(base) = parse_file_name(&name) else { continue };
            let path = dir.join(name);
            let file = self.file(&path, false)?;
            let mut at = (next as u64 * ENTRY_BYTES).saturating_sub(base);
            // Nearly all of a file is a hole. Reading it to its end would be 6 MB for each queue.
            while let Some(data) = file.next_data(at)? {
                at = at.max(data);
                let n = file.read_at(&mut bytes, at, true)?;
                if n == 0 {
                    break;
                }
                if bytes[..n].iter().any(|b| *b != 0) {
                    file.write_all_at(&vec![0; n], at)?;
                    lock(&self.open).unsynced.insert(path.clone());
                }
                at += n as u64;
            }
        }
        Ok(())
    }

    /// Removes the files of a topic's queues.
    pub(crate) fn delete_topic(&self, topic: &str) -> Result<(), Error> {
        let topic_dir = self.dir.join(topic);
        let ids = match self.disk.list(&topic_dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.at("list", &topic_dir)?,
        };
        {
            let mut open = lock(&self.open);
            open.by_path.retain(|path, _| !path.starts_with(&topic_dir));
            open.unsynced.retain(|path| !path.starts_with(&topic_dir));
            open.new_in.retain(|dir| !dir.starts_with(&topic_dir));
        }
        let mut kept = ids.iter().any(|e| !e.is_dir);
        for dir in ids.into_iter().filter(|e| e.is_dir).map(|e| topic_dir.join(e.name)) {
            let (ours, others): (Vec<_>, Vec<_>) =
                self.disk.list(&dir).at("list", &dir)?.into_iter().partition(|e| parse_file_name(&e.name).is_some());
            for path in ours.into_iter().map(|e| dir.join(e.name)) {
                let bytes = self.disk.open(&path, Open::Read).and_then(|f| f.size()).at("stat", &path)?;
                self.disk.remove(&path).at("remove", &path)?;
                if !lock(&self.open).doomed.remove(&path) {
                    self.bytes.fetch_sub(bytes.min(self.bytes()), Ordering::Relaxed);
                }
            }
            if let Some(other) = others.first() {
                tracing::warn!(dir = %dir.display(), file = other.name, "kept: not a consume-queue file");
                kept = true;
            } else {
                self.disk.remove_dir(&dir).at("remove", &dir)?;
            }
        }
        if !kept {
            self.disk.remove_dir(&topic_dir).at("remove", &topic_dir)?;
        }
        self.disk.sync_dir(&self.dir).at("sync", &self.dir)
    }

    /// Makes all that was written durable. Many files cost one call for the whole file system instead of one each.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let (files, dirs) = {
            let mut open = lock(&self.open);
            (std::mem::take(&mut open.unsynced), std::mem::take(&mut open.new_in))
        };
        if files.len() > OPEN_MAX {
            return self.disk.sync_all(&self.dir);
        }
        for path in files {
            self.file(&path, false)?.sync_data()?;
        }
        dirs.iter().try_for_each(|dir| self.disk.sync_dir(dir))
    }
}

/// The first `n` in `low..high` that is not `yes`, where all that are `yes` come first. In growing steps from `low` on: most
/// queues are short, and what lies behind their end are holes.
fn partition(mut low: i64, mut high: i64, yes: impl Fn(i64) -> io::Result<bool>) -> io::Result<i64> {
    let mut step = 1;
    while low < high {
        let probe = (low + step - 1).min(low + (high - low) / 2);
        if yes(probe)? {
            low = probe + 1;
            step *= 2;
        } else {
            high = probe;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Faulty;

    fn files(bytes: u64) -> QueueFiles {
        QueueFiles::open(Arc::new(Faulty::healthy()), Path::new("/s"), Path::new("/s/comet"), Some(bytes)).unwrap()
    }

    fn entry(n: u64) -> Entry {
        Entry { log_at: n * 100, len: 100, tags_code: n as i64 }
    }

    #[test]
    fn entries_span_files_and_come_back() {
        let files = files(100);
        let queue = Queue::new("t".into(), 2, 0, 0);
        let all: Vec<Entry> = (0..13).map(entry).collect();
        files.write(&queue, 0, &all[..7]).unwrap();
        files.write(&queue, 7, &all[7..]).unwrap();
        assert_eq!(files.range("t", 2, 0, 1300).unwrap(), (0, 13));
        assert_eq!(files.range("t", 2, 450, 1200).unwrap(), (5, 12));
        assert_eq!(files.range("t", 3, 0, 1300).unwrap(), (0, 0));
        let mut out = Vec::new();
        files.read(&queue, 3, 13, true, &mut out).unwrap();
        assert_eq!(out, all[3..5]); // one file at a time
        out.clear();
        files.read(&queue, 10, 20, true, &mut out).unwrap();
        assert_eq!(out, all[10..13]);
    }

    #[test]
    fn the_end_of_a_short_queue_is_found_in_few_steps() {
        for (end, most) in [(0, 1), (1, 3), (100, 14), (299_999, 40), (300_000, 40)] {
            let asked = std::cell::Cell::new(0);
            let found = partition(0, 300_000, |n| {
                asked.set(asked.get() + 1);
                Ok(n < end)
            });
            assert_eq!(found.unwrap(), end);
            assert!(asked.get() <= most, "{end}: {} steps", asked.get());
        }
    }

    #[test]
    fn a_queue_that_starts_late_gets_filler() {
        let files = files(100);
        let queue = Queue::new("t".into(), 0, 7, 7);
        files.write(&queue, 7, &[entry(7)]).unwrap();
        assert_eq!(files.entry("t", 0, 6).unwrap(), Some(Entry::FILLER));
        assert_eq!(files.range("t", 0, 0, 10_000).unwrap(), (7, 8));
        // A crash left the file and not what was in it.
        let path = Path::new("/s/consumequeue/t/0/00000000000000000100");
        files.disk.open(path, Open::Write).unwrap().write_all_at(&[0; 100], 0).unwrap();
        assert_eq!(files.range("t", 0, 0, 10_000).unwrap(), (5, 5));
        files.write(&queue, 7, &[entry(7)]).unwrap();
        assert_eq!(files.range("t", 0, 0, 10_000).unwrap(), (7, 8));
    }

    #[test]
    fn a_filler_for_a_damaged_message_does_not_move_the_start() {
        for damaged in 0..13 {
            let files = files(100);
            let queue = Queue::new("t".into(), 0, 0, 0);
            let at = |n| if n == damaged { Entry::FILLER } else { entry(n) };
            files.write(&queue, 0, &(0..13).map(at).collect::<Vec<_>>()).unwrap();
            let first = i64::from(damaged == 0);
            assert_eq!(files.range("t", 0, 0, 10_000).unwrap(), (first, 13), "{damaged}");
            let expired = if damaged == 4 { 5 } else { 4 };
            assert_eq!(files.range("t", 0, 400, 10_000).unwrap(), (expired, 13), "{damaged}");
        }
    }

    #[test]
    fn a_file_that_a_crash_left_short_gets_its_length() {
        let files = files(100);
        let queue = Queue::new("t".into(), 0, 0, 0);
        files.write(&queue, 0, &[entry(0)]).unwrap();
        let path = Path::new("/s/consumequeue/t/0/00000000000000000100");
        files.disk.open(path, Open::Create).unwrap();
        assert_eq!(files.entry("t", 0, 5).unwrap(), None);
        files.write(&queue, 1, &(1..6).map(entry).collect::<Vec<_>>()).unwrap();
        assert_eq!(files.disk.open(path, Open::Read).unwrap().size().unwrap(), 100);
        assert_eq!((files.bytes(), files.range("t", 0, 0, 10_000).unwrap()), (200, (0, 6)));
    }

    #[test]
    fn what_is_cut_off_reads_as_never_written() {
        let files = files(100);
        let queue = Queue::new("t".into(), 0, 0, 0);
        files.write(&queue, 0, &(0..13).map(entry).collect::<Vec<_>>()).unwrap();
        files.cut("t", 0, 3).unwrap();
        assert_eq!(files.range("t", 0, 0, 10_000).unwrap(), (0, 3));
        assert_eq!(files.entry("t", 0, 2).unwrap(), Some(entry(2)));
        for n in 3..13 {
            assert!(!files.entry("t", 0, n).unwrap().unwrap().is_written(), "{n}");
        }
    }

    #[test]
    fn the_size_of_the_files_there_wins_and_a_contradiction_is_refused() {
        let disk = Arc::new(Faulty::healthy());
        let open = |configured| QueueFiles::open(disk.clone(), Path::new("/s"), Path::new("/s/comet"), configured);
        let first = open(Some(200)).unwrap();
        first.write(&Queue::new("t".into(), 0, 0, 0), 0, &[entry(0)]).unwrap();
        assert_eq!(open(None).unwrap().file_bytes, 200);
        let error = open(Some(400)).err().unwrap().to_string();
        assert!(error.starts_with("mappedFileSizeConsumeQueue=400 contradicts"), "{error}");
    }
}
