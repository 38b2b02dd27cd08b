//! What consumer groups ask: QUERY_CONSUMER_OFFSET (14), UPDATE_CONSUMER_OFFSET (15), GET_CONSUMER_LIST_BY_GROUP (38),
//! GET_CONSUMER_CONNECTION_LIST (203), GET_CONSUME_STATS (208), LOCK_BATCH_MQ (41), UNLOCK_BATCH_MQ (42). Java: `ConsumerManageProcessor`, `AdminBrokerProcessor`.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Instant;

use cometmq_wire::body::{
    ConsumeStats, ConsumerConnection, GetConsumerListByGroupResponseBody, LockBatchRequestBody, LockBatchResponseBody,
    MessageQueue, OffsetWrapper,
};
use cometmq_wire::headers::{
    ConsumeStats as ConsumeStatsRequest, ConsumerGroup, OffsetAnswer, QueryConsumerOffset, UpdateConsumerOffset,
};
use cometmq_wire::{Frame, ResponseCode, json};

use crate::broker::Broker;
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};

impl BrokerShard {
    pub(crate) fn query_consumer_offset(
        &self,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let header = QueryConsumerOffset::decode(&frame.head.ext)?;
        let committed = self.broker.offsets.find(&header.topic, &header.consumer_group, header.queue_id);
        let offset = match committed {
            Some(offset) => offset,
            None => self.offset_of_new_group(&header)?,
        };
        asker.answer(out, ResponseCode::SUCCESS, None, |w| OffsetAnswer::new(offset).write(w), &[]);
        Ok(Step::Done)
    }

    /// A queue that still has all its messages, and has any, starts at 0 for those that do not say otherwise: old clients
    /// count on it.
    fn offset_of_new_group(&self, header: &QueryConsumerOffset<'_>) -> Result<i64, Reject> {
        let not_found = |remark: &'static str| Err(Reject::new(ResponseCode::QUERY_NOT_FOUND, remark));
        if header.set_zero_if_not_found == Some(false) {
            return not_found("Not found, do not set to zero, maybe this group boot first");
        }
        let queue = self.find_queue(&header.topic, header.queue_id)?;
        match queue {
            Some(queue) if queue.min() <= 0 && queue.end() > 0 && self.is_in_memory(&queue) => Ok(0),
            _ => not_found("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"),
        }
    }

    /// Whether the first message of a queue lies in the part of the log that counts as in memory.
    /// Java: `DefaultMessageStore.checkInMemByConsumeOffset`.
    fn is_in_memory(&self, queue: &cometmq_store::QueueRef) -> bool {
        let store = &self.broker.store;
        let window = self.broker.settings.load().limits.hot_window;
        store.log_offset_of(queue, 0).is_some_and(|at| at + window >= store.written())
    }

    pub(crate) fn update_consumer_offset(
        &self,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let header = UpdateConsumerOffset::decode(&frame.head.ext)?;
        let (group, topic) = (&header.consumer_group, &header.topic);
        if self.broker.groups.find(group).is_none() {
            return Err(Reject::new(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, format!("Group {group} not exist!")));
        }
        if self.broker.topics.find(topic).is_none() {
            return Err(Reject::new(ResponseCode::TOPIC_NOT_EXIST, format!("Topic {topic} not exist!")));
        }
        if header.commit_offset < 0 || header.queue_id < 0 {
            let (offset, queue) = (header.commit_offset, header.queue_id);
            return Err(Reject::invalid(format!("commitOffset {offset} of queueId {queue}: neither may be negative")));
        }
        if self.broker.offsets.has_reset(topic, group, header.queue_id) {
            let remark = Some("Offset has been previously reset");
            asker.answer(out, ResponseCode::SUCCESS, remark, |_| {}, &[]);
            return Ok(Step::Done);
        }
        let committed =
            self.broker.offsets.commit(&asker.conn.peer(), topic, group, header.queue_id, header.commit_offset);
        committed.map_err(|e| Reject::from(&e))?;
        Ok(asker.success(out))
    }

