//! Inspect: looks at the store of a stopped broker, ours or Java's, and changes nothing: all is opened on a [`ReadOnly`] disk,
//! and the lock is only shared. What is damage and where the log ends is what [`recover`] would say.
//!
//! `check` reads the log once, in order. Each record is compared with its queue entry and its keys in the index on the way, so memory is
//! a few counters a queue and one table of slots. Then `queues` looks for entries that belong to no record, and `layout` at
//! what lies where it should not. `stat` reads the ends of queues instead of the log.
//! Callers: `comet store`. Java: nothing; what it would find at a start is in `CommitLog.recoverNormally` and the like.

mod check;
mod queues;
mod keys;
mod layout;
mod stat;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cometmq_wire::record::Record;

use crate::checkpoint::{Checkpoint, OwnCheckpoint};
use crate::disk::{Disk, Open, ReadOnly};
use crate::error::IoContext;
use crate::log::Log;
use crate::queue_ext::QueueExt;
use crate::queue_files::QueueFiles;
use crate::retire::Deleted;
use crate::scan::{Durable, Scan};
use crate::{Error, Options, recover, refuse};

pub use check::{Checked, Summary};
pub use stat::{FileStat, QueueStat, QueueStats, Stat};

/// Findings that are kept one by one; the rest is counted.
pub const FINDINGS_MAX: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something is lost, or says what is not true.
    Error,
    /// What a kill leaves and the next start settles, or what is only worth knowing.
    Warn,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Below the root of the store, if it is.
    pub file: PathBuf,
    /// Byte of the file; `None` = the file as a whole.
    pub offset: Option<u64>,
    pub what: String,
    /// What is to be done about it.
    pub advice: &'static str,
}

/// The findings of a check, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Findings {
    pub list: Vec<Finding>,
    pub errors: u64,
    pub warnings: u64,
}

impl Findings {
    pub fn add(&mut self, finding: Finding) {
        match finding.severity {
            Severity::Error => self.errors += 1,
            Severity::Warn => self.warnings += 1,
        }
        if self.list.len() < FINDINGS_MAX {
            self.list.push(finding);
        }
    }
}

/// A store opened to be looked at. No broker can start on it while this lives.
pub struct Inspect {
    options: Options,
    disk: Arc<dyn Disk>,
    log: Log,
    files: QueueFiles,
    ext: QueueExt,
    crashed: bool,
    java: Checkpoint,
    own: Option<Result<OwnCheckpoint, &'static str>>,
    deleted: Deleted,
    _lock: Option<Box<dyn Send + Sync>>,
}

/// A part of the log that was durable and holds no whole record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
    pub why: String,
}

impl Inspect {
    /// [`Error::NotAStore`], [`Error::Locked`]: nothing can be said about it. [`Error::Layout`]: its files do not fit together.
    pub fn open(options: Options, disk: Arc<dyn Disk>) -> Result<Self, Error> {
        let disk: Arc<dyn Disk> = Arc::new(ReadOnly(disk));
        let root = options.root.clone();
        let not_a_store = |path: &Path, what: String| Error::NotAStore { path: path.to_path_buf(), what };
        refuse::check(disk.as_ref(), &root).map_err(|error| match error {
            Error::Layout { path, what } => Error::NotAStore { path, what },
            other => other,
        })?;
        for dir in options.log_dirs() {
            disk.list(&dir)
                .map_err(|e| not_a_store(&dir, format!("no commit log: {e}; expected the directory of a store")))?;
        }
        let path = root.join("lock");
        let lock = match disk.lock_shared(&path) {
            // Nobody ever opened it.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            other => Some(other.at("lock", &path)?.ok_or(Error::Locked { path })?),
        };
        let crashed = disk.open(&root.join("abort"), Open::Read).is_ok();
        let log = Log::open(disk.clone(), options.log_dirs(), &options.read_only_log_dirs, None)?;
        let (files, _) = QueueFiles::look(disk.clone(), &root, None)?;
        let ext = QueueExt::open(disk.clone(), &root)?;
        let java = Checkpoint::read(disk.as_ref(), &root)?;
        let own = OwnCheckpoint::look(disk.as_ref(), &options.own_dir(), &java)?;
        let deleted = Deleted::read(disk.as_ref(), &options.own_dir(), log.start())?;
        Ok(Self { options, disk, log, files, ext, crashed, java, own, deleted, _lock: lock })
    }

    /// Whether it was stopped by a kill or a power cut.
    pub fn crashed(&self) -> bool {
        self.crashed
    }

    /// The offset of the first byte of the log, and of the byte behind its last file.
    pub fn log_range(&self) -> (u64, u64) {
        (self.log.start(), self.log.segments().last().map_or(0, |s| s.end()))
    }

    /// Calls `visit` with each whole record from log offset `from` on, where a record starts, until it says `false`. Returns the
    /// damaged parts met on the way.
    pub fn records(&self, from: u64, mut visit: impl FnMut(&Record<'_>) -> bool) -> Result<Vec<Gap>, Error> {
        enum Stop {
            Enough,
            Failed(Error),
        }
        impl From<Error> for Stop {
            fn from(error: Error) -> Self {
                Self::Failed(error)
            }
        }
        let mut scan = Scan::new(&self.log, self.durable());
        let each = |record: &Record<'_>| if visit(record) { Ok(()) } else { Err(Stop::Enough) };
        match scan.run(from.max(self.log.start()), each) {
            Err(Stop::Failed(error)) => Err(error),
            _ => {
                let gap = |d: crate::scan::Damage| Gap { from: d.part.start, to: d.part.end, why: d.why };
                Ok(scan.damaged.into_iter().map(gap).collect())
            }
        }
    }

    /// Where the message at `offset` of a queue lies in the log, as far as its queue entry says.
    pub fn log_offset(&self, topic: &str, id: i32, offset: i64) -> Result<Option<u64>, Error> {
        let entry = self.files.entry(topic, id, offset.max(0)).at("read", self.files.dir())?;
        let start = self.log.start();
        Ok(entry.filter(|e| e.is_written() && !e.is_filler() && e.log_at >= start).map(|e| e.log_at))
    }

    /// Our checkpoint, if a start would believe it.
    fn own(&self) -> Option<&OwnCheckpoint> {
        let (start, end) = self.log_range();
        self.own.as_ref().and_then(|own| own.as_ref().ok()).filter(|own| recover::fits(own, start, end))
    }

    fn durable(&self) -> Durable {
        recover::durable(self.crashed, self.own(), &self.java)
    }

    /// A path as findings name it.
    fn name(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.options.root).unwrap_or(path).to_path_buf()
    }

    /// File and byte of a log offset.
    fn log_place(&self, at: u64) -> (PathBuf, Option<u64>) {
        match self.log.segment_of(at) {
            Some(segment) => (self.name(&segment.path), Some(at - segment.base)),
            None => (self.name(self.log.dir()), None),
        }
    }
}
