//! A route as producers and consumers use it: which queues can be written and read, and where each broker listens.
//! Java: `TopicPublishInfo`, `MQClientInstance.topicRouteData2TopicPublishInfo`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cometmq_wire::body::{BrokerData, MessageQueue, TopicRouteData};
use cometmq_wire::flags::perm;

/// Queues that a topic gets where it is created by the first send. Java: `defaultTopicQueueNums`.
pub(crate) const DEFAULT_QUEUES: i32 = 4;
/// The broker id of a master.
const MASTER: i64 = 0;
/// More queues on one broker than this are not believed.
const QUEUES_MAX: i32 = 65_536;

/// The route of one topic.
#[derive(Debug)]
pub struct Route {
    data: TopicRouteData,
    publish: Vec<MessageQueue>,
    subscribe: Vec<MessageQueue>,
    /// Round robin over `publish`; outlives a refresh.
    turn: Arc<AtomicUsize>,
    /// Not the topic's own: that of the topic which new topics are made from.
    pub(crate) is_template: bool,
    /// Since when refreshes find no such topic.
    pub(crate) gone_since: Mutex<Option<Instant>>,
}

impl Route {
    pub(crate) fn new(topic: &str, data: TopicRouteData, before: Option<&Route>) -> Self {
        let publish = publish_queues(topic, &data);
        let subscribe = subscribe_queues(topic, &data);
        let turn = before.map(|r| r.turn.clone()).unwrap_or_default();
        Self { data, publish, subscribe, turn, is_template: false, gone_since: Mutex::default() }
    }

    /// The route that an unknown topic is sent by: the template's, with at most [`DEFAULT_QUEUES`] queues a broker.
    pub(crate) fn from_template(topic: &str, mut data: TopicRouteData) -> Self {
        for queues in &mut data.queue_datas {
            let n = queues.read_queue_nums.min(DEFAULT_QUEUES);
            (queues.read_queue_nums, queues.write_queue_nums) = (n, n);
        }
        Self { is_template: true, ..Self::new(topic, data, None) }
    }

    /// As the name server sent it.
    pub fn data(&self) -> &TopicRouteData {
        &self.data
    }

    /// Queues that may be written, sorted.
    pub fn publish_queues(&self) -> &[MessageQueue] {
        &self.publish
    }

    /// Queues that may be read, sorted.
    pub fn subscribe_queues(&self) -> &[MessageQueue] {
        &self.subscribe
    }

    /// Where the master of a broker listens.
    pub fn master(&self, broker: &str) -> Option<&str> {
        self.broker(broker)?.broker_addrs.get(&MASTER).map(String::as_str)
    }

    /// Where a replica listens; without it the master, without that any.
    pub(crate) fn replica(&self, broker: &str, id: i64) -> Option<&str> {
        let addrs = &self.broker(broker)?.broker_addrs;
        addrs.get(&id).or_else(|| addrs.get(&MASTER)).or_else(|| addrs.values().next()).map(String::as_str)
    }

    fn broker(&self, name: &str) -> Option<&BrokerData> {
        self.data.broker_datas.iter().find(|b| b.broker_name == name)
    }

    /// The next queue to write, on a broker other than `avoid` if there is one.
    pub(crate) fn next_queue(&self, avoid: Option<&str>) -> Option<&MessageQueue> {
        let len = self.publish.len();
        let next = || self.publish.get(self.turn.fetch_add(1, Ordering::Relaxed) % len.max(1));
        (0..len).filter_map(|_| next()).find(|q| Some(q.broker_name.as_str()) != avoid).or_else(next)
    }
}

fn queues(topic: &str, broker: &str, n: i32) -> impl Iterator<Item = MessageQueue> {
    (0..n.clamp(0, QUEUES_MAX)).map(move |queue_id| MessageQueue {
        broker_name: broker.to_string(),
        queue_id,
        topic: topic.to_string(),
    })
}

