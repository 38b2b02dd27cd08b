//! What tools list: GET_ALL_TOPIC_CONFIG (21), GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201), GET_TOPIC_STATS_INFO (202),
//! GET_PRODUCER_CONNECTION_LIST (204), GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305). Java: `AdminBrokerProcessor`.

use std::rc::Rc;

use cometmq_wire::body::{
    ClientConnection, MessageQueue, ProducerConnection, TopicConfigAndMappingTable, TopicList, TopicOffset,
    TopicStatsTable,
};
use cometmq_wire::headers::{ProducerGroup, Topic};
use cometmq_wire::{Frame, ResponseCode, json};

use crate::broker::Broker;
use crate::clients::Member;
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};

impl Member {
    pub(crate) fn connection(&self) -> ClientConnection {
        ClientConnection {
            client_addr: self.address.to_string(),
            client_id: self.client_id.clone(),
            language: Some(self.language.name().to_string()),
            version: self.version,
        }
    }
}

impl BrokerShard {
    /// All at once: the paging of 5.5.0 is asked for by slaves only.
    pub(crate) fn all_topics(&self, asker: &Asker, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let table = self.broker.topics.snapshot();
        let total = table.topic_config_table.len() as i64;
        let body = TopicConfigAndMappingTable {
            data_version: table.data_version,
            topic_config_table: table.topic_config_table,
            ..TopicConfigAndMappingTable::default()
        };
        asker.answer(out, ResponseCode::SUCCESS, None, |w| w.int("totalTopicNum", total), &json::to_vec(&body));
        Ok(Step::Done)
    }

    pub(crate) fn all_groups(&self, asker: &Asker, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let table = self.broker.groups.snapshot();
        let total = table.subscription_group_table.len() as i64;
        asker.answer(out, ResponseCode::SUCCESS, None, |w| w.int("totalGroupNum", total), &json::to_vec(&table));
        Ok(Step::Done)
    }

    pub(crate) fn topic_stats(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = Topic::decode(&frame.head.ext)?;
        let (broker, asker, topic) = (self.broker.clone(), asker.clone(), header.topic.to_string());
        Ok(Step::Later(Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || broker.topic_stats(&topic)).await;
            let stats = done.map_err(|e| Reject::new(ResponseCode::SYSTEM_ERROR, format!("a bug: {e}")))??;
            asker.body(&mut asker.conn.out(), &json::to_vec(&stats));
            Ok(After::Answered)
        })))
    }

    pub(crate) fn producer_connections(
        &self,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let header = ProducerGroup::decode(&frame.head.ext)?;
        let group = header.producer_group.as_ref();
        let members =
            self.broker.clients.producers(group).filter(|m| !m.is_empty()).ok_or_else(|| {
                Reject::new(ResponseCode::SYSTEM_ERROR, format!("the producer group[{group}] not exist"))
            })?;
        let connection_set = members.iter().map(Member::connection).collect();
        Ok(asker.body(out, &json::to_vec(&ProducerConnection { connection_set })))
    }

    pub(crate) fn system_topics(&self, asker: &Asker, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let table = self.broker.topics.snapshot().topic_config_table;
        let topic_list = table.into_keys().filter(|t| self.broker.topics.is_system(t)).collect();
        Ok(asker.body(out, &json::to_vec(&TopicList { topic_list, ..TopicList::default() })))
    }
}

impl Broker {
    /// Reads store times, so it may wait for the disk.
    fn topic_stats(&self, name: &str) -> Result<TopicStatsTable, Reject> {
        let no_topic = || Reject::new(ResponseCode::TOPIC_NOT_EXIST, format!("topic[{name}] not exist"));
        let topic = self.topics.find(name).ok_or_else(no_topic)?;
        let mut stats = TopicStatsTable::default();
        for queue_id in 0..topic.queue_count() {
            let Some(queue) = topic.queue(queue_id, &self.store).transpose()? else { continue };
            let (min_offset, max_offset) = (queue.min(), queue.end());
            let last = if max_offset > min_offset { self.store.time_of(&queue, max_offset - 1)? } else { None };
            let row = TopicOffset { min_offset, max_offset, last_update_timestamp: last.unwrap_or(0) };
            let queue = MessageQueue { broker_name: self.name.clone(), queue_id, topic: name.to_string() };
            stats.offset_table.insert(queue, row);
        }
        Ok(stats)
    }
}
