//! Counters of the store. Records ÷ appends shows how well sends are batched, records ÷ writes how well they are grouped.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
pub struct StoreStats {
    pub records: AtomicU64,
    /// Calls that got the append lock.
    pub appends: AtomicU64,
    /// Write calls on the commit log.
    pub log_writes: AtomicU64,
    pub log_bytes: AtomicU64,
    /// Appends that took longer than 5 ms, and the longest, in microseconds.
    pub slow_appends: AtomicU64,
    pub append_max_us: AtomicU64,
    pub flushes: AtomicU64,
    pub flush_max_us: AtomicU64,
    /// Records read from memory and from files.
    pub tail_reads: AtomicU64,
    pub file_reads: AtomicU64,
    pub dispatched_entries: AtomicU64,
    /// Looks for files to delete, and files deleted.
    pub clean_runs: AtomicU64,
    pub log_files_deleted: AtomicU64,
    pub queue_files_deleted: AtomicU64,
    /// Records that did not read back as what their queue entry says.
    pub damaged: AtomicU64,
}

impl StoreStats {
    pub fn rows(&self) -> [(&'static str, u64); 15] {
        let v = |c: &AtomicU64| c.load(Relaxed);
        [
            ("records", v(&self.records)),
            ("appends", v(&self.appends)),
            ("logWrites", v(&self.log_writes)),
            ("logBytes", v(&self.log_bytes)),
            ("slowAppends", v(&self.slow_appends)),
            ("appendMaxMicros", v(&self.append_max_us)),
            ("flushes", v(&self.flushes)),
            ("flushMaxMicros", v(&self.flush_max_us)),
            ("tailReads", v(&self.tail_reads)),
            ("fileReads", v(&self.file_reads)),
            ("dispatchedEntries", v(&self.dispatched_entries)),
            ("cleanRuns", v(&self.clean_runs)),
            ("logFilesDeleted", v(&self.log_files_deleted)),
            ("queueFilesDeleted", v(&self.queue_files_deleted)),
            ("damagedRecords", v(&self.damaged)),
        ]
    }
}
