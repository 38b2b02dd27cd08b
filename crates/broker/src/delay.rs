//! Delayed messages: kept in `SCHEDULE_TOPIC_XXXX`, one queue a delay level, and put into their own topic when due.
//!
//! Disk     `config/delayOffset.json` (Java's): how far each level is delivered; written each 10 s and at a clean stop.
//!          `comet/delay`, rewritten with each delivery: what makes a `kill -9` deliver nothing twice
//! Order    deliver (append) → note the progress. A crash in between delivers those messages once more
//! Threads  one thread, `delay`; it sleeps until the next message is due or a new one arrives
//! Java     `ScheduleMessageService`

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cometmq_store::disk::{Disk, File, Open};
use cometmq_store::{Batch, QueueRef, Store, Wake};
use cometmq_wire::body::{DataVersion, DelayOffsetTable};
use cometmq_wire::record::{Draft, Record, body_crc};
use cometmq_wire::{json, names, properties};

use crate::broker::Broker;
use crate::json_file::JsonFile;

/// Messages, and bytes, that one delivery appends together.
const BATCH_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 1 << 20;
const SAVE_EVERY: Duration = Duration::from_secs(10);
/// After a failed delivery, and at the longest between two looks.
const RETRY: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(3600);
const MAGIC: &[u8; 8] = b"cometdly";

/// The table of levels and how far each is.
pub(crate) struct Delays {
    /// Milliseconds, level 1 first. Java: `messageDelayLevel`.
    levels_ms: Vec<i64>,
    /// Next queue offset of each level.
    progress: Mutex<Vec<i64>>,
    json: JsonFile,
    own: Arc<dyn File>,
}

/// Wakes the delivery thread.
#[derive(Clone)]
pub(crate) struct DelayWake(SyncSender<()>);

impl Wake for DelayWake {
    fn queues(&self, _queues: Vec<QueueRef>) {
        // Full: it is awake already.
        let _ = self.0.try_send(());
    }

    fn durable(&self) {}
}

pub(crate) fn wake() -> (DelayWake, Receiver<()>) {
    let (tx, rx) = sync_channel(1);
    (DelayWake(tx), rx)
}

impl Delays {
    pub(crate) fn load(disk: Arc<dyn Disk>, root: &Path, levels_ms: Vec<i64>, store: &Store) -> io::Result<Self> {
        let json = JsonFile::new(disk.clone(), root, "delayOffset.json");
        let table = json.load::<DelayOffsetTable>()?.unwrap_or_default();
        let path: PathBuf = root.join("comet").join("delay");
        let own = disk.open(&path, Open::Create)?;
        let noted = read_own(own.as_ref())?;
        let mut progress = Vec::with_capacity(levels_ms.len());
        for level in 1..=levels_ms.len() {
            let end = store.queue(names::SCHEDULE_TOPIC, level as i32 - 1).map_err(io::Error::other)?.end();
            let saved = table.offset_table.get(&(level as i32)).copied().unwrap_or(0);
            let ours = noted.get(level - 1).copied().unwrap_or(0);
            // Ours is newer after a crash; past the end of its queue it belongs to another store.
            progress.push(if ours <= end { saved.max(ours) } else { saved }.min(end));
        }
        Ok(Self { levels_ms, progress: Mutex::new(progress), json, own })
    }

    pub(crate) fn level_count(&self) -> i32 {
        self.levels_ms.len() as i32
    }

    /// A level above the highest means the highest.
    pub(crate) fn clamp(&self, level: i32) -> i32 {
        level.min(self.level_count())
    }

    pub(crate) fn delay(&self, level: i32) -> Duration {
        let index = usize::try_from(level - 1).unwrap_or(0).min(self.levels_ms.len().saturating_sub(1));
        Duration::from_millis(self.levels_ms.get(index).copied().unwrap_or(0).unsigned_abs())
    }

    fn next(&self, level: usize) -> i64 {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)[level]
    }

    fn note(&self, level: usize, next: i64) -> io::Result<()> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress[level] = next;
        self.own.write_all_at(&own_bytes(&progress), 0)
    }

    pub(crate) fn save(&self, now_ms: i64) -> io::Result<()> {
        let offsets = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut data_version = DataVersion::default();
        data_version.next(now_ms, 0);
        let offset_table = (1..).zip(offsets).filter(|(_, n)| *n > 0).collect();
        self.json.write(&json::to_pretty(&DelayOffsetTable { data_version, offset_table }))
    }
}

fn own_bytes(progress: &[i64]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    progress.iter().for_each(|n| bytes.extend_from_slice(&n.to_be_bytes()));
    bytes.extend_from_slice(&body_crc(&bytes).to_be_bytes());
    bytes
}

/// Empty when there is nothing, or nothing whole.
fn read_own(file: &dyn File) -> io::Result<Vec<i64>> {
    let mut bytes = vec![0; 4096];
    let n = file.read_at(&mut bytes, 0, true)?;
    bytes.truncate(n);
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else { return Ok(Vec::new()) };
    if u32::from_be_bytes(*crc) != body_crc(body) {
        return Ok(Vec::new());
    }
    let numbers = body.strip_prefix(MAGIC).unwrap_or_default().as_chunks::<8>().0;
    Ok(numbers.iter().map(|b| i64::from_be_bytes(*b)).collect())
}

