//! What a power cut leaves of a [`Faulty`] disk. The fault model stands there.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::{Faulty, Inode, SECTOR, State};

impl Faulty {
    /// A disk of its own with everything that was written, synced or not: what a process that is killed leaves.
    pub fn surviving_kill(&self) -> Self {
        let state = self.state();
        let kept = State {
            files: state.files.clone(),
            names: state.names.clone(),
            kept_names: state.kept_names.clone(),
            dirs: state.dirs.clone(),
            seed: state.seed,
            clock: state.clock.clone(),
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(kept)) }
    }

    /// A healthy disk with what a power cut now would leave.
    pub fn surviving(&self) -> Self {
        let mut state = self.state();
        let mut kept = State::default();
        state.keep_dirs(&mut kept);
        kept.files = state.files.clone();
        for file in &mut kept.files {
            state.tear(file);
        }
        state.keep_names(&mut kept);
        kept.seed = state.seed;
        kept.clock = state.clock.clone();
        Self { state: Arc::new(Mutex::new(kept)) }
    }
}

impl State {
    fn keep_dirs(&mut self, kept: &mut State) {
        for dir in self.dirs.clone() {
            let is_kept = self.kept_dirs.contains(&dir) || dir.parent().is_none() || self.coin();
            // In order: those above come first.
            if is_kept && dir.parent().is_none_or(|above| kept.dirs.contains(above)) {
                kept.dirs.insert(dir);
            }
        }
        kept.kept_dirs = kept.dirs.clone();
    }

    fn tear(&mut self, file: &mut Inode) {
        let mut after = file.synced.clone();
        let len_is_lost = file.set_len.is_some() && self.coin();
        if let Some(len) = file.set_len.filter(|_| !len_is_lost) {
            after.resize(len, 0);
        }
        for sector in std::mem::take(&mut file.dirty) {
            let is_lost = len_is_lost && sector * SECTOR >= after.len();
            if is_lost || !self.coin() {
                continue;
            }
            let range = sector * SECTOR..((sector + 1) * SECTOR).min(file.now.len());
            if let Some(bytes) = file.now.get(range.clone()) {
                after.resize(after.len().max(range.end), 0);
                after[range].copy_from_slice(bytes);
            }
        }
        // The length is metadata: the new one or the old one.
        if !len_is_lost && self.coin() {
            after.resize(file.now.len(), 0);
        }
        file.now = after;
        file.sync();
    }

    fn keep_names(&mut self, kept: &mut State) {
        let all: BTreeSet<PathBuf> = self.names.keys().chain(self.kept_names.keys()).cloned().collect();
        for path in all {
            let (old, new) = (self.kept_names.get(&path).copied(), self.names.get(&path).copied());
            let pick = if old == new || self.coin() { new } else { old };
            // A renamed file keeps one of its names.
            let renamed_away = new.is_none() && old.is_some_and(|o| self.names.values().any(|n| *n == o));
            let is_in_dir = path.parent().is_some_and(|dir| kept.dirs.contains(dir));
            if let Some(inode) = if renamed_away { old } else { pick }.filter(|_| is_in_dir) {
                kept.names.insert(path, inode);
            }
        }
        kept.kept_names = kept.names.clone();
    }
}
