//! Pull: PULL_MESSAGE (11), LITE_PULL_MESSAGE (361).
//!
//! Reads one queue from an offset; if there is nothing and the client agreed to wait, the request is parked
//! (`parked.rs`). Never touches the disk on the shard: a cold read goes to a thread that may wait.
//! Java: `PullMessageProcessor`, `DefaultPullMessageResultHandler`.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cometmq_net::Held;
use cometmq_store::{Limits, QueueRef, Read, Status, Store, Wait};
use cometmq_wire::body::{MessageModel, SubscriptionGroupConfig};
use cometmq_wire::flags::{perm, pull};
use cometmq_wire::frame::Builder;
use cometmq_wire::headers::{Pull, PullAnswer};
use cometmq_wire::{Frame, ResponseCode};

use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};
use crate::subscription::{Filter, sql_matches};
use crate::topics::Topic;

/// Longest time that a pull may be parked, whatever it asks for.
const SUSPEND_MAX: Duration = Duration::from_secs(3600);
/// Longest time that a pull that may not be parked waits for memory.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// Messages that one pull may ask for.
const PULL_MAX: i32 = 65_536;

/// A pull that passed all checks: what a read, now or later, needs.
pub(crate) struct PullCall {
    pub(crate) asker: Asker,
    pub(crate) queue: QueueRef,
    /// Where to read; moves on while a parked poll's filter matches nothing.
    pub(crate) offset: i64,
    pub(crate) limits: Limits,
    pub(crate) filter: Filter,
    topic_sys_flag: i32,
    group: Arc<SubscriptionGroupConfig>,
}

impl BrokerShard {
    pub(crate) fn pull(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = Pull::decode(&frame.head.ext)?;
        let settings = self.broker.settings.load();
        let Some(group) = self.broker.groups.find(&header.consumer_group) else {
            return self.create_group_then_again(&header.consumer_group);
        };
        let topic = self.check_pull(&header, &group, settings.broker_permission)?;
        let queue = self.queue_to_pull(&header, &topic, asker)?;
        let filter = self.filter_of(&header, &group)?;
        let mut limits = settings.limits;
        limits.count = header.max_msg_nums.clamp(1, PULL_MAX) as usize;
        if let Some(bytes) = header.max_msg_bytes.filter(|b| *b > 0) {
            limits.hot_bytes = limits.hot_bytes.min(bytes as usize);
            limits.cold_bytes = limits.cold_bytes.min(bytes as usize);
        }
        if let Some(offset) = self.broker.offsets.take_reset(topic.name(), &group.group_name, header.queue_id) {
            return Ok(answer_reset(asker, &queue, offset));
        }
        if header.sys_flag & pull::COMMIT_OFFSET != 0 && header.commit_offset >= 0 {
            let (topic, group, id) = (topic.name(), &group.group_name, header.queue_id);
            let committed = self.broker.offsets.commit(&asker.conn.peer(), topic, group, id, header.commit_offset);
            committed.map_err(|e| Reject::from(&e))?;
        }
        let call = PullCall {
            asker: asker.clone(),
            queue,
            offset: header.queue_offset,
            limits,
            filter,
            topic_sys_flag: topic.config.topic_sys_flag,
            group,
        };
        let may_park = header.sys_flag & pull::SUSPEND != 0 && header.suspend_timeout_millis > 0 && !asker.oneway;
        let park_for = may_park.then(|| {
            let asked = Duration::from_millis(header.suspend_timeout_millis as u64);
            if settings.long_polling_enable { asked.min(SUSPEND_MAX) } else { settings.short_polling }
        });
        self.read_and_answer(call, park_for)
    }

