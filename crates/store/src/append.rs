//! Append: a batch of records gets its place in the log, is written, and becomes visible.
//!
//! The only serial part of a send. Under the append lock: offsets, three patched fields a record, one
//! write a group of at most 64 KiB, queue entries into memory. Nothing here waits for a flush.
//!
//! Order that matters: the entry of a record is published after the record is written; `written` moves after the entries
//! are in place, so that dispatch never misses one, and after the ends that wait for the flush are in place, so that the
//! flush that makes them durable publishes them; the visible end of a queue moves last.
//! A panic in here poisons the store. A failed write takes the whole group back: its offsets are given to the next one.
//! Java: `CommitLog.asyncPutMessage`.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cometmq_wire::flags::message::{TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK};
use cometmq_wire::java_hash::tags_code;
use cometmq_wire::record::{self, BLANK_MIN, Draft, MAGIC_BLANK};
use cometmq_wire::{DecodeError, properties};

use crate::error::IoContext;
use crate::log::Segment;
use crate::queue::{Entry, Queue};
use crate::store::{Inner, lock};
use crate::{Error, FlushMode, QueueRef, Store};

/// One write call carries at most this much: above it the data leaves the L2 cache and a byte costs twice as much.
const GROUP_BYTES: usize = 64 << 10;
/// Entries in memory above which the dispatch thread is called early.
const DISPATCH_EARLY: u64 = 64 << 10;

/// Entries in memory at which appends wait for the dispatch thread; their memory is bounded by it.
const ENTRIES_MAX: u64 = 512 << 10;
const PANIC: &str = "a bug: a panic while the append lock was held";

/// Records that want to be appended together, in this order. Reused from turn to turn.
///
/// They are encoded into chunks of a write each. Once written, a chunk becomes part of the tail as it is: a record is
/// copied once, from the read buffer into its chunk.
#[derive(Default)]
pub struct Batch {
    chunks: Vec<Vec<u8>>,
    items: Vec<Item>,
    /// Bytes that are still to come, as far as the caller knows.
    expected: usize,
}

struct Item {
    queue: QueueRef,
    chunk: usize,
    /// Where it starts in its chunk.
    start: usize,
    len: usize,
    code: Code,
    sys_flag: i32,
    placed: Option<Appended>,
}

/// The tag code of a queue entry.
enum Code {
    Tag(i64),
    /// In the delay topic: due so many milliseconds after it is stored.
    DueAfter(i64),
}

impl Item {
    fn is_hidden(&self) -> bool {
        is_hidden(self.sys_flag)
    }
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub log_offset: u64,
    /// One past its last byte: durable once the durable watermark is there.
    pub log_end: u64,
    pub queue_offset: i64,
    pub store_ms: i64,
}

impl Batch {
    /// Says how many bytes of records are about to be pushed; only a hint for allocations.
    pub fn expect(&mut self, bytes: usize) {
        self.expected = bytes;
    }

    /// Adds a record; returns its index. The queue id of the record is the queue's.
    pub fn push(&mut self, draft: &Draft<'_>, queue: &QueueRef) -> Result<usize, DecodeError> {
        let tag = properties::find(draft.properties, properties::TAGS).filter(|t| !t.is_empty());
        self.add(draft, queue, Code::Tag(tag.map_or(0, tags_code)))
    }

    /// Adds a record whose queue entry carries the time when it is due instead of its tag. Java: `SCHEDULE_TOPIC_XXXX`.
    pub fn push_due(&mut self, draft: &Draft<'_>, queue: &QueueRef, delay: Duration) -> Result<usize, DecodeError> {
        self.add(draft, queue, Code::DueAfter(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)))
    }

    fn add(&mut self, draft: &Draft<'_>, queue: &QueueRef, code: Code) -> Result<usize, DecodeError> {
        let draft = Draft { queue_id: queue.id(), ..*draft };
        let bytes = draft.encoded_len();
        if self.chunks.last().is_none_or(|c| c.len() + bytes > GROUP_BYTES) {
            self.chunks.push(Vec::with_capacity(self.expected.min(GROUP_BYTES).max(bytes)));
        }
        self.expected = self.expected.saturating_sub(bytes);
        let chunk = self.chunks.len() - 1;
        let start = self.chunks[chunk].len();
        let len = draft.encode(&mut self.chunks[chunk])?;
        self.items.push(Item { queue: queue.clone(), chunk, start, len, code, sys_flag: draft.sys_flag, placed: None });
        Ok(self.items.len() - 1)
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Where record `index` lies, once [`Store::append`] has placed it.
    pub fn placed(&self, index: usize) -> Option<Appended> {
        self.items.get(index)?.placed
    }

    /// Takes back all records from `len` on (a request that turned out wrong after its first records).
    pub fn truncate(&mut self, len: usize) {
        if let Some(item) = self.items.get(len) {
            self.chunks.truncate(item.chunk + 1);
            self.chunks[item.chunk].truncate(item.start);
            self.items.truncate(len);
        }
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.chunks.clear();
    }

    /// The bytes of items of one chunk; the chunk itself when they are all of it.
    fn take_bytes(&mut self, group: &Range<usize>) -> Bytes {
        let (first, last) = (&self.items[group.start], &self.items[group.end - 1]);
        let (from, to) = (first.start, last.start + last.len);
        let chunk = &mut self.chunks[first.chunk];
        if from == 0 && to == chunk.len() {
            Bytes::from(std::mem::take(chunk))
        } else {
            Bytes::copy_from_slice(&chunk[from..to])
        }
    }
}

