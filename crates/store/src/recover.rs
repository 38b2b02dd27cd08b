//! Recovery: what is true after a start.
//!
//! | found | done |
//! |---|---|
//! | no log | start at offset 0 |
//! | our checkpoint belongs to Java's and to the log | the log is read from its dispatched offset on; the queue entries that follow are added |
//! | our checkpoint missing, damaged, past the log, or another broker was here | it is set aside, the whole log is read, all queue entries are made again |
//! | queue files missing, or of a wrong length (set aside) | the same; our checkpoint still says what was durable |
//! | queue entries that end too early: a gap in a queue's offsets | the whole log is read; a gap that stays is filled with entries that readers skip |
//! | queue entries past the place where reading starts, or past the log | ignored and zeroed |
//! | no whole record at or behind the durable end: torn, a hole, zeros, garbage | the log ends there; what lies behind is copied to `comet/cut-<offset>`, then zeroed |
//! | no whole record below the durable end | damage: counted, said with file and offset, stepped over; nothing is changed, the offset in its queue is not given again |
//! | an index file that points past the log, or that cannot be believed | it is set aside with those behind it; its keys are read from the log again |
//! | an index that ends too early | its keys are read from the log, behind the start |
//! | a record of a batch queue (`batchconsumequeue`), or for a light queue (`%LMQ%`) | it gets no entry there: these queues are kept as Java left them |
//! | a file of the log is empty | it gets its length; in the middle, if what lies behind was durable, it is damage |
//! | a file of the log is missing in the middle, or has another length | refused by name |
//!
//! Where the durable end is: [`Durable`]. A row each in `tests/recovery_is_a_decision_table.rs`.
//! What it does not see: entries zeroed in a queue file that kept its length, after a clean stop. `comet store check` does (`inspect`).
//! Java: `CommitLog.recoverNormally`, `recoverAbnormally`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cometmq_wire::java_hash::tags_code;
use cometmq_wire::properties;
use cometmq_wire::record::Record;

use crate::append::is_hidden;
use crate::checkpoint::{Checkpoint, OwnCheckpoint};
use crate::queue::{Entry, QueueRef};
use crate::scan::{Damage, Durable, Scan};
use crate::store::{Inner, lock};
use crate::{Error, FlushMode, cut, dispatch, flush};

/// Entries gathered in memory before they are written out.
const ENTRIES_MAX: u64 = 128 << 10;
/// A larger gap in a queue's offsets is not filled entry by entry: the queue starts anew behind it.
const GAP_MAX: i64 = 1 << 20;
pub(crate) const DELAY_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";

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

/// Returns how many bytes of the log were read for it.
pub(crate) fn run(
    inner: &Arc<Inner>,
    crashed: bool,
    own: Option<&OwnCheckpoint>,
    java: &Checkpoint,
) -> Result<u64, Error> {
    let segments = inner.log.segments();
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
        return cut::queues(inner, &[]).map(|()| 0);
    };
    let own = own.filter(|own| fits(own, first.base, last.end()));
    let began = Instant::now();
    let rebuild = inner.options.rebuild;
    let usable = own.filter(|o| !rebuild && inner.files.bytes() >= o.queue_bytes);
    let from = usable.map_or(first.base, |o| o.dispatched);
    let durable = durable(crashed, own, java);
    let end = match pass(inner, from, durable, from > first.base) {
        Err(Stop::Gap(what)) => {
            tracing::warn!(what, "reading the whole commit log");
            inner.forget_queues();
            inner.stats.damaged.store(0, Ordering::Relaxed);
            match pass(inner, first.base, durable, false) {
                Err(Stop::Gap(what)) => return Err(Error::Layout { path: inner.log.dir().to_path_buf(), what }),
                Err(Stop::Failed(error)) => return Err(error),
                Ok(end) => end,
            }
        }
        Err(Stop::Failed(error)) => return Err(error),
        Ok(end) => end,
    };
    let is_sure = own.is_some() && !crashed && !rebuild;
    if !is_sure || !end.damaged.is_empty() {
        cut::queues(inner, &end.damaged)?;
    }
    if !is_sure {
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
    Ok(end.at.saturating_sub(from))
}

