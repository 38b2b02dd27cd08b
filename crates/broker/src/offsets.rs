//! Consumer offsets. `config/consumerOffset.json` is Java's; between two writes of it the journal has every commit.
//!
//! An acknowledged commit is in the journal. A commit backwards is logged: somebody reset the group, or a client is wrong.
//! Java: `ConsumerOffsetManager`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cometmq_store::disk::Disk;
use cometmq_wire::body::{ConsumerOffsetTable, DataVersion};
use cometmq_wire::json;

use crate::journal::Journal;
use crate::json_file::JsonFile;

/// Journal size at which the JSON is written before its time.
const JOURNAL_BYTES_MAX: u64 = 8 << 20;

pub(crate) struct Offsets {
    state: Mutex<State>,
    /// How many resets wait, so that a pull need not take the lock to see that none does.
    resets: AtomicUsize,
    file: JsonFile,
    /// Held while the file is written: one writer at a time.
    writing: Mutex<()>,
}

struct State {
    /// `topic@group` → queue → offset.
    table: HashMap<String, BTreeMap<i32, i64>>,
    /// What the file has that we do not interpret yet.
    pull_offsets: BTreeMap<String, BTreeMap<i32, i64>>,
    /// Offsets that were set from outside and that no consumer has seen yet.
    resets: HashMap<String, BTreeMap<i32, i64>>,
    version: DataVersion,
    journal: Journal,
    /// The JSON on disk, by which the journal is bound.
    on_disk: Vec<u8>,
    dirty: bool,
}

impl State {
    fn json(&self) -> Vec<u8> {
        let mut whole = ConsumerOffsetTable {
            data_version: self.version,
            offset_table: self.table.iter().map(|(k, q)| (k.clone(), q.clone())).collect(),
            pull_offset_table: self.pull_offsets.clone(),
            ..ConsumerOffsetTable::default()
        };
        whole.group_topic_map = whole.group_topics();
        json::to_pretty(&whole)
    }
}

pub(crate) fn key(topic: &str, group: &str) -> String {
    format!("{topic}@{group}")
}

