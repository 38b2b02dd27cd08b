//! Read: the messages of a queue from an offset on, as byte slices of the commit log.
//!
//! Nothing is copied that is still in the tail; the rest is read from files, neighbours with one call. `Wait::No` never
//! touches the disk: it answers `Cold` when a page is not in memory, and the caller asks again from a thread that may wait.
//! Java: `DefaultMessageStore.getMessage`.

use std::io;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use cometmq_wire::record::{self, Kind, Record};

use crate::queue::{Entry, QueueRef};
use crate::queue_ext::is_address;
use crate::{Error, Store, recover, scan};

/// How far one read may go.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most records to answer, and the limits for records in memory and on disk (`maxTransfer…`).
    pub count: usize,
    pub hot_count: usize,
    pub hot_bytes: usize,
    pub cold_count: usize,
    pub cold_bytes: usize,
    /// Log bytes before the end that count as in memory (`accessMessageInMemoryMaxRatio` of the machine's memory).
    pub hot_window: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    No,
    Yes,
}

/// Java: `GetMessageStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Found,
    /// There are messages from the offset on, none that passes the filter; `next` is behind what was looked at.
    NoMatch,
    /// The queue never had a message.
    Empty,
    /// The offset is the end of the queue.
    AtEnd,
    BeyondEnd,
    BeforeStart,
    /// Only with [`Wait::No`].
    Cold,
}

#[derive(Debug)]
pub struct Read {
    pub status: Status,
    pub next: i64,
    pub min: i64,
    /// The end of the queue when it was read.
    pub end: i64,
    pub records: Vec<Bytes>,
}

/// What a queue says about one of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEntry {
    pub log_offset: u64,
    /// Bytes of the record.
    pub len: usize,
    /// Java's hash of the tag; in the delay topic the time when the message is due, epoch milliseconds.
    pub tags_code: i64,
}

/// Entries that one read may look at: as many as fit into `max(16,000, 20 × count)` bytes of queue. Java: `maxFilterMessageSize`.
fn scan_entries_max(count: usize) -> i64 {
    (16_000 / 20).max(count as i64)
}

impl Store {
    /// Reads from `from` on. `matches` sees the tag code of each entry.
    pub fn read(
        &self,
        queue: &QueueRef,
        from: i64,
        limits: &Limits,
        wait: Wait,
        matches: &dyn Fn(i64) -> bool,
    ) -> Result<Read, Error> {
        self.read_by(queue, from, limits, wait, |entries| {
            let (picked, next) = self.pick(entries, from, limits, |entry| Ok(matches(entry.tags_code)))?;
            Ok((self.0.fetch(&picked, wait)?, next))
        })
    }

