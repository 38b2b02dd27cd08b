//! Recovery: what is true after a start.
//!
//! | found | done |
//! |---|---|
//! | no log | start at offset 0 |
//! | our checkpoint fits | read the log from its dispatched offset on, add the queue entries that follow |
//! | none, or another broker was here, or queue files are missing or short | read the whole log, rebuild all queue entries |
//! | a record that is torn, or zeros, behind the durable offset | the log ends there; what lies behind is copied to `comet/cut-<offset>` and zeroed |
//! | damage below the durable offset | reported, stepped over; nothing is changed |
//! | a gap in the offsets of a queue | the whole log is read; a gap that stays is filled with entries that readers skip |
//!
//! Entries in queue files past the place where reading starts are ignored: they are derived again.
//! What lies behind the end is [`cut`].
//! Java: `CommitLog.recoverNormally`, `recoverAbnormally`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cometmq_wire::java_hash::tags_code;
use cometmq_wire::properties;
use cometmq_wire::record::{self, BLANK_MIN, Kind, Record};

use crate::append::is_hidden;
use crate::checkpoint::{Checkpoint, OwnCheckpoint};
use crate::error::IoContext;
use crate::log::{Log, Segment};
use crate::queue::{Entry, QueueRef};
use crate::store::{Inner, lock};
use crate::{Error, FlushMode, cut, dispatch, flush};

const CHUNK: usize = 4 << 20;
/// Entries gathered in memory before they are written out.
const ENTRIES_MAX: u64 = 128 << 10;
/// A larger gap in a queue's offsets is not filled entry by entry: the queue starts anew behind it.
const GAP_MAX: i64 = 1 << 20;
const DELAY_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

/// Why a pass over the log stopped early.
enum Stop {
    /// A queue's offsets have a gap that an earlier part of the log may fill.
    Gap(String),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

pub(crate) fn run(
    inner: &Arc<Inner>,
    crashed: bool,
    own: Option<&OwnCheckpoint>,
    java: &Checkpoint,
) -> Result<(), Error> {
    let segments = inner.log.segments();
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return cut::queues(inner) };
    let range = first.base..=last.end();
    let own = own.filter(|o| range.contains(&o.dispatched) && range.contains(&o.durable) && o.dispatched <= o.durable);
    let began = Instant::now();
    let from = own.filter(|o| inner.files.bytes() >= o.queue_bytes).map_or(first.base, |o| o.dispatched);
    let durable = own.map_or(0, |o| o.durable);
    let end = match pass(inner, from, durable, from > first.base) {
        Err(Stop::Gap(what)) => {
            tracing::warn!(what, "reading the whole commit log");
            inner.forget_queues();
            match pass(inner, first.base, durable, false) {
                Err(Stop::Gap(what)) => return Err(Error::Layout { path: inner.log.dir().to_path_buf(), what }),
                Err(Stop::Failed(error)) => return Err(error),
                Ok(end) => end,
            }
        }
        Err(Stop::Failed(error)) => return Err(error),
        Ok(end) => end,
    };
    if own.is_none() || crashed {
        cut::queues(inner)?;
        cut::log(inner, end.at)?;
    }
    let segment = inner.log.segments().iter().rfind(|s| s.base <= end.at).cloned();
    let mut head = lock(&inner.head);
    head.at = end.at;
    // Nothing may follow the checkpoint, and Java's own is only known to be true together with ours.
    head.store_ms = end.store_ms.max(own.map_or(0, |_| java.physic_ms));
    head.segment = segment;
    drop(head);
    inner.written.store(end.at, Ordering::Release);
    inner.durable_ms.store(end.store_ms, Ordering::Release);
    if inner.options.flush == FlushMode::Sync {
        // What is visible must be durable, and everything found is visible.
        flush::flush(inner, end.at)?;
    }
    tracing::info!(
        from,
        end = end.at,
        records = end.records,
        damaged = inner.stats.damaged.load(Ordering::Relaxed),
        crashed,
        took = ?began.elapsed(),
        "commit log recovered"
    );
    Ok(())
}

struct End {
    at: u64,
    store_ms: i64,
    records: u64,
}

/// Reads the log from `from` to its end and adds the queue entries of what it finds. `stop_at_gap`: the queues' files hold
/// what lies before `from`, so a gap means that they do not.
fn pass(inner: &Arc<Inner>, from: u64, durable: u64, stop_at_gap: bool) -> Result<End, Stop> {
    // Queues are loaded as of `from`: entries behind it come from the log.
    inner.written.store(from, Ordering::Release);
    inner.durable.store(from, Ordering::Release);
    inner.dispatched.store(from, Ordering::Release);
    let mut end = End { at: from, store_ms: 0, records: 0 };
    let mut said = Instant::now();
    let total = inner.log.segments().last().map_or(0, |s| s.end());
    let at = scan(inner, from, durable, |record| {
        end.records += 1;
        end.store_ms = end.store_ms.max(record.store_ms());
        index(inner, record, stop_at_gap)?;
        if inner.entries_in_memory.load(Ordering::Relaxed) > ENTRIES_MAX {
            let upto = record.log_offset() as u64 + record.len() as u64;
            flush::flush(inner, upto)?;
            dispatch::write_entries(inner)?;
        }
        if said.elapsed() > Duration::from_secs(1) {
            said = Instant::now();
            let done = record.log_offset() as u64;
            tracing::info!(done, total, records = end.records, "reading the commit log");
        }
        Ok(())
    })?;
    end.at = at;
    Ok(end)
}

