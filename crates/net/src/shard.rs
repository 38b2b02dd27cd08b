//! A shard: one thread, one single-threaded runtime, the connections that were handed to it and one [`Service`].
//! Other threads reach it through its [`Mailbox`].

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cometmq_wire::Frame;
use cometmq_wire::frame::BadFrame;
use tokio::sync::{Notify, mpsc};

use crate::Error;
use crate::conn::{self, Conn, ConnId};
use crate::memory::{Memory, STALLED};
use crate::stats::{self, ShardStats};

/// Bytes that one read may bring, and the largest frame that needs no buffer of its own.
pub(crate) const READ_BUFFER: usize = 256 * 1024;
/// The longest time between two looks for idle connections.
const SWEEP_EVERY_MAX: Duration = Duration::from_secs(5);
/// Envelopes that wait for a shard: new connections (the accept loop waits when it is full) and notices to peers.
const MAILBOX_MAX: usize = 4096;
/// Output buffers kept for the next turn, and the capacity above which one is given back instead.
const POOL_MAX: usize = 8;
const POOL_CAPACITY_MAX: usize = 512 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardId(pub usize);

/// What runs on a shard. Nothing here may block.
pub trait Service: 'static {
    /// One turn: the frames that one read of `conn` brought, in order. Answers go to [`Conn::out`] now or later.
    /// Returns how many frames were taken; the rest comes again once the peer has read its answers.
    fn turn(&self, conn: &Rc<Conn>, frames: &[Result<Frame<'_>, BadFrame>]) -> usize;

    fn opened(&self, _conn: &Rc<Conn>) {}

    /// The connection is gone: nothing that is written to it arrives.
    fn closed(&self, _conn: &Rc<Conn>) {}

    /// [`Mailbox::wake`] was called, once or more, since the last time.
    fn woken(&self) {}
}

pub(crate) enum Envelope {
    Accept {
        stream: std::net::TcpStream,
        peer: SocketAddr,
        role: u8,
    },
    /// A whole frame for a connection of this shard; dropped when the connection is gone.
    Write {
        conn: ConnId,
        frame: Vec<u8>,
    },
    Close(ConnId),
}

/// The way into a shard, from any thread. Holds at most `MAILBOX_MAX` envelopes; wake-ups are one flag.
#[derive(Clone)]
pub struct Mailbox {
    shard: ShardId,
    tx: mpsc::Sender<Envelope>,
    wake: Arc<Notify>,
    /// Set once, to the grace that connections get.
    stop: Arc<OnceLock<Duration>>,
}

impl Mailbox {
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// Has [`Service::woken`] called on the shard, soon. What it is to look at must be in place before.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Writes a whole frame to a connection of this shard. Dropped when the shard is so far behind that its mailbox is
    /// full: what a peer is told without having asked must not be what it relies on.
    pub fn write(&self, conn: ConnId, frame: Vec<u8>) {
        self.post(Envelope::Write { conn, frame });
    }

    pub fn close(&self, conn: ConnId) {
        self.post(Envelope::Close(conn));
    }

    fn post(&self, envelope: Envelope) {
        // A shard that has stopped takes no mail; its connections are closed, so nobody waits for it.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.tx.try_send(envelope) {
            tracing::warn!(shard = self.shard.0, limit = MAILBOX_MAX, "a shard's mailbox is full, a notice is dropped");
        }
    }

    /// Waits for room. `false` = the shard has stopped.
    pub(crate) async fn send(&self, envelope: Envelope) -> bool {
        self.tx.send(envelope).await.is_ok()
    }

    pub(crate) fn stop(&self, grace: Duration) {
        let _ = self.stop.set(grace);
        self.wake();
    }
}

/// A running shard, seen from outside.
pub(crate) struct Shard {
    pub(crate) mailbox: Mailbox,
    pub(crate) stats: Arc<ShardStats>,
    thread: JoinHandle<()>,
}

impl Shard {
    pub(crate) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!(shard = self.mailbox.shard.0, "a shard thread panicked");
        }
    }
}

/// What the connections of a shard share.
pub(crate) struct Local<S: Service> {
    pub(crate) service: S,
    pub(crate) stats: Arc<ShardStats>,
    pub(crate) read_buffer: RefCell<Box<[u8]>>,
    pub(crate) pool: RefCell<Vec<Vec<u8>>>,
    pub(crate) memory: Arc<Memory>,
    conns: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    id: ShardId,
}

struct Slot {
    generation: u32,
    conn: Option<Rc<Conn>>,
}

impl<S: Service> Local<S> {
    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        self.pool.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn give_buffer(&self, mut buffer: Vec<u8>) {
        let mut pool = self.pool.borrow_mut();
        if buffer.capacity() <= POOL_CAPACITY_MAX && pool.len() < POOL_MAX {
            buffer.clear();
            pool.push(buffer);
        }
    }

    fn admit(&self, peer: SocketAddr, local: SocketAddr, role: u8) -> Rc<Conn> {
        let mut conns = self.conns.borrow_mut();
        let slot = self.free.borrow_mut().pop().unwrap_or_else(|| {
            conns.push(Slot { generation: 0, conn: None });
            (conns.len() - 1) as u32
        });
        let entry = &mut conns[slot as usize];
        let id = ConnId { shard: self.id, slot, generation: entry.generation };
        let conn = Rc::new(Conn::new(id, peer, local, role, self.memory.clone()));
        entry.conn = Some(conn.clone());
        conn
    }