    /// As [`Store::read`], with a filter that has to see the whole record: each is read to find out.
    pub fn read_where(
        &self,
        queue: &QueueRef,
        from: i64,
        limits: &Limits,
        wait: Wait,
        matches: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Read, Error> {
        self.read_by(queue, from, limits, wait, |entries| {
            let mut records = Vec::new();
            let (picked, next) = self.pick(entries, from, limits, |entry| {
                let record = self.0.fetch(std::slice::from_ref(entry), wait)?.pop().filter(|r| matches(r));
                Ok(record.map(|r| records.push(r)).is_some())
            })?;
            // The one that did not fit was read, too.
            records.truncate(picked.len());
            Ok((records, next))
        })
    }

    /// `choose` makes records, and the offset behind the last entry looked at, out of the entries from `from` on.
    fn read_by(
        &self,
        queue: &QueueRef,
        from: i64,
        limits: &Limits,
        wait: Wait,
        choose: impl FnOnce(&[Entry]) -> io::Result<(Vec<Bytes>, i64)>,
    ) -> Result<Read, Error> {
        let (min, end) = (queue.min(), queue.end());
        let answer = |status, next| Ok(Read { status, next, min, end, records: Vec::new() });
        if end == 0 {
            return answer(Status::Empty, 0);
        }
        if from < min {
            return answer(Status::BeforeStart, min);
        }
        if from == end {
            return answer(Status::AtEnd, from);
        }
        if from > end {
            return answer(Status::BeyondEnd, end);
        }
        let mut entries = Vec::new();
        let to = end.min(from.saturating_add(scan_entries_max(limits.count)));
        match self.0.entries(queue, from, to, wait, &mut entries) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return answer(Status::Cold, from),
            // Its file expired a moment ago.
            Err(e) if e.kind() == io::ErrorKind::NotFound && from < queue.min() => {
                let min = queue.min();
                return Ok(Read { status: Status::BeforeStart, next: min, min, end, records: Vec::new() });
            }
            Err(source) => return Err(self.0.queue_error(source)),
        }
        match choose(&entries) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => answer(Status::Cold, from),
            Err(source) => Err(Error::Io { op: "read", path: self.0.log.dir().to_path_buf(), source }),
            Ok((records, next)) if records.is_empty() => answer(Status::NoMatch, next.max(from + 1)),
            Ok((records, next)) => Ok(Read { status: Status::Found, next, min, end, records }),
        }
    }

    /// Chooses entries up to the limits; returns them and the offset behind the last one looked at.
    fn pick(
        &self,
        entries: &[Entry],
        from: i64,
        limits: &Limits,
        mut matches: impl FnMut(&Entry) -> io::Result<bool>,
    ) -> io::Result<(Vec<Entry>, i64)> {
        let hot_from = self.written().saturating_sub(limits.hot_window);
        let mut picked: Vec<Entry> = Vec::with_capacity(entries.len().min(limits.count));
        let mut bytes = 0;
        for (n, entry) in (from..).zip(entries) {
            if entry.is_filler() || !matches(entry)? {
                continue;
            }
            let is_hot = entry.log_at >= hot_from;
            let (count_max, bytes_max) =
                if is_hot { (limits.hot_count, limits.hot_bytes) } else { (limits.cold_count, limits.cold_bytes) };
            let is_full = picked.len() >= limits.count.min(count_max) || bytes + entry.len as usize > bytes_max;
            if !picked.is_empty() && is_full {
                return Ok((picked, n));
            }
            bytes += entry.len as usize;
            picked.push(*entry);
        }
        Ok((picked, from + entries.len() as i64))
    }

    /// The queue entry of message `offset`; `None` when there is none or its message is missing. May wait for the disk.
    pub fn entry(&self, queue: &QueueRef, offset: i64) -> Result<Option<QueueEntry>, Error> {
        let mut entries = Vec::new();
        self.0.entries(queue, offset, offset + 1, Wait::Yes, &mut entries).map_err(|e| self.0.queue_error(e))?;
        let found = entries.first().filter(|e| !e.is_filler());
        Ok(found.map(|e| QueueEntry { log_offset: e.log_at, len: e.len as usize, tags_code: e.tags_code }))
    }

    /// The record that starts at a log offset; `None` when none does. May wait for the disk.
    pub fn record_at(&self, log_offset: u64) -> Result<Option<Bytes>, Error> {
        let mut head = [0; 8];
        if log_offset >= self.written() || self.0.log.read(log_offset, &mut head, true).is_err() {
            return Ok(None);
        }
        match record::peek(head) {
            Ok(Kind::Message(len)) => self.record(log_offset, len).map(Some),
            _ => Ok(None),
        }
    }

    /// The record at a log offset, `len` bytes long.
    pub fn record(&self, log_offset: u64, len: usize) -> Result<Bytes, Error> {
        let entry = Entry { log_at: log_offset, len: len as u32, tags_code: 0 };
        let found = self.0.fetch(&[entry], Wait::Yes);
        let found = found.map_err(|source| Error::Io { op: "read", path: self.0.log.dir().to_path_buf(), source })?;
        found.into_iter().next().ok_or_else(|| Error::Layout {
            path: self.0.log.dir().to_path_buf(),
            what: format!("no record of {len} bytes at offset {log_offset}"),
        })
    }
}

impl crate::store::Inner {
    pub(crate) fn queue_error(&self, source: io::Error) -> Error {
        Error::Io { op: "read", path: self.options.root.join("consumequeue"), source }
    }

