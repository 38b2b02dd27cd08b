//! The check as a whole, and what concerns the log: damage, fillers, what lies behind its end, the checkpoints.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use cometmq_wire::record::{Record, body_crc};

use super::keys::Keys;
use super::queues::Queues;
use super::{Finding, Findings, Inspect, QueueStats, Severity};
use crate::checkpoint::ANOTHER_BROKER;
use crate::disk::Open;
use crate::error::IoContext;
use crate::scan::Scan;
use crate::{Error, cut};

/// Log bytes between two calls of the progress function.
const SAY: u64 = 1 << 20;
const READ: usize = 1 << 20;

/// What a check found.
#[derive(Debug, Default)]
pub struct Checked {
    pub findings: Findings,
    pub summary: Summary,
    pub queues: QueueStats,
    /// Parts of the log that are damaged, those that are known included.
    pub damaged: Vec<Range<u64>>,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Summary {
    /// Whole records.
    pub records: u64,
    /// From the first byte of the log to its end.
    pub bytes: u64,
    pub queues: u64,
    /// Entries of queues that were compared with a record.
    pub entries: u64,
    /// Items of index files that were compared with a record.
    pub keys: u64,
    pub took: Duration,
}

impl Inspect {
    /// Compares everything with everything. `is_topic`: whether a topic exists; records of one that does not need no queue files.
    /// `progress` is called with the log bytes that were read and those that there are at most.
    pub fn check(&self, is_topic: &dyn Fn(&str) -> bool, progress: &mut dyn FnMut(u64, u64)) -> Result<Checked, Error> {
        let began = Instant::now();
        let mut checked = Checked::default();
        let mut found = Findings::default();
        let findings = &mut found;
        self.check_layout(findings)?;
        let (start, last) = self.log_range();
        let (mut queues, mut keys) = (Queues::new(self), Keys::open(self, findings)?);
        let (mut records, mut store_ms, mut said) = (0, 0, start);
        let mut scan = Scan::new(&self.log, self.durable());
        let end = scan.run(start, |record: &Record<'_>| {
            records += 1;
            store_ms = store_ms.max(record.store_ms());
            queues.record(record)?;
            keys.record(record, findings)?;
            let at = record.log_offset() as u64;
            if at >= said + SAY {
                said = at;
                progress(at - start, last - start);
            }
            Ok::<(), Error>(())
        })?;
        let known = self.known_damage()?;
        for damage in &scan.damaged {
            let (file, offset) = self.log_place(damage.part.start);
            let len = damage.part.end - damage.part.start;
            let what = format!("{len} bytes of the commit log are damaged: {}", damage.why);
            let (severity, advice) = match known.contains(&self.damage_line(&damage.part)?) {
                true => (Severity::Warn, "nothing: comet/damaged says that it is known, and brokers step over it"),
                false => (Severity::Error, LOST),
            };
            findings.add(Finding { severity, file, offset, what, advice });
            checked.damaged.push(damage.part.clone());
        }
        if scan.damaged_count > scan.damaged.len() as u64 {
            let what = format!(
                "{} parts are damaged in all; only the first {} are looked at",
                scan.damaged_count,
                scan.damaged.len()
            );
            let file = self.name(self.log.dir());
            findings.add(Finding { severity: Severity::Error, file, offset: None, what, advice: LOST });
        }
        for (at, len) in &scan.odd_fillers {
            let (file, offset) = self.log_place(*at);
            let what = format!("a filler that says {len} bytes where another number is left in the file");
            findings.add(Finding {
                severity: Severity::Warn,
                file,
                offset,
                what,
                advice: "nothing: no broker reads it",
            });
        }
        self.check_end(end, findings)?;
        self.check_checkpoints(end, (records > 0).then_some(store_ms), findings)?;
        keys.finish(&scan.damaged, findings)?;
        queues.finish(end, &scan.damaged, is_topic, findings)?;
        checked.queues = queues.ranges(end)?;
        checked.findings = found;
        checked.summary = Summary {
            records,
            bytes: end - start,
            queues: checked.queues.len() as u64,
            entries: queues.compared,
            keys: keys.compared,
            took: began.elapsed(),
        };
        Ok(checked)
    }

    /// The lines of `comet/damaged`: parts of the log of which it is known that they are damaged.
    fn known_damage(&self) -> Result<BTreeSet<String>, Error> {
        let path = self.options.own_dir().join("damaged");
        match self.disk.read_all(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            read => Ok(String::from_utf8_lossy(&read.at("read", &path)?).lines().map(str::to_string).collect()),
        }
    }

