//! REGISTER_BROKER (103): the topics of a broker, told to each name server at every change and every 30 seconds.
//!
//! Bytes    without compression: JSON. With it, zlib around a stream of big-endian ints and texts:
//!            len, DataVersion JSON | topics, each: len, line (`TopicConfig::to_line`) | len, filter servers JSON
//!            | mappings, each: len, TopicQueueMappingInfo JSON       the last part only from version V5_0_0 on
//! Limits   `INFLATED_BYTES_MAX` for the stream; its counts and lengths allocate nothing before their bytes are there.
//! The request header has `crc32` of the body as it is sent; 0 there means unchecked.
//!
//! Java     `RegisterBrokerBody`

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{TopicConfig, TopicConfigAndMappingTable, TopicQueueMappingInfo};
use crate::{DecodeError, json, version};

/// A registration of a million topics takes about half of it.
pub const INFLATED_BYTES_MAX: u64 = 128 * 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RegisterBrokerBody {
    pub filter_server_list: Vec<String>,
    pub topic_config_serialize_wrapper: TopicConfigAndMappingTable,
}

impl RegisterBrokerBody {
    /// The compressed form has neither `order` nor `topicSysFlag` of a topic, nor mapping details.
    pub fn encode(&self, compress: bool) -> Vec<u8> {
        if !compress {
            return json::to_fastjson(self);
        }
        let table = &self.topic_config_serialize_wrapper;
        let mut stream = Vec::new();
        put_bytes(&mut stream, &json::to_fastjson(&table.data_version));
        put_len(&mut stream, table.topic_config_table.len());
        for config in table.topic_config_table.values() {
            put_bytes(&mut stream, config.to_line().as_bytes());
        }
        put_bytes(&mut stream, &json::to_fastjson(&self.filter_server_list));
        put_len(&mut stream, table.topic_queue_mapping_info_map.len());
        for info in table.topic_queue_mapping_info_map.values() {
            put_bytes(&mut stream, &json::to_fastjson(info));
        }
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&stream).and_then(|()| zlib.finish()).expect("compressing in memory")
    }

    /// `broker_version`: of the request header. Brokers before V5_0_0 send no mappings.
    pub fn decode(body: &[u8], compressed: bool, broker_version: i32) -> Result<Self, DecodeError> {
        if !compressed {
            return json::from_slice(body);
        }
        let mut stream = Stream(ZlibDecoder::new(body).take(INFLATED_BYTES_MAX));
        let mut table = TopicConfigAndMappingTable { data_version: stream.json()?, ..Default::default() };
        for _ in 0..stream.int()? {
            let config = TopicConfig::from_line(&stream.text()?)?;
            table.topic_config_table.insert(config.topic_name.clone(), config);
        }
        // A list that does not parse is only logged by Java: no one has used filter servers since version 4.3.
        let filter_server_list = json::from_slice(stream.text()?.as_bytes()).unwrap_or_default();
        if broker_version >= version::V5_0_0 {
            for _ in 0..stream.int()? {
                let info: TopicQueueMappingInfo = stream.json()?;
                table.topic_queue_mapping_info_map.insert(info.topic.clone().unwrap_or_default(), info);
            }
        }
        Ok(Self { filter_server_list, topic_config_serialize_wrapper: table })
    }
}

/// `bodyCrc32` of the request header: the CRC without its sign bit.
pub fn crc32(body: &[u8]) -> i32 {
    (crc32fast::hash(body) & 0x7fff_ffff) as i32
}

fn put_len(stream: &mut Vec<u8>, len: usize) {
    let len = i32::try_from(len).expect("a frame holds far less");
    stream.extend_from_slice(&len.to_be_bytes());
}

fn put_bytes(stream: &mut Vec<u8>, bytes: &[u8]) {
    put_len(stream, bytes.len());
    stream.extend_from_slice(bytes);
}

/// The inflated bytes, read part by part.
struct Stream<'a>(std::io::Take<ZlibDecoder<&'a [u8]>>);