/// What the append lock guards.
#[derive(Default)]
pub(crate) struct Head {
    /// Where the next record goes.
    pub(crate) at: u64,
    pub(crate) segment: Option<Arc<Segment>>,
    /// Store time of the last record: never goes backwards, or a search by time would miss messages.
    pub(crate) store_ms: i64,
}

impl Store {
    /// Appends all of `batch`, in order. On an error some of it may be placed ([`Batch::placed`]); what is not placed is
    /// not in the store and never will be.
    pub fn append(&self, batch: &mut Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        if let Some(refusal) = self.0.refusal() {
            return Err(refusal);
        }
        let inner = &self.0;
        let began = Instant::now();
        inner.wait_for_dispatch();
        let guarded = catch_unwind(AssertUnwindSafe(|| {
            // A poisoned lock: somebody panicked under it a moment ago and the store is about to be poisoned.
            let mut head = inner.head.lock().map_err(|_| Error::Poisoned(PANIC.to_string()))?;
            if let Some(refusal) = inner.refusal() {
                return Err(refusal);
            }
            inner.append(&mut head, batch)
        }));
        let took = began.elapsed().as_micros() as u64;
        if took > inner.stats.append_max_us.load(Ordering::Relaxed) {
            inner.stats.append_max_us.store(took, Ordering::Relaxed);
        }
        if took > 5000 {
            inner.stats.slow_appends.fetch_add(1, Ordering::Relaxed);
        }
        match guarded {
            Ok(Err(Error::DiskFull(why))) => Err(Error::DiskFull(inner.met_full(&why))),
            Ok(Err(error @ Error::Io { .. })) => {
                inner.poison(error.to_string());
                Err(error)
            }
            Ok(result) => {
                if result.is_ok() && inner.has_met_full() {
                    inner.write_succeeded();
                }
                result
            }
            Err(_) => {
                inner.poison(PANIC.to_string());
                Err(Error::Poisoned(PANIC.to_string()))
            }
        }
    }
}

impl Inner {
    fn append(&self, head: &mut Head, batch: &mut Batch) -> Result<(), Error> {
        self.stats.appends.fetch_add(1, Ordering::Relaxed);
        head.store_ms = head.store_ms.max(self.clock.now_ms());
        let mut next = 0;
        while next < batch.items.len() {
            let segment = self.segment_for(head, batch.items[next].len)?;
            let (first, chunk) = (next, batch.items[next].chunk);
            let mut end = head.at;
            while let Some(item) = batch.items.get(next).filter(|i| i.chunk == chunk) {
                end += item.len as u64;
                if end + BLANK_MIN as u64 > segment.end() {
                    break;
                }
                next += 1;
            }
            self.write_group(head, &segment, batch, first..next)?;
        }
        Ok(())
    }

    /// The segment that has room for a record of `len` bytes; fills up and leaves the current one if it has not.
    fn segment_for(&self, head: &mut Head, len: usize) -> Result<Arc<Segment>, Error> {
        let limit = self.log.segment_bytes as usize;
        if len + BLANK_MIN > limit {
            return Err(Error::TooLarge { len, limit: limit - BLANK_MIN });
        }
        if let Some(segment) = &head.segment {
            if head.at + (len + BLANK_MIN) as u64 <= segment.end() {
                return Ok(segment.clone());
            }
            let rest = segment.end() - head.at;
            if rest >= BLANK_MIN as u64 {
                let mut blank = [0; 8];
                blank[..4].copy_from_slice(&(rest as u32).to_be_bytes());
                blank[4..].copy_from_slice(&MAGIC_BLANK.to_be_bytes());
                self.write_log(segment, head.at, &blank)?;
            }
            let next = self.log.roll(segment.end())?;
            head.at = next.base;
            head.segment = Some(next.clone());
            self.written.store(next.base, Ordering::Release);
            return Ok(next);
        }
        let first = self.log.roll(head.at)?;
        head.segment = Some(first.clone());
        Ok(first)
    }

