//! Query: the messages of a topic with a key, and the message at a log offset.
//! Java: `DefaultMessageStore.queryMessage`, `selectOneMessageByOffset`.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cometmq_wire::properties::{KEYS, TAGS, UNIQ_KEY};
use cometmq_wire::record::{self, Kind, Record};

use crate::store::{Inner, lock};
use crate::{Error, FlushMode, Store, index, scan};

/// What a query may take: a client waits for 15 s.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of all records of an answer: it has to fit into a frame. One record may be longer.
const BYTES_MAX: usize = 12 << 20;

/// Java: `MessageConst.INDEX_KEY_TYPE` and its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A word of KEYS, or the unique key.
    Key,
    /// UNIQ_KEY. It is looked for at all times: the id's own time is that of the client's clock.
    Unique,
    /// TAGS as a whole.
    Tag,
}

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub topic: &'a str,
    pub key: &'a str,
    pub kind: KeyKind,
    /// Messages to answer, the newest of all.
    pub max: usize,
    /// Store time, both ends included.
    pub begin_ms: i64,
    pub end_ms: i64,
}

#[derive(Debug, Default)]
pub struct Found {
    /// In log order, as Java answers.
    pub records: Vec<Bytes>,
    /// Store time and log offset of the last record that the index knows; 0 when nothing was found.
    pub index_ms: i64,
    pub index_at: u64,
}

impl Query<'_> {
    fn matches(&self, record: &Record<'_>) -> bool {
        let has = |name, is: &dyn Fn(&str) -> bool| record.property(name).is_some_and(is);
        let is_key = |text: &str| text == self.key;
        let carries = match self.kind {
            KeyKind::Unique => return record.topic() == self.topic && has(UNIQ_KEY, &is_key),
            KeyKind::Key => has(KEYS, &|keys| index::words(keys).any(is_key)) || has(UNIQ_KEY, &is_key),
            KeyKind::Tag => has(TAGS, &is_key),
        };
        carries && record.topic() == self.topic && (self.begin_ms..=self.end_ms).contains(&record.store_ms())
    }
}

impl Store {
    /// Finds messages by key, those included that were appended (SYNC_FLUSH: flushed) a moment ago. May wait for the disk.
    pub fn query(&self, query: &Query<'_>) -> Result<Found, Error> {
        let Some(index) = self.0.index.as_ref().filter(|_| query.max > 0) else { return Ok(Found::default()) };
        let began = Instant::now();
        let visible = self.0.visible();
        self.0.index_upto(visible, began)?;
        let (begin_ms, end_ms) = match query.kind {
            KeyKind::Unique => (i64::MIN, i64::MAX),
            _ => (query.begin_ms, query.end_ms),
        };
        let hash = index::hash_of(query.topic, query.key, query.kind == KeyKind::Tag);
        let mut found: BTreeMap<u64, Bytes> = BTreeMap::new();
        let mut bytes = 0;
        let mut visit = |log_at: u64| -> io::Result<bool> {
            if found.len() >= query.max || found.contains_key(&log_at) || log_at >= visible {
                return Ok(found.len() < query.max);
            }
            let record = self.0.intact_record(log_at)?;
            let parsed = record.as_ref().and_then(|bytes| Record::parse(bytes).ok());
            let is_gone = || lock(&self.0.deleted).covers(query.topic, log_at);
            if let (Some(record), Some(true)) = (&record, parsed.map(|r| query.matches(&r) && !is_gone())) {
                if !found.is_empty() && bytes + record.len() > BYTES_MAX {
                    return Ok(false);
                }
                bytes += record.len();
                found.insert(log_at, record.clone());
            }
            Ok(found.len() < query.max)
        };
        index.find(hash, begin_ms, end_ms, began + TIME_MAX, &mut visit)?;
        if found.is_empty() {
            return Ok(Found::default());
        }
        let (index_ms, index_at) = index.last_record();
        Ok(Found { records: found.into_values().collect(), index_ms, index_at })
    }

    /// The message that starts at a log offset, if one does and may be seen. May wait for the disk.
    pub fn message_at(&self, log_offset: u64) -> Result<Option<Bytes>, Error> {
        if log_offset >= self.0.visible() {
            return Ok(None);
        }
        let found = self.0.intact_record(log_offset);
        found.map_err(|source| Error::Io { op: "read", path: self.0.log.dir().to_path_buf(), source })
    }

    /// Removes the index files whose records all lie below `log_start`, except for the last file.
    pub fn drop_index_before(&self, log_start: u64) -> Result<usize, Error> {
        self.0.index.as_ref().map_or(Ok(0), |index| index.drop_before(log_start))
    }
}

impl Inner {
    /// Log offset behind the last record that clients may see.
    fn visible(&self) -> u64 {
        match self.options.flush {
            FlushMode::Async => self.written.load(Ordering::Acquire),
            FlushMode::Sync => self.durable.load(Ordering::Acquire),
        }
    }

    /// Brings the index up to a log offset.
    fn index_upto(&self, to: u64, began: Instant) -> Result<(), Error> {
        let Some(index) = &self.index else { return Ok(()) };
        loop {
            match index.catch_up(&self.log, to, self.durable.load(Ordering::Acquire)) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    // As in the dispatch thread: after a failed sync nobody knows what is on the disk.
                    if matches!(error, Error::Io { .. }) {
                        self.poison(error.to_string());
                    }
                    return Err(error);
                }
            }
            if began.elapsed() > TIME_MAX || self.is_poisoned() {
                return Err(Error::IndexBehind { upto: index.scanned(), end: to });
            }
            // There is no room for more before what there is is durable.
            self.wait_durable(index.scanned(), Duration::from_millis(100));
        }
    }

    /// The record that starts at a log offset, if one does; any offset may be asked for.
    fn intact_record(&self, log_at: u64) -> io::Result<Option<Bytes>> {
        // Up to its own offset, which is compared before anything is read in its length.
        let mut head = [0; 36];
        match self.log.read(log_at, &mut head, true) {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => return Ok(None),
            other => other?,
        }
        let own_offset = head.last_chunk::<8>().map(|b| u64::from_be_bytes(*b));
        let Some(Ok(Kind::Message(len))) = head.first_chunk::<8>().map(|h| record::peek(*h)) else { return Ok(None) };
        let fits = self.log.segment_of(log_at).is_some_and(|s| log_at + len as u64 <= s.end());
        if own_offset != Some(log_at) || !fits {
            return Ok(None);
        }
        let bytes = match self.tail.slice(log_at, len) {
            Some(bytes) => bytes,
            None => {
                let mut bytes = vec![0; len];
                match self.log.read(log_at, &mut bytes, true) {
                    // Its file was dropped a moment ago.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                    other => other?,
                }
                Bytes::from(bytes)
            }
        };
        Ok(scan::check(&bytes, log_at).is_ok().then_some(bytes))
    }
}
