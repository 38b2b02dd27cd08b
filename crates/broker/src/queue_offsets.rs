//! Offsets of queues: SEARCH_OFFSET_BY_TIMESTAMP (29), GET_MAX_OFFSET (30), GET_MIN_OFFSET (31),
//! GET_EARLIEST_MSG_STORETIME (32). Java: `AdminBrokerProcessor`.
//!
//! A topic or queue that does not exist has offset 0 and no messages, as in Java.

use std::rc::Rc;

use cometmq_store::{Boundary, QueueRef};
use cometmq_wire::headers::{OffsetAnswer, Queue, SearchOffset, TimestampAnswer};
use cometmq_wire::{Frame, ResponseCode};

use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step, blocking};

impl BrokerShard {
    pub(crate) fn find_queue(&self, topic: &str, id: i32) -> Result<Option<QueueRef>, Reject> {
        let queue = self.broker.topics.find(topic).and_then(|t| t.queue(id, &self.broker.store));
        Ok(queue.transpose()?)
    }

    pub(crate) fn max_offset(&self, asker: &Asker, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let header = Queue::decode(&frame.head.ext)?;
        let offset = self.find_queue(&header.topic, header.queue_id)?.map_or(0, |q| q.end());
        asker.answer(out, ResponseCode::SUCCESS, None, |w| OffsetAnswer::new(offset).write(w), &[]);
        Ok(Step::Done)
    }

    pub(crate) fn min_offset(&self, asker: &Asker, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let header = Queue::decode(&frame.head.ext)?;
        let offset = self.find_queue(&header.topic, header.queue_id)?.map_or(0, |q| q.min());
        asker.answer(out, ResponseCode::SUCCESS, None, |w| OffsetAnswer::new(offset).write(w), &[]);
        Ok(Step::Done)
    }

    pub(crate) fn search_offset(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = SearchOffset::decode(&frame.head.ext)?;
        let boundary = match header.boundary_type.as_deref() {
            None | Some("LOWER" | "lower") => Boundary::Lower,
            Some("UPPER" | "upper") => Boundary::Upper,
            Some(other) => return Err(Reject::invalid(format!("boundaryType '{other}', expected LOWER or UPPER"))),
        };
        let queue = self.find_queue(&header.topic, header.queue_id)?;
        let (store, asker, time) = (self.broker.store.clone(), asker.clone(), header.timestamp);
        Ok(Step::Later(Box::pin(async move {
            let search = move || queue.map_or(Ok(0), |q| store.offset_by_time(&q, time, boundary));
            let offset = blocking(search).await?;
            asker.answer(
                &mut asker.conn.out(),
                ResponseCode::SUCCESS,
                None,
                |w| OffsetAnswer::new(offset).write(w),
                &[],
            );
            Ok(After::Answered)
        })))
    }

    pub(crate) fn earliest_store_time(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = Queue::decode(&frame.head.ext)?;
        let queue = self.find_queue(&header.topic, header.queue_id)?;
        let (store, asker) = (self.broker.store.clone(), asker.clone());
        Ok(Step::Later(Box::pin(async move {
            let time = blocking(move || queue.map_or(Ok(None), |q| store.earliest_time(&q))).await?;
            let header = TimestampAnswer::new(time.unwrap_or(-1));
            asker.answer(&mut asker.conn.out(), ResponseCode::SUCCESS, None, |w| header.write(w), &[]);
            Ok(After::Answered)
        })))
    }
}
