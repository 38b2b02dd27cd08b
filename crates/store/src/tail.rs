//! The end of the commit log in memory, so that consumers that keep up never touch a file.
//!
//! A chunk is what one write call wrote; readers hold slices of it. Bounded by `limit` bytes; older chunks are dropped.

use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

pub(crate) struct Tail {
    chunks: RwLock<Chunks>,
    limit: usize,
}

#[derive(Default)]
struct Chunks {
    /// In order of offset; a gap where a file ended in a filler.
    list: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self { chunks: RwLock::default(), limit }
    }

    pub(crate) fn push(&self, offset: u64, chunk: Bytes) {
        let mut chunks = self.chunks.write().unwrap_or_else(PoisonError::into_inner);
        chunks.bytes += chunk.len();
        chunks.list.push_back((offset, chunk));
        while chunks.bytes > self.limit {
            let Some((_, old)) = chunks.list.pop_front() else { break };
            chunks.bytes -= old.len();
        }
    }

    /// The bytes `offset..offset + len` if all of them are here and lie in one chunk.
    pub(crate) fn slice(&self, offset: u64, len: usize) -> Option<Bytes> {
        let chunks = self.chunks.read().unwrap_or_else(PoisonError::into_inner);
        let i = chunks.list.partition_point(|(at, _)| *at <= offset).checked_sub(1)?;
        let (at, chunk) = chunks.list.get(i)?;
        let from = (offset - at) as usize;
        (from + len <= chunk.len()).then(|| chunk.slice(from..from + len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_bytes_and_no_more() {
        let tail = Tail::new(10);
        tail.push(100, Bytes::from_static(b"abcd"));
        tail.push(104, Bytes::from_static(b"efgh"));
        assert_eq!(tail.slice(101, 3).as_deref(), Some(&b"bcd"[..]));
        assert_eq!(tail.slice(102, 4), None); // crosses a chunk: never a record
        tail.push(108, Bytes::from_static(b"ijkl"));
        assert_eq!(tail.slice(101, 1), None);
        assert_eq!(tail.slice(104, 4).as_deref(), Some(&b"efgh"[..]));
        assert_eq!(tail.slice(112, 1), None);
        tail.push(200, Bytes::from_static(b"z"));
        assert_eq!(tail.slice(107, 1).as_deref(), Some(&b"h"[..])); // a gap between chunks is fine
        assert_eq!(tail.slice(108, 4).as_deref(), Some(&b"ijkl"[..]));
        assert_eq!(tail.slice(200, 1).as_deref(), Some(&b"z"[..]));
    }
}
