//! The store as a whole: opening, closing, the table of queues, the watermarks, what stops writes.
//! Java: `DefaultMessageStore`.

use std::collections::HashMap;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cometmq_base::Clock;

use crate::append::Head;
use crate::checkpoint::{Checkpoint, OwnCheckpoint};
use crate::disk::{Disk, Open};
use crate::error::IoContext;
use crate::flush::Pending;
use crate::index::Index;
use crate::log::Log;
use crate::queue::{Queue, QueueRef};
use crate::queue_ext::QueueExt;
use crate::queue_files::QueueFiles;
use crate::retire::Deleted;
use crate::signal::Signal;
use crate::space::Full;
use crate::stats::StoreStats;
use crate::tail::Tail;
use crate::{Error, FlushMode, Options, dispatch, expire, flush, recover, refuse};

/// A lock whose holder panicked is still a lock: the data behind it is checked where it matters (see `append`).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is told when something becomes visible. Called from whatever thread appends or flushes; must not block.
pub trait Wake: Send + Sync + 'static {
    /// These queues were armed for this shard ([`QueueRef::arm`]) and have new messages.
    fn queues(&self, queues: Vec<QueueRef>);
    /// The durable watermark moved. Only under SYNC_FLUSH.
    fn durable(&self);
}

pub struct Store(pub(crate) Arc<Inner>, Mutex<Threads>);

#[derive(Default)]
struct Threads {
    running: Vec<JoinHandle<()>>,
    lock: Option<Box<dyn Send + Sync>>,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) tail: Tail,
    pub(crate) files: QueueFiles,
    pub(crate) index: Option<Index>,
    pub(crate) ext: QueueExt,
    pub(crate) head: Mutex<Head>,
    pub(crate) pending: Mutex<Pending>,
    pub(crate) written: AtomicU64,
    pub(crate) durable: AtomicU64,
    /// Store time up to which records are durable, for Java's checkpoint.
    pub(crate) durable_ms: AtomicI64,
    /// Queue entries of all records below are in the queue files.
    pub(crate) dispatched: AtomicU64,
    /// Entries in memory that are in no file yet.
    pub(crate) entries_in_memory: AtomicU64,
    /// Queues with entries to write; guarded by its own lock, taken after a queue's tail.
    pub(crate) dirty: Mutex<Vec<Arc<Queue>>>,
    /// Held while queue entries are written to files, while files are synced, and while they are removed.
    pub(crate) dispatching: Mutex<()>,
    /// Held while queues are loaded, and while a topic is deleted.
    pub(crate) deleted: Mutex<Deleted>,
    queues: RwLock<HashMap<Arc<str>, HashMap<i32, QueueRef>>>,
    wakers: OnceLock<Vec<Arc<dyn Wake>>>,
    pub(crate) flush_signal: Signal,
    pub(crate) dispatch_signal: Signal,
    durable_signal: Signal,
    stopping: AtomicBool,
    poison: OnceLock<String>,
    pub(crate) full: Mutex<Full>,
    /// Of our checkpoint on disk: dispatched offset, and bytes of all queue files.
    pub(crate) saved: Mutex<(u64, u64)>,
    pub(crate) clean_signal: Signal,
    /// Runs that are left of an order to delete expired files.
    pub(crate) ordered_runs: AtomicU32,
    pub(crate) stats: StoreStats,
}

// The append runs under `catch_unwind`; a panic there poisons the store, so broken invariants are never used.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

