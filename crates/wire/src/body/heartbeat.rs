//! Heartbeats: which producer and consumer groups a client is a member of, and what they subscribe to.
//!
//! Java     `HeartbeatData`, `ConsumerData`, `ProducerData`, `SubscriptionData`, `CheckClientRequestBody`

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

java_enum! {
    /// How a consumer gets its messages.
    ConsumeType {
        ConsumeActively = "CONSUME_ACTIVELY",
        #[default]
        ConsumePassively = "CONSUME_PASSIVELY",
        ConsumePop = "CONSUME_POP",
    }
}

java_enum! {
    /// Whether the members of a group share the messages or each gets all.
    MessageModel {
        Broadcasting = "BROADCASTING",
        #[default]
        Clustering = "CLUSTERING",
        LiteSelective = "LITE_SELECTIVE",
    }
}

java_enum! {
    /// Where a group without an offset begins. Java's clients have given up the second to fourth.
    ConsumeFromWhere {
        #[default]
        ConsumeFromLastOffset = "CONSUME_FROM_LAST_OFFSET",
        ConsumeFromLastOffsetAndFromMinWhenBootFirst = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        ConsumeFromMinOffset = "CONSUME_FROM_MIN_OFFSET",
        ConsumeFromMaxOffset = "CONSUME_FROM_MAX_OFFSET",
        ConsumeFromFirstOffset = "CONSUME_FROM_FIRST_OFFSET",
        ConsumeFromTimestamp = "CONSUME_FROM_TIMESTAMP",
    }
}

/// HEART_BEAT (34).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HeartbeatData {
    #[serde(rename = "clientID")]
    pub client_id: String,
    pub consumer_data_set: Vec<ConsumerData>,
    /// Hash of the subscriptions: not 0 in version 2 of the protocol.
    pub heartbeat_fingerprint: i32,
    pub producer_data_set: Vec<ProducerData>,
    /// The short form of version 2: the subscriptions are those that came with this fingerprint before.
    pub without_sub: bool,
}

/// A consumer group of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerData {
    pub consume_from_where: ConsumeFromWhere,
    pub consume_type: ConsumeType,
    pub group_name: String,
    pub message_model: MessageModel,
    pub subscription_data_set: Vec<SubscriptionData>,
    pub unit_mode: bool,
}

/// A producer group of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProducerData {
    pub group_name: String,
}

/// What a group wants of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionData {
    pub class_filter_mode: bool,
    /// Java hash codes of the tags.
    pub code_set: BTreeSet<i32>,
    /// `TAG` or `SQL92`; clients before 4.1 know only the first and send none.
    pub expression_type: String,
    /// `*`, `A||B`, or the SQL expression.
    pub sub_string: String,
    /// Milliseconds since 1970 at the client when it subscribed: the newer one wins.
    pub sub_version: i64,
    pub tags_set: BTreeSet<String>,
    pub topic: String,
}

impl Default for SubscriptionData {
    fn default() -> Self {
        Self {
            class_filter_mode: false,
            code_set: BTreeSet::new(),
            expression_type: "TAG".to_owned(),
            sub_string: String::new(),
            sub_version: 0,
            tags_set: BTreeSet::new(),
            topic: String::new(),
        }
    }
}

/// CHECK_CLIENT_CONFIG (46): can the broker filter by this expression?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CheckClientRequestBody {
    pub client_id: String,
    pub group: String,
    pub namespace: Option<String>,
    pub subscription_data: Option<SubscriptionData>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::round_trip;
    use crate::json;

    #[test]
    fn reads_and_writes_javas_text() {
        let heartbeat: HeartbeatData = round_trip(
            r#"{"clientID":"10.0.0.9@100#1","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"CG","messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,"codeSet":[2669,2670],"expressionType":"TAG","subString":"TA||TB","subVersion":1,"tagsSet":["TA","TB"],"topic":"T1"}],"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"PG"}],"withoutSub":false}"#,
        );
        assert_eq!(heartbeat.consumer_data_set[0].subscription_data_set[0].code_set, BTreeSet::from([2669, 2670]));
        round_trip::<HeartbeatData>(
            r#"{"clientID":"s","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_ACTIVELY","groupName":"s","messageModel":"BROADCASTING","subscriptionDataSet":[{"classFilterMode":true,"codeSet":[],"expressionType":"s","subString":"s","subVersion":2,"tagsSet":[],"topic":"s"}],"unitMode":true}],"heartbeatFingerprint":1,"producerDataSet":[{"groupName":"s"}],"withoutSub":true}"#,
        );
        round_trip::<CheckClientRequestBody>(
            r#"{"clientId":"s","group":"s","namespace":"s","subscriptionData":{"classFilterMode":true,"codeSet":[1],"expressionType":"s","subString":"s","subVersion":2,"tagsSet":["s"],"topic":"s"}}"#,
        );
    }

    /// As the C++ client (and Python's, which wraps it) writes it: ordinals, and a version in quotes.
    #[test]
    fn reads_what_the_cpp_client_sends() {
        let heartbeat: HeartbeatData = json::from_slice(
            br#"{"clientID":"c","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"g","messageModel":0,"subscriptionDataSet":[{"subString":"A","subVersion":"1700000000000","tagsSet":["A"],"codeSet":[65],"topic":"t"}]}],"producerDataSet":null}
            "#,
        )
        .unwrap();
        let consumer = &heartbeat.consumer_data_set[0];
        assert_eq!(consumer.consume_from_where, ConsumeFromWhere::ConsumeFromFirstOffset);
        assert_eq!(consumer.consume_type, ConsumeType::ConsumePassively);
        assert_eq!(consumer.message_model, MessageModel::Broadcasting);
        let subscription = &consumer.subscription_data_set[0];
        assert_eq!((subscription.sub_version, subscription.expression_type.as_str()), (1_700_000_000_000, "TAG"));
    }

    #[test]
    fn unknown_words_are_defaults() {
        let consumer: ConsumerData = json::from_slice(
            br#"{"consumeFromWhere":"CONSUME_FROM_MARS","consumeType":99,"messageModel":-1,"groupName":"g"}"#,
        )
        .unwrap();
        assert_eq!(consumer, ConsumerData { group_name: "g".into(), ..ConsumerData::default() });
    }
}
