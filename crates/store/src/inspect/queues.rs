//! Queues against the log: each record has its entry, each entry its record, offsets go up one by one.
//!
//! A record's entry is read when the record is (at most 256 files are open). What is wrong is kept as the first case and a number of
//! each kind, so a queue is a few counters whatever its length.

use std::collections::BTreeMap;
use std::collections::HashMap;

use cometmq_wire::names;
use cometmq_wire::properties::INNER_MULTI_DISPATCH;
use cometmq_wire::record::Record;

use super::{Finding, Findings, Inspect, QueueStat, QueueStats, Severity};
use crate::append::is_hidden;
use crate::error::IoContext;
use crate::queue::Entry;
use crate::scan::Damage;
use crate::{Error, queue_ext, recover, scan};

/// Offsets of a gap that are looked at one by one.
const GAP_MAX: i64 = 1 << 20;
/// Entries of a queue without a record that are remembered.
const HOLES_MAX: usize = 1024;
/// Java takes its queues to be durable up to three seconds before what its checkpoint says.
const JAVA_SLACK_MS: i64 = 3000;
const DAMAGED: &str = "it is damaged there";
const REBUILD: &str = "repair makes the entries of all queues again from the log";

/// What can be wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Not there, and a start after the kill makes it.
    Unwritten,
    Missing,
    /// Points elsewhere than where the record lies.
    Place,
    Tag,
    /// The log has no record for this offset.
    Hole,
    /// Points behind the end of the log.
    Past,
    /// Points at something that is no record of this queue.
    Alien,
}

/// The first case of a kind, and how many there are.
#[derive(Debug)]
struct Bad {
    offset: i64,
    count: u64,
    detail: String,
}

#[derive(Default)]
struct Seen {
    first: i64,
    next: i64,
    /// Entries of offsets that the log has no record for.
    holes: Vec<(i64, Entry)>,
    restarts: Option<(u64, i64)>,
    bad: BTreeMap<Kind, Bad>,
}

impl Seen {
    fn add(&mut self, kind: Kind, offset: i64, detail: impl FnOnce() -> String) {
        let bad = self.bad.entry(kind).or_insert_with(|| Bad { offset, count: 0, detail: detail() });
        bad.count += 1;
    }
}

pub(super) struct Queues<'a> {
    store: &'a Inspect,
    seen: HashMap<String, BTreeMap<i32, Seen>>,
    pub(super) compared: u64,
}

impl<'a> Queues<'a> {
    pub(super) fn new(store: &'a Inspect) -> Self {
        Self { store, seen: HashMap::new(), compared: 0 }
    }