fn publish_queues(topic: &str, data: &TopicRouteData) -> Vec<MessageQueue> {
    if let Some(order) = data.order_topic_conf.as_deref().filter(|o| !o.is_empty()) {
        let parts = order.split(';').filter_map(|part| part.split_once(':'));
        return parts.flat_map(|(broker, n)| queues(topic, broker, n.parse().unwrap_or(0))).collect();
    }
    let has_master =
        |name: &str| data.broker_datas.iter().any(|b| b.broker_name == name && b.broker_addrs.contains_key(&MASTER));
    let writable = data.queue_datas.iter().filter(|q| perm::is_writeable(q.perm) && has_master(&q.broker_name));
    let mut all: Vec<_> = writable.flat_map(|q| queues(topic, &q.broker_name, q.write_queue_nums)).collect();
    all.sort();
    all
}

fn subscribe_queues(topic: &str, data: &TopicRouteData) -> Vec<MessageQueue> {
    let readable = data.queue_datas.iter().filter(|q| perm::is_readable(q.perm));
    let mut all: Vec<_> = readable.flat_map(|q| queues(topic, &q.broker_name, q.read_queue_nums)).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cometmq_wire::body::QueueData;

    use super::*;

    fn data(brokers: &[(&str, i32, i32)]) -> TopicRouteData {
        let broker = |name: &str| BrokerData {
            broker_addrs: BTreeMap::from([(0, format!("{name}:1")), (1, format!("{name}:2"))]),
            broker_name: name.to_string(),
            ..BrokerData::default()
        };
        let queue = |(name, n, perm): &(&str, i32, i32)| QueueData {
            broker_name: name.to_string(),
            perm: *perm,
            read_queue_nums: *n,
            write_queue_nums: *n,
            ..QueueData::default()
        };
        TopicRouteData {
            broker_datas: brokers.iter().map(|b| broker(b.0)).collect(),
            queue_datas: brokers.iter().map(queue).collect(),
            ..TopicRouteData::default()
        }
    }

    fn names(queues: &[MessageQueue]) -> Vec<String> {
        queues.iter().map(|q| format!("{}{}", q.broker_name, q.queue_id)).collect()
    }

    #[test]
    fn queues_follow_permission_and_master() {
        let mut route = data(&[("b", 2, 6), ("a", 1, 6), ("r", 1, 4), ("w", 1, 2), ("slave", 1, 6)]);
        route.broker_datas[4].broker_addrs.remove(&0);
        let route = Route::new("t", route, None);
        assert_eq!(names(route.publish_queues()), ["a0", "b0", "b1", "w0"]);
        assert_eq!(names(route.subscribe_queues()), ["a0", "b0", "b1", "r0", "slave0"]);
        assert_eq!((route.master("a"), route.master("slave")), (Some("a:1"), None));
        assert_eq!((route.replica("a", 1), route.replica("a", 7)), (Some("a:2"), Some("a:1")));
        assert_eq!((route.replica("slave", 0), route.replica("x", 0)), (Some("slave:2"), None));
    }

    #[test]
    fn an_order_conf_names_the_queues() {
        let mut route = data(&[("a", 8, 6)]);
        route.order_topic_conf = Some("b:1;a:2".into());
        assert_eq!(names(Route::new("t", route, None).publish_queues()), ["b0", "a0", "a1"]);
    }

    #[test]
    fn the_template_gives_at_most_four_queues() {
        let route = Route::from_template("new", data(&[("a", 8, 7), ("b", 2, 7)]));
        assert_eq!(names(route.publish_queues()), ["a0", "a1", "a2", "a3", "b0", "b1"]);
        assert!(route.is_template && route.publish_queues().iter().all(|q| q.topic == "new"));
    }

    #[test]
    fn round_robin_goes_on_after_a_refresh_and_avoids_a_broker() {
        let route = Route::new("t", data(&[("a", 2, 6), ("b", 1, 6)]), None);
        let next = |r: &Route, avoid| r.next_queue(avoid).map(|q| format!("{}{}", q.broker_name, q.queue_id)).unwrap();
        assert_eq!([next(&route, None), next(&route, None)], ["a0", "a1"]);
        let route = Route::new("t", data(&[("a", 2, 6), ("b", 1, 6)]), Some(&route));
        assert_eq!([next(&route, None), next(&route, Some("a"))], ["b0", "b0"]);
        let single = Route::new("t", data(&[("a", 1, 6)]), None);
        assert_eq!(next(&single, Some("a")), "a0");
        assert!(Route::new("t", TopicRouteData::default(), None).next_queue(None).is_none());
    }
}
