//! Commits of consumer offsets since `consumerOffset.json` was written: what makes an acknowledged commit survive `kill -9`.
//!
//! Disk     `comet/offsets.journal`: a first line that names the JSON it extends (by checksum and length), then one line a
//!          commit: `crc offset queue topic@group`. Not synced: a power cut may cost what came since the last flush
//! Crash    a torn last line is ignored; a journal of another JSON is set aside
//! Order    rotate (new journal bound to the new JSON) → write the JSON → drop the old journal. When writing fails, both
//!          journals stay and follow the JSON that is still there

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cometmq_store::disk::{Disk, File, Open};
use cometmq_wire::record::body_crc;

pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    old: PathBuf,
    file: Option<(Arc<dyn File>, u64)>,
    /// Rotated, and the new JSON is not on disk yet.
    unfinished: bool,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// `topic@group`
    pub(crate) key: String,
    pub(crate) queue_id: i32,
    pub(crate) offset: i64,
}

/// The first line: this, what the journal before extended, and what this one extends.
const HEAD: &str = "comet offsets 1 ";
/// Where the second of the two stands, in bytes.
const THIS_AT: u64 = HEAD.len() as u64 + BINDING_BYTES + 1;
const BINDING_BYTES: u64 = 21;

/// Names a JSON by its checksum and length, always in 21 characters.
fn binding(json: &[u8]) -> String {
    format!("{:08x}-{:012}", body_crc(json), json.len())
}

impl Journal {
    pub(crate) fn new(disk: Arc<dyn Disk>, root: &Path) -> Self {
        let dir = root.join("comet");
        Self {
            disk,
            path: dir.join("offsets.journal"),
            old: dir.join("offsets.journal.old"),
            file: None,
            unfinished: false,
        }
    }

    /// The commits that follow `json`, oldest first.
    pub(crate) fn load(&self, json: &[u8]) -> io::Result<Vec<Commit>> {
        let now = binding(json);
        let mut commits = Vec::new();
        // The JSON on disk is the one before the last rotation, or the one of it.
        let old = self.read(&self.old)?;
        let takes_old = old.as_ref().is_some_and(|(head, _)| head.split(' ').next_back() == Some(&now));
        if let Some((_, lines)) = old.filter(|_| takes_old) {
            commits.extend(lines);
        }
        if let Some((head, lines)) = self.read(&self.path)? {
            let mut names = head.split(' ');
            let (before, this) = (names.next(), names.next());
            if this == Some(&now) || (takes_old && before == Some(&now)) {
                commits.extend(lines);
            } else if !lines.is_empty() {
                tracing::warn!(path = %self.path.display(), commits = lines.len(), "the offset journal belongs to another consumerOffset.json; set aside");
                self.disk.rename(&self.path, &self.path.with_extension("aside"))?;
            }
        }
        Ok(commits)
    }

