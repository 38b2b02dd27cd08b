//! Bodies: each body and config file that Java wrote is read by its type here and written again to the same text, in Java's
//! own flavour of JSON; as strict JSON it has the value that Java says it has. Tables of more than one topic stand in the
//! order of a Java HashMap, which means nothing: there the text is the same but for the order of its members.

mod support;

use cometmq_wire::body::{self, RegisterBrokerBody};
use cometmq_wire::{json, version};
use flate2::read::ZlibDecoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::Read;
use support::{golden, hex, unhex};

#[derive(Clone, Copy)]
enum Flavour {
    Fastjson,
    Standard,
    Pretty,
}

/// Reads a body as `T`; returns the text and the value of what `T` writes.
fn again<T: Serialize + DeserializeOwned>(text: &str, flavour: Flavour) -> (String, Value) {
    let body: T = json::from_slice(text.as_bytes()).unwrap();
    let ours = match flavour {
        Flavour::Fastjson => json::to_fastjson(&body),
        Flavour::Standard => json::to_vec(&body),
        Flavour::Pretty => json::to_pretty(&body),
    };
    let strict = json::normalise(&ours).unwrap();
    let value = serde_json::from_slice(&strict).unwrap();
    (String::from_utf8(ours).unwrap(), value)
}

fn of_class(class: &str, text: &str, flavour: Flavour) -> (String, Value) {
    let again = match class {
        "TopicRouteData" => again::<body::TopicRouteData>,
        "HeartbeatData" => again::<body::HeartbeatData>,
        "RegisterBrokerBody" => again::<body::RegisterBrokerBody>,
        "TopicConfigSerializeWrapper" => again::<body::TopicConfigTable>,
        "SubscriptionGroupWrapper" => again::<body::SubscriptionGroupTable>,
        "SubscriptionGroupConfig" => again::<body::SubscriptionGroupConfig>,
        "ConsumerOffsetManager" => again::<body::ConsumerOffsetTable>,
        "ClusterInfo" => again::<body::ClusterInfo>,
        "ConsumerConnection" => again::<body::ConsumerConnection>,
        "ProducerConnection" => again::<body::ProducerConnection>,
        "GetConsumerListByGroupResponseBody" => again::<body::GetConsumerListByGroupResponseBody>,
        "LockBatchRequestBody" => again::<body::LockBatchRequestBody>,
        "LockBatchResponseBody" => again::<body::LockBatchResponseBody>,
        "TopicList" => again::<body::TopicList>,
        "TopicStatsTable" => again::<body::TopicStatsTable>,
        "ConsumeStats" => again::<body::ConsumeStats>,
        other => panic!("no type for {other}"),
    };
    again(text, flavour)
}

/// Bodies with several topics.
const HASH_ORDER: [&str; 4] = ["register-broker", "register-broker-with-mapping", "topic-config", "topics.json"];

fn assert_same_text(name: &str, ours: &str, javas: &str) {
    if HASH_ORDER.contains(&name) {
        let sorted = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.sort_unstable();
            bytes
        };
        assert_eq!(sorted(ours), sorted(javas), "{name}:\n{ours}\n{javas}");
    } else {
        assert_eq!(ours, javas, "{name}");
    }
}

#[test]
fn bodies() {
    let lines = golden("bodies.txt");
    assert_eq!(lines.len(), 22);
    for line in lines {
        let flavour = if line.name.ends_with(".standard") { Flavour::Standard } else { Flavour::Fastjson };
        let (text, value) = of_class(class_of(&line.facts), &line.data, flavour);
        assert_same_text(&line.name, &text, &line.data);
        assert_value(&line.name, &value, &line.facts);
    }
}

/// The offset table is a JSON object without a class of the protocol.
fn class_of(facts: &Value) -> &str {
    facts["class"].as_str().unwrap_or("ConsumerOffsetManager")
}

fn assert_value(name: &str, ours: &Value, facts: &Value) {
    if let Some(value) = facts.get("value") {
        return assert_eq!(ours, value, "{name}");
    }
    for (part, fact) in facts.as_object().unwrap() {
        // Strict JSON has no object keys: such a table is given as its one key and value.
        let entry = || ours["offsetTable"].as_object().unwrap().iter().next().unwrap();
        match part.as_str() {
            "class" => {}
            "queue" => assert_eq!(&serde_json::from_str::<Value>(entry().0).unwrap(), fact, "{name}"),
            "offset" => assert_eq!(entry().1, fact, "{name}"),
            _ => assert_eq!(&ours[part], fact, "{name}: {part}"),
        }
    }
}

#[test]
fn config_files() {
    let files: Vec<_> = golden("bodies.hex").into_iter().filter(|l| !l.name.starts_with("register")).collect();
    assert_eq!(files.len(), 3);
    for file in files {
        let javas = String::from_utf8(unhex(&file.data)).unwrap();
        let (text, value) = of_class(class_of(&file.facts), &javas, Flavour::Pretty);
        assert_same_text(&file.name, &text, &javas);
        assert_value(&file.name, &value, &file.facts);
    }
}

fn inflate(zlib: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    ZlibDecoder::new(zlib).read_to_end(&mut stream).unwrap();
    stream
}

#[test]
fn a_compressed_registration() {
    let lines = golden("bodies.hex");
    let line = |name: &str| lines.iter().find(|l| l.name == name).unwrap();
    let (compressed, inflated) = (line("register-broker-compressed"), line("register-broker-inflated"));
    let javas = unhex(&compressed.data);
    assert_eq!(hex(&inflate(&javas)), inflated.data);

    let body = RegisterBrokerBody::decode(&javas, true, version::V5_5_0).unwrap();
    let strict = json::normalise(&json::to_fastjson(&body)).unwrap().into_owned();
    let value: Value = serde_json::from_slice(&strict).unwrap();
    let wrapper = |v: &Value, part: &str| v["topicConfigSerializeWrapper"][part].clone();
    for part in ["dataVersion", "topicConfigTable", "topicQueueMappingInfoMap"] {
        assert_eq!(wrapper(&value, part), wrapper(&compressed.facts["value"], part), "{part}");
    }
    assert_eq!(value["filterServerList"], compressed.facts["value"]["filterServerList"]);
    // Topics stand in the order of a Java HashMap; read again, ours has the same.
    let again = RegisterBrokerBody::decode(&body.encode(true), true, version::V5_5_0).unwrap();
    assert_eq!(again, body);
    assert_eq!(inflate(&body.encode(true)).len(), inflate(&javas).len());
}