    pub(crate) fn forget(&self, id: ConnId) {
        let mut conns = self.conns.borrow_mut();
        let entry = &mut conns[id.slot as usize];
        entry.conn = None;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.borrow_mut().push(id.slot);
        self.stats.connections.fetch_sub(1, Relaxed);
    }

    fn find(&self, id: ConnId) -> Option<Rc<Conn>> {
        let conns = self.conns.borrow();
        let slot = conns.get(id.slot as usize).filter(|s| s.generation == id.generation)?;
        slot.conn.clone()
    }

    fn all(&self) -> Vec<Rc<Conn>> {
        self.conns.borrow().iter().filter_map(|s| s.conn.clone()).collect()
    }

    /// Closes the connections without a whole frame in either direction for `idle_max`, as Java's server does, and those
    /// that hold memory for too long while others wait for it.
    fn sweep(&self, idle_max: Duration) {
        let now = Instant::now();
        let (requests, responses) = (self.memory.requests_press(), self.memory.responses.is_full());
        let is_stalled = |since: Option<Instant>| since.is_some_and(|since| now.duration_since(since) > STALLED);
        for conn in self.all() {
            if (requests && is_stalled(conn.unfinished.get())) || (responses && is_stalled(conn.unwritten.get())) {
                tracing::warn!(peer = %conn.peer(), "others wait for the memory that it holds for {STALLED:?}, closing");
                self.memory.stalled_closed.fetch_add(1, Relaxed);
                conn.close();
                continue;
            }
            if now.duration_since(conn.active.get()) > idle_max {
                tracing::debug!(peer = %conn.peer(), "idle for {idle_max:?}, closing");
                stats::add(&self.stats.idle_closed, 1);
                conn.close();
            }
        }
    }
}

pub(crate) fn start<S, F>(
    name: &str,
    count: usize,
    idle_max: Duration,
    memory: &Arc<Memory>,
    make: Arc<F>,
) -> Result<Vec<Shard>, Error>
where
    S: Service,
    F: Fn(ShardId, &[Mailbox]) -> S + Send + Sync + 'static,
{
    let (mailboxes, receivers): (Vec<_>, Vec<_>) = (0..count)
        .map(|i| {
            let (tx, rx) = mpsc::channel(MAILBOX_MAX);
            (Mailbox { shard: ShardId(i), tx, wake: Arc::default(), stop: Arc::default() }, rx)
        })
        .unzip();
    let mut shards = Vec::with_capacity(count);
    for (mailbox, rx) in mailboxes.iter().zip(receivers) {
        let stats = Arc::new(ShardStats::default());
        let (all, make, shard_stats, id) = (mailboxes.clone(), make.clone(), stats.clone(), mailbox.shard);
        let (own, memory) = (mailbox.clone(), memory.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Spawn)?;
        let run = move || {
            let local_set = tokio::task::LocalSet::new();
            runtime.block_on(local_set.run_until(async move {
                let local = Rc::new(Local {
                    service: make(id, &all),
                    stats: shard_stats,
                    read_buffer: RefCell::new(vec![0; READ_BUFFER].into_boxed_slice()),
                    pool: RefCell::default(),
                    memory,
                    conns: RefCell::default(),
                    free: RefCell::default(),
                    id,
                });
                drop((make, all));
                serve(local, rx, own, idle_max).await;
            }));
        };
        let thread = std::thread::Builder::new().name(format!("{name}-{}", id.0)).spawn(run).map_err(Error::Spawn)?;
        shards.push(Shard { mailbox: mailbox.clone(), stats, thread });
    }
    Ok(shards)
}

async fn serve<S: Service>(local: Rc<Local<S>>, mut rx: mpsc::Receiver<Envelope>, own: Mailbox, idle_max: Duration) {
    let every = (idle_max / 4).clamp(Duration::from_millis(100), SWEEP_EVERY_MAX);
    let mut sweep = tokio::time::interval(every);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let open = Rc::new(Cell::new(0usize));
    loop {
        let envelope = tokio::select! {
            envelope = rx.recv() => envelope,
            () = own.wake.notified() => {
                if let Some(grace) = own.stop.get() {
                    return stop(&local, &open, *grace).await;
                }
                local.service.woken();
                continue;
            }
            _ = sweep.tick() => {
                local.sweep(idle_max);
                continue;
            }
        };
        match envelope {
            Some(Envelope::Write { conn, frame }) => {
                if let Some(conn) = local.find(conn) {
                    conn.out().extend_from_slice(&frame);
                    conn.flush();
                }
            }
            Some(Envelope::Close(conn)) => local.find(conn).iter().for_each(|conn| conn.close()),
            Some(Envelope::Accept { stream, peer, role }) => match conn::adopt(stream) {
                Ok((stream, at)) => {
                    let conn = local.admit(peer, at, role);
                    let (local, open) = (local.clone(), open.clone());
                    open.set(open.get() + 1);
                    tokio::task::spawn_local(async move {
                        conn::serve(&local, stream, &conn).await;
                        local.forget(conn.id());
                        open.set(open.get() - 1);
                    });
                }
                Err(error) => {
                    tracing::debug!(%peer, %error, "a connection was gone before it could be served");
                    local.stats.connections.fetch_sub(1, Relaxed);
                }
            },
            None => return,
        }
    }
}

/// Closes all connections; they have `grace` to write what is pending.
async fn stop<S: Service>(local: &Local<S>, open: &Cell<usize>, grace: Duration) {
    for conn in local.all() {
        conn.close();
    }
    let end = Instant::now() + grace;
    while open.get() > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
