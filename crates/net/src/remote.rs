//! Calls to other processes: one connection an address, requests matched to answers by their opaque.
//!
//! [`Remotes`] keeps the connections; a lost one is opened again by the next call. A peer may also send requests to us:
//! they go to the [`Handler`]. Every wait has a time limit; at most `QUEUE_MAX` frames wait to be written.
//! Java: `NettyRemotingClient`.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cometmq_wire::Frame;
use cometmq_wire::frame::{self, Builder, Decoded, FLAG_ONEWAY, FRAME_LENGTH_MAX, OwnedFrame, PREFIX};
use cometmq_wire::header::{ExtWriter, Language, SerializeType};
use cometmq_wire::{RequestCode, version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use crate::Error;

/// Frames of one connection that may wait to be written.
const QUEUE_MAX: usize = 4096;
/// Bytes that are put together into one write.
const WRITE_MAX: usize = 256 * 1024;
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Serves what peers ask of us on connections that we opened (40, 220, 307 …). Must not block.
pub type Handler = dyn Fn(&str, Frame<'_>) -> Option<Vec<u8>> + Send + Sync;

/// A request before it has an opaque.
pub struct Outgoing<'a> {
    code: RequestCode,
    ext: Box<dyn FnOnce(&mut ExtWriter<'_>) + Send + 'a>,
    body: &'a [u8],
}

impl<'a> Outgoing<'a> {
    pub fn new(code: RequestCode, ext: impl FnOnce(&mut ExtWriter<'_>) + Send + 'a) -> Self {
        Self { code, ext: Box::new(ext), body: &[] }
    }

    pub fn body(mut self, body: &'a [u8]) -> Self {
        self.body = body;
        self
    }

    fn encode(self, opaque: i32, flag: i32) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.body.len());
        Builder::request(&mut out, SerializeType::Json, self.code, opaque, flag, Language::RUST, version::V5_5_0)
            .ext(self.ext)
            .body(self.body)
            .finish();
        out
    }
}

type Waiting = Mutex<Option<HashMap<i32, oneshot::Sender<OwnedFrame>>>>;

/// One open connection.
pub struct Remote {
    addr: String,
    tx: mpsc::Sender<Vec<u8>>,
    /// `None` once the connection is lost.
    waiting: Arc<Waiting>,
    cause: Arc<Mutex<String>>,
    opaque: AtomicI32,
    tasks: [tokio::task::AbortHandle; 2],
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Remote {
    pub async fn connect(addr: &str, handler: Arc<Handler>) -> Result<Arc<Self>, Error> {
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(addr)).await;
        let opened = opened.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)));
        let stream = opened.and_then(|s| s.set_nodelay(true).map(|()| s));
        let stream = stream.map_err(|source| Error::Connect { addr: addr.to_string(), source })?;
        let (read, write) = stream.into_split();
        let (tx, rx) = mpsc::channel(QUEUE_MAX);
        let waiting: Arc<Waiting> = Arc::new(Mutex::new(Some(HashMap::new())));
        let cause = Arc::new(Mutex::new(String::new()));
        let writer = tokio::spawn(write_loop(write, rx));
        let reader = {
            let (addr, waiting, cause, tx) = (addr.to_string(), waiting.clone(), cause.clone(), tx.downgrade());
            tokio::spawn(async move {
                let end = read_loop(&addr, read, &waiting, handler, tx).await;
                *lock(&cause) = end;
                // Dropping the senders tells every waiting call.
                lock(&waiting).take();
            })
        };
        let tasks = [writer.abort_handle(), reader.abort_handle()];
        Ok(Arc::new(Self { addr: addr.to_string(), tx, waiting, cause, opaque: AtomicI32::new(1), tasks }))
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    pub fn is_open(&self) -> bool {
        lock(&self.waiting).is_some()
    }

    fn closed(&self) -> Error {
        Error::Closed { addr: self.addr.clone(), cause: lock(&self.cause).clone() }
    }

    /// Sends a request and waits for its answer, whatever its code. `timeout` covers the whole call.
    pub async fn call(&self, request: Outgoing<'_>, timeout: Duration) -> Result<OwnedFrame, Error> {
        let opaque = self.opaque.fetch_add(1, Ordering::Relaxed);
        let frame = request.encode(opaque, 0);
        let (tx, rx) = oneshot::channel();
        match lock(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(opaque, tx),
            None => return Err(self.closed()),
        };
        let _forget = Forget { waiting: &self.waiting, opaque };
        let exchange = async {
            self.tx.send(frame).await.map_err(|_| self.closed())?;
            rx.await.map_err(|_| self.closed())
        };
        let timed_out = |_| Error::Timeout { addr: self.addr.clone(), timeout, what: "request" };
        tokio::time::timeout(timeout, exchange).await.map_err(timed_out)?
    }

    /// Sends a request that is not answered.
    pub fn oneway(&self, request: Outgoing<'_>) -> Result<(), Error> {
        let frame = request.encode(self.opaque.fetch_add(1, Ordering::Relaxed), FLAG_ONEWAY);
        self.tx.try_send(frame).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => Error::Overloaded { addr: self.addr.clone(), limit: QUEUE_MAX },
            mpsc::error::TrySendError::Closed(_) => self.closed(),
        })
    }
}

