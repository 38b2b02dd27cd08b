//! Dispatch: queue entries go from memory to the files of their queues, keys to the index, and the checkpoints follow.
//!
//! Only entries and keys of durable records are written, so the files never point past the log, whatever a crash leaves of either.
//! A full disk is retried (the entries stay in memory, appends wait at a bound); any other error poisons the store.
//! Java: `ReputMessageService`, `FlushConsumeQueueService`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::checkpoint::{Checkpoint, OwnCheckpoint};
use crate::error::IoContext;
use crate::index::Indexed;
use crate::queue::{Entry, Queue};
use crate::store::{Inner, lock};

/// `read`: bytes of the log that the recovery had to read.
pub(crate) fn spawn(inner: Arc<Inner>, checkpoint: Checkpoint, read: u64) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name("store-dispatch".to_string())
        .spawn(move || Dispatcher::new(&inner, checkpoint, read).run())
        .unwrap_or_else(|e| panic!("cannot start the dispatch thread: {e}"))
}

struct Dispatcher<'a> {
    inner: &'a Inner,
    java: Checkpoint,
    last: Instant,
    /// A long recovery is not to be done again if we are killed soon: a checkpoint at once, and more until it is up to here.
    hurry: u64,
    /// Dispatched offset, length of all queue files and the state of the index at the last checkpoint.
    saved: Option<(u64, u64, Indexed)>,
}

/// Bytes of the log that a recovery read, above which that is not to be done again.
const LONG_RECOVERY: u64 = 32 << 20;
const HURRY: Duration = Duration::from_millis(20);
/// How long a clean stop waits for an index that is far behind (it is built anew); the next start goes on with it.
const INDEX_GRACE: Duration = Duration::from_secs(10);

impl<'a> Dispatcher<'a> {
    fn new(inner: &'a Inner, java: Checkpoint, read: u64) -> Self {
        let hurry = if read > LONG_RECOVERY { inner.written.load(Ordering::Acquire) } else { 0 };
        Self { inner, java, last: Instant::now(), hurry, saved: None }
    }

    fn run(&mut self) {
        let inner = self.inner;
        let mut stopping_since = None;
        loop {
            if self.hurry > 0 {
                inner.flush_signal.raise();
                inner.dispatch_signal.wait(HURRY);
            } else {
                inner.dispatch_signal.wait(inner.options.dispatch_interval);
            }
            if inner.is_poisoned() {
                return;
            }
            // The flush thread is joined first: when we stop, durable has reached its end.
            let stopping = inner.is_stopping();
            let all_flushed = inner.durable.load(Ordering::Acquire) == inner.written.load(Ordering::Acquire);
            let store_ms = inner.durable_ms.load(Ordering::Acquire);
            let last = stopping && all_flushed;
            let mut indexed = true;
            let done = write_entries(inner).and_then(|()| {
                indexed = write_index(inner, last)?;
                self.checkpoint(store_ms, last)
            });
            match done {
                Ok(()) if last && indexed => return,
                Ok(()) if last && stopping_since.get_or_insert_with(Instant::now).elapsed() > INDEX_GRACE => {
                    tracing::warn!("the index is not complete; the next start goes on with it");
                    return;
                }
                Ok(()) if !indexed => inner.dispatch_signal.raise(),
                Ok(()) => {}
                Err(Error::DiskFull(why)) if !stopping => drop(inner.met_full(&why)),
                Err(error) => {
                    inner.poison(error.to_string());
                    return;
                }
            }
        }
    }

