//! What can go wrong on a socket.

use std::io;
use std::time::Duration;

use cometmq_wire::{DecodeError, FramingError};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: String, source: io::Error },
    #[error("cannot connect to {addr}: {source}")]
    Connect { addr: String, source: io::Error },
    #[error("{addr} did not answer within {timeout:?} ({what})")]
    Timeout { addr: String, timeout: Duration, what: &'static str },
    #[error("the connection to {addr} closed: {cause}")]
    Closed { addr: String, cause: String },
    #[error("more than {limit} requests to {addr} wait to be written")]
    Overloaded { addr: String, limit: usize },
    #[error(transparent)]
    Framing(#[from] FramingError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("cannot start a shard thread: {0}")]
    Spawn(io::Error),
}
