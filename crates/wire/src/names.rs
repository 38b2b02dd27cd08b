//! Topic and group names: what is allowed, what is reserved, and Java's remarks when it is not.
//!
//! Allowed  `^[%|a-zA-Z0-9_-]+$`; a topic up to 127 bytes, a retry or dead-letter topic 255, a group 120 (so that
//!          `%RETRY%group_topic` fits).
//! Prefixes `%RETRY%group` messages to deliver again, `%DLQ%group` dead letters, `%LMQ%` light queues.
//! The lists here are fixed; a broker reserves more topics of its own at run time (its cluster and broker name,
//! `<cluster>_REPLY_TOPIC`, its trace topic), which its topic table adds.
//!
//! Java     `TopicValidator`, `MixAll`

use thiserror::Error;

pub const TOPIC_BYTES_MAX: usize = 127;
pub const RETRY_TOPIC_BYTES_MAX: usize = 255;
pub const GROUP_BYTES_MAX: usize = 120;

pub const RETRY_PREFIX: &str = "%RETRY%";
pub const DLQ_PREFIX: &str = "%DLQ%";
pub const LMQ_PREFIX: &str = "%LMQ%";
pub const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";
pub const SYNC_BROKER_MEMBER_PREFIX: &str = "rmq_sys_SYNC_BROKER_MEMBER_";
pub const SYSTEM_GROUP_PREFIX: &str = "CID_RMQ_SYS_";

/// Template topic: a send to an unknown topic copies its queues when automatic creation is on.
pub const AUTO_CREATE_TOPIC: &str = "TBW102";
/// Messages that wait for their delay level.
pub const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
pub const BENCHMARK_TOPIC: &str = "BenchmarkTest";
pub const TRANS_HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
pub const TRANS_OP_HALF_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
pub const ROCKSDB_TRANS_HALF_TOPIC: &str = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC";
pub const ROCKSDB_TRANS_OP_HALF_TOPIC: &str = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC";
pub const TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";
pub const TRANS_CHECK_MAX_TIME_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";
pub const SELF_TEST_TOPIC: &str = "SELF_TEST_TOPIC";
pub const OFFSET_MOVED_EVENT_TOPIC: &str = "OFFSET_MOVED_EVENT";
pub const CHECKPOINT_TOPIC: &str = "CHECKPOINT_TOPIC";
/// Messages that wait in the timer wheel.
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";

pub const SYSTEM_TOPICS: [&str; 12] = [
    AUTO_CREATE_TOPIC,
    SCHEDULE_TOPIC,
    BENCHMARK_TOPIC,
    TRANS_HALF_TOPIC,
    TRACE_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_EVENT_TOPIC,
    CHECKPOINT_TOPIC,
    ROCKSDB_TRANS_HALF_TOPIC,
    ROCKSDB_TRANS_OP_HALF_TOPIC,
];

/// Topics that only the broker itself may write, and the pattern of new topics, which Java lets clients write to.
const SEND_FORBIDDEN_TOPICS: [&str; 9] = [
    AUTO_CREATE_TOPIC,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_EVENT_TOPIC,
    ROCKSDB_TRANS_HALF_TOPIC,
    ROCKSDB_TRANS_OP_HALF_TOPIC,
];

pub const DEFAULT_PRODUCER: &str = "DEFAULT_PRODUCER";
pub const DEFAULT_CONSUMER: &str = "DEFAULT_CONSUMER";
pub const TOOLS_CONSUMER: &str = "TOOLS_CONSUMER";
pub const SCHEDULE_CONSUMER: &str = "SCHEDULE_CONSUMER";
pub const FILTERSRV_CONSUMER: &str = "FILTERSRV_CONSUMER";
pub const MONITOR_CONSUMER: &str = "__MONITOR_CONSUMER";
pub const CLIENT_INNER_PRODUCER: &str = "CLIENT_INNER_PRODUCER";
pub const SELF_TEST_PRODUCER: &str = "SELF_TEST_P_GROUP";
pub const SELF_TEST_CONSUMER: &str = "SELF_TEST_C_GROUP";
pub const ONS_HTTP_PROXY: &str = "CID_ONS-HTTP-PROXY";
pub const ONSAPI_PERMISSION: &str = "CID_ONSAPI_PERMISSION";
pub const ONSAPI_OWNER: &str = "CID_ONSAPI_OWNER";
pub const ONSAPI_PULL: &str = "CID_ONSAPI_PULL";
/// The broker's own group over the half topic of transactions.
pub const TRANS_GROUP: &str = "CID_RMQ_SYS_TRANS";

