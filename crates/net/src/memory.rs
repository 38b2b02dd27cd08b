//! What the connections of a server may hold together, of requests that are not answered yet and of answers that are not
//! taken yet. DESIGN: *Limits*.
//!
//! Requests hold memory as unfinished frames and as copies of requests under way. When they hold [`REQUESTS`], no
//! connection is read from until there is room; one that waited `BUSY_AFTER` with an unfinished frame has it refused with
//! SYSTEM_BUSY, and its rest is read past. Frames larger than the shard's read buffer get their whole length
//! before they are collected, in turn, out of [`LARGE`], so that those that were let in can always be finished.
//!
//! Answers hold memory from the moment when the socket takes no more. When they hold [`RESPONSES`], a connection that has
//! some is not read from, and pulls of the others wait.
//!
//! Who is in the way of others for longer than `STALLED` is closed.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Unfinished frames and copies of requests, bytes.
pub const REQUESTS: usize = 8 << 20;
/// Frames larger than the read buffer, bytes. One that is larger than this is let in alone.
pub const LARGE: usize = 8 << 20;
/// Answers that their peers have not taken, bytes.
pub const RESPONSES: usize = 8 << 20;
pub(crate) const BUSY_AFTER: Duration = Duration::from_secs(2);
pub(crate) const STALLED: Duration = Duration::from_secs(10);

/// The accounts of one server, shared by its shards.
#[derive(Debug)]
pub struct Memory {
    pub requests: Arc<Account>,
    pub responses: Arc<Account>,
    large: Arc<Semaphore>,
    large_waiting: AtomicUsize,
    /// Requests that were refused since they waited for room too long.
    pub refused: AtomicU64,
    /// Connections closed since others waited for what they held.
    pub stalled_closed: AtomicU64,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            requests: Account::new(REQUESTS),
            responses: Account::new(RESPONSES),
            large: Arc::new(Semaphore::new(LARGE)),
            large_waiting: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            stalled_closed: AtomicU64::new(0),
        }
    }
}

/// Bytes in use, against a limit. What is there already is counted even beyond it; [`Account::is_full`] keeps more away.
#[derive(Debug)]
pub struct Account {
    used: AtomicUsize,
    limit: usize,
    room: Notify,
}

impl Account {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit, room: Notify::new() })
    }

    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn is_full(&self) -> bool {
        self.used() >= self.limit
    }

    /// Until there is room, which others may take again at once.
    pub async fn room(&self) {
        let room = self.room.notified();
        tokio::pin!(room);
        room.as_mut().enable();
        if self.is_full() {
            room.await;
        }
    }

    fn change(&self, from: usize, to: usize) {
        if to >= from {
            self.used.fetch_add(to - from, SeqCst);
        } else {
            let before = self.used.fetch_sub(from - to, SeqCst);
            if before >= self.limit && before - (from - to) < self.limit {
                self.room.notify_waiters();
            }
        }
    }
}

/// Bytes that are counted in an account until this is dropped.
#[derive(Debug)]
pub struct Held {
    account: Arc<Account>,
    bytes: usize,
}

impl Held {
    pub fn new(account: &Arc<Account>, bytes: usize) -> Self {
        account.change(0, bytes);
        Self { account: account.clone(), bytes }
    }

    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.account.change(self.bytes, bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Leave to collect a large frame, until this is dropped.
pub(crate) type Leave = OwnedSemaphorePermit;

impl Memory {
    /// Leave to collect a frame of `len` bytes, if it can be had at once.
    pub(crate) fn try_large(&self, len: usize) -> Option<Leave> {
        self.large.clone().try_acquire_many_owned(len.min(LARGE) as u32).ok()
    }

    /// Waits, for `patience` at most, for leave to collect a frame of `large` bytes, or for room for any. `Err` = the time
    /// that was waited in vain.
    pub(crate) fn admission(
        self: &Arc<Self>,
        large: Option<usize>,
        patience: Duration,
    ) -> impl Future<Output = Result<Option<Leave>, Duration>> + use<> {
        let memory = self.clone();
        async move {
            let began = Instant::now();
            let wait = async {
                let Some(len) = large else {
                    memory.requests.room().await;
                    return None;
                };
                let _waiting = Waiting::new(&memory.large_waiting);
                // The semaphore is never closed.
                memory.large.clone().acquire_many_owned(len.min(LARGE) as u32).await.ok()
            };
            tokio::time::timeout(patience, wait).await.map_err(|_| began.elapsed())
        }
    }

    pub(crate) fn large_used(&self) -> usize {
        LARGE - self.large.available_permits()
    }

    /// Whether connections wait for what unfinished requests of others hold.
    pub(crate) fn requests_press(&self) -> bool {
        self.requests.is_full() || self.large_waiting.load(Relaxed) > 0
    }

    /// (name, value) of every figure, for the runtime table and metrics.
    pub fn rows(&self) -> [(&'static str, u64); 8] {
        [
            ("requestBytes", self.requests.used() as u64),
            ("requestBytesMax", REQUESTS as u64),
            ("largeFrameBytes", self.large_used() as u64),
            ("largeFrameBytesMax", LARGE as u64),
            ("responseBytes", self.responses.used() as u64),
            ("responseBytesMax", RESPONSES as u64),
            ("memoryRefused", self.refused.load(Relaxed)),
            ("stalledClosed", self.stalled_closed.load(Relaxed)),
        ]
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_told_of_once_it_is_there() {
        let memory = Arc::new(Memory::default());
        let mut first = Held::new(&memory.requests, REQUESTS - 1);
        assert!(!memory.requests.is_full());
        let second = Held::new(&memory.requests, 10);
        assert_eq!((memory.requests.is_full(), memory.requests.used()), (true, REQUESTS + 9));
        let waiting = tokio::spawn(memory.admission(None, BUSY_AFTER));
        tokio::task::yield_now().await;
        first.set(REQUESTS - 5);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(second);
        assert!(matches!(waiting.await.unwrap(), Ok(None)));
        drop(first);
        assert_eq!(memory.requests.used(), 0);
    }

    #[tokio::test]
    async fn large_frames_are_let_in_one_after_the_other() {
        let memory = Arc::new(Memory::default());
        let first = memory.try_large(2 * LARGE).expect("it is alone");
        assert!(memory.try_large(1).is_none());
        let second = tokio::spawn(memory.admission(Some(LARGE / 2), BUSY_AFTER));
        let third = tokio::spawn(memory.admission(Some(LARGE), Duration::from_millis(20)));
        tokio::task::yield_now().await;
        assert!(memory.requests_press());
        drop(first);
        let second = second.await.unwrap().unwrap();
        assert!(second.is_some());
        assert!(third.await.unwrap().unwrap_err() >= Duration::from_millis(20));
        assert!(!memory.requests_press());
    }
}
