//! The custom fields of each request and response, as types. One macro gives decoding in one pass over the fields (no
//! map) and encoding. A field that Java marks `@CFNotNull` is required; the rest are `Option`.
//! Java: `remoting.protocol.header.*`; the names in quotes are the names on the wire.

use std::borrow::Cow;

use crate::DecodeError;
use crate::header::{ExtFields, ExtWriter};

/// A value of a header field.
pub trait Value<'a>: Sized {
    const EXPECTED: &'static str;
    #[allow(clippy::ptr_arg)] // a `Cow` parameter is what lets text fields stay borrowed
    fn parse(text: &Cow<'a, str>) -> Option<Self>;
    /// What an absent field means; `None` = it is required.
    fn absent() -> Option<Self> {
        None
    }
    fn write(&self, key: &str, out: &mut ExtWriter<'_>);
}

impl<'a> Value<'a> for Cow<'a, str> {
    const EXPECTED: &'static str = "text";
    fn parse(text: &Cow<'a, str>) -> Option<Self> {
        Some(text.clone())
    }
    fn write(&self, key: &str, out: &mut ExtWriter<'_>) {
        out.str(key, self);
    }
}

macro_rules! int_value {
    ($($t:ty: $expected:literal),*) => {$(
        impl<'a> Value<'a> for $t {
            const EXPECTED: &'static str = $expected;
            fn parse(text: &Cow<'a, str>) -> Option<Self> {
                text.parse().ok()
            }
            fn write(&self, key: &str, out: &mut ExtWriter<'_>) {
                out.int(key, i64::from(*self));
            }
        }
    )*};
}
int_value!(i32: "a 32-bit integer", i64: "a 64-bit integer", u32: "an unsigned 32-bit integer");

impl<'a> Value<'a> for bool {
    const EXPECTED: &'static str = "true or false";
    /// As Java's `Boolean.parseBoolean`: everything but `true` is false.
    fn parse(text: &Cow<'a, str>) -> Option<Self> {
        Some(text.eq_ignore_ascii_case("true"))
    }
    fn write(&self, key: &str, out: &mut ExtWriter<'_>) {
        out.bool(key, *self);
    }
}

impl<'a, T: Value<'a>> Value<'a> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    fn parse(text: &Cow<'a, str>) -> Option<Self> {
        // The binary serialisation has no null: an empty text stands for it.
        if text.is_empty() { Some(None) } else { T::parse(text).map(Some) }
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
    fn write(&self, key: &str, out: &mut ExtWriter<'_>) {
        if let Some(value) = self {
            value.write(key, out);
        }
    }
}

macro_rules! headers {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty = $key:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name<'a> {
            $(pub $field: $type,)*
            _borrow: std::marker::PhantomData<&'a str>,
        }

        impl<'a> $name<'a> {
            #[allow(clippy::too_many_arguments)]
            pub fn new($($field: $type),*) -> Self {
                Self { $($field,)* _borrow: std::marker::PhantomData }
            }

            pub fn decode(ext: &ExtFields<'a>) -> Result<Self, DecodeError> {
                $(let mut $field: Option<$type> = None;)*
                let mut fields = ext.iter();
                for (key, value) in fields.by_ref() {
                    match key.as_ref() {
                        $($key => {
                            let parsed = <$type as Value<'a>>::parse(&value);
                            $field = Some(parsed.ok_or_else(|| {
                                DecodeError::bad_field($key, &value, <$type as Value<'a>>::EXPECTED)
                            })?);
                        })*
                        _ => {}
                    }
                }
                fields.finish()?;
                Ok(Self::new($(
                    $field.or_else(<$type as Value<'a>>::absent).ok_or(DecodeError::MissingField { field: $key })?
                ),*))
            }

            pub fn write(&self, out: &mut ExtWriter<'_>) {
                $(self.$field.write($key, out);)*
            }
        }
    )*};
}

type Text<'a> = Cow<'a, str>;

