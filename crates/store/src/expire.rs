//! Retention: the oldest files of the log are deleted, and with them what points into them.
//!
//! | when | deleted |
//! |---|---|
//! | an hour of `deleteWhen`, an order (329), or more than `diskMaxUsedSpaceRatio` percent used | files not written for `fileReservedTime` |
//! | more than `diskSpaceCleanForciblyRatio` percent used and `cleanFileForciblyEnable` | the oldest, one by one, until that is over |
//!
//! Never the last file, nor one that our checkpoint does not cover yet. At most `deleteFileBatchMax` in a run, each
//! `cleanResourceInterval`.
//! Order    unlink the oldest, sync the directory, only then the next: a crash leaves no gap. Then the log begins later, then
//!          queues do; readers that were faster step over what is gone. Queue files last (`queue_files/expired.rs`)
//! Crash    what is left of a deletion is done again: after a start, queue files are looked through once
//! Threads  `store-clean`; it also looks at the disk's space each second
//! Java     `DefaultMessageStore.CleanCommitLogService`, `ConsumeQueueStore.CleanConsumeQueueService`

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::IoContext;
use crate::log::Segment;
use crate::queue::QueueRef;
use crate::space::{Room, figures};
use crate::store::{Inner, lock};
use crate::{Error, Store};

/// Runs that one order to delete lasts for. Java: `MAX_MANUAL_DELETE_FILE_TIMES`.
const ORDERED_RUNS: u32 = 20;
/// How long queue files wait for the checkpoint that does not count them.
const CHECKPOINT_MAX: Duration = Duration::from_secs(10);

impl Store {
    /// Deletes files that are older than `fileReservedTime`, at whatever hour: a run now and 19 more. Returns at once.
    pub fn delete_expired(&self) {
        self.0.ordered_runs.store(ORDERED_RUNS, Ordering::Release);
        self.0.clean_signal.raise();
    }

    /// Removes queues whose messages are all gone, except where `keep` says otherwise; returns how many. A queue of that name
    /// starts at offset 0 again. Java: `ConsumeQueueStore.cleanExpired`.
    pub fn clean_expired_queues(&self, keep: impl Fn(&str, i32) -> bool) -> Result<usize, Error> {
        let mut removed = 0;
        for (topic, id) in self.0.files.queues()? {
            if !keep(&topic, id) && self.0.remove_if_expired(&topic, id, &keep)? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

pub(crate) fn spawn(inner: Arc<Inner>) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name("store-clean".to_string())
        .spawn(move || Cleaner { inner: &inner, began: Instant::now(), last: None, cleaned: 0, said: false }.run())
        .unwrap_or_else(|e| panic!("cannot start the cleaning thread: {e}"))
}

struct Cleaner<'a> {
    inner: &'a Inner,
    began: Instant,
    last: Option<Instant>,
    /// Start of the log when queue files were last looked through.
    cleaned: u64,
    /// Whether the log says already that nothing can be deleted.
    said: bool,
}

impl Cleaner<'_> {
    fn run(&mut self) {
        let (inner, retention) = (self.inner, &self.inner.options.retention);
        while !inner.is_stopping() && !inner.is_poisoned() {
            let rooms = self.look();
            let is_due = self.has_begun() && self.last.is_none_or(|at| at.elapsed() >= retention.interval);
            let ordered = inner.ordered_runs.load(Ordering::Acquire);
            if is_due || ordered == ORDERED_RUNS {
                self.last = Some(Instant::now());
                if let Err(error) = self.clean(&rooms, ordered > 0) {
                    tracing::error!(%error, "cannot delete expired files; trying again");
                }
                inner.stats.clean_runs.fetch_add(1, Ordering::Release);
                if ordered > 0 {
                    let _ =
                        inner.ordered_runs.compare_exchange(ordered, ordered - 1, Ordering::AcqRel, Ordering::Relaxed);
                }
            }
            inner.clean_signal.wait(retention.space_interval);
        }
    }

