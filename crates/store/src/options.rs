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
    /// `storePathCommitLog`; `None` = `root/commitlog`
    pub log_dir: Option<PathBuf>,
    /// `mappedFileSizeCommitLog`; `None` = as the files there, or 1 GiB
    pub segment_bytes: Option<u64>,
    /// `mappedFileSizeConsumeQueue`; `None` = as the files there, or 300,000 entries of 20 bytes
    pub queue_file_bytes: Option<u64>,
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
}

impl Options {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            log_dir: None,
            segment_bytes: None,
            queue_file_bytes: None,
            flush: FlushMode::Async,
            flush_interval: Duration::from_millis(500),
            dispatch_interval: Duration::from_millis(1000),
            checkpoint_interval: Duration::from_secs(5),
            tail_bytes: 16 << 20,
            delay_levels_ms: Vec::new(),
        }
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.log_dir.clone().unwrap_or_else(|| self.root.join("commitlog"))
    }

    pub(crate) fn own_dir(&self) -> PathBuf {
        self.root.join("comet")
    }
}
