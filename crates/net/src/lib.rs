//! Sockets ↔ frames: the listeners, the shard loop that serves connections, and outbound calls. Knows no topic.
//!
//! A *shard* is a thread with a single-threaded runtime. It owns its connections for their whole life; what runs on it is
//! a [`Service`]. Reading order: `server` (accept, hand over) → `shard` (mailbox, idle sweep) → `conn` (read, turn, write)
//! → `memory` (what all of them may hold) → `refuse` (what a peer gets that speaks something else) → `remote` (calls to others).
//!
//! Java: `NettyRemotingServer`, `NettyRemotingClient`.

pub mod server;
pub mod shard;
pub mod conn;
pub mod memory;
mod refuse;
pub mod remote;
pub mod stats;

mod error;

pub use conn::{Conn, ConnId};
pub use error::Error;
pub use memory::{Held, Memory};
pub use remote::{Outgoing, Remote, Remotes};
pub use server::{Listen, Server};
pub use shard::{Mailbox, Service, ShardId};
