//! Removing queue files whose messages the log does not have any more.
//!
//! Order    a file is taken out of the count of bytes ([`QueueFiles::doom`]), a checkpoint is written, then the file goes: a
//!          crash in between finds no less than the checkpoint says, and nothing has to be rebuilt
//! Callers  hold `Inner::dispatching`, so that no file goes between being written and being synced
//! Java     `MappedFileQueue.deleteExpiredFileByOffset`

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::QueueFiles;
use crate::Error;
use crate::disk::Open;
use crate::error::IoContext;
use crate::log::file_name;
use crate::queue::ENTRY_BYTES;
use crate::store::lock;

impl QueueFiles {
    /// The files of a queue that hold entries below `min` only, without the last one: the next offset follows from it.
    pub(crate) fn expired(&self, topic: &str, id: i32, min: i64) -> Result<Vec<PathBuf>, Error> {
        let dir = self.queue_dir(topic, id);
        let mut bases = self.bases(&dir)?;
        bases.pop();
        let is_expired = |base: &u64| base + self.file_bytes <= min as u64 * ENTRY_BYTES;
        Ok(bases.into_iter().filter(is_expired).map(|base| dir.join(file_name(base))).collect())
    }

    /// Whether a queue has more than one file.
    pub(crate) fn has_many(&self, topic: &str, id: i32) -> Result<bool, Error> {
        Ok(self.bases(&self.queue_dir(topic, id))?.len() > 1)
    }

    /// Takes files out of [`QueueFiles::bytes`] before they are removed.
    pub(crate) fn doom(&self, paths: &[PathBuf]) -> Result<(), Error> {
        for path in paths {
            let bytes = self.disk.open(path, Open::Read).and_then(|f| f.size()).at("stat", path)?;
            if lock(&self.open).doomed.insert(path.clone()) {
                self.bytes.fetch_sub(bytes.min(self.bytes()), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Removes a doomed file, unless its topic was deleted meanwhile.
    pub(crate) fn remove_doomed(&self, path: &Path) -> Result<bool, Error> {
        let mut open = lock(&self.open);
        if !open.doomed.contains(path) {
            return Ok(false);
        }
        open.by_path.remove(path);
        open.unsynced.remove(path);
        self.disk.remove(path).at("remove", path)?;
        open.doomed.remove(path);
        drop(open);
        // One by one, the oldest first: a power cut leaves no gap between the files of a queue.
        path.parent().map_or(Ok(()), |dir| self.disk.sync_dir(dir).at("sync", dir))?;
        Ok(true)
    }

    /// Removes a queue whose messages are all gone.
    pub(crate) fn delete_queue(&self, topic: &str, id: i32) -> Result<(), Error> {
        let dir = self.queue_dir(topic, id);
        let paths: Vec<PathBuf> = self.bases(&dir)?.into_iter().map(|base| dir.join(file_name(base))).collect();
        self.doom(&paths)?;
        paths.iter().try_for_each(|path| self.remove_doomed(path).map(|_| ()))?;
        lock(&self.open).new_in.remove(&dir);
        self.disk.remove_dir(&dir).at("remove", &dir)?;
        let topic_dir = self.dir.join(topic);
        if !self.disk.list(&topic_dir).at("list", &topic_dir)?.is_empty() {
            return self.disk.sync_dir(&topic_dir).at("sync", &topic_dir);
        }
        lock(&self.open).new_in.remove(&topic_dir);
        self.disk.remove_dir(&topic_dir).at("remove", &topic_dir)?;
        self.disk.sync_dir(&self.dir).at("sync", &self.dir)
    }
}
