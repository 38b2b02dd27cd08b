//! Index: from a key to the records that carry it. Keys are UNIQ_KEY, each word of KEYS, and TAGS (as `T#tags`), all with
//! the topic before them.
//!
//! Built behind the log, by reading it: appends know nothing of keys. The dispatch thread reads what became durable and
//! gathers keys in memory; many at a time go to the last file. A query first reads what was written since, so that a message is
//! found as soon as its send is answered.
//!
//! Disk     `index/<yyyyMMddHHmmssSSS>`, see [`index_file`]; the last one is written, the others are full
//! Crash    the last header says up to where keys are in files, to the key; what follows is read from the log again. Files that cannot be
//!          believed, and those behind them, are moved to `comet/index-<name>` and made again from the log
//! Threads  one lock for who gathers or writes keys; readers of files need none
//! Java     `IndexService`

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cometmq_base::Clock;
use cometmq_wire::flags::message::{TRANSACTION_MASK, TRANSACTION_ROLLBACK};
use cometmq_wire::java_hash;
use cometmq_wire::properties::{self, KEY_SEPARATOR, KEYS, TAGS, UNIQ_KEY};
use cometmq_wire::record::Record;

use crate::disk::{Disk, File, Open};
use crate::error::IoContext;
use crate::index_file::{self, Geometry, Header, Key};
use crate::log::Log;
use crate::store::lock;
use crate::{Error, Options, scan};

/// Java: `maxHashSlotNum`, `maxIndexNum`.
const GEOMETRY_DEFAULT: Geometry = Geometry { slots: 5_000_000, items: 20_000_000 };
/// Keys in memory at which they are written: 6 MiB.
const KEYS_MAX: usize = 256 << 10;
/// Log bytes that are read in one go, and with one call.
const SCAN_BYTES_MAX: u64 = 64 << 20;
const CHUNK: usize = 256 << 10;

pub(crate) struct Index {
    disk: Arc<dyn Disk>,
    clock: Clock,
    dir: PathBuf,
    own_dir: PathBuf,
    geometry: Geometry,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In order of time and log offset.
    files: Vec<IndexFile>,
    /// Keys of records below `scanned` that are in no file, in log order.
    gathered: VecDeque<Key>,
    scanned: u64,
    /// Of the record at this offset so many keys are in files already.
    partial: (u64, usize),
    /// The last file may have slots that name items which are not counted.
    torn: bool,
    gathered_since: Option<Instant>,
    /// Store time up to which files are full. Java: `StoreCheckpoint.indexMsgTimestamp`.
    full_ms: i64,
    closed: bool,
}

#[derive(Debug, Clone)]
struct IndexFile {
    path: PathBuf,
    header: Header,
}

/// Where the index stands: all keys of records below `upto` are in files, whose last record is at `end`. (0, 0) = nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Indexed {
    pub(crate) upto: u64,
    pub(crate) end: u64,
}

/// The 31-bit hash of a key. Java: `IndexFile.indexKeyHashMethod`.
fn key_hash(topic_hash: i32, key: &str) -> u32 {
    java_hash::extend(topic_hash, key).unsigned_abs() & i32::MAX as u32
}

/// The hash of what stands before a key of this kind. Java: `IndexService.buildKey`.
fn prefix_hash(topic: &str, is_tag: bool) -> i32 {
    java_hash::extend(java_hash::hash_code(topic), if is_tag { "#T#" } else { "#" })
}

pub(crate) fn hash_of(topic: &str, key: &str, is_tag: bool) -> u32 {
    key_hash(prefix_hash(topic, is_tag), key)
}

/// The words of a KEYS property.
pub(crate) fn words(keys: &str) -> impl Iterator<Item = &str> {
    keys.split(KEY_SEPARATOR).filter(|word| !word.is_empty())
}