    fn has_begun(&self) -> bool {
        self.began.elapsed() >= self.inner.options.retention.first_after
    }

    fn look(&self) -> Vec<Room> {
        let rooms = self.inner.rooms();
        self.inner.judge(&rooms, self.has_begun());
        rooms
    }

    /// Waits between two steps. The disk is looked at meanwhile: writes are not refused longer than they have to be.
    fn rest(&self, pause: Duration) {
        self.inner.clean_signal.wait(pause);
        self.look();
    }

    fn clean(&mut self, rooms: &[Room], ordered: bool) -> Result<(), Error> {
        let (inner, retention) = (self.inner, &self.inner.options.retention);
        let hour = (retention.hour_of)(inner.clock.now_ms());
        let over =
            rooms.iter().find(|(_, space)| space.used_percent() > retention.used_max.min(retention.used_forcibly));
        if ordered || over.is_some() || retention.hours.contains(&hour) {
            let deleted = self.delete_log_files()?;
            let is_stuck = over.is_some() && deleted == 0;
            if let (Some(room), false, true) = (over, self.said, is_stuck) {
                tracing::error!(
                    space = figures(room),
                    diskMaxUsedSpaceRatio = retention.used_max,
                    "the disk is filling up, and no file of the commit log may be deleted"
                );
            }
            self.said = is_stuck;
        }
        if inner.log.start() > self.cleaned {
            self.cleaned = inner.log.start();
            self.delete_queue_files()?;
            if let Some(index) = &inner.index {
                index.drop_before(inner.log.start())?;
            }
        }
        Ok(())
    }

    fn delete_log_files(&self) -> Result<usize, Error> {
        let (inner, retention) = (self.inner, &self.inner.options.retention);
        let mut deleted = 0;
        while deleted < retention.batch_max.max(1) && !inner.is_stopping() {
            let Some(segment) = inner.first_complete() else { break };
            let modified = segment.file.modified_ms().at("stat", &segment.path)?;
            let age = u64::try_from(inner.clock.now_ms().saturating_sub(modified)).unwrap_or(0);
            let is_old = age >= retention.reserved.as_millis() as u64;
            let reason = match self.is_forced() {
                _ if is_old => format!("older than fileReservedTime={} h", retention.reserved.as_secs() / 3600),
                Some(room) => {
                    format!("{}, over diskSpaceCleanForciblyRatio={} %", figures(&room), retention.used_forcibly)
                }
                None => break,
            };
            if deleted > 0 {
                self.rest(retention.pause);
            }
            inner.delete_first(&segment)?;
            let (file, hours) = (segment.path.display(), age / 3_600_000);
            tracing::info!(%file, reason, age_hours = hours, log_start = inner.log.start(), "commit-log file deleted");
            inner.stats.log_files_deleted.fetch_add(1, Ordering::Relaxed);
            deleted += 1;
        }
        Ok(deleted)
    }

    /// The disk that is so full that files go whatever their age.
    fn is_forced(&self) -> Option<Room> {
        let retention = &self.inner.options.retention;
        let is_over = |(_, space): &Room| space.used_percent() > retention.used_forcibly.min(retention.used_full);
        self.look().into_iter().find(is_over).filter(|_| retention.forcibly)
    }

