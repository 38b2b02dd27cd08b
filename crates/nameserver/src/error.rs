//! Why a name server does not start, or cannot keep what it was told.

use std::io;
use std::path::PathBuf;

use cometmq_base::config::ConfigError;
use cometmq_wire::DecodeError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Net(#[from] cometmq_net::Error),
    #[error("{op} {path}: {source}")]
    Io { op: &'static str, path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    KvConfig { path: PathBuf, source: DecodeError },
    #[error("{path}: {source}")]
    Settings { path: PathBuf, source: ConfigError },
}
