//! A queue: where the messages of one (topic, queue id) lie in the commit log.
//!
//! In memory: the range of offsets, the entries that are not in the queue's files yet, and who waits for more. An idle
//! queue is this struct; it has no file descriptor, no thread, no timer.
//!
//! Invariants: entry `n` is message `n` of the queue, never reused. `min ≤ end ≤ next`. Entries `< end` are visible.
//! Entries in memory are the last ones, without gaps: `tail_start ..= next`.
//! Threads: the append lock orders writers; `end` and `waiters` are the only things that a reader needs without a lock.
//! Java: `ConsumeQueue`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::store::lock;

/// Java's name for an entry's size: `CQ_STORE_UNIT_SIZE`.
pub(crate) const ENTRY_BYTES: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) log_at: u64,
    pub(crate) len: u32,
    pub(crate) tags_code: i64,
}

impl Entry {
    pub(crate) fn log_end(&self) -> u64 {
        self.log_at + u64::from(self.len)
    }

    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES as usize] {
        let mut bytes = [0; ENTRY_BYTES as usize];
        bytes[..8].copy_from_slice(&self.log_at.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_be_bytes());
        bytes[12..].copy_from_slice(&self.tags_code.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(b: [u8; ENTRY_BYTES as usize]) -> Self {
        let word = |at: usize| {
            u64::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3], b[at + 4], b[at + 5], b[at + 6], b[at + 7]])
        };
        Self { log_at: word(0), len: u32::from_be_bytes([b[8], b[9], b[10], b[11]]), tags_code: word(12) as i64 }
    }

    /// Java fills the part of a file before its first entry with (0, `Integer.MAX_VALUE`, 0).
    pub(crate) const FILLER: Self = Self { log_at: 0, len: i32::MAX as u32, tags_code: 0 };

    pub(crate) fn is_written(&self) -> bool {
        self.len > 0
    }

    pub(crate) fn is_filler(&self) -> bool {
        self.len == i32::MAX as u32
    }
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) topic: Arc<str>,
    pub(crate) id: i32,
    /// First offset that still has its message.
    pub(crate) min: AtomicI64,
    /// One past the last visible message: what clients call the max offset.
    pub(crate) end: AtomicI64,
    /// The offset that the next message gets; written under the append lock.
    pub(crate) next: AtomicI64,
    /// One bit a shard that has parked polls on this queue.
    waiters: AtomicU64,
    pub(crate) retired: AtomicBool,
    tail: Mutex<EntryTail>,
}

/// Entries that are not (all) in files yet.
#[derive(Debug, Default)]
pub(crate) struct EntryTail {
    /// Offset of `entries[0]`.
    pub(crate) start: i64,
    pub(crate) entries: VecDeque<Entry>,
    /// Whether the dispatch thread has this queue on its list.
    pub(crate) listed: bool,
}

/// A queue that the store owns; cheap to clone and to keep. Deleting the topic retires it.
#[derive(Debug, Clone)]
pub struct QueueRef(pub(crate) Arc<Queue>);

impl PartialEq for QueueRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for QueueRef {}

impl std::hash::Hash for QueueRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl QueueRef {
    pub fn topic(&self) -> &Arc<str> {
        &self.0.topic
    }

    pub fn id(&self) -> i32 {
        self.0.id
    }

    pub fn min(&self) -> i64 {
        self.0.min.load(Ordering::Acquire)
    }

    /// The max offset: one past the last message that may be read.
    pub fn end(&self) -> i64 {
        self.0.end.load(Ordering::SeqCst)
    }

    /// Asks for one wake-up of shard `shard` when this queue gets a visible message. The caller looks at [`QueueRef::end`]
    /// again *afterwards*: a message that became visible in between wakes nobody.
    pub fn arm(&self, shard: usize) {
        self.0.waiters.fetch_or(1 << shard, Ordering::SeqCst);
    }
}

impl Queue {
    pub(crate) fn new(topic: Arc<str>, id: i32, min: i64, next: i64) -> Self {
        Self {
            topic,
            id,
            min: AtomicI64::new(min),
            end: AtomicI64::new(next),
            next: AtomicI64::new(next),
            waiters: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            tail: Mutex::new(EntryTail { start: next, ..EntryTail::default() }),
        }
    }

    pub(crate) fn tail(&self) -> MutexGuard<'_, EntryTail> {
        lock(&self.tail)
    }

    /// Moves the visible end; returns the shards to wake.
    pub(crate) fn publish(&self, end: i64) -> u64 {
        self.end.store(end, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) == 0 { 0 } else { self.waiters.swap(0, Ordering::SeqCst) }
    }
}

impl EntryTail {
    /// Copies the entries `from..to` that are in memory, if `from` is.
    pub(crate) fn copy(&self, from: i64, to: i64, out: &mut Vec<Entry>) -> bool {
        if from < self.start {
            return false;
        }
        let first = (from - self.start) as usize;
        let last = ((to - self.start) as usize).min(self.entries.len());
        out.extend(self.entries.range(first.min(last)..last));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_java_s_20_bytes() {
        let entry = Entry { log_at: 0x0102, len: 0x0a0b, tags_code: -2 };
        let bytes = entry.to_bytes();
        assert_eq!(bytes[..8], [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(bytes[8..12], [0, 0, 0x0a, 0x0b]);
        assert_eq!(bytes[12..], [255, 255, 255, 255, 255, 255, 255, 254]);
        assert_eq!(Entry::from_bytes(bytes), entry);
    }

    #[test]
    fn publishing_takes_the_waiters_once() {
        let queue = QueueRef(Arc::new(Queue::new("t".into(), 0, 0, 0)));
        assert_eq!(queue.0.publish(1), 0);
        queue.arm(0);
        queue.arm(3);
        assert_eq!(queue.0.publish(2), 0b1001);
        assert_eq!(queue.0.publish(3), 0);
        assert_eq!(queue.end(), 3);
    }
}
