//! DELETE_TOPIC_IN_BROKER (215), DELETE_SUBSCRIPTIONGROUP (207): configuration, queues and offsets go together, and stay
//! gone. Java: `AdminBrokerProcessor.deleteTopic`, `deleteSubscriptionGroup`.

use std::rc::Rc;

use cometmq_wire::Frame;
use cometmq_wire::headers::{DeleteGroup, Topic};

use crate::broker::Broker;
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step, blocking};

impl BrokerShard {
    pub(crate) fn delete_topic(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = Topic::decode(&frame.head.ext)?;
        let topic = header.topic.trim().to_string();
        if topic.is_empty() {
            return Err(Reject::invalid("The specified topic is blank."));
        }
        if self.broker.topics.is_system(&topic) {
            return Err(Reject::invalid(format!("The topic[{topic}] is conflict with system topic.")));
        }
        tracing::info!(topic, peer = %asker.conn.peer(), "topic deleted");
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            let mut gone = broker.pop_retry_topics(&topic);
            gone.push(topic);
            gone.iter().for_each(|t| broker.topics.remove(t));
            broker.topics_changed().await?;
            blocking(move || broker.delete_queues(&gone)).await?;
            Ok(After::Success)
        })))
    }

    pub(crate) fn delete_group(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = DeleteGroup::decode(&frame.head.ext)?;
        let group = header.group_name.to_string();
        let with_offsets = header.clean_offset == Some(true);
        tracing::info!(group, with_offsets, peer = %asker.conn.peer(), "subscription group deleted");
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            broker.groups.remove(&group);
            broker.groups.save().await?;
            if with_offsets {
                blocking(move || broker.forget_offsets(|_, g| g == group)).await?;
            }
            Ok(After::Success)
        })))
    }
}

impl Broker {
    /// The topics in which POP keeps the retries of a topic's groups, both of their names.
    fn pop_retry_topics(&self, topic: &str) -> Vec<String> {
        let groups = self.offsets.groups_of(topic);
        let names = groups.iter().flat_map(|g| [format!("%RETRY%{g}_{topic}"), format!("%RETRY%{g}+{topic}")]);
        names.filter(|name| self.topics.find(name).is_some()).collect()
    }

    fn delete_queues(&self, topics: &[String]) -> Result<(), Reject> {
        topics.iter().try_for_each(|topic| self.store.delete_topic(topic))?;
        self.forget_offsets(|topic, _| topics.iter().any(|t| t == topic))
    }

    fn forget_offsets(&self, is_gone: impl Fn(&str, &str) -> bool) -> Result<(), Reject> {
        self.offsets.remove(is_gone, self.clock.now_ms()).map_err(|e| Reject::from(&e))
    }
}
