//! JSON bodies and config files in fastjson's dialect. Input: a byte that chooses the type, the body. Checked: normalising
//! again changes nothing; a body that was read is written so that it reads again, and is then written the same.
#![no_main]

use std::io::{Read, Write};

use cometmq_fuzz::bounded;
use cometmq_wire::body::*;
use cometmq_wire::json;
use cometmq_wire::version::{V4_9_4, V5_5_0};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Small texts become large values: `{}` in a list a struct of up to 180 bytes (a group's configuration), in a vector that
/// doubles; `{"":0}` a map with a node for eleven entries (95 bytes a byte of text). Both at once, while one becomes the other.
const FACTOR: usize = 256;

/// What the inflater takes: a window, its tables and a buffer of 32 KiB for what it reads.
const INFLATER: usize = 128 * 1024;

const FLOATS: [&str; 4] = ["::Value", "::TopicStatsTable", "::ConsumeStats", "::ConsumerRunningInfo"];

macro_rules! read_as {
    ($choice:ident, $body:ident: $($body_type:ty)*) => {
        const READ_AS: &[fn(&[u8])] = &[$(read::<$body_type>,)* registration, registration_stream];
        READ_AS[usize::from($choice) % READ_AS.len()]($body)
    };
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, body)) = input.split_first() else { return };
    read_as!(choice, body:
        // requests
        HeartbeatData RegisterBrokerBody LockBatchRequestBody UnlockBatchRequestBody SubscriptionGroupConfig
        TopicRouteData DataVersion CheckClientRequestBody SetMessageRequestModeRequestBody ResetOffsetBody
        CreateTopicListRequestBody SubscriptionGroupList TopicList KVTable GroupRetryPolicy
        // files
        TopicConfigTable SubscriptionGroupTable ConsumerOffsetTable DelayOffsetTable MessageRequestModeTable
        serde_json::Value
        // answers
        ClusterInfo TopicConfigAndMappingTable ConsumerConnection ProducerConnection GetConsumerListByGroupResponseBody
        LockBatchResponseBody BrokerMemberGroup TopicStatsTable ConsumeStats ConsumerRunningInfo GroupList);
});

fn read<T: Serialize + DeserializeOwned>(body: &[u8]) {
    let read = bounded(body.len(), FACTOR, || json::from_slice::<T>(body));
    if let Ok(normal) = json::normalise(body)
        && serde_json::from_slice::<serde::de::IgnoredAny>(&normal).is_ok()
    {
        assert_eq!(json::normalise(&normal).expect("normal"), normal);
    }
    // serde_json reads a float to within its last digit.
    let holds_floats = FLOATS.iter().any(|float| std::any::type_name::<T>().ends_with(float));
    match read {
        Ok(value) => {
            for write in [json::to_vec::<T>, json::to_fastjson::<T>, json::to_pretty::<T>] {
                let written = write(&value);
                let again = json::from_slice::<T>(&written);
                let again = again.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&written)));
                if !holds_floats {
                    assert_eq!(String::from_utf8_lossy(&write(&again)), String::from_utf8_lossy(&written));
                }
            }
        }
        Err(error) => assert!(error.to_string().len() < 2048),
    }
}

/// A compressed registration as it comes.
fn registration(zlib: &[u8]) {
    let mut inflated = Vec::new();
    let _ = ZlibDecoder::new(zlib).read_to_end(&mut inflated);
    decode_registration(zlib, inflated.len());
}

/// The same from what is compressed: no mutation of the input alone would find valid zlib.
fn registration_stream(stream: &[u8]) {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::none());
    zlib.write_all(stream).expect("in memory");
    decode_registration(&zlib.finish().expect("in memory"), stream.len());
}

fn decode_registration(zlib: &[u8], inflated: usize) {
    for version in [V4_9_4, V5_5_0] {
        let decoded = bounded(inflated + INFLATER / FACTOR, FACTOR, || RegisterBrokerBody::decode(zlib, true, version));
        if let Ok(body) = decoded {
            RegisterBrokerBody::decode(&body.encode(true), true, version).expect("we wrote it");
        }
    }
}
