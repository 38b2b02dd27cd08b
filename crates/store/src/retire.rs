//! Deleting a topic: its queues are retired and their files removed; its records stay in the log until they expire.
//!
//! Disk     `comet/deleted`: a line a topic, `log offset <space> topic`. Records of the topic before that offset belong to a life
//!          that is over: a recovery that reads them again does not bring them back
//! Order    the line is durable → files are removed → the caller may answer
//! Java     `DefaultMessageStore.deleteTopics`

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::disk::Disk;
use crate::error::IoContext;
use crate::store::{Inner, lock};
use crate::{Error, Store};

/// Topic → log offset at its last deletion.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Deleted(HashMap<String, u64>);

const NAME: &str = "deleted";

fn text(disk: &dyn Disk, own_dir: &Path) -> Result<String, Error> {
    let path = own_dir.join(NAME);
    match disk.read_all(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => Ok(String::from_utf8_lossy(&read.at("read", &path)?).into_owned()),
    }
}

fn line(line: &str) -> Option<(String, u64)> {
    let (at, topic) = line.split_once(' ')?;
    Some((topic.to_string(), at.parse().ok()?))
}

impl Deleted {
    /// Lines whose records are gone from the log are dropped.
    pub(crate) fn read(disk: &dyn Disk, own_dir: &Path, log_start: u64) -> Result<Self, Error> {
        let text = text(disk, own_dir)?;
        Ok(Self(text.lines().filter_map(line).filter(|(_, at)| *at > log_start).collect()))
    }

    /// The first line that is none, from 1 on.
    pub(crate) fn bad_line(disk: &dyn Disk, own_dir: &Path) -> Result<Option<usize>, Error> {
        Ok(text(disk, own_dir)?.lines().position(|l| line(l).is_none()).map(|at| at + 1))
    }

    fn write(&self, disk: &dyn Disk, own_dir: &Path) -> Result<(), Error> {
        let mut lines: Vec<String> = self.0.iter().map(|(topic, at)| format!("{at} {topic}\n")).collect();
        lines.sort();
        let path = own_dir.join(NAME);
        disk.replace(&path, &own_dir.join("deleted.new"), lines.concat().as_bytes()).at("replace", &path)
    }

    /// Whether a record at `log_offset` belongs to a life of the topic that is over.
    pub(crate) fn covers(&self, topic: &str, log_offset: u64) -> bool {
        !self.0.is_empty() && self.0.get(topic).is_some_and(|at| log_offset < *at)
    }
}

impl Store {
    /// Deletes the queues of a topic. Its messages are not readable any more; a topic of the same name starts at offset 0.
    pub fn delete_topic(&self, topic: &str) -> Result<(), Error> {
        self.delete_topic_unless(topic, &|| false).map(|_| ())
    }

    /// As [`Store::delete_topic`], unless the topic turns out to be wanted; no message is appended between that answer and
    /// the deletion. Returns whether it was deleted.
    pub fn delete_topic_unless(&self, topic: &str, is_wanted: &dyn Fn() -> bool) -> Result<bool, Error> {
        self.0.delete_topic(topic, is_wanted)
    }

    /// The topics that have files of queues. Reads directories.
    pub fn queue_topics(&self) -> Result<Vec<String>, Error> {
        let mut topics: Vec<String> = self.0.files.queues()?.into_iter().map(|(topic, _)| topic).collect();
        topics.sort();
        topics.dedup();
        Ok(topics)
    }
}

impl Inner {
    fn delete_topic(&self, topic: &str, is_wanted: &dyn Fn() -> bool) -> Result<bool, Error> {
        let own_dir = self.options.own_dir();
        // One deletion at a time; new queues of the topic are made only after it.
        let mut deleted = lock(&self.deleted);
        {
            // Under the append lock: what is appended later gets an offset at or behind `at`, into queues that are not retired.
            let head = lock(&self.head);
            if is_wanted() {
                return Ok(false);
            }
            deleted.0.insert(topic.to_string(), head.at);
            for queue in self.take_queues(topic) {
                queue.0.retired.store(true, Ordering::Release);
                queue.0.end.store(queue.min(), Ordering::SeqCst);
            }
        }
        deleted.write(self.disk.as_ref(), &own_dir)?;
        let _dispatching = lock(&self.dispatching);
        self.files.delete_topic(topic)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Faulty;

    #[test]
    fn lines_survive_and_expire_with_the_log() {
        let disk = Faulty::healthy();
        let dir = Path::new("/s/comet");
        disk.create_dirs(dir).unwrap();
        let deleted = Deleted([("a b".to_string(), 100), ("c".to_string(), 300)].into());
        deleted.write(&disk, dir).unwrap();
        assert_eq!(Deleted::read(&disk, dir, 0).unwrap(), deleted);
        let later = Deleted::read(&disk, dir, 100).unwrap();
        assert_eq!(later, Deleted([("c".to_string(), 300)].into()));
        assert!(later.covers("c", 299) && !later.covers("c", 300) && !later.covers("a b", 5));
    }
}
