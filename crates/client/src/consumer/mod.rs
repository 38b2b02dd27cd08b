//! The consumer: a member of a group that pulls its share of the queues and hands out one message after the other.
//!
//! At least once: a message counts as consumed when the next one is asked for (or [`Consumer::commit`] is called); offsets
//! go to the brokers every 5 s, when a queue is given away, and at shutdown. What was handed out before a crash and not
//! yet committed comes again.
//!
//! Reading order: this file → `member` (rebalance, commits) → `pull_loop` (one task a queue) → `process_queue` (what is
//! cached and how far it is consumed). Java: `DefaultMQPushConsumerImpl`, `DefaultLitePullConsumerImpl`.

mod member;
mod pull_loop;
mod process_queue;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cometmq_wire::body::MessageQueue;
use cometmq_wire::names;
use tokio::sync::mpsc;

use crate::offsets::StartFrom;
use crate::options::check_duration;
use crate::{Client, Error, Received, SubExpression};

use member::Member;
use process_queue::ProcessQueue;

/// Batches that wait to be taken, over all queues; beyond that, pulling waits.
const BATCHES_MAX: usize = 256;

/// What one pull brought.
struct Batch {
    source: Arc<ProcessQueue>,
    messages: VecDeque<Received>,
    /// The offset behind everything that the pull looked at.
    next_offset: i64,
}

/// Options of a consumer, with Java's defaults.
#[derive(Clone)]
pub struct ConsumerBuilder {
    client: Client,
    group: String,
    topics: BTreeMap<String, SubExpression>,
    from: StartFrom,
    rebalance_interval: Duration,
    commit_interval: Duration,
    suspend: Duration,
    pull_batch: i32,
    queue_messages_max: usize,
    queue_bytes_max: usize,
}

impl ConsumerBuilder {
    /// Adds a topic; a second call for a topic replaces the first.
    pub fn subscribe(mut self, topic: &str, expression: SubExpression) -> Self {
        self.topics.insert(topic.to_string(), expression);
        self
    }

    /// Where the group begins in a queue that it has no offset of; default [`StartFrom::Last`].
    pub fn from(mut self, from: StartFrom) -> Self {
        self.from = from;
        self
    }

    /// How often the shares are looked at again without a reason; default 20 s.
    pub fn rebalance_interval(mut self, interval: Duration) -> Self {
        self.rebalance_interval = interval;
        self
    }

    /// How often offsets go to the brokers; default 5 s.
    pub fn commit_interval(mut self, interval: Duration) -> Self {
        self.commit_interval = interval;
        self
    }

    /// How long a broker holds a pull that finds nothing; default 15 s.
    pub fn suspend(mut self, limit: Duration) -> Self {
        self.suspend = limit;
        self
    }

    /// Messages asked for by one pull; default 32.
    pub fn pull_batch(mut self, messages: i32) -> Self {
        self.pull_batch = messages;
        self
    }

    /// A queue is not pulled from while so many messages or bytes of it are cached; default 1000 and 100 MiB.
    pub fn queue_limits(mut self, messages: usize, bytes: usize) -> Self {
        (self.queue_messages_max, self.queue_bytes_max) = (messages, bytes);
        self
    }

    fn check(&self) -> Result<(), Error> {
        names::check_group(&self.group)?;
        if self.group == names::DEFAULT_CONSUMER {
            let why = "reserved, choose another name";
            return Err(Error::Option { name: "group", value: self.group.clone(), why });
        }
        if self.topics.is_empty() {
            return Err(Error::Option {
                name: "subscription",
                value: String::new(),
                why: "subscribe to a topic first",
            });
        }
        for (topic, expression) in &self.topics {
            names::check_topic(topic)?;
            expression.check()?;
        }
        check_duration("rebalance_interval", self.rebalance_interval, Duration::from_millis(10))?;
        check_duration("commit_interval", self.commit_interval, Duration::from_millis(10))?;
        check_duration("suspend", self.suspend, Duration::from_millis(1))?;
        let ranges = [
            ("pull_batch", self.pull_batch as usize, 1024),
            ("queue_messages_max", self.queue_messages_max, 65_535),
            ("queue_bytes_max", self.queue_bytes_max, 1 << 30),
        ];
        match ranges.iter().find(|(_, value, max)| *value < 1 || value > max) {
            Some((name, value, _)) => Err(Error::Option { name, value: value.to_string(), why: "out of range" }),
            None => Ok(()),
        }
    }

    /// Checks the options, joins the group and begins to pull. A topic that does not exist yet is waited for; a name server
    /// that does not answer is an error. [`StartFrom::Last`] means: what is sent once this has returned.
    pub async fn start(self) -> Result<Consumer, Error> {
        self.check()?;
        if self.client.is_stopped() {
            return Err(Error::ShutDown);
        }
        let (tx, rx) = mpsc::channel(BATCHES_MAX);
        let member = Arc::new(Member::join(self)?);
        let consumer = Consumer { member: member.clone(), rx, batch: None, last: None };
        member.announce().await?;
        consumer.member.client().spawn(member.run(tx));
        consumer.member.has_begun().await;
        Ok(consumer)
    }
}

/// A running member of a consumer group. Dropping it leaves the group, too, but does not wait for the last commit.
pub struct Consumer {
    member: Arc<Member>,
    rx: mpsc::Receiver<Batch>,
    /// What is being handed out.
    batch: Option<Batch>,
    /// Where the message handed out last came from.
    last: Option<Arc<ProcessQueue>>,
}

impl Consumer {
    pub fn builder(client: &Client, group: &str) -> ConsumerBuilder {
        ConsumerBuilder {
            client: client.clone(),
            group: group.to_string(),
            topics: BTreeMap::new(),
            from: StartFrom::Last,
            rebalance_interval: Duration::from_secs(20),
            commit_interval: Duration::from_secs(5),
            suspend: Duration::from_secs(15),
            pull_batch: 32,
            queue_messages_max: 1000,
            queue_bytes_max: 100 * 1024 * 1024,
        }
    }

    /// The next message; `None` once the consumer or its client is shut down. Asking for it says that the one before is
    /// done with. May be cancelled without losing a message.
    pub async fn recv(&mut self) -> Option<Received> {
        if let Some(last) = self.last.take() {
            last.done();
        }
        loop {
            if let Some(message) = self.take() {
                return Some(message);
            }
            self.batch = Some(self.rx.recv().await?);
        }
    }

    /// The next message of the batch; `None` = it is used up, or its queue was given away.
    fn take(&mut self) -> Option<Received> {
        let Batch { source, messages, next_offset } = self.batch.as_mut()?;
        let message = messages.pop_front()?;
        let after = if messages.is_empty() { *next_offset } else { message.queue_offset + 1 };
        if !source.take(message.len, after) {
            self.batch = None;
            return None;
        }
        self.last = Some(source.clone());
        Some(message)
    }

    /// Counts what was handed out as consumed, and stores all offsets at the brokers now.
    pub async fn commit(&self) -> Result<(), Error> {
        if let Some(last) = &self.last {
            last.done();
        }
        self.member.commit_all().await
    }

    /// The queues that this member has now.
    pub fn assigned(&self) -> Vec<MessageQueue> {
        self.member.assigned()
    }

    /// Counts what was handed out as consumed, stores all offsets, and leaves the group; takes at most the
    /// `shutdown_timeout` of the client.
    pub async fn shutdown(mut self) {
        if let Some(last) = self.last.take() {
            last.done();
        }
        self.member.stop();
        self.member.ended().await;
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.member.stop();
    }
}