/// Hashes of the keys of a record, in Java's order. Java: `IndexService.buildIndex`.
pub(crate) fn each_key(record: &Record<'_>, mut add: impl FnMut(u32)) {
    if record.sys_flag() & TRANSACTION_MASK == TRANSACTION_ROLLBACK {
        return;
    }
    let (mut unique, mut keys, mut tags) = (None, None, None);
    for (name, value) in properties::iter(record.properties()) {
        match name {
            UNIQ_KEY => unique = Some(value),
            KEYS => keys = Some(value),
            TAGS => tags = Some(value),
            _ => {}
        }
    }
    let prefix = prefix_hash(record.topic(), false);
    unique.into_iter().chain(keys.into_iter().flat_map(words)).for_each(|key| add(key_hash(prefix, key)));
    if let Some(tags) = tags {
        add(hash_of(record.topic(), tags, true));
    }
}

/// The names of index files are digits; whatever else lies there is none of ours.
pub(crate) fn is_name(name: &str) -> bool {
    name.len() == 17 && name.bytes().all(|b| b.is_ascii_digit())
}

impl Index {
    /// Reads the headers of the files there. `trusted_ms`: a crash of unknown extent; only files whose records are not
    /// younger count (Java's rule).
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        clock: Clock,
        options: &Options,
        trusted_ms: Option<i64>,
        full_ms: i64,
        torn: bool,
    ) -> Result<Self, Error> {
        let dir = options.root.join("index");
        let mut names: Vec<String> = match disk.list(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other.at("list", &dir)?.into_iter().filter(|e| !e.is_dir).map(|e| e.name).collect(),
        };
        names.retain(|name| is_name(name));
        names.sort();
        let geometry = geometry(disk.as_ref(), &dir, &names, options)?;
        let mut state = State { torn, full_ms, ..State::default() };
        let this = Self { disk, clock, dir, own_dir: options.own_dir(), geometry, state: Mutex::default() };
        for (i, name) in names.iter().enumerate() {
            let path = this.dir.join(name);
            match this.header(&path, state.files.last(), trusted_ms)? {
                Ok(header) => state.files.push(IndexFile { path, header }),
                Err(why) => {
                    let gone: Vec<_> = names[i..].iter().map(|name| this.dir.join(name)).collect();
                    this.set_aside(&gone, &why)?;
                    break;
                }
            }
        }
        *lock(&this.state) = state;
        Ok(this)
    }

    /// The header of a file; `Ok(Err(why))` when it cannot be believed.
    fn header(
        &self,
        path: &Path,
        before: Option<&IndexFile>,
        trusted_ms: Option<i64>,
    ) -> Result<Result<Header, String>, Error> {
        let file = self.disk.open(path, Open::Read).at("open", path)?;
        let (bytes, expected) = (file.size().at("stat", path)?, self.geometry.file_bytes());
        if bytes != expected {
            return Ok(Err(format!("it has {bytes} bytes, expected {expected}")));
        }
        let header = Header::read(file.as_ref(), self.geometry).at("read", path)?;
        Ok(header.and_then(|header| {
            if before.is_some_and(|b| header.begin_at < b.header.end_at && !header.is_empty()) {
                return Err(format!(
                    "it begins at log offset {}, before the end of the one before it",
                    header.begin_at
                ));
            }
            match trusted_ms {
                Some(trusted) if header.end_ms > trusted => {
                    Err("after a crash of another broker its end is unknown".to_string())
                }
                _ => Ok(header),
            }
        }))
    }

    fn set_aside(&self, paths: &[PathBuf], why: &str) -> Result<(), Error> {
        // The last one first: a crash on the way leaves no gap.
        for path in paths.iter().rev() {
            let name = format!("index-{}", path.file_name().unwrap_or_default().to_string_lossy());
            let taken = |n: &u32| self.disk.open(&self.own_dir.join(format!("{name}.{n}")), Open::Read).is_ok();
            let free = (0..u32::MAX).find(|n| !taken(n)).unwrap_or(0);
            let to = self.own_dir.join(format!("{name}.{free}"));
            tracing::warn!(file = %path.display(), to = %to.display(), why, "an index file is set aside; its keys are read from the log again");
            self.disk.rename(path, &to).at("rename", path)?;
            self.disk.sync_dir(&self.own_dir).at("sync", &self.own_dir)?;
            self.disk.sync_dir(&self.dir).at("sync", &self.dir)?;
        }
        Ok(())
    }

    /// Called once, when it is known where the log ends: decides from where on it has to be read. `known`: as it was noted last.
    pub(crate) fn start(&self, log: &Log, log_end: u64, known: Indexed) -> Result<(), Error> {
        let state = &mut *lock(&self.state);
        let log_start = log.start();
        if known == Indexed::default()
            && let Some(at) = self.first_behind_a_gap(&state.files, log)?
        {
            let gone: Vec<_> = state.files.drain(at..).map(|f| f.path).collect();
            self.set_aside(&gone, "keys of messages before it are missing")?;
        }
        let ahead = state.files.iter().position(|f| !f.header.is_empty() && f.header.end_at >= log_end);
        if let Some(at) = ahead {
            let gone: Vec<_> = state.files.drain(at..).map(|f| f.path).collect();
            self.set_aside(&gone, "it points behind the end of the log")?;
        }
        let end = state.files.iter().map(|f| f.header.end_at).max();
        let upto = if known.end <= end.unwrap_or(0) { known.upto } else { 0 };
        state.scanned = upto.max(end.unwrap_or(0)).max(log_start).min(log_end);
        state.partial = (end.unwrap_or(0), self.of_last_record(&state.files)?);
        tracing::info!(files = state.files.len(), from = state.scanned, log_end, "the index is built from here on");
        Ok(())
    }

    /// The first file before which there are messages with keys that no file has. A Java broker leaves that when it recovers
    /// from a kill: it deletes files, and reads only a part of the log again.
    fn first_behind_a_gap(&self, files: &[IndexFile], log: &Log) -> Result<Option<usize>, Error> {
        let mut last = None;
        for (i, file) in files.iter().enumerate().filter(|(_, f)| !f.header.is_empty()) {
            let from = last.map_or(log.start(), |last: u64| last.max(log.start()));
            let mut has_keys = false;
            if from < file.header.begin_at {
                scan::walk(log, from, file.header.begin_at, CHUNK, |record| {
                    if last != Some(record.log_offset() as u64) {
                        each_key(record, |_| has_keys = true);
                    }
                    !has_keys
                })?;
            }
            if has_keys {
                return Ok(Some(i));
            }
            last = Some(file.header.end_at);
        }
        Ok(None)
    }

    /// How many keys of the last record that has any are in files.
    fn of_last_record(&self, files: &[IndexFile]) -> Result<usize, Error> {
        let mut keys = 0;
        for IndexFile { path, header } in files.iter().rev() {
            let file = self.disk.open(path, Open::Read).at("open", path)?;
            let here = index_file::of_last_record(file.as_ref(), self.geometry, header).at("read", path)?;
            keys += here as usize;
            if here + 1 < header.count {
                break;
            }
        }
        Ok(keys)
    }

    /// Gathers keys of records up to `to`, which are written, as far as there is room; `true` = that was all.
    fn scan(&self, state: &mut State, log: &Log, to: u64) -> Result<bool, Error> {
        let from = state.scanned.max(log.start());
        if from >= to || state.gathered.len() >= KEYS_MAX {
            return Ok(from >= to);
        }
        state.gathered_since.get_or_insert_with(Instant::now);
        let State { gathered, partial, .. } = state;
        let pause = from.saturating_add(SCAN_BYTES_MAX);
        state.scanned = scan::walk(log, from, to, CHUNK, |record| {
            let (log_at, store_ms) = (record.log_offset() as u64, record.store_ms());
            let mut known = if partial.0 == log_at { partial.1 } else { 0 };
            each_key(record, |hash| match known {
                0 => gathered.push_back(Key { hash, log_at, store_ms }),
                _ => known -= 1,
            });
            gathered.len() < KEYS_MAX && log_at < pause
        })?;
        Ok(state.scanned >= to)
    }

    /// Writes the gathered keys of records below `durable` to files.
    fn write(&self, state: &mut State, durable: u64) -> Result<(), Error> {
        if state.closed {
            return Err(Error::Closed);
        }
        let mut left = state.gathered.partition_point(|key| key.log_at < durable);
        while left > 0 {
            let at = self.file_with_room(state)?;
            let IndexFile { path, header } = &mut state.files[at];
            let file = self.disk.open(path, Open::Write).at("open", path)?;
            if std::mem::take(&mut state.torn) {
                index_file::repair(file.as_ref(), self.geometry, header).at("write", path)?;
            }
            let n = left.min((self.geometry.items - header.count) as usize);
            let keys = &state.gathered.make_contiguous()[..n];
            *header = index_file::append(file.as_ref(), self.geometry, *header, keys).at("write", path)?;
            if header.count == self.geometry.items {
                state.full_ms = header.end_ms;
            }
            state.gathered.drain(..n);
            left -= n;
        }
        state.gathered_since = None;
        if state.gathered.is_empty() {
            state.gathered.shrink_to(1024);
        }
        Ok(())
    }

    /// The place of the last file if it is not full, else of a new one.
    fn file_with_room(&self, state: &mut State) -> Result<usize, Error> {
        let last = state.files.last();
        if last.is_none_or(|f| f.header.count >= self.geometry.items) {
            self.disk.create_dirs(&self.dir).at("create", &self.dir)?;
            let path = self.dir.join(self.next_name(last));
            let header = last.map_or(Header::after(0, 0), |f| Header::after(f.header.end_ms, f.header.end_at));
            let file = self.disk.open(&path, Open::Create).at("create", &path)?;
            file.set_len(self.geometry.file_bytes()).at("set the length of", &path)?;
            file.write_all_at(&header.to_bytes(), 0).at("write", &path)?;
            file.sync_data().at("sync", &path)?;
            self.disk.sync_dir(&self.dir).at("sync", &self.dir)?;
            state.torn = false;
            state.files.push(IndexFile { path, header });
        }
        Ok(state.files.len() - 1)
    }

    /// The local time, but always behind the last name: they are read in order. Java: `UtilAll.timeMillisToHumanString`.
    fn next_name(&self, last: Option<&IndexFile>) -> String {
        let now = jiff::Timestamp::from_millisecond(self.clock.now_ms()).unwrap_or_default();
        let now = now.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y%m%d%H%M%S%3f").to_string();
        let last = last.and_then(|f| f.path.file_name()?.to_str()?.parse::<u64>().ok());
        let next = last.map_or(0, |n| n + 1).max(now.parse().unwrap_or(0));
        format!("{next:017}")
    }

    /// A step of the dispatch thread: gathers keys of what is durable, and writes them when they are many, when they waited for
    /// `interval`, or `now`. `true` = that was all.
    pub(crate) fn advance(&self, log: &Log, durable: u64, interval: Duration, now: bool) -> Result<bool, Error> {
        let state = &mut *lock(&self.state);
        let is_done = self.scan(state, log, durable)?;
        let waited = state.gathered_since.is_some_and(|since| since.elapsed() >= interval);
        if now || waited || state.gathered.len() >= KEYS_MAX {
            self.write(state, durable)?;
        }
        Ok(is_done)
    }

    /// Brings the index up to `to` for a query, as far as one step goes; `true` = it is there.
    pub(crate) fn catch_up(&self, log: &Log, to: u64, durable: u64) -> Result<bool, Error> {
        let state = &mut *lock(&self.state);
        if state.gathered.len() >= KEYS_MAX {
            self.write(state, durable)?;
        }
        self.scan(state, log, to)
    }

    /// Where it stands, durably; and the store time up to which files are full.
    pub(crate) fn indexed(&self) -> (Indexed, i64) {
        let state = lock(&self.state);
        let upto = state.gathered.front().map_or(state.scanned, |key| key.log_at);
        let end = state.files.iter().map(|f| f.header.end_at).max().unwrap_or(0);
        (Indexed { upto, end }, state.full_ms)
    }

    /// From now on nothing is written: the directory may be somebody else's.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
    }

    /// Up to which log offset records can be found.
    pub(crate) fn scanned(&self) -> u64 {
        lock(&self.state).scanned
    }

    /// Store time and log offset of the last record with a key. Java: `indexLastUpdateTimestamp`, `indexLastUpdatePhyoffset`.
    pub(crate) fn last_record(&self) -> (i64, u64) {
        let state = lock(&self.state);
        let in_file = || state.files.last().map_or((0, 0), |f| (f.header.end_ms, f.header.end_at));
        state.gathered.back().map_or_else(in_file, |key| (key.store_ms, key.log_at))
    }

    /// Calls `visit` with the log offsets of records that may carry a key with this hash, the newest first, until it says
    /// `false`. An offset may come twice. Only records stored within the times count, to the second. Gives up at `until`.
    pub(crate) fn find(
        &self,
        hash: u32,
        begin_ms: i64,
        end_ms: i64,
        until: Instant,
        visit: &mut dyn FnMut(u64) -> io::Result<bool>,
    ) -> Result<(), Error> {
        let (in_memory, files) = {
            let state = lock(&self.state);
            let newest_first = state.gathered.iter().rev();
            let wanted = newest_first.filter(|k| k.hash == hash && (begin_ms..=end_ms).contains(&k.store_ms));
            (wanted.map(|k| k.log_at).collect::<Vec<_>>(), state.files.clone())
        };
        for log_at in in_memory {
            if !visit(log_at).at("read", &self.dir)? {
                return Ok(());
            }
        }
        for IndexFile { path, header } in files.iter().rev().filter(|f| f.header.begin_ms <= end_ms) {
            if header.end_ms < begin_ms {
                break;
            }
            let file = match self.disk.open(path, Open::Read) {
                // Dropped a moment ago.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other.at("open", path)?,
            };
            let mut goes_on = true;
            let mut each = |log_at: u64, ms: i64| {
                goes_on = ms > end_ms || visit(log_at)?;
                Ok(goes_on)
            };
            let found = index_file::find(file.as_ref(), self.geometry, header, hash, begin_ms, until, &mut each);
            found.at("read", path)?;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Removes files whose records all lie below `log_start`, except for the last file. Java: `IndexService.deleteExpiredFile`.
    pub(crate) fn drop_before(&self, log_start: u64) -> Result<usize, Error> {
        let state = &mut *lock(&self.state);
        let mut dropped = 0;
        while state.files.len() > 1 && state.files[0].header.end_at < log_start {
            let path = &state.files[0].path;
            self.disk.remove(path).at("remove", path)?;
            state.files.remove(0);
            dropped += 1;
        }
        if dropped > 0 {
            self.disk.sync_dir(&self.dir).at("sync", &self.dir)?;
        }
        Ok(dropped)
    }
}

/// From the keys, from the files there, or the default.
pub(crate) fn geometry(disk: &dyn Disk, dir: &Path, names: &[String], options: &Options) -> Result<Geometry, Error> {
    let configured = Geometry {
        slots: options.index_slots.unwrap_or(GEOMETRY_DEFAULT.slots),
        items: options.index_items.unwrap_or(GEOMETRY_DEFAULT.items),
    };
    if configured.slots == 0 || configured.items < 2 || configured.file_bytes() > i32::MAX as u64 {
        let what = format!(
            "maxHashSlotNum={} and maxIndexNum={}: expected at least 1 slot, 2 items, and 40 + 4 a slot + 20 an item below 2147483648",
            configured.slots, configured.items
        );
        return Err(Error::Layout { path: dir.to_path_buf(), what });
    }
    // A crash may have left the last one without its length.
    let mut found: Option<(PathBuf, Arc<dyn File>, u64)> = None;
    for path in names.iter().map(|name| dir.join(name)) {
        let file = disk.open(&path, Open::Read).at("open", &path)?;
        let bytes = file.size().at("stat", &path)?;
        if bytes > 0 {
            found = Some((path, file, bytes));
            break;
        }
    }
    let Some((path, file, bytes)) = found.filter(|(_, _, bytes)| *bytes != configured.file_bytes()) else {
        return Ok(configured);
    };
    let told = index_file::geometry_of(file.as_ref(), bytes).at("read", &path)?;
    let Some(told) = told else { return Ok(configured) };
    let contradiction = |key, configured: Option<u32>, found: u32| {
        configured.filter(|c| *c != found).map(|c| Error::IndexGeometry {
            key,
            configured: c,
            found,
            path: path.clone(),
        })
    };
    let error = contradiction("maxHashSlotNum", options.index_slots, told.slots);
    match error.or_else(|| contradiction("maxIndexNum", options.index_items, told.items)) {
        Some(error) => Err(error),
        None => Ok(told),
    }
}
