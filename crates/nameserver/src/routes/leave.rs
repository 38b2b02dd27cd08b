//! A broker goes: by its own word, with its connection, or because it has been silent for too long.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use cometmq_net::ConnId;
use cometmq_wire::body::QueueData;
use cometmq_wire::flags::perm;

use super::{BrokerKey, Live, MASTER, Tables};
use crate::notices::Notice;

pub(super) struct Leaving {
    key: BrokerKey,
    broker_name: String,
}

impl Leaving {
    pub(super) fn new(key: BrokerKey, broker_name: &str) -> Self {
        Self { key, broker_name: broker_name.to_owned() }
    }
}

impl Tables {
    /// All at once: the topics are gone through once, whatever the number.
    pub(super) fn remove(&mut self, leaving: &[Leaving]) {
        let mut gone = BTreeSet::new();
        let mut masterless = BTreeSet::new();
        for Leaving { key, broker_name } in leaving {
            let was_live = self.live.remove(key).is_some();
            tracing::info!(
                cluster = key.cluster,
                addr = key.addr,
                broker = broker_name,
                was_live,
                "broker unregistered"
            );
            let Some(broker) = self.brokers.get_mut(broker_name) else { continue };
            let lowest = broker.broker_addrs.first_key_value().map(|(id, _)| *id);
            broker.broker_addrs.retain(|_, addr| *addr != key.addr);
            let is_lowest_gone = broker.broker_addrs.first_key_value().map(|(id, _)| *id) != lowest;
            if broker.enable_acting_master && is_lowest_gone {
                // Of several that go at once the last notice counts.
                self.notices.extend(Notice::new(&broker.broker_addrs, Some(&key.addr), None));
            }
            if broker.broker_addrs.is_empty() {
                self.brokers.remove(broker_name);
                self.clusters.values_mut().for_each(|names| _ = names.remove(broker_name));
                gone.insert(broker_name.as_str());
            } else if broker.enable_acting_master && !broker.broker_addrs.contains_key(&MASTER) {
                masterless.insert(broker_name.as_str());
            }
        }
        self.clusters.retain(|_, names| !names.is_empty());
        masterless.retain(|name| !gone.contains(name));
        if !gone.is_empty() || !masterless.is_empty() {
            self.remove_queues(
                |queue| gone.contains(queue.broker_name.as_str()),
                |queue| {
                    // A slave may stand in, for readers only.
                    if masterless.contains(queue.broker_name.as_str()) {
                        queue.perm &= !perm::WRITE;
                    }
                },
            );
        }
    }

    /// Takes `is_gone` queues out of every topic, shows the others to `keep`, and drops topics without queues.
    fn remove_queues(&mut self, is_gone: impl Fn(&QueueData) -> bool, keep: impl Fn(&mut QueueData)) {
        let mappings = &mut self.mappings;
        self.topics.retain(|topic, queues| {
            queues.retain(|queue| !is_gone(queue));
            queues.iter_mut().for_each(&keep);
            if queues.is_empty() {
                mappings.remove(topic);
            }
            !queues.is_empty()
        });
    }

    pub(super) fn connection_lost(&mut self, connection: ConnId) {
        let leaving = self.leaving(|live| live.connection == Some(connection));
        self.remove(&leaving);
    }

    pub(super) fn expired(&self, now_ms: i64) -> Vec<Leaving> {
        self.leaving(|live| live.heard_at.load(Relaxed).saturating_add(live.timeout_ms) < now_ms)
    }

    pub(super) fn expire(&mut self, now_ms: i64) -> Vec<ConnId> {
        // Looked up again under the write lock: a heartbeat may have come in between.
        let leaving = self.expired(now_ms);
        for Leaving { key, broker_name } in &leaving {
            tracing::warn!(
                cluster = key.cluster,
                addr = key.addr,
                broker = broker_name,
                "no heartbeat, broker dropped"
            );
        }
        let connections = leaving.iter().filter_map(|leaving| self.live.get(&leaving.key)?.connection).collect();
        self.remove(&leaving);
        connections
    }

    fn leaving(&self, goes: impl Fn(&Live) -> bool) -> Vec<Leaving> {
        let gone = self.live.iter().filter(|(_, live)| goes(live));
        gone.map(|(key, live)| Leaving::new(key.clone(), &live.broker_name)).collect()
    }
}
