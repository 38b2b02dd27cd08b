//! Space: whether the disk has room for more. Met before a write, so that nothing is half written.
//!
//! Looked at once a second. Writes are refused with less than `diskFreeBytesMin` free bytes, and, as Java does it from its
//! first cleaning on, when more than `diskSpaceWarningLevelRatio` percent are used, until no more than
//! `diskSpaceCleanForciblyRatio` percent are. An append that meets a full disk all the same is the last resort: the next
//! one tries again after [`RETRY`]. Reads always go on.
//! Java: `DefaultMessageStore.CleanCommitLogService.isSpaceToDelete`, `RunningFlags`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::Store;
use crate::disk::Space;
use crate::options::Retention;
use crate::store::{Inner, lock};

/// Between two attempts to get space on a disk that was full.
const RETRY: Duration = Duration::from_secs(1);

/// Why there is no room, if so.
#[derive(Debug, Default)]
pub(crate) struct Full {
    /// An operation failed for want of space.
    met: Option<(Instant, String)>,
    /// A limit of the options is passed.
    limit: Option<String>,
}

impl Full {
    pub(crate) fn why(&self) -> Option<&String> {
        let met = self.met.as_ref().filter(|(at, _)| at.elapsed() < RETRY).map(|(_, why)| why);
        self.limit.as_ref().or(met)
    }
}

/// A place of the store and the room there.
pub(crate) type Room = (PathBuf, Space);

impl Store {
    /// The room where the log and where the queues are, in this order. Asks the file system.
    pub fn spaces(&self) -> std::io::Result<[Space; 2]> {
        let space = |path| self.0.disk.space(path);
        Ok([space(self.0.log.dir())?, space(self.0.files.dir())?])
    }
}

impl Inner {
    /// Of the directories of the log, the one with the most room counts; new files are made in those that are not full.
    pub(crate) fn rooms(&self) -> Vec<Room> {
        let room = |path: &std::path::Path| match self.disk.space(path) {
            Ok(space) => Some((path.to_path_buf(), space)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the file system does not say how much space there is");
                None
            }
        };
        let of_log: Vec<Room> = self.log.dirs().iter().filter_map(|dir| room(dir)).collect();
        if let [_, _, ..] = of_log[..] {
            let limit = self.options.retention.used_forcibly;
            let full = of_log.iter().filter(|(_, space)| space.used_percent() > limit);
            self.log.set_full(full.map(|(dir, _)| dir.clone()).collect());
        }
        let best = of_log.into_iter().min_by_key(|(_, space)| space.used_percent());
        best.into_iter().chain(room(self.files.dir())).collect()
    }

    /// Refuses or accepts writes from now on. `ratios`: whether used parts count, too.
    pub(crate) fn judge(&self, rooms: &[Room], ratios: bool) {
        let mut full = lock(&self.full);
        let is_full = full.limit.is_some();
        let limit = rooms.iter().find_map(|room| passed(&self.options.retention, room, ratios, is_full));
        match (&limit, is_full) {
            (Some(why), false) => tracing::error!(why, "writes are refused until there is space"),
            (None, true) => tracing::info!("there is space on the disk again: writes are accepted"),
            _ => {}
        }
        full.limit = limit;
    }

    /// An operation met a full disk; returns the cause with the figures of the disk.
    pub(crate) fn met_full(&self, why: &str) -> String {
        let why = match self.disk.space(self.log.dir()) {
            Ok(space) => format!("{why}; {}", figures(&(self.log.dir().to_path_buf(), space))),
            Err(_) => why.to_string(),
        };
        let before = lock(&self.full).met.replace((Instant::now(), why.clone()));
        if before.is_none() {
            tracing::error!(why, "the disk is full: writes are refused until there is space");
        }
        why
    }

    pub(crate) fn has_met_full(&self) -> bool {
        lock(&self.full).met.is_some()
    }

    pub(crate) fn write_succeeded(&self) {
        if lock(&self.full).met.take().is_some() {
            tracing::info!("there is space on the disk again: writes are accepted");
        }
    }
}

pub(crate) fn figures((path, space): &Room) -> String {
    let path = path.display();
    format!("{path} is {} % used, {} of {} bytes are free", space.used_percent(), space.free, space.total)
}

/// Which limit a disk has passed, in words. `is_full`: it had before.
fn passed(retention: &Retention, room: &Room, ratios: bool, is_full: bool) -> Option<String> {
    let (_, space) = room;
    let (used, least) = (space.used_percent(), retention.free_min_of(space.total));
    if space.free < least {
        let configured = retention.free_min;
        let key = format!("diskFreeBytesMin={configured}");
        let small = if least < configured { " (here a sixteenth of the disk)" } else { "" };
        return Some(format!("{}; writes need {least}, by {key}{small}", figures(room)));
    }
    let (above, until) = (retention.used_full, retention.used_forcibly.min(retention.used_full));
    (ratios && (used > above || is_full && used > until)).then(|| {
        let again = format!("accepted again at diskSpaceCleanForciblyRatio={until} %");
        format!("{}; writes are refused above diskSpaceWarningLevelRatio={above} %, {again}", figures(room))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(used: u64, total: u64) -> Room {
        (PathBuf::from("/d"), Space { total, used, free: total - used })
    }

    #[test]
    fn limits_say_path_figures_and_key() {
        let retention = Retention::default();
        let gib = 1 << 30;
        let says = |room: &Room, ratios, full| passed(&retention, room, ratios, full);
        assert_eq!(says(&at(90 * gib, 100 * gib), true, false), None);
        assert_eq!(
            says(&at(91 * gib, 100 * gib), true, false).unwrap(),
            "/d is 91 % used, 9663676416 of 107374182400 bytes are free; writes are refused above \
             diskSpaceWarningLevelRatio=90 %, accepted again at diskSpaceCleanForciblyRatio=85 %"
        );
        assert_eq!(says(&at(91 * gib, 100 * gib), false, false), None, "as Java in its first minute");
        assert!(says(&at(86 * gib, 100 * gib), true, true).is_some());
        assert_eq!(says(&at(85 * gib, 100 * gib), true, true), None);
        assert_eq!(
            says(&at(100 * gib - 1, 100 * gib), false, false).unwrap(),
            "/d is 100 % used, 1 of 107374182400 bytes are free; writes need 268435456, by diskFreeBytesMin=268435456"
        );
    }

    #[test]
    fn a_small_disk_needs_a_sixteenth() {
        let retention = Retention::default();
        let mib = 1 << 20;
        assert_eq!(passed(&retention, &at(480 * mib, 512 * mib), false, false), None);
        assert_eq!(
            passed(&retention, &at(481 * mib, 512 * mib), false, false).unwrap(),
            "/d is 94 % used, 32505856 of 536870912 bytes are free; writes need 33554432, by diskFreeBytesMin=268435456 \
             (here a sixteenth of the disk)"
        );
    }
}
