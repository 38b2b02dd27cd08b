//! A consumer gives a message back: CONSUMER_SEND_MSG_BACK (36).
//!
//! It is stored again for `%RETRY%group`, delayed by its level (0: the third plus the times it came back already), or for
//! `%DLQ%group` once it came back too often. The original stays where it is.
//! Java: `AbstractSendMessageProcessor.consumerSendMsgBack`.

use std::rc::Rc;
use std::sync::Arc;

use cometmq_store::Batch;
use cometmq_wire::body::SubscriptionGroupConfig;
use cometmq_wire::flags::perm;
use cometmq_wire::headers::SendBack;
use cometmq_wire::record::{Draft, Record};
use cometmq_wire::{Frame, ResponseCode, message_id, names, properties};

use crate::broker::Broker;
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};

/// Queues of a dead-letter topic. Java: `DLQ_NUMS_PER_GROUP`.
pub(crate) const DLQ_QUEUES: i32 = 1;
/// The first delay level of a message that comes back without one.
const FIRST_LEVEL: i32 = 3;

struct Back {
    group: Arc<SubscriptionGroupConfig>,
    log_offset: u64,
    delay_level: i32,
    times_max: i32,
}

impl BrokerShard {
    pub(crate) fn send_back(
        self: &Rc<Self>,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let header = SendBack::decode(&frame.head.ext)?;
        let settings = self.broker.settings.load();
        let Some(group) = self.broker.groups.find(&header.group) else {
            return self.create_group_then_again(&header.group);
        };
        if !perm::is_writeable(settings.broker_permission) {
            let remark = format!("the broker[{}] sending message is forbidden", self.broker.address.ip());
            return Err(Reject::new(ResponseCode::NO_PERMISSION, remark));
        }
        if group.retry_queue_nums <= 0 {
            return Ok(asker.success(out));
        }
        let log_offset = u64::try_from(header.offset)
            .map_err(|_| Reject::invalid(format!("offset is {}, expected 0 or more", header.offset)))?;
        let times_max = header.max_reconsume_times.unwrap_or(group.retry_max_times);
        let back = Back { group, log_offset, delay_level: header.delay_level, times_max };
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            if broker.create_return_topics(&back.group) {
                broker.topics_changed().await?;
            }
            let stored = tokio::task::spawn_blocking(move || broker.store_back(&back)).await;
            stored.map_err(|e| Reject::new(ResponseCode::SYSTEM_ERROR, format!("a bug: {e}")))??;
            Ok(After::Success)
        })))
    }
}

impl Broker {
    /// The retry and the dead-letter topic of a group; `true` when one of them is new.
    fn create_return_topics(&self, group: &SubscriptionGroupConfig) -> bool {
        let topics = [
            (names::retry_topic(&group.group_name), group.retry_queue_nums),
            (names::dlq_topic(&group.group_name), DLQ_QUEUES),
        ];
        let missing: Vec<_> = topics.into_iter().filter(|(name, _)| self.topics.find(name).is_none()).collect();
        missing.iter().for_each(|(name, queues)| self.topics.create_retry(name, *queues));
        !missing.is_empty()
    }

    fn store_back(&self, back: &Back) -> Result<(), Reject> {
        let raw = self.store.record_at(back.log_offset)?;
        let lost =
            || Reject::new(ResponseCode::SYSTEM_ERROR, format!("look message by offset failed, {}", back.log_offset));
        let raw = raw.ok_or_else(lost)?;
        let record = Record::parse(&raw)?;
        let name = &back.group.group_name;
        let is_dead = record.reconsume_times() >= back.times_max || back.delay_level < 0;
        let (topic, queues) = if is_dead {
            (names::dlq_topic(name), DLQ_QUEUES)
        } else {
            (names::retry_topic(name), back.group.retry_queue_nums)
        };
        let found = self.topics.find(&topic).filter(|t| perm::is_writeable(t.config.perm));
        found.ok_or_else(|| {
            Reject::new(ResponseCode::NO_PERMISSION, format!("the topic[{topic}] sending message is forbidden"))
        })?;
        let queue_id = (record.log_offset() % i64::from(queues.max(1))) as i32;
        let level = match back.delay_level {
            _ if is_dead => 0,
            0 => FIRST_LEVEL + record.reconsume_times(),
            level => level,
        };
        let properties = properties_of_return(&record, level);
        let draft = Draft {
            topic: &topic,
            queue_id,
            flag: record.flag(),
            sys_flag: record.sys_flag(),
            born_ms: record.born_ms(),
            born_host: record.born_host(),
            store_host: self.address,
            reconsume_times: record.reconsume_times() + 1,
            prepared_offset: 0,
            body: record.body(),
            properties: &properties,
        };
        let mut batch = Batch::default();
        self.push(&draft, level, &mut batch)?;
        self.store.append(&mut batch)?;
        if is_dead {
            tracing::info!(
                group = name,
                from = record.topic(),
                times = record.reconsume_times(),
                "a message goes to the dead letters"
            );
        }
        Ok(())
    }
}

/// The properties of the copy: where it came from, which message it first was, its new level; nothing of an earlier delay.
fn properties_of_return(record: &Record<'_>, level: i32) -> String {
    let ours = [properties::DELAY, properties::WAIT, properties::REAL_TOPIC, properties::REAL_QID];
    let mut text = String::with_capacity(record.properties().len() + 128);
    for (name, value) in properties::iter(record.properties()).filter(|(name, _)| !ours.contains(name)) {
        properties::push(&mut text, name, value);
    }
    if record.property(properties::RETRY_TOPIC).is_none() {
        properties::push(&mut text, properties::RETRY_TOPIC, record.topic());
    }
    if record.property(properties::ORIGIN_MESSAGE_ID).is_none_or(str::is_empty) {
        let first = message_id::offset_id(record.store_host(), record.log_offset());
        properties::push(&mut text, properties::ORIGIN_MESSAGE_ID, &first);
    }
    properties::push(&mut text, properties::WAIT, "false");
    properties::push(&mut text, properties::DELAY, &level.to_string());
    text
}