    pub(crate) fn create_group_then_again(self: &Rc<Self>, group: &str) -> Result<Step, Reject> {
        if !self.broker.settings.load().auto_create_subscription_group {
            return Err(Reject::no_group(group));
        }
        self.broker.groups.auto_create(group)?;
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            broker.groups.save().await?;
            Ok(After::Again)
        })))
    }

    fn check_pull(
        &self,
        header: &Pull<'_>,
        group: &SubscriptionGroupConfig,
        permission: i32,
    ) -> Result<Arc<Topic>, Reject> {
        let denied = |remark: String| Err(Reject::new(ResponseCode::NO_PERMISSION, remark));
        if !perm::is_readable(permission) {
            return denied(format!("the broker[{}] pulling message is forbidden", self.broker.address.ip()));
        }
        if !group.consume_enable {
            return denied(format!("subscription group no permission, {}", header.consumer_group));
        }
        let topic = self.broker.topics.find(&header.topic).ok_or_else(|| Reject::no_topic(&header.topic))?;
        if !perm::is_readable(topic.config.perm) {
            return denied(format!("the topic[{}] pulling message is forbidden", header.topic));
        }
        topic.check_kind()?;
        Ok(topic)
    }

    fn queue_to_pull(&self, header: &Pull<'_>, topic: &Topic, asker: &Asker) -> Result<QueueRef, Reject> {
        let readable = topic.config.read_queue_nums;
        let queue = if header.queue_id < readable { topic.queue(header.queue_id, &self.broker.store) } else { None };
        queue.map(|q| q.map_err(Reject::from)).unwrap_or_else(|| {
            Err(Reject::invalid(format!(
                "queueId[{}] is illegal, topic:[{}] topicConfig.readQueueNums:[{readable}] consumer:[{}]",
                header.queue_id,
                header.topic,
                asker.conn.peer()
            )))
        })
    }

    /// The filter: from the request, or from the group's heartbeat.
    fn filter_of(&self, header: &Pull<'_>, group: &SubscriptionGroupConfig) -> Result<Filter, Reject> {
        if header.sys_flag & pull::SUBSCRIPTION != 0 {
            let kind = header.expression_type.as_deref().unwrap_or_default();
            let expression = header.subscription.as_deref().unwrap_or_default();
            return Filter::parse(kind, expression, self.broker.settings.load().enable_property_filter);
        }
        let missing = |what: &str| {
            let remark = format!(
                "the consumer's {what} not exist, See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
            );
            Reject::new(ResponseCode::SUBSCRIPTION_NOT_EXIST, remark)
        };
        let found = self.broker.clients.subscription(&header.consumer_group, &header.topic);
        let (model, subscription) = found.ok_or_else(|| missing("group info"))?;
        let denied = |why: String| {
            Reject::new(ResponseCode::NO_PERMISSION, format!("the consumer group[{}] {why}", header.consumer_group))
        };
        if !group.consume_broadcast_enable && model == MessageModel::Broadcasting {
            return Err(denied("can not consume by broadcast way".to_string()));
        }
        if self.broker.groups.is_read_forbidden(&group.group_name, &header.topic) {
            return Err(denied(format!("is forbidden for topic[{}]", header.topic)));
        }
        let subscription = subscription.ok_or_else(|| missing("subscription"))?;
        if subscription.data.sub_version < header.sub_version {
            return Err(Reject::new(ResponseCode::SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"));
        }
        subscription.filter.clone()
    }

    /// Reads and answers, parks, or goes on where reading may block.
    fn read_and_answer(self: &Rc<Self>, call: PullCall, park_for: Option<Duration>) -> Result<Step, Reject> {
        let is_delayed = call.asker.conn.memory().responses.is_full();
        let read = if is_delayed { None } else { Some(self.read(&call, Wait::No)?) };
        let Some(read) = read.filter(|read| read.status != Status::Cold) else {
            let shard = self.clone();
            return Ok(Step::Later(Box::pin(async move {
                shard.read_later_and_answer(call, park_for).await?;
                Ok(After::Answered)
            })));
        };
        self.answer_or_park(call, &read, park_for);
        Ok(Step::Done)
    }

    pub(crate) fn read(&self, call: &PullCall, wait: Wait) -> Result<Read, Reject> {
        Ok(read_filtered(&self.broker.store, &call.queue, call.offset, &call.limits, wait, &call.filter)?)
    }

    async fn read_later_and_answer(self: &Rc<Self>, call: PullCall, park_for: Option<Duration>) -> Result<(), Reject> {
        let patience = park_for.unwrap_or(DELAY_MAX);
        let read = self.read_later(&call, patience).await?;
        // What had to wait all its time for memory asks again.
        self.answer_or_park(call, &read, park_for.filter(|_| read.status != Status::NoMatch));
        Ok(())
    }

    /// Reads where it may wait for the disk, once there is memory for the answer. When there is none for `patience`, the
    /// client is to ask again: SYSTEM_BUSY would keep a Java push consumer away for 3 seconds.
    pub(crate) async fn read_later(&self, call: &PullCall, patience: Duration) -> Result<Read, Reject> {
        let responses = &call.asker.conn.memory().responses;
        if !responses.is_full() {
            return self.read_cold(call).await;
        }
        let room = async {
            let turn = self.delayed.lock().await;
            while responses.is_full() {
                responses.room().await;
            }
            turn
        };
        let Ok(_turn) = tokio::time::timeout(patience, room).await else {
            let (min, end) = (call.queue.min(), call.queue.end());
            return Ok(Read { status: Status::NoMatch, next: call.offset, min, end, records: Vec::new() });
        };
        let read = self.read_cold(call).await?;
        // Counted until its connection has tried to write it and counts what is left.
        let held = Held::new(responses, read.records.iter().map(|r| r.len()).sum());
        tokio::task::spawn_local(async move {
            tokio::task::yield_now().await;
            drop(held);
        });
        Ok(read)
    }

    async fn read_cold(&self, call: &PullCall) -> Result<Read, Reject> {
        let (store, queue, filter) = (self.broker.store.clone(), call.queue.clone(), call.filter.clone());
        let (offset, limits) = (call.offset, call.limits);
        let reading =
            tokio::task::spawn_blocking(move || read_filtered(&store, &queue, offset, &limits, Wait::Yes, &filter));
        let read = reading.await;
        Ok(read.map_err(|e| Reject::new(ResponseCode::SYSTEM_ERROR, format!("a bug: reading panicked: {e}")))??)
    }

    pub(crate) fn answer_or_park(self: &Rc<Self>, call: PullCall, read: &Read, park_for: Option<Duration>) {
        let nothing_new = matches!(read.status, Status::AtEnd) || (read.status == Status::Empty && call.offset == 0);
        match park_for {
            Some(park_for) if nothing_new => self.park(call, park_for),
            _ => self.answer_pull(&call, read),
        }
    }

    pub(crate) fn answer_pull(&self, call: &PullCall, read: &Read) {
        let (code, remark) = match read.status {
            Status::Found => (ResponseCode::SUCCESS, "FOUND"),
            Status::NoMatch => (ResponseCode::PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE"),
            Status::Empty if call.offset == 0 => (ResponseCode::PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE"),
            Status::Empty => (ResponseCode::PULL_OFFSET_MOVED, "NO_MESSAGE_IN_QUEUE"),
            Status::AtEnd => (ResponseCode::PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE"),
            Status::BeyondEnd => (ResponseCode::PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY"),
            Status::BeforeStart => (ResponseCode::PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL"),
            Status::Cold => (ResponseCode::SYSTEM_BUSY, "[COLD]the message is not in memory"),
        };
        if code == ResponseCode::PULL_OFFSET_MOVED {
            tracing::info!(
                peer = %call.asker.conn.peer(), topic = %call.queue.topic(), queue = call.queue.id(),
                asked = call.offset, next = read.next, min = read.min, max = read.end, "a pull's offset was corrected"
            );
        }
        if call.asker.oneway {
            return;
        }
        let header = PullAnswer::new(
            0,
            read.next,
            read.min,
            read.end,
            None,
            Some(call.topic_sys_flag),
            Some(call.group.group_sys_flag),
            None,
        );
        let mut out = call.asker.conn.out();
        let mut answer = Builder::response(&mut out, call.asker.kind, code, call.asker.opaque, Some(remark))
            .ext(|w| header.write(w));
        for record in &read.records {
            answer = answer.body(record);
        }
        answer.finish();
        let messages = read.records.len() as u64;
        if messages > 0 {
            self.broker.pulled.fetch_add(messages, Ordering::Relaxed);
            self.broker.consumed.count(call.queue.topic(), &call.group.group_name, messages);
        }
    }
}

/// The group was reset: its consumer goes on at `offset`. Java: `GetMessageStatus.OFFSET_RESET`.
fn answer_reset(asker: &Asker, queue: &QueueRef, offset: i64) -> Step {
    let remark = format!("The queue under pulling was previously reset to start from {offset}");
    let header = PullAnswer::new(0, offset, queue.min(), queue.end(), None, None, None, None);
    asker.answer(&mut asker.conn.out(), ResponseCode::PULL_OFFSET_MOVED, Some(&remark), |w| header.write(w), &[]);
    Step::Done
}

fn read_filtered(
    store: &Store,
    queue: &QueueRef,
    offset: i64,
    limits: &Limits,
    wait: Wait,
    filter: &Filter,
) -> Result<Read, cometmq_store::Error> {
    match filter {
        Filter::Sql(sql) => store.read_where(queue, offset, limits, wait, &|record| sql_matches(sql, record)),
        tags => store.read(queue, offset, limits, wait, &|code| tags.matches_code(code)),
    }
}
