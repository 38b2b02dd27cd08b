//! Records: each commit-log record that Java's encoder wrote parses to what Java's decoder reads from it, and a draft of
//! those fields, encoded and put in its place, is the same record byte for byte.

mod support;

use std::net::SocketAddr;

use cometmq_wire::message_id::offset_id;
use cometmq_wire::properties;
use cometmq_wire::record::{Draft, Record, body_crc, place, records};
use serde_json::{Map, Value, json};
use support::{golden, hex, hex_or_null, unhex};

/// Java's addresses are written out in full: `2001:db8:0:0:0:0:0:20`.
fn host(host: SocketAddr) -> Value {
    let ip = match host {
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => v6.ip().segments().map(|s| format!("{s:x}")).join(":"),
    };
    json!({ "ip": ip, "port": host.port() })
}

fn read(record: &Record<'_>) -> Value {
    let map: Map<String, Value> =
        properties::iter(record.properties()).map(|(k, v)| (k.to_owned(), v.into())).collect();
    let magic = i32::from_be_bytes(*record.bytes()[4..].first_chunk().unwrap());
    json!({
        "storeSize": record.len(),
        "magic": magic,
        "bodyCRC": record.body_crc(),
        "queueId": record.queue_id(),
        "flag": record.flag(),
        "queueOffset": record.queue_offset(),
        "commitLogOffset": record.log_offset(),
        "storedSysFlag": record.sys_flag(),
        "bornTimestamp": record.born_ms(),
        "bornHost": host(record.born_host()),
        "storeTimestamp": record.store_ms(),
        "storeHost": host(record.store_host()),
        "reconsumeTimes": record.reconsume_times(),
        "preparedTransactionOffset": record.prepared_offset(),
        "topic": record.topic(),
        "msgId": offset_id(record.store_host(), record.log_offset()),
        "tags": record.property(properties::TAGS),
        "keys": record.property(properties::KEYS),
        "properties": if record.properties().is_empty() { Value::Null } else { Value::Object(map) },
        "storedBody": hex_or_null(record.body()),
    })
}

#[test]
fn they_parse_to_the_facts() {
    let lines = golden("records.hex");
    assert_eq!(lines.len(), 29);
    for mut line in lines {
        let bytes = unhex(&line.data);
        let record = Record::parse(&bytes).unwrap();
        let facts = line.facts.as_object_mut().unwrap();
        // After decompression, which is the client's.
        facts.remove("body");
        facts.remove("sysFlag");
        assert_eq!(read(&record), line.facts, "{}", line.name);
        assert!(record.body_is_intact(), "{}", line.name);
        assert_eq!(body_crc(record.body()), record.body_crc(), "{}", line.name);
    }
}

#[test]
fn a_draft_of_their_fields_is_the_same_record() {
    for line in golden("records.hex") {
        let bytes = unhex(&line.data);
        let record = Record::parse(&bytes).unwrap();
        let draft = Draft {
            topic: record.topic(),
            queue_id: record.queue_id(),
            flag: record.flag(),
            sys_flag: record.sys_flag(),
            born_ms: record.born_ms(),
            born_host: record.born_host(),
            store_host: record.store_host(),
            reconsume_times: record.reconsume_times(),
            prepared_offset: record.prepared_offset(),
            body: record.body(),
            properties: record.properties(),
        };
        let mut ours = Vec::new();
        assert_eq!(draft.encode(&mut ours).unwrap(), bytes.len(), "{}", line.name);
        place(&mut ours, record.queue_offset(), record.log_offset(), record.store_ms());
        assert_eq!(hex(&ours), line.data, "{}", line.name);
    }
}

#[test]
fn they_are_found_one_behind_the_other() {
    let lines = golden("records.hex");
    let pull: Vec<u8> = lines.iter().flat_map(|l| unhex(&l.data)).collect();
    let found: Vec<String> = records(&pull).map(|r| hex(r.unwrap().bytes())).collect();
    assert_eq!(found, lines.iter().map(|l| l.data.clone()).collect::<Vec<_>>());
}
