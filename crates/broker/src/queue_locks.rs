//! Locks on queues, by which one consumer of a group consumes a queue in order. In memory: after a restart, clients lock
//! again within their 20 s round. Java: `RebalanceLockManager`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cometmq_wire::body::MessageQueue;

/// A lock that was not renewed for this long is free. Java: `rocketmq.broker.rebalance.lockMaxLiveTime`.
const LOCK_MS: i64 = 60_000;

/// Queue → holder and when it last locked.
type GroupLocks = HashMap<MessageQueue, (String, i64)>;

#[derive(Default)]
pub(crate) struct QueueLocks {
    held: Mutex<HashMap<String, GroupLocks>>,
}

impl QueueLocks {
    /// Locks what is free or already `client`'s; returns what it holds then.
    pub(crate) fn lock(&self, group: &str, client: &str, queues: Vec<MessageQueue>, now_ms: i64) -> Vec<MessageQueue> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let group_locks = held.entry(group.to_string()).or_default();
        let mut locked = Vec::new();
        for queue in queues {
            let holder = group_locks.get(&queue);
            let is_free = holder.is_none_or(|(owner, at)| owner == client || now_ms - at > LOCK_MS);
            if is_free {
                if let Some((owner, _)) = holder.filter(|(owner, _)| owner != client) {
                    tracing::info!(group, from = owner, to = client, ?queue, "an expired queue lock changes hands");
                }
                group_locks.insert(queue.clone(), (client.to_string(), now_ms));
                locked.push(queue);
            }
        }
        locked
    }

    /// Frees what `client` holds of `queues`.
    pub(crate) fn unlock(&self, group: &str, client: &str, queues: &[MessageQueue]) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group_locks) = held.get_mut(group) {
            for queue in queues {
                if group_locks.get(queue).is_some_and(|(owner, _)| owner == client) {
                    group_locks.remove(queue);
                }
            }
            if group_locks.is_empty() {
                held.remove(group);
            }
        }
    }

    /// Whether any queue of the group is locked. Java: `isLockAllExpired`.
    pub(crate) fn is_locked(&self, group: &str, now_ms: i64) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(group).is_some_and(|locks| locks.values().any(|(_, at)| now_ms - at <= LOCK_MS))
    }

    /// Forgets expired locks, so that groups that are gone cost nothing.
    pub(crate) fn expire(&self, now_ms: i64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, locks| {
            locks.retain(|_, (_, at)| now_ms - *at <= LOCK_MS);
            !locks.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(id: i32) -> MessageQueue {
        MessageQueue { broker_name: "b".to_string(), queue_id: id, topic: "t".to_string() }
    }

    #[test]
    fn one_holder_until_unlock_or_expiry() {
        let locks = QueueLocks::default();
        assert_eq!(locks.lock("g", "a", vec![queue(0), queue(1)], 0).len(), 2);
        assert_eq!(locks.lock("g", "b", vec![queue(0), queue(2)], 10), [queue(2)]);
        assert_eq!(locks.lock("other", "b", vec![queue(0)], 10), [queue(0)]);
        locks.unlock("g", "b", &[queue(0)]);
        assert_eq!(locks.lock("g", "b", vec![queue(0)], 20), []);
        locks.unlock("g", "a", &[queue(0)]);
        assert_eq!(locks.lock("g", "b", vec![queue(0)], 30), [queue(0)]);
        assert_eq!(locks.lock("g", "b", vec![queue(1)], 60_000), []);
        assert_eq!(locks.lock("g", "b", vec![queue(1)], 60_001), [queue(1)]);
        locks.expire(200_000);
        assert!(locks.held.lock().unwrap().is_empty());
    }
}
