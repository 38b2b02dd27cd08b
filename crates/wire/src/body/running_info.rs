//! What a consumer says about itself: its queues, its speed, its subscriptions.
//!
//! Java     `ConsumerRunningInfo`, `ProcessQueueInfo`, `PopProcessQueueInfo`, `ConsumeStatus`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MessageQueue, SubscriptionData};

/// Answer to GET_CONSUMER_RUNNING_INFO (307), from the client through the broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerRunningInfo {
    /// Stacks of all threads, when asked for.
    pub jstack: Option<String>,
    pub mq_pop_table: BTreeMap<MessageQueue, PopProcessQueueInfo>,
    pub mq_table: BTreeMap<MessageQueue, ProcessQueueInfo>,
    /// `PROP_CONSUME_TYPE`, `PROP_CLIENT_VERSION` and the consumer's settings.
    pub properties: BTreeMap<String, String>,
    /// Topic → speed.
    pub status_table: BTreeMap<String, ConsumeStatus>,
    pub subscription_set: Vec<SubscriptionData>,
    pub user_consumer_info: BTreeMap<String, String>,
}

/// A queue that the consumer pulls. `droped` is Java's spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProcessQueueInfo {
    pub cached_msg_count: i32,
    pub cached_msg_max_offset: i64,
    pub cached_msg_min_offset: i64,
    #[serde(rename = "cachedMsgSizeInMiB")]
    pub cached_msg_size_in_mib: i32,
    pub commit_offset: i64,
    #[serde(rename = "droped")]
    pub dropped: bool,
    pub last_consume_timestamp: i64,
    pub last_lock_timestamp: i64,
    pub last_pull_timestamp: i64,
    pub locked: bool,
    pub transaction_msg_count: i32,
    pub transaction_msg_max_offset: i64,
    pub transaction_msg_min_offset: i64,
    pub try_unlock_times: i64,
}

/// A queue that the consumer pops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PopProcessQueueInfo {
    #[serde(rename = "droped")]
    pub dropped: bool,
    pub last_pop_timestamp: i64,
    pub wait_ack_count: i32,
}

/// Speed of a consumer on a topic: times in milliseconds, rates a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumeStatus {
    pub consume_failed_msgs: i64,
    #[serde(rename = "consumeFailedTPS")]
    pub consume_failed_tps: f64,
    #[serde(rename = "consumeOKTPS")]
    pub consume_ok_tps: f64,
    #[serde(rename = "consumeRT")]
    pub consume_rt: f64,
    #[serde(rename = "pullRT")]
    pub pull_rt: f64,
    #[serde(rename = "pullTPS")]
    pub pull_tps: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::{defaults, round_trip};

    #[test]
    fn reads_and_writes_javas_text() {
        round_trip::<ConsumerRunningInfo>(
            r#"{"jstack":"s","mqPopTable":{{"brokerName":"s","queueId":1,"topic":"s"}:{"droped":true,"lastPopTimestamp":2,"waitAckCount":1}},"mqTable":{{"brokerName":"s","queueId":1,"topic":"s"}:{"cachedMsgCount":1,"cachedMsgMaxOffset":2,"cachedMsgMinOffset":2,"cachedMsgSizeInMiB":1,"commitOffset":2,"droped":true,"lastConsumeTimestamp":2,"lastLockTimestamp":2,"lastPullTimestamp":2,"locked":true,"transactionMsgCount":1,"transactionMsgMaxOffset":2,"transactionMsgMinOffset":2,"tryUnlockTimes":2}},"properties":{"k":"v"},"statusTable":{"s":{"consumeFailedMsgs":2,"consumeFailedTPS":0.5,"consumeOKTPS":0.5,"consumeRT":0.5,"pullRT":0.5,"pullTPS":0.5}},"subscriptionSet":[{"classFilterMode":true,"codeSet":[1],"expressionType":"s","subString":"s","subVersion":2,"tagsSet":["s"],"topic":"s"}],"userConsumerInfo":{"s":"s"}}"#,
        );
        assert_eq!(
            defaults::<ConsumerRunningInfo>(),
            r#"{"mqPopTable":{},"mqTable":{},"properties":{},"statusTable":{},"subscriptionSet":[],"userConsumerInfo":{}}"#
        );
    }
}