impl Offsets {
    /// Loads the JSON and the journal; `end_of` gives the end of a queue, which no offset may pass.
    pub(crate) fn load(
        disk: Arc<dyn Disk>,
        root: &Path,
        end_of: impl Fn(&str, i32) -> Option<i64>,
    ) -> io::Result<Self> {
        let file = JsonFile::new(disk.clone(), root, "consumerOffset.json");
        let loaded = file.load::<ConsumerOffsetTable>()?.unwrap_or_default();
        let journal = Journal::new(disk, root);
        let on_disk = file.load_bytes()?;
        let mut table: HashMap<String, BTreeMap<i32, i64>> = loaded.offset_table.into_iter().collect();
        for commit in journal.load(&on_disk)? {
            table.entry(commit.key).or_default().insert(commit.queue_id, commit.offset);
        }
        for (key, queues) in &mut table {
            let topic = key.split('@').next().unwrap_or_default();
            for (queue_id, offset) in queues {
                if let Some(end) = end_of(topic, *queue_id).filter(|end| *offset > *end) {
                    tracing::warn!(
                        key,
                        queue_id,
                        offset = *offset,
                        end,
                        "a committed offset lies past the end of its queue"
                    );
                    *offset = end;
                }
            }
        }
        let (version, pull_offsets) = (loaded.data_version, loaded.pull_offset_table);
        let mut state =
            State { table, pull_offsets, resets: HashMap::new(), version, journal, on_disk: Vec::new(), dirty: false };
        let bytes = state.json();
        file.write(&bytes)?;
        state.journal.start(&bytes)?;
        state.on_disk = bytes;
        Ok(Self { state: Mutex::new(state), resets: AtomicUsize::new(0), file, writing: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, topic: &str, group: &str, queue_id: i32) -> Option<i64> {
        self.state().table.get(&key(topic, group))?.get(&queue_id).copied()
    }

    /// The topics that a group has offsets in.
    pub(crate) fn topics_of(&self, group: &str) -> BTreeSet<String> {
        let state = self.state();
        let pairs = state.table.keys().filter_map(|k| k.split_once('@'));
        pairs.filter(|(_, g)| *g == group).map(|(topic, _)| topic.to_string()).collect()
    }

    /// The groups that have offsets in a topic.
    pub(crate) fn groups_of(&self, topic: &str) -> BTreeSet<String> {
        let state = self.state();
        let pairs = state.table.keys().filter_map(|k| k.split_once('@'));
        pairs.filter(|(t, _)| *t == topic).map(|(_, group)| group.to_string()).collect()
    }

    /// Forgets the offsets of (topic, group) pairs, on disk too.
    pub(crate) fn remove(&self, is_gone: impl Fn(&str, &str) -> bool, now_ms: i64) -> io::Result<()> {
        {
            let mut state = self.state();
            let gone = |key: &str| key.split_once('@').is_some_and(|(topic, group)| is_gone(topic, group));
            state.table.retain(|key, _| !gone(key));
            state.pull_offsets.retain(|key, _| !gone(key));
            state.resets.retain(|key, _| !gone(key));
            self.count_resets(&state);
            state.dirty = true;
        }
        self.flush(now_ms)
    }

    /// Sets offsets that the group's consumers take up by their next pull ([`Offsets::take_reset`]).
    pub(crate) fn reset(&self, topic: &str, group: &str, offsets: &BTreeMap<i32, i64>) -> io::Result<()> {
        let key = key(topic, group);
        let mut state = self.state();
        for (queue_id, offset) in offsets {
            state.journal.append(&key, *queue_id, *offset)?;
            state.table.entry(key.clone()).or_default().insert(*queue_id, *offset);
            state.resets.entry(key.clone()).or_default().insert(*queue_id, *offset);
        }
        state.dirty = true;
        self.count_resets(&state);
        Ok(())
    }

    fn count_resets(&self, state: &State) {
        self.resets.store(state.resets.values().map(BTreeMap::len).sum(), Ordering::Release);
    }

    /// Whether a reset waits for the next pull: until then commits do not count.
    pub(crate) fn has_reset(&self, topic: &str, group: &str, queue_id: i32) -> bool {
        self.resets.load(Ordering::Acquire) > 0
            && self.state().resets.get(&key(topic, group)).is_some_and(|q| q.contains_key(&queue_id))
    }

    pub(crate) fn take_reset(&self, topic: &str, group: &str, queue_id: i32) -> Option<i64> {
        if self.resets.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut state = self.state();
        let key = key(topic, group);
        let queues = state.resets.get_mut(&key)?;
        let offset = queues.remove(&queue_id);
        if queues.is_empty() {
            state.resets.remove(&key);
        }
        self.count_resets(&state);
        offset
    }

    /// Commits. On an error the commit is neither kept nor to be acknowledged.
    pub(crate) fn commit(
        &self,
        client: &dyn std::fmt::Display,
        topic: &str,
        group: &str,
        queue_id: i32,
        offset: i64,
    ) -> io::Result<()> {
        let key = key(topic, group);
        let mut state = self.state();
        let before = state.table.get(&key).and_then(|q| q.get(&queue_id)).copied();
        if before == Some(offset) {
            return Ok(());
        }
        state.journal.append(&key, queue_id, offset)?;
        if let Some(before) = before.filter(|b| *b > offset) {
            tracing::warn!(%client, topic, group, queue_id, before, offset, "a consumer offset goes backwards");
        }
        state.table.entry(key).or_default().insert(queue_id, offset);
        state.dirty = true;
        Ok(())
    }

    /// Whether the journal has grown so far that it is time to write the JSON.
    pub(crate) fn is_large(&self) -> bool {
        self.state().journal.bytes() > JOURNAL_BYTES_MAX
    }

    /// Writes the JSON if anything changed. Blocks.
    pub(crate) fn flush(&self, now_ms: i64) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = {
            let mut state = self.state();
            if !state.dirty {
                return Ok(());
            }
            let state_version = state.version.state_version;
            state.version.next(now_ms, state_version);
            let bytes = state.json();
            let before = std::mem::take(&mut state.on_disk);
            let rotated = state.journal.rotate(&before, &bytes);
            state.on_disk = before;
            rotated?;
            state.dirty = false;
            bytes
        };
        let written = self.file.write(&bytes);
        let mut state = self.state();
        match written {
            Ok(()) => {
                state.on_disk = bytes;
                state.journal.drop_old()
            }
            Err(error) => {
                state.dirty = true;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cometmq_store::disk::Faulty;

    fn load(disk: &Faulty) -> Offsets {
        Offsets::load(Arc::new(disk.clone()), Path::new("/s"), |_, _| None).unwrap()
    }

    fn disk() -> Faulty {
        let disk = Faulty::healthy();
        disk.create_dirs(Path::new("/s/comet")).unwrap();
        disk
    }

    #[test]
    fn an_acknowledged_commit_survives_a_crash_at_any_time() {
        let disk = disk();
        let first = load(&disk);
        first.commit(&"c", "t", "g", 0, 5).unwrap();
        assert_eq!(load(&disk).find("t", "g", 0), Some(5));
        let second = load(&disk);
        second.commit(&"c", "t", "g", 0, 6).unwrap();
        second.commit(&"c", "t", "g", 3, 1).unwrap();
        second.flush(10).unwrap();
        second.commit(&"c", "t", "g", 0, 7).unwrap();
        let third = load(&disk);
        assert_eq!([0, 1, 3].map(|q| third.find("t", "g", q)), [Some(7), None, Some(1)]);
    }

    #[test]
    fn a_failed_write_of_the_file_loses_nothing() {
        let disk = disk();
        let offsets = load(&disk);
        offsets.commit(&"c", "t", "g", 0, 5).unwrap();
        for round in 0..3 {
            disk.fail_syncs(true);
            assert!(offsets.flush(1).is_err());
            offsets.commit(&"c", "t", "g", 1, round).unwrap();
            disk.fail_syncs(false);
            let again = load(&disk.surviving_kill());
            assert_eq!([0, 1].map(|q| again.find("t", "g", q)), [Some(5), Some(round)]);
        }
        offsets.flush(2).unwrap();
        assert_eq!([0, 1].map(|q| load(&disk).find("t", "g", q)), [Some(5), Some(2)]);
    }

    #[test]
    fn an_offset_past_the_end_of_its_queue_is_brought_back() {
        let disk = disk();
        load(&disk).commit(&"c", "t", "g", 0, 50).unwrap();
        let offsets = Offsets::load(Arc::new(disk.clone()), Path::new("/s"), |_, _| Some(20)).unwrap();
        assert_eq!(offsets.find("t", "g", 0), Some(20));
    }
}