impl Store {
    /// Opens or creates the store in `options.root`, recovers it and starts its threads.
    pub fn open(options: Options, disk: Arc<dyn Disk>, clock: Clock) -> Result<Self, Error> {
        let root = options.root.clone();
        let own = options.own_dir();
        refuse::check(disk.as_ref(), &root)?;
        disk.create_dirs(&root).at("create", &root)?;
        let lock_path = root.join("lock");
        let held = disk.lock(&lock_path).at("lock", &lock_path)?;
        let held = held.ok_or(Error::Locked { path: lock_path })?;
        disk.create_dirs(&own).at("create", &own)?;

        let abort = root.join("abort");
        let crashed = disk.open(&abort, Open::Read).is_ok();
        let log = Log::open(disk.clone(), options.log_dirs(), &options.read_only_log_dirs, options.segment_bytes)?;
        let files = QueueFiles::open(disk.clone(), &root, &own, options.queue_file_bytes)?;
        let ext = QueueExt::open(disk.clone(), &root)?;
        let mut checkpoint = Checkpoint::read(disk.as_ref(), &root)?;
        let deleted = Deleted::read(disk.as_ref(), &own, log.start())?;
        let own = OwnCheckpoint::read(disk.as_ref(), &own, &checkpoint)?;
        let index = match options.index {
            true => {
                let trusted = (crashed && own.is_none()).then_some(checkpoint.index_ms);
                let full_ms = if options.rebuild { 0 } else { checkpoint.index_ms };
                Some(Index::open(disk.clone(), clock.clone(), &options, trusted, full_ms, crashed)?)
            }
            false => None,
        };
        let marker = disk.open(&abort, Open::Create).at("create", &abort)?;
        marker.set_len(0).at("set the length of", &abort)?;
        marker.write_all_at(std::process::id().to_string().as_bytes(), 0).at("write", &abort)?;
        disk.sync_dir(&root).at("sync", &root)?;

        let tail = Tail::new(options.tail_bytes);
        let inner = Arc::new(Inner {
            options,
            disk,
            clock,
            log,
            tail,
            files,
            index,
            ext,
            head: Mutex::default(),
            pending: Mutex::default(),
            written: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            durable_ms: AtomicI64::new(0),
            dispatched: AtomicU64::new(0),
            entries_in_memory: AtomicU64::new(0),
            dirty: Mutex::default(),
            dispatching: Mutex::default(),
            deleted: Mutex::new(deleted),
            queues: RwLock::default(),
            wakers: OnceLock::new(),
            flush_signal: Signal::default(),
            dispatch_signal: Signal::default(),
            durable_signal: Signal::default(),
            stopping: AtomicBool::new(false),
            poison: OnceLock::new(),
            full: Mutex::default(),
            saved: Mutex::new(own.as_ref().map_or((0, 0), |o| (o.dispatched, o.queue_bytes))),
            clean_signal: Signal::default(),
            ordered_runs: AtomicU32::new(0),
            stats: StoreStats::default(),
        });
        let read = recover::run(&inner, crashed, own.as_ref(), &checkpoint)?;
        if inner.options.rebuild {
            let (ms, end) = (inner.durable_ms.load(Ordering::Acquire), inner.written.load(Ordering::Acquire));
            checkpoint = checkpoint.at_most(ms, end);
        }
        if let Some(index) = &inner.index {
            let known = own.map(|own| own.indexed).unwrap_or_default();
            index.start(&inner.log, inner.written.load(Ordering::Acquire), known)?;
        }
        let threads = Threads {
            running: vec![
                expire::spawn(inner.clone()),
                flush::spawn(inner.clone()),
                dispatch::spawn(inner.clone(), checkpoint, read),
            ],
            lock: Some(held),
        };
        Ok(Self(inner, Mutex::new(threads)))
    }

    /// Who wakes shard `n` is at index `n`; at most 64. Called once.
    pub fn set_wakers(&self, wakers: Vec<Arc<dyn Wake>>) {
        assert!(wakers.len() <= 64, "a queue has one bit a shard");
        assert!(self.0.wakers.set(wakers).is_ok(), "wakers are set once");
    }

    /// The queue `id` of `topic`, loaded from its files when it is asked for the first time.
    pub fn queue(&self, topic: &str, id: i32) -> Result<QueueRef, Error> {
        self.0.queue(topic, id)
    }

    /// Log offset behind the last written byte.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    pub fn durable(&self) -> u64 {
        self.0.durable.load(Ordering::Acquire)
    }

    pub fn dispatched(&self) -> u64 {
        self.0.dispatched.load(Ordering::Acquire)
    }

    /// First byte of the log that is still there.
    pub fn log_start(&self) -> u64 {
        self.0.log.start()
    }

    /// The first of the log's directories.
    pub fn log_dir(&self) -> &Path {
        self.0.log.dir()
    }

    pub fn flush_mode(&self) -> FlushMode {
        self.0.options.flush
    }

    pub fn stats(&self) -> &StoreStats {
        &self.0.stats
    }

    /// Why writes are refused, if they are.
    pub fn write_refusal(&self) -> Option<Error> {
        self.0.refusal()
    }

    /// Why nothing becomes durable any more, if that is so.
    pub fn poison(&self) -> Option<String> {
        self.0.poison.get().cloned()
    }

    /// Blocks until the log is durable up to `offset`. `false` = not within `timeout`, or never again.
    pub fn wait_durable(&self, offset: u64, timeout: Duration) -> bool {
        self.0.wait_durable(offset, timeout)
    }

    /// Flushes everything, writes the checkpoints, removes the mark of an unclean stop. Later appends fail.
    pub fn close(&self) -> Result<(), Error> {
        self.stop_threads(true);
        let clean =
            self.0.poison.get().is_none() && self.durable() == self.written() && self.dispatched() == self.written();
        let root = &self.0.options.root;
        if clean {
            let abort = root.join("abort");
            self.0.disk.remove(&abort).at("remove", &abort)?;
            self.0.disk.sync_dir(root).at("sync", root)?;
        }
        lock(&self.1).lock.take();
        if clean {
            Ok(())
        } else {
            Err(Error::Poisoned(self.0.poison.get().cloned().unwrap_or_else(|| "not all was flushed".to_string())))
        }
    }

    fn stop_threads(&self, finish: bool) {
        self.0.stopping.store(true, Ordering::SeqCst);
        if !finish {
            // As after a crash: the threads must not bring anything to an end.
            let _ = self.0.poison.set("abandoned".to_string());
        }
        // The append lock once: whoever appends now is done, later ones see `stopping`.
        drop(lock(&self.0.head));
        self.0.clean_signal.raise();
        self.0.flush_signal.raise();
        let running = std::mem::take(&mut lock(&self.1).running);
        for thread in running {
            self.0.dispatch_signal.raise();
            if thread.join().is_err() {
                tracing::error!("a store thread panicked");
            }
        }
        if let Some(index) = &self.0.index {
            index.close();
        }
    }
}

