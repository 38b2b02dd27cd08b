//! Name server: which brokers are there, and which of them hold a topic. Brokers tell it, clients ask it.
//!
//! Reading order: `serve` (start, shard, guard) → `requests` (a function a request code) → `routes` (the tables) →
//! `notices` (what brokers are told) → `kv` and `settings` (what survives a restart) → `files` (the thread that writes it)
//! → `answer` (answers and refusals as frames).
//!
//! Routes live in memory only: after a restart the brokers' next registration (every 30 s) brings them back.
//! Java: `NamesrvController`.

#![forbid(unsafe_code)]

pub mod serve;
mod requests;
pub mod routes;
mod notices;
mod kv;
mod settings;
mod files;
mod answer;
mod error;

pub use error::Error;
pub use routes::{Registered, Registration, RegistrationRefused, Routes};
pub use serve::{NameServer, Options};
