//! Bodies of requests and answers, and the JSON files of a broker's config directory (they have the same shapes).
//!
//! Each type says which request codes carry it; `json::from_slice` reads it, `json::to_fastjson` writes what Java would
//! send, `json::to_pretty` what Java would store. Unknown fields are skipped, missing and null ones have Java's default.
//! Fields are declared in alphabetical order of their JSON names, which is the order on the wire.
//!
//! Java     `remoting.protocol.{body, heartbeat, route, subscription, statictopic}`, `TopicConfig`, `DataVersion`

#[macro_use]
mod java_enum;

pub mod data_version;
pub mod queue;
pub mod topic;
pub mod static_topic;
pub mod group;
pub mod offsets;
pub mod heartbeat;
pub mod connection;
pub mod route;
pub mod register;
pub mod request_mode;
pub mod running_info;
pub mod stats;
pub mod table;

pub use connection::{ClientConnection, ConsumerConnection, GetConsumerListByGroupResponseBody, ProducerConnection};
pub use data_version::DataVersion;
pub use group::{
    GroupForbidden, GroupList, GroupRetryPolicy, SimpleSubscription, SubscriptionGroupConfig, SubscriptionGroupList,
    SubscriptionGroupTable,
};
pub use heartbeat::{
    CheckClientRequestBody, ConsumeFromWhere, ConsumeType, ConsumerData, HeartbeatData, MessageModel, ProducerData,
    SubscriptionData,
};
pub use offsets::{ConsumerOffsetTable, DelayOffsetTable, LocalOffsets, ResetOffsetBody};
pub use queue::{LockBatchRequestBody, LockBatchResponseBody, MessageQueue, UnlockBatchRequestBody};
pub use register::RegisterBrokerBody;
pub use request_mode::{MessageRequestMode, MessageRequestModeTable, SetMessageRequestModeRequestBody};
pub use route::{
    BrokerData, BrokerMemberGroup, ClusterInfo, GetBrokerMemberGroupResponseBody, QueueData, TopicRouteData,
};
pub use running_info::{ConsumeStatus, ConsumerRunningInfo, PopProcessQueueInfo, ProcessQueueInfo};
pub use static_topic::{LogicQueueMappingItem, TopicQueueMappingDetail, TopicQueueMappingInfo};
pub use stats::{ConsumeStats, OffsetWrapper, TopicOffset, TopicStatsTable};
pub use table::{KVTable, TopicList};
pub use topic::{
    CreateTopicListRequestBody, TopicConfig, TopicConfigAndMappingTable, TopicConfigAndQueueMapping, TopicConfigTable,
    TopicFilterType,
};

#[cfg(test)]
mod testing {
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::json;

    /// Reads `sample`, a line printed by the Java class, and writes the same again.
    pub(super) fn round_trip<T: Serialize + DeserializeOwned>(sample: &str) -> T {
        let value: T = json::from_slice(sample.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(json::to_fastjson(&value)).unwrap(), sample);
        value
    }

    /// The same for a config file.
    pub(super) fn pretty_round_trip<T: Serialize + DeserializeOwned>(file: &str) -> T {
        let value: T = json::from_slice(file.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(json::to_pretty(&value)).unwrap(), file);
        value
    }

    /// What a value with Java's defaults looks like on the wire.
    pub(super) fn defaults<T: Serialize + Default>() -> String {
        String::from_utf8(json::to_fastjson(&T::default())).unwrap()
    }
}
