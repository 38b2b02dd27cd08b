//! Long polling: pulls that wait for a message.
//!
//! A parked poll belongs to the shard of its connection. The queue in the store holds one bit a shard; an append that makes
//! a message visible takes the bits and posts the queue to those shards, once. No scan: an idle poll costs its struct.
//!
//! No lost wake-up: set the bit, look at the end of the queue again, only then wait. A wake looks just at the new entries; a
//! poll whose filter matches none of them stays, remembers how far it looked, and answers NOT_FOUND with that offset when its
//! time is up.
//! Java: `PullRequestHoldService`, `NotifyMessageArrivingListener`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use cometmq_net::ConnId;
use cometmq_store::{QueueRef, Read, Status, Wait};
use cometmq_wire::ResponseCode;
use foldhash::fast::RandomState;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::Reject;
use crate::pull::PullCall;
use crate::shard::BrokerShard;

/// Parked polls of all shards: at about 400 bytes each, 10 MB.
const PARKED_MAX: usize = 25_000;

pub(crate) struct Parked {
    polls: RefCell<Polls>,
    /// Of all shards.
    count: Arc<AtomicUsize>,
    /// The earliest deadline changed.
    earlier: Notify,
}

#[derive(Default)]
struct Polls {
    by_id: HashMap<u64, (PullCall, Instant), RandomState>,
    /// In the order in which they came.
    by_queue: HashMap<QueueRef, BTreeSet<u64>, RandomState>,
    by_conn: HashMap<ConnId, BTreeSet<u64>, RandomState>,
    deadlines: BTreeMap<(Instant, u64), ()>,
    next_id: u64,
}

impl Polls {
    fn insert(&mut self, call: PullCall, deadline: Instant) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.by_queue.entry(call.queue.clone()).or_default().insert(id);
        self.by_conn.entry(call.asker.conn.id()).or_default().insert(id);
        self.deadlines.insert((deadline, id), ());
        self.by_id.insert(id, (call, deadline));
        id
    }

    fn remove(&mut self, id: u64) -> Option<(PullCall, Instant)> {
        let (call, deadline) = self.by_id.remove(&id)?;
        self.deadlines.remove(&(deadline, id));
        drop_id(&mut self.by_queue, &call.queue, id);
        drop_id(&mut self.by_conn, &call.asker.conn.id(), id);
        Some((call, deadline))
    }
}

fn drop_id<K: std::hash::Hash + Eq>(table: &mut HashMap<K, BTreeSet<u64>, RandomState>, key: &K, id: u64) {
    if let Some(ids) = table.get_mut(key) {
        ids.remove(&id);
        if ids.is_empty() {
            table.remove(key);
        }
    }
}

impl Parked {
    pub(crate) fn new(count: Arc<AtomicUsize>) -> Self {
        Self { polls: RefCell::default(), count, earlier: Notify::new() }
    }

    fn insert(&self, call: PullCall, deadline: Instant) -> u64 {
        self.count.fetch_add(1, Relaxed);
        self.polls.borrow_mut().insert(call, deadline)
    }

    fn remove(&self, id: u64) -> Option<(PullCall, Instant)> {
        let removed = self.polls.borrow_mut().remove(id)?;
        self.count.fetch_sub(1, Relaxed);
        Some(removed)
    }

    /// The connection is gone; so are its polls.
    pub(crate) fn forget(&self, conn: ConnId) {
        let ids = self.polls.borrow().by_conn.get(&conn).cloned();
        for id in ids.unwrap_or_default() {
            self.remove(id);
        }
    }
}

impl BrokerShard {
    pub(crate) fn park(self: &Rc<Self>, call: PullCall, park_for: Duration) {
        if call.asker.conn.is_closing() {
            // It went away during a read elsewhere, and its polls are forgotten already.
            return;
        }
        let waiting = self.parked.count.load(Relaxed);
        if waiting >= PARKED_MAX {
            let remark = format!("[OVERLOAD]system busy, {waiting} pulls wait already, limit {PARKED_MAX}");
            call.asker.refuse(&mut call.asker.conn.out(), &Reject::new(ResponseCode::SYSTEM_BUSY, remark));
            return;
        }
        let queue = call.queue.clone();
        let deadline = Instant::now() + park_for;
        let first = self.parked.polls.borrow().deadlines.first_key_value().map(|((first, _), ())| *first);
        if first.is_none_or(|first| deadline < first) {
            self.parked.earlier.notify_one();
        }
        let id = self.parked.insert(call, deadline);
        self.look_until_settled(&queue, vec![id]);
    }

