//! Tables of consumer offsets: on a broker's disk, on a client's disk, and in a reset.
//!
//! Java     `ConsumerOffsetManager`, `ConsumerOffsetSerializeWrapper`, `DelayOffsetSerializeWrapper`,
//!          `OffsetSerializeWrapper`, `ResetOffsetBody`

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{DataVersion, MessageQueue};

/// `config/consumerOffset.json` (and `lmqConsumerOffset.json`); answer to GET_ALL_CONSUMER_OFFSET (43).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerOffsetTable {
    pub data_version: DataVersion,
    /// Group → topics it has offsets for. Derived from `offset_table` and ignored by Java's reader: `group_topics()`.
    pub group_topic_map: BTreeMap<String, BTreeSet<String>>,
    /// `topic@group` → offset; only in `lmqConsumerOffset.json`.
    pub lmq_offset_table: Option<BTreeMap<String, i64>>,
    /// `topic@group` → queue id → offset of the next message to consume.
    pub offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
    /// The same keys → offset of the last pull; only for lag figures.
    pub pull_offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
}

impl ConsumerOffsetTable {
    /// What `group_topic_map` has to be for this `offset_table`.
    pub fn group_topics(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (topic, group) in self.offset_table.keys().filter_map(|key| key.split_once('@')) {
            groups.entry(group.to_owned()).or_default().insert(topic.to_owned());
        }
        groups
    }
}

/// `config/delayOffset.json`: delay level → offset in its queue of the delay topic; answer to GET_ALL_DELAY_OFFSET (45).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DelayOffsetTable {
    pub data_version: DataVersion,
    pub offset_table: BTreeMap<i32, i64>,
}

/// RESET_CONSUMER_CLIENT_OFFSET (220), answer to INVOKE_BROKER_TO_RESET_OFFSET (222).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResetOffsetBody {
    pub offset_table: BTreeMap<MessageQueue, i64>,
}

/// `offsets.json` of a broadcasting consumer, on the client's disk.
pub type LocalOffsets = ResetOffsetBody;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::{pretty_round_trip, round_trip};

    #[test]
    fn reads_and_writes_javas_text() {
        round_trip::<ConsumerOffsetTable>(
            r#"{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"groupTopicMap":{"G1":["T1"]},"offsetTable":{"T1@G1":{0:12,1:9}},"pullOffsetTable":{}}"#,
        );
        round_trip::<DelayOffsetTable>(
            r#"{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"offsetTable":{1:1,2:1,3:1}}"#,
        );
        let reset: ResetOffsetBody = round_trip(r#"{"offsetTable":{{"brokerName":"s","queueId":1,"topic":"s"}:2}}"#);
        assert_eq!(reset.offset_table.values().sum::<i64>(), 2);
    }

    /// `consumerOffset.json` of a store that Java 5.5.0 wrote, shortened, with its keys sorted.
    #[test]
    fn the_file_is_javas() {
        let file = "{\n\t\"dataVersion\":{\n\t\t\"counter\":0,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1796051620495\n\t},\n\t\"groupTopicMap\":{\n\t\t\"CID_RMQ_SYS_TRANS\":[\n\t\t\t\"RMQ_SYS_TRANS_HALF_TOPIC\",\n\t\t\t\"RMQ_SYS_TRANS_OP_HALF_TOPIC\"\n\t\t],\n\t\t\"fixture_group\":[\n\t\t\t\"fixture_normal\"\n\t\t]\n\t},\n\t\"offsetTable\":{\n\t\t\"RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS\":{\n\t\t\t0:4\n\t\t},\n\t\t\"RMQ_SYS_TRANS_OP_HALF_TOPIC@CID_RMQ_SYS_TRANS\":{\n\t\t\t0:1\n\t\t},\n\t\t\"fixture_normal@fixture_group\":{\n\t\t\t0:49,\n\t\t\t1:70\n\t\t}\n\t},\n\t\"pullOffsetTable\":{}\n}";
        let table: ConsumerOffsetTable = pretty_round_trip(file);
        assert_eq!(table.group_topics(), table.group_topic_map);
    }

    /// Printed by Java's `OffsetSerializeWrapper.toJson(true)`.
    #[test]
    fn the_clients_file_is_javas() {
        pretty_round_trip::<LocalOffsets>(
            "{\n\t\"offsetTable\":{\n\t\t{\n\t\t\t\"brokerName\":\"b1\",\n\t\t\t\"queueId\":0,\n\t\t\t\"topic\":\"T1\"\n\t\t}:12,\n\t\t{\n\t\t\t\"brokerName\":\"b1\",\n\t\t\t\"queueId\":1,\n\t\t\t\"topic\":\"T1\"\n\t\t}:13\n\t}\n}",
        );
    }
}
