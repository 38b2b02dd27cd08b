//! A broker comes, or tells again what it has.

use std::sync::atomic::AtomicI64;

use cometmq_wire::body::{BrokerData, QueueData, TopicConfig};
use cometmq_wire::flags::perm;

use super::leave::Leaving;
use super::{
    BROKERS_MAX, BrokerKey, HEARTBEAT_TIMEOUT, Live, MASTER, NAME_BYTES_MAX, Registered, Registration,
    RegistrationRefused, TOPICS_MAX, Tables,
};
use crate::notices::Notice;

impl Tables {
    pub(super) fn register(
        &mut self,
        mut registration: Registration,
        delete_missing: bool,
        now_ms: i64,
    ) -> Result<Registered, RegistrationRefused> {
        self.check(&registration)?;
        let r = &mut registration;
        let key = BrokerKey::new(&r.cluster, &r.broker_addr);
        self.forget_other_name(&key, &r.broker_name);
        self.clusters.entry(r.cluster.clone()).or_default().insert(r.broker_name.clone());
        let broker = self.brokers.entry(r.broker_name.clone()).or_insert_with(|| BrokerData {
            broker_name: r.broker_name.clone(),
            cluster: r.cluster.clone(),
            ..BrokerData::default()
        });
        broker.enable_acting_master = r.enable_acting_master == Some(true);
        broker.zone_name = r.zone_name.take();
        let lowest = broker.broker_addrs.first_key_value().map(|(id, _)| *id);
        // A slave that became master has one id, the new one.
        broker.broker_addrs.retain(|id, addr| *addr != r.broker_addr || *id == r.broker_id);
        if self.is_fenced(r) {
            tracing::warn!(?key, broker = r.broker_name, id = r.broker_id, "a broker of an older epoch, ignored");
            self.live.remove(&key);
            return Ok(Registered::default());
        }
        self.replace_id(r, &key, delete_missing);
        if lowest.is_some_and(|lowest| r.broker_id < lowest) {
            let addrs = &self.brokers[&r.broker_name].broker_addrs;
            self.notices.extend(Notice::new(addrs, None, Some(&r.ha_server_addr)));
        }
        let body = &mut r.body;
        let live = Live {
            broker_name: r.broker_name.clone(),
            heard_at: AtomicI64::new(now_ms),
            timeout_ms: r.heartbeat_timeout_ms.unwrap_or(HEARTBEAT_TIMEOUT.as_millis() as i64),
            data_version: body.topic_config_serialize_wrapper.data_version,
            connection: r.connection,
            ha_server_addr: std::mem::take(&mut r.ha_server_addr),
            filter_servers: std::mem::take(&mut body.filter_server_list),
        };
        if self.live.insert(key.clone(), live).is_none() {
            tracing::info!(
                cluster = key.cluster,
                addr = key.addr,
                broker = r.broker_name,
                id = r.broker_id,
                "new broker"
            );
        }
        Ok(self.master_of(&key.cluster, &r.broker_name, r.broker_id))
    }

    fn check(&self, r: &Registration) -> Result<(), RegistrationRefused> {
        let names = [("brokerName", &r.broker_name), ("brokerAddr", &r.broker_addr), ("clusterName", &r.cluster)];
        if let Some((what, _)) = names.into_iter().find(|(_, name)| name.is_empty() || name.len() > NAME_BYTES_MAX) {
            return Err(RegistrationRefused::Name { what });
        }
        let topics = &r.body.topic_config_serialize_wrapper.topic_config_table;
        let id_is_known = self.brokers.get(&r.broker_name).is_some_and(|b| b.broker_addrs.contains_key(&r.broker_id));
        if !id_is_known && topics.len() == 1 {
            return Err(RegistrationRefused::NotRegisteredYet);
        }
        if self.live.len() >= BROKERS_MAX && !self.live.contains_key(&BrokerKey::new(&r.cluster, &r.broker_addr)) {
            return Err(RegistrationRefused::Full { what: "brokers", limit: BROKERS_MAX });
        }
        // The exact count only when it can matter.
        if self.topics.len() + topics.len() > TOPICS_MAX {
            let new = topics.values().filter(|config| !self.topics.contains_key(&config.topic_name)).count();
            if self.topics.len() + new > TOPICS_MAX {
                return Err(RegistrationRefused::Full { what: "topics", limit: TOPICS_MAX });
            }
        }
        Ok(())
    }

    /// A broker that came back under another name leaves the old one at once, not when it expires (it never would:
    /// its address keeps sending heartbeats).
    fn forget_other_name(&mut self, key: &BrokerKey, broker_name: &str) {
        if let Some(old) = self.live.get(key).filter(|live| live.broker_name != broker_name) {
            let leaving = Leaving::new(key.clone(), &old.broker_name);
            self.remove(&[leaving]);
        }
    }

    /// Whether the broker id belongs to another address that has seen a later master epoch.
    fn is_fenced(&self, r: &Registration) -> bool {
        let holder = self.brokers.get(&r.broker_name).and_then(|broker| broker.broker_addrs.get(&r.broker_id));
        let holder = holder.filter(|addr| **addr != r.broker_addr);
        let live = holder.and_then(|addr| self.live.get(&BrokerKey::new(&r.cluster, addr)));
        live.is_some_and(|live| {
            live.data_version.state_version > r.body.topic_config_serialize_wrapper.data_version.state_version
        })
    }

