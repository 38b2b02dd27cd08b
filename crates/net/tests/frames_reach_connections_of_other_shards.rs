//! Connections are spread over the shards, and whoever knows a connection's id can write a frame to it from any shard. A
//! frame for a connection that is gone is dropped: it does not reach the connection that came in its place.
//! Method: a service that notes its connections and forwards what a request says to the connection that it names; four
//! clients on two shards forward to each other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cometmq_net::{Conn, ConnId, Listen, Mailbox, Server, Service, ShardId};
use cometmq_wire::frame::{self, BadFrame, Builder, Decoded, FRAME_LENGTH_MAX, OwnedFrame};
use cometmq_wire::header::{Language, SerializeType};
use cometmq_wire::{Frame, RequestCode, ResponseCode};

const LONG: Duration = Duration::from_secs(10);

/// Request codes of the service.
const FORWARD: i32 = 1;
const PANIC: i32 = 2;
/// Answered when the shard is woken, not in the turn.
const LATER: i32 = 3;

/// Connections by the address of their peer. What was noted stays when the connection is gone.
type Book = Arc<Mutex<HashMap<SocketAddr, ConnId>>>;

struct Post {
    book: Book,
    mailboxes: Vec<Mailbox>,
    shard: ShardId,
    later: RefCell<Vec<(ConnId, i32)>>,
}

fn answer(opaque: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Builder::response(&mut out, SerializeType::Json, ResponseCode::SUCCESS, opaque, None).body(body).finish();
    out
}

impl Service for Post {
    fn opened(&self, conn: &Rc<Conn>) {
        self.book.lock().unwrap().insert(conn.peer(), conn.id());
    }

    fn turn(&self, conn: &Rc<Conn>, frames: &[Result<Frame<'_>, BadFrame>]) -> usize {
        for frame in frames.iter().flatten() {
            let opaque = frame.head.opaque;
            match frame.head.code {
                FORWARD => {
                    let to: SocketAddr = frame.head.ext.find("to").unwrap().parse().unwrap();
                    let id = self.book.lock().unwrap()[&to];
                    self.mailboxes[id.shard.0].write(id, answer(opaque, frame.body));
                    conn.out().extend_from_slice(&answer(opaque, self.shard.0.to_string().as_bytes()));
                }
                LATER => {
                    self.later.borrow_mut().push((conn.id(), opaque));
                    self.mailboxes[self.shard.0].wake();
                }
                PANIC => panic!("a bug in the service"),
                other => unreachable!("{other}"),
            }
        }
        frames.len()
    }

    fn woken(&self) {
        for (conn, opaque) in self.later.take() {
            self.mailboxes[self.shard.0].write(conn, answer(opaque, b"later"));
        }
    }
}

struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self { stream, unread: Vec::new() }
    }

    fn addr(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    fn write(&mut self, code: i32, to: SocketAddr, opaque: i32, body: &[u8]) {
        let mut out = Vec::new();
        Builder::request(&mut out, SerializeType::Json, RequestCode(code), opaque, 0, Language::RUST, 513)
            .ext(|w| w.str("to", &to.to_string()))
            .body(body)
            .finish();
        self.stream.write_all(&out).unwrap();
    }

    /// The next frame; `None` = the connection ended.
    fn read(&mut self) -> Option<(i32, Vec<u8>)> {
        loop {
            if let Decoded::Frame { len, frame } = frame::decode(&self.unread, FRAME_LENGTH_MAX).unwrap() {
                let opaque = frame.unwrap().head.opaque;
                let owned = OwnedFrame::new(self.unread.drain(..len).collect()).unwrap();
                return Some((opaque, owned.body().to_vec()));
            }
            let mut buf = [0; 4096];
            match self.stream.read(&mut buf) {
                Ok(0) => return None,
                Ok(n) => self.unread.extend_from_slice(&buf[..n]),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return None,
                Err(e) => panic!("{e}"),
            }
        }
    }
}

struct Running {
    server: Server,
    book: Book,
    runtime: tokio::runtime::Runtime,
}

fn start() -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let book = Book::default();
    let listen = [Listen { addr: "127.0.0.1:0".parse().unwrap(), role: 0 }];
    let shared = book.clone();
    let make = move |shard, all: &[Mailbox]| Post {
        book: shared.clone(),
        mailboxes: all.to_vec(),
        shard,
        later: RefCell::default(),
    };
    let server = runtime.block_on(async { Server::start("post", &listen, 2, LONG, make) }).unwrap();
    Running { server, book, runtime }
}

