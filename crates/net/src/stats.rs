//! Counters of a shard. Each is written by one thread and read by any: relaxed loads and stores, no shared cache line
//! between shards.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ShardStats {
    /// Connections now open, including those handed over and not yet picked up.
    pub connections: AtomicU64,
    pub accepted: AtomicU64,
    /// `read` calls that brought bytes; frames ÷ reads shows how well requests are batched.
    pub reads: AtomicU64,
    pub frames: AtomicU64,
    pub turns: AtomicU64,
    pub writes: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    /// Connections closed because of broken framing, idleness, an IO error.
    pub framing_errors: AtomicU64,
    pub idle_closed: AtomicU64,
    pub io_errors: AtomicU64,
    /// How often reading paused since the peer did not take its answers.
    pub paused: AtomicU64,
}

pub(crate) fn add(cell: &AtomicU64, n: u64) {
    // One writer: a plain add is enough, and cheaper than a locked one.
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

impl ShardStats {
    /// (name, value) of every counter, for the runtime table and metrics.
    pub fn rows(&self) -> [(&'static str, u64); 12] {
        let v = |c: &AtomicU64| c.load(Relaxed);
        [
            ("connections", v(&self.connections)),
            ("accepted", v(&self.accepted)),
            ("reads", v(&self.reads)),
            ("frames", v(&self.frames)),
            ("turns", v(&self.turns)),
            ("writes", v(&self.writes)),
            ("bytesIn", v(&self.bytes_in)),
            ("bytesOut", v(&self.bytes_out)),
            ("framingErrors", v(&self.framing_errors)),
            ("idleClosed", v(&self.idle_closed)),
            ("ioErrors", v(&self.io_errors)),
            ("readPaused", v(&self.paused)),
        ]
    }
}
