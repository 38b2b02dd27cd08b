//! The task that pulls one queue: one pull in flight, long polling, a pause after errors. Ends when the queue is given away.
//! Java: `DefaultMQPushConsumerImpl.pullMessage`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cometmq_wire::ResponseCode;
use cometmq_wire::flags::pull::SUSPEND;
use cometmq_wire::names;
use tokio::sync::mpsc;

use super::Batch;
use super::member::Member;
use super::process_queue::ProcessQueue;
use crate::pull::{Pull, PullResult, PullStatus};
use crate::{Error, SubExpression};

/// After an error.
const ERROR_PAUSE: Duration = Duration::from_secs(3);
/// After FLOW_CONTROL.
const FLOW_CONTROL_PAUSE: Duration = Duration::from_millis(20);
/// After a broker that has nothing for us and does not hold the pull either.
const NOT_HELD_PAUSE: Duration = Duration::from_millis(20);

/// Pulls from `start` on until the queue is given away.
pub(super) async fn run(member: Arc<Member>, source: Arc<ProcessQueue>, start: i64, tx: mpsc::Sender<Batch>) {
    let stop = source.stop.clone();
    let _ = stop.run_until_cancelled(pull(&member, &source, start, tx)).await;
}

async fn pull(member: &Member, source: &Arc<ProcessQueue>, start: i64, tx: mpsc::Sender<Batch>) {
    let options = member.options();
    let all = SubExpression::All;
    let expression = options.topics.get(&source.queue.topic).unwrap_or(&all);
    let (mut offset, mut broker) = (start, 0);
    let mut told = false;
    loop {
        source.room(options.queue_messages_max, options.queue_bytes_max).await;
        let pull = Pull {
            group: &options.group,
            queue: &source.queue,
            offset,
            max: options.pull_batch,
            sys_flag: SUSPEND,
            suspend: options.suspend,
            expression,
            version: member.version(),
            broker,
        };
        let began = Instant::now();
        match pull.send(member.client()).await {
            Ok(found) if found.status == PullStatus::OffsetIllegal => {
                return start_over(member, source, offset, found.next_offset).await;
            }
            Ok(found) => {
                let not_held =
                    found.messages.is_empty() && found.next_offset == offset && began.elapsed() < NOT_HELD_PAUSE;
                (offset, broker, told) = (found.next_offset, found.suggested_broker, false);
                if !hand_over(source, found, &tx).await {
                    return;
                }
                if not_held {
                    tokio::time::sleep(NOT_HELD_PAUSE).await;
                }
            }
            Err(error) => {
                broker = 0;
                told = pause(member, source, error, told).await;
            }
        }
    }
}

/// Puts what was found into the channel. `false` = nobody takes it any more.
async fn hand_over(source: &Arc<ProcessQueue>, found: PullResult, tx: &mpsc::Sender<Batch>) -> bool {
    if found.messages.is_empty() {
        source.nothing_below(found.next_offset);
        return true;
    }
    source.cached(found.messages.len(), found.messages.iter().map(|m| m.len).sum());
    let messages = found.messages.into();
    tx.send(Batch { source: source.clone(), messages, next_offset: found.next_offset }).await.is_ok()
}

/// The queue does not have our offset: takes the nearest that it has, stores it, and lets a rebalance build the queue anew.
async fn start_over(member: &Member, source: &ProcessQueue, wrong: i64, right: i64) {
    let queue = &source.queue;
    tracing::warn!(
        group = member.options().group,
        topic = queue.topic,
        broker = queue.broker_name,
        queue = queue.queue_id,
        wrong,
        right,
        "the queue does not have this offset, going on at the nearest that it has"
    );
    source.correct(right);
    if let Err(error) = source.commit(member.client(), &member.options().group).await {
        tracing::warn!(%error, "cannot store a corrected offset");
        tokio::time::sleep(ERROR_PAUSE).await;
    }
    member.wake();
}

/// Waits before the next try. `told`: the broker has just heard of our subscription; returns whether it has now.
async fn pause(member: &Member, source: &ProcessQueue, error: Error, told: bool) -> bool {
    match error.code() {
        Some(ResponseCode::FLOW_CONTROL) => {
            tokio::time::sleep(FLOW_CONTROL_PAUSE).await;
            return told;
        }
        // The broker was restarted, or missed a heartbeat: tell it now, it would wait for up to 30 s otherwise.
        Some(ResponseCode::SUBSCRIPTION_NOT_EXIST | ResponseCode::SUBSCRIPTION_NOT_LATEST) if !told => {
            tracing::info!(%error, "telling the broker about the subscription");
            member.client().heartbeat().await;
            return true;
        }
        Some(_) => {}
        None => member.client().routes_are_stale(),
    }
    if names::is_retry_topic(&source.queue.topic) {
        tracing::debug!(%error, "a pull failed");
    } else {
        tracing::warn!(%error, "a pull failed, again in {ERROR_PAUSE:?}");
    }
    tokio::time::sleep(ERROR_PAUSE).await;
    false
}
