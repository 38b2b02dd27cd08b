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

use crate::error::Reject;
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
        let topic = match self.topic_for_send(&header)? {
            Ok(topic) => topic,
            Err(create) => return Ok(create),
        };
        let queue_id = pick_queue(&header, &topic, asker)?;
        let queue =
            topic.queue(queue_id, &self.broker.store).ok_or_else(|| illegal_queue(queue_id, &topic, asker))??;
        let sending = Sending { header: &header, queue: &queue, asker };
        let first = batch.len();
        let (transaction_id, wait) = if is_batch {
            self.add_batch(&sending, frame.body, batch)?
        } else {
            self.add_single(&sending, frame.body, batch)?
        };
        let asker = asker.clone();
        Ok(Step::Append(Pending { asker, queue_id, first, count: batch.len() - first, transaction_id, wait }))
    }

    /// The topic, or the step that creates it and comes back.
    fn topic_for_send(self: &Rc<Self>, header: &SendV2<'_>) -> Result<Result<Arc<Topic>, Step>, Reject> {
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
        if let Some(topic) = self.broker.topics.find(&header.topic) {
            return Ok(Ok(topic));
        }
        let auto = settings.auto_create_topic_enable;
        self.broker.topics.auto_create(&header.topic, &header.default_topic, header.default_topic_queue_nums, auto)?;
        let broker = self.broker.clone();
        Ok(Err(Step::Later(Box::pin(async move {
            broker.topics_changed().await?;
            Ok(After::Again)
        }))))
    }

    fn add_single(
        &self,
        sending: &Sending<'_>,
        body: &[u8],
        batch: &mut Batch,
    ) -> Result<(Option<String>, bool), Reject> {
        let given = sending.header.properties.as_deref().unwrap_or_default();
        let facts = check_properties(given, sending.header.sys_flag)?;
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
        batch.push(&self.draft(sending, sending.header.flag, body, &text), sending.queue)?;
        Ok((Some(unique), facts.wait))
    }

    /// Each message of a batch becomes a record of its own, with the batch's properties behind its own.
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
        let settings = self.broker.settings.load();
        if body.len() > settings.max_message_size {
            return illegal(format!("message body size over limit: {} > {}", body.len(), settings.max_message_size));
        }
        let given = header.properties.as_deref().unwrap_or_default();
        let facts = check_properties(given, header.sys_flag)?;
        let mut common = String::new();
        copy_properties(given, &mut common);
        properties::push(&mut common, properties::MSG_REGION, &settings.region_id);
        properties::push(&mut common, properties::TRACE_ON, settings.trace_on);
        properties::push(&mut common, properties::CLUSTER, &self.broker.cluster);
        let mut text = self.properties.borrow_mut();
        let mut count = 0;
        for item in record::batch_items(body) {
            let item = item?;
            check_properties(item.properties, header.sys_flag)?;
            if item.body.is_empty() {
                return illegal(format!("message {count} of the batch has an empty body"));
            }
            text.clear();
            copy_properties(item.properties, &mut text);
            text.push_str(&common);
            batch.push(&self.draft(sending, item.flag, item.body, &text), sending.queue)?;
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
            topic: &header.topic,
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
    queue: &'a QueueRef,
    asker: &'a Asker,
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

struct Facts<'a> {
    unique_key: Option<&'a str>,
    wait: bool,
}

/// Looks at the properties that change what a send is. What this version cannot do is refused, not ignored.
fn check_properties(text: &str, sys_flag: i32) -> Result<Facts<'_>, Reject> {
    if sys_flag & message::TRANSACTION_MASK != 0 {
        return Err(Reject::not_built("a transaction (sysFlag)"));
    }
    let mut facts = Facts { unique_key: None, wait: true };
    for (name, value) in properties::iter(text) {
        match name {
            properties::UNIQ_KEY if !value.is_empty() => facts.unique_key = Some(value),
            properties::WAIT => facts.wait = value != "false",
            properties::DELAY => match value.parse::<i32>() {
                Ok(level) if level <= 0 => {}
                Ok(_) => return Err(Reject::not_built("delayed delivery (property DELAY)")),
                Err(_) => {
                    let remark = format!("the property DELAY has the value '{value}', expected a number");
                    return Err(Reject::new(ResponseCode::MESSAGE_ILLEGAL, remark));
                }
            },
            properties::TIMER_DELAY_SEC | properties::TIMER_DELAY_MS | properties::TIMER_DELIVER_MS => {
                return Err(Reject::not_built("timed delivery (property TIMER_…)"));
            }
            properties::TRAN_MSG if value.eq_ignore_ascii_case("true") => {
                return Err(Reject::not_built("a transaction (property TRAN_MSG)"));
            }
            properties::INNER_MULTI_DISPATCH => return Err(Reject::not_built("a light queue (INNER_MULTI_DISPATCH)")),
            _ => {}
        }
    }
    Ok(facts)
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
