//! A turn: all frames that one read brought are prepared, appended with one call, finished, and answered with one write.
//!
//! A request is a [`Step`]. What may block (saving a file, reading cold data) leaves the shard as [`Step::Later`].
//! A panic in one request answers SYSTEM_ERROR to that request and nothing else.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cometmq_net::{Conn, Held, Mailbox, Service};
use cometmq_store::{Batch, QueueRef, Wake};
use cometmq_wire::frame::{BadFrame, Builder, OwnedFrame};
use cometmq_wire::header::{ExtWriter, SerializeType};
use cometmq_wire::{Frame, Head, ResponseCode};

use crate::broker::Broker;
use crate::durability::Durability;
use crate::error::Reject;
use crate::parked::Parked;
use crate::send;

/// What the store has for a shard to look at, until it does.
#[derive(Default)]
pub(crate) struct News {
    /// Queues that parked polls wait for and that have new messages: each once, until the shard arms it again.
    queues: Mutex<Vec<QueueRef>>,
    /// The durable watermark moved.
    durable: AtomicBool,
}

/// How the store reaches a shard.
struct ShardWake {
    mailbox: Mailbox,
    news: Arc<News>,
}

impl Wake for ShardWake {
    fn queues(&self, mut queues: Vec<QueueRef>) {
        self.news.queues.lock().unwrap_or_else(PoisonError::into_inner).append(&mut queues);
        self.mailbox.wake();
    }

    fn durable(&self) {
        self.news.durable.store(true, Ordering::SeqCst);
        self.mailbox.wake();
    }
}

/// What becomes of a request.
pub(crate) enum Step {
    /// The answer is written, or there is none.
    Done,
    /// Records are in the turn's batch; answered once they are appended.
    Append(send::Pending),
    /// Goes on elsewhere; `Again` runs the request once more.
    Later(Pin<Box<dyn Future<Output = Result<After, Reject>>>>),
}

/// How a later step ends.
pub(crate) enum After {
    /// What was missing is there now: run the request again.
    Again,
    /// The answer is written to the connection.
    Answered,
    Success,
}

/// Who asks, and how the answer is to be written.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) conn: Rc<Conn>,
    pub(crate) kind: SerializeType,
    pub(crate) opaque: i32,
    pub(crate) oneway: bool,
}

impl Asker {
    pub(crate) fn new(conn: &Rc<Conn>, head: &Head<'_>) -> Self {
        Self { conn: conn.clone(), kind: head.kind, opaque: head.opaque, oneway: head.is_oneway() }
    }

    /// Writes an answer: code, remark, header fields, body parts.
    pub(crate) fn answer(
        &self,
        out: &mut Vec<u8>,
        code: ResponseCode,
        remark: Option<&str>,
        ext: impl FnOnce(&mut ExtWriter<'_>),
        body: &[u8],
    ) {
        if !self.oneway {
            Builder::response(out, self.kind, code, self.opaque, remark).ext(ext).body(body).finish();
        }
    }

    pub(crate) fn success(&self, out: &mut Vec<u8>) -> Step {
        self.answer(out, ResponseCode::SUCCESS, None, |_| {}, &[]);
        Step::Done
    }

    pub(crate) fn body(&self, out: &mut Vec<u8>, body: &[u8]) -> Step {
        self.answer(out, ResponseCode::SUCCESS, None, |_| {}, body);
        Step::Done
    }

    pub(crate) fn refuse(&self, out: &mut Vec<u8>, reject: &Reject) {
        self.answer(out, reject.code, Some(&reject.remark), |_| {}, &[]);
    }
}

/// Runs what may wait for the disk away from the shard.
pub(crate) async fn blocking<R: Send + 'static, E: Into<Reject> + Send + 'static>(
    work: impl FnOnce() -> Result<R, E> + Send + 'static,
) -> Result<R, Reject> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|e| Reject::new(ResponseCode::SYSTEM_ERROR, format!("a bug: the work panicked: {e}")))?;
    done.map_err(Into::into)
}