    /// The entries `from..to`: from memory, or from one queue file.
    pub(crate) fn entries(
        &self,
        queue: &QueueRef,
        from: i64,
        to: i64,
        wait: Wait,
        out: &mut Vec<Entry>,
    ) -> io::Result<()> {
        let start = {
            let tail = queue.0.tail();
            if tail.copy(from, to, out) {
                return Ok(());
            }
            tail.start
        };
        // What is in memory is not in the file yet, or only just.
        self.files.read(&queue.0, from, to.min(start), wait == Wait::Yes, out)?;
        out.iter_mut().filter(|e| is_address(e.tags_code)).try_for_each(|entry| self.resolve(queue, entry, wait))
    }

    /// Replaces the place of an extended entry by the tags code that it stands for.
    fn resolve(&self, queue: &QueueRef, entry: &mut Entry, wait: Wait) -> io::Result<()> {
        let unit = self.ext.tags_code(queue.topic(), queue.id(), entry.tags_code, wait == Wait::Yes)?;
        entry.tags_code = match unit {
            Some(code) => code,
            None => {
                let found = self.fetch(std::slice::from_ref(entry), wait)?;
                let record = found.first().and_then(|bytes| Record::parse(bytes).ok());
                record.map_or(0, |record| recover::entry_tags_code(&self.options.delay_levels_ms, &record))
            }
        };
        Ok(())
    }

    /// The bytes of records, in order. One that does not read back as its entry says is left out and counted.
    pub(crate) fn fetch(&self, entries: &[Entry], wait: Wait) -> io::Result<Vec<Bytes>> {
        let mut records = Vec::with_capacity(entries.len());
        let mut i = 0;
        while let Some(entry) = entries.get(i) {
            if let Some(bytes) = self.tail.slice(entry.log_at, entry.len as usize) {
                self.stats.tail_reads.fetch_add(1, Ordering::Relaxed);
                records.push(bytes);
                i += 1;
                continue;
            }
            let run = self.run_of(&entries[i..]);
            self.fetch_run(run, wait, &mut records)?;
            i += run.len();
        }
        Ok(records)
    }

    /// The first entries that are worth one read together: the bytes between them are at most as many as theirs.
    fn run_of<'a>(&self, entries: &'a [Entry]) -> &'a [Entry] {
        const RUN_BYTES_MAX: u64 = 512 << 10;
        let first = entries[0];
        let segment_end = self.log.segment_of(first.log_at).map_or(0, |s| s.end());
        let mut payload = u64::from(first.len);
        let mut n = 1;
        for entry in &entries[1..] {
            let (span, with) = (entry.log_end().saturating_sub(first.log_at), payload + u64::from(entry.len));
            let in_order = entry.log_at >= entries[n - 1].log_end() && entry.log_end() <= segment_end;
            if !in_order || span > 2 * with || span > RUN_BYTES_MAX {
                break;
            }
            payload = with;
            n += 1;
        }
        &entries[..n]
    }

    fn fetch_run(&self, run: &[Entry], wait: Wait, records: &mut Vec<Bytes>) -> io::Result<()> {
        let start = run[0].log_at;
        let span = (run[run.len() - 1].log_end() - start) as usize;
        let mut bytes = vec![0; span];
        match self.log.read(start, &mut bytes, wait == Wait::Yes) {
            Ok(()) => {}
            // The file is gone or shorter: the entries point at nothing.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
                // Or they expired a moment ago.
                self.damaged(run.iter().filter(|entry| entry.log_at >= self.log.start()));
                return Ok(());
            }
            Err(e) => return Err(e),
        }
        self.stats.file_reads.fetch_add(1, Ordering::Relaxed);
        let bytes = Bytes::from(bytes);
        for entry in run {
            let at = (entry.log_at - start) as usize;
            let record = bytes.slice(at..at + entry.len as usize);
            // A damaged record would end the batch in Java's client, and lose it the messages behind.
            match scan::check(&record, entry.log_at) {
                Ok(whole) if whole.len() == record.len() => records.push(record),
                _ => self.damaged(std::iter::once(entry)),
            }
        }
        Ok(())
    }

    fn damaged<'a>(&self, entries: impl Iterator<Item = &'a Entry>) {
        for entry in entries {
            self.stats.damaged.fetch_add(1, Ordering::Relaxed);
            tracing::error!(
                offset = entry.log_at,
                len = entry.len,
                "a queue entry points at no record; stepping over it"
            );
        }
    }
}
