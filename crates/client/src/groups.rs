//! The groups that this client is a member of. They make up its heartbeats, and tell who is woken by a broker.
//! Java: `MQClientInstance.producerTable`, `consumerTable`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cometmq_wire::body::{ConsumerData, HeartbeatData, ProducerData};
use tokio::sync::Notify;

use crate::Error;

#[derive(Default)]
pub(crate) struct Groups {
    producers: Mutex<BTreeSet<String>>,
    consumers: Mutex<BTreeMap<String, Member>>,
}

struct Member {
    data: ConsumerData,
    /// Asks for a rebalance at once.
    wake: Arc<Notify>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Groups {
    pub(crate) fn add_producer(&self, group: &str) -> Result<(), Error> {
        if lock(&self.producers).insert(group.to_string()) {
            return Ok(());
        }
        Err(Error::GroupExists { kind: "producer", group: group.to_string() })
    }

    pub(crate) fn add_consumer(&self, data: ConsumerData, wake: Arc<Notify>) -> Result<(), Error> {
        let mut consumers = lock(&self.consumers);
        if consumers.contains_key(&data.group_name) {
            return Err(Error::GroupExists { kind: "consumer", group: data.group_name });
        }
        consumers.insert(data.group_name.clone(), Member { data, wake });
        Ok(())
    }

    /// Whether it was there.
    pub(crate) fn remove_producer(&self, group: &str) -> bool {
        lock(&self.producers).remove(group)
    }

    pub(crate) fn remove_consumer(&self, group: &str) {
        lock(&self.consumers).remove(group);
    }

    pub(crate) fn producers(&self) -> Vec<String> {
        lock(&self.producers).iter().cloned().collect()
    }

    pub(crate) fn wake(&self, group: &str) {
        if let Some(member) = lock(&self.consumers).get(group) {
            member.wake.notify_one();
        }
    }

    pub(crate) fn wake_all(&self) {
        lock(&self.consumers).values().for_each(|m| m.wake.notify_one());
    }

    /// `None` = there is nothing to tell.
    pub(crate) fn heartbeat(&self, client_id: &str) -> Option<HeartbeatData> {
        let producer = |group: &String| ProducerData { group_name: group.clone() };
        let producer_data_set: Vec<_> = lock(&self.producers).iter().map(producer).collect();
        let consumer_data_set: Vec<_> = lock(&self.consumers).values().map(|m| m.data.clone()).collect();
        if producer_data_set.is_empty() && consumer_data_set.is_empty() {
            return None;
        }
        Some(HeartbeatData {
            client_id: client_id.to_string(),
            consumer_data_set,
            producer_data_set,
            ..HeartbeatData::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_joined_once() {
        let groups = Groups::default();
        assert!(groups.heartbeat("c").is_none());
        groups.add_producer("p").unwrap();
        assert_eq!(
            groups.add_producer("p").unwrap_err().to_string(),
            "the producer group p has been created before in this client: use another group name, or another client"
        );
        let consumer = || ConsumerData { group_name: "c".into(), ..ConsumerData::default() };
        groups.add_consumer(consumer(), Arc::default()).unwrap();
        assert!(groups.add_consumer(consumer(), Arc::default()).is_err());
        let beat = groups.heartbeat("id").unwrap();
        assert_eq!((beat.producer_data_set.len(), beat.consumer_data_set.len()), (1, 1));
        groups.remove_consumer("c");
        assert!(groups.remove_producer("p") && !groups.remove_producer("p"));
        assert!(groups.heartbeat("id").is_none());
    }
}