impl Drop for Store {
    /// Without [`Store::close`] this is a crash: nothing is flushed, the next start recovers.
    fn drop(&mut self) {
        self.stop_threads(false);
    }
}

impl Inner {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// No write is accepted any more, nothing not yet acknowledged will be.
    pub(crate) fn poison(&self, cause: String) {
        tracing::error!(cause, "the store is poisoned: it takes no more writes until it is restarted");
        let _ = self.poison.set(cause);
        self.durable_signal.notify();
        self.each_waker(|w| w.durable());
    }

    pub(crate) fn refusal(&self) -> Option<Error> {
        if let Some(cause) = self.poison.get() {
            return Some(Error::Poisoned(cause.clone()));
        }
        if self.is_stopping() {
            return Some(Error::Closed);
        }
        lock(&self.full).why().map(|why| Error::DiskFull(why.clone()))
    }

    pub(crate) fn wait_durable(&self, offset: u64, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let signal = &self.durable_signal;
        let mut guard = lock(&signal.raised);
        while self.durable.load(Ordering::Acquire) < offset {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.poison.get().is_some() {
                return false;
            }
            self.flush_signal.raise();
            let wait = left.min(Duration::from_millis(50));
            (guard, _) = signal.condvar.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    pub(crate) fn queue(&self, topic: &str, id: i32) -> Result<QueueRef, Error> {
        if let Some(queue) = self.find_queue(topic, id) {
            return Ok(queue);
        }
        // Loaded outside of the table's lock, but not while the topic is being deleted.
        let _deleted = lock(&self.deleted);
        let (log_start, log_end) = (self.log.start(), self.written.load(Ordering::Acquire));
        let (min, next) = self.files.range(topic, id, log_start, log_end)?;
        let mut table = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = table.get(topic).and_then(|queues| queues.get(&id)) {
            return Ok(queue.clone());
        }
        let name = table.get_key_value(topic).map_or_else(|| Arc::from(topic), |(name, _)| name.clone());
        let queue = QueueRef(Arc::new(Queue::new(name.clone(), id, min, next)));
        table.entry(name).or_default().insert(id, queue.clone());
        drop(table);
        if self.log.start() != log_start {
            // Files were deleted meanwhile, and whoever did it did not see this queue.
            self.raise_min(&queue);
        }
        Ok(queue)
    }

    /// The queue if it was loaded already.
    pub(crate) fn find_queue(&self, topic: &str, id: i32) -> Option<QueueRef> {
        let table = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        table.get(topic)?.get(&id).cloned()
    }

    pub(crate) fn loaded_queues(&self) -> Vec<QueueRef> {
        let table = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        table.values().flat_map(|queues| queues.values().cloned()).collect()
    }

    /// Takes one queue out of the table.
    pub(crate) fn take_queue(&self, queue: &QueueRef) {
        let mut table = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(queues) = table.get_mut(queue.topic()) {
            queues.remove(&queue.id());
        }
    }

    /// Takes the queues of a topic out of the table.
    pub(crate) fn take_queues(&self, topic: &str) -> Vec<QueueRef> {
        let mut table = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(topic).map_or(Vec::new(), |queues| queues.into_values().collect())
    }

    /// Forgets all queues (recovery starts over).
    pub(crate) fn forget_queues(&self) {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).clear();
        lock(&self.dirty).clear();
        self.entries_in_memory.store(0, Ordering::Relaxed);
    }

    fn each_waker(&self, tell: impl Fn(&dyn Wake)) {
        for waker in self.wakers.get().into_iter().flatten() {
            tell(waker.as_ref());
        }
    }

    /// Moves the visible end of queues and wakes who waits for them.
    pub(crate) fn publish(&self, moved: impl Iterator<Item = (QueueRef, i64)>) {
        let mut wakes: Vec<Vec<QueueRef>> = Vec::new();
        for (queue, end) in moved {
            let mut mask = queue.0.publish(end);
            while mask != 0 {
                let shard = mask.trailing_zeros() as usize;
                mask &= mask - 1;
                if wakes.len() <= shard {
                    wakes.resize_with(shard + 1, Vec::new);
                }
                wakes[shard].push(queue.clone());
            }
        }
        if let Some(wakers) = self.wakers.get() {
            for (waker, queues) in wakers.iter().zip(wakes) {
                if !queues.is_empty() {
                    waker.queues(queues);
                }
            }
        }
    }

    pub(crate) fn tell_durable(&self) {
        self.durable_signal.notify();
        if self.options.flush == FlushMode::Sync {
            self.each_waker(|w| w.durable());
        }
    }
}
