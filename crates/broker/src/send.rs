//! Send: SEND_MESSAGE (10), SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320).
//!
//! Builds the records for the shard's next append; answers once they are as durable as the broker promises.
//! The broker adds MSG_REGION, TRACE_ON, CLUSTER and a missing UNIQ_KEY to the properties; the body is never touched.
//! Java: `SendMessageProcessor`.

use std::rc::Rc;
use std::sync::Arc;

use cometmq_store::{Batch, FlushMode, QueueRef};
use cometmq_wire::flags::{message, perm};
use cometmq_wire::headers::{SendAnswer, SendV1, SendV2};
use cometmq_wire::record::{self, Draft};
use cometmq_wire::{Frame, RequestCode, ResponseCode, message_id, names, properties};

use crate::broker::Broker;
use crate::error::Reject;
use crate::send_back::DLQ_QUEUES;
use crate::shard::{After, Asker, BrokerShard, Step};
use crate::topics::Topic;

/// Messages in one batch request.
const BATCH_MAX: usize = 65_536;

/// A send whose records are in the turn's batch.
pub(crate) struct Pending {
    pub(crate) asker: Asker,
    queue_id: i32,
    /// Its records in the batch: index of the first, and how many.
    first: usize,
    count: usize,
    transaction_id: Option<String>,
    /// The sender wants to know that it is flushed.
    wait: bool,
}

/// A send that is written, as far as its answer needs it.
pub(crate) struct Written {
    pub(crate) asker: Asker,
    queue_id: i32,
    queue_offset: i64,
    msg_id: String,
    transaction_id: Option<String>,
}

impl BrokerShard {
    pub(crate) fn send(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>, batch: &mut Batch) -> Result<Step, Reject> {
        let header = match RequestCode(frame.head.code) {
            RequestCode::SEND_MESSAGE => SendV2::from(SendV1::decode(&frame.head.ext)?),
            _ => SendV2::decode(&frame.head.ext)?,
        };
        let is_batch = frame.head.code == RequestCode::SEND_BATCH_MESSAGE.0 || header.batch == Some(true);
        let (topic, is_dead) = match self.topic_for_send(&header)? {
            Ok(topic) => topic,
            Err(create) => return Ok(create),
        };
        topic.check_kind()?;
        let queue_id = if is_dead { 0 } else { pick_queue(&header, &topic, asker)? };
        let queue =
            topic.queue(queue_id, &self.broker.store).ok_or_else(|| illegal_queue(queue_id, &topic, asker))??;
        let sending = Sending { header: &header, topic: topic.name(), queue: &queue, asker, is_dead };
        let first = batch.len();
        let (transaction_id, wait) = if is_batch {
            self.add_batch(&sending, frame.body, batch)?
        } else {
            self.add_single(&sending, frame.body, batch)?
        };
        let asker = asker.clone();
        Ok(Step::Append(Pending { asker, queue_id, first, count: batch.len() - first, transaction_id, wait }))
    }

    /// The topic (and whether it is the dead letters instead of a retry topic), or the step that creates it and comes back.
    #[allow(clippy::type_complexity)]
    fn topic_for_send(self: &Rc<Self>, header: &SendV2<'_>) -> Result<Result<(Arc<Topic>, bool), Step>, Reject> {
        names::check_topic(&header.topic)?;
        if names::is_send_forbidden(&header.topic) {
            let remark = format!("Sending message to topic[{}] is forbidden.", header.topic);
            return Err(Reject::new(ResponseCode::NO_PERMISSION, remark));
        }
        let settings = self.broker.settings.load();
        if !perm::is_writeable(settings.broker_permission) {
            let remark = format!("the broker[{}] sending message is forbidden", self.broker.address.ip());
            return Err(Reject::new(ResponseCode::NO_PERMISSION, remark));
        }
        let dead_letters = match header.topic.strip_prefix(names::RETRY_PREFIX) {
            Some(group) if self.broker.groups.find(group).is_none() => {
                return self.create_group_then_again(group).map(Err);
            }
            Some(group) => self.dead_letters(group, header),
            None => None,
        };
        let name = dead_letters.as_deref().unwrap_or(&header.topic);
        match self.broker.topics.find(name) {
            Some(topic) if topic.is_saved() => return Ok(Ok((topic, dead_letters.is_some()))),
            // Somebody else's, on its way to the disk: wait for it as well.
            Some(_) => {}
            None if dead_letters.is_some() => self.broker.topics.create_retry(name, DLQ_QUEUES),
            None => {
                let auto = settings.auto_create_topic_enable;
                self.broker.topics.auto_create(name, &header.default_topic, header.default_topic_queue_nums, auto)?;
            }
        }
        let broker = self.broker.clone();
        Ok(Err(Step::Later(Box::pin(async move {
            broker.topics_changed().await?;
            Ok(After::Again)
        }))))
    }

