//! What the broker tells the store. Names in comments are Java's keys.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushMode {
    /// Answer once written to the page cache; flush each `flush_interval`.
    Async,
    /// Answer, and show to consumers, only what is flushed.
    Sync,
}

#[derive(Debug, Clone)]
pub struct Options {
    /// `storePathRootDir`
    pub root: PathBuf,
    /// `storePathCommitLog`; none = `root/commitlog`. New files go to these in turn.
    pub log_dirs: Vec<PathBuf>,
    /// `readOnlyCommitLogStorePaths`: files that are there are used, no new ones are made.
    pub read_only_log_dirs: Vec<PathBuf>,
    /// `mappedFileSizeCommitLog`; `None` = as the files there, or 1 GiB
    pub segment_bytes: Option<u64>,
    /// `mappedFileSizeConsumeQueue`; `None` = as the files there, or 300,000 entries of 20 bytes
    pub queue_file_bytes: Option<u64>,
    /// `messageIndexEnable`, `indexFileWriteEnable`
    pub index: bool,
    /// `maxHashSlotNum`, `maxIndexNum`; `None` = as the files there, or 5,000,000 and 20,000,000
    pub index_slots: Option<u32>,
    pub index_items: Option<u32>,
    /// How long keys are gathered before they go to an index file, when they are few.
    pub index_interval: Duration,
    /// `flushDiskType`
    pub flush: FlushMode,
    /// `flushIntervalCommitLog`
    pub flush_interval: Duration,
    /// `flushIntervalConsumeQueue`
    pub dispatch_interval: Duration,
    /// How often the dispatched offset is made durable: what a restart after a crash reads again.
    pub checkpoint_interval: Duration,
    /// Bytes of the log's end that are kept in memory.
    pub tail_bytes: usize,
    /// `messageDelayLevel` in milliseconds, level 1 first: an entry of the delay topic carries its due time.
    pub delay_levels_ms: Vec<i64>,
    pub retention: Retention,
    /// Read the whole log and make all queue entries again, whatever the checkpoint says.
    pub rebuild: bool,
}

/// When files of the log are deleted, and how full a disk may get. Used parts are whole percents.
/// Java: `DefaultMessageStore.CleanCommitLogService`.
#[derive(Debug, Clone)]
pub struct Retention {
    /// `fileReservedTime`: how long a file stays after it was last written.
    pub reserved: Duration,
    /// `deleteWhen`: hours of the day in which files that are older are deleted.
    pub hours: Vec<u32>,
    /// `deleteFileBatchMax`: files in one run.
    pub batch_max: usize,
    /// `deleteCommitLogFilesInterval`, `deleteConsumeQueueFilesInterval`: between two files.
    pub pause: Duration,
    pub queue_pause: Duration,
    /// `diskMaxUsedSpaceRatio`: above it files that are older are deleted at any hour.
    pub used_max: u32,
    /// `diskSpaceCleanForciblyRatio`: above it files are deleted whatever their age, if `cleanFileForciblyEnable`.
    pub used_forcibly: u32,
    pub forcibly: bool,
    /// `diskSpaceWarningLevelRatio`: above it writes are refused, until the disk is at `used_forcibly` again.
    pub used_full: u32,
    /// `diskFreeBytesMin`: with less than that writes are refused; see [`Retention::free_min_of`].
    pub free_min: u64,
    /// `cleanResourceInterval`: between two runs.
    pub interval: Duration,
    /// Before the first run, and before a used part counts. Java: 60 s.
    pub first_after: Duration,
    /// Between two looks at the disk.
    pub space_interval: Duration,
    /// The hour of the day, 0 to 23, at a time in epoch milliseconds.
    pub hour_of: fn(i64) -> u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            reserved: Duration::from_secs(72 * 3600),
            hours: vec![4],
            batch_max: 10,
            pause: Duration::from_millis(100),
            queue_pause: Duration::from_millis(100),
            used_max: 75,
            used_forcibly: 85,
            forcibly: true,
            used_full: 90,
            free_min: 256 << 20,
            interval: Duration::from_secs(10),
            first_after: Duration::from_secs(60),
            space_interval: Duration::from_secs(1),
            hour_of: local_hour,
        }
    }
}

impl Retention {
    /// The least free bytes on a disk of `total` bytes: a small disk could never have the configured ones.
    pub fn free_min_of(&self, total: u64) -> u64 {
        self.free_min.min(total / 16)
    }
}

/// In the time zone of the machine.
fn local_hour(epoch_ms: i64) -> u32 {
    let time = jiff::Timestamp::from_millisecond(epoch_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.to_zoned_datetime(jiff::tz::TimeZone::system()).hour().unsigned_abs().into()
}

impl Options {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            log_dirs: Vec::new(),
            read_only_log_dirs: Vec::new(),
            segment_bytes: None,
            queue_file_bytes: None,
            index: true,
            index_slots: None,
            index_items: None,
            index_interval: Duration::from_secs(30),
            flush: FlushMode::Async,
            flush_interval: Duration::from_millis(500),
            dispatch_interval: Duration::from_millis(1000),
            checkpoint_interval: Duration::from_secs(5),
            tail_bytes: 16 << 20,
            delay_levels_ms: Vec::new(),
            retention: Retention::default(),
            rebuild: false,
        }
    }

    pub(crate) fn log_dirs(&self) -> Vec<PathBuf> {
        if self.log_dirs.is_empty() { vec![self.root.join("commitlog")] } else { self.log_dirs.clone() }
    }

    pub(crate) fn own_dir(&self) -> PathBuf {
        self.root.join("comet")
    }
}
