//! What the tests of the broker share: a broker in this process, on real files or on a disk in memory, and peers that
//! talk to it over real sockets.

#![allow(dead_code)] // Each test uses its part.

pub mod gated;
pub mod peer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cometmq_base::Clock;
use cometmq_base::config::{Config, Role};
use cometmq_broker::{BrokerServer, Options};
use cometmq_nameserver::NameServer;
use cometmq_store::disk::{Disk, Real};
use tokio::runtime::Runtime;

pub use peer::*;

/// Where the store lies on a disk in memory.
pub const ROOT: &str = "/data/store";

pub struct TestBroker {
    pub server: BrokerServer,
    runtime: Runtime,
    dir: Option<tempfile::TempDir>,
}

impl TestBroker {
    /// On real files, with two shards.
    pub fn start(set: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut broker = Self::start_on(Arc::new(Real), dir.path().join("store"), set);
        broker.dir = Some(dir);
        broker
    }

    /// On a disk in memory, which keeps every byte of a file's length: files are small.
    pub fn start_in_memory(disk: impl Disk, set: &[(&str, &str)]) -> Self {
        let small = [
            ("mappedFileSizeCommitLog", "1048576"),
            ("mappedFileSizeConsumeQueue", "20000"),
            ("maxHashSlotNum", "500"),
            ("maxIndexNum", "2000"),
        ];
        let set: Vec<_> = small.iter().chain(set).copied().collect();
        Self::start_on(Arc::new(disk), PathBuf::from(ROOT), &set)
    }

    /// On the files in `root`, which may be there already.
    pub fn start_at(root: PathBuf, set: &[(&str, &str)]) -> Self {
        Self::start_on(Arc::new(Real), root, set)
    }

    fn start_on(disk: Arc<dyn Disk>, root: PathBuf, set: &[(&str, &str)]) -> Self {
        let mut config = Config::new(Role::Broker);
        let root = root.to_str().unwrap();
        let own = [("storePathRootDir", root), ("listenPort", "0"), ("brokerIP1", "127.0.0.1"), ("brokerName", "b1")];
        for (key, value) in own.iter().chain(set) {
            config.set(key, value).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let host = "127.0.0.1".parse().unwrap();
        let options = Options { config, host, shards: 2, disk, clock: Clock::System };
        let server = runtime.block_on(BrokerServer::start(options)).unwrap();
        Self { server, runtime, dir: None }
    }

    pub fn connect(&self) -> Peer {
        Peer::connect(self.server.local())
    }

    /// A counter of GET_BROKER_RUNTIME_INFO.
    pub fn counter(&self, name: &str) -> u64 {
        self.connect().ok(&Ask::new(28)).counter(name)
    }

    pub fn stop(self) {
        self.runtime.block_on(self.server.stop()).unwrap();
    }
}

pub struct TestNameServer {
    server: NameServer,
    _runtime: Runtime,
    _dir: tempfile::TempDir,
}

impl TestNameServer {
    pub fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let options = cometmq_nameserver::Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            kv_config_path: dir.path().join("kvConfig.json"),
            config: Config::new(Role::NameServer),
            clock: Clock::System,
        };
        let server = runtime.block_on(async { NameServer::start(options) }).unwrap();
        Self { server, _runtime: runtime, _dir: dir }
    }

    pub fn addr(&self) -> String {
        self.server.addr().to_string()
    }

    pub fn connect(&self) -> Peer {
        Peer::connect(self.server.addr())
    }
}

/// Somebody else: sends one message after the other, each of which must succeed, until stopped.
pub struct SteadySender {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<Duration>>,
}

impl SteadySender {
    /// Sends to queue 0 of `topic` over a connection of its own.
    pub fn start(broker: &TestBroker, topic: &str) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (mut peer, topic) = (broker.connect(), topic.to_string());
        peer.ok(&send(&topic, 0, "steady"));
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            let mut slowest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                peer.ok(&send(&topic, 0, "steady"));
                slowest = slowest.max(began.elapsed());
                count.fetch_add(1, Ordering::Relaxed);
            }
            slowest
        });
        Self { stop, sent, thread: Some(thread) }
    }

    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until it has sent `more` messages from now on.
    pub fn goes_on(&self, more: u64) {
        let goal = self.sent() + more;
        wait_until("sent by the steady sender", || {
            self.sent() >= goal || self.thread.as_ref().is_none_or(JoinHandle::is_finished)
        });
        assert!(self.sent() >= goal, "the steady sender got an error");
    }

    /// Returns how long its slowest send took.
    pub fn stop(mut self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().expect("the steady sender got an error")
    }
}

/// For what has no event to wait for.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "not {what} within {LONG:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All messages of a queue from `offset` on, without a hole.
pub fn drain(peer: &mut Peer, topic: &str, queue: i32, mut offset: i64) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    loop {
        let got = peer.ask(&pull(topic, queue, offset));
        if got.code == 19 {
            return bodies;
        }
        assert_eq!((got.code, got.remark.as_str()), (0, "FOUND"), "{topic}-{queue} at {offset}");
        for (at, body) in got.messages() {
            assert_eq!(at, offset, "{topic}-{queue}");
            offset += 1;
            bodies.push(body);
        }
        assert_eq!(got.num("nextBeginOffset"), offset);
    }
}

/// Whether a file of a store on a disk in memory is there.
pub fn exists(disk: &dyn Disk, path: &str) -> bool {
    disk.read_all(&Path::new(ROOT).join(path)).is_ok()
}