    /// Looks whether the polls of a queue can be answered; arms the queue while some remain.
    pub(crate) fn wake_queue(self: &Rc<Self>, queue: &QueueRef) {
        let ids = self.parked.polls.borrow().by_queue.get(queue).map(|ids| ids.iter().copied().collect());
        self.look_until_settled(queue, ids.unwrap_or_default());
    }

    /// Returns once each of these polls of a queue is answered or has looked as far as the armed queue goes.
    fn look_until_settled(self: &Rc<Self>, queue: &QueueRef, mut ids: Vec<u64>) {
        while !ids.is_empty() {
            queue.arm(self.id);
            let end = queue.end();
            for id in &ids {
                self.look(*id, end);
            }
            let polls = self.parked.polls.borrow();
            ids.retain(|id| polls.by_id.get(id).is_some_and(|(call, _)| call.offset < queue.end()));
        }
    }

    /// One parked poll, after its queue got as far as `end`.
    fn look(self: &Rc<Self>, id: u64, end: i64) {
        let read = {
            let polls = self.parked.polls.borrow();
            let Some((call, _)) = polls.by_id.get(&id).filter(|(call, _)| call.offset < end) else { return };
            if call.asker.conn.memory().responses.is_full() {
                drop(polls);
                return self.answer_later(id);
            }
            self.read(call, Wait::No)
        };
        match read {
            Ok(Read { status: Status::NoMatch, next, .. }) => {
                if let Some((call, _)) = self.parked.polls.borrow_mut().by_id.get_mut(&id) {
                    call.offset = next;
                }
            }
            Ok(Read { status: Status::AtEnd, .. }) => {}
            Ok(Read { status: Status::Cold, .. }) => self.answer_later(id),
            other => {
                let Some((call, _)) = self.parked.remove(id) else { return };
                match other {
                    // A peer that does not take its answers is told to ask again, instead of being sent more of them.
                    Ok(read) if call.asker.conn.is_full() => {
                        let records = Vec::new();
                        self.answer_pull(&call, &Read { status: Status::NoMatch, next: call.offset, records, ..read });
                    }
                    Ok(read) => self.answer_pull(&call, &read),
                    Err(reject) => call.asker.refuse(&mut call.asker.conn.out(), &reject),
                }
                call.asker.conn.flush();
            }
        }
    }

    /// A poll whose messages or entries left memory, or for whose answer there is none: read where it may block; it may be
    /// parked again.
    fn answer_later(self: &Rc<Self>, id: u64) {
        let Some((mut call, deadline)) = self.parked.remove(id) else { return };
        let shard = self.clone();
        tokio::task::spawn_local(async move {
            let asker = call.asker.clone();
            let read = shard.read_later(&call, deadline.saturating_duration_since(Instant::now())).await;
            let left = deadline.saturating_duration_since(Instant::now());
            match read {
                Ok(Read { status: Status::NoMatch, next, .. }) if !left.is_zero() => {
                    call.offset = next;
                    shard.park(call, left);
                }
                Ok(read) => shard.answer_or_park(call, &read, Some(left)),
                Err(reject) => asker.refuse(&mut asker.conn.out(), &reject),
            }
            asker.conn.flush();
        });
    }

    /// Answers polls whose time is up. One timer a shard.
    pub(crate) async fn end_parked_in_time(self: Rc<Self>) {
        loop {
            let first = self.parked.polls.borrow().deadlines.first_key_value().map(|((at, _), ())| *at);
            match first {
                None => self.parked.earlier.notified().await,
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.parked.earlier.notified() => continue,
                },
            }
            let now = Instant::now();
            loop {
                let due = self.parked.polls.borrow().deadlines.first_key_value().map(|((at, id), ())| (*at, *id));
                let Some((_, id)) = due.filter(|(at, _)| *at <= now) else { break };
                let Some((call, _)) = self.parked.remove(id) else { break };
                let (min, end) = (call.queue.min(), call.queue.end());
                let status = if end == 0 { Status::Empty } else { Status::AtEnd };
                self.answer_pull(&call, &Read { status, next: call.offset, min, end, records: Vec::new() });
                call.asker.conn.flush();
            }
        }
    }
}
