//! The version of a replicated table (topics, groups, offsets): it tells a name server, a slave or a tool that its copy
//! is old. Two are equal only when all three numbers are.
//!
//! Java     `DataVersion`

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Also the body of QUERY_DATA_VERSION (322) and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVersion {
    /// Changes so far.
    pub counter: i64,
    /// The store's state machine version: the master epoch in controller mode, else 0.
    pub state_version: i64,
    /// Milliseconds since 1970 of the last change.
    pub timestamp: i64,
}

impl DataVersion {
    /// A change at `now_ms`.
    pub fn next(&mut self, now_ms: i64, state_version: i64) {
        self.counter = self.counter.wrapping_add(1);
        self.state_version = state_version;
        self.timestamp = now_ms;
    }
}

/// Newer is greater: first the epoch counts, then the changes, then the time.
impl Ord for DataVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |version: &Self| (version.state_version, version.counter, version.timestamp);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for DataVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::round_trip;

    #[test]
    fn reads_and_writes_javas_text() {
        let version: DataVersion = round_trip(r#"{"counter":7,"stateVersion":2,"timestamp":2}"#);
        assert_eq!(version, DataVersion { counter: 7, state_version: 2, timestamp: 2 });
    }

    #[test]
    fn a_change_makes_it_newer() {
        let old = DataVersion { counter: 7, state_version: 2, timestamp: 9 };
        let mut new = old;
        new.next(5, 2);
        assert_eq!(new, DataVersion { counter: 8, state_version: 2, timestamp: 5 });
        assert!(new > old);
        assert!(DataVersion { counter: 0, state_version: 3, timestamp: 0 } > new);
    }
}