    pub(crate) fn consumer_list(&self, asker: &Asker, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let header = ConsumerGroup::decode(&frame.head.ext)?;
        let ids = self.broker.clients.consumer_ids(&header.consumer_group).filter(|ids| !ids.is_empty());
        let consumer_id_list = ids.ok_or_else(|| {
            let remark = format!("no consumer for this group, {}", header.consumer_group);
            Reject::new(ResponseCode::SYSTEM_ERROR, remark)
        })?;
        Ok(asker.body(out, &json::to_vec(&GetConsumerListByGroupResponseBody { consumer_id_list })))
    }

    /// GET_CONSUMER_CONNECTION_LIST (203).
    pub(crate) fn consumer_connections(
        &self,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let header = ConsumerGroup::decode(&frame.head.ext)?;
        let group = header.consumer_group.as_ref();
        let found = self.broker.clients.with_consumer_group(group, |g| ConsumerConnection {
            connection_set: g.members.values().map(crate::clients::Member::connection).collect(),
            consume_from_where: g.consume_from_where,
            consume_type: g.consume_type,
            message_model: g.message_model,
            subscription_table: g.subscriptions.iter().map(|(t, s)| (t.clone(), s.data.clone())).collect(),
        });
        let body = found.filter(|b| !b.connection_set.is_empty()).ok_or_else(|| {
            Reject::new(ResponseCode::CONSUMER_NOT_ONLINE, format!("the consumer group[{group}] not online"))
        })?;
        Ok(asker.body(out, &json::to_vec(&body)))
    }

    /// GET_CONSUME_STATS (208): how far a group is in the queues of its topics, and how many messages a second it takes.
    pub(crate) fn consume_stats(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = ConsumeStatsRequest::decode(&frame.head.ext)?;
        let group = header.consumer_group.to_string();
        let named = header.topic_list.iter().flat_map(|l| l.split(';')).chain(header.topic.as_deref());
        let mut topics: BTreeSet<String> = named.filter(|t| !t.is_empty()).map(str::to_string).collect();
        if topics.is_empty() {
            topics = self.broker.offsets.topics_of(&group);
        }
        let (broker, asker) = (self.broker.clone(), asker.clone());
        Ok(Step::Later(Box::pin(async move {
            let collected = tokio::task::spawn_blocking(move || broker.consume_stats(&group, &topics)).await;
            let stats = collected.map_err(|e| Reject::new(ResponseCode::SYSTEM_ERROR, e.to_string()))??;
            asker.body(&mut asker.conn.out(), &json::to_vec(&stats));
            Ok(After::Answered)
        })))
    }

    pub(crate) fn lock_queues(&self, asker: &Asker, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let body: LockBatchRequestBody = json::from_slice(frame.body)?;
        let now = self.broker.clock.now_ms();
        let lock_ok_mq_set = self.broker.queue_locks.lock(&body.consumer_group, &body.client_id, body.mq_set, now);
        Ok(asker.body(out, &json::to_vec(&LockBatchResponseBody { lock_ok_mq_set })))
    }

    pub(crate) fn unlock_queues(&self, asker: &Asker, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let body: LockBatchRequestBody = json::from_slice(frame.body)?;
        self.broker.queue_locks.unlock(&body.consumer_group, &body.client_id, &body.mq_set);
        Ok(asker.success(out))
    }
}

impl Broker {
    /// Reads store times, so it may wait for the disk.
    fn consume_stats(&self, group: &str, topics: &BTreeSet<String>) -> Result<ConsumeStats, Reject> {
        let mut stats = ConsumeStats::default();
        for topic in topics.iter().filter_map(|name| self.topics.find(name)) {
            for queue_id in 0..topic.config.read_queue_nums {
                let Some(queue) = topic.queue(queue_id, &self.store).transpose()? else { continue };
                let consumer_offset = self.offsets.find(topic.name(), group, queue_id).unwrap_or(0);
                let last = (consumer_offset > queue.min()).then(|| self.store.time_of(&queue, consumer_offset - 1));
                let row = OffsetWrapper {
                    broker_offset: queue.end(),
                    consumer_offset,
                    last_timestamp: last.transpose()?.flatten().unwrap_or(0),
                    pull_offset: consumer_offset,
                };
                let (topic, broker_name) = (topic.name().to_string(), self.name.clone());
                stats.offset_table.insert(MessageQueue { broker_name, queue_id, topic }, row);
            }
            stats.consume_tps += self.consumed.rate(topic.name(), group, Instant::now());
        }
        Ok(stats)
    }
}