/// The delivery thread.
pub(crate) struct Delivery {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    wake: DelayWake,
}

impl Delivery {
    /// `shard` is the bit by which the thread asks the store for wake-ups.
    pub(crate) fn start(broker: Arc<Broker>, shard: usize, wake: DelayWake, woken: Receiver<()>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let run = Run { broker, shard, woken, stop: stop.clone(), saved: Instant::now(), is_failing: false };
        let thread = std::thread::Builder::new().name("delay".to_string()).spawn(move || run.run())?;
        Ok(Self { stop, thread, wake })
    }

    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.wake.0.try_send(());
        if self.thread.join().is_err() {
            tracing::error!("the delay thread panicked");
        }
    }
}

struct Run {
    broker: Arc<Broker>,
    shard: usize,
    woken: Receiver<()>,
    stop: Arc<AtomicBool>,
    saved: Instant,
    is_failing: bool,
}

impl Run {
    fn run(mut self) {
        let mut dirty = false;
        while !self.stop.load(Ordering::SeqCst) {
            let mut wait = IDLE;
            for level in 0..self.broker.delays.levels_ms.len() {
                match self.deliver(level, &mut dirty) {
                    Ok(next) => {
                        self.is_failing = false;
                        wait = wait.min(next.unwrap_or(IDLE));
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut self.is_failing, true) {
                            tracing::error!(level = level + 1, %error, "delayed messages cannot be delivered; trying again each second");
                        }
                        wait = wait.min(RETRY);
                    }
                }
            }
            if dirty && self.saved.elapsed() >= SAVE_EVERY {
                dirty = !self.save();
            }
            let wait = if dirty { wait.min(SAVE_EVERY) } else { wait };
            if self.woken.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
        self.save();
    }

    fn save(&mut self) -> bool {
        self.saved = Instant::now();
        let saved = self.broker.delays.save(self.broker.clock.now_ms());
        if let Err(error) = &saved {
            tracing::error!(%error, "cannot write delayOffset.json");
        }
        saved.is_ok()
    }

    /// Delivers what is due of a level; returns how long until the next is, if there is one.
    fn deliver(&self, level: usize, dirty: &mut bool) -> Result<Option<Duration>, cometmq_store::Error> {
        let (store, delays) = (&self.broker.store, &self.broker.delays);
        let queue = store.queue(names::SCHEDULE_TOPIC, level as i32)?;
        loop {
            queue.arm(self.shard);
            let mut next = delays.next(level).max(queue.min());
            let mut batch = Batch::default();
            let mut bytes = 0;
            let mut until_due = None;
            while next < queue.end() && batch.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
                let Some(entry) = store.entry(&queue, next)? else {
                    next += 1;
                    continue;
                };
                let now = self.broker.clock.now_ms();
                // A clock that was set back must not hold a message longer than its level.
                let due = entry.tags_code.min(now + delays.levels_ms[level]);
                if due > now {
                    until_due = Some(Duration::from_millis((due - now) as u64));
                    break;
                }
                if let Some(raw) = store.record_at(entry.log_offset)? {
                    bytes += raw.len();
                    self.restore(&raw, &mut batch)?;
                }
                next += 1;
            }
            if next == delays.next(level) {
                return Ok(until_due);
            }
            store.append(&mut batch)?;
            *dirty = true;
            if let Err(error) = delays.note(level, next) {
                tracing::warn!(%error, "cannot note how far delayed messages are delivered; a crash may repeat some");
            }
            if self.stop.load(Ordering::SeqCst) {
                return Ok(None);
            }
        }
    }

    /// Adds the message that a record of the delay topic stands for.
    fn restore(&self, raw: &[u8], batch: &mut Batch) -> Result<(), cometmq_store::Error> {
        let record = Record::parse(raw)?;
        let topic = record.property(properties::REAL_TOPIC);
        let queue_id = record.property(properties::REAL_QID).and_then(|q| q.parse().ok());
        let (Some(topic), Some(queue_id)) = (topic, queue_id) else {
            tracing::error!(
                offset = record.log_offset(),
                "a delayed message does not say where it belongs; left where it is"
            );
            return Ok(());
        };
        let queue = self.broker.store.queue(topic, queue_id)?;
        let draft = Draft {
            topic,
            queue_id,
            flag: record.flag(),
            sys_flag: record.sys_flag(),
            born_ms: record.born_ms(),
            born_host: record.born_host(),
            store_host: record.store_host(),
            reconsume_times: record.reconsume_times(),
            prepared_offset: 0,
            body: record.body(),
            properties: record.properties(),
        };
        batch.push(&draft, &queue)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cometmq_store::disk::Faulty;

    #[test]
    fn our_own_note_is_read_whole_or_not_at_all() {
        let disk = Faulty::healthy();
        disk.create_dirs(Path::new("/s")).unwrap();
        let file = disk.open(Path::new("/s/delay"), Open::Create).unwrap();
        assert!(read_own(file.as_ref()).unwrap().is_empty());
        file.write_all_at(&own_bytes(&[3, 0, 7]), 0).unwrap();
        assert_eq!(read_own(file.as_ref()).unwrap(), [3, 0, 7]);
        file.write_all_at(&[9], 10).unwrap();
        assert!(read_own(file.as_ref()).unwrap().is_empty());
    }
}
