//! The index against the log. Items follow each other as the keys of records do, so both are read side by side: each item must be
//! a key of the record that it points at, each key must have an item. The chain of each slot is followed in a table of the newest items, one
//! file at a time.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use cometmq_wire::record::Record;

use super::{Finding, Findings, Inspect, Severity};
use crate::Error;
use crate::disk::{File, Open};
use crate::error::IoContext;
use crate::index::{self, each_key};
use crate::index_file::{self, Geometry, HEADER_BYTES, Header, Item};
use crate::scan::Damage;

/// Items without a record that are remembered: the first that is not explained is said.
const STRAYS_MAX: usize = 4096;
const REBUILD: &str = "repair sets the index aside in comet/ and makes it again from the log";

struct Reader {
    path: PathBuf,
    file: Arc<dyn File>,
    header: Header,
    /// Number of the first of `items`.
    number: u32,
    items: VecDeque<Item>,
    /// Slot → newest item so far.
    newest: Vec<u32>,
    /// Kinds that were said of this file, one each: damage of an index comes in many places.
    said: Vec<&'static str>,
}

pub(super) struct Keys<'a> {
    store: &'a Inspect,
    geometry: Geometry,
    files: VecDeque<(PathBuf, Arc<dyn File>, Header)>,
    reader: Option<Reader>,
    hashes: Vec<u32>,
    taken: Vec<u32>,
    /// Keys behind the last item, and the log offset of the first record that has one.
    behind: (u64, u64),
    /// Items that point at no record: the log offset, and what there is to say unless it is damaged there.
    strays: Vec<(u64, Finding)>,
    last_file: PathBuf,
    /// The file of which it was said that its items are not the keys of records.
    said: Option<PathBuf>,
    pub(super) compared: u64,
}