headers! {
    /// SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320). Java: `SendMessageRequestHeaderV2`.
    SendV2 {
        producer_group: Text<'a> = "a", topic: Text<'a> = "b", default_topic: Text<'a> = "c",
        default_topic_queue_nums: i32 = "d", queue_id: i32 = "e", sys_flag: i32 = "f", born_timestamp: i64 = "g",
        flag: i32 = "h", properties: Option<Text<'a>> = "i", reconsume_times: Option<i32> = "j",
        unit_mode: Option<bool> = "k", max_reconsume_times: Option<i32> = "l", batch: Option<bool> = "m",
        broker_name: Option<Text<'a>> = "n",
    }
    /// SEND_MESSAGE (10). Java: `SendMessageRequestHeader`.
    SendV1 {
        producer_group: Text<'a> = "producerGroup", topic: Text<'a> = "topic", default_topic: Text<'a> = "defaultTopic",
        default_topic_queue_nums: i32 = "defaultTopicQueueNums", queue_id: i32 = "queueId", sys_flag: i32 = "sysFlag",
        born_timestamp: i64 = "bornTimestamp", flag: i32 = "flag", properties: Option<Text<'a>> = "properties",
        reconsume_times: Option<i32> = "reconsumeTimes", unit_mode: Option<bool> = "unitMode",
        max_reconsume_times: Option<i32> = "maxReconsumeTimes", batch: Option<bool> = "batch",
        broker_name: Option<Text<'a>> = "bname",
    }
    /// The answer of a send. Java: `SendMessageResponseHeader`, and the two extra fields that its processor adds.
    SendAnswer {
        msg_id: Text<'a> = "msgId", queue_id: i32 = "queueId", queue_offset: i64 = "queueOffset",
        transaction_id: Option<Text<'a>> = "transactionId", region: Option<Text<'a>> = "MSG_REGION",
        trace_on: Option<Text<'a>> = "TRACE_ON",
    }
    /// PULL_MESSAGE (11), LITE_PULL_MESSAGE (361). Java: `PullMessageRequestHeader`.
    Pull {
        consumer_group: Text<'a> = "consumerGroup", topic: Text<'a> = "topic", queue_id: i32 = "queueId",
        queue_offset: i64 = "queueOffset", max_msg_nums: i32 = "maxMsgNums", sys_flag: i32 = "sysFlag",
        commit_offset: i64 = "commitOffset", suspend_timeout_millis: i64 = "suspendTimeoutMillis",
        sub_version: i64 = "subVersion", subscription: Option<Text<'a>> = "subscription",
        expression_type: Option<Text<'a>> = "expressionType", max_msg_bytes: Option<i32> = "maxMsgBytes",
        request_source: Option<i32> = "requestSource",
    }
    /// The answer of a pull. Java: `PullMessageResponseHeader`.
    PullAnswer {
        suggest_which_broker_id: i64 = "suggestWhichBrokerId", next_begin_offset: i64 = "nextBeginOffset",
        min_offset: i64 = "minOffset", max_offset: i64 = "maxOffset", offset_delta: Option<i64> = "offsetDelta",
        topic_sys_flag: Option<i32> = "topicSysFlag", group_sys_flag: Option<i32> = "groupSysFlag",
        forbidden_type: Option<i32> = "forbiddenType",
    }
    /// CONSUMER_SEND_MSG_BACK (36). Java: `ConsumerSendMsgBackRequestHeader`.
    SendBack {
        offset: i64 = "offset", group: Text<'a> = "group", delay_level: i32 = "delayLevel",
        origin_msg_id: Option<Text<'a>> = "originMsgId", origin_topic: Option<Text<'a>> = "originTopic",
        unit_mode: Option<bool> = "unitMode", max_reconsume_times: Option<i32> = "maxReconsumeTimes",
    }
    /// INVOKE_BROKER_TO_RESET_OFFSET (222). Java: `ResetOffsetRequestHeader`.
    ResetOffset {
        group: Text<'a> = "group", topic: Text<'a> = "topic", queue_id: Option<i32> = "queueId",
        offset: Option<i64> = "offset", timestamp: i64 = "timestamp", is_force: bool = "isForce",
    }
    /// RESET_CONSUMER_CLIENT_OFFSET (220): what a consumer is told. Java: `ResetOffsetRequestHeader`.
    ResetClientOffset { topic: Text<'a> = "topic", group: Text<'a> = "group", timestamp: i64 = "timestamp" }
    /// GET_PRODUCER_CONNECTION_LIST (204). Java: `GetProducerConnectionListRequestHeader`.
    ProducerGroup { producer_group: Text<'a> = "producerGroup" }
    /// QUERY_CONSUMER_OFFSET (14). Java: `QueryConsumerOffsetRequestHeader`.
    QueryConsumerOffset {
        consumer_group: Text<'a> = "consumerGroup", topic: Text<'a> = "topic", queue_id: i32 = "queueId",
        set_zero_if_not_found: Option<bool> = "setZeroIfNotFound",
    }
    /// UPDATE_CONSUMER_OFFSET (15). Java: `UpdateConsumerOffsetRequestHeader`.
    UpdateConsumerOffset {
        consumer_group: Text<'a> = "consumerGroup", topic: Text<'a> = "topic", queue_id: i32 = "queueId",
        commit_offset: i64 = "commitOffset",
    }
    /// Names one queue: GET_MAX_OFFSET (30), GET_MIN_OFFSET (31), GET_EARLIEST_MSG_STORETIME (32).
    /// Java: `GetMaxOffsetRequestHeader`, `GetMinOffsetRequestHeader`, `GetEarliestMsgStoretimeRequestHeader`.
    Queue { topic: Text<'a> = "topic", queue_id: i32 = "queueId" }
    /// SEARCH_OFFSET_BY_TIMESTAMP (29). Java: `SearchOffsetRequestHeader`.
    SearchOffset {
        topic: Text<'a> = "topic", queue_id: i32 = "queueId", timestamp: i64 = "timestamp",
        boundary_type: Option<Text<'a>> = "boundaryType",
    }
    /// An offset as answer: 14, 29, 30, 31.
    OffsetAnswer { offset: i64 = "offset" }
    /// QUERY_MESSAGE (12). `index_type`: K key, U unique key, T tag. Java: `QueryMessageRequestHeader`, `MixAll.UNIQUE_MSG_QUERY_FLAG`.
    QueryMessage {
        topic: Text<'a> = "topic", key: Text<'a> = "key", max_num: i32 = "maxNum",
        begin_timestamp: i64 = "beginTimestamp", end_timestamp: i64 = "endTimestamp",
        index_type: Option<Text<'a>> = "indexType", last_key: Option<Text<'a>> = "lastKey",
        unique_key: Option<bool> = "_UNIQUE_KEY_QUERY",
    }
    /// The answer of 12: store time and log offset of the last message in the index. Java: `QueryMessageResponseHeader`.
    QueryAnswer {
        index_last_update_timestamp: i64 = "indexLastUpdateTimestamp",
        index_last_update_phyoffset: i64 = "indexLastUpdatePhyoffset",
    }
    /// VIEW_MESSAGE_BY_ID (33). Java: `ViewMessageRequestHeader`.
    ViewMessage { topic: Option<Text<'a>> = "topic", offset: i64 = "offset" }
    /// The answer of 32; −1 = the queue is empty.
    TimestampAnswer { timestamp: i64 = "timestamp" }
    /// UPDATE_AND_CREATE_TOPIC (17). Java: `CreateTopicRequestHeader`.
    CreateTopic {
        topic: Text<'a> = "topic", default_topic: Text<'a> = "defaultTopic", read_queue_nums: i32 = "readQueueNums",
        write_queue_nums: i32 = "writeQueueNums", perm: i32 = "perm", topic_filter_type: Text<'a> = "topicFilterType",
        topic_sys_flag: Option<i32> = "topicSysFlag", order: Option<bool> = "order",
        attributes: Option<Text<'a>> = "attributes", force: Option<bool> = "force",
    }
    /// Names one topic: 105, 215, 351.
    /// Java: `GetRouteInfoRequestHeader`, `DeleteTopicRequestHeader`, `GetTopicConfigRequestHeader`.
    Topic { topic: Text<'a> = "topic", accept_standard_json_only: Option<bool> = "acceptStandardJsonOnly" }
    /// DELETE_TOPIC_IN_NAMESRV (216). Java: `DeleteTopicFromNamesrvRequestHeader`.
    DeleteTopicInNameServer { topic: Text<'a> = "topic", cluster_name: Option<Text<'a>> = "clusterName" }
    /// DELETE_SUBSCRIPTIONGROUP (207). Java: `DeleteSubscriptionGroupRequestHeader`.
    DeleteGroup { group_name: Text<'a> = "groupName", clean_offset: Option<bool> = "cleanOffset" }
    /// GET_SUBSCRIPTIONGROUP_CONFIG (352). Java: `GetSubscriptionGroupConfigRequestHeader`.
    Group { group: Text<'a> = "group" }
    /// GET_CONSUMER_LIST_BY_GROUP (38), GET_CONSUMER_CONNECTION_LIST (203), NOTIFY_CONSUMER_IDS_CHANGED (40).
    ConsumerGroup { consumer_group: Text<'a> = "consumerGroup" }
    /// GET_CONSUME_STATS (208); `topicList` is separated by `;`. Java: `GetConsumeStatsRequestHeader`.
    ConsumeStats {
        consumer_group: Text<'a> = "consumerGroup", topic: Option<Text<'a>> = "topic",
        topic_list: Option<Text<'a>> = "topicList",
    }
    /// GET_CONSUMER_RUNNING_INFO (307). Java: `GetConsumerRunningInfoRequestHeader`.
    RunningInfo {
        consumer_group: Text<'a> = "consumerGroup", client_id: Text<'a> = "clientId",
        jstack_enable: Option<bool> = "jstackEnable",
    }
    /// GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201), page by page; brokers before 5.3 send all at once.
    /// Java: `GetAllSubscriptionGroupRequestHeader`.
    AllGroups {
        group_seq: i32 = "groupSeq", data_version: Option<Text<'a>> = "dataVersion",
        max_group_num: Option<i32> = "maxGroupNum",
    }
    /// The answer of 201. Java: `GetAllSubscriptionGroupResponseHeader`.
    AllGroupsAnswer { total_group_num: Option<i32> = "totalGroupNum" }
    /// UNREGISTER_CLIENT (35). Java: `UnregisterClientRequestHeader`.
    UnregisterClient {
        client_id: Text<'a> = "clientID", producer_group: Option<Text<'a>> = "producerGroup",
        consumer_group: Option<Text<'a>> = "consumerGroup",
    }
    /// REGISTER_BROKER (103). Java: `RegisterBrokerRequestHeader`.
    RegisterBroker {
        broker_name: Text<'a> = "brokerName", broker_addr: Text<'a> = "brokerAddr", cluster_name: Text<'a> = "clusterName",
        ha_server_addr: Text<'a> = "haServerAddr", broker_id: i64 = "brokerId",
        heartbeat_timeout_millis: Option<i64> = "heartbeatTimeoutMillis",
        enable_acting_master: Option<bool> = "enableActingMaster", compressed: Option<bool> = "compressed",
        body_crc32: Option<i32> = "bodyCrc32",
    }
    /// The answer of 103. Java: `RegisterBrokerResponseHeader`.
    RegisterBrokerAnswer {
        ha_server_addr: Option<Text<'a>> = "haServerAddr", master_addr: Option<Text<'a>> = "masterAddr",
    }
    /// UNREGISTER_BROKER (104), QUERY_DATA_VERSION (322). Java: `UnRegisterBrokerRequestHeader`, `QueryDataVersionRequestHeader`.
    BrokerIdentity {
        broker_name: Text<'a> = "brokerName", broker_addr: Text<'a> = "brokerAddr", cluster_name: Text<'a> = "clusterName",
        broker_id: i64 = "brokerId",
    }
    /// The answer of 322. Java: `QueryDataVersionResponseHeader`.
    DataVersionAnswer { changed: bool = "changed" }
    /// BROKER_HEARTBEAT (904). Java: `BrokerHeartbeatRequestHeader`.
    BrokerHeartbeat {
        cluster_name: Text<'a> = "clusterName", broker_addr: Text<'a> = "brokerAddr", broker_name: Text<'a> = "brokerName",
        broker_id: Option<i64> = "brokerId", heartbeat_timeout_mills: Option<i64> = "heartbeatTimeoutMills",
    }
    /// Names one broker: WIPE_WRITE_PERM_OF_BROKER (205), ADD_WRITE_PERM_OF_BROKER (327).
    BrokerName { broker_name: Text<'a> = "brokerName" }
    /// The answer of 205. Java: `WipeWritePermOfBrokerResponseHeader`.
    WipeWritePermAnswer { wipe_topic_count: i32 = "wipeTopicCount" }
    /// The answer of 327. Java: `AddWritePermOfBrokerResponseHeader`.
    AddWritePermAnswer { add_topic_count: i32 = "addTopicCount" }
    /// GET_BROKER_MEMBER_GROUP (901). Java: `GetBrokerMemberGroupRequestHeader`.
    BrokerInCluster { cluster_name: Text<'a> = "clusterName", broker_name: Text<'a> = "brokerName" }
    /// GET_TOPICS_BY_CLUSTER (224). Java: `GetTopicsByClusterRequestHeader`.
    Cluster { cluster: Text<'a> = "cluster" }
    /// KV config: 100, 101, 102, 219. Java: `PutKVConfigRequestHeader` and its relatives.
    KvConfig {
        namespace: Text<'a> = "namespace", key: Option<Text<'a>> = "key", value: Option<Text<'a>> = "value",
    }
    /// The answer of 101. Java: `GetKVConfigResponseHeader`.
    KvConfigAnswer { value: Option<Text<'a>> = "value" }
    /// The answer of 26: the data version of the configuration. Java: `GetBrokerConfigResponseHeader`.
    BrokerConfigAnswer { version: Text<'a> = "version" }
}

impl<'a> From<SendV1<'a>> for SendV2<'a> {
    fn from(h: SendV1<'a>) -> Self {
        SendV2::new(
            h.producer_group,
            h.topic,
            h.default_topic,
            h.default_topic_queue_nums,
            h.queue_id,
            h.sys_flag,
            h.born_timestamp,
            h.flag,
            h.properties,
            h.reconsume_times,
            h.unit_mode,
            h.max_reconsume_times,
            h.batch,
            h.broker_name,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestCode;
    use crate::frame::{self, Builder, Decoded};
    use crate::header::{Language, SerializeType};

    fn through_wire<R>(
        kind: SerializeType,
        write: impl FnOnce(&mut ExtWriter<'_>),
        read: impl FnOnce(ExtFields<'_>) -> R,
    ) -> R {
        let mut out = Vec::new();
        Builder::request(&mut out, kind, RequestCode(1), 1, 0, Language::RUST, 513).ext(write).finish();
        match frame::decode(&out, 1 << 20).unwrap() {
            Decoded::Frame { frame: Ok(f), .. } => read(f.head.ext),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn round_trip_in_both_serialisations() {
        let pull =
            Pull::new("g".into(), "t".into(), 3, i64::MAX, 32, 6, 0, 15_000, -1, Some("A||B".into()), None, None, None);
        for kind in [SerializeType::Json, SerializeType::Compact] {
            through_wire(kind, |w| pull.write(w), |ext| assert_eq!(Pull::decode(&ext).unwrap(), pull));
        }
    }

    #[test]
    fn errors_name_the_field() {
        let decode = |fields: &[(&str, &str)]| {
            through_wire(
                SerializeType::Json,
                |w| fields.iter().for_each(|(k, v)| w.str(k, v)),
                |ext| Queue::decode(&ext).map(|q| q.queue_id).unwrap_err().to_string(),
            )
        };
        assert_eq!(decode(&[("topic", "x")]), "the custom field <queueId> is null");
        assert_eq!(
            decode(&[("topic", "x"), ("queueId", "zero")]),
            "the custom field <queueId> has the value 'zero', expected a 32-bit integer"
        );
    }
}
