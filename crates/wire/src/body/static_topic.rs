//! Static topics: logical queues that move between brokers. We carry these bodies so that routes, registrations and
//! stores of clusters that use them pass through unharmed.
//!
//! Java     `TopicQueueMappingInfo`, `TopicQueueMappingDetail`, `LogicQueueMappingItem`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const SCOPE_GLOBAL: &str = "__global__";

/// Which logical queues a broker hosts; part of its registration and of routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicQueueMappingInfo {
    /// The broker that hosts them.
    #[serde(rename = "bname")]
    pub broker_name: Option<String>,
    /// Logical queue id → queue id on that broker.
    pub curr_id_map: BTreeMap<i32, i32>,
    pub dirty: bool,
    pub epoch: i64,
    pub scope: String,
    pub topic: Option<String>,
    pub total_queues: i32,
}

impl Default for TopicQueueMappingInfo {
    fn default() -> Self {
        Self {
            broker_name: None,
            curr_id_map: BTreeMap::new(),
            dirty: false,
            epoch: 0,
            scope: SCOPE_GLOBAL.to_owned(),
            topic: None,
            total_queues: 0,
        }
    }
}

/// The info with the history of each queue; UPDATE_AND_CREATE_STATIC_TOPIC (513), `topicQueueMapping.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicQueueMappingDetail {
    #[serde(rename = "bname")]
    pub broker_name: Option<String>,
    pub curr_id_map: BTreeMap<i32, i32>,
    pub dirty: bool,
    pub epoch: i64,
    /// Logical queue id → the places it has lived in, oldest first.
    pub hosted_queues: BTreeMap<i32, Vec<LogicQueueMappingItem>>,
    pub scope: String,
    pub topic: Option<String>,
    pub total_queues: i32,
}

impl Default for TopicQueueMappingDetail {
    fn default() -> Self {
        let TopicQueueMappingInfo { broker_name, curr_id_map, dirty, epoch, scope, topic, total_queues } =
            TopicQueueMappingInfo::default();
        let hosted_queues = BTreeMap::new();
        Self { broker_name, curr_id_map, dirty, epoch, hosted_queues, scope, topic, total_queues }
    }
}

/// A stretch of a logical queue on one broker. Open ends are -1, as in Java.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LogicQueueMappingItem {
    #[serde(rename = "bname")]
    pub broker_name: Option<String>,
    pub end_offset: i64,
    #[serde(rename = "gen")]
    pub generation: i32,
    pub logic_offset: i64,
    pub queue_id: i32,
    pub start_offset: i64,
    pub time_of_end: i64,
    pub time_of_start: i64,
}

impl Default for LogicQueueMappingItem {
    fn default() -> Self {
        Self {
            broker_name: None,
            end_offset: -1,
            generation: 0,
            logic_offset: 0,
            queue_id: 0,
            start_offset: 0,
            time_of_end: -1,
            time_of_start: -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::{defaults, pretty_round_trip, round_trip};

    #[test]
    fn reads_and_writes_javas_text() {
        round_trip::<TopicQueueMappingInfo>(
            r#"{"bname":"s","currIdMap":{1:1},"dirty":true,"epoch":2,"scope":"s","topic":"s","totalQueues":1}"#,
        );
        let detail: TopicQueueMappingDetail = round_trip(
            r#"{"bname":"s","currIdMap":{1:1},"dirty":true,"epoch":2,"hostedQueues":{1:[{"bname":"s","endOffset":2,"gen":1,"logicOffset":2,"queueId":1,"startOffset":2,"timeOfEnd":2,"timeOfStart":2}]},"scope":"s","topic":"s","totalQueues":1}"#,
        );
        assert_eq!(detail.hosted_queues[&1][0].generation, 1);
        assert_eq!(
            defaults::<TopicQueueMappingInfo>(),
            r#"{"currIdMap":{},"dirty":false,"epoch":0,"scope":"__global__","totalQueues":0}"#
        );
    }

    #[test]
    fn pretty_text_is_javas() {
        let file = "{\n\t\"bname\":\"b1\",\n\t\"currIdMap\":{\n\t\t0:1\n\t},\n\t\"dirty\":false,\n\t\"epoch\":3,\n\t\"hostedQueues\":{\n\t\t0:[\n\t\t\t{\n\t\t\t\t\"bname\":\"b1\",\n\t\t\t\t\"endOffset\":-1,\n\t\t\t\t\"gen\":0,\n\t\t\t\t\"logicOffset\":0,\n\t\t\t\t\"queueId\":1,\n\t\t\t\t\"startOffset\":0,\n\t\t\t\t\"timeOfEnd\":-1,\n\t\t\t\t\"timeOfStart\":-1\n\t\t\t}\n\t\t],\n\t\t1:[]\n\t},\n\t\"scope\":\"__global__\",\n\t\"topic\":\"T1\",\n\t\"totalQueues\":2\n}";
        pretty_round_trip::<TopicQueueMappingDetail>(file);
    }
}