const PREDEFINED_GROUPS: [&str; 14] = [
    DEFAULT_CONSUMER,
    DEFAULT_PRODUCER,
    TOOLS_CONSUMER,
    SCHEDULE_CONSUMER,
    FILTERSRV_CONSUMER,
    MONITOR_CONSUMER,
    CLIENT_INNER_PRODUCER,
    SELF_TEST_PRODUCER,
    SELF_TEST_CONSUMER,
    ONS_HTTP_PROXY,
    ONSAPI_PERMISSION,
    ONSAPI_OWNER,
    ONSAPI_PULL,
    TRANS_GROUP,
];

/// Why a name is refused. `Display` is Java's remark, letter by letter.
#[derive(Error, Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    #[error("The specified topic is blank.")]
    TopicBlank,
    #[error("The specified topic: {0}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")]
    TopicIllegal(String),
    #[error("The specified topic: {0}, is longer than topic max length: {TOPIC_BYTES_MAX}")]
    TopicTooLong(String),
    #[error(
        "The specified topic is DLQ or Retry topic: {0}, and it's longer than topic max length: {RETRY_TOPIC_BYTES_MAX}"
    )]
    RetryTopicTooLong(String),
    #[error("The specified group is blank.")]
    GroupBlank,
    #[error("The specified group: {0}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")]
    GroupIllegal(String),
    #[error("The specified group: {0}, is longer than group max length: {GROUP_BYTES_MAX}")]
    GroupTooLong(String),
    /// Answer INVALID_PARAMETER to a create, update or delete of a reserved topic.
    #[error("The topic[{0}] is conflict with system topic.")]
    SystemTopic(String),
    /// Answer NO_PERMISSION to a send.
    #[error("Sending message to topic[{0}] is forbidden.")]
    SendForbidden(String),
}

/// May this be a topic at all? Checked on every send and every topic command.
pub fn check_topic(topic: &str) -> Result<(), NameError> {
    if is_blank(topic) {
        return Err(NameError::TopicBlank);
    }
    if !is_legal(topic) {
        return Err(NameError::TopicIllegal(topic.to_owned()));
    }
    if is_retry_topic(topic) || is_dlq_topic(topic) {
        if topic.len() > RETRY_TOPIC_BYTES_MAX {
            return Err(NameError::RetryTopicTooLong(topic.to_owned()));
        }
    } else if topic.len() > TOPIC_BYTES_MAX {
        return Err(NameError::TopicTooLong(topic.to_owned()));
    }
    Ok(())
}

/// May this be a consumer group?
pub fn check_group(group: &str) -> Result<(), NameError> {
    if is_blank(group) {
        return Err(NameError::GroupBlank);
    }
    if !is_legal(group) {
        return Err(NameError::GroupIllegal(group.to_owned()));
    }
    if group.len() > GROUP_BYTES_MAX {
        return Err(NameError::GroupTooLong(group.to_owned()));
    }
    Ok(())
}

pub fn retry_topic(group: &str) -> String {
    format!("{RETRY_PREFIX}{group}")
}

pub fn dlq_topic(group: &str) -> String {
    format!("{DLQ_PREFIX}{group}")
}

/// Where the answers of request-reply go: one topic a cluster.
pub fn reply_topic(cluster: &str) -> String {
    format!("{cluster}_REPLY_TOPIC")
}

pub fn is_retry_topic(topic: &str) -> bool {
    topic.starts_with(RETRY_PREFIX)
}

pub fn is_dlq_topic(topic: &str) -> bool {
    topic.starts_with(DLQ_PREFIX)
}

/// A light queue, or a group that stands for one.
pub fn is_lmq(name: &str) -> bool {
    name.starts_with(LMQ_PREFIX)
}

/// May messages of this topic be dispatched to light queues as well?
pub fn topic_allows_lmq(topic: &str) -> bool {
    !is_retry_topic(topic) && !is_dlq_topic(topic) && !topic.starts_with(SYSTEM_TOPIC_PREFIX) && topic != SCHEDULE_TOPIC
}

