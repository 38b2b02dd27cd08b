//! Why the store refuses or fails. Variants carry the facts that an operator needs.

use std::io;
use std::path::PathBuf;

use cometmq_wire::DecodeError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{op} {path}: {source}")]
    Io { op: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} is in use by another process (its byte 0 is locked)")]
    Locked { path: PathBuf },
    #[error("{path}: {what}")]
    Layout { path: PathBuf, what: String },
    #[error("{path}: {what}")]
    NotAStore { path: PathBuf, what: String },
    #[error("{key}={configured} contradicts the files in {path}, which have {found} bytes")]
    FileSize { key: &'static str, configured: u64, found: u64, path: PathBuf },
    #[error("{key}={configured} contradicts the index files: {path} has {found}")]
    IndexGeometry { key: &'static str, configured: u32, found: u32, path: PathBuf },
    #[error("the index is being built: it knows the commit log up to offset {upto} of {end}; ask again later")]
    IndexBehind { upto: u64, end: u64 },
    #[error("the disk is full: {0}")]
    DiskFull(String),
    #[error("the store takes no more writes: {0}")]
    Poisoned(String),
    #[error("the store is shut down")]
    Closed,
    #[error("a record of {len} bytes does not fit into a commit-log file of {limit}")]
    TooLarge { len: usize, limit: usize },
    #[error("the queue {topic}-{id} was deleted")]
    Retired { topic: String, id: i32 },
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

pub(crate) trait IoContext<T> {
    fn at(self, op: &'static str, path: &std::path::Path) -> Result<T, Error>;
}

impl<T> IoContext<T> for io::Result<T> {
    /// A full disk is a state that passes. Except for a sync: after a failed one nobody knows what is on the disk.
    fn at(self, op: &'static str, path: &std::path::Path) -> Result<T, Error> {
        self.map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if op != "sync" => {
                Error::DiskFull(format!("{op} {}: {source}", path.display()))
            }
            _ => Error::Io { op, path: path.to_path_buf(), source },
        })
    }
}
