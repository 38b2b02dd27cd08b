//! A configuration file in Java's JSON, with its `.bak`.
//!
//! Disk     the new content is written to `DIR/comet/`, synced, the old file becomes `.bak`, the new one takes its place
//! Crash    a missing or half-written file is read from `.bak`, as Java does
//! Threads  saves of one file are one behind the other; a save that starts later covers all changes made before it
//! Java     `ConfigManager`, `MixAll.string2File`

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cometmq_store::disk::{Disk, Open};
use cometmq_wire::json;
use serde::de::DeserializeOwned;

pub(crate) struct JsonFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    temp: PathBuf,
    changes: AtomicU64,
    /// The change that the last finished save covers.
    saved: tokio::sync::Mutex<u64>,
}

impl JsonFile {
    pub(crate) fn new(disk: Arc<dyn Disk>, root: &Path, name: &str) -> Self {
        let path = root.join("config").join(name);
        let temp = root.join("comet").join(format!("{name}.new"));
        Self { disk, path, temp, changes: AtomicU64::new(0), saved: tokio::sync::Mutex::new(0) }
    }

    fn backup(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".bak");
        PathBuf::from(name)
    }

    /// The content, or that of the backup when the file is missing or does not parse. `None` = neither is there.
    pub(crate) fn load<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let mut broken = None;
        for path in [self.path.clone(), self.backup()] {
            let bytes = match self.disk.read_all(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            match json::from_slice(&bytes) {
                Ok(value) => return Ok(Some(value)),
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "a configuration file does not parse");
                    broken = Some(format!("{}: {error}", path.display()));
                }
            }
        }
        // Starting with an empty table would overwrite what the operator may still rescue.
        broken.map_or(Ok(None), |what| Err(io::Error::new(io::ErrorKind::InvalidData, what)))
    }

    /// The bytes that [`JsonFile::load`] reads.
    pub(crate) fn load_bytes(&self) -> io::Result<Vec<u8>> {
        for path in [self.path.clone(), self.backup()] {
            match self.disk.read_all(&path) {
                Ok(bytes) if json::from_slice::<serde_json::Value>(&bytes).is_ok() => return Ok(bytes),
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        Ok(Vec::new())
    }

    /// Notes a change that [`JsonFile::save`] is to cover.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns once everything that was [`JsonFile::changed`] before the call is on disk.
    pub(crate) async fn save(self: &Arc<Self>, content: impl FnOnce() -> Vec<u8>) -> io::Result<()> {
        let wanted = self.changes.load(Ordering::SeqCst);
        let mut saved = self.saved.lock().await;
        if *saved >= wanted {
            return Ok(());
        }
        let covers = self.changes.load(Ordering::SeqCst);
        let bytes = content();
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.write(&bytes)).await.map_err(io::Error::other)??;
        *saved = covers;
        Ok(())
    }

    /// Writes now, on this thread.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        self.disk.create_dirs(dir)?;
        let temp = self.disk.open(&self.temp, Open::Create)?;
        temp.set_len(0)?;
        temp.write_all_at(bytes, 0)?;
        temp.sync_data()?;
        match self.disk.rename(&self.path, &self.backup()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        self.disk.rename(&self.temp, &self.path)?;
        self.disk.sync_dir(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cometmq_store::disk::Faulty;
    use cometmq_wire::body::TopicList;

    fn file(disk: &Faulty) -> Arc<JsonFile> {
        disk.create_dirs(Path::new("/s/comet")).unwrap();
        Arc::new(JsonFile::new(Arc::new(disk.clone()), Path::new("/s"), "x.json"))
    }

    fn topics(names: &[&str]) -> Vec<u8> {
        let list = TopicList { topic_list: names.iter().map(ToString::to_string).collect(), ..TopicList::default() };
        json::to_pretty(&list)
    }

    fn loaded(file: &JsonFile) -> Vec<String> {
        file.load::<TopicList>().unwrap().map_or(Vec::new(), |l| l.topic_list.into_iter().collect())
    }

    #[test]
    fn whenever_power_is_lost_the_old_or_the_new_content_is_read() {
        for op in 0..40 {
            for seed in 0..8 {
                let disk = Faulty::lose_power_at(op, seed);
                let file = file(&Faulty::healthy());
                drop(file);
                if disk.create_dirs(Path::new("/s/comet")).is_err() {
                    continue;
                }
                let file = JsonFile::new(Arc::new(disk.clone()), Path::new("/s"), "x.json");
                let first = file.write(&topics(&["a"])).is_ok();
                let second = first && file.write(&topics(&["a", "b"])).is_ok();
                let after = JsonFile::new(Arc::new(disk.surviving()), Path::new("/s"), "x.json");
                let found = loaded(&after);
                match (first, second) {
                    (true, true) => assert_eq!(found, ["a", "b"], "op {op} seed {seed}"),
                    (true, false) => assert!(found == ["a"] || found == ["a", "b"], "op {op} seed {seed}: {found:?}"),
                    _ => {}
                }
            }
        }
    }

    #[tokio::test]
    async fn a_save_covers_all_earlier_changes() {
        let disk = Faulty::healthy();
        let file = file(&disk);
        file.changed();
        file.changed();
        file.save(|| topics(&["a"])).await.unwrap();
        let ops = disk.ops();
        file.save(|| panic!("nothing changed since")).await.unwrap();
        assert_eq!(disk.ops(), ops);
        assert_eq!(loaded(&file), ["a"]);
    }

    #[test]
    fn a_half_written_file_falls_back_to_its_backup_and_two_broken_ones_stop_the_start() {
        let disk = Faulty::healthy();
        let file = file(&disk);
        file.write(&topics(&["old"])).unwrap();
        file.write(&topics(&["new"])).unwrap();
        disk.open(Path::new("/s/config/x.json"), cometmq_store::disk::Open::Write).unwrap().set_len(9).unwrap();
        assert_eq!(loaded(&file), ["old"]);
        disk.open(Path::new("/s/config/x.json.bak"), cometmq_store::disk::Open::Write).unwrap().set_len(9).unwrap();
        assert!(file.load::<TopicList>().unwrap_err().to_string().contains("x.json"));
    }
}
