//! One queue while this member has it: how much of it is cached, how far it is consumed, what the broker knows of that.
//!
//! An offset only grows here; the one exception is the correction by the broker, which also ends this owner of the queue,
//! so that nothing handed out earlier can overwrite it. Java: `ProcessQueue`, `ControllableOffset`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cometmq_wire::body::MessageQueue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{Client, Error};

pub(crate) struct ProcessQueue {
    pub(crate) queue: MessageQueue,
    /// Ends the pull task.
    pub(crate) stop: CancellationToken,
    /// Something was taken out.
    room: Notify,
    state: Mutex<State>,
    /// Held while an offset travels, so that an older one never overtakes a newer one.
    committing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// May be committed.
    consumed: Option<i64>,
    /// Becomes `consumed` when the message handed out is done with.
    handed_out: Option<i64>,
    /// What the broker has.
    committed: Option<i64>,
    cached: usize,
    cached_bytes: usize,
    /// Given away: cached messages are not handed out any more, the offset stands.
    dropped: bool,
}

impl ProcessQueue {
    /// `stored`: the offset that the broker has of the group.
    pub(crate) fn new(queue: MessageQueue, stored: Option<i64>, stop: CancellationToken) -> Self {
        let state = Mutex::new(State { consumed: stored, committed: stored, ..State::default() });
        Self { queue, stop, room: Notify::new(), state, committing: tokio::sync::Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.state().dropped
    }

    /// Waits until less than the limits are cached.
    pub(crate) async fn room(&self, messages_max: usize, bytes_max: usize) {
        loop {
            {
                let state = self.state();
                if state.cached < messages_max && state.cached_bytes < bytes_max {
                    return;
                }
            }
            // The limit only guards against a bug: every take notifies.
            let _ = tokio::time::timeout(Duration::from_secs(1), self.room.notified()).await;
        }
    }

    /// Messages were cached.
    pub(crate) fn cached(&self, messages: usize, bytes: usize) {
        let mut state = self.state();
        state.cached += messages;
        state.cached_bytes += bytes;
    }

    /// The broker has nothing for us below `next`: with nothing cached, that is how far we are.
    pub(crate) fn nothing_below(&self, next: i64) {
        let mut state = self.state();
        if state.cached > 0 || state.dropped {
            return;
        }
        match state.handed_out {
            Some(offset) => state.handed_out = Some(offset.max(next)),
            None => state.consumed = state.consumed.max(Some(next)),
        }
    }

    /// A message is handed out, `after` it the queue goes on. `false` = the queue was given away.
    pub(crate) fn take(&self, bytes: usize, after: i64) -> bool {
        let mut state = self.state();
        if state.dropped {
            return false;
        }
        state.cached = state.cached.saturating_sub(1);
        state.cached_bytes = state.cached_bytes.saturating_sub(bytes);
        state.handed_out = state.handed_out.max(Some(after));
        self.room.notify_one();
        true
    }

    /// The message handed out last is consumed.
    pub(crate) fn done(&self) {
        let mut state = self.state();
        if !state.dropped {
            let done = state.handed_out.take();
            state.consumed = state.consumed.max(done);
        }
    }

    /// Gives the queue away. What is consumed may still be committed.
    pub(crate) fn give_away(&self) {
        self.state().dropped = true;
        self.stop.cancel();
    }

    /// The broker says that our offset is outside of the queue: takes its word, and ends this owner.
    pub(crate) fn correct(&self, offset: i64) {
        let mut state = self.state();
        state.dropped = true;
        state.consumed = Some(offset);
    }

    /// Stores the offset at the broker, if that does not have it yet.
    pub(crate) async fn commit(&self, client: &Client, group: &str) -> Result<(), Error> {
        let _one = self.committing.lock().await;
        let offset = {
            let state = self.state();
            match state.consumed {
                Some(offset) if state.committed != Some(offset) => offset,
                _ => return Ok(()),
            }
        };
        client.commit_offset(group, &self.queue, offset).await?;
        self.state().committed = Some(offset);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(stored: Option<i64>) -> ProcessQueue {
        ProcessQueue::new(MessageQueue::default(), stored, CancellationToken::new())
    }

    fn consumed(queue: &ProcessQueue) -> Option<i64> {
        queue.state().consumed
    }

    #[test]
    fn a_message_is_consumed_when_it_is_done_with() {
        let queue = queue(Some(5));
        queue.cached(2, 20);
        assert!(queue.take(10, 6));
        assert_eq!(consumed(&queue), Some(5));
        queue.done();
        assert_eq!(consumed(&queue), Some(6));
        assert!(queue.take(10, 9));
        queue.done();
        queue.done();
        assert_eq!(consumed(&queue), Some(9));
    }

    #[test]
    fn filtered_messages_count_once_nothing_is_cached() {
        let queue = queue(None);
        queue.cached(1, 10);
        queue.nothing_below(50);
        assert_eq!(consumed(&queue), None);
        queue.take(10, 6);
        queue.nothing_below(50);
        assert_eq!(consumed(&queue), None, "the message handed out is not done with");
        queue.done();
        assert_eq!(consumed(&queue), Some(50));
        queue.nothing_below(40);
        assert_eq!(consumed(&queue), Some(50), "never backwards");
    }

    #[test]
    fn a_correction_stands() {
        let queue = queue(Some(100));
        queue.cached(2, 20);
        queue.take(10, 101);
        queue.correct(7);
        queue.done();
        queue.nothing_below(200);
        assert!(!queue.take(10, 102));
        assert_eq!(consumed(&queue), Some(7));
    }

    #[test]
    fn a_queue_given_away_hands_out_nothing() {
        let queue = queue(Some(1));
        queue.cached(1, 10);
        queue.give_away();
        assert!(!queue.take(10, 2) && queue.stop.is_cancelled() && queue.is_dropped());
        assert_eq!(consumed(&queue), Some(1));
    }

    #[tokio::test]
    async fn room_comes_with_a_take() {
        let queue = queue(None);
        queue.cached(2, 200);
        let wait = queue.room(2, 1000);
        tokio::pin!(wait);
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut wait).await.is_err());
        queue.take(100, 1);
        tokio::time::timeout(Duration::from_millis(500), wait).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), queue.room(2, 100)).await.is_err());
    }
}