    /// What is derived from the log follows its start.
    fn delete_queue_files(&self) -> Result<(), Error> {
        let inner = self.inner;
        let mut doomed: Vec<PathBuf> = Vec::new();
        for (topic, id) in inner.files.queues()? {
            match inner.doom_files(&topic, id) {
                Ok(paths) => doomed.extend(paths),
                // The topic was deleted meanwhile.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if doomed.is_empty() {
            return Ok(());
        }
        self.wait_for_checkpoint();
        for path in doomed.iter().take_while(|_| !inner.is_stopping()) {
            let removed = {
                let _dispatching = lock(&inner.dispatching);
                inner.files.remove_doomed(path)?
            };
            if removed {
                inner.stats.queue_files_deleted.fetch_add(1, Ordering::Relaxed);
                let log_start = inner.log.start();
                tracing::info!(file = %path.display(), log_start, "consume-queue file deleted: its messages are gone");
                self.rest(inner.options.retention.queue_pause);
            }
        }
        Ok(())
    }

    /// Until the checkpoint on disk counts no file that is to be removed. If that takes too long (the disk may be full), the
    /// files go all the same: after a crash the log is then read as a whole.
    fn wait_for_checkpoint(&self) {
        let (began, inner) = (Instant::now(), self.inner);
        while lock(&inner.saved).1 > inner.files.bytes() && began.elapsed() < CHECKPOINT_MAX && !inner.is_stopping() {
            self.rest(Duration::from_millis(10));
        }
    }
}

impl Inner {
    /// The first file of the log if it may be deleted: it is not the last, and our checkpoint says that all of it is in the
    /// queue files.
    fn first_complete(&self) -> Option<Arc<Segment>> {
        let segments = self.log.segments();
        let first = segments.first().filter(|_| segments.len() > 1)?;
        (first.end() <= lock(&self.saved).0).then(|| first.clone())
    }

    /// Deletes the first file of the log. A failed sync poisons the store: with one more deletion there could be a gap.
    fn delete_first(&self, segment: &Segment) -> Result<(), Error> {
        self.disk.remove(&segment.path).at("remove", &segment.path)?;
        let dir = segment.path.parent().unwrap_or(self.log.dir());
        if let Err(error) = self.disk.sync_dir(dir).at("sync", dir) {
            self.poison(error.to_string());
            return Err(error);
        }
        self.log.drop_first(segment.base);
        for queue in self.loaded_queues() {
            self.raise_min(&queue);
        }
        Ok(())
    }

    /// Moves the first offset of a queue to its first message that the log still has.
    pub(crate) fn raise_min(&self, queue: &QueueRef) {
        // What is in memory only was appended later than all that was dispatched.
        let (min, in_memory) = (queue.min(), queue.0.tail().start);
        if min >= in_memory || queue.0.retired.load(Ordering::Acquire) {
            return;
        }
        match self.files.first_live(queue.topic(), queue.id(), min..in_memory, self.log.start()) {
            Ok(live) => {
                queue.0.min.fetch_max(live, Ordering::AcqRel);
            }
            Err(error) => {
                let (topic, id) = (queue.topic(), queue.id());
                tracing::error!(%topic, id, %error, "cannot read where a queue begins now; reads step over what is gone");
            }
        }
    }

    fn doom_files(&self, topic: &str, id: i32) -> Result<Vec<PathBuf>, Error> {
        if !self.files.has_many(topic, id)? {
            return Ok(Vec::new());
        }
        let min = match self.find_queue(topic, id) {
            Some(queue) => queue.min(),
            None => self.files.range(topic, id, self.log.start(), self.written.load(Ordering::Acquire))?.0,
        };
        // No checkpoint is written between listing the files and taking them out of the count.
        let _dispatching = lock(&self.dispatching);
        let paths = self.files.expired(topic, id, min)?;
        self.files.doom(&paths)?;
        Ok(paths)
    }

    fn remove_if_expired(&self, topic: &str, id: i32, keep: &dyn Fn(&str, i32) -> bool) -> Result<bool, Error> {
        let queue = self.queue(topic, id)?;
        // No queue is loaded, and no message appended, between looking at this one and retiring it.
        let _deleted = lock(&self.deleted);
        {
            let _head = lock(&self.head);
            let next = queue.0.next.load(Ordering::Relaxed);
            if next == 0 || queue.min() < next || keep(topic, id) || queue.0.retired.load(Ordering::Acquire) {
                return Ok(false);
            }
            self.take_queue(&queue);
            queue.0.retired.store(true, Ordering::Release);
        }
        let _dispatching = lock(&self.dispatching);
        self.files.delete_queue(topic, id)?;
        tracing::info!(topic, id, log_start = self.log.start(), "consume queue deleted: all its messages are gone");
        Ok(true)
    }
}