    pub(super) fn record(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let store = self.store;
        let (topic, id, offset) = (record.topic(), record.queue_id(), record.queue_offset());
        let log_at = record.log_offset() as u64;
        if is_hidden(record.sys_flag()) || store.files.is_batch(topic) || store.deleted.covers(topic, log_at) {
            return Ok(());
        }
        if !self.seen.contains_key(topic) {
            self.seen.insert(topic.to_string(), BTreeMap::new());
        }
        let Some(queues) = self.seen.get_mut(topic) else { return Ok(()) };
        let seen = queues.entry(id).or_insert_with(|| Seen { first: offset, next: offset, ..Seen::default() });
        if offset < seen.next {
            // Java leaves the records of a topic that was deleted and made again.
            *seen = Seen { first: offset, next: offset, restarts: Some((log_at, seen.next)), ..Seen::default() };
        }
        let from = seen.next.max(offset - GAP_MAX);
        for n in from..offset {
            let entry = store.files.entry(topic, id, n).at("read", store.files.dir())?;
            seen.add(Kind::Hole, n, || format!("the log goes on with the message at {offset}"));
            let is_entry = |e: &Entry| e.is_written() && !e.is_filler();
            if let Some(entry) = entry.filter(is_entry).filter(|_| seen.holes.len() < HOLES_MAX) {
                seen.holes.push((n, entry));
            }
        }
        seen.next = offset + 1;
        let expected = Entry {
            log_at,
            len: record.len() as u32,
            tags_code: recover::entry_tags_code(&store.options.delay_levels_ms, record),
        };
        self.compared += 1;
        match store.files.entry(topic, id, offset).at("read", store.files.dir())?.filter(Entry::is_written) {
            None if !store.is_dispatched(record) => {
                seen.add(Kind::Unwritten, offset, String::new);
            }
            None => seen.add(Kind::Missing, offset, || format!("the record lies at log offset {log_at}")),
            Some(found) if (found.log_at, found.len) != (expected.log_at, expected.len) => {
                let (at, len) = (found.log_at, found.len);
                seen.add(Kind::Place, offset, || {
                    format!("it says log offset {at}, {len} bytes; the record lies at {log_at}, {} bytes", expected.len)
                });
            }
            Some(found) => {
                let code = if queue_ext::is_address(found.tags_code) {
                    let unit = store.ext.tags_code(topic, id, found.tags_code, true);
                    // The tag of a unit that is lost is read from the record itself.
                    unit.at("read", store.files.dir())?.unwrap_or(expected.tags_code)
                } else {
                    found.tags_code
                };
                // Levels are a setting of the broker; a due time that is not theirs is one nevertheless.
                let is_due = topic == recover::DELAY_TOPIC && code >= record.store_ms();
                if code != expected.tags_code && !is_due {
                    seen.add(Kind::Tag, offset, || {
                        format!("it says tag code {code}, that of the record is {}", expected.tags_code)
                    });
                }
            }
        }
        Ok(())
    }

    /// Looks at the entries that no record has asked for, and says all that was found.
    pub(super) fn finish(
        &mut self,
        log_end: u64,
        damaged: &[Damage],
        is_topic: &dyn Fn(&str) -> bool,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let store = self.store;
        let mut on_disk = store.files.queues()?;
        on_disk.sort();
        for (topic, id) in &on_disk {
            let mut none = Seen::default();
            let seen = self.seen.get_mut(topic).and_then(|q| q.get_mut(id));
            let has_records = seen.is_some();
            let seen = seen.unwrap_or(&mut none);
            let rest = |seen: &mut Seen, n: i64, entry: Entry| -> Result<(), Error> {
                let is_expired = entry.log_at < store.log.start() && (n < seen.first || !has_records);
                if is_expired {
                    return Ok(());
                }
                if damaged.iter().any(|damage| damage.part.contains(&entry.log_at)) {
                    if !(seen.first..seen.next).contains(&n) {
                        seen.add(Kind::Hole, n, || DAMAGED.to_string());
                    }
                    return Ok(());
                }
                let detail = || format!("it says log offset {}, {} bytes", entry.log_at, entry.len);
                if entry.log_end() > log_end {
                    seen.add(Kind::Past, n, || format!("{}; the log ends at {log_end}", detail()));
                } else if !store.is_multi(topic, *id, entry)? {
                    seen.add(Kind::Alien, n, detail);
                }
                Ok(())
            };
            for (n, entry) in std::mem::take(&mut seen.holes) {
                rest(seen, n, entry)?;
            }
            let known = seen.first..seen.next;
            store.files.each_entry(topic, *id, |n, entry| match known.contains(&n) || entry.is_filler() {
                true => Ok(()),
                false => rest(seen, n, entry),
            })?;
            if !has_records {
                store.say(topic, *id, seen, findings);
            }
        }
        let mut all: Vec<(&String, &BTreeMap<i32, Seen>)> = self.seen.iter().collect();
        all.sort_by_key(|(topic, _)| *topic);
        for (topic, queues) in all {
            for (id, seen) in queues {
                if on_disk.binary_search(&(topic.clone(), *id)).is_err() && !is_topic(topic) {
                    let what = format!(
                        "{} records of a queue without files, in a topic that was deleted",
                        seen.next - seen.first
                    );
                    let advice = "nothing: they go with their files of the log";
                    let file = store.name(store.files.dir()).join(topic).join(id.to_string());
                    findings.add(Finding { severity: Severity::Warn, file, offset: None, what, advice });
                } else {
                    store.say(topic, *id, seen, findings);
                }
            }
        }
        Ok(())
    }

