//! Subscription groups: one group, the table of a broker (`subscriptionGroup.json`), and how long a retry waits.
//!
//! Java     `SubscriptionGroupConfig`, `SubscriptionGroupWrapper`, `SubscriptionGroupList`, `GroupRetryPolicy`,
//!          `GroupForbidden`, `GroupList`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DataVersion;
use crate::json;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// One consumer group as a broker knows it; UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200), answer to 352.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionGroupConfig {
    pub attributes: BTreeMap<String, String>,
    pub broker_id: i64,
    pub consume_broadcast_enable: bool,
    pub consume_enable: bool,
    pub consume_from_min_enable: bool,
    pub consume_message_orderly: bool,
    /// Of a push consumer, for one message.
    pub consume_timeout_minute: i32,
    pub group_name: String,
    pub group_retry_policy: GroupRetryPolicy,
    pub group_sys_flag: i32,
    pub notify_consumer_ids_changed_enable: bool,
    /// Deliveries after the first; then the message goes to the dead letters.
    pub retry_max_times: i32,
    pub retry_queue_nums: i32,
    /// Subscriptions that an operator has fixed for the group.
    pub subscription_data_set: Option<Vec<SimpleSubscription>>,
    /// Broker id that a pull is sent to when the group reads from far back.
    pub which_broker_when_consume_slowly: i64,
}

impl Default for SubscriptionGroupConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            broker_id: 0,
            consume_broadcast_enable: true,
            consume_enable: true,
            consume_from_min_enable: true,
            consume_message_orderly: false,
            consume_timeout_minute: 15,
            group_name: String::new(),
            group_retry_policy: GroupRetryPolicy::default(),
            group_sys_flag: 0,
            notify_consumer_ids_changed_enable: true,
            retry_max_times: 16,
            retry_queue_nums: 1,
            subscription_data_set: None,
            which_broker_when_consume_slowly: 1,
        }
    }
}

impl SubscriptionGroupConfig {
    pub fn new(group_name: &str) -> Self {
        Self { group_name: group_name.to_owned(), ..Self::default() }
    }
}

/// How long a popped message that was not acknowledged waits before it comes again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupRetryPolicy {
    pub customized_retry_policy: Option<CustomizedRetryPolicy>,
    pub exponential_retry_policy: Option<ExponentialRetryPolicy>,
    #[serde(rename = "type")]
    pub kind: RetryPolicyKind,
}

java_enum! {
    /// Which policy of a `GroupRetryPolicy` is in force.
    RetryPolicyKind {
        Exponential = "EXPONENTIAL",
        #[default]
        Customized = "CUSTOMIZED",
    }
}

/// A wait for each delivery, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomizedRetryPolicy {
    #[serde(serialize_with = "json::inline")]
    pub next: Vec<i64>,
}

/// `initial · multiplier^deliveries`, at most `max`; milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExponentialRetryPolicy {
    pub initial: i64,
    pub max: i64,
    pub multiplier: i64,
}

/// The delay levels of retries: 1 s 5 s 10 s 30 s, 1 to 10 min, 20 min 30 min 1 h 2 h.
const RETRY_WAITS: [i64; 18] = [
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    3 * MINUTE,
    4 * MINUTE,
    5 * MINUTE,
    6 * MINUTE,
    7 * MINUTE,
    8 * MINUTE,
    9 * MINUTE,
    10 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
];

impl Default for CustomizedRetryPolicy {
    fn default() -> Self {
        Self { next: RETRY_WAITS.to_vec() }
    }
}

impl Default for ExponentialRetryPolicy {
    fn default() -> Self {
        Self { initial: 5 * SECOND, max: 2 * HOUR, multiplier: 2 }
    }
}

impl GroupRetryPolicy {
    /// Milliseconds until the next delivery, after `reconsume_times` of them. The first two waits of the list are
    /// skipped, as Java does: levels 1 and 2 were never used for retries.
    pub fn wait_ms(&self, reconsume_times: i32) -> i64 {
        let times = u32::try_from(reconsume_times).unwrap_or(0);
        if let (RetryPolicyKind::Exponential, Some(policy)) = (self.kind, &self.exponential_retry_policy) {
            let factor = policy.multiplier.saturating_pow(times.min(32));
            return policy.initial.saturating_mul(factor).min(policy.max);
        }
        let waits = match (self.kind, &self.customized_retry_policy) {
            (RetryPolicyKind::Customized, Some(policy)) if !policy.next.is_empty() => policy.next.as_slice(),
            _ => &RETRY_WAITS,
        };
        let last = waits.len() - 1;
        waits[last.min(times as usize + 2)]
    }
}

/// A subscription that is part of a group's config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SimpleSubscription {
    pub expression: Option<String>,
    pub expression_type: Option<String>,
    pub topic: String,
    pub version: i64,
}