    /// The first line and all whole lines behind it.
    fn read(&self, path: &Path) -> io::Result<Option<(String, Vec<Commit>)>> {
        let bytes = match self.disk.read_all(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.split_inclusive('\n').filter_map(|l| l.strip_suffix('\n'));
        let Some(head) = lines.next().and_then(|l| l.strip_prefix(HEAD)) else { return Ok(None) };
        Ok(Some((head.to_string(), lines.map_while(parse).collect())))
    }

    /// Starts anew: `json` is on disk and has everything.
    pub(crate) fn start(&mut self, json: &[u8]) -> io::Result<()> {
        self.create(json, json)?;
        self.drop_old()
    }

    /// `json` is about to be written in place of `before`: commits from now on extend it.
    pub(crate) fn rotate(&mut self, before: &[u8], json: &[u8]) -> io::Result<()> {
        if self.unfinished {
            // The last JSON was not written: the old journal still extends the one on disk, this one follows both.
            let Some((file, _)) = &self.file else { return Err(io::Error::other("the offset journal is not open")) };
            return file.write_all_at(binding(json).as_bytes(), THIS_AT);
        }
        self.file = None;
        match self.disk.rename(&self.path, &self.old) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        self.unfinished = true;
        self.create(before, json)
    }

    fn create(&mut self, before: &[u8], json: &[u8]) -> io::Result<()> {
        let file = self.disk.open(&self.path, Open::Create)?;
        file.set_len(0)?;
        let head = format!("{HEAD}{} {}\n", binding(before), binding(json));
        file.write_all_at(head.as_bytes(), 0)?;
        self.file = Some((file, head.len() as u64));
        Ok(())
    }

    /// The JSON is on disk: what came before it is in it.
    pub(crate) fn drop_old(&mut self) -> io::Result<()> {
        self.unfinished = false;
        match self.disk.remove(&self.old) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    pub(crate) fn append(&mut self, key: &str, queue_id: i32, offset: i64) -> io::Result<()> {
        let Some((file, at)) = &mut self.file else { return Err(io::Error::other("the offset journal is not open")) };
        let line = line(key, queue_id, offset);
        file.write_all_at(line.as_bytes(), *at)?;
        *at += line.len() as u64;
        Ok(())
    }

    /// Bytes written since the last rotation.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |(_, at)| *at)
    }
}

fn line(key: &str, queue_id: i32, offset: i64) -> String {
    let body = format!("{offset} {queue_id} {key}");
    format!("{:08x} {body}\n", body_crc(body.as_bytes()))
}

fn parse(line: &str) -> Option<Commit> {
    let (crc, body) = line.split_once(' ')?;
    if format!("{:08x}", body_crc(body.as_bytes())) != crc {
        return None;
    }
    let mut parts = body.splitn(3, ' ');
    let (offset, queue_id) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Commit { key: parts.next()?.to_string(), queue_id, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cometmq_store::disk::Faulty;

    fn journal(disk: &Faulty) -> Journal {
        disk.create_dirs(Path::new("/s/comet")).unwrap();
        Journal::new(Arc::new(disk.clone()), Path::new("/s"))
    }

    fn offsets(commits: &[Commit]) -> Vec<i64> {
        commits.iter().map(|c| c.offset).collect()
    }

    #[test]
    fn every_step_of_a_rotation_leaves_all_commits() {
        let disk = Faulty::healthy();
        let mut j = journal(&disk);
        let (first, second): (&[u8], &[u8]) = (b"{1}", b"{2}");
        j.start(first).unwrap();
        j.append("t@g", 0, 10).unwrap();
        j.append("t@g", 1, 11).unwrap();
        assert_eq!(offsets(&journal(&disk).load(first).unwrap()), [10, 11]);
        j.rotate(first, second).unwrap();
        j.append("t@g", 0, 12).unwrap();
        assert_eq!(binding(b"x").len() as u64, BINDING_BYTES);
        // The new JSON was not written yet: the old one with both journals.
        assert_eq!(offsets(&journal(&disk).load(first).unwrap()), [10, 11, 12]);
        // It was: only what came since.
        assert_eq!(offsets(&journal(&disk).load(second).unwrap()), [12]);
        j.drop_old().unwrap();
        assert_eq!(offsets(&journal(&disk).load(second).unwrap()), [12]);
        assert_eq!(journal(&disk).load(second).unwrap(), [Commit { key: "t@g".to_string(), queue_id: 0, offset: 12 }]);
    }

    #[test]
    fn a_json_that_could_not_be_written_costs_nothing() {
        let disk = Faulty::healthy();
        let mut j = journal(&disk);
        let (first, second, third): (&[u8], &[u8], &[u8]) = (b"{1}", b"{22}", b"{333}");
        j.start(first).unwrap();
        j.append("t@g", 0, 1).unwrap();
        j.rotate(first, second).unwrap();
        j.append("t@g", 0, 2).unwrap();
        j.rotate(first, third).unwrap();
        j.append("t@g", 0, 3).unwrap();
        assert_eq!(offsets(&journal(&disk).load(first).unwrap()), [1, 2, 3]);
        assert_eq!(offsets(&journal(&disk).load(third).unwrap()), [2, 3]);
    }

    #[test]
    fn torn_lines_and_foreign_journals_are_not_believed() {
        let disk = Faulty::healthy();
        let mut j = journal(&disk);
        j.start(b"{1}").unwrap();
        j.append("t@g", 0, 10).unwrap();
        j.append("t@g", 0, 11).unwrap();
        let file = disk.open(Path::new("/s/comet/offsets.journal"), Open::Write).unwrap();
        file.set_len(file.size().unwrap() - 2).unwrap();
        assert_eq!(offsets(&journal(&disk).load(b"{1}").unwrap()), [10]);
        assert_eq!(journal(&disk).load(b"{java was here}").unwrap(), []);
        assert!(disk.open(Path::new("/s/comet/offsets.aside"), Open::Read).is_ok());
    }
}