    /// The dead-letter topic, if a message that is sent to a retry topic belongs there: it came back too often, or the group
    /// consumes in order and has done its retries itself. Java: `handleRetryAndDLQ`.
    fn dead_letters(&self, group: &str, header: &SendV2<'_>) -> Option<String> {
        let config = self.broker.groups.find(group)?;
        let times_max = header.max_reconsume_times.unwrap_or(config.retry_max_times);
        let is_ordered = self.broker.queue_locks.is_locked(group, self.broker.clock.now_ms());
        let is_dead = header.reconsume_times.unwrap_or(0) > times_max || is_ordered;
        is_dead.then(|| names::dlq_topic(group))
    }

    fn add_single(
        &self,
        sending: &Sending<'_>,
        body: &[u8],
        batch: &mut Batch,
    ) -> Result<(Option<String>, bool), Reject> {
        let given = sending.header.properties.as_deref().unwrap_or_default();
        let facts = Facts::of(given, sending.header.sys_flag)?;
        // A delay level wins over a time.
        if facts.is_timed && facts.delay_level <= 0 {
            return Err(Reject::not_built("timed delivery (property TIMER_…)"));
        }
        self.check_body(body)?;
        let settings = self.broker.settings.load();
        let mut text = self.properties.borrow_mut();
        text.clear();
        copy_properties(given, &mut text);
        let unique = match facts.unique_key {
            Some(key) => key.to_string(),
            None => {
                let key = self.broker.unique_ids.next(self.broker.clock.now_ms());
                properties::push(&mut text, properties::UNIQ_KEY, &key);
                key
            }
        };
        properties::push(&mut text, properties::MSG_REGION, &settings.region_id);
        properties::push(&mut text, properties::TRACE_ON, settings.trace_on);
        properties::push(&mut text, properties::CLUSTER, &self.broker.cluster);
        let level = if sending.is_dead { 0 } else { facts.delay_level };
        let draft = self.draft(sending, sending.header.flag, body, &text);
        if level > 0 {
            self.broker.push(&draft, level, batch)?;
        } else {
            batch.push(&draft, sending.queue)?;
        }
        Ok((Some(unique), facts.wait))
    }

    /// Each message of a batch becomes a record of its own, with just the properties that it has in the batch.
    fn add_batch(
        &self,
        sending: &Sending<'_>,
        body: &[u8],
        batch: &mut Batch,
    ) -> Result<(Option<String>, bool), Reject> {
        let header = sending.header;
        let illegal = |what: String| Err(Reject::new(ResponseCode::MESSAGE_ILLEGAL, what));
        if header.topic.len() > 127 {
            return illegal(format!("message topic length too long {}", header.topic.len()));
        }
        if names::is_retry_topic(&header.topic) {
            return illegal(format!("batch request does not support retry group {}", header.topic));
        }
        self.check_body(body)?;
        let facts = Facts::of(header.properties.as_deref().unwrap_or_default(), header.sys_flag)?;
        if facts.delay_level > 0 || facts.is_timed {
            return illegal("a batch cannot be delayed".to_string());
        }
        let mut count = 0;
        for item in record::batch_items(body) {
            let item = item?;
            let of_item = Facts::of(item.properties, header.sys_flag)?;
            if of_item.delay_level > 0 || of_item.is_timed {
                return illegal(format!("message {count} of the batch is delayed"));
            }
            if item.body.is_empty() {
                return illegal(format!("message {count} of the batch has an empty body"));
            }
            batch.push(&self.draft(sending, item.flag, item.body, item.properties), sending.queue)?;
            count += 1;
            if count > BATCH_MAX {
                return illegal(format!("a batch of more than {BATCH_MAX} messages"));
            }
        }
        if count == 0 {
            return illegal("a batch without messages".to_string());
        }
        Ok((facts.unique_key.map(str::to_string), facts.wait))
    }

