//! Offsets at the broker: where queues begin and end, how far a group is, and where a queue is started from.
//! Java: `RemoteBrokerOffsetStore`, `RebalancePushImpl.computePullFromWhere`.

use cometmq_wire::body::MessageQueue;
use cometmq_wire::header::ExtWriter;
use cometmq_wire::headers::{OffsetAnswer, QueryConsumerOffset, Queue, SearchOffset, UpdateConsumerOffset};
use cometmq_wire::{RequestCode, ResponseCode, names};

use crate::call::{Call, Target};
use crate::{Client, Error};

/// Where a group without an offset begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFrom {
    /// The first message that the queue still has.
    First,
    /// What is sent from now on.
    Last,
    /// The first message stored at or after this time, epoch milliseconds.
    Timestamp(i64),
}

impl Client {
    /// Asks the master of the queue's broker for an offset; `None` = QUERY_NOT_FOUND, or a negative offset.
    async fn ask_offset(
        &self,
        code: RequestCode,
        queue: &MessageQueue,
        ext: impl FnOnce(&mut ExtWriter<'_>) + Send,
    ) -> Result<Option<i64>, Error> {
        let route = self.route(&queue.topic).await?;
        let none = || Error::NoBroker { broker: queue.broker_name.clone(), topic: queue.topic.clone() };
        let addr = route.replica(&queue.broker_name, 0).ok_or_else(none)?;
        let call = Call { addr, code, target: Target::Queue(queue) };
        let answer = call.send(self, ext, &[], self.options().request_timeout).await?;
        match answer.code() {
            ResponseCode::SUCCESS if code == RequestCode::UPDATE_CONSUMER_OFFSET => Ok(None),
            ResponseCode::SUCCESS => {
                let offset = call.decoded(OffsetAnswer::decode(&answer.ext()))?.offset;
                // Some brokers say −1 for "none": no queue begins there, and no pull may ask for it.
                Ok(Some(offset).filter(|offset| *offset >= 0))
            }
            ResponseCode::QUERY_NOT_FOUND if code == RequestCode::QUERY_CONSUMER_OFFSET => Ok(None),
            _ => Err(call.refused(&answer)),
        }
    }

    /// GET_MAX_OFFSET (30).
    pub(crate) async fn max_offset(&self, queue: &MessageQueue) -> Result<i64, Error> {
        let header = Queue::new(queue.topic.as_str().into(), queue.queue_id);
        Ok(self.ask_offset(RequestCode::GET_MAX_OFFSET, queue, |w| header.write(w)).await?.unwrap_or(0))
    }

    /// GET_MIN_OFFSET (31).
    pub(crate) async fn min_offset(&self, queue: &MessageQueue) -> Result<i64, Error> {
        let header = Queue::new(queue.topic.as_str().into(), queue.queue_id);
        Ok(self.ask_offset(RequestCode::GET_MIN_OFFSET, queue, |w| header.write(w)).await?.unwrap_or(0))
    }

    /// SEARCH_OFFSET_BY_TIMESTAMP (29).
    pub(crate) async fn search_offset(&self, queue: &MessageQueue, epoch_ms: i64) -> Result<i64, Error> {
        let header = SearchOffset::new(queue.topic.as_str().into(), queue.queue_id, epoch_ms, None);
        Ok(self.ask_offset(RequestCode::SEARCH_OFFSET_BY_TIMESTAMP, queue, |w| header.write(w)).await?.unwrap_or(0))
    }

    /// QUERY_CONSUMER_OFFSET (14). Never takes 0 for "none", so that a group that starts from the last does not replay.
    pub(crate) async fn consumer_offset(&self, group: &str, queue: &MessageQueue) -> Result<Option<i64>, Error> {
        let header = QueryConsumerOffset::new(group.into(), queue.topic.as_str().into(), queue.queue_id, Some(false));
        self.ask_offset(RequestCode::QUERY_CONSUMER_OFFSET, queue, |w| header.write(w)).await
    }

    /// UPDATE_CONSUMER_OFFSET (15), answered by the broker.
    pub(crate) async fn commit_offset(&self, group: &str, queue: &MessageQueue, offset: i64) -> Result<(), Error> {
        let header = UpdateConsumerOffset::new(group.into(), queue.topic.as_str().into(), queue.queue_id, offset);
        self.ask_offset(RequestCode::UPDATE_CONSUMER_OFFSET, queue, |w| header.write(w)).await.map(|_| ())
    }

    /// Where the group goes on in a queue, and whether the broker has that offset. An error is an error: nothing is guessed.
    ///
    /// A start that depends on when it is asked for is stored at once: otherwise what is sent before the first commit would
    /// be lost when the queue goes to another member, who would start from a later end.
    pub(crate) async fn start_offset(
        &self,
        group: &str,
        queue: &MessageQueue,
        from: StartFrom,
    ) -> Result<(i64, bool), Error> {
        if let Some(stored) = self.consumer_offset(group, queue).await? {
            return Ok((stored, true));
        }
        let is_retry = names::is_retry_topic(&queue.topic);
        let start = match from {
            StartFrom::First => return Ok((0, false)),
            StartFrom::Last if is_retry => return Ok((0, false)),
            StartFrom::Last => self.max_offset(queue).await?,
            StartFrom::Timestamp(_) if is_retry => self.max_offset(queue).await?,
            StartFrom::Timestamp(epoch_ms) => self.search_offset(queue, epoch_ms).await?,
        };
        self.commit_offset(group, queue, start).await?;
        Ok((start, true))
    }
}
