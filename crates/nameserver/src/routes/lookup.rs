//! What clients and tools ask of the tables.

use cometmq_wire::body::{BrokerData, QueueData, TopicList, TopicRouteData};
use cometmq_wire::flags::perm;
use cometmq_wire::names::SYNC_BROKER_MEMBER_PREFIX;

use super::register::find;
use super::{BrokerKey, MASTER, Tables};

const UNIT: i32 = 1;
const UNIT_SUBSCRIPTION: i32 = 2;

/// Which topics by their `topicSysFlag`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    /// 311.
    Topics,
    /// 312.
    Subscribed,
    /// 313: subscribed by a unit, but not of one.
    SubscribedFromOutside,
}

impl Tables {
    pub(super) fn route(&self, topic: &str, acting_master: bool) -> Option<TopicRouteData> {
        let queues = self.topics.get(topic)?;
        let brokers = queues.iter().filter_map(|queue| self.brokers.get(&queue.broker_name));
        let mut route = TopicRouteData {
            broker_datas: brokers.cloned().collect(),
            queue_datas: queues.clone(),
            topic_queue_mapping_by_broker: self.mappings.get(topic).cloned(),
            ..TopicRouteData::default()
        };
        if route.broker_datas.is_empty() {
            return None;
        }
        for broker in &route.broker_datas {
            for addr in broker.broker_addrs.values() {
                let live = self.live.get(&BrokerKey::new(&broker.cluster, addr));
                if let Some(live) = live.filter(|live| !live.filter_servers.is_empty()) {
                    route.filter_server_table.insert(addr.clone(), live.filter_servers.clone());
                }
            }
        }
        if acting_master && !topic.starts_with(SYNC_BROKER_MEMBER_PREFIX) {
            route.broker_datas.iter_mut().for_each(|broker| show_acting_master(broker, &route.queue_datas));
        }
        Some(route)
    }

    pub(super) fn topics_of_cluster(&self, cluster: &str) -> TopicList {
        let Some(brokers) = self.clusters.get(cluster) else { return TopicList::default() };
        self.topics_where(|queues| queues.iter().any(|queue| brokers.contains(&queue.broker_name)))
    }

    /// Each cluster and each broker has a topic of its name; the brokers know the rest.
    pub(super) fn system_topics(&self) -> TopicList {
        let brokers = self.clusters.values().flatten();
        let mut addrs = self.brokers.values().flat_map(|broker| broker.broker_addrs.values());
        TopicList {
            broker_addr: addrs.next().cloned(),
            topic_list: self.clusters.keys().chain(brokers).cloned().collect(),
        }
    }

    pub(super) fn unit_topics(&self, which: Unit) -> TopicList {
        self.topics_where(|queues| {
            let flag = queues.first().map_or(0, |queue| queue.topic_sys_flag);
            let (is_unit, is_subscribed) = (flag & UNIT != 0, flag & UNIT_SUBSCRIPTION != 0);
            match which {
                Unit::Topics => is_unit,
                Unit::Subscribed => is_subscribed,
                Unit::SubscribedFromOutside => is_subscribed && !is_unit,
            }
        })
    }

    fn topics_where(&self, belongs: impl Fn(&[QueueData]) -> bool) -> TopicList {
        let topics = self.topics.iter().filter(|(_, queues)| belongs(queues));
        TopicList { broker_addr: None, topic_list: topics.map(|(topic, _)| topic.clone()).collect() }
    }
}

/// Clients look for a master under id 0: the lowest slave goes there while the master is lost and nobody may write.
fn show_acting_master(broker: &mut BrokerData, queues: &[QueueData]) {
    if !broker.enable_acting_master || broker.broker_addrs.contains_key(&MASTER) {
        return;
    }
    let is_read_only = find(queues, &broker.broker_name).is_ok_and(|at| !perm::is_writeable(queues[at].perm));
    if let (true, Some((_, addr))) = (is_read_only, broker.broker_addrs.pop_first()) {
        broker.broker_addrs.insert(MASTER, addr);
    }
}

/// Leaves the brokers of one zone, and those without a master, whose readers must go elsewhere anyway.
/// Java: `ZoneRouteRPCHook`.
pub(crate) fn only_zone(route: &mut TopicRouteData, zone: &str) {
    let TopicRouteData { broker_datas, queue_datas, filter_server_table, .. } = route;
    broker_datas.retain(|broker| {
        let is_near = broker.zone_name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(zone));
        let stays = is_near || !broker.broker_addrs.contains_key(&MASTER);
        if !stays {
            queue_datas.retain(|queue| queue.broker_name != broker.broker_name);
            broker.broker_addrs.values().for_each(|addr| _ = filter_server_table.remove(addr));
        }
        stays
    });
}
