//! Routes: which brokers hold a topic, how many queues each, and where its replicas listen.
//!
//! Java     `TopicRouteData`, `BrokerData`, `QueueData`, `ClusterInfo`, `BrokerMemberGroup`

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::TopicQueueMappingInfo;
use crate::json;

/// Answer to GET_ROUTEINFO_BY_TOPIC (105); body of REGISTER_TOPIC_IN_NAMESRV (217).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicRouteData {
    pub broker_datas: Vec<BrokerData>,
    pub filter_server_table: BTreeMap<String, Vec<String>>,
    /// `broker:queues;broker:queues` for topics whose queues must not change.
    pub order_topic_conf: Option<String>,
    pub queue_datas: Vec<QueueData>,
    /// Broker name → hosted logical queues; only for static topics.
    pub topic_queue_mapping_by_broker: Option<BTreeMap<String, TopicQueueMappingInfo>>,
}

impl TopicRouteData {
    /// `standard`: the requester is of version ≥ V4_9_4 or sent `acceptStandardJsonOnly=true`, so broker ids are quoted.
    pub fn to_json(&self, standard: bool) -> Vec<u8> {
        if standard { json::to_vec(self) } else { json::to_fastjson(self) }
    }
}

/// A broker and its replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerData {
    /// Broker id → `host:port`; 0 is the master.
    pub broker_addrs: BTreeMap<i64, String>,
    pub broker_name: String,
    pub cluster: String,
    pub enable_acting_master: bool,
    pub zone_name: Option<String>,
}

/// The queues of a topic on one broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueueData {
    pub broker_name: String,
    pub perm: i32,
    pub read_queue_nums: i32,
    pub topic_sys_flag: i32,
    pub write_queue_nums: i32,
}

/// Answer to GET_BROKER_CLUSTER_INFO (106).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterInfo {
    /// Broker name → broker.
    pub broker_addr_table: BTreeMap<String, BrokerData>,
    /// Cluster → broker names.
    pub cluster_addr_table: BTreeMap<String, BTreeSet<String>>,
}

/// The replicas of one broker that are alive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BrokerMemberGroup {
    pub broker_addrs: BTreeMap<i64, String>,
    pub broker_name: String,
    pub cluster: String,
}

/// Answer to GET_BROKER_MEMBER_GROUP (901).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GetBrokerMemberGroupResponseBody {
    pub broker_member_group: Option<BrokerMemberGroup>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::{defaults, round_trip};

    #[test]
    fn reads_and_writes_javas_text() {
        round_trip::<TopicRouteData>(
            r#"{"brokerDatas":[{"brokerAddrs":{2:"s"},"brokerName":"s","cluster":"s","enableActingMaster":true,"zoneName":"s"}],"filterServerTable":{"s":["s"]},"orderTopicConf":"s","queueDatas":[{"brokerName":"s","perm":1,"readQueueNums":1,"topicSysFlag":1,"writeQueueNums":1}],"topicQueueMappingByBroker":{"s":{"bname":"s","currIdMap":{1:1},"dirty":true,"epoch":2,"scope":"s","topic":"s","totalQueues":1}}}"#,
        );
        assert_eq!(defaults::<TopicRouteData>(), r#"{"brokerDatas":[],"filterServerTable":{},"queueDatas":[]}"#);
        round_trip::<ClusterInfo>(
            r#"{"brokerAddrTable":{"s":{"brokerAddrs":{2:"s"},"brokerName":"s","cluster":"s","enableActingMaster":true,"zoneName":"s"}},"clusterAddrTable":{"s":["s"]}}"#,
        );
        round_trip::<GetBrokerMemberGroupResponseBody>(
            r#"{"brokerMemberGroup":{"brokerAddrs":{2:"s"},"brokerName":"s","cluster":"s"}}"#,
        );
    }

    #[test]
    fn quotes_broker_ids_for_new_clients() {
        let standard = r#"{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.2:10911","1":"10.0.0.3:10911"},"brokerName":"b1","cluster":"c1","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"b1","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}"#;
        let route: TopicRouteData = json::from_slice(standard.as_bytes()).unwrap();
        assert_eq!(route.to_json(true), standard.as_bytes());
        let bare = standard.replace("\"0\":", "0:").replace("\"1\":", "1:");
        assert_eq!(route.to_json(false), bare.as_bytes());
    }
}
