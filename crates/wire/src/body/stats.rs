//! Progress figures that tools compute lag from: where a topic's queues begin and end, and how far a group is.
//!
//! Java     `TopicStatsTable`, `TopicOffset`, `ConsumeStats`, `OffsetWrapper`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::MessageQueue;

/// Answer to GET_TOPIC_STATS_INFO (202).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicStatsTable {
    pub offset_table: BTreeMap<MessageQueue, TopicOffset>,
    pub topic_put_tps: f64,
}

/// The ends of a queue: `min_offset` is its first message, `max_offset` the next to come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicOffset {
    pub last_update_timestamp: i64,
    pub max_offset: i64,
    pub min_offset: i64,
}

/// Answer to GET_CONSUME_STATS (208).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumeStats {
    pub consume_tps: f64,
    pub offset_table: BTreeMap<MessageQueue, OffsetWrapper>,
}

/// How far a group is in a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OffsetWrapper {
    pub broker_offset: i64,
    pub consumer_offset: i64,
    /// Store time of the last consumed message.
    pub last_timestamp: i64,
    pub pull_offset: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::round_trip;

    #[test]
    fn reads_and_writes_javas_text() {
        round_trip::<TopicStatsTable>(
            r#"{"offsetTable":{{"brokerName":"s","queueId":1,"topic":"s"}:{"lastUpdateTimestamp":2,"maxOffset":2,"minOffset":2}},"topicPutTps":0.5}"#,
        );
        round_trip::<ConsumeStats>(
            r#"{"consumeTps":0.5,"offsetTable":{{"brokerName":"s","queueId":1,"topic":"s"}:{"brokerOffset":2,"consumerOffset":2,"lastTimestamp":2,"pullOffset":2}}}"#,
        );
    }
}
