//! Flush: what is written becomes durable, and under SYNC_FLUSH visible.
//!
//! One thread. Under SYNC_FLUSH it is self-clocking: while one sync runs, the next group gathers. A failed sync is never
//! tried again, since the kernel may have dropped the pages: the store is poisoned.
//! Java: `FlushRealTimeService`, `GroupCommitService`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

use crate::error::IoContext;
use crate::store::{Inner, lock};
use crate::{Error, QueueRef};

/// Written queue ends that wait for the durable watermark, in log order.
#[derive(Default)]
pub(crate) struct Pending(VecDeque<(QueueRef, i64, u64)>);

impl Pending {
    pub(crate) fn push(&mut self, moved: impl Iterator<Item = (QueueRef, i64, u64)>) {
        self.0.extend(moved);
    }

    fn take(&mut self, durable: u64) -> Vec<(QueueRef, i64)> {
        let n = self.0.iter().take_while(|(_, _, log_end)| *log_end <= durable).count();
        self.0.drain(..n).map(|(queue, end, _)| (queue, end)).collect()
    }
}

pub(crate) fn spawn(inner: Arc<Inner>) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name("store-flush".to_string())
        .spawn(move || run(&inner))
        .unwrap_or_else(|e| panic!("cannot start the flush thread: {e}"))
}

fn run(inner: &Inner) {
    loop {
        inner.flush_signal.wait(inner.options.flush_interval);
        if inner.is_poisoned() {
            return;
        }
        let stopping = inner.is_stopping();
        let store_ms = lock(&inner.head).store_ms;
        let target = inner.written.load(Ordering::Acquire);
        let flushed = flush(inner, target);
        inner.durable_ms.store(store_ms, Ordering::Release);
        if let Err(error) = flushed {
            inner.poison(error.to_string());
            return;
        }
        if let Err(error) = inner.log.prepare(target) {
            // Met again, and answered, by the append that needs the space.
            tracing::warn!(%error, "cannot prepare space for the commit log");
        }
        if stopping && inner.written.load(Ordering::Acquire) == target {
            return;
        }
    }
}

/// Syncs the log up to `target` and publishes it.
pub(crate) fn flush(inner: &Inner, target: u64) -> Result<(), Error> {
    let from = inner.durable.load(Ordering::Acquire);
    if target <= from {
        return Ok(());
    }
    let began = Instant::now();
    for segment in inner.log.segments().iter().filter(|s| s.end() > from && s.base < target) {
        segment.file.sync_data().at("sync", &segment.path)?;
    }
    inner.stats.flushes.fetch_add(1, Ordering::Relaxed);
    let took = began.elapsed().as_micros() as u64;
    inner.stats.flush_max_us.fetch_max(took, Ordering::Relaxed);
    // Shown first: who learns from the watermark that a message is stored finds it in its queue.
    let moved = lock(&inner.pending).take(target);
    inner.publish(moved.into_iter());
    inner.durable.store(target, Ordering::Release);
    inner.tell_durable();
    Ok(())
}
