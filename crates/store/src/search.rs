//! Search by store time: binary search over a queue, reading the time of one record a step.
//! Java: `ConsumeQueue.getOffsetInQueueByTime`, `DefaultMessageStore.getEarliestMessageTime`.

use std::sync::atomic::Ordering;

use cometmq_wire::flags::message::BORN_HOST_V6;
use cometmq_wire::record::Record;

use crate::queue::QueueRef;
use crate::{Error, Store, Wait};

/// Which of several messages of one time. Java: `BoundaryType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// The first message at or after the time; the end of the queue when there is none.
    Lower,
    /// The last message at or before the time.
    Upper,
}

impl Store {
    /// The offset in `queue` for store time `time_ms`; 0 for a queue without messages. Reads from disk.
    pub fn offset_by_time(&self, queue: &QueueRef, time_ms: i64, boundary: Boundary) -> Result<i64, Error> {
        let (min, end) = (queue.min(), queue.end());
        if min >= end {
            return Ok(end);
        }
        let lower = self.first_where(queue, min, end, |ms| ms >= time_ms)?;
        if boundary == Boundary::Lower {
            return Ok(lower);
        }
        let after = self.first_where(queue, lower, end, |ms| ms > time_ms)?;
        Ok((after - 1).max(min))
    }

    /// Store time of the first message, if there is one.
    pub fn earliest_time(&self, queue: &QueueRef) -> Result<Option<i64>, Error> {
        let min = queue.min();
        if min >= queue.end() { Ok(None) } else { self.time_of(queue, min) }
    }

    /// Store time of the first message that the log still has. May wait for the disk.
    pub fn earliest_log_time(&self) -> Option<i64> {
        let first = self.record_at(self.log_start()).ok()??;
        Record::parse(&first).ok().map(|r| r.store_ms())
    }

    /// Where message `offset` lies in the log, as far as that is known without waiting for the disk.
    pub fn log_offset_of(&self, queue: &QueueRef, offset: i64) -> Option<u64> {
        let mut entries = Vec::new();
        self.0.entries(queue, offset, offset + 1, Wait::No, &mut entries).ok()?;
        entries.first().filter(|e| !e.is_filler()).map(|e| e.log_at)
    }

    /// Store time of message `offset`; `None` when it does not read back.
    pub fn time_of(&self, queue: &QueueRef, offset: i64) -> Result<Option<i64>, Error> {
        let mut entries = Vec::new();
        self.0.entries(queue, offset, offset + 1, Wait::Yes, &mut entries).map_err(|e| self.0.queue_error(e))?;
        let Some(entry) = entries.first().filter(|e| !e.is_filler()) else { return Ok(None) };
        // Up to the store time of a record with an IPv6 born host; every record is longer.
        let mut head = [0; 76];
        if let Some(bytes) = self.0.tail.slice(entry.log_at, head.len()) {
            head.copy_from_slice(&bytes);
        } else if self.0.log.read(entry.log_at, &mut head, true).is_err() {
            self.0.stats.damaged.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        let sys_flag = i32::from_be_bytes([head[36], head[37], head[38], head[39]]);
        let at = if sys_flag & BORN_HOST_V6 == 0 { 56 } else { 68 };
        Ok(head.get(at..).and_then(|b| b.first_chunk::<8>()).map(|b| i64::from_be_bytes(*b)))
    }

    /// The first offset in `low..high` whose time is `wanted`; `high` if none is. Times rise with offsets.
    fn first_where(
        &self,
        queue: &QueueRef,
        mut low: i64,
        mut high: i64,
        wanted: impl Fn(i64) -> bool,
    ) -> Result<i64, Error> {
        while low < high {
            let middle = low + (high - low) / 2;
            // A message that cannot be read sorts with those before it: the search goes on to the right.
            if self.time_of(queue, middle)?.is_some_and(&wanted) { high = middle } else { low = middle + 1 }
        }
        Ok(low)
    }
}
