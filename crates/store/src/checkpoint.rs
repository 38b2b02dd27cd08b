//! Two checkpoints: Java's, which a Java broker starts its recovery from, and our own, which says exactly where.
//!
//! Disk     `checkpoint`, 4096 bytes: physic ms 8, logics ms 8, index ms 8, master flushed 8, confirm 8, logics offset 8
//!          `comet/checkpoint`, text: dispatched and durable log offsets, bytes of all queue files, the content of
//!          Java's file before and after, and where the index stands
//! Crash    ours is written first and names both contents of Java's; if Java's file is neither, another broker has been
//!          here since, and ours is set aside: recovery then reads the whole log
//! Java     `StoreCheckpoint`

use std::path::Path;

use crate::Error;
use crate::disk::{Disk, Open};
use crate::error::IoContext;
use crate::index::Indexed;

const FILE_BYTES: u64 = 4096;
const FIELDS_BYTES: usize = 48;
pub(crate) const ANOTHER_BROKER: &str = "the store was used by another broker since it was written";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Checkpoint {
    /// Store time up to which the log is durable.
    pub(crate) physic_ms: i64,
    /// Store time up to which queue entries are durable.
    pub(crate) logics_ms: i64,
    pub(crate) index_ms: i64,
    pub(crate) master_flushed: i64,
    pub(crate) confirm: i64,
    /// Log offset up to which queue entries are durable (`enableAcceleratedRecovery`).
    pub(crate) logics_offset: i64,
}

impl Checkpoint {
    fn fields(&self) -> [i64; 6] {
        [self.physic_ms, self.logics_ms, self.index_ms, self.master_flushed, self.confirm, self.logics_offset]
    }

    /// What of it can be true of a log that ends at `end` with a record of `store_ms`.
    pub(crate) fn at_most(self, store_ms: i64, end: u64) -> Self {
        let offset = |offset: i64| offset.min(end as i64);
        Self {
            physic_ms: self.physic_ms.min(store_ms),
            logics_ms: self.logics_ms.min(store_ms),
            index_ms: self.index_ms.min(store_ms),
            master_flushed: offset(self.master_flushed),
            confirm: offset(self.confirm),
            logics_offset: offset(self.logics_offset),
        }
    }

    fn to_bytes(self) -> [u8; FIELDS_BYTES] {
        let mut bytes = [0; FIELDS_BYTES];
        for (place, field) in bytes.chunks_mut(8).zip(self.fields()) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// All zero when there is no file (or a shorter one).
    pub(crate) fn read(disk: &dyn Disk, root: &Path) -> Result<Self, Error> {
        let path = root.join("checkpoint");
        let bytes = match disk.read_all(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => other.at("read", &path)?,
        };
        let field =
            |i: usize| bytes.get(i * 8..).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| i64::from_be_bytes(*b));
        Ok(Self {
            physic_ms: field(0),
            logics_ms: field(1),
            index_ms: field(2),
            master_flushed: field(3),
            confirm: field(4),
            logics_offset: field(5),
        })
    }

