//! What an admin changes in the routes; it lasts until the broker registers with another data version.

use cometmq_wire::flags::perm;

use super::Tables;
use super::register::find;

impl Tables {
    pub(super) fn change_write_perm(&mut self, broker_name: &str, writable: bool) -> usize {
        let mut count = 0;
        for queues in self.topics.values_mut() {
            if let Ok(at) = find(queues, broker_name) {
                // Giving it back sets both bits and clears the rest, as in Java.
                let old = queues[at].perm;
                queues[at].perm = if writable { perm::READ | perm::WRITE } else { old & !perm::WRITE };
                count += 1;
            }
        }
        count
    }

    pub(super) fn delete_topic(&mut self, topic: &str, cluster: Option<&str>) {
        let Some(queues) = self.topics.get_mut(topic) else { return };
        match cluster {
            None => queues.clear(),
            Some(cluster) => {
                let Some(brokers) = self.clusters.get(cluster) else { return };
                queues.retain(|queue| !brokers.contains(&queue.broker_name));
            }
        }
        if queues.is_empty() {
            self.topics.remove(topic);
            self.mappings.remove(topic);
        }
        tracing::info!(topic, cluster, "topic deleted from the routes");
    }
}
