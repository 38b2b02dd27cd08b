//! One connection: read as much as there is, cut it into frames, run one turn, write all answers with one call.
//!
//! Memory: an idle connection owns no buffer. Bytes of an unfinished frame lie in `carry`; a frame larger than the
//! shard's read buffer grows `carry` as its bytes arrive, never ahead of them by more than a doubling.
//! A peer that does not read its answers is no longer read from (`OUT_PAUSE`), nor is one that has `IN_FLIGHT_MAX` requests
//! under way whose answers come later. What all connections hold together is bounded by [`Memory`].

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cometmq_wire::frame::{self, Builder, Decoded, FRAME_LENGTH_MAX, PREFIX};
use cometmq_wire::header::SerializeType;
use cometmq_wire::{FramingError, ResponseCode};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

use crate::memory::{BUSY_AFTER, Held, LARGE, Leave, Memory, REQUESTS};
use crate::refuse;
use crate::shard::{Local, READ_BUFFER, Service, ShardId};
use crate::stats;

/// Frames that one turn takes at most, so that one connection cannot hold up the others.
const FRAMES_MAX: usize = 256;
/// Size of the output buffer above which a connection is not read from, until all of it is written.
pub const OUT_PAUSE: usize = 256 * 1024;
/// Requests of one connection that are served outside of its turns at the same time.
const IN_FLIGHT_MAX: usize = 64;
/// How long the last words to a refused peer, or pending answers at shutdown, may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Names a connection for its whole life, across threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnId {
    pub shard: ShardId,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A connection, as a [`Service`] sees it. Lives on its shard's thread.
pub struct Conn {
    id: ConnId,
    peer: SocketAddr,
    local: SocketAddr,
    role: u8,
    out: RefCell<Vec<u8>>,
    in_flight: Cell<usize>,
    closing: Cell<bool>,
    woken: Cell<bool>,
    waker: Cell<Option<Waker>>,
    memory: Arc<Memory>,
    pub(crate) active: Cell<Instant>,
    /// Since when a frame is unfinished, and since when the socket takes no more answers.
    pub(crate) unfinished: Cell<Option<Instant>>,
    pub(crate) unwritten: Cell<Option<Instant>>,
}

impl Conn {
    pub(crate) fn new(id: ConnId, peer: SocketAddr, local: SocketAddr, role: u8, memory: Arc<Memory>) -> Self {
        Self {
            id,
            peer,
            local,
            role,
            out: RefCell::default(),
            in_flight: Cell::new(0),
            closing: Cell::new(false),
            woken: Cell::new(false),
            waker: Cell::new(None),
            memory,
            active: Cell::new(Instant::now()),
            unfinished: Cell::new(None),
            unwritten: Cell::new(None),
        }
    }

    pub fn id(&self) -> ConnId {
        self.id
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Our own address on this connection.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The role of the listener that accepted it.
    pub fn role(&self) -> u8 {
        self.role
    }

    /// Where answers are appended. Outside of a turn, call [`Conn::flush`] afterwards.
    pub fn out(&self) -> RefMut<'_, Vec<u8>> {
        self.out.borrow_mut()
    }

    /// Whether no more requests are to be taken for now: the peer does not read, or enough of its requests are under way.
    pub fn is_full(&self) -> bool {
        self.out.borrow().len() > OUT_PAUSE
            || self.in_flight.get() >= IN_FLIGHT_MAX
            || (self.unwritten.get().is_some() && self.memory.responses.is_full())
    }

    /// What all connections of the server hold together.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Counts a request that is answered outside of its turn, until the guard is dropped, which flushes.
    pub fn in_flight(self: &Rc<Self>) -> InFlight {
        self.in_flight.set(self.in_flight.get() + 1);
        InFlight(self.clone())
    }

    pub fn flush(&self) {
        self.woken.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Writes what is pending, then closes.
    pub fn close(&self) {
        self.closing.set(true);
        self.flush();
    }

    pub fn is_closing(&self) -> bool {
        self.closing.get()
    }
}

/// A request that is under way. Its answer, if it has one, is in [`Conn::out`] when this is dropped.
pub struct InFlight(Rc<Conn>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        self.0.flush();
    }
}

