//! Requests ↔ store: what a broker does. One file a request family.
//!
//! Reading order: `broker` (the tables and what owns what) → `shard` (a turn: prepare all, append once, finish all)
//! → `send` → `pull` → `parked` (long polling) → the rest by family.
//!
//! Invariants: nothing on a shard blocks (what may, becomes a `shard::Step::Later`); an acknowledged change is on disk;
//! expected refusals are `error::Reject`, made in one place into codes and remarks.
//! Java: `BrokerController` and its processors.

pub mod broker;
mod settings;
mod error;
mod json_file;
mod topics;
mod groups;
mod offsets;
mod journal;
mod clients;
mod subscription;
mod queue_locks;
mod shard;
mod request;
mod send;
mod send_back;
mod delay;
mod pull;
mod parked;
mod consumed;
mod durability;
mod queue_offsets;
mod query;
mod consumers;
mod heartbeat;
mod admin;
mod deletion;
mod cleaning;
mod reset;
mod listing;
mod runtime;
mod register;
pub mod serve;

pub use broker::{Broker, OpenError, store_options};
pub use serve::{BrokerServer, Options};