    fn check_body(&self, body: &[u8]) -> Result<(), Reject> {
        let limit = self.broker.settings.load().max_message_size;
        if body.is_empty() || body.len() > limit {
            let remark = format!(
                "the message is illegal, maybe msg body or properties length not matched. msg body length limit {limit}B, msg \
                 properties length limit 32KB. (the body has {} bytes)",
                body.len()
            );
            return Err(Reject::new(ResponseCode::MESSAGE_ILLEGAL, remark));
        }
        Ok(())
    }

    fn draft<'a>(&self, sending: &'a Sending<'_>, flag: i32, body: &'a [u8], properties: &'a str) -> Draft<'a> {
        let header = sending.header;
        Draft {
            topic: sending.topic,
            queue_id: sending.queue.id(),
            flag,
            sys_flag: header.sys_flag,
            born_ms: header.born_timestamp,
            born_host: sending.asker.conn.peer(),
            store_host: self.broker.address,
            reconsume_times: header.reconsume_times.unwrap_or(0),
            prepared_offset: 0,
            body,
            properties,
        }
    }

    /// Past the append the message exists and will be delivered: a slow disk changes the response code, never the fields.
    pub(crate) fn finish_send(&self, send: Pending, batch: &Batch, appended: &Result<(), cometmq_store::Error>) {
        let placed: Option<Vec<_>> = (send.first..send.first + send.count).map(|i| batch.placed(i)).collect();
        let Some(placed) = placed.filter(|p| !p.is_empty()) else {
            let reject = match appended {
                Err(error) => Reject::from(error),
                Ok(()) => Reject::new(ResponseCode::SYSTEM_ERROR, "the message was not appended"),
            };
            send.asker.refuse(&mut send.asker.conn.out(), &reject);
            return;
        };
        let mut msg_id = String::new();
        for place in &placed {
            if !msg_id.is_empty() {
                msg_id.push(',');
            }
            msg_id.push_str(&message_id::offset_id(self.broker.address, place.log_offset as i64));
        }
        let written = Written {
            asker: send.asker,
            queue_id: send.queue_id,
            queue_offset: placed[0].queue_offset,
            msg_id,
            transaction_id: send.transaction_id,
        };
        let log_end = placed[placed.len() - 1].log_end;
        let store = &self.broker.store;
        if store.flush_mode() == FlushMode::Sync && send.wait && store.durable() < log_end {
            self.durability.wait(log_end, written, self.broker.settings.load().sync_flush_timeout);
        } else {
            self.answer_send(&written, ResponseCode::SUCCESS, None);
        }
    }

    pub(crate) fn answer_send(&self, sent: &Written, code: ResponseCode, remark: Option<&str>) {
        let settings = self.broker.settings.load();
        let header = SendAnswer::new(
            sent.msg_id.as_str().into(),
            sent.queue_id,
            sent.queue_offset,
            sent.transaction_id.as_deref().map(Into::into),
            Some(settings.region_id.as_str().into()),
            Some(settings.trace_on.into()),
        );
        sent.asker.answer(&mut sent.asker.conn.out(), code, remark, |w| header.write(w), &[]);
    }
}

struct Sending<'a> {
    header: &'a SendV2<'a>,
    topic: &'a str,
    queue: &'a QueueRef,
    asker: &'a Asker,
    /// A message to a retry topic that came back too often: it goes to the dead letters, at once.
    is_dead: bool,
}

