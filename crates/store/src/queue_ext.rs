//! Extended queue entries, as a Java broker with `enableConsumeQueueExt` writes them: read, kept, never written.
//!
//! Disk     `consumequeue_ext/<topic>/<queue id>/<first byte, 20 digits>`, units one behind the other:
//!          size 2 | tags code 8 | store ms 8 | bitmap bytes 2 | bitmap; size -1 = the rest of the file is empty
//! Holds    an entry whose tags code is at most `Integer.MIN_VALUE - 1` says where its unit lies: byte `code - Long.MIN_VALUE`
//! Lost     a unit that is not there: the tag is read from the record itself
//! Java     `ConsumeQueueExt`, `CqExtUnit`

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::Error;
use crate::disk::{Disk, File, Open};
use crate::error::IoContext;
use crate::log::{file_name, parse_file_name};
use crate::store::lock;

const ADDRESS_MAX: i64 = i32::MIN as i64 - 1;
const UNIT_MIN: i16 = 20;

pub(crate) struct QueueExt {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Length of a file; `None` = there are none.
    file_bytes: Option<u64>,
    /// The file read last.
    open: Mutex<Option<(PathBuf, Arc<dyn File>)>>,
}

/// Whether a tags code is the place of a unit.
pub(crate) fn is_address(tags_code: i64) -> bool {
    tags_code <= ADDRESS_MAX
}

impl QueueExt {
    pub(crate) fn open(disk: Arc<dyn Disk>, root: &Path) -> Result<Self, Error> {
        let dir = root.join("consumequeue_ext");
        let file_bytes = file_bytes(disk.as_ref(), &dir)?;
        Ok(Self { disk, dir, file_bytes, open: Mutex::default() })
    }

    /// The tags code that the unit at `address` holds; `None` when there is no unit.
    pub(crate) fn tags_code(&self, topic: &str, id: i32, address: i64, may_block: bool) -> io::Result<Option<i64>> {
        let Some(file_bytes) = self.file_bytes else { return Ok(None) };
        let at = address.wrapping_sub(i64::MIN) as u64;
        let path = self.dir.join(topic).join(id.to_string()).join(file_name(at - at % file_bytes));
        let file = match self.file(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut unit = [0; 10];
        let n = file.read_at(&mut unit, at % file_bytes, may_block)?;
        let [s0, s1, code @ ..] = unit;
        let is_unit = n == unit.len() && i16::from_be_bytes([s0, s1]) >= UNIT_MIN;
        Ok(is_unit.then(|| i64::from_be_bytes(code)))
    }

    fn file(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut open = lock(&self.open);
        if let Some((_, file)) = open.as_ref().filter(|(of, _)| of == path) {
            return Ok(file.clone());
        }
        let file = self.disk.open(path, Open::Read)?;
        *open = Some((path.to_path_buf(), file.clone()));
        Ok(file)
    }
}

/// The length of the first file found; all have one length.
fn file_bytes(disk: &dyn Disk, dir: &Path) -> Result<Option<u64>, Error> {
    let dirs_in = |dir: &Path| match disk.list(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.at("list", dir),
    };
    for topic in dirs_in(dir)?.into_iter().filter(|e| e.is_dir) {
        let topic = dir.join(topic.name);
        for queue in dirs_in(&topic)?.into_iter().filter(|e| e.is_dir) {
            let queue = topic.join(queue.name);
            for name in dirs_in(&queue)?.into_iter().map(|e| e.name).filter(|n| parse_file_name(n).is_some()) {
                let path = queue.join(name);
                let bytes = disk.open(&path, Open::Read).and_then(|f| f.size()).at("stat", &path)?;
                if bytes > 0 {
                    return Ok(Some(bytes));
                }
            }
        }
    }
    Ok(None)
}