/// Calls `visit` for each record from `from` on; returns where the log ends.
fn scan(
    inner: &Inner,
    from: u64,
    durable: u64,
    mut visit: impl FnMut(&Record<'_>) -> Result<(), Stop>,
) -> Result<u64, Stop> {
    let segments = inner.log.segments();
    let mut at = from;
    for segment in segments.iter().filter(|s| s.end() > from) {
        if at < segment.base {
            at = segment.base;
        }
        match scan_segment(inner, segment, at, durable, &mut visit)? {
            SegmentEnd::Full => at = segment.end(),
            SegmentEnd::LogEnd(end) => return Ok(end),
        }
    }
    Ok(at)
}

enum SegmentEnd {
    Full,
    LogEnd(u64),
}

fn scan_segment(
    inner: &Inner,
    segment: &Segment,
    mut at: u64,
    durable: u64,
    visit: &mut impl FnMut(&Record<'_>) -> Result<(), Stop>,
) -> Result<SegmentEnd, Stop> {
    let mut window = Window { segment, end: segment.end(), chunk: CHUNK, start: at, bytes: Vec::new() };
    loop {
        if at + BLANK_MIN as u64 > segment.end() {
            return Ok(SegmentEnd::Full);
        }
        let head = window.get(at, 8)?.first_chunk::<8>().copied().unwrap_or_default();
        let wrong = match record::peek(head) {
            Ok(Kind::Blank(_)) => return Ok(SegmentEnd::Full),
            Ok(Kind::Empty) if at >= durable => return Ok(SegmentEnd::LogEnd(at)),
            Ok(Kind::Empty) => "zeros where a record was".to_string(),
            Ok(Kind::Message(len)) if at + len as u64 > segment.end() => "a record longer than its file".to_string(),
            Ok(Kind::Message(len)) => match check(window.get(at, len)?, at) {
                Ok(record) => {
                    visit(&record)?;
                    at += len as u64;
                    continue;
                }
                Err(why) => why,
            },
            Err(error) => error.to_string(),
        };
        if at >= durable {
            tracing::warn!(offset = at, file = %segment.path.display(), why = wrong, "the log ends at a torn record");
            return Ok(SegmentEnd::LogEnd(at));
        }
        inner.stats.damaged.fetch_add(1, Ordering::Relaxed);
        let next = next_record(&mut window, at + 1)?;
        tracing::error!(
            offset = at,
            file = %segment.path.display(),
            why = wrong,
            resumes = next,
            "the commit log is damaged below its durable end; stepping over it, nothing is changed"
        );
        match next {
            Some(next) => at = next,
            // The damage reaches up to the durable end, and nothing whole lies behind it: the log goes on there.
            None if durable < segment.end() => return Ok(SegmentEnd::LogEnd(durable)),
            None => return Ok(SegmentEnd::Full),
        }
    }
}

/// The record that lies at log offset `at`, with all that can be checked.
pub(crate) fn check(bytes: &[u8], at: u64) -> Result<Record<'_>, String> {
    let record = Record::parse(bytes).map_err(|e| e.to_string())?;
    if record.log_offset() as u64 != at {
        return Err(format!("a record that says it lies at {}", record.log_offset()));
    }
    if !record.body_is_intact() {
        return Err("a body that does not match its crc".to_string());
    }
    Ok(record)
}

/// Calls `visit` for each record in `from..to`, all of which was written, until it says `false`; returns the offset behind the
/// last one. Damage is stepped over: it was reported when it was found. `chunk` bytes are read at a time.
pub(crate) fn walk(
    log: &Log,
    from: u64,
    to: u64,
    chunk: usize,
    mut visit: impl FnMut(&Record<'_>) -> bool,
) -> Result<u64, Error> {
    for segment in log.segments().iter().filter(|s| s.end() > from && s.base < to) {
        let mut at = from.max(segment.base);
        let mut window = Window { segment, end: segment.end().min(to), chunk, start: at, bytes: Vec::new() };
        while at + BLANK_MIN as u64 <= window.end {
            let head = window.get(at, 8)?.first_chunk::<8>().copied().unwrap_or_default();
            let len = match record::peek(head) {
                Ok(Kind::Blank(_)) => break,
                Ok(Kind::Message(len)) if at + len as u64 <= window.end => len,
                _ => 0,
            };
            match Record::parse(window.get(at, len)?) {
                Ok(record) if record.log_offset() as u64 == at => {
                    at += len as u64;
                    if !visit(&record) {
                        return Ok(at);
                    }
                }
                _ => match next_record(&mut window, at + 1)? {
                    Some(next) => at = next,
                    None => break,
                },
            }
        }
    }
    Ok(to)
}

/// The next place in the segment where an intact record starts.
fn next_record(window: &mut Window<'_>, from: u64) -> Result<Option<u64>, Error> {
    let end = window.end;
    let mut at = from;
    while at + 91 <= end {
        let head = window.get(at, 8)?.first_chunk::<8>().copied().unwrap_or_default();
        match record::peek(head) {
            Ok(Kind::Message(len)) if at + len as u64 <= end && check(window.get(at, len)?, at).is_ok() => {
                return Ok(Some(at));
            }
            _ => at += 1,
        }
    }
    Ok(None)
}

/// A part of a segment in memory, of which nothing behind `end` is read.
struct Window<'a> {
    segment: &'a Segment,
    end: u64,
    chunk: usize,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// The bytes `at..at + len`, fewer at the end of the file.
    fn get(&mut self, at: u64, len: usize) -> Result<&[u8], Error> {
        let have = self.start..self.start + self.bytes.len() as u64;
        if !(have.contains(&at) && at + len as u64 <= have.end) {
            let want = (self.chunk.max(len) as u64).min(self.end - at) as usize;
            self.bytes.resize(want, 0);
            self.start = at;
            let n = self.segment.file.read_at(&mut self.bytes, at - self.segment.base, true);
            self.bytes.truncate(n.at("read", &self.segment.path)?);
        }
        let from = (at - self.start) as usize;
        Ok(self.bytes.get(from..self.bytes.len().min(from + len)).unwrap_or_default())
    }
}

/// Adds the queue entry of a record.
fn index(inner: &Arc<Inner>, record: &Record<'_>, stop_at_gap: bool) -> Result<(), Stop> {
    if is_hidden(record.sys_flag()) {
        return Ok(());
    }
    if lock(&inner.deleted).covers(record.topic(), record.log_offset() as u64) {
        return Ok(());
    }
    let queue = inner.queue(record.topic(), record.queue_id())?;
    let offset = record.queue_offset();
    let next = queue.0.next.load(Ordering::Relaxed);
    if offset != next {
        resolve(inner, &queue, next, offset, stop_at_gap)?;
    }
    let entry = Entry {
        log_at: record.log_offset() as u64,
        len: record.len() as u32,
        tags_code: entry_tags_code(inner, record),
    };
    inner.add_entry(&queue.0, offset, entry);
    queue.0.next.store(offset + 1, Ordering::Relaxed);
    queue.0.end.store(offset + 1, Ordering::SeqCst);
    Ok(())
}

/// A record that is not the next of its queue.
fn resolve(inner: &Arc<Inner>, queue: &QueueRef, next: i64, offset: i64, stop_at_gap: bool) -> Result<(), Stop> {
    let gap = offset - next;
    let name = format!("{}-{}", queue.topic(), queue.id());
    let is_fresh = queue.min() == next && queue.0.tail().entries.is_empty();
    if gap > 0 && stop_at_gap {
        return Err(Stop::Gap(format!("queue {name} goes on at {offset}, but its files end at {next}")));
    }
    if gap > 0 && !is_fresh && gap <= GAP_MAX {
        tracing::error!(queue = name, from = next, to = offset, "messages are missing in the commit log");
        for n in next..offset {
            inner.add_entry(&queue.0, n, Entry::FILLER);
        }
        return Ok(());
    }
    if !is_fresh {
        tracing::warn!(queue = name, at = next, restarts = offset, "the offsets of a queue start anew");
    }
    let mut tail = queue.0.tail();
    inner.entries_in_memory.fetch_sub(tail.entries.len() as u64, Ordering::Relaxed);
    tail.entries.clear();
    tail.start = offset;
    drop(tail);
    if is_fresh || gap > 0 {
        queue.0.min.store(offset, Ordering::Release);
    }
    queue.0.next.store(offset, Ordering::Relaxed);
    Ok(())
}

/// The hash of the tag; in the delay topic, the time when the message is due. Java: `CommitLog.checkMessageAndReturnSize`.
fn entry_tags_code(inner: &Inner, record: &Record<'_>) -> i64 {
    let levels = &inner.options.delay_levels_ms;
    if record.topic() == DELAY_TOPIC
        && let Some(level) = record.property(properties::DELAY).and_then(|d| d.parse::<usize>().ok())
        && let Some(delay) = level.checked_sub(1).and_then(|i| levels.get(i.min(levels.len().saturating_sub(1))))
    {
        return record.store_ms() + delay;
    }
    record.property(properties::TAGS).filter(|t| !t.is_empty()).map_or(0, tags_code)
}
