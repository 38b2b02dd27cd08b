//! Scan: reads the commit log record by record, and says what is damage and what is its end.
//!
//! A place where no whole record starts is the end of the log, unless what lies there was durable: then it is damage, which
//! is reported and stepped over. Nothing is changed here.
//! Java: `CommitLog.checkMessageAndReturnSize`.

use std::ops::Range;
use std::sync::Arc;

use cometmq_wire::record::{self, BLANK_MIN, Kind, Record};

use crate::Error;
use crate::error::IoContext;
use crate::log::{Log, Segment};

/// Read at a time: stays in the L2 cache until it is parsed.
const CHUNK: usize = 256 << 10;
/// The shortest record.
const RECORD_MIN: u64 = 91;
/// A length that is larger is damage: it must not become memory.
const RECORD_MAX: usize = 128 << 20;

/// Damaged parts that are remembered.
const DAMAGED_MAX: usize = 1024;
/// Bytes looked through at a time for the three first bytes of both magics, which stand behind a record's length.
const SEARCH: usize = 64 << 10;
const MAGIC_START: [u8; 3] = [0xDA, 0xA3, 0x20];

/// What is known to have been durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// By our checkpoint: everything below.
    Below(u64),
    /// By a clean stop of whoever was here: everything.
    All,
    /// By the checkpoint of a Java broker that was killed: whatever lies before a record that ends at or below this offset,
    /// or that is older than this time.
    Before { offset: u64, store_ms: i64 },
}

impl Durable {
    fn is_known(self, at: u64) -> bool {
        matches!(self, Self::Below(end) if at < end)
    }

    /// Whether whatever lies before this whole record was durable.
    fn covers(self, record: &Record<'_>) -> bool {
        match self {
            Self::Below(_) => false,
            Self::All => true,
            Self::Before { offset, store_ms } => {
                record.log_offset() as u64 + record.len() as u64 <= offset || record.store_ms() < store_ms
            }
        }
    }
}

/// A part of the log that was durable and holds no whole record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) part: Range<u64>,
    pub(crate) why: String,
}

pub(crate) struct Scan {
    segments: Arc<Vec<Arc<Segment>>>,
    durable: Durable,
    /// Damaged parts of the log, as far as there is room.
    pub(crate) damaged: Vec<Damage>,
    /// All of them.
    pub(crate) damaged_count: u64,
    /// Where fillers say that they are of another length than the rest of their file: nobody reads it. As far as there is room.
    pub(crate) odd_fillers: Vec<(u64, usize)>,
}

enum Next {
    Record(u64),
    Segment,
    LogEnd(u64),
}

impl Scan {
    pub(crate) fn new(log: &Log, durable: Durable) -> Self {
        Self { segments: log.segments(), durable, damaged: Vec::new(), damaged_count: 0, odd_fillers: Vec::new() }
    }

    /// Calls `visit` for each record from `from` on; returns where the log ends.
    pub(crate) fn run<E: From<Error>>(
        &mut self,
        from: u64,
        mut visit: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let segments = self.segments.clone();
        let mut at = from;
        for (i, segment) in segments.iter().enumerate().filter(|(_, s)| s.end() > from) {
            at = at.max(segment.base);
            let mut window = Window::new(segment, at);
            loop {
                if at + BLANK_MIN as u64 > segment.end() {
                    break;
                }
                let why = match window.look(at)? {
                    Found::Record(len) => match check(window.get(at, len)?, at) {
                        Ok(record) => {
                            visit(&record)?;
                            at += len as u64;
                            continue;
                        }
                        Err(why) => why,
                    },
                    Found::Blank(len) => {
                        if at + len as u64 != segment.end() && self.odd_fillers.len() < DAMAGED_MAX {
                            self.odd_fillers.push((at, len));
                        }
                        break;
                    }
                    Found::Nothing(why) => why,
                };
                match self.step_over(&mut window, at, &why, segments.get(i + 1..).unwrap_or_default())? {
                    Next::Record(next) => at = next,
                    Next::Segment => break,
                    Next::LogEnd(end) => return Ok(end),
                }
            }
            at = segment.end();
        }
        Ok(at)
    }

    /// Where it goes on behind a place at which no whole record starts.
    fn step_over(
        &mut self,
        window: &mut Window<'_>,
        at: u64,
        why: &str,
        behind: &[Arc<Segment>],
    ) -> Result<Next, Error> {
        let segment = window.segment;
        let is_known = self.durable.is_known(at);
        let next = match self.durable {
            Durable::Below(_) if !is_known => None,
            _ => next_record(window, at + 1)?,
        };
        let next = match (next, self.durable) {
            (Some(next), _) if is_known || self.is_covered(window, next)? => Next::Record(next),
            (None, Durable::Below(end)) if is_known && end < segment.end() => Next::LogEnd(end),
            (None, _) if is_known || self.goes_on_in(behind)? => Next::Segment,
            _ => {
                if !why.is_empty() {
                    let file = segment.path.display();
                    tracing::warn!(offset = at, %file, why, "the log ends at a torn record");
                }
                return Ok(Next::LogEnd(at));
            }
        };
        let resumes = match next {
            Next::Record(next) | Next::LogEnd(next) => next,
            Next::Segment => segment.end(),
        };
        let why = if why.is_empty() { "zeros where a record was" } else { why };
        self.damaged_count += 1;
        if self.damaged.len() < DAMAGED_MAX {
            self.damaged.push(Damage { part: at..resumes, why: why.to_string() });
        }
        tracing::error!(
            offset = at,
            file = %segment.path.display(),
            why,
            resumes,
            "the commit log is damaged where it was durable; stepping over it, nothing is changed"
        );
        Ok(next)
    }