    fn checkpoint(&mut self, store_ms: i64, now: bool) -> Result<(), Error> {
        let inner = self.inner;
        // No file is removed between listing what is to be synced and syncing it, nor taken out of the count before that
        // is saved.
        let _dispatching = lock(&inner.dispatching);
        let dispatched = inner.dispatched.load(Ordering::Acquire);
        let (indexed, full_ms) = inner.index.as_ref().map_or_else(Default::default, |index| index.indexed());
        let state = (dispatched, inner.files.bytes(), indexed);
        let is_due = now || self.hurry > 0 || self.last.elapsed() >= inner.options.checkpoint_interval;
        if self.saved == Some(state) || !is_due {
            return Ok(());
        }
        if dispatched == 0 && inner.written.load(Ordering::Acquire) > 0 {
            // A Java broker with enableAcceleratedRecovery does not start from a checkpoint with times and without an offset.
            return Ok(());
        }
        let durable = inner.durable.load(Ordering::Acquire);
        inner.files.sync().at("sync", inner.files.dir())?;
        let after = Checkpoint {
            physic_ms: store_ms.max(self.java.physic_ms),
            logics_ms: store_ms.max(self.java.logics_ms),
            index_ms: full_ms.max(self.java.index_ms),
            // What a Java broker in controller mode, or with duplicationEnable, starts to dispatch from.
            confirm: durable as i64,
            logics_offset: dispatched as i64,
            ..self.java
        };
        let root = &inner.options.root;
        let own = OwnCheckpoint { dispatched, durable, queue_bytes: state.1, indexed };
        own.write(inner.disk.as_ref(), root, &inner.options.own_dir(), &self.java, &after)?;
        self.java = after;
        self.saved = Some(state);
        *lock(&inner.saved) = (state.0, state.1);
        self.last = Instant::now();
        if dispatched >= self.hurry {
            self.hurry = 0;
        }
        Ok(())
    }
}

/// A step of the index; `true` = it knows all that is durable.
fn write_index(inner: &Inner, now: bool) -> Result<bool, Error> {
    let Some(index) = &inner.index else { return Ok(true) };
    index.advance(&inner.log, inner.durable.load(Ordering::Acquire), inner.options.index_interval, now)
}

/// Writes the entries of all records below the durable watermark.
pub(crate) fn write_entries(inner: &Inner) -> Result<(), Error> {
    let _dispatching = lock(&inner.dispatching);
    let target = inner.durable.load(Ordering::Acquire);
    let mut queues = std::mem::take(&mut *lock(&inner.dirty));
    // Neighbours on disk are written together.
    queues.sort_unstable_by(|a, b| (&a.topic, a.id).cmp(&(&b.topic, b.id)));
    let mut result = Ok(());
    let mut left = Vec::new();
    let mut entries = Vec::new();
    for queue in queues {
        if result.is_ok() {
            result = write_queue(inner, &queue, target, &mut entries).at("write", inner.files.dir());
        }
        let mut tail = queue.tail();
        tail.listed = !tail.entries.is_empty();
        if tail.listed {
            drop(tail);
            left.push(queue);
        }
    }
    lock(&inner.dirty).append(&mut left);
    result?;
    inner.dispatched.fetch_max(target, Ordering::AcqRel);
    Ok(())
}

fn write_queue(inner: &Inner, queue: &Queue, target: u64, entries: &mut Vec<Entry>) -> std::io::Result<()> {
    entries.clear();
    let from = {
        let tail = queue.tail();
        entries.extend(tail.entries.iter().take_while(|e| e.is_filler() || e.log_end() <= target));
        tail.start
    };
    if entries.is_empty() {
        return Ok(());
    }
    if !queue.retired.load(Ordering::Acquire) {
        inner.files.write(queue, from, entries)?;
    }
    let mut tail = queue.tail();
    tail.entries.drain(..entries.len());
    tail.start += entries.len() as i64;
    if tail.entries.is_empty() && tail.entries.capacity() > 1024 {
        tail.entries.shrink_to(0);
    }
    inner.entries_in_memory.fetch_sub(entries.len() as u64, Ordering::Relaxed);
    inner.stats.dispatched_entries.fetch_add(entries.len() as u64, Ordering::Relaxed);
    Ok(())
}