/// Bytes of a body that may be copied however much memory requests hold.
const FREE_COPY: usize = 1024;

/// Listener roles.
pub(crate) const MAIN_PORT: u8 = 0;
pub(crate) const FAST_PORT: u8 = 1;

/// One shard of the broker.
pub(crate) struct BrokerShard {
    pub(crate) broker: Arc<Broker>,
    pub(crate) id: usize,
    pub(crate) parked: Parked,
    /// Pulls that wait for memory go on one after the other.
    pub(crate) delayed: tokio::sync::Mutex<()>,
    pub(crate) durability: Durability,
    batch: RefCell<Batch>,
    /// Reused for the properties of each send.
    pub(crate) properties: RefCell<String>,
    news: Arc<News>,
}

/// The service that `net` runs.
pub(crate) struct ShardService(pub(crate) Rc<BrokerShard>);

impl ShardService {
    pub(crate) fn new(broker: Arc<Broker>, id: usize, news: Arc<News>) -> Self {
        let parked = broker.parked.clone();
        let shard = Rc::new(BrokerShard {
            broker,
            id,
            parked: Parked::new(parked),
            delayed: tokio::sync::Mutex::default(),
            durability: Durability::default(),
            batch: RefCell::default(),
            properties: RefCell::default(),
            news,
        });
        tokio::task::spawn_local(shard.clone().end_parked_in_time());
        tokio::task::spawn_local(shard.clone().end_durability_waits_in_time());
        Self(shard)
    }
}

/// The wake-ups of all shards, and the news that they share with them.
pub(crate) fn wakers(mailboxes: &[Mailbox], news: &[Arc<News>]) -> Vec<Arc<dyn Wake>> {
    let wake = |(mailbox, news): (&Mailbox, &Arc<News>)| {
        Arc::new(ShardWake { mailbox: mailbox.clone(), news: news.clone() }) as Arc<dyn Wake>
    };
    mailboxes.iter().zip(news).map(wake).collect()
}