pub(crate) fn adopt(stream: std::net::TcpStream) -> io::Result<(TcpStream, SocketAddr)> {
    stream.set_nodelay(true)?;
    let stream = TcpStream::from_std(stream)?;
    let local = stream.local_addr()?;
    Ok((stream, local))
}

/// Why a connection ended.
enum End {
    PeerClosed,
    Closing,
    Io(io::Error),
    Framing(FramingError),
    /// No room for its unfinished frame, and too little of it is there for an answer.
    Memory(String),
    Panic,
}

pub(crate) async fn serve<S: Service>(local: &Local<S>, stream: TcpStream, conn: &Rc<Conn>) {
    local.service.opened(conn);
    let memory = &local.memory;
    let mut io = Io {
        stream,
        written: 0,
        carry: Vec::new(),
        need: PREFIX,
        carry_held: Held::new(&memory.requests, 0),
        out_held: Held::new(&memory.responses, 0),
        leave: None,
        wait: None,
        skip: 0,
    };
    let end = io.run(local, conn).await;
    conn.closing.set(true);
    local.service.closed(conn);
    match end {
        End::PeerClosed => {}
        End::Closing => io.last_words(&conn.out.take()).await,
        End::Io(error) => {
            stats::add(&local.stats.io_errors, 1);
            tracing::debug!(peer = %conn.peer, %error, "connection lost");
        }
        End::Framing(error) => {
            stats::add(&local.stats.framing_errors, 1);
            tracing::info!(peer = %conn.peer, %error, "broken framing, closing");
            let mut rest = conn.out.take();
            rest.extend_from_slice(&refuse::farewell(&error));
            io.last_words(&rest).await;
        }
        End::Memory(why) => {
            let mut rest = conn.out.take();
            let code = ResponseCode::SYSTEM_BUSY;
            Builder::response(&mut rest, SerializeType::Json, code, 0, Some(&why)).finish();
            io.last_words(&rest).await;
        }
        End::Panic => tracing::error!(peer = %conn.peer, "a request panicked outside of its own guard, closing"),
    }
}

struct Io {
    stream: TcpStream,
    /// How much of `conn.out` is written already.
    written: usize,
    /// The start of a frame whose rest has not come yet, or frames that wait for room.
    carry: Vec<u8>,
    /// How many bytes `carry` needs before its first frame is whole.
    need: usize,
    carry_held: Held,
    out_held: Held,
    /// To collect the large frame that is unfinished.
    leave: Option<Leave>,
    /// For memory, before anything more is read.
    wait: Option<Wait>,
    /// How many bytes of a refused frame are still to come.
    skip: usize,
}

type Wait = Pin<Box<dyn Future<Output = Result<Option<Leave>, Duration>>>>;

enum Event {
    Woken,
    Writable,
    Read(io::Result<usize>),
    Waited(Result<Option<Leave>, Duration>),
}

