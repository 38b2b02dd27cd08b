//! Topic configuration: one topic, the table of a broker (`topics.json`), and the two tables that travel.
//!
//! Java     `TopicConfig`, `TopicConfigSerializeWrapper`, `TopicConfigAndMappingSerializeWrapper`,
//!          `TopicConfigAndQueueMapping`, `CreateTopicListRequestBody`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DataVersion, TopicQueueMappingDetail, TopicQueueMappingInfo};
use crate::{DecodeError, json};

const QUEUES_DEFAULT: i32 = 16;
const PERM_READ_WRITE: i32 = 6;

java_enum! {
    /// Whether a message may carry several tags; no broker looks at it.
    TopicFilterType {
        #[default]
        SingleTag = "SINGLE_TAG",
        MultiTag = "MULTI_TAG",
    }
}

/// One topic as a broker knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfig {
    /// `message.type`, `queue.type`, `cleanup.policy` and others, without the `+` of a change request.
    pub attributes: BTreeMap<String, String>,
    pub order: bool,
    /// Bits: 4 read, 2 write, 1 inherit, 8 priority.
    pub perm: i32,
    pub read_queue_nums: i32,
    pub topic_filter_type: TopicFilterType,
    pub topic_name: String,
    /// Bits: 1 unit, 2 unit subscription.
    pub topic_sys_flag: i32,
    pub write_queue_nums: i32,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            order: false,
            perm: PERM_READ_WRITE,
            read_queue_nums: QUEUES_DEFAULT,
            topic_filter_type: TopicFilterType::SingleTag,
            topic_name: String::new(),
            topic_sys_flag: 0,
            write_queue_nums: QUEUES_DEFAULT,
        }
    }
}

impl TopicConfig {
    pub fn new(topic_name: &str, queues: i32, perm: i32) -> Self {
        Self {
            topic_name: topic_name.to_owned(),
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm,
            ..Self::default()
        }
    }

    /// `name read write perm filter {attributes}`, the form of a compressed registration: it loses `order` and the flags.
    pub(super) fn to_line(&self) -> String {
        let Self { topic_name, read_queue_nums, write_queue_nums, perm, topic_filter_type, attributes, .. } = self;
        let attributes = String::from_utf8_lossy(&json::to_fastjson(attributes)).into_owned();
        format!("{topic_name} {read_queue_nums} {write_queue_nums} {perm} {topic_filter_type} {attributes}")
    }

    /// Attributes that do not parse are dropped, as Java does; old brokers send none.
    pub(super) fn from_line(line: &str) -> Result<Self, DecodeError> {
        let wrong = || DecodeError::Body(format!("not a topic line: {line:.200}"));
        let mut words = line.splitn(6, ' ');
        let mut word = || words.next().ok_or_else(wrong);
        let int = |word: &str| word.parse::<i32>().map_err(|_| wrong());
        Ok(Self {
            topic_name: word()?.to_owned(),
            read_queue_nums: int(word()?)?,
            write_queue_nums: int(word()?)?,
            perm: int(word()?)?,
            topic_filter_type: TopicFilterType::from_name(word()?).unwrap_or_default(),
            attributes: word().ok().and_then(|text| json::from_slice(text.as_bytes()).ok()).unwrap_or_default(),
            ..Self::default()
        })
    }
}

/// `config/topics.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfigTable {
    pub data_version: DataVersion,
    pub topic_config_table: BTreeMap<String, TopicConfig>,
}

/// Answer to GET_ALL_TOPIC_CONFIG (21), and the core of a registration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfigAndMappingTable {
    pub data_version: DataVersion,
    pub mapping_data_version: DataVersion,
    pub topic_config_table: BTreeMap<String, TopicConfig>,
    pub topic_queue_mapping_detail_map: BTreeMap<String, TopicQueueMappingDetail>,
    pub topic_queue_mapping_info_map: BTreeMap<String, TopicQueueMappingInfo>,
}

/// Answer to GET_TOPIC_CONFIG (351): the config, and the mapping when the topic is static.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopicConfigAndQueueMapping {
    pub attributes: BTreeMap<String, String>,
    pub mapping_detail: Option<TopicQueueMappingDetail>,
    pub order: bool,
    pub perm: i32,
    pub read_queue_nums: i32,
    pub topic_filter_type: TopicFilterType,
    pub topic_name: String,
    pub topic_sys_flag: i32,
    pub write_queue_nums: i32,
}

impl TopicConfigAndQueueMapping {
    pub fn new(config: TopicConfig, mapping_detail: Option<TopicQueueMappingDetail>) -> Self {
        let TopicConfig {
            attributes,
            order,
            perm,
            read_queue_nums,
            topic_filter_type,
            topic_name,
            topic_sys_flag,
            write_queue_nums,
        } = config;
        Self {
            attributes,
            mapping_detail,
            order,
            perm,
            read_queue_nums,
            topic_filter_type,
            topic_name,
            topic_sys_flag,
            write_queue_nums,
        }
    }

    pub fn into_config(self) -> TopicConfig {
        TopicConfig {
            attributes: self.attributes,
            order: self.order,
            perm: self.perm,
            read_queue_nums: self.read_queue_nums,
            topic_filter_type: self.topic_filter_type,
            topic_name: self.topic_name,
            topic_sys_flag: self.topic_sys_flag,
            write_queue_nums: self.write_queue_nums,
        }
    }
}

impl Default for TopicConfigAndQueueMapping {
    fn default() -> Self {
        Self::new(TopicConfig::default(), None)
    }
}