impl Running {
    fn connect(&self) -> Client {
        let client = Client::connect(self.server.local()[0]);
        self.wait(|| self.book.lock().unwrap().contains_key(&client.addr()));
        client
    }

    fn wait(&self, done: impl Fn() -> bool) {
        let end = Instant::now() + LONG;
        while !done() {
            assert!(Instant::now() < end, "it never happened");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn connections(&self) -> Vec<u64> {
        self.server.stats().iter().map(|s| s.connections.load(std::sync::atomic::Ordering::Relaxed)).collect()
    }
}

#[test]
fn each_to_each() {
    let running = start();
    let mut clients: Vec<Client> = (0..4).map(|_| running.connect()).collect();
    assert_eq!(running.connections(), [2, 2]);
    let addrs: Vec<SocketAddr> = clients.iter().map(Client::addr).collect();
    for from in 0..4 {
        for to in 0..4 {
            let (opaque, text) = ((10 * from + to) as i32, format!("{from} to {to}"));
            clients[from].write(FORWARD, addrs[to], opaque, text.as_bytes());
            let shard = running.book.lock().unwrap()[&addrs[from]].shard.0.to_string();
            let expected = [(opaque, text.into_bytes()), (opaque, shard.into_bytes())];
            if from == to {
                let mut both = [clients[from].read().unwrap(), clients[from].read().unwrap()];
                both.sort_unstable_by_key(|(_, body)| std::cmp::Reverse(body.len()));
                assert_eq!(both, expected);
            } else {
                assert_eq!(clients[from].read().unwrap(), expected[1]);
                assert_eq!(clients[to].read().unwrap(), expected[0]);
            }
        }
    }
    running.server.stop(Duration::ZERO);
    drop(running.runtime);
}

#[test]
fn what_was_for_a_connection_that_is_gone_reaches_nobody() {
    let running = start();
    let (mut sender, gone) = (running.connect(), running.connect());
    let (old, shard) = (gone.addr(), running.book.lock().unwrap()[&gone.addr()].shard);
    drop(gone);
    running.wait(|| running.connections().iter().sum::<u64>() == 1);
    let mut heir = running.connect();
    assert_eq!(running.book.lock().unwrap()[&heir.addr()].shard, shard, "it does not take the place");
    sender.write(FORWARD, old, 1, b"for the one that is gone");
    assert_eq!(sender.read().unwrap().0, 1);
    let addr = heir.addr();
    sender.write(FORWARD, addr, 2, b"for the heir");
    assert_eq!(heir.read().unwrap(), (2, b"for the heir".to_vec()));
    running.server.stop(Duration::ZERO);
}

#[test]
fn a_panic_ends_its_connection_and_no_other() {
    let running = start();
    let mut clients: Vec<Client> = (0..4).map(|_| running.connect()).collect();
    let addr = clients[0].addr();
    clients[0].write(PANIC, addr, 1, b"");
    assert_eq!(clients[0].read(), None);
    for client in &mut clients[1..] {
        let addr = client.addr();
        client.write(FORWARD, addr, 7, b"still here");
        assert_eq!([client.read().unwrap().0, client.read().unwrap().0], [7, 7]);
    }
    running.server.stop(Duration::ZERO);
}

/// A stop lets the answers out that are pending, ends every connection, and frees the port.
#[test]
fn a_stop_writes_what_is_pending() {
    let running = start();
    let addr = running.server.local()[0];
    let mut clients: Vec<Client> = (0..4).map(|_| running.connect()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        let to = client.addr();
        client.write(LATER, to, n as i32, b"");
    }
    running.wait(|| {
        running.server.stats().iter().map(|s| s.frames.load(std::sync::atomic::Ordering::Relaxed)).sum::<u64>() == 4
    });
    let reading =
        std::thread::spawn(move || clients.iter_mut().map(|client| (client.read(), client.read())).collect::<Vec<_>>());
    running.server.stop(Duration::from_secs(2));
    for (n, ends) in reading.join().unwrap().into_iter().enumerate() {
        assert_eq!(ends, (Some((n as i32, b"later".to_vec())), None));
    }
    assert!(std::net::TcpListener::bind(addr).is_ok(), "the port is still taken");
}