impl Io {
    async fn run<S: Service>(&mut self, local: &Local<S>, conn: &Rc<Conn>) -> End {
        loop {
            if let Err(error) = self.write(local, conn) {
                return End::Io(error);
            }
            if conn.closing.get() {
                return End::Closing;
            }
            let pending = conn.out.borrow().len() - self.written;
            // By the whole buffer, what is written included: it is given back only as a whole.
            let paused = conn.is_full();
            if !paused && self.carry.len() >= self.need {
                // Frames that were left over: the peer has taken its answers, go on with them.
                let bytes = std::mem::take(&mut self.carry);
                if let Err(end) = self.turn(local, conn, &bytes) {
                    return end;
                }
                self.count(conn);
                if self.carry.len() >= self.need {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            if paused {
                stats::add(&local.stats.paused, 1);
            } else if self.wait.is_none() {
                self.wait = self.wait_for_memory(&local.memory);
            }
            match poll_fn(|cx| self.poll(cx, local, conn, pending > 0, !paused)).await {
                Event::Woken | Event::Writable => {}
                Event::Read(Ok(0)) => return End::PeerClosed,
                Event::Read(Err(error)) => return End::Io(error),
                Event::Read(Ok(n)) => {
                    stats::add(&local.stats.reads, 1);
                    stats::add(&local.stats.bytes_in, n as u64);
                    if let Err(end) = self.received(local, conn, n) {
                        return end;
                    }
                    self.count(conn);
                }
                Event::Waited(Ok(leave)) => {
                    self.wait = None;
                    self.leave = leave;
                    self.count(conn);
                }
                Event::Waited(Err(waited)) => {
                    self.wait = None;
                    if let Err(end) = self.refuse(local, conn, waited) {
                        return end;
                    }
                    self.count(conn);
                }
            }
        }
    }

    /// What must be waited for before more is read, if anything.
    fn wait_for_memory(&mut self, memory: &Arc<Memory>) -> Option<Wait> {
        if self.leave.is_some() || self.skip > 0 {
            return None;
        }
        if self.is_large() {
            self.leave = memory.try_large(self.need);
            if self.leave.is_some() {
                return None;
            }
            // What large frames hold while they wait must not be in the way of small ones.
            let patience = if memory.requests.used() > REQUESTS / 2 { Duration::ZERO } else { BUSY_AFTER };
            return Some(Box::pin(memory.admission(Some(self.need), patience)));
        }
        memory.requests.is_full().then(|| Box::pin(memory.admission(None, BUSY_AFTER)) as Wait)
    }

    /// Counts what this connection holds of requests.
    fn count(&mut self, conn: &Conn) {
        // A large frame is counted by its leave.
        self.carry_held.set(if self.leave.is_some() { 0 } else { self.carry.capacity() });
        let began = (!self.carry.is_empty()).then(|| conn.unfinished.get().unwrap_or_else(Instant::now));
        conn.unfinished.set(began);
    }

    /// Gives up on the unfinished frame after waiting for memory in vain: answers SYSTEM_BUSY and reads past the rest of it.
    fn refuse<S: Service>(&mut self, local: &Local<S>, conn: &Conn, waited: Duration) -> Result<(), End> {
        if self.carry.len() < PREFIX {
            return Ok(());
        }
        let bytes = self.need;
        let memory = &local.memory;
        memory.refused.fetch_add(1, Relaxed);
        let why = format!(
            "[OVERLOAD]system busy, a request of {bytes} bytes waited {} ms for memory: unfinished requests hold {} bytes, \
             limit {}, large ones {}, limit {}",
            waited.as_millis(),
            memory.requests.used(),
            memory.requests.limit(),
            memory.large_used(),
            LARGE,
        );
        tracing::warn!(peer = %conn.peer, why, "a request is refused");
        let carry = std::mem::take(&mut self.carry);
        let Some((kind, opaque, oneway)) = frame::head_of_unfinished(&carry) else { return Err(End::Memory(why)) };
        if !oneway {
            let code = ResponseCode::SYSTEM_BUSY;
            Builder::response(&mut conn.out(), kind, code, opaque, Some(&why)).finish();
        }
        self.skip = bytes - carry.len();
        self.need = PREFIX;
        Ok(())
    }

    /// Whether the unfinished frame is too large for the shard's buffer and is collected in `carry`.
    fn is_large(&self) -> bool {
        self.need > READ_BUFFER
    }

    fn poll<S: Service>(
        &mut self,
        cx: &mut Context<'_>,
        local: &Local<S>,
        conn: &Conn,
        write: bool,
        read: bool,
    ) -> Poll<Event> {
        if conn.woken.replace(false) {
            return Poll::Ready(Event::Woken);
        }
        conn.waker.set(Some(cx.waker().clone()));
        if write && self.stream.poll_write_ready(cx).is_ready() {
            return Poll::Ready(Event::Writable);
        }
        if !read {
            return Poll::Pending;
        }
        if let Some(wait) = &mut self.wait {
            return wait.as_mut().poll(cx).map(Event::Waited);
        }
        let stream = Pin::new(&mut self.stream);
        let filled = if self.need > READ_BUFFER {
            let have = self.carry.len();
            // Room grows with what has arrived: a length field alone reserves nothing.
            let room = (self.need - have).min(READ_BUFFER);
            self.carry.resize(have + room, 0);
            let mut buf = ReadBuf::new(&mut self.carry[have..]);
            let poll = stream.poll_read(cx, &mut buf);
            let n = buf.filled().len();
            self.carry.truncate(have + n);
            poll.map_ok(|()| n)
        } else {
            let mut shared = local.read_buffer.borrow_mut();
            let mut buf = ReadBuf::new(&mut shared[self.carry.len()..]);
            stream.poll_read(cx, &mut buf).map_ok(|()| buf.filled().len())
        };
        filled.map(Event::Read)
    }

    fn received<S: Service>(&mut self, local: &Local<S>, conn: &Rc<Conn>, n: usize) -> Result<(), End> {
        if self.is_large() {
            if self.carry.len() < self.need {
                return Ok(());
            }
            let bytes = std::mem::take(&mut self.carry);
            let turned = self.turn(local, conn, &bytes);
            self.leave = None;
            return turned;
        }
        let mut shared = local.read_buffer.borrow_mut();
        if self.skip > 0 {
            let skipped = self.skip.min(n);
            self.skip -= skipped;
            return if skipped == n { Ok(()) } else { self.turn(local, conn, &shared[skipped..n]) };
        }
        let have = self.carry.len();
        shared[..have].copy_from_slice(&self.carry);
        self.carry.clear();
        self.turn(local, conn, &shared[..have + n])
    }

    /// Cuts `bytes` into frames and hands them to the service; what is left goes into `carry`.
    fn turn<S: Service>(&mut self, local: &Local<S>, conn: &Rc<Conn>, bytes: &[u8]) -> Result<(), End> {
        let mut frames = Vec::with_capacity(8);
        let mut ends = Vec::with_capacity(8);
        let mut at = 0;
        let mut broken = None;
        self.need = PREFIX;
        while frames.len() < FRAMES_MAX {
            match frame::decode(&bytes[at..], FRAME_LENGTH_MAX) {
                Ok(Decoded::Frame { len, frame }) => {
                    at += len;
                    frames.push(frame);
                    ends.push(at);
                }
                Ok(Decoded::Incomplete { need }) => {
                    self.need = need;
                    break;
                }
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            }
        }
        let mut used = 0;
        if !frames.is_empty() {
            conn.active.set(Instant::now());
            stats::add(&local.stats.turns, 1);
            if conn.out.borrow().capacity() == 0 {
                *conn.out.borrow_mut() = local.take_buffer();
            }
            let taken = catch_unwind(AssertUnwindSafe(|| local.service.turn(conn, &frames))).map_err(|_| End::Panic)?;
            stats::add(&local.stats.frames, taken as u64);
            if taken < frames.len() {
                broken = None;
                self.need = PREFIX;
            }
            used = if taken == 0 { 0 } else { ends[taken - 1] };
        }
        if let Some(error) = broken {
            return Err(End::Framing(error));
        }
        let rest = &bytes[used..];
        if !rest.is_empty() {
            if self.need > READ_BUFFER {
                self.carry.reserve_exact(rest.len().max(READ_BUFFER));
            }
            self.carry.extend_from_slice(rest);
        } else if self.carry.capacity() > 0 {
            self.carry = Vec::new();
        }
        Ok(())
    }

    /// Writes as much of `conn.out` as the socket takes now.
    fn write<S: Service>(&mut self, local: &Local<S>, conn: &Conn) -> io::Result<()> {
        let mut out = conn.out.borrow_mut();
        if out.is_empty() {
            return Ok(());
        }
        while self.written < out.len() {
            match self.stream.try_write(&out[self.written..]) {
                Ok(n) => {
                    self.written += n;
                    stats::add(&local.stats.writes, 1);
                    stats::add(&local.stats.bytes_out, n as u64);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.out_held.set(out.capacity());
                    conn.unwritten.set(Some(conn.unwritten.get().unwrap_or_else(Instant::now)));
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        }
        conn.active.set(Instant::now());
        self.written = 0;
        self.out_held.set(0);
        conn.unwritten.set(None);
        local.give_buffer(std::mem::take(&mut *out));
        Ok(())
    }

    /// Writes `bytes` (behind what was written of them), says that no more comes, and drains what the peer still sends, so
    /// that a reset does not destroy the answer on its way. Bounded by `LAST_WORDS`.
    async fn last_words(&mut self, bytes: &[u8]) {
        use tokio::io::AsyncWriteExt;
        let rest = bytes.get(self.written..).unwrap_or_default();
        let talk = async {
            if self.stream.write_all(rest).await.is_ok() && self.stream.shutdown().await.is_ok() {
                // The sink does not live across an await: it would be part of every connection's task.
                while self.stream.readable().await.is_ok() {
                    match self.stream.try_read(&mut [0; 4096]) {
                        Ok(1..) => {}
                        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                        _ => return,
                    }
                }
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, talk).await;
    }
}
