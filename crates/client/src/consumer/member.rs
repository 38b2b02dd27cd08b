//! A member of a group: takes its share of each topic's queues, gives up what is not in it, commits offsets.
//!
//! One task does all of this, so the table of queues has one writer. Order when a queue is given away: no message of it
//! is handed out any more → its offset is stored → it leaves the table. Java: `RebalanceImpl`, `RebalancePushImpl`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cometmq_wire::body::{
    ConsumeFromWhere, ConsumeType, ConsumerData, GetConsumerListByGroupResponseBody, MessageModel, MessageQueue,
};
use cometmq_wire::{RequestCode, headers, json, names};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::process_queue::ProcessQueue;
use super::{Batch, ConsumerBuilder, pull_loop};
use crate::allocate::averagely;
use crate::call::{Call, Target};
use crate::offsets::StartFrom;
use crate::route::Route;
use crate::{Client, Error, SubExpression};

/// The next look while something is missing.
const UNBALANCED_INTERVAL: Duration = Duration::from_secs(1);
/// Rebalances are at least this far apart, however often somebody asks.
const REBALANCE_GAP: Duration = Duration::from_millis(50);

type Table = BTreeMap<MessageQueue, Arc<ProcessQueue>>;

pub(super) struct Member {
    options: ConsumerBuilder,
    /// Of the subscription: when it was made, epoch milliseconds.
    version: i64,
    table: Mutex<Table>,
    /// The queues that there were when the member started: what others hold was sent later.
    at_start: OnceLock<BTreeSet<MessageQueue>>,
    wake: Arc<Notify>,
    stop: CancellationToken,
    begun: CancellationToken,
    ended: CancellationToken,
}

impl Member {
    /// Joins the group within the client; brokers hear of it by [`Member::announce`].
    pub(super) fn join(mut options: ConsumerBuilder) -> Result<Self, Error> {
        options.topics.insert(names::retry_topic(&options.group), SubExpression::All);
        let version = options.client.now_ms();
        let data = ConsumerData {
            consume_from_where: match options.from {
                StartFrom::First => ConsumeFromWhere::ConsumeFromFirstOffset,
                StartFrom::Last => ConsumeFromWhere::ConsumeFromLastOffset,
                StartFrom::Timestamp(_) => ConsumeFromWhere::ConsumeFromTimestamp,
            },
            consume_type: ConsumeType::ConsumePassively,
            group_name: options.group.clone(),
            message_model: MessageModel::Clustering,
            subscription_data_set: options.topics.iter().map(|(topic, e)| e.data(topic, version)).collect(),
            unit_mode: false,
        };
        let wake = Arc::new(Notify::new());
        options.client.groups().add_consumer(data, wake.clone())?;
        let stop = options.client.stop_token();
        let (table, at_start) = (Mutex::default(), OnceLock::new());
        let (begun, ended) = (CancellationToken::new(), CancellationToken::new());
        Ok(Self { options, version, table, at_start, wake, stop, begun, ended })
    }

    /// Finds the brokers of the topics and tells them about us.
    pub(super) async fn announce(&self) -> Result<(), Error> {
        let mut queues = BTreeSet::new();
        for topic in self.options.topics.keys() {
            match self.client().route(topic).await {
                Ok(route) => queues.extend(route.subscribe_queues().iter().cloned()),
                Err(Error::NoRoute { .. }) if names::is_retry_topic(topic) => {}
                Err(error @ Error::NoRoute { .. }) => tracing::warn!(%error, "waiting for the topic"),
                Err(error) => {
                    self.client().groups().remove_consumer(&self.options.group);
                    return Err(error);
                }
            }
        }
        let _ = self.at_start.set(queues);
        self.client().heartbeat().await;
        Ok(())
    }

    /// Waits for the end of the first rebalance: it finds the start in every queue, so that what the caller sends then is
    /// consumed. A broker that does not answer is not waited for.
    pub(super) async fn has_begun(&self) {
        let limit = self.client().options().request_timeout;
        if tokio::time::timeout(limit, self.begun.cancelled()).await.is_err() {
            tracing::warn!(group = self.options.group, "the brokers did not say within {limit:?} where to start");
        }
    }

