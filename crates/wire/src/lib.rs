//! Bytes ↔ types of the RocketMQ protocol: frames, headers, request and response codes, message records, properties,
//! ids, JSON bodies. No IO, no runtime, no clock: every function is a function of its arguments.
//!
//! Reading order: `frame` (what a socket carries) → `header` (the two serialisations) → `headers` (the fields of each
//! request) → `record` (what the commit log holds) → `properties` → `body` (JSON bodies).
//!
//! Invariant: bytes from outside never panic. A length is checked once, where it is read.
//! Java: `remoting.protocol.*`, `common.message.*`.

pub mod frame;
pub mod header;
pub mod headers;
pub mod codes;
pub mod record;
pub mod properties;
pub mod message_id;
pub mod java_hash;
pub mod flags;
pub mod names;
pub mod version;
pub mod json;
pub mod body;

mod error;

pub use codes::{RequestCode, ResponseCode};
pub use error::{DecodeError, FramingError};
pub use frame::Frame;
pub use header::Head;