pub fn is_system_topic(topic: &str) -> bool {
    topic.starts_with(SYSTEM_TOPIC_PREFIX) || SYSTEM_TOPICS.contains(&topic)
}

pub fn is_send_forbidden(topic: &str) -> bool {
    SEND_FORBIDDEN_TOPICS.contains(&topic)
}

/// Broker-internal groups; clients may create them only when `enableCreateSysGroup` is on.
pub fn is_system_group(group: &str) -> bool {
    group.starts_with(SYSTEM_GROUP_PREFIX)
}

/// Groups that every cluster has and no namespace or quota applies to.
pub fn is_predefined_group(group: &str) -> bool {
    PREDEFINED_GROUPS.contains(&group)
}

/// Groups whose pulls are exempt from flow control and hooks meant for users.
pub fn is_system_pull_group(group: &str) -> bool {
    const PRODUCERS: [&str; 3] = [DEFAULT_PRODUCER, CLIENT_INNER_PRODUCER, SELF_TEST_PRODUCER];
    is_system_group(group) || (is_predefined_group(group) && !PRODUCERS.contains(&group))
}

fn is_blank(name: &str) -> bool {
    name.chars().all(char::is_whitespace)
}

fn is_legal(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'|' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic_remark(topic: &str) -> String {
        check_topic(topic).unwrap_err().to_string()
    }

    fn group_remark(group: &str) -> String {
        check_group(group).unwrap_err().to_string()
    }

    #[test]
    fn remarks_are_javas() {
        let long = "t".repeat(128);
        assert_eq!(topic_remark(" \t"), "The specified topic is blank.");
        assert_eq!(
            topic_remark("a b"),
            "The specified topic: a b, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
        );
        assert_eq!(topic_remark(&long), format!("The specified topic: {long}, is longer than topic max length: 127"));
        let retry = retry_topic(&"g".repeat(249));
        assert_eq!(
            topic_remark(&retry),
            format!("The specified topic is DLQ or Retry topic: {retry}, and it's longer than topic max length: 255")
        );
        assert_eq!(group_remark(""), "The specified group is blank.");
        assert_eq!(
            group_remark("gruppe_ä"),
            "The specified group: gruppe_ä, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
        );
        let long = "g".repeat(121);
        assert_eq!(group_remark(&long), format!("The specified group: {long}, is longer than group max length: 120"));
        assert_eq!(NameError::SendForbidden("T".into()).to_string(), "Sending message to topic[T] is forbidden.");
        assert_eq!(NameError::SystemTopic("T".into()).to_string(), "The topic[T] is conflict with system topic.");
    }

    #[test]
    fn limits_are_inclusive() {
        assert!(check_topic(&"t".repeat(127)).is_ok());
        assert!(check_topic(&retry_topic(&"g".repeat(248))).is_ok());
        assert!(check_topic(&dlq_topic(&"g".repeat(250))).is_ok());
        assert!(check_group(&"g".repeat(120)).is_ok());
        assert!(check_topic("%LMQ%a|B-9_z").is_ok());
    }

    #[test]
    fn reserved_names() {
        assert!(is_system_topic("TBW102") && is_system_topic("rmq_sys_anything") && !is_system_topic("RMQ_SYS_X"));
        assert!(
            is_send_forbidden(SCHEDULE_TOPIC)
                && is_send_forbidden(AUTO_CREATE_TOPIC)
                && !is_send_forbidden(TRACE_TOPIC)
        );
        assert!(is_system_group("CID_RMQ_SYS_TRANS") && !is_system_group("TOOLS_CONSUMER"));
        assert!(is_system_pull_group("TOOLS_CONSUMER") && !is_system_pull_group("DEFAULT_PRODUCER"));
        assert!(is_predefined_group("DEFAULT_PRODUCER") && !is_predefined_group("CID_RMQ_SYS_OTHER"));
        assert!(!topic_allows_lmq("%RETRY%g") && topic_allows_lmq("orders"));
        assert_eq!(reply_topic("DefaultCluster"), "DefaultCluster_REPLY_TOPIC");
    }
}