    /// First offset and one past the last of each queue.
    pub(super) fn ranges(&self, log_end: u64) -> Result<QueueStats, Error> {
        let store = self.store;
        let mut ranges = BTreeMap::new();
        for (topic, id) in store.files.queues()? {
            let (min, max) = store.files.range(&topic, id, store.log.start(), log_end)?;
            ranges.insert((topic, id), QueueStat { min, max });
        }
        for (topic, queues) in &self.seen {
            for (id, seen) in queues {
                let range = ranges.entry((topic.clone(), *id)).or_default();
                *range = QueueStat { min: seen.first, max: range.max.max(seen.next) };
            }
        }
        Ok(ranges)
    }
}

impl Inspect {
    /// Whether the entry of a record should be in its file.
    fn is_dispatched(&self, record: &Record<'_>) -> bool {
        match self.own() {
            _ if !self.crashed => true,
            Some(own) => record.log_offset() as u64 + record.len() as u64 <= own.dispatched,
            None => record.store_ms() < self.java.physic_ms.min(self.java.logics_ms) - JAVA_SLACK_MS,
        }
    }

    /// Whether an entry points at a record that was also dispatched to this (light) queue, or that a deleted topic left.
    fn is_multi(&self, topic: &str, id: i32, entry: Entry) -> Result<bool, Error> {
        let mut is = false;
        let (from, to) = (entry.log_at, entry.log_end());
        if entry.len > 0 && from >= self.log.start() && self.log.segment_of(from).is_some_and(|s| to <= s.end()) {
            scan::walk(&self.log, from, to, entry.len as usize, |record| {
                let to = record.property(INNER_MULTI_DISPATCH).unwrap_or_default();
                let is_here = record.log_offset() as u64 == from && record.len() as u32 == entry.len;
                is = is_here && names::is_lmq(topic) && id == 0 && to.split(',').any(|name| name == topic);
                false
            })?;
        }
        Ok(is)
    }

    fn say(&self, topic: &str, id: i32, seen: &Seen, findings: &mut Findings) {
        let place = |offset: i64| {
            let (path, at) = self.files.place(topic, id, offset.max(0));
            (self.name(&path), Some(at))
        };
        if let Some((log_at, before)) = seen.restarts {
            let (file, offset) = self.log_place(log_at);
            let what =
                format!("the offsets of {topic}-{id} go back from {before} to {}: the topic was made anew", seen.first);
            let advice = "nothing, if it was deleted in between";
            findings.add(Finding { severity: Severity::Warn, file, offset, what, advice });
        }
        for (kind, Bad { offset: n, count, detail }) in &seen.bad {
            let (file, offset) = place(*n);
            let after_kill = if self.crashed { Severity::Warn } else { Severity::Error };
            let of = format!("of {topic}-{id} from offset {n} on");
            let (severity, what, advice) = match kind {
                Kind::Unwritten => {
                    let what = format!("{count} entries {of} are not written yet");
                    (Severity::Warn, what, "nothing: the next start writes them, as after each kill")
                }
                Kind::Missing => (Severity::Error, format!("{count} entries {of} are missing; {detail}"), REBUILD),
                Kind::Place => (Severity::Error, format!("{count} entries {of} point elsewhere; {detail}"), REBUILD),
                Kind::Tag => {
                    (Severity::Error, format!("{count} entries {of} have a wrong tag code; {detail}"), REBUILD)
                }
                Kind::Hole => {
                    let what = format!("{count} messages {of} are not in the log; {detail}");
                    (Severity::Warn, what, "nothing: consumers are led past them")
                }
                Kind::Past => {
                    (after_kill, format!("{count} entries {of} point behind the end of the log; {detail}"), REBUILD)
                }
                Kind::Alien => (
                    Severity::Error,
                    format!("{count} entries {of} point at no record of this queue; {detail}"),
                    REBUILD,
                ),
            };
            findings.add(Finding { severity, file, offset, what, advice });
        }
    }
}
