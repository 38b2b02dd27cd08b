//! Who is connected: the members of consumer and producer groups as tools list them.
//!
//! Java     `Connection`, `ConsumerConnection`, `ProducerConnection`, `GetConsumerListByGroupResponseBody`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData};

/// One connection of a group's member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientConnection {
    pub client_addr: String,
    pub client_id: String,
    /// Java's name of the language, e.g. `JAVA`.
    pub language: Option<String>,
    pub version: i32,
}

/// Answer to GET_CONSUMER_CONNECTION_LIST (203).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsumerConnection {
    pub connection_set: Vec<ClientConnection>,
    pub consume_from_where: ConsumeFromWhere,
    pub consume_type: ConsumeType,
    pub message_model: MessageModel,
    /// Topic → subscription.
    pub subscription_table: BTreeMap<String, SubscriptionData>,
}

/// Answer to GET_PRODUCER_CONNECTION_LIST (204).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProducerConnection {
    pub connection_set: Vec<ClientConnection>,
}

/// Answer to GET_CONSUMER_LIST_BY_GROUP (38): the client ids that share the queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GetConsumerListByGroupResponseBody {
    pub consumer_id_list: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::round_trip;

    #[test]
    fn reads_and_writes_javas_text() {
        const CONNECTION: &str = r#"{"clientAddr":"s","clientId":"s","language":"JAVA","version":1}"#;
        round_trip::<ConsumerConnection>(&format!(
            r#"{{"connectionSet":[{CONNECTION}],"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_ACTIVELY","messageModel":"BROADCASTING","subscriptionTable":{{"s":{{"classFilterMode":true,"codeSet":[1],"expressionType":"s","subString":"s","subVersion":2,"tagsSet":["s"],"topic":"s"}}}}}}"#
        ));
        round_trip::<ProducerConnection>(&format!(r#"{{"connectionSet":[{CONNECTION}]}}"#));
        round_trip::<GetConsumerListByGroupResponseBody>(r#"{"consumerIdList":["s"]}"#);
    }
}