/// UPDATE_AND_CREATE_TOPIC_LIST (18).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CreateTopicListRequestBody {
    pub topic_config_list: Vec<TopicConfig>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::{defaults, pretty_round_trip, round_trip};

    const CONFIG: &str = r#"{"attributes":{"s":"s"},"order":true,"perm":1,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"s","topicSysFlag":1,"writeQueueNums":1}"#;
    const VERSION: &str = r#"{"counter":7,"stateVersion":2,"timestamp":2}"#;

    #[test]
    fn reads_and_writes_javas_text() {
        let config: TopicConfig = round_trip(CONFIG);
        round_trip::<TopicConfigTable>(&format!(r#"{{"dataVersion":{VERSION},"topicConfigTable":{{"s":{CONFIG}}}}}"#));
        round_trip::<CreateTopicListRequestBody>(&format!(r#"{{"topicConfigList":[{CONFIG}]}}"#));
        round_trip::<TopicConfigAndMappingTable>(&format!(
            r#"{{"dataVersion":{VERSION},"mappingDataVersion":{VERSION},"topicConfigTable":{{"s":{CONFIG}}},"topicQueueMappingDetailMap":{{"s":{{"bname":"s","currIdMap":{{1:1}},"dirty":true,"epoch":2,"hostedQueues":{{1:[{{"endOffset":-1,"gen":0,"logicOffset":0,"queueId":0,"startOffset":0,"timeOfEnd":-1,"timeOfStart":-1}}]}},"scope":"s","topic":"s","totalQueues":1}}}},"topicQueueMappingInfoMap":{{"s":{{"bname":"s","currIdMap":{{1:1}},"dirty":true,"epoch":2,"scope":"s","topic":"s","totalQueues":1}}}}}}"#
        ));
        let both: TopicConfigAndQueueMapping = round_trip(
            r#"{"attributes":{"s":"s"},"mappingDetail":{"bname":"s","currIdMap":{1:1},"dirty":true,"epoch":2,"hostedQueues":{1:[{"bname":"s","endOffset":2,"gen":1,"logicOffset":2,"queueId":1,"startOffset":2,"timeOfEnd":2,"timeOfStart":2}]},"scope":"s","topic":"s","totalQueues":1},"order":true,"perm":1,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"s","topicSysFlag":1,"writeQueueNums":1}"#,
        );
        assert_eq!(both.clone().into_config(), config);
        let mapping = both.mapping_detail.clone();
        assert_eq!(TopicConfigAndQueueMapping::new(config.clone(), mapping), both);
        let plain = TopicConfigAndQueueMapping::new(config, None);
        assert_eq!(json::to_fastjson(&plain), CONFIG.as_bytes());
    }

    #[test]
    fn defaults_are_javas() {
        assert_eq!(json::from_slice::<TopicConfig>(b"{}").unwrap(), TopicConfig::default());
        assert_eq!(
            defaults::<TopicConfig>(),
            r#"{"attributes":{},"order":false,"perm":6,"readQueueNums":16,"topicFilterType":"SINGLE_TAG","topicName":"","topicSysFlag":0,"writeQueueNums":16}"#
        );
    }

    /// Cut from `topics.json` of a store that Java 5.5.0 wrote.
    #[test]
    fn the_file_is_javas() {
        let file = "{\n\t\"dataVersion\":{\n\t\t\"counter\":6,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1796051654243\n\t},\n\t\"topicConfigTable\":{\n\t\t\"DefaultCluster\":{\n\t\t\t\"attributes\":{},\n\t\t\t\"order\":false,\n\t\t\t\"perm\":7,\n\t\t\t\"readQueueNums\":16,\n\t\t\t\"topicFilterType\":\"SINGLE_TAG\",\n\t\t\t\"topicName\":\"DefaultCluster\",\n\t\t\t\"topicSysFlag\":0,\n\t\t\t\"writeQueueNums\":16\n\t\t},\n\t\t\"fixture_order\":{\n\t\t\t\"attributes\":{},\n\t\t\t\"order\":false,\n\t\t\t\"perm\":6,\n\t\t\t\"readQueueNums\":4,\n\t\t\t\"topicFilterType\":\"SINGLE_TAG\",\n\t\t\t\"topicName\":\"fixture_order\",\n\t\t\t\"topicSysFlag\":0,\n\t\t\t\"writeQueueNums\":4\n\t\t}\n\t}\n}";
        let table: TopicConfigTable = pretty_round_trip(file);
        assert_eq!(table.topic_config_table["fixture_order"], TopicConfig::new("fixture_order", 4, 6));
    }

    #[test]
    fn lines_of_a_compressed_registration() {
        let mut config = TopicConfig::new("T1", 4, 6);
        assert_eq!(config.to_line(), "T1 4 4 6 SINGLE_TAG {}");
        config.attributes.insert("owner".into(), "team a".into());
        assert_eq!(config.to_line(), r#"T1 4 4 6 SINGLE_TAG {"owner":"team a"}"#);
        assert_eq!(TopicConfig::from_line(&config.to_line()).unwrap(), config);
        assert_eq!(TopicConfig::from_line("T1 4 4 6 SINGLE_TAG").unwrap(), TopicConfig::new("T1", 4, 6));
        assert_eq!(TopicConfig::from_line("T1 4 4 6 SINGLE_TAG {oops").unwrap(), TopicConfig::new("T1", 4, 6));
        assert!(TopicConfig::from_line("T1 4 4 6").is_err());
        assert!(TopicConfig::from_line("T1 4 four 6 SINGLE_TAG {}").is_err());
    }
}