impl Stream<'_> {
    fn int(&mut self) -> Result<i32, DecodeError> {
        let mut bytes = [0; 4];
        self.0.read_exact(&mut bytes).map_err(broken)?;
        Ok(i32::from_be_bytes(bytes))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, DecodeError> {
        let len = self.int()?;
        let wanted = u64::try_from(len).map_err(|_| broken(format!("length {len}")))?;
        let mut bytes = Vec::new();
        let read = (&mut self.0).take(wanted).read_to_end(&mut bytes).map_err(broken)?;
        if read as u64 == wanted { Ok(bytes) } else { Err(broken(format!("{read} of {wanted} bytes"))) }
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        String::from_utf8(self.bytes()?).map_err(broken)
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<T, DecodeError> {
        json::from_slice(&self.bytes()?)
    }
}

fn broken(what: impl std::fmt::Display) -> DecodeError {
    DecodeError::Body(format!("compressed registration: {what}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::body::testing::round_trip;
    use crate::version::{V4_9_4, V5_5_0};

    /// Printed by Java 5.5.0, and the same body compressed by it (where `T2` loses its flags).
    const PLAIN: &str = r#"{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000},"mappingDataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000},"topicConfigTable":{"T1":{"attributes":{"message.type":"FIFO"},"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"T1","topicSysFlag":0,"writeQueueNums":4},"T2":{"attributes":{},"order":true,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"T2","topicSysFlag":1,"writeQueueNums":8}},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{"T1":{"bname":"b1","currIdMap":{0:1},"dirty":false,"epoch":3,"scope":"__global__","topic":"T1","totalQueues":2}}}}"#;
    const ZLIB: &str = "78da554ecb6ac3301054fa113d9bb956142b2d4dd0ad872618faa0d4f4128290956dea605b46920fc1f8dfbb710fa53bccc20e3bbb2384588f707ee81205e83b89986ca24f0ab1f61d742e91ea96586c7b68b5caff6a12425c316f4a95dd331eb28fe275fbfc64cac76d36824dd11ee9369d7b82c6a6d8bce162b92e97d99af17f7d3eb6db735f304f23aaceb6175fa520e186108ac38be50863aed52471a8433a437fd9269204f5de7dffa6777e7e67ccb1f1956d8c617bf27ded582cd53c24dbbc0f3450845e4e3f83404735";

    fn unhex(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// What is left of `PLAIN` after compression.
    fn reduced() -> RegisterBrokerBody {
        let mut body: RegisterBrokerBody = json::from_slice(PLAIN.as_bytes()).unwrap();
        let table = &mut body.topic_config_serialize_wrapper;
        table.mapping_data_version = Default::default();
        table.topic_config_table.insert("T2".into(), TopicConfig::new("T2", 8, 6));
        body
    }

    #[test]
    fn reads_and_writes_javas_text() {
        let body: RegisterBrokerBody = round_trip(PLAIN);
        assert_eq!(body.encode(false), PLAIN.as_bytes());
        assert_eq!(RegisterBrokerBody::decode(PLAIN.as_bytes(), false, V5_5_0).unwrap(), body);
    }

    #[test]
    fn reads_what_java_compressed() {
        assert_eq!(RegisterBrokerBody::decode(&unhex(ZLIB), true, V5_5_0).unwrap(), reduced());
        let old = RegisterBrokerBody::decode(&unhex(ZLIB), true, V4_9_4).unwrap();
        assert!(old.topic_config_serialize_wrapper.topic_queue_mapping_info_map.is_empty());
    }

    #[test]
    fn compresses_what_java_does() {
        let inflate = |zlib: &[u8]| {
            let mut stream = Vec::new();
            ZlibDecoder::new(zlib).read_to_end(&mut stream).unwrap();
            stream
        };
        let ours = RegisterBrokerBody::decode(PLAIN.as_bytes(), false, V5_5_0).unwrap().encode(true);
        assert_eq!(inflate(&ours), inflate(&unhex(ZLIB)));
    }

    #[test]
    fn broken_streams_are_errors() {
        let whole = unhex(ZLIB);
        for len in 0..whole.len() - 8 {
            assert!(RegisterBrokerBody::decode(&whole[..len], true, V5_5_0).is_err(), "cut to {len} bytes");
        }
        let deflate = |stream: &[u8]| {
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
            zlib.write_all(stream).unwrap();
            zlib.finish().unwrap()
        };
        let remark =
            |stream: &[u8]| RegisterBrokerBody::decode(&deflate(stream), true, V5_5_0).unwrap_err().to_string();
        assert_eq!(remark(&(-1i32).to_be_bytes()), "body: compressed registration: length -1");
        assert_eq!(remark(&i32::MAX.to_be_bytes()), "body: compressed registration: 0 of 2147483647 bytes");
    }

    #[test]
    fn crc_has_no_sign() {
        assert_eq!(crc32(b"123456789"), 0x4bf4_3926);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(body in prop::collection::vec(any::<u8>(), 0..200), compressed: bool) {
            let _ = RegisterBrokerBody::decode(&body, compressed, V5_5_0);
        }

        #[test]
        fn compression_round_trips(topics in prop::collection::btree_map("[a-zA-Z0-9_%|-]{1,20}", (1i32..64, 0i32..8), 0..20)) {
            let mut body = RegisterBrokerBody::default();
            for (name, (queues, perm)) in topics {
                let config = TopicConfig::new(&name, queues, perm);
                body.topic_config_serialize_wrapper.topic_config_table.insert(name, config);
            }
            prop_assert_eq!(RegisterBrokerBody::decode(&body.encode(true), true, V5_5_0).unwrap(), body);
        }
    }
}