impl<'a> Keys<'a> {
    pub(super) fn open(store: &'a Inspect, findings: &mut Findings) -> Result<Self, Error> {
        let dir = store.options.root.join("index");
        let mut names: Vec<String> = match store.disk.list(&dir) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => other.at("list", &dir)?.into_iter().filter(|e| !e.is_dir).map(|e| e.name).collect(),
        };
        names.retain(|name| index::is_name(name));
        names.sort();
        let geometry = index::geometry(store.disk.as_ref(), &dir, &names, &store.options)?;
        let mut files: VecDeque<(PathBuf, Arc<dyn File>, Header)> = VecDeque::new();
        let last = names.last().map(|name| dir.join(name));
        let error = |findings: &mut Findings, path: &PathBuf, what: String| {
            let (file, advice) = (store.name(path), REBUILD);
            findings.add(Finding { severity: Severity::Error, file, offset: Some(0), what, advice });
        };
        for path in names.iter().map(|name| dir.join(name)) {
            let file = store.disk.open(&path, Open::Read).at("open", &path)?;
            let (bytes, expected) = (file.size().at("stat", &path)?, geometry.file_bytes());
            if bytes == 0 && store.crashed && Some(&path) == last.as_ref() {
                let (file, what) = (store.name(&path), "an index file that a crash left empty".to_string());
                let advice = "nothing: the next start sets it aside";
                findings.add(Finding { severity: Severity::Warn, file, offset: None, what, advice });
                continue;
            }
            if bytes != expected {
                error(
                    findings,
                    &path,
                    format!("an index file of {bytes} bytes, expected {expected} by maxHashSlotNum and maxIndexNum"),
                );
                continue;
            }
            match Header::read(file.as_ref(), geometry).at("read", &path)? {
                Err(why) => error(findings, &path, format!("the header of an index file cannot be true: {why}")),
                Ok(header) => {
                    if files.back().is_some_and(|(_, _, b)| header.begin_at < b.end_at && !header.is_empty()) {
                        error(
                            findings,
                            &path,
                            format!(
                                "it begins at log offset {}, before the end of the file before it",
                                header.begin_at
                            ),
                        );
                    }
                    files.push_back((path, file, header));
                }
            }
        }
        let mut this = Self {
            store,
            geometry,
            files,
            reader: None,
            hashes: Vec::new(),
            taken: Vec::new(),
            behind: (0, 0),
            strays: Vec::new(),
            last_file: dir,
            said: None,
            compared: 0,
        };
        this.next_file(findings)?;
        Ok(this)
    }

    /// Ends the file that was read, if one was, and starts with the next that has items.
    fn next_file(&mut self, findings: &mut Findings) -> Result<(), Error> {
        loop {
            if let Some(reader) = self.reader.take() {
                self.last_file.clone_from(&reader.path);
                self.check_slots(reader, findings)?;
            }
            let Some((path, file, header)) = self.files.pop_front() else { return Ok(()) };
            let newest = vec![0; self.geometry.slots as usize];
            let items = VecDeque::new();
            let mut reader = Reader { path, file, header, number: 1, items, newest, said: Vec::new() };
            let first = self.fill(&mut reader)?;
            if let Some(first) = first
                && first.log_at != header.begin_at
            {
                let what =
                    format!("the header begins at log offset {}, its first item at {}", header.begin_at, first.log_at);
                self.say(&mut reader, 16, "begin", what, findings);
            }
            let has_items = first.is_some();
            self.reader = Some(reader);
            if has_items {
                return Ok(());
            }
        }
    }

    fn fill(&self, reader: &mut Reader) -> Result<Option<Item>, Error> {
        if reader.items.is_empty() && reader.number < reader.header.count {
            let items = index_file::read_items(reader.file.as_ref(), self.geometry, reader.number, reader.header.count);
            reader.items = items.at("read", &reader.path)?;
        }
        Ok(reader.items.front().copied())
    }

    fn say(&self, reader: &mut Reader, offset: u64, kind: &'static str, what: String, findings: &mut Findings) {
        if !reader.said.contains(&kind) {
            reader.said.push(kind);
            let (file, offset) = (self.store.name(&reader.path), Some(offset));
            findings.add(Finding { severity: Severity::Error, file, offset, what, advice: REBUILD });
        }
    }

    /// Takes the next item, having followed its chain.
    fn take(&mut self, findings: &mut Findings) -> Result<(), Error> {
        let Some(mut reader) = self.reader.take() else { return Ok(()) };
        if let Some(item) = reader.items.pop_front() {
            let (number, slot) = (reader.number, (item.hash % self.geometry.slots) as usize);
            reader.number += 1;
            self.compared += 1;
            if item.before != reader.newest[slot] {
                let what = format!(
                    "item {number} follows item {} in the chain of its slot {slot}, expected {}",
                    item.before, reader.newest[slot]
                );
                self.say(&mut reader, self.geometry.item_at(number) + 16, "chain", what, findings);
            }
            reader.newest[slot] = number;
            if number + 1 == reader.header.count && item.log_at != reader.header.end_at {
                let what = format!(
                    "the header ends at log offset {}, its last item is at {}",
                    reader.header.end_at, item.log_at
                );
                self.say(&mut reader, 24, "end", what, findings);
            }
        }
        let is_done = self.fill(&mut reader)?.is_none();
        self.reader = Some(reader);
        if is_done { self.next_file(findings) } else { Ok(()) }
    }

    fn peek(&self) -> Option<Item> {
        self.reader.as_ref()?.items.front().copied()
    }

    /// The items at or before log offset `upto`: those at it are taken, others belong to nothing.
    fn advance(&mut self, upto: u64, findings: &mut Findings) -> Result<(), Error> {
        while let Some(item) = self.peek().filter(|item| item.log_at <= upto) {
            if item.log_at == upto {
                self.taken.push(item.hash);
            } else if item.log_at >= self.store.log.start() {
                self.stray(item, "where no record starts");
            }
            self.take(findings)?;
        }
        Ok(())
    }

    fn stray(&mut self, item: Item, why: &str) {
        if let Some(reader) = self.reader.as_ref().filter(|_| self.strays.len() < STRAYS_MAX) {
            let what = format!("item {} points at log offset {}, {why}", reader.number, item.log_at);
            let (file, offset) = (self.store.name(&reader.path), Some(self.geometry.item_at(reader.number)));
            self.strays.push((item.log_at, Finding { severity: Severity::Error, file, offset, what, advice: REBUILD }));
        }
    }

    pub(super) fn record(&mut self, record: &Record<'_>, findings: &mut Findings) -> Result<(), Error> {
        let at = record.log_offset() as u64;
        self.taken.clear();
        let place = self.reader.as_ref().map(|reader| (reader.path.clone(), self.geometry.item_at(reader.number)));
        self.advance(at, findings)?;
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        each_key(record, |hash| hashes.push(hash));
        let missing = hashes.iter().filter(|hash| !self.taken.contains(hash)).count() as u64;
        let alien = self.taken.iter().filter(|hash| !hashes.contains(hash)).count();
        if let Some((path, offset)) = place.filter(|_| alien > 0 || (missing > 0 && self.peek().is_some())) {
            // One item out of place makes all that follow it wrong.
            if self.said.as_ref() != Some(&path) {
                let what = format!(
                    "the items of the record at log offset {at} are not its keys: {missing} are missing, {alien} are others"
                );
                let (file, offset) = (self.store.name(&path), Some(offset));
                findings.add(Finding { severity: Severity::Error, file, offset, what, advice: REBUILD });
                self.said = Some(path);
            }
        } else if missing > 0 {
            if self.behind.0 == 0 {
                self.behind.1 = at;
            }
            self.behind.0 += missing;
        }
        self.hashes = hashes;
        Ok(())
    }

    /// What is left points behind the end of the log. An item whose record is damaged is right.
    pub(super) fn finish(&mut self, damaged: &[Damage], findings: &mut Findings) -> Result<(), Error> {
        while let Some(item) = self.peek() {
            self.stray(item, "behind the end of the log");
            self.take(findings)?;
        }
        let mut said: Option<PathBuf> = None;
        for (log_at, finding) in std::mem::take(&mut self.strays) {
            let is_lost = damaged.iter().any(|damage| damage.part.contains(&log_at));
            if !is_lost && said.as_ref() != Some(&finding.file) {
                said = Some(finding.file.clone());
                findings.add(finding);
            }
        }
        let (keys, from) = self.behind;
        if keys > 0 && self.store.options.index {
            let what = format!("{keys} keys of records from log offset {from} on are not in the index yet");
            let (file, advice) = (self.store.name(&self.last_file), "nothing: the next start goes on with it");
            findings.add(Finding { severity: Severity::Warn, file, offset: None, what, advice });
        }
        Ok(())
    }

    /// Each slot names the newest item of its chain; one that the header does not count (yet) leads there.
    fn check_slots(&self, mut reader: Reader, findings: &mut Findings) -> Result<(), Error> {
        let (file, geometry, count) = (reader.file.clone(), self.geometry, reader.header.count);
        let mut wrong: Option<(u32, u32)> = None;
        let mut used = 0;
        let newest = std::mem::take(&mut reader.newest);
        let each = index_file::each_slot(file.as_ref(), geometry, |slot, named| {
            let expected = newest[slot as usize];
            used += u32::from(expected > 0);
            if wrong.is_none() && index_file::settle(file.as_ref(), geometry, count, named)? != expected {
                wrong = Some((slot, named));
            }
            Ok(())
        });
        each.at("read", &reader.path)?;
        if let Some((slot, named)) = wrong {
            let what = format!("slot {slot} names item {named}, the newest of its chain is {}", newest[slot as usize]);
            self.say(&mut reader, geometry.slot_at(slot), "slot", what, findings);
        }
        if used != reader.header.used_slots {
            let what = format!("the header counts {} used slots, there are {used}", reader.header.used_slots);
            self.say(&mut reader, HEADER_BYTES - 8, "used", what, findings);
        }
        Ok(())
    }
}