    fn write_log(&self, segment: &Segment, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let offset = at - segment.base;
        segment.reserve(offset + bytes.len() as u64)?;
        self.stats.log_writes.fetch_add(1, Ordering::Relaxed);
        segment.file.write_all_at(bytes, offset).at("write", &segment.path)
    }

    fn write_group(
        &self,
        head: &mut Head,
        segment: &Segment,
        batch: &mut Batch,
        group: Range<usize>,
    ) -> Result<(), Error> {
        if let Some(item) = batch.items[group.clone()].iter().find(|i| i.queue.0.retired.load(Ordering::Acquire)) {
            return Err(Error::Retired { topic: item.queue.topic().to_string(), id: item.queue.id() });
        }
        let mut at = head.at;
        for item in &mut batch.items[group.clone()] {
            let queue_offset = if item.is_hidden() { 0 } else { item.queue.0.next.fetch_add(1, Ordering::Relaxed) };
            let record = &mut batch.chunks[item.chunk][item.start..item.start + item.len];
            record::place(record, queue_offset, at as i64, head.store_ms);
            let log_end = at + item.len as u64;
            item.placed = Some(Appended { log_offset: at, log_end, queue_offset, store_ms: head.store_ms });
            at = log_end;
        }
        let bytes = batch.take_bytes(&group);
        if let Err(error) = self.write_log(segment, head.at, &bytes) {
            for item in &mut batch.items[group] {
                if !item.is_hidden() {
                    item.queue.0.next.fetch_sub(1, Ordering::Relaxed);
                }
                item.placed = None;
            }
            return Err(error);
        }
        self.stats.log_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.stats.records.fetch_add(group.len() as u64, Ordering::Relaxed);
        self.tail.push(head.at, bytes);
        head.at = at;
        self.index_group(&batch.items[group], at);
        Ok(())
    }

    /// Queue entries of a written group: into memory, then visible.
    fn index_group(&self, items: &[Item], log_end: u64) {
        let shown = || items.iter().filter(|i| !i.is_hidden()).filter_map(|i| Some((i, i.placed?)));
        for (item, placed) in shown() {
            let tags_code = match item.code {
                Code::Tag(code) => code,
                Code::DueAfter(ms) => placed.store_ms.saturating_add(ms),
            };
            let entry = Entry { log_at: placed.log_offset, len: item.len as u32, tags_code };
            self.add_entry(&item.queue.0, placed.queue_offset, entry);
        }
        let moved = shown().map(|(item, p)| (item.queue.clone(), p.queue_offset + 1, p.log_end));
        match self.options.flush {
            FlushMode::Async => {
                self.written.store(log_end, Ordering::Release);
                self.publish(moved.map(|(queue, end, _)| (queue, end)));
            }
            FlushMode::Sync => {
                lock(&self.pending).push(moved);
                self.written.store(log_end, Ordering::Release);
                self.flush_signal.raise();
            }
        }
        if self.entries_in_memory.load(Ordering::Relaxed) > DISPATCH_EARLY {
            self.flush_signal.raise();
            self.dispatch_signal.raise();
        }
    }

    /// Backpressure: blocks for a moment when the queue files fall far behind.
    fn wait_for_dispatch(&self) {
        for _ in 0..1000 {
            if self.entries_in_memory.load(Ordering::Relaxed) < ENTRIES_MAX || self.is_poisoned() {
                return;
            }
            self.flush_signal.raise();
            self.dispatch_signal.raise();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Appends an entry to the part of a queue that is in memory. Callers come in queue order.
    pub(crate) fn add_entry(&self, queue: &Arc<Queue>, offset: i64, entry: Entry) {
        let mut tail = queue.tail();
        if tail.entries.is_empty() {
            tail.start = offset;
        }
        debug_assert_eq!(tail.start + tail.entries.len() as i64, offset);
        tail.entries.push_back(entry);
        if !tail.listed {
            tail.listed = true;
            lock(&self.dirty).push(queue.clone());
        }
        drop(tail);
        self.entries_in_memory.fetch_add(1, Ordering::Relaxed);
    }
}

/// Half messages and rollback marks have no queue entry of their own. Java: `CommitLogDispatcherBuildConsumeQueue`.
pub(crate) fn is_hidden(sys_flag: i32) -> bool {
    matches!(sys_flag & TRANSACTION_MASK, TRANSACTION_PREPARED | TRANSACTION_ROLLBACK)
}