    /// Overwrites the fields in place, as Java does through its mapping.
    pub(crate) fn write(&self, disk: &dyn Disk, root: &Path) -> Result<(), Error> {
        let path = root.join("checkpoint");
        let file = disk.open(&path, Open::Create).at("open", &path)?;
        let fresh = file.size().at("stat", &path)? < FILE_BYTES;
        if fresh {
            file.set_len(FILE_BYTES).at("set the length of", &path)?;
        }
        file.write_all_at(&self.to_bytes(), 0).at("write", &path)?;
        file.sync_data().at("sync", &path)?;
        if fresh { disk.sync_dir(root).at("sync", root) } else { Ok(()) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnCheckpoint {
    /// All queue entries of records below are in the queue files, durably.
    pub(crate) dispatched: u64,
    pub(crate) durable: u64,
    /// Length of all queue files together. When they have less, some were lost.
    pub(crate) queue_bytes: u64,
    pub(crate) indexed: Indexed,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl OwnCheckpoint {
    fn text(self, before: &Checkpoint, after: &Checkpoint) -> String {
        let body = format!(
            "comet checkpoint 1\ndispatched {}\ndurable {}\nqueues {}\njava {} {}\nindex {} {}\n",
            self.dispatched,
            self.durable,
            self.queue_bytes,
            hex(&before.to_bytes()),
            hex(&after.to_bytes()),
            self.indexed.upto,
            self.indexed.end
        );
        format!("{body}crc {:08x}\n", cometmq_wire::record::body_crc(body.as_bytes()))
    }

    fn parse(text: &str, java: &Checkpoint) -> Result<Self, &'static str> {
        let (body, crc) = text.rsplit_once("crc ").ok_or("no crc")?;
        if format!("{:08x}", cometmq_wire::record::body_crc(body.as_bytes())) != crc.trim_end() {
            return Err("its crc does not match");
        }
        let mut lines = body.lines();
        if lines.next() != Some("comet checkpoint 1") {
            return Err("of an unknown version");
        }
        let mut number = |name: &str| -> Result<u64, &'static str> {
            let value = lines.next().and_then(|l| l.strip_prefix(name)).ok_or("a line is missing")?;
            value.trim().parse().map_err(|_| "a number does not parse")
        };
        let (dispatched, durable, queue_bytes) = (number("dispatched ")?, number("durable ")?, number("queues ")?);
        let bound = lines.next().and_then(|l| l.strip_prefix("java ")).ok_or("a line is missing")?;
        if !bound.split(' ').any(|known| known == hex(&java.to_bytes())) {
            return Err(ANOTHER_BROKER);
        }
        // Missing where it was written before there was an index.
        let index = lines.next().and_then(|l| l.strip_prefix("index ")?.split_once(' '));
        let index = index.and_then(|(upto, end)| Some(Indexed { upto: upto.parse().ok()?, end: end.parse().ok()? }));
        Ok(Self { dispatched, durable, queue_bytes, indexed: index.unwrap_or_default() })
    }

    /// `None` when there is none; `Err` says why it does not belong to this state of the store.
    pub(crate) fn look(
        disk: &dyn Disk,
        own_dir: &Path,
        java: &Checkpoint,
    ) -> Result<Option<Result<Self, &'static str>>, Error> {
        let path = own_dir.join("checkpoint");
        match disk.read_all(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => Ok(Some(Self::parse(&String::from_utf8_lossy(&read.at("read", &path)?), java))),
        }
    }

    /// As [`Self::look`]; one that does not belong to this state of the store is set aside.
    pub(crate) fn read(disk: &dyn Disk, own_dir: &Path, java: &Checkpoint) -> Result<Option<Self>, Error> {
        let path = own_dir.join("checkpoint");
        match Self::look(disk, own_dir, java)?.transpose() {
            Ok(own) => Ok(own),
            Err(why) => {
                tracing::warn!(path = %path.display(), why, "setting our checkpoint aside; the whole log is read");
                disk.rename(&path, &own_dir.join("checkpoint.aside")).at("rename", &path)?;
                Ok(None)
            }
        }
    }

    /// Writes both checkpoints.
    pub(crate) fn write(
        self,
        disk: &dyn Disk,
        root: &Path,
        own_dir: &Path,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<(), Error> {
        let path = own_dir.join("checkpoint");
        let text = self.text(before, after);
        disk.replace(&path, &own_dir.join("checkpoint.new"), text.as_bytes()).at("replace", &path)?;
        after.write(disk, root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Faulty;

    #[test]
    fn ours_is_bound_to_java_s() {
        let disk = Faulty::healthy();
        let (root, own) = (Path::new("/s"), Path::new("/s/comet"));
        disk.create_dirs(own).unwrap();
        let zero = Checkpoint::read(&disk, root).unwrap();
        assert_eq!(zero, Checkpoint::default());
        let one = Checkpoint { physic_ms: 5, logics_ms: 4, logics_offset: 100, ..zero };
        let mine =
            OwnCheckpoint { dispatched: 100, durable: 200, queue_bytes: 20, indexed: Indexed { upto: 90, end: 80 } };
        mine.write(&disk, root, own, &zero, &one).unwrap();
        assert_eq!(disk.read_all(&root.join("checkpoint")).unwrap().len(), 4096);
        assert_eq!(Checkpoint::read(&disk, root).unwrap(), one);
        assert_eq!(OwnCheckpoint::read(&disk, own, &one).unwrap(), Some(mine));
        assert_eq!(OwnCheckpoint::read(&disk, own, &zero).unwrap(), Some(mine)); // a crash between the two writes
        let javas = Checkpoint { physic_ms: 6, ..one };
        assert_eq!(OwnCheckpoint::read(&disk, own, &javas).unwrap(), None);
        assert!(disk.open(&own.join("checkpoint.aside"), Open::Read).is_ok());
        assert_eq!(OwnCheckpoint::read(&disk, own, &one).unwrap(), None);
    }

    #[test]
    fn a_damaged_one_is_not_believed() {
        let zero = Checkpoint::default();
        let text =
            OwnCheckpoint { dispatched: 1, durable: 2, queue_bytes: 0, indexed: Indexed::default() }.text(&zero, &zero);
        assert!(OwnCheckpoint::parse(&text, &zero).is_ok());
        assert_eq!(OwnCheckpoint::parse(&text.replace("durable 2", "durable 3"), &zero), Err("its crc does not match"));
        assert_eq!(OwnCheckpoint::parse("", &zero), Err("no crc"));
    }
}
