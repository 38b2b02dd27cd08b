//! Cut: nothing stays behind the end of the log, neither bytes in it nor queue entries that point there. The log will grow
//! again: a later record could end just where an old one starts and bring it back, and an old entry would point into
//! what it does not know.
//!
//! Disk     bytes behind the end are copied to `comet/cut-<offset>` and then zeroed; whole files are removed
//! Crash    entries go first and the copy comes before the zeros, so the next start finds the same and does it again
//! Java     `MappedFileQueue.truncateDirtyFiles`, `ConsumeQueue.truncateDirtyLogicFiles`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cometmq_wire::names;

use crate::Error;
use crate::disk::{Disk, Open};
use crate::error::IoContext;
use crate::log::Segment;
use crate::queue::Entry;
use crate::scan::Damage;
use crate::store::Inner;

/// Takes back the entries behind the ends of all queues. The log was read as far as it goes. An entry that points into a
/// damaged part of it stays: its offset was given away, and is not given again.
pub(crate) fn queues(inner: &Arc<Inner>, damaged: &[Damage]) -> Result<(), Error> {
    let is_damaged = |entry: &Entry| damaged.iter().any(|damage| damage.part.contains(&entry.log_at));
    for (topic, id) in inner.files.queues()? {
        if names::is_lmq(&topic) {
            // Light queues get no entries here: they are kept as Java left them.
            continue;
        }
        let queue = inner.queue(&topic, id)?;
        let mut next = queue.0.next.load(Ordering::Relaxed);
        while !damaged.is_empty()
            && let Some(entry) = inner.files.entry(&topic, id, next).at("read", inner.files.dir())?
            && entry.is_written()
            && is_damaged(&entry)
        {
            inner.add_entry(&queue.0, next, entry);
            next += 1;
        }
        queue.0.next.store(next, Ordering::Relaxed);
        queue.0.end.store(next, Ordering::SeqCst);
        inner.files.cut(&topic, id, next).at("cut", inner.files.dir())?;
    }
    inner.files.sync().at("sync", inner.files.dir())
}

pub(crate) fn log(inner: &Inner, end: u64) -> Result<(), Error> {
    let segments = inner.log.segments();
    let Some(segment) = segments.iter().rfind(|s| s.base <= end) else { return Ok(()) };
    let own = inner.options.own_dir();
    let disk = inner.disk.as_ref();
    if segment.end() > end {
        clear(disk, segment, end - segment.base, &own)?;
    }
    inner.log.drop_after(segment.base, |gone| {
        clear(disk, gone, 0, &own)?;
        disk.remove(&gone.path).at("remove", &gone.path)
    })
}

/// `path`, or the first of `path.1`, `path.2` … that does not exist: what was set aside before stays.
pub(crate) fn free_name(disk: &dyn Disk, path: PathBuf) -> PathBuf {
    let mut free = path.clone();
    for n in 1u32.. {
        if disk.open(&free, Open::Read).is_err() {
            break;
        }
        free = path.with_added_extension(n.to_string());
    }
    free
}

fn clear(disk: &dyn Disk, segment: &Segment, from: u64, own: &Path) -> Result<(), Error> {
    let mut buf = vec![0; 1 << 20];
    let Some(mut part) = next_data(segment, from, &mut buf)? else { return Ok(()) };
    let copy_to = &free_name(disk, own.join(format!("cut-{}", segment.base + from)));
    tracing::warn!(file = %segment.path.display(), from = segment.base + part.0, to = %copy_to.display(), "bytes behind the end of the log are set aside");
    let copy = disk.open(copy_to, Open::Create).at("create", copy_to)?;
    copy_to.parent().map_or(Ok(()), |dir| disk.sync_dir(dir).at("sync", dir))?;
    loop {
        let (at, n) = part;
        copy.write_all_at(&buf[..n], at - from).at("write", copy_to)?;
        copy.sync_data().at("sync", copy_to)?;
        segment.file.write_all_at(&vec![0; n], at).at("zero", &segment.path)?;
        match next_data(segment, at + n as u64, &mut buf)? {
            Some(next) => part = next,
            None => break,
        }
    }
    segment.file.sync_data().at("sync", &segment.path)
}

/// Reads the next part of a segment, from byte `at` of it on, that is not all zeros: where it starts, and its length.
pub(crate) fn next_data(segment: &Segment, mut at: u64, buf: &mut [u8]) -> Result<Option<(u64, usize)>, Error> {
    while at < segment.bytes {
        let Some(found) = segment.file.next_data(at).at("seek", &segment.path)? else { break };
        at = found.max(at);
        let want = buf.len().min(segment.bytes.saturating_sub(at) as usize);
        let n = segment.file.read_at(&mut buf[..want], at, true).at("read", &segment.path)?;
        if n == 0 {
            break;
        }
        if buf[..n].iter().any(|b| *b != 0) {
            return Ok(Some((at, n)));
        }
        at += n as u64;
    }
    Ok(None)
}