/// Takes a call out of the table however it ends.
struct Forget<'a> {
    waiting: &'a Waiting,
    opaque: i32,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = lock(self.waiting).as_mut() {
            waiting.remove(&self.opaque);
        }
    }
}

async fn write_loop(mut write: OwnedWriteHalf, mut rx: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut frames) = rx.recv().await {
        while frames.len() < WRITE_MAX {
            let Ok(next) = rx.try_recv() else { break };
            frames.extend_from_slice(&next);
        }
        if write.write_all(&frames).await.is_err() {
            // The reader sees the same loss and tells the callers.
            return;
        }
    }
}

async fn read_loop(
    addr: &str,
    mut read: OwnedReadHalf,
    waiting: &Waiting,
    handler: Arc<Handler>,
    tx: mpsc::WeakSender<Vec<u8>>,
) -> String {
    let mut buf: Vec<u8> = Vec::with_capacity(8 * 1024);
    loop {
        let mut at = 0;
        loop {
            match frame::decode(&buf[at..], FRAME_LENGTH_MAX) {
                Ok(Decoded::Frame { len, frame }) => {
                    match frame {
                        Ok(f) if f.head.is_response() => {
                            let answer = OwnedFrame::new(buf[at..at + len].to_vec());
                            let caller = lock(waiting).as_mut().and_then(|w| w.remove(&f.head.opaque));
                            if let (Some(caller), Ok(answer)) = (caller, answer) {
                                // A caller that has given up is not an error.
                                let _ = caller.send(answer);
                            }
                        }
                        Ok(f) => {
                            let oneway = f.head.is_oneway();
                            if let (Some(answer), false, Some(tx)) = (handler(addr, f), oneway, tx.upgrade()) {
                                let _ = tx.try_send(answer);
                            }
                        }
                        Err(bad) => tracing::warn!(addr, error = %bad.error, "a frame from a peer does not decode"),
                    }
                    at += len;
                }
                Ok(Decoded::Incomplete { need }) => {
                    buf.drain(..at);
                    buf.reserve(need.saturating_sub(buf.len()).clamp(PREFIX, 256 * 1024));
                    break;
                }
                Err(error) => return error.to_string(),
            }
        }
        match read.read_buf(&mut buf).await {
            Ok(0) => return "the peer closed it".to_string(),
            Ok(_) => {}
            Err(error) => return error.to_string(),
        }
    }
}

/// The connections of a process to its peers, by address.
pub struct Remotes {
    handler: Arc<Handler>,
    open: Mutex<HashMap<String, Arc<Entry>>>,
    stopped: AtomicBool,
}

/// The lock is held while a connection is being opened, so that concurrent callers share one.
type Entry = tokio::sync::Mutex<Option<Arc<Remote>>>;

impl Default for Remotes {
    /// Without a handler: requests from peers are not answered.
    fn default() -> Self {
        Self::new(Arc::new(|_, _| None))
    }
}

impl Remotes {
    pub fn new(handler: Arc<Handler>) -> Self {
        Self { handler, open: Mutex::default(), stopped: AtomicBool::new(false) }
    }

    /// The open connection to `addr`, opened now if need be.
    pub async fn to(&self, addr: &str) -> Result<Arc<Remote>, Error> {
        let entry = lock(&self.open).entry(addr.to_string()).or_default().clone();
        let mut slot = entry.lock().await;
        if let Some(remote) = slot.as_ref().filter(|r| r.is_open()) {
            return Ok(remote.clone());
        }
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Closed { addr: addr.to_string(), cause: "we are shutting down".to_string() });
        }
        let remote = Remote::connect(addr, self.handler.clone()).await?;
        *slot = Some(remote.clone());
        Ok(remote)
    }

    pub async fn call(&self, addr: &str, request: Outgoing<'_>, timeout: Duration) -> Result<OwnedFrame, Error> {
        self.to(addr).await?.call(request, timeout).await
    }

    /// Forgets the connections whose address is not in `keep`.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) {
        lock(&self.open).retain(|addr, _| keep(addr));
    }

    /// Closes all connections; later calls fail.
    pub fn shutdown(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        lock(&self.open).clear();
    }
}
