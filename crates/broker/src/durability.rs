//! Sends that are written and wait to be flushed (SYNC_FLUSH). Released when the durable watermark passes them; one that
//! waits longer than `syncFlushTimeout` is answered FLUSH_DISK_TIMEOUT: it is stored, and may still get lost.
//! Java: `GroupCommitService`, `PutMessageStatus.FLUSH_DISK_TIMEOUT`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use cometmq_wire::ResponseCode;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::send::Written;
use crate::shard::BrokerShard;

#[derive(Default)]
pub(crate) struct Durability {
    /// In log order.
    waiting: RefCell<VecDeque<(u64, Instant, Written)>>,
    first: Notify,
}

impl Durability {
    pub(crate) fn wait(&self, log_end: u64, written: Written, timeout: Duration) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() {
            self.first.notify_one();
        }
        waiting.push_back((log_end, Instant::now() + timeout, written));
    }

    fn take(&self, ready: impl Fn(u64, Instant) -> bool) -> Vec<Written> {
        let mut waiting = self.waiting.borrow_mut();
        let n = waiting.iter().take_while(|(end, deadline, _)| ready(*end, *deadline)).count();
        waiting.drain(..n).map(|(_, _, written)| written).collect()
    }
}

impl BrokerShard {
    pub(crate) fn release_durable(&self) {
        let durable = self.broker.store.durable();
        for written in self.durability.take(|end, _| end <= durable) {
            self.answer_send(&written, ResponseCode::SUCCESS, None);
            written.asker.conn.flush();
        }
        if let Some(cause) = self.broker.store.poison() {
            // Nothing becomes durable any more.
            for written in self.durability.take(|_, _| true) {
                self.answer_send(&written, ResponseCode::FLUSH_DISK_TIMEOUT, Some(&cause));
                written.asker.conn.flush();
            }
        }
    }

    pub(crate) async fn end_durability_waits_in_time(self: Rc<Self>) {
        loop {
            let next = self.durability.waiting.borrow().front().map(|(_, deadline, _)| *deadline);
            match next {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => self.durability.first.notified().await,
            }
            let now = Instant::now();
            for written in self.durability.take(|_, deadline| deadline <= now) {
                let remark = "the message is stored, but was not flushed to disk in time";
                self.answer_send(&written, ResponseCode::FLUSH_DISK_TIMEOUT, Some(remark));
                written.asker.conn.flush();
            }
        }
    }
}
