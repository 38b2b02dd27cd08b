//! Topics: their configuration and their queues. `config/topics.json` is Java's.
//!
//! Readers take a snapshot; a change swaps the whole table, is saved, registered at the name servers, and only then
//! acknowledged. A [`Topic`] keeps the store's queues once they were asked for.
//! Java: `TopicConfigManager`.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use cometmq_base::Clock;
use cometmq_base::config::Config;
use cometmq_store::disk::Disk;
use cometmq_store::{QueueRef, Store};
use cometmq_wire::body::{DataVersion, TopicConfig, TopicConfigTable};
use cometmq_wire::flags::perm;
use cometmq_wire::{ResponseCode, json, names};
use foldhash::fast::RandomState;

use crate::error::Reject;
use crate::json_file::JsonFile;

/// Queues a topic may have. Java: `TopicConfig` has no limit, its clients fail far below this.
pub(crate) const QUEUES_MAX: i32 = 65_535;

pub(crate) struct Topic {
    pub(crate) config: TopicConfig,
    queues: Box<[OnceLock<QueueRef>]>,
    saved: AtomicBool,
}

impl Topic {
    fn new(config: TopicConfig) -> Arc<Self> {
        let count = config.read_queue_nums.max(config.write_queue_nums).clamp(0, QUEUES_MAX);
        let queues = (0..count).map(|_| OnceLock::new()).collect();
        Arc::new(Self { config, queues, saved: AtomicBool::new(false) })
    }

    /// Whether the file has a topic of this name: a message in one that a crash takes away would be out of reach.
    pub(crate) fn is_saved(&self) -> bool {
        self.saved.load(Ordering::Acquire)
    }

    fn set_saved(&self) {
        self.saved.store(true, Ordering::Release);
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.topic_name
    }

    /// Refuses topics whose queues are of a kind that only Java reads; what they hold is kept. Java: `BatchConsumeQueue`.
    pub(crate) fn check_kind(&self) -> Result<(), Reject> {
        if self.config.attributes.get("queue.type").is_some_and(|kind| kind == "BatchCQ") {
            return Err(Reject::not_built(&format!("queue.type=BatchCQ of topic[{}]", self.name())));
        }
        Ok(())
    }

    /// Queue `id` of the store; `None` when the topic has no such queue.
    pub(crate) fn queue(&self, id: i32, store: &Store) -> Option<Result<QueueRef, cometmq_store::Error>> {
        let slot = self.queues.get(usize::try_from(id).ok()?)?;
        if let Some(queue) = slot.get() {
            return Some(Ok(queue.clone()));
        }
        let loaded = store.queue(self.name(), id);
        Some(loaded.map(|queue| slot.get_or_init(|| queue).clone()))
    }

    /// One past the highest queue id.
    pub(crate) fn queue_count(&self) -> i32 {
        self.queues.len() as i32
    }
}

type Table = HashMap<Arc<str>, Arc<Topic>, RandomState>;

pub(crate) struct Topics {
    table: ArcSwap<Table>,
    /// Held while the table is changed; guards the data version.
    version: Mutex<DataVersion>,
    file: Arc<JsonFile>,
    clock: Clock,
    /// Topics of this broker that nobody may change.
    system: Vec<String>,
}