/// Whether our checkpoint can be true of a log from `start` to `end`, its last file counted as full.
pub(crate) fn fits(own: &OwnCheckpoint, start: u64, end: u64) -> bool {
    let range = start..=end;
    range.contains(&own.dispatched) && range.contains(&own.durable) && own.dispatched <= own.durable
}

/// What is known to have been durable; `own` fits.
pub(crate) fn durable(crashed: bool, own: Option<&OwnCheckpoint>, java: &Checkpoint) -> Durable {
    match own {
        Some(own) => Durable::Below(own.durable),
        None if !crashed => Durable::All,
        None => Durable::Before { offset: java.logics_offset.max(0) as u64, store_ms: java.physic_ms },
    }
}

struct End {
    at: u64,
    store_ms: i64,
    records: u64,
    damaged: Vec<Damage>,
}

/// Reads the log from `from` to its end and adds the queue entries of what it finds. `stop_at_gap`: the queues' files hold
/// what lies before `from`, so a gap means that they do not.
fn pass(inner: &Arc<Inner>, from: u64, durable: Durable, stop_at_gap: bool) -> Result<End, Stop> {
    // Queues are loaded as of `from`: entries behind it come from the log.
    inner.written.store(from, Ordering::Release);
    inner.durable.store(from, Ordering::Release);
    inner.dispatched.store(from, Ordering::Release);
    let mut end = End { at: from, store_ms: 0, records: 0, damaged: Vec::new() };
    let (began, mut said) = (Instant::now(), Instant::now());
    let total = inner.log.segments().last().map_or(0, |s| s.end()) - from;
    let mut scan = Scan::new(&inner.log, durable);
    let scanned = scan.run(from, |record| {
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
            let done = record.log_offset() as u64 - from;
            tracing::info!(records = end.records, "reading the commit log: {}", progress(done, total, began.elapsed()));
        }
        Ok::<(), Stop>(())
    });
    inner.stats.damaged.fetch_add(scan.damaged_count, Ordering::Relaxed);
    end.at = scanned?;
    end.damaged = scan.damaged;
    Ok(end)
}

/// How far it is, and how long it takes if it goes on like this. The last file counts as full: rather too long than too short.
fn progress(done: u64, total: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = (total.saturating_sub(done)) as f64 / rate.max(1.0);
    let mib = |bytes: u64| bytes >> 20;
    format!(
        "{} of at most {} MiB ({} %), {:.0} MiB/s, at most {left:.0} s left",
        mib(done),
        mib(total),
        done * 100 / total.max(1),
        rate / f64::from(1 << 20)
    )
}

/// Adds the queue entry of a record.
fn index(inner: &Arc<Inner>, record: &Record<'_>, stop_at_gap: bool) -> Result<(), Stop> {
    if is_hidden(record.sys_flag()) || inner.files.is_batch(record.topic()) {
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
        tags_code: entry_tags_code(&inner.options.delay_levels_ms, record),
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
pub(crate) fn entry_tags_code(levels: &[i64], record: &Record<'_>) -> i64 {
    if record.topic() == DELAY_TOPIC
        && let Some(level) = record.property(properties::DELAY).and_then(|d| d.parse::<usize>().ok())
        && let Some(delay) = level.checked_sub(1).and_then(|i| levels.get(i.min(levels.len().saturating_sub(1))))
    {
        return record.store_ms() + delay;
    }
    record.property(properties::TAGS).filter(|t| !t.is_empty()).map_or(0, tags_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_how_far_and_how_long() {
        let (gib, s) = (1 << 30, Duration::from_secs(2));
        assert_eq!(progress(gib, 4 * gib, s), "1024 of at most 4096 MiB (25 %), 512 MiB/s, at most 6 s left");
        assert_eq!(progress(0, 0, Duration::ZERO), "0 of at most 0 MiB (0 %), 0 MiB/s, at most 0 s left");
    }
}
