//! One pull: the request, its answer, and [`Puller`] for callers that keep their own offsets.
//! Java: `PullAPIWrapper`, `DefaultMQPullConsumer.pullBlockIfNotFound`.

use std::time::Duration;

use cometmq_wire::body::MessageQueue;
use cometmq_wire::flags::pull::{SUBSCRIPTION, SUSPEND};
use cometmq_wire::{RequestCode, ResponseCode, headers, names};

use crate::call::{Call, Target};
use crate::received::{self, Received};
use crate::subscription::{SubExpression, wants};
use crate::{Client, Error};

/// How much longer than the broker we wait. Java: 30 s for 15 s.
const GRACE: Duration = Duration::from_secs(15);

/// How a pull ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullStatus {
    Found,
    /// The queue has nothing at this offset yet.
    NoNewMessages,
    /// What the broker looked at does not match the expression; more may follow at `next_offset`.
    NoMatch,
    /// The offset is outside of the queue; `next_offset` is the nearest inside.
    OffsetIllegal,
}

/// The answer of a pull.
#[derive(Debug, Clone)]
pub struct PullResult {
    pub status: PullStatus,
    /// Where to pull next.
    pub next_offset: i64,
    /// First offset of the queue.
    pub min_offset: i64,
    /// The offset behind the last message of the queue.
    pub max_offset: i64,
    /// What passed the expression; may be empty even when something was found.
    pub messages: Vec<Received>,
    /// The replica to read from next; 0 = the master.
    pub(crate) suggested_broker: i64,
}

/// Pulls on behalf of a group, without joining it.
#[derive(Clone)]
pub struct Puller {
    client: Client,
    group: String,
}

impl Puller {
    pub fn new(client: &Client, group: &str) -> Result<Self, Error> {
        names::check_group(group)?;
        Ok(Self { client: client.clone(), group: group.to_string() })
    }

    /// Pulls up to `max` messages from `offset` on. With `suspend`, the broker holds the request for so long when there is
    /// nothing yet. A negative offset is an error.
    pub async fn pull(
        &self,
        queue: &MessageQueue,
        offset: i64,
        max: i32,
        suspend: Option<Duration>,
        expression: &SubExpression,
    ) -> Result<PullResult, Error> {
        expression.check()?;
        if offset < 0 {
            return Err(Error::Option { name: "offset", value: offset.to_string(), why: "expected 0 or more" });
        }
        let sys_flag = SUBSCRIPTION | if suspend.is_some() { SUSPEND } else { 0 };
        let suspend = suspend.unwrap_or_default();
        let pull =
            Pull { group: &self.group, queue, offset, max, sys_flag, suspend, expression, version: 0, broker: 0 };
        pull.send(&self.client).await
    }
}

/// A pull request.
pub(crate) struct Pull<'a> {
    pub group: &'a str,
    pub queue: &'a MessageQueue,
    pub offset: i64,
    pub max: i32,
    pub sys_flag: i32,
    pub suspend: Duration,
    pub expression: &'a SubExpression,
    /// Of the subscription in our heartbeats.
    pub version: i64,
    /// The replica to ask.
    pub broker: i64,
}

impl Pull<'_> {
    pub(crate) async fn send(&self, client: &Client) -> Result<PullResult, Error> {
        let route = client.route(&self.queue.topic).await?;
        let broker = &self.queue.broker_name;
        let none = || Error::NoBroker { broker: broker.clone(), topic: self.queue.topic.clone() };
        let addr = route.replica(broker, self.broker).ok_or_else(none)?;
        let carried = self.sys_flag & SUBSCRIPTION != 0;
        let header = headers::Pull::new(
            self.group.into(),
            self.queue.topic.as_str().into(),
            self.queue.queue_id,
            self.offset,
            self.max,
            self.sys_flag,
            // Offsets are committed by requests of their own: one carried by a parked pull would be old when it is taken.
            0,
            i64::try_from(self.suspend.as_millis()).unwrap_or(i64::MAX),
            self.version,
            carried.then(|| self.expression.text().into()),
            Some("TAG".into()),
            None,
            None,
        );
        let call = Call { addr, code: RequestCode::PULL_MESSAGE, target: Target::Queue(self.queue) };
        let answer = call.send(client, |w| header.write(w), &[], self.suspend + GRACE).await?;
        let status = match answer.code() {
            ResponseCode::SUCCESS => PullStatus::Found,
            ResponseCode::PULL_NOT_FOUND => PullStatus::NoNewMessages,
            ResponseCode::PULL_RETRY_IMMEDIATELY => PullStatus::NoMatch,
            ResponseCode::PULL_OFFSET_MOVED => PullStatus::OffsetIllegal,
            _ => return Err(call.refused(&answer)),
        };
        let header = call.decoded(headers::PullAnswer::decode(&answer.ext()))?;
        let mut messages = Vec::new();
        if status == PullStatus::Found {
            let delta = header.offset_delta.unwrap_or(0);
            messages = call.decoded(received::decode(answer.body(), self.queue, delta))?;
            let tags = self.expression.tags();
            messages.retain(|m| wants(&tags, m.tags()));
        }
        Ok(PullResult {
            status,
            next_offset: header.next_begin_offset.max(0),
            min_offset: header.min_offset,
            max_offset: header.max_offset,
            messages,
            suggested_broker: header.suggest_which_broker_id,
        })
    }
}