    fn is_covered(&self, window: &mut Window<'_>, at: u64) -> Result<bool, Error> {
        let Found::Record(len) = window.look(at)? else { return Ok(false) };
        Ok(check(window.get(at, len)?, at).is_ok_and(|record| self.durable.covers(&record)))
    }

    /// Whether a later file starts with a whole record that was durable.
    fn goes_on_in(&self, behind: &[Arc<Segment>]) -> Result<bool, Error> {
        for segment in behind {
            let mut window = Window::new(segment, segment.base);
            if self.is_covered(&mut window, segment.base)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The record that lies at log offset `at`, with all that can be checked.
pub(crate) fn check(bytes: &[u8], at: u64) -> Result<Record<'_>, String> {
    let record = Record::parse(bytes).map_err(|e| e.to_string())?;
    if record.log_offset() as u64 != at {
        return Err(format!("a record that says it lies at {}", record.log_offset()));
    }
    if !record.body_is_intact() {
        return Err("a body that does not match its crc".to_string());
    }
    Ok(record)
}

/// Calls `visit` for each record in `from..to`, all of which was written, until it says `false`; returns the offset behind the
/// last one. Damage is stepped over: it was reported when it was found. `chunk` bytes are read at a time.
pub(crate) fn walk(
    log: &Log,
    from: u64,
    to: u64,
    chunk: usize,
    mut visit: impl FnMut(&Record<'_>) -> bool,
) -> Result<u64, Error> {
    for segment in log.segments().iter().filter(|s| s.end() > from && s.base < to) {
        let mut at = from.max(segment.base);
        let mut window = Window { segment, end: segment.end().min(to), chunk, start: at, bytes: Vec::new() };
        while at + BLANK_MIN as u64 <= window.end {
            let len = match window.look(at)? {
                Found::Blank(_) => break,
                Found::Record(len) => len,
                Found::Nothing(_) => 0,
            };
            match Record::parse(window.get(at, len)?) {
                Ok(record) if record.log_offset() as u64 == at => {
                    at += len as u64;
                    if !visit(&record) {
                        return Ok(at);
                    }
                }
                _ => match next_record(&mut window, at + 1)? {
                    Some(next) => at = next,
                    None => break,
                },
            }
        }
    }
    Ok(to)
}

/// The next place in the segment where an intact record starts.
fn next_record(window: &mut Window<'_>, from: u64) -> Result<Option<u64>, Error> {
    let segment = window.segment;
    let mut at = from;
    while at + RECORD_MIN <= window.end {
        let part = window.get(at + 4, SEARCH)?;
        if part.len() < 3 {
            break;
        }
        if let Some(i) = part.windows(3).position(|w| w == MAGIC_START) {
            at += i as u64;
            if let Found::Record(len) = window.look(at)?
                && check(window.get(at, len)?, at).is_ok()
            {
                return Ok(Some(at));
            }
            at += 1;
            continue;
        }
        let is_empty = part.iter().all(|b| *b == 0);
        at += part.len() as u64 - 2;
        if is_empty {
            let Some(data) = segment.file.next_data(at - segment.base).at("seek", &segment.path)? else { break };
            // A length starts with up to three zeros.
            at = at.max((segment.base + data).saturating_sub(3));
        }
    }
    Ok(None)
}

enum Found {
    /// Of this length, if it is one.
    Record(usize),
    Blank(usize),
    /// Why; empty for zeros.
    Nothing(String),
}

/// A part of a segment in memory, of which nothing behind `end` is read; `chunk` bytes are read at a time.
struct Window<'a> {
    segment: &'a Segment,
    end: u64,
    chunk: usize,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(segment: &'a Segment, at: u64) -> Self {
        Self { segment, end: segment.end(), chunk: CHUNK, start: at, bytes: Vec::new() }
    }

    fn look(&mut self, at: u64) -> Result<Found, Error> {
        let end = self.end;
        let head = self.get(at, 8)?.first_chunk::<8>().copied().unwrap_or_default();
        Ok(match record::peek(head) {
            Ok(Kind::Blank(len)) => Found::Blank(len),
            Ok(Kind::Empty) => Found::Nothing(String::new()),
            Ok(Kind::Message(len)) if at + len as u64 > end => {
                Found::Nothing("a record longer than its file".to_string())
            }
            Ok(Kind::Message(len)) if len > RECORD_MAX => Found::Nothing(format!("a record of {len} bytes")),
            Ok(Kind::Message(len)) => Found::Record(len),
            Err(error) => Found::Nothing(error.to_string()),
        })
    }

    /// The bytes `at..at + len`, fewer at the end of the file.
    fn get(&mut self, at: u64, len: usize) -> Result<&[u8], Error> {
        let have = self.start..self.start + self.bytes.len() as u64;
        if !(have.contains(&at) && at + len as u64 <= have.end) {
            let want = (self.chunk.max(len) as u64).min(self.end - at) as usize;
            self.bytes.resize(want, 0);
            self.start = at;
            let n = self.segment.file.read_at(&mut self.bytes, at - self.segment.base, true);
            self.bytes.truncate(n.at("read", &self.segment.path)?);
        }
        let from = (at - self.start) as usize;
        Ok(self.bytes.get(from..self.bytes.len().min(from + len)).unwrap_or_default())
    }
}
