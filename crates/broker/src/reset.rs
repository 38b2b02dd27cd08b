//! INVOKE_BROKER_TO_RESET_OFFSET (222): a group goes on elsewhere, whether its consumers run or not.
//!
//! The new offsets are kept here. A running consumer learns of them by its next pull (PULL_OFFSET_MOVED); until then its
//! commits are passed over, or it would undo the reset. With `useServerSideResetOffset=false` the consumers are told
//! (RESET_CONSUMER_CLIENT_OFFSET, 220), as brokers before 5.0 did.
//! Java: `AdminBrokerProcessor.resetOffsetInner`, `Broker2Client.resetOffset`.

use std::collections::BTreeMap;
use std::rc::Rc;

use cometmq_store::Boundary;
use cometmq_wire::body::{MessageQueue, ResetOffsetBody};
use cometmq_wire::frame::{Builder, FLAG_ONEWAY};
use cometmq_wire::header::{Language, SerializeType};
use cometmq_wire::headers::{ResetClientOffset, ResetOffset};
use cometmq_wire::{Frame, RequestCode, ResponseCode, json, version};

use crate::broker::Broker;
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};

struct Reset {
    topic: String,
    group: String,
    /// `None`: all queues.
    queue_id: Option<i32>,
    offset: Option<i64>,
    /// −1: the end.
    timestamp: i64,
    is_force: bool,
}

impl BrokerShard {
    pub(crate) fn reset_offset(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = ResetOffset::decode(&frame.head.ext)?;
        let reset = Reset {
            topic: header.topic.to_string(),
            group: header.group.to_string(),
            queue_id: header.queue_id.filter(|q| *q >= 0),
            offset: header.offset.filter(|o| *o >= 0),
            timestamp: header.timestamp,
            is_force: header.is_force,
        };
        let (broker, asker) = (self.broker.clone(), asker.clone());
        Ok(Step::Later(Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || broker.reset(&reset)).await;
            let body = done.map_err(|e| Reject::new(ResponseCode::SYSTEM_ERROR, format!("a bug: {e}")))??;
            asker.body(&mut asker.conn.out(), &json::to_vec(&body));
            Ok(After::Answered)
        })))
    }
}

impl Broker {
    fn reset(&self, reset: &Reset) -> Result<ResetOffsetBody, Reject> {
        let (topic, group) = (&reset.topic, &reset.group);
        let Some(found) = self.topics.find(topic) else {
            return Err(Reject::new(ResponseCode::TOPIC_NOT_EXIST, format!("Topic {topic} does not exist")));
        };
        if self.groups.find(group).is_none() {
            return Err(Reject::new(
                ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
                format!("Group {group} does not exist"),
            ));
        }
        let on_server = self.config.bool("useServerSideResetOffset");
        let queues = match reset.queue_id {
            Some(id) => id..id + 1,
            None => 0..found.config.read_queue_nums,
        };
        let mut offsets = BTreeMap::new();
        for id in queues {
            let queue = found
                .queue(id, &self.store)
                .ok_or_else(|| Reject::invalid(format!("queueId[{id}] is illegal, topic:[{topic}]")))??;
            let target = match reset.offset {
                Some(offset) if (queue.min()..=queue.end()).contains(&offset) => offset,
                Some(offset) => {
                    let remark =
                        format!("Target offset {offset} not in consume queue range [{}-{}]", queue.min(), queue.end());
                    return Err(Reject::new(ResponseCode::SYSTEM_ERROR, remark));
                }
                None if reset.timestamp < 0 => queue.end(),
                None => self.store.offset_by_time(&queue, reset.timestamp, Boundary::Lower)?,
            };
            let now = self.offsets.find(topic, group, id).unwrap_or(0);
            let keeps = !on_server && !reset.is_force && target >= now;
            offsets.insert(id, if keeps { now } else { target });
        }
        if offsets.is_empty() {
            return Err(Reject::new(ResponseCode::SYSTEM_ERROR, "No queues to reset."));
        }
        tracing::info!(topic, group, ?offsets, on_server, "offsets reset");
        let broker_name = &self.name;
        let queue = |id| MessageQueue { broker_name: broker_name.clone(), queue_id: id, topic: topic.clone() };
        let body = ResetOffsetBody { offset_table: offsets.iter().map(|(id, o)| (queue(*id), *o)).collect() };
        if on_server {
            self.offsets.reset(topic, group, &offsets).map_err(|e| Reject::from(&e))?;
        } else {
            self.tell_reset(reset, &body)?;
        }
        Ok(body)
    }

    fn tell_reset(&self, reset: &Reset, body: &ResetOffsetBody) -> Result<(), Reject> {
        let members = self.clients.with_consumer_group(&reset.group, |g| g.members.keys().copied().collect::<Vec<_>>());
        let members = members.filter(|m| !m.is_empty()).ok_or_else(|| {
            let remark = format!(
                "Consumer not online, so can not reset offset, Group: {} Topic: {} Timestamp: {}",
                reset.group, reset.topic, reset.timestamp
            );
            Reject::new(ResponseCode::CONSUMER_NOT_ONLINE, remark)
        })?;
        let mut frame = Vec::new();
        let code = RequestCode::RESET_CONSUMER_CLIENT_OFFSET;
        let header = ResetClientOffset::new(reset.topic.as_str().into(), reset.group.as_str().into(), reset.timestamp);
        Builder::request(&mut frame, SerializeType::Json, code, 0, FLAG_ONEWAY, Language::JAVA, version::V5_5_0)
            .ext(|w| header.write(w))
            .body(&json::to_fastjson(body))
            .finish();
        members.into_iter().for_each(|conn| self.write_to(conn, frame.clone()));
        Ok(())
    }
}