    /// Where a group without an offset begins in a queue. One that was not there when we started has what was sent since:
    /// its end would pass over that, its beginning would repeat what a broker that was away still has.
    fn start_from(&self, queue: &MessageQueue) -> StartFrom {
        match self.options.from {
            StartFrom::Last if self.at_start.get().is_some_and(|known| !known.contains(queue)) => {
                StartFrom::Timestamp(self.version)
            }
            from => from,
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.options.client
    }

    pub(super) fn options(&self) -> &ConsumerBuilder {
        &self.options
    }

    pub(super) fn version(&self) -> i64 {
        self.version
    }

    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the end after [`Member::stop`], not for ever.
    pub(super) async fn ended(&self) {
        let limit = self.client().options().shutdown_timeout;
        if tokio::time::timeout(limit, self.ended.cancelled()).await.is_err() {
            tracing::warn!(group = self.options.group, "the consumer did not end within {limit:?}");
        }
    }

    pub(super) fn assigned(&self) -> Vec<MessageQueue> {
        self.table().keys().cloned().collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rebalances and commits until stopped, then leaves in order.
    pub(super) async fn run(self: Arc<Self>, tx: mpsc::Sender<Batch>) {
        let work = async { tokio::join!(self.rebalance_loop(&tx), self.commit_loop()) };
        let _ = self.stop.run_until_cancelled(work).await;
        self.client().groups().remove_consumer(&self.options.group);
        self.table().values().for_each(|q| q.give_away());
        if let Err(error) = self.commit_all().await {
            tracing::warn!(%error, "cannot store an offset at shutdown");
        }
        self.table().clear();
        self.client().leave(&self.options.group, false).await;
        self.ended.cancel();
    }

    async fn rebalance_loop(self: &Arc<Self>, tx: &mpsc::Sender<Batch>) {
        loop {
            let began = Instant::now();
            let is_balanced = self.rebalance(tx).await;
            self.begun.cancel();
            let interval = if is_balanced {
                self.options.rebalance_interval
            } else {
                UNBALANCED_INTERVAL.min(self.options.rebalance_interval)
            };
            let _ = tokio::time::timeout(interval, self.wake.notified()).await;
            tokio::time::sleep_until(began + REBALANCE_GAP).await;
        }
    }

    async fn commit_loop(&self) {
        let mut timer = tokio::time::interval(self.options.commit_interval);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            if let Err(error) = self.commit_all().await {
                tracing::warn!(%error, "cannot store an offset, again in {:?}", self.options.commit_interval);
            }
        }
    }

    /// Stores the offsets of all queues that moved. Returns one of the failures; the other queues are stored.
    pub(super) async fn commit_all(&self) -> Result<(), Error> {
        let queues: Vec<_> = self.table().values().cloned().collect();
        let mut commits = JoinSet::new();
        for queue in queues {
            let (client, group) = (self.client().clone(), self.options.group.clone());
            commits.spawn(async move { queue.commit(&client, &group).await });
        }
        let mut result = Ok(());
        while let Some(joined) = commits.join_next().await {
            if let Ok(Err(error)) = joined {
                result = Err(error);
            }
        }
        result
    }

    /// Brings every topic in line. `false` = something is missing, look again soon.
    async fn rebalance(self: &Arc<Self>, tx: &mpsc::Sender<Batch>) -> bool {
        let mut balanced = true;
        for topic in self.options.topics.keys() {
            match self.rebalance_topic(topic, tx).await {
                Ok(ok) => balanced &= ok,
                Err(Error::NoRoute { .. }) => balanced &= names::is_retry_topic(topic),
                Err(error) => {
                    tracing::warn!(group = self.options.group, topic, %error, "cannot rebalance");
                    balanced = false;
                }
            }
        }
        balanced
    }

    async fn rebalance_topic(self: &Arc<Self>, topic: &str, tx: &mpsc::Sender<Batch>) -> Result<bool, Error> {
        let route = self.client().route(topic).await?;
        let queues = route.subscribe_queues();
        let members = self.members(topic, &route).await?;
        // Without an answer that we are part of, everything stays as it is.
        let Some(share) = averagely(queues, &members, self.client().id()) else { return Ok(false) };
        if queues.is_empty() {
            return Ok(true);
        }
        self.give_up_all_but(topic, &share.iter().collect()).await;
        let mut balanced = true;
        for queue in share {
            if self.table().contains_key(queue) {
                continue;
            }
            let from = if names::is_retry_topic(topic) { self.options.from } else { self.start_from(queue) };
            match self.client().start_offset(&self.options.group, queue, from).await {
                Ok((offset, is_stored)) => self.take_over(queue, offset, is_stored, tx),
                Err(error) => {
                    tracing::warn!(group = self.options.group, %error, "cannot find out where to start, again soon");
                    balanced = false;
                }
            }
        }
        Ok(balanced)
    }

    /// The sorted client ids of the group, as a broker of the topic knows them (38). A broker that does not know us is told.
    async fn members(&self, topic: &str, route: &Route) -> Result<Vec<String>, Error> {
        match self.ask_members(topic, route).await {
            Ok(members) if members.iter().any(|m| m == self.client().id()) => return Ok(members),
            Ok(_) | Err(Error::Answer { .. }) => {}
            Err(error) => return Err(error),
        }
        self.client().heartbeat().await;
        self.ask_members(topic, route).await
    }

    async fn ask_members(&self, topic: &str, route: &Route) -> Result<Vec<String>, Error> {
        let group = self.options.group.as_str();
        let header = headers::ConsumerGroup::new(group.into());
        let none = || Error::NoBroker { broker: "any".to_string(), topic: topic.to_string() };
        let mut result = Err(none());
        for broker in &route.data().broker_datas {
            let Some(addr) = route.replica(&broker.broker_name, 0) else { continue };
            let call = Call { addr, code: RequestCode::GET_CONSUMER_LIST_BY_GROUP, target: Target::Group(group) };
            match call.ok(self.client(), |w| header.write(w), &[], self.client().options().request_timeout).await {
                Ok(answer) => {
                    let body: GetConsumerListByGroupResponseBody = call.decoded(json::from_slice(answer.body()))?;
                    let mut members = body.consumer_id_list;
                    members.sort();
                    return Ok(members);
                }
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Gives away the topic's queues that are not in `keep`, and those that ended by themselves.
    async fn give_up_all_but(&self, topic: &str, keep: &BTreeSet<&MessageQueue>) {
        let is_ours = |q: &ProcessQueue| keep.contains(&q.queue) && !q.is_dropped();
        let queues: Vec<_> = self.table().values().filter(|q| q.queue.topic == topic && !is_ours(q)).cloned().collect();
        for queue in queues {
            queue.give_away();
            if let Err(error) = queue.commit(self.client(), &self.options.group).await {
                tracing::warn!(%error, "cannot store the offset of a queue that is given away");
            }
            self.table().remove(&queue.queue);
            let MessageQueue { broker_name, queue_id, .. } = &queue.queue;
            tracing::info!(
                group = self.options.group,
                topic,
                broker = broker_name,
                queue = queue_id,
                "gave up a queue"
            );
        }
    }

    fn take_over(self: &Arc<Self>, queue: &MessageQueue, offset: i64, is_stored: bool, tx: &mpsc::Sender<Batch>) {
        let stored = is_stored.then_some(offset);
        let source = Arc::new(ProcessQueue::new(queue.clone(), stored, self.stop.child_token()));
        self.table().insert(queue.clone(), source.clone());
        let MessageQueue { broker_name, queue_id, topic } = queue;
        tracing::info!(
            group = self.options.group,
            topic,
            broker = broker_name,
            queue = queue_id,
            offset,
            "took a queue"
        );
        tokio::spawn(pull_loop::run(self.clone(), source, offset, tx.clone()));
    }
}