    /// A line of `comet/damaged`: `from to crc`. Other bytes in that place are other damage.
    pub fn damage_line(&self, part: &Range<u64>) -> Result<String, Error> {
        let (mut at, mut crc) = (part.start, 0u32);
        while let Some(segment) = self.log.segment_of(at).filter(|_| at < part.end) {
            let len = (READ as u64).min(part.end.min(segment.end()) - at) as usize;
            let mut bytes = crc.to_be_bytes().to_vec();
            bytes.resize(4 + len, 0);
            segment.file.read_at(&mut bytes[4..], at - segment.base, true).at("read", &segment.path)?;
            crc = body_crc(&bytes);
            at += len as u64;
        }
        Ok(format!("{} {} {crc:08x}", part.start, part.end))
    }

    /// Nothing lies behind the end of the log.
    fn check_end(&self, end: u64, findings: &mut Findings) -> Result<(), Error> {
        let mut buf = vec![0; READ];
        for segment in self.log.segments().iter().filter(|s| s.end() > end) {
            let from = end.saturating_sub(segment.base);
            if let Some((at, n)) = cut::next_data(segment, from, &mut buf)? {
                let first = buf[..n].iter().position(|b| *b != 0).unwrap_or(0) as u64;
                findings.add(Finding {
                    severity: if self.crashed { Severity::Warn } else { Severity::Error },
                    file: self.name(&segment.path),
                    offset: Some(at + first),
                    what: format!("bytes behind the end of the log at byte {from}: no whole record starts there"),
                    advice: "repair keeps them in comet/ and puts zeros here, as a start after a kill does",
                });
            }
        }
        Ok(())
    }

    /// `last_ms`: store time of the newest record, if there is one.
    fn check_checkpoints(&self, end: u64, last_ms: Option<i64>, findings: &mut Findings) -> Result<(), Error> {
        let mut add = |file: &str, offset: Option<u64>, severity, what: String| {
            let advice = "repair writes a new one";
            findings.add(Finding { severity, file: file.into(), offset, what, advice });
        };
        let path = self.options.root.join("checkpoint");
        match self.disk.open(&path, Open::Read) {
            Ok(file) => {
                let bytes = file.size().at("stat", &path)?;
                if bytes != 4096 {
                    // What is more is read by nobody.
                    let is_lost = bytes < 4096 && !self.crashed;
                    let severity = if is_lost { Severity::Error } else { Severity::Warn };
                    add("checkpoint", None, severity, format!("{bytes} bytes, expected 4096"));
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && last_ms.is_none() => {}
            // It is written some seconds after the first start, behind our own.
            Err(_) if self.crashed && !matches!(self.own, Some(Err(_))) => {
                add("checkpoint", None, Severity::Warn, "it was not written before the kill".to_string());
            }
            Err(e) => add("checkpoint", None, Severity::Error, format!("it cannot be opened: {e}")),
        }
        let java = &self.java;
        let times = [("physicMsgTimestamp", 0, java.physic_ms), ("logicsMsgTimestamp", 8, java.logics_ms)];
        let times = times.into_iter().chain([("indexMsgTimestamp", 16, java.index_ms)]);
        for (name, at, ms) in times.filter(|(_, _, ms)| last_ms.is_some_and(|last| *ms > last)) {
            let last = last_ms.unwrap_or_default();
            let what =
                format!("{name}={ms}, but the newest record of the log is of {last}: the log is not what it was");
            add("checkpoint", Some(at), Severity::Error, what);
        }
        let offsets = [("masterFlushedOffset", 24, java.master_flushed), ("confirmPhyOffset", 32, java.confirm)];
        let offsets = offsets.into_iter().chain([("logicsMsgOffset", 40, java.logics_offset)]);
        for (name, at, offset) in offsets.filter(|(_, _, offset)| *offset > end as i64) {
            add("checkpoint", Some(at), Severity::Error, format!("{name}={offset}, but the log ends at {end}"));
        }
        let own = "comet/checkpoint";
        match &self.own {
            None => {}
            Some(Err(why)) => {
                let severity = if *why == ANOTHER_BROKER { Severity::Warn } else { Severity::Error };
                add(own, None, severity, format!("{why}: the next start reads the whole log"));
            }
            Some(Ok(c)) => {
                if c.dispatched > c.durable || c.durable > end || c.dispatched < self.log.start() {
                    let what = format!(
                        "it says dispatched={} and durable={}, but the log goes from {} to {end}",
                        c.dispatched,
                        c.durable,
                        self.log.start()
                    );
                    add(own, None, Severity::Error, what);
                }
                let have = self.files.bytes();
                if have < c.queue_bytes {
                    let what = format!("it knows {} bytes of queue files, but there are {have}", c.queue_bytes);
                    add(own, None, Severity::Error, what);
                }
            }
        }
        Ok(())
    }
}

pub(super) const LOST: &str = "restore it from a copy; without one these messages are lost, and brokers step over them";
