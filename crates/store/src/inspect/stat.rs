//! How much there is: from the ends of queues and the headers of files, and the end of the log that no queue knows yet.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cometmq_wire::record::Record;

use super::{Gap, Inspect};
use crate::Error;
use crate::append::is_hidden;
use crate::disk::Open;
use crate::error::IoContext;
use crate::index;
use crate::index_file::Header;

#[derive(Debug, Default)]
pub struct Stat {
    pub segment_bytes: u64,
    pub segments: Vec<FileStat>,
    pub log_start: u64,
    /// Behind the last whole record.
    pub log_end: u64,
    pub queue_file_bytes: u64,
    pub queue_files: u64,
    pub queues: QueueStats,
    pub index_files: Vec<FileStat>,
    pub index_keys: u64,
    /// Of the oldest and the newest record.
    pub first_ms: Option<i64>,
    pub last_ms: Option<i64>,
    pub crashed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    pub file: PathBuf,
    pub bytes: u64,
}

/// By topic and queue id.
pub type QueueStats = BTreeMap<(String, i32), QueueStat>;

/// The first offset of a queue, and one past the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStat {
    pub min: i64,
    pub max: i64,
}

impl Inspect {
    pub fn stat(&self) -> Result<Stat, Error> {
        let (log_start, last) = self.log_range();
        let mut stat = Stat {
            segment_bytes: self.log.segment_bytes,
            log_start,
            log_end: log_start,
            queue_file_bytes: self.files.file_bytes,
            crashed: self.crashed,
            ..Stat::default()
        };
        let segments = self.log.segments();
        stat.segments.extend(segments.iter().map(|s| FileStat { file: self.name(&s.path), bytes: s.bytes }));
        self.files.each_file(|_, _, _| {
            stat.queue_files += 1;
            Ok(())
        })?;
        // The last record that a queue knows is whole; what follows it is read.
        let mut from = log_start;
        for (topic, id) in self.files.queues()? {
            let (min, max) = self.files.range(&topic, id, log_start, last)?;
            let entry = self.files.entry(&topic, id, max - 1);
            if max > min
                && let Some(entry) = entry.at("read", self.files.dir())?
            {
                from = from.max(entry.log_at);
            }
            stat.queues.insert((topic, id), QueueStat { min, max });
        }
        self.records(log_start, |record| {
            stat.first_ms = Some(record.store_ms());
            false
        })?;
        let (mut log_end, mut last_ms) = (from, stat.first_ms);
        let queues = &mut stat.queues;
        let _: Vec<Gap> = self.records(from, |record: &Record<'_>| {
            log_end = record.log_offset() as u64 + record.len() as u64;
            last_ms = last_ms.max(Some(record.store_ms()));
            if !is_hidden(record.sys_flag()) && !self.files.is_batch(record.topic()) {
                let (key, next) = ((record.topic().to_string(), record.queue_id()), record.queue_offset() + 1);
                let queue = queues.entry(key).or_insert(QueueStat { min: next - 1, max: next });
                queue.max = queue.max.max(next);
            }
            true
        })?;
        (stat.log_end, stat.last_ms) = (log_end, last_ms);
        self.stat_index(&mut stat)?;
        Ok(stat)
    }

    fn stat_index(&self, stat: &mut Stat) -> Result<(), Error> {
        let dir = self.options.root.join("index");
        let listed = self.disk.list(&dir).unwrap_or_default().into_iter();
        let mut names: Vec<String> = listed.map(|e| e.name).filter(|name| index::is_name(name)).collect();
        names.sort();
        let geometry = index::geometry(self.disk.as_ref(), &dir, &names, &self.options)?;
        for path in names.iter().map(|name| dir.join(name)) {
            let file = self.disk.open(&path, Open::Read).at("open", &path)?;
            let header = Header::read(file.as_ref(), geometry).at("read", &path)?;
            stat.index_keys += header.map_or(0, |header| u64::from(header.count) - 1);
            stat.index_files.push(FileStat { file: self.name(&path), bytes: file.size().at("stat", &path)? });
        }
        Ok(())
    }
}
