//! A message as it was consumed, decoded from the records of a pull's answer. Java: `MessageExt`, `MessageDecoder.decodes`.

use std::net::SocketAddr;

use bytes::Bytes;
use cometmq_wire::body::MessageQueue;
use cometmq_wire::flags::message::{INNER_BATCH, NEED_UNWRAP};
use cometmq_wire::record::{self, Record};
use cometmq_wire::{DecodeError, message_id, names, properties};

use crate::compression::{BodyError, decompress};

/// A message that was pulled.
#[derive(Debug, Clone)]
pub struct Received {
    /// The topic it was sent to; also where it came by way of a retry topic.
    pub topic: String,
    /// The queue it was pulled from.
    pub queue: MessageQueue,
    pub queue_offset: i64,
    pub flag: i32,
    pub sys_flag: i32,
    /// Epoch milliseconds at the producer.
    pub born_ms: i64,
    pub born_host: SocketAddr,
    /// Epoch milliseconds at the broker.
    pub store_ms: i64,
    pub store_host: SocketAddr,
    /// Where the record lies in the broker's log, bytes.
    pub log_offset: i64,
    /// Deliveries before this one that failed.
    pub reconsume_times: i32,
    properties: String,
    body: Result<Bytes, BodyError>,
    /// Bytes of its record.
    pub(crate) len: usize,
}

impl Received {
    /// The body as it was sent, decompressed.
    pub fn body(&self) -> Result<&Bytes, BodyError> {
        self.body.as_ref().map_err(Clone::clone)
    }

    /// The unique id that the producer made; without one the offset id.
    pub fn msg_id(&self) -> String {
        self.property(properties::UNIQ_KEY).map_or_else(|| self.offset_msg_id(), str::to_string)
    }

    pub fn offset_msg_id(&self) -> String {
        message_id::offset_id(self.store_host, self.log_offset)
    }

    pub fn property(&self, name: &str) -> Option<&str> {
        properties::find(&self.properties, name)
    }

    /// Name and value of every property, in the order stored.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        properties::iter(&self.properties)
    }

    pub fn tags(&self) -> Option<&str> {
        self.property(properties::TAGS)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let text = self.property(properties::KEYS).unwrap_or_default();
        text.split(properties::KEY_SEPARATOR).filter(|k| !k.is_empty())
    }

    fn new(record: &Record<'_>, all: &Bytes, queue: &MessageQueue, offset_delta: i64) -> Self {
        let body = decompress(all.slice_ref(record.body()), record.sys_flag());
        let retried = names::is_retry_topic(record.topic()).then(|| record.property(properties::RETRY_TOPIC)).flatten();
        Self {
            topic: retried.unwrap_or(record.topic()).to_string(),
            queue: queue.clone(),
            queue_offset: record.queue_offset() + offset_delta,
            flag: record.flag(),
            sys_flag: record.sys_flag(),
            born_ms: record.born_ms(),
            born_host: record.born_host(),
            store_ms: record.store_ms(),
            store_host: record.store_host(),
            log_offset: record.log_offset(),
            reconsume_times: record.reconsume_times(),
            properties: record.properties().to_string(),
            body,
            len: record.len(),
        }
    }

    /// The messages inside of one that is stored as a batch (topics of queue type BatchCQ).
    fn unwrap(self) -> Result<Vec<Self>, DecodeError> {
        let Ok(inner) = &self.body else { return Ok(vec![self]) };
        let mut out = Vec::new();
        for (i, item) in record::batch_items(inner).enumerate() {
            let item = item?;
            out.push(Self {
                queue_offset: self.queue_offset + i as i64,
                flag: item.flag,
                properties: item.properties.to_string(),
                body: Ok(inner.slice_ref(item.body)),
                len: item.body.len(),
                ..self.clone()
            });
        }
        Ok(out)
    }
}

/// The messages of a pull's answer.
pub(crate) fn decode(body: &[u8], queue: &MessageQueue, offset_delta: i64) -> Result<Vec<Received>, DecodeError> {
    let all = Bytes::copy_from_slice(body);
    let mut out = Vec::new();
    for record in record::records(&all) {
        let record = record?;
        let message = Received::new(&record, &all, queue, offset_delta);
        let wrapped = INNER_BATCH | NEED_UNWRAP;
        if record.sys_flag() & wrapped == wrapped { out.extend(message.unwrap()?) } else { out.push(message) }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use cometmq_wire::record::{BatchItem, Draft};

    use super::*;

    fn queue() -> MessageQueue {
        MessageQueue { broker_name: "b".into(), queue_id: 3, topic: "%RETRY%g".into() }
    }

    fn encode(out: &mut Vec<u8>, topic: &str, sys_flag: i32, body: &[u8], properties: &str, at: i64) {
        let host = "10.0.0.2:10911".parse().unwrap();
        let draft = Draft {
            topic,
            queue_id: 3,
            flag: 5,
            sys_flag,
            born_ms: 11,
            born_host: host,
            store_host: host,
            reconsume_times: 2,
            prepared_offset: 0,
            body,
            properties,
        };
        let start = out.len();
        draft.encode(out).unwrap();
        record::place(&mut out[start..], at, 1024, 12);
    }

    #[test]
    fn fields_and_the_original_topic() {
        let mut bytes = Vec::new();
        let props = "RETRY_TOPIC\u{1}orders\u{2}UNIQ_KEY\u{1}ID\u{2}KEYS\u{1}a b\u{2}TAGS\u{1}T\u{2}";
        encode(&mut bytes, "%RETRY%g", 0, b"hello", props, 9);
        encode(&mut bytes, "other", 0, b"x", "RETRY_TOPIC\u{1}orders\u{2}", 10);
        let messages = decode(&bytes, &queue(), 100).unwrap();
        let first = &messages[0];
        assert_eq!((first.topic.as_str(), first.queue_offset, first.reconsume_times), ("orders", 109, 2));
        assert_eq!((first.msg_id().as_str(), first.tags()), ("ID", Some("T")));
        assert_eq!(first.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(first.body().unwrap(), "hello");
        assert_eq!(
            (messages[1].topic.as_str(), messages[1].msg_id().as_str()),
            ("other", "0A00000200002A9F0000000000000400")
        );
        assert!(decode(&bytes[..bytes.len() - 1], &queue(), 0).is_err());
    }

    #[test]
    fn a_body_that_cannot_be_read_does_not_hide_the_message() {
        let mut bytes = Vec::new();
        encode(&mut bytes, "t", 0x201, b"zstd", "", 0);
        let messages = decode(&bytes, &queue(), 0).unwrap();
        assert_eq!(messages[0].body().unwrap_err(), BodyError::Unsupported { kind: "zstd" });
    }

    #[test]
    fn an_inner_batch_is_unwrapped() {
        let mut body = Vec::new();
        BatchItem { flag: 1, body: b"one", properties: "TAGS\u{1}A\u{2}" }.encode(&mut body);
        BatchItem { flag: 2, body: b"two", properties: "" }.encode(&mut body);
        let mut bytes = Vec::new();
        encode(&mut bytes, "t", INNER_BATCH | NEED_UNWRAP, &body, "", 40);
        let messages = decode(&bytes, &queue(), 0).unwrap();
        let seen: Vec<_> = messages.iter().map(|m| (m.queue_offset, m.flag, m.body().unwrap().as_ref())).collect();
        assert_eq!(seen, [(40, 1, b"one".as_slice()), (41, 2, b"two".as_slice())]);
        assert_eq!(messages[0].tags(), Some("A"));
    }
}