    fn replace_id(&mut self, r: &mut Registration, key: &BrokerKey, delete_missing: bool) {
        let Some(broker) = self.brokers.get_mut(&r.broker_name) else { return };
        let is_first = broker.broker_addrs.insert(r.broker_id, r.broker_addr.clone()).is_none();
        let is_lowest = broker.broker_addrs.keys().next() == Some(&r.broker_id);
        // The lowest slave speaks for the broker while there is no master.
        let is_prime_slave = r.broker_id != MASTER && is_lowest && r.enable_acting_master.is_some();
        if r.broker_id != MASTER && !is_prime_slave {
            return;
        }
        let read_only = is_prime_slave && broker.enable_acting_master;
        let version = r.body.topic_config_serialize_wrapper.data_version;
        let is_changed = is_first || self.live.get(key).map(|live| live.data_version) != Some(version);
        self.replace_topics(r, is_changed, delete_missing, read_only);
    }

    fn replace_topics(&mut self, r: &mut Registration, is_changed: bool, delete_missing: bool, read_only: bool) {
        let table = &mut r.body.topic_config_serialize_wrapper;
        if delete_missing && table.topic_queue_mapping_info_map.is_empty() {
            let mappings = &mut self.mappings;
            self.topics.retain(|topic, queues| {
                if !table.topic_config_table.contains_key(topic) {
                    queues.retain(|queue| queue.broker_name != r.broker_name);
                }
                if queues.is_empty() {
                    mappings.remove(topic);
                }
                !queues.is_empty()
            });
        }
        for config in table.topic_config_table.values() {
            if !is_topic_name(&config.topic_name) {
                tracing::warn!(
                    broker = r.broker_name,
                    bytes = config.topic_name.len(),
                    "a topic name out of bounds, left out"
                );
            } else if is_changed || !self.has(&config.topic_name, &r.broker_name) {
                self.put(&config.topic_name, queue_data(&r.broker_name, config, read_only));
            }
        }
        if is_changed {
            for (topic, info) in std::mem::take(&mut table.topic_queue_mapping_info_map) {
                let has_room = self.mappings.len() < TOPICS_MAX || self.mappings.contains_key(&topic);
                if let (true, true, Some(name)) = (is_topic_name(&topic), has_room, info.broker_name.clone()) {
                    self.mappings.entry(topic).or_default().insert(name, info);
                }
            }
        }
    }

    pub(super) fn register_topic(&mut self, topic: &str, queues: Vec<QueueData>) -> Result<(), RegistrationRefused> {
        if !is_topic_name(topic) {
            return Err(RegistrationRefused::Name { what: "topic" });
        }
        if self.topics.len() >= TOPICS_MAX && !self.topics.contains_key(topic) {
            return Err(RegistrationRefused::Full { what: "topics", limit: TOPICS_MAX });
        }
        if let Some(stranger) = queues.iter().find(|queue| !self.brokers.contains_key(&queue.broker_name)) {
            tracing::warn!(topic, broker = stranger.broker_name, "a topic of a broker that is not registered, ignored");
            return Ok(());
        }
        queues.into_iter().for_each(|queue| self.put(topic, queue));
        Ok(())
    }

    fn has(&self, topic: &str, broker_name: &str) -> bool {
        self.topics.get(topic).is_some_and(|queues| find(queues, broker_name).is_ok())
    }

    fn put(&mut self, topic: &str, queue: QueueData) {
        // The name is copied only for a topic that is new.
        let Some(queues) = self.topics.get_mut(topic) else {
            tracing::debug!(topic, ?queue, "new topic");
            self.topics.insert(topic.to_owned(), vec![queue]);
            return;
        };
        match find(queues, &queue.broker_name) {
            Ok(at) => queues[at] = queue,
            Err(at) => queues.insert(at, queue),
        }
    }

    fn master_of(&self, cluster: &str, broker_name: &str, asking_id: i64) -> Registered {
        let master = self.brokers.get(broker_name).and_then(|broker| broker.broker_addrs.get(&MASTER));
        let Some(addr) = master.filter(|_| asking_id != MASTER) else { return Registered::default() };
        let Some(live) = self.live.get(&BrokerKey::new(cluster, addr)) else { return Registered::default() };
        Registered { ha_server_addr: Some(live.ha_server_addr.clone()), master_addr: Some(addr.clone()) }
    }
}

pub(super) fn find(queues: &[QueueData], broker_name: &str) -> Result<usize, usize> {
    queues.binary_search_by(|queue| queue.broker_name.as_str().cmp(broker_name))
}

fn is_topic_name(topic: &str) -> bool {
    !topic.is_empty() && topic.len() <= NAME_BYTES_MAX
}

fn queue_data(broker_name: &str, config: &TopicConfig, read_only: bool) -> QueueData {
    QueueData {
        broker_name: broker_name.to_owned(),
        perm: if read_only { config.perm & !perm::WRITE } else { config.perm },
        read_queue_nums: config.read_queue_nums,
        topic_sys_flag: config.topic_sys_flag,
        write_queue_nums: config.write_queue_nums,
    }
}
