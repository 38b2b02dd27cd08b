//! Flat answers: a table of strings, a list of topics.
//!
//! Java     `KVTable`, `TopicList`

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Answer to REGISTER_BROKER (103, the ordered topics), GET_BROKER_RUNTIME_INFO (28), GET_KVLIST_BY_NAMESPACE (219).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KVTable {
    pub table: BTreeMap<String, String>,
}

/// Answer to the requests for topic lists (206, 224, 304, 305, 311 to 313, 343).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicList {
    /// Only in the answer to 304: some broker, to ask for its system topics.
    pub broker_addr: Option<String>,
    pub topic_list: BTreeSet<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::{defaults, round_trip};

    #[test]
    fn reads_and_writes_javas_text() {
        round_trip::<KVTable>(r#"{"table":{"s":"s"}}"#);
        // A key that looks like a number is still a string.
        round_trip::<KVTable>(r#"{"table":{"1":"s"}}"#);
        round_trip::<TopicList>(r#"{"brokerAddr":"s","topicList":["s"]}"#);
        assert_eq!(defaults::<TopicList>(), r#"{"topicList":[]}"#);
    }
}