impl Broker {
    /// Adds a record to a batch: to its own queue, or with a delay level to the queue of that level.
    pub(crate) fn push(&self, draft: &Draft<'_>, level: i32, batch: &mut Batch) -> Result<(), Reject> {
        let level = self.delays.clamp(level);
        if level <= 0 {
            let queue = match self.topics.find(draft.topic).and_then(|t| t.queue(draft.queue_id, &self.store)) {
                Some(queue) => queue?,
                None => self.store.queue(draft.topic, draft.queue_id)?,
            };
            batch.push(draft, &queue)?;
            return Ok(());
        }
        let timed = [properties::TIMER_DELAY_SEC, properties::TIMER_DELAY_MS, properties::TIMER_DELIVER_MS];
        let kept =
            properties::iter(draft.properties).filter(|(name, _)| !timed.contains(name) && *name != properties::DELAY);
        let mut text = String::with_capacity(draft.properties.len() + 64);
        kept.for_each(|(name, value)| properties::push(&mut text, name, value));
        properties::push(&mut text, properties::DELAY, &level.to_string());
        properties::push(&mut text, properties::REAL_TOPIC, draft.topic);
        properties::push(&mut text, properties::REAL_QID, &draft.queue_id.to_string());
        let queue = self.store.queue(names::SCHEDULE_TOPIC, level - 1)?;
        let draft = Draft { topic: names::SCHEDULE_TOPIC, properties: &text, ..*draft };
        batch.push_due(&draft, &queue, self.delays.delay(level))?;
        Ok(())
    }
}

/// A negative queue id leaves the choice to us.
fn pick_queue(header: &SendV2<'_>, topic: &Topic, asker: &Asker) -> Result<i32, Reject> {
    let writable = topic.config.write_queue_nums;
    if header.queue_id >= 0 {
        return if header.queue_id < topic.queue_count() {
            Ok(header.queue_id)
        } else {
            Err(illegal_queue(header.queue_id, topic, asker))
        };
    }
    if writable <= 0 {
        return Err(Reject::new(
            ResponseCode::NO_PERMISSION,
            format!("the topic[{}] has no write queue", topic.name()),
        ));
    }
    Ok((asker.opaque.unsigned_abs().wrapping_add(header.born_timestamp as u32) % writable as u32) as i32)
}

fn illegal_queue(queue_id: i32, topic: &Topic, asker: &Asker) -> Reject {
    let config = &topic.config;
    Reject::invalid(format!(
        "request queueId[{queue_id}] is illegal, TopicConfig [topicName={}, readQueueNums={}, writeQueueNums={}, perm={}] Producer: {}",
        config.topic_name,
        config.read_queue_nums,
        config.write_queue_nums,
        perm::name(config.perm),
        asker.conn.peer()
    ))
}

/// The properties that change what a send is.
struct Facts<'a> {
    unique_key: Option<&'a str>,
    wait: bool,
    /// 0 = at once.
    delay_level: i32,
    is_timed: bool,
}

impl<'a> Facts<'a> {
    /// What this version cannot do is refused, not ignored.
    fn of(text: &'a str, sys_flag: i32) -> Result<Self, Reject> {
        if sys_flag & message::TRANSACTION_MASK != 0 {
            return Err(Reject::not_built("a transaction (sysFlag)"));
        }
        let mut facts = Self { unique_key: None, wait: true, delay_level: 0, is_timed: false };
        for (name, value) in properties::iter(text) {
            match name {
                properties::UNIQ_KEY if !value.is_empty() => facts.unique_key = Some(value),
                properties::WAIT => facts.wait = value != "false",
                properties::DELAY => {
                    facts.delay_level = value.parse().map_err(|_| {
                        let remark = format!("the property DELAY has the value '{value}', expected a number");
                        Reject::new(ResponseCode::MESSAGE_ILLEGAL, remark)
                    })?;
                }
                properties::TIMER_DELAY_SEC | properties::TIMER_DELAY_MS | properties::TIMER_DELIVER_MS => {
                    facts.is_timed = true;
                }
                properties::TRAN_MSG if value.eq_ignore_ascii_case("true") => {
                    return Err(Reject::not_built("a transaction (property TRAN_MSG)"));
                }
                properties::INNER_MULTI_DISPATCH => {
                    return Err(Reject::not_built("a light queue (INNER_MULTI_DISPATCH)"));
                }
                _ => {}
            }
        }
        Ok(facts)
    }
}

/// What the broker itself sets is taken from the broker, not from the client.
fn copy_properties(given: &str, out: &mut String) {
    let ours = [properties::MSG_REGION, properties::TRACE_ON, properties::CLUSTER];
    if properties::iter(given).any(|(name, _)| ours.contains(&name)) {
        for (name, value) in properties::iter(given).filter(|(name, _)| !ours.contains(name)) {
            properties::push(out, name, value);
        }
        return;
    }
    out.push_str(given);
    if !given.is_empty() && !given.ends_with(properties::VALUE_END) {
        out.push(properties::VALUE_END);
    }
}