impl Topics {
    pub(crate) fn load(disk: Arc<dyn Disk>, root: &Path, clock: Clock, config: &Config) -> io::Result<Self> {
        let file = Arc::new(JsonFile::new(disk, root, "topics.json"));
        let loaded = file.load::<TopicConfigTable>()?.unwrap_or_default();
        let mut table: HashMap<String, TopicConfig> = loaded.topic_config_table.into_iter().collect();
        let mut system = Vec::new();
        for topic in system_topics(config) {
            system.push(topic.topic_name.clone());
            table.entry(topic.topic_name.clone()).or_insert(topic);
        }
        let table: Table = table.into_iter().map(|(name, topic)| (Arc::from(name), Topic::new(topic))).collect();
        let version = Mutex::new(loaded.data_version);
        Ok(Self { table: ArcSwap::from_pointee(table), version, file, clock, system })
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Topic>> {
        self.table.load().get(name).cloned()
    }

    pub(crate) fn is_system(&self, name: &str) -> bool {
        names::is_system_topic(name) || self.system.iter().any(|s| s == name)
    }

    /// The whole table with its version, as it is saved and registered.
    pub(crate) fn snapshot(&self) -> TopicConfigTable {
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table.load();
        TopicConfigTable {
            data_version: *version,
            topic_config_table: table.values().map(|t| (t.config.topic_name.clone(), t.config.clone())).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.load().len()
    }

    /// Changes the table; `change` returns whether it did.
    fn change<R>(&self, change: impl FnOnce(&mut Table) -> (bool, R)) -> R {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = self.table.load().as_ref().clone();
        let (changed, result) = change(&mut table);
        if changed {
            let state = version.state_version;
            version.next(self.clock.now_ms(), state);
            // In this order: a save that sees the new table also covers it.
            self.file.changed();
            self.table.store(Arc::new(table));
        }
        result
    }

    /// Puts a topic, new or changed; `false` when it is just so already.
    pub(crate) fn put(&self, config: TopicConfig) -> bool {
        self.change(|table| {
            let before = table.get(config.topic_name.as_str());
            if before.is_some_and(|t| t.config == config) {
                return (false, false);
            }
            let topic = Topic::new(config);
            if before.is_some_and(|t| t.is_saved()) {
                topic.set_saved();
            }
            table.insert(Arc::from(topic.name()), topic);
            (true, true)
        })
    }

    pub(crate) fn remove(&self, name: &str) {
        self.change(|table| (table.remove(name).is_some(), ()));
    }

    /// Puts a topic unless there is one of its name; returns the one that is there.
    fn put_new(&self, config: TopicConfig) -> Arc<Topic> {
        self.change(|table| match table.get(config.topic_name.as_str()) {
            Some(topic) => (false, topic.clone()),
            None => {
                let topic = Topic::new(config);
                table.insert(Arc::from(topic.name()), topic.clone());
                (true, topic)
            }
        })
    }

    /// What a send to an unknown topic creates: a copy of the default topic with at most `queues` queues.
    /// Java: `createTopicInSendMessageMethod`.
    pub(crate) fn auto_create(
        &self,
        name: &str,
        default: &str,
        queues: i32,
        auto_create: bool,
    ) -> Result<Arc<Topic>, Reject> {
        let pattern = self.find(default).filter(|t| t.config.perm & perm::INHERIT != 0);
        let pattern = pattern.filter(|_| auto_create || default != names::AUTO_CREATE_TOPIC);
        match pattern {
            Some(pattern) => {
                let queues = queues.min(pattern.config.write_queue_nums).clamp(0, QUEUES_MAX);
                let mut config = TopicConfig::new(name, queues, pattern.config.perm & !perm::INHERIT);
                config.topic_filter_type = pattern.config.topic_filter_type;
                tracing::info!(topic = name, queues, default, "topic created by a send");
                Ok(self.put_new(config))
            }
            // Retry topics come into being with their group, whatever the default topic says.
            None if names::is_retry_topic(name) => {
                Ok(self.put_new(TopicConfig::new(name, 1, perm::READ | perm::WRITE)))
            }
            None => Err(Reject::no_topic(name)),
        }
    }

    /// The retry topic of a group. Java: `createTopicInSendMessageBackMethod`.
    pub(crate) fn create_retry(&self, name: &str, queues: i32) {
        if self.find(name).is_none() {
            self.put_new(TopicConfig::new(name, queues.clamp(0, QUEUES_MAX), perm::READ | perm::WRITE));
        }
    }

    /// Returns once all changes made so far are on disk.
    pub(crate) async fn save(&self) -> Result<(), Reject> {
        let table = self.table.load_full();
        self.file.save(|| json::to_pretty(&self.snapshot())).await.map_err(|e| Reject::from(&e))?;
        table.values().for_each(|topic| topic.set_saved());
        Ok(())
    }

    /// Writes the file if the table holds something that it does not (system topics of a first start).
    pub(crate) fn save_now(&self) -> io::Result<()> {
        self.file.write(&json::to_pretty(&self.snapshot()))?;
        self.table.load().values().for_each(|topic| topic.set_saved());
        Ok(())
    }
}

/// Applies `+key=value,-key` to attributes. Java: `AttributeParser`, `AttributeUtil.alterCurrentAttributes`.
pub(crate) fn alter_attributes(
    current: &std::collections::BTreeMap<String, String>,
    modification: &str,
) -> Result<std::collections::BTreeMap<String, String>, Reject> {
    let mut result = current.clone();
    let refuse = |what: String| Err(Reject::new(ResponseCode::SYSTEM_ERROR, what));
    for part in modification.split(',').filter(|p| !p.trim().is_empty()) {
        if let Some(key) = part.strip_prefix('-') {
            if result.remove(key).is_none() {
                return refuse(format!("attempt to delete a nonexistent key: {key}"));
            }
            continue;
        }
        let Some((key, value)) = part.strip_prefix('+').and_then(|p| p.split_once('=')) else {
            return refuse(format!("attribute '{part}' is neither +key=value nor -key"));
        };
        check_attribute(key, value)?;
        result.insert(key.to_string(), value.to_string());
    }
    Ok(result)
}

/// Java: `TopicAttributes`.
fn check_attribute(key: &str, value: &str) -> Result<(), Reject> {
    let wrong = |expected: &str| {
        Err(Reject::new(ResponseCode::SYSTEM_ERROR, format!("attribute {key}={value}: expected {expected}")))
    };
    let one_of = |list: &[&str]| if list.contains(&value) { Ok(()) } else { wrong(&list.join(", ")) };
    match key {
        "queue.type" if value == "BatchCQ" => Err(Reject::not_built("queue.type=BatchCQ")),
        "queue.type" => one_of(&["SimpleCQ", "BatchCQ"]),
        "cleanup.policy" if value == "COMPACTION" => Err(Reject::not_built("cleanup.policy=COMPACTION")),
        "cleanup.policy" => one_of(&["DELETE", "COMPACTION"]),
        "message.type" if value == "MIXED" => Err(Reject::invalid("MIXED message type is not supported.")),
        "message.type" => one_of(&["UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE"]),
        "reserve.time" => match value.parse::<i64>() {
            Ok(n) if n >= -1 => Ok(()),
            _ => wrong("a number of at least -1"),
        },
        "lite.topic.expiration" => match value.parse::<i64>() {
            Ok(n) if (-1..=43_200).contains(&n) => Ok(()),
            _ => wrong("minutes from -1 to 43200"),
        },
        _ => Err(Reject::new(ResponseCode::SYSTEM_ERROR, format!("unsupported key: {key}"))),
    }
}

/// The topics that every broker has. Java: `TopicConfigManager.init`.
fn system_topics(config: &Config) -> Vec<TopicConfig> {
    const RW: i32 = perm::READ | perm::WRITE;
    let (cluster, broker) = (config.str("brokerClusterName"), config.str("brokerName"));
    let open = |key| if config.bool(key) { RW | perm::INHERIT } else { perm::INHERIT };
    let mut topics = vec![
        TopicConfig::new(names::SELF_TEST_TOPIC, 1, RW),
        TopicConfig::new(names::BENCHMARK_TOPIC, 1024, RW),
        TopicConfig::new(cluster, 16, open("clusterTopicEnable")),
        TopicConfig::new(broker, 1, open("brokerTopicEnable")),
        TopicConfig::new(names::OFFSET_MOVED_EVENT_TOPIC, 1, RW),
        TopicConfig::new(names::SCHEDULE_TOPIC, 18, RW),
        TopicConfig::new(&names::reply_topic(cluster), 1, RW),
        TopicConfig::new(&format!("rmq_sys_REVIVE_LOG_{cluster}"), config.int("reviveQueueNum"), RW),
        TopicConfig::new(&format!("{}{broker}", names::SYNC_BROKER_MEMBER_PREFIX), 1, perm::INHERIT),
        TopicConfig::new(names::TRANS_HALF_TOPIC, 1, RW),
        TopicConfig::new(names::TRANS_OP_HALF_TOPIC, 1, RW),
        TopicConfig::new(names::ROCKSDB_TRANS_HALF_TOPIC, 1, RW),
        TopicConfig::new(names::ROCKSDB_TRANS_OP_HALF_TOPIC, 1, RW),
        TopicConfig::new(names::TIMER_TOPIC, 1, RW),
    ];
    if config.bool("autoCreateTopicEnable") {
        let queues = config.int("defaultTopicQueueNums");
        topics.push(TopicConfig::new(names::AUTO_CREATE_TOPIC, queues, RW | perm::INHERIT));
    }
    if config.bool("traceTopicEnable") {
        topics.push(TopicConfig::new(config.str("msgTraceTopicName"), 1, RW));
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;
    use cometmq_base::config::Role;
    use cometmq_store::disk::Faulty;

    fn topics(disk: &Faulty) -> Topics {
        let mut config = Config::new(Role::Broker);
        config.set("brokerName", "broker-a").unwrap();
        disk.create_dirs(Path::new("/s/comet")).unwrap();
        Topics::load(Arc::new(disk.clone()), Path::new("/s"), Clock::manual(1000), &config).unwrap()
    }

    #[tokio::test]
    async fn topics_survive_a_restart() {
        let disk = Faulty::healthy();
        let first = topics(&disk);
        assert!(first.put(TopicConfig::new("orders", 4, 6)));
        assert!(!first.put(TopicConfig::new("orders", 4, 6)));
        first.save().await.unwrap();
        let again = topics(&disk);
        assert_eq!(again.find("orders").unwrap().config, TopicConfig::new("orders", 4, 6));
        assert_eq!(again.snapshot().data_version.counter, 1);
        assert!(again.find("nope").is_none());
        assert!(again.is_system("broker-a") && again.is_system("TBW102") && !again.is_system("orders"));
    }

    #[test]
    fn auto_creation_copies_the_default_topic() {
        let topics = topics(&Faulty::healthy());
        let made = topics.auto_create("new", "TBW102", 4, true).unwrap();
        assert_eq!(made.config, TopicConfig::new("new", 4, 6));
        assert_eq!(topics.auto_create("wide", "TBW102", 100, true).unwrap().config.write_queue_nums, 8);
        assert_eq!(topics.auto_create("off", "TBW102", 4, false).err().unwrap().code, ResponseCode::TOPIC_NOT_EXIST);
        assert_eq!(topics.auto_create("x", "unknown", 4, true).err().unwrap().code, ResponseCode::TOPIC_NOT_EXIST);
        assert_eq!(topics.auto_create("%RETRY%g", "unknown", 4, true).unwrap().config.write_queue_nums, 1);
    }

    #[test]
    fn attributes_are_added_and_removed_by_name() {
        let none = Default::default();
        let with = alter_attributes(&none, "+message.type=FIFO,+reserve.time=10").unwrap();
        assert_eq!(with.len(), 2);
        assert_eq!(alter_attributes(&with, "-reserve.time").unwrap().len(), 1);
        assert!(alter_attributes(&none, "-reserve.time").is_err());
        assert!(alter_attributes(&none, "+message.type=nonsense").is_err());
        assert!(alter_attributes(&none, "+x=y").is_err());
        assert_eq!(alter_attributes(&none, "+message.type=MIXED").unwrap_err().code, ResponseCode::INVALID_PARAMETER);
    }
}
