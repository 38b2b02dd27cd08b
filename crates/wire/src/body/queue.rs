//! A message queue by name, and the locks of orderly consumers on queues.
//!
//! Java     `MessageQueue`, `LockBatchRequestBody`, `LockBatchResponseBody`, `UnlockBatchRequestBody`

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::json;

/// One queue of a topic on one broker. Also a map key in bodies, where its JSON object stands as the key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageQueue {
    pub broker_name: String,
    pub queue_id: i32,
    pub topic: String,
}

/// Reads an object, or (as a key of a map, after `json::normalise`) a string that holds one.
impl<'de> Deserialize<'de> for MessageQueue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Object {
            broker_name: String,
            queue_id: i32,
            topic: String,
        }

        struct ObjectOrText;

        impl<'de> Visitor<'de> for ObjectOrText {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message queue")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object, A::Error> {
                Object::deserialize(MapAccessDeserializer::new(members))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Object, E> {
                json::from_slice(text.as_bytes()).map_err(E::custom)
            }
        }

        let Object { broker_name, queue_id, topic } = deserializer.deserialize_any(ObjectOrText)?;
        Ok(Self { broker_name, queue_id, topic })
    }
}

/// LOCK_BATCH_MQ (41): an orderly consumer asks for queues of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LockBatchRequestBody {
    pub client_id: String,
    pub consumer_group: String,
    pub mq_set: Vec<MessageQueue>,
    /// Asked by a broker for its own group of replicas: do not ask the others again.
    pub only_this_broker: bool,
}

/// UNLOCK_BATCH_MQ (42).
pub type UnlockBatchRequestBody = LockBatchRequestBody;

/// Answer to LOCK_BATCH_MQ: the queues that the client holds now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockBatchResponseBody {
    #[serde(rename = "lockOKMQSet")]
    pub lock_ok_mq_set: Vec<MessageQueue>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::body::testing::{defaults, round_trip};

    fn queue(broker_name: &str, queue_id: i32, topic: &str) -> MessageQueue {
        MessageQueue { broker_name: broker_name.into(), queue_id, topic: topic.into() }
    }

    #[test]
    fn reads_and_writes_javas_text() {
        let read: MessageQueue = round_trip(r#"{"brokerName":"s","queueId":1,"topic":"s"}"#);
        assert_eq!(read, queue("s", 1, "s"));
        let lock: LockBatchRequestBody = round_trip(
            r#"{"clientId":"s","consumerGroup":"s","mqSet":[{"brokerName":"s","queueId":1,"topic":"s"}],"onlyThisBroker":true}"#,
        );
        assert!(lock.only_this_broker);
        round_trip::<LockBatchResponseBody>(r#"{"lockOKMQSet":[{"brokerName":"s","queueId":1,"topic":"s"}]}"#);
        assert_eq!(defaults::<LockBatchResponseBody>(), r#"{"lockOKMQSet":[]}"#);
    }

    #[test]
    fn is_a_key_of_a_map() {
        let sample =
            r#"{{"brokerName":"b","queueId":1,"topic":"t\"\\"}:2,{"brokerName":"c","queueId":0,"topic":"t"}:3}"#;
        let read: BTreeMap<MessageQueue, i64> = round_trip(sample);
        assert_eq!(read, BTreeMap::from([(queue("b", 1, "t\"\\"), 2), (queue("c", 0, "t"), 3)]));
    }

    #[test]
    fn lenient_and_wrong_keys() {
        let read = |body: &str| json::from_slice::<BTreeMap<MessageQueue, i64>>(body.as_bytes());
        let lenient = read(r#"{{"topic":"t","queueId":"1","brokerName":null}:"2"}"#).unwrap();
        assert_eq!(lenient, BTreeMap::from([(queue("", 1, "t"), 2)]));
        assert!(read(r#"{"t":2}"#).is_err());
        assert!(read(r#"{0:2}"#).is_err());
    }
}
