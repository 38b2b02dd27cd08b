//! Messages ↔ disk: the commit log, its flush, the consume queues, recovery. Own threads, no async runtime, no request.
//!
//! Reading order: `append` (a batch gets its place, is written, becomes visible) → `log` (segments) → `tail` (the last
//! bytes, in memory) → `queue` (where the messages of a queue lie) → `read` → `index` (from keys to
//! messages) and `query` → `flush` (what is durable, what is visible)
//! → `dispatch` (queue entries to their files, checkpoints) → `recover` and `cut` (what is true after a start)
//! → `inspect` (the same questions, asked without changing anything).
//!
//! Three watermarks, all byte offsets in the commit log: `durable ≤ written`, and `visible`, which is one of the two:
//! written under ASYNC_FLUSH, durable under SYNC_FLUSH. Nobody sees a queue entry past visible.
//!
//! Threads: any thread appends and reads; `store-flush` syncs the log, `store-dispatch` writes queue files.
//! Java: `DefaultMessageStore`, `CommitLog`, `ConsumeQueue`, `IndexService`.

pub mod disk;
mod error;
mod options;
mod store;
mod refuse;
mod append;
mod log;
mod tail;
mod queue;
mod queue_files;
mod queue_ext;
mod read;
mod search;
mod index_file;
mod index;
mod query;
mod flush;
mod dispatch;
mod checkpoint;
mod recover;
mod scan;
mod cut;
mod space;
mod expire;
mod stats;
mod retire;
mod signal;
mod inspect;

pub use append::{Appended, Batch};
pub use error::Error;
pub use inspect::{Checked, FileStat, Finding, Findings, Gap, Inspect, QueueStat, QueueStats, Severity, Stat, Summary};
pub use options::{FlushMode, Options, Retention};
pub use query::{Found, KeyKind, Query};
pub use queue::QueueRef;
pub use read::{Limits, QueueEntry, Read, Status, Wait};
pub use search::Boundary;
pub use stats::StoreStats;
pub use store::{Store, Wake};