impl Service for ShardService {
    fn turn(&self, conn: &Rc<Conn>, frames: &[Result<Frame<'_>, BadFrame>]) -> usize {
        self.0.turn(conn, frames)
    }

    fn closed(&self, conn: &Rc<Conn>) {
        self.0.parked.forget(conn.id());
        let changed = self.0.broker.clients.closed(conn.id());
        self.0.broker.notify_changed(changed);
    }

    fn woken(&self) {
        let news = &self.0.news;
        if news.durable.swap(false, Ordering::SeqCst) {
            self.0.release_durable();
        }
        let queues = std::mem::take(&mut *news.queues.lock().unwrap_or_else(PoisonError::into_inner));
        queues.iter().for_each(|q| self.0.wake_queue(q));
    }
}

impl BrokerShard {
    fn turn(self: &Rc<Self>, conn: &Rc<Conn>, frames: &[Result<Frame<'_>, BadFrame>]) -> usize {
        let mut batch = self.batch.take();
        let mut pending = Vec::new();
        let mut taken = 0;
        // What the properties and the record's own fields add is about this much.
        batch.expect(frames.iter().flatten().map(|f| f.body.len() + 400).sum());
        for frame in frames {
            if conn.is_full() {
                break;
            }
            taken += 1;
            match frame {
                Ok(frame) if frame.head.is_response() => {}
                Ok(frame) => self.prepare(conn, frame, &mut batch, &mut pending),
                Err(bad) => {
                    let asker =
                        Asker { conn: conn.clone(), kind: SerializeType::Json, opaque: bad.opaque, oneway: false };
                    asker.refuse(&mut conn.out(), &Reject::new(ResponseCode::SYSTEM_ERROR, bad.error.to_string()));
                }
            }
        }
        self.finish(batch, pending);
        taken
    }

    /// Runs a request that was taken already once more.
    fn again(self: &Rc<Self>, conn: &Rc<Conn>, frame: &Frame<'_>) {
        let (mut batch, mut pending) = (self.batch.take(), Vec::new());
        self.prepare(conn, frame, &mut batch, &mut pending);
        self.finish(batch, pending);
    }

    /// Appends what was prepared and answers it.
    fn finish(&self, mut batch: Batch, pending: Vec<send::Pending>) {
        if !pending.is_empty() {
            let appended = self.broker.store.append(&mut batch);
            for send in pending {
                self.finish_send(send, &batch, &appended);
            }
        }
        batch.clear();
        self.batch.replace(batch);
    }

    fn prepare(
        self: &Rc<Self>,
        conn: &Rc<Conn>,
        frame: &Frame<'_>,
        batch: &mut Batch,
        pending: &mut Vec<send::Pending>,
    ) {
        let asker = Asker::new(conn, &frame.head);
        let (written, records) = (conn.out().len(), batch.len());
        let handled = catch_unwind(AssertUnwindSafe(|| self.handle(&asker, frame, batch)));
        let step = handled.unwrap_or_else(|_| {
            tracing::error!(code = frame.head.code, peer = %conn.peer(), "a bug: a request panicked");
            Err(Reject::new(ResponseCode::SYSTEM_ERROR, "a bug in the broker: the request panicked, see its log"))
        });
        match step {
            Ok(Step::Done) => {}
            Ok(Step::Append(send)) => pending.push(send),
            Ok(Step::Later(future)) => self.later(asker, frame, future),
            Err(reject) => {
                batch.truncate(records);
                let mut out = conn.out();
                out.truncate(written);
                asker.refuse(&mut out, &reject);
            }
        }
    }

    /// Lets a request go on outside of the turn, with a copy of its frame in case it has to run again.
    fn later(
        self: &Rc<Self>,
        asker: Asker,
        frame: &Frame<'_>,
        future: Pin<Box<dyn Future<Output = Result<After, Reject>>>>,
    ) {
        let requests = &asker.conn.memory().requests;
        if frame.body.len() > FREE_COPY && requests.is_full() {
            let (used, limit) = (requests.used(), requests.limit());
            let why = format!("[OVERLOAD]system busy, requests under way hold {used} bytes of memory, limit {limit}");
            asker.refuse(&mut asker.conn.out(), &Reject::new(ResponseCode::SYSTEM_BUSY, why));
            return;
        }
        let copy = copy_of(frame);
        let held = Held::new(requests, copy.as_ref().map_or(0, |c| c.body().len()));
        let (shard, in_flight) = (self.clone(), asker.conn.in_flight());
        tokio::task::spawn_local(async move {
            let _held = held;
            let answer = match future.await {
                Ok(After::Again) => {
                    if let Ok(frame) = &copy {
                        shard.again(&asker.conn, &frame.frame());
                    }
                    None
                }
                Ok(After::Answered) => None,
                Ok(After::Success) => Some(Ok(())),
                Err(reject) => Some(Err(reject)),
            };
            match answer {
                Some(Ok(())) => drop(asker.success(&mut asker.conn.out())),
                Some(Err(reject)) => asker.refuse(&mut asker.conn.out(), &reject),
                None => {}
            }
            drop(in_flight);
        });
    }
}

/// A frame that owns its bytes, encoded again from a borrowed one.
fn copy_of(frame: &Frame<'_>) -> Result<OwnedFrame, cometmq_wire::DecodeError> {
    let mut bytes = Vec::with_capacity(frame.body.len() + 512);
    let head = &frame.head;
    let code = cometmq_wire::RequestCode(head.code);
    Builder::request(&mut bytes, head.kind, code, head.opaque, head.flag, head.language, head.version)
        .ext(|w| head.ext.iter().for_each(|(k, v)| w.str(&k, &v)))
        .body(frame.body)
        .finish();
    OwnedFrame::new(bytes)
}