/// `config/subscriptionGroup.json`; answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionGroupTable {
    pub data_version: DataVersion,
    /// Group → topic → bits of what the group may not do there.
    pub forbidden_table: BTreeMap<String, BTreeMap<String, i32>>,
    pub subscription_group_table: BTreeMap<String, SubscriptionGroupConfig>,
}

/// UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionGroupList {
    pub group_config_list: Vec<SubscriptionGroupConfig>,
}

/// Answer to UPDATE_AND_GET_GROUP_FORBIDDEN (353).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupForbidden {
    pub group: String,
    pub readable: Option<bool>,
    pub topic: String,
}

/// Answer to QUERY_TOPIC_CONSUME_BY_WHO (300).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupList {
    pub group_list: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::{defaults, pretty_round_trip, round_trip};

    const CONFIG: &str = r#"{"attributes":{"s":"s"},"brokerId":2,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":true,"consumeTimeoutMinute":1,"groupName":"s","groupRetryPolicy":{"customizedRetryPolicy":{"next":[2]},"exponentialRetryPolicy":{"initial":2,"max":2,"multiplier":2},"type":"EXPONENTIAL"},"groupSysFlag":1,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":1,"retryQueueNums":1,"subscriptionDataSet":[{"expression":"s","expressionType":"s","topic":"s","version":2}],"whichBrokerWhenConsumeSlowly":2}"#;

    #[test]
    fn reads_and_writes_javas_text() {
        round_trip::<SubscriptionGroupConfig>(CONFIG);
        round_trip::<SubscriptionGroupList>(&format!(r#"{{"groupConfigList":[{CONFIG}]}}"#));
        round_trip::<SubscriptionGroupTable>(&format!(
            r#"{{"dataVersion":{{"counter":7,"stateVersion":2,"timestamp":2}},"forbiddenTable":{{"s":{{"s":1}}}},"subscriptionGroupTable":{{"s":{CONFIG}}}}}"#
        ));
        round_trip::<GroupForbidden>(r#"{"group":"s","readable":true,"topic":"s"}"#);
        round_trip::<GroupList>(r#"{"groupList":["s"]}"#);
    }

    #[test]
    fn defaults_are_javas() {
        assert_eq!(
            defaults::<SubscriptionGroupConfig>().replace(r#""groupName":"""#, r#""groupName":"G1""#),
            r#"{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"G1","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}"#
        );
        let read: SubscriptionGroupConfig = json::from_slice(br#"{"groupName":"G"}"#).unwrap();
        assert_eq!(read, SubscriptionGroupConfig::new("G"));
    }

    /// Printed by Java 5.5.0; the array `next` is a `long[]` there, hence on one line.
    #[test]
    fn the_file_is_javas() {
        pretty_round_trip::<SubscriptionGroupConfig>(
            "{\n\t\"attributes\":{},\n\t\"brokerId\":0,\n\t\"consumeBroadcastEnable\":true,\n\t\"consumeEnable\":true,\n\t\"consumeFromMinEnable\":true,\n\t\"consumeMessageOrderly\":false,\n\t\"consumeTimeoutMinute\":15,\n\t\"groupName\":\"G\",\n\t\"groupRetryPolicy\":{\n\t\t\"customizedRetryPolicy\":{\n\t\t\t\"next\":[1,2]\n\t\t},\n\t\t\"type\":\"CUSTOMIZED\"\n\t},\n\t\"groupSysFlag\":0,\n\t\"notifyConsumerIdsChangedEnable\":true,\n\t\"retryMaxTimes\":16,\n\t\"retryQueueNums\":1,\n\t\"subscriptionDataSet\":[\n\t\t{\n\t\t\t\"expression\":\"*\",\n\t\t\t\"expressionType\":\"TAG\",\n\t\t\t\"topic\":\"T\",\n\t\t\t\"version\":3\n\t\t}\n\t],\n\t\"whichBrokerWhenConsumeSlowly\":1\n}",
        );
    }

    #[test]
    fn waits_between_deliveries() {
        let default = GroupRetryPolicy::default();
        assert_eq!(
            [default.wait_ms(-1), default.wait_ms(0), default.wait_ms(1)],
            [10 * SECOND, 10 * SECOND, 30 * SECOND]
        );
        assert_eq!(default.wait_ms(i32::MAX), 2 * HOUR);
        let short = CustomizedRetryPolicy { next: vec![7] };
        let custom = GroupRetryPolicy { customized_retry_policy: Some(short), ..GroupRetryPolicy::default() };
        assert_eq!(custom.wait_ms(0), 7);
        let exponential = GroupRetryPolicy {
            exponential_retry_policy: Some(ExponentialRetryPolicy::default()),
            kind: RetryPolicyKind::Exponential,
            ..GroupRetryPolicy::default()
        };
        assert_eq!([exponential.wait_ms(0), exponential.wait_ms(3)], [5 * SECOND, 40 * SECOND]);
        assert_eq!(exponential.wait_ms(99), 2 * HOUR);
    }
}
