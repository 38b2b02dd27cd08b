//! A cluster of two brokers and two name servers goes on when one of each is killed, and takes them back when they return.
//! Method: four processes with Java's configuration files; a producer that never pauses and a group of two consumers. One name
//! server and one broker are killed with SIGKILL while it sends, and later started again on the same directories and ports.
//! No send may fail after the client's own retries, and whatever was acknowledged must be consumed.

mod support;

use std::collections::{BTreeSet, HashMap};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cometmq_client::{
    Admin, Client, ClientOptions, Consumer, Message, Producer, StartFrom, SubExpression, TopicConfig,
};
use support::*;

const TOPIC: &str = "orders";
const QUEUES: i32 = 4;
/// How soon the survivor's messages must be consumed after the kill.
const DRAIN: Duration = Duration::from_secs(30);
const BROKERS: [&str; 2] = ["broker-a", "broker-b"];

/// A port that is free together with the one two below it, and that no outgoing connection is given while its owner is down.
fn port() -> u16 {
    let first = 12_000 + std::process::id() as u16 % 20_000 / 4 * 4;
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (first..32_000).chain(12_000..first).find(|p| free(*p) && free(p - 2)).unwrap()
}

/// A process of the cluster, which can be started again as it was.
struct Node {
    args: Vec<String>,
    addr: SocketAddr,
    child: Option<Child>,
}

impl Node {
    /// `dir` is its directory; its port is written into its configuration file there.
    fn name_server(dir: PathBuf) -> Self {
        let port = port();
        std::fs::create_dir_all(&dir).unwrap();
        let conf = dir.join("namesrv.conf");
        std::fs::write(&conf, format!("listenPort={port}\nkvConfigPath={}\n", dir.join("kvConfig.json").display()))
            .unwrap();
        Self::start(&["namesrv", "--host", "127.0.0.1", "-c", conf.to_str().unwrap()], port)
    }

    fn broker(dir: PathBuf, name: &str, name_servers: &str) -> Self {
        let port = port();
        std::fs::create_dir_all(&dir).unwrap();
        let conf = dir.join("broker.conf");
        let text = format!(
            "brokerClusterName=DefaultCluster\nbrokerName={name}\nbrokerId=0\nbrokerRole=ASYNC_MASTER\n\
             flushDiskType=ASYNC_FLUSH\nbrokerIP1=127.0.0.1\nlistenPort={port}\nstorePathRootDir={}\n\
             registerNameServerPeriod=10000\n",
            dir.join("store").display()
        );
        std::fs::write(&conf, text).unwrap();
        let conf = conf.to_str().unwrap();
        Self::start(&["broker", "--host", "127.0.0.1", "--shards", "1", "-n", name_servers, "-c", conf], port)
    }

    fn start(args: &[&str], port: u16) -> Self {
        let args = args.iter().map(ToString::to_string).collect();
        let mut node = Self { args, addr: SocketAddr::from(([127, 0, 0, 1], port)), child: None };
        node.start_again();
        node
    }

    fn start_again(&mut self) {
        let mut command = Command::new(COMET);
        command.args(&self.args).env("RUST_LOG", "error").env_remove("NAMESRV_ADDR");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let line = lines_of(child.stdout.take().unwrap()).recv_timeout(LONG);
        self.child = Some(child);
        let line = line.unwrap_or_else(|_| panic!("no ready line of {:?}", self.args));
        assert!(line.starts_with("ready ") && line.ends_with(&self.addr.to_string()), "{line}");
    }

    /// SIGKILL.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What was sent and what came of it.
#[derive(Default)]
struct Books {
    /// Body → the broker that acknowledged it.
    acknowledged: HashMap<String, String>,
    /// Body → how often it was consumed.
    consumed: HashMap<String, usize>,
    failed: Vec<String>,
    /// By member: the queues it has.
    shares: HashMap<usize, BTreeSet<(String, i32)>>,
}

impl Books {
    /// Acknowledged messages of the brokers of `of` that were not consumed yet.
    fn backlog(&self, of: &[&str]) -> usize {
        let waits = |(body, broker): &(&String, &String)| {
            of.contains(&broker.as_str()) && !self.consumed.contains_key(body.as_str())
        };
        self.acknowledged.iter().filter(waits).count()
    }

    fn on(&self, broker: &str) -> usize {
        self.acknowledged.values().filter(|b| *b == broker).count()
    }

    /// Whether the two members have `queues` queues between them, each some and none twice.
    fn is_shared_out(&self, queues: usize) -> bool {
        let shares: Vec<_> = self.shares.values().collect();
        let [a, b] = shares[..] else { return false };
        !a.is_empty() && !b.is_empty() && a.is_disjoint(b) && a.len() + b.len() == queues
    }
}

type Shared = Arc<Mutex<Books>>;

async fn until(what: &str, limit: Duration, books: &Shared, done: impl Fn(&Books) -> bool) -> Duration {
    let began = Instant::now();
    while !done(&books.lock().unwrap()) {
        if began.elapsed() > limit {
            let books = books.lock().unwrap();
            panic!(
                "{what}: not within {limit:?}; backlog {} and {}, failed sends {:?}, shares {:?}",
                books.backlog(&BROKERS[..1]),
                books.backlog(&BROKERS[1..]),
                books.failed,
                books.shares
            );
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}

async fn client(name_servers: &str, instance: &str) -> Client {
    let mut options = ClientOptions::new(name_servers).unwrap();
    options.instance = Some(instance.to_string());
    // Java's 30 s would make a slow test, nothing else.
    options.heartbeat_interval = Duration::from_secs(1);
    options.route_interval = Duration::from_secs(1);
    Client::start(options).await.unwrap()
}

/// Waits until this name server says that the topic is on both brokers.
async fn until_route_has_both(name_server: &Node) {
    let client = client(&name_server.addr.to_string(), "looks").await;
    let admin = Admin::new(&client);
    let end = Instant::now() + LONG;
    loop {
        let route = admin.route(TOPIC).await;
        let brokers: BTreeSet<_> = match &route {
            Ok(route) => route.publish_queues().iter().map(|q| q.broker_name.as_str()).collect(),
            Err(_) => BTreeSet::new(),
        };
        if brokers == BROKERS.into() {
            break;
        }
        assert!(Instant::now() < end, "{} says {brokers:?}, {route:?}", name_server.addr);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.shutdown().await;
}

/// Sends one numbered message after the other until told to stop.
async fn produce(client: Client, books: Shared, stop: Arc<AtomicBool>) {
    let producer = Producer::builder(&client, "orders-out").start().await.unwrap();
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let body = format!("order {n}");
        let sent = producer.send(Message::new(TOPIC, body.clone())).await;
        match sent {
            Ok(sent) => drop(books.lock().unwrap().acknowledged.insert(body, sent.queue.broker_name)),
            Err(error) => books.lock().unwrap().failed.push(error.to_string()),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn consume(client: Client, member: usize, books: Shared) {
    let builder = Consumer::builder(&client, "billing").subscribe(TOPIC, SubExpression::All).from(StartFrom::First);
    let builder = builder.rebalance_interval(Duration::from_millis(500)).commit_interval(Duration::from_millis(200));
    let mut consumer = builder.start().await.unwrap();
    loop {
        let got = tokio::time::timeout(Duration::from_millis(20), consumer.recv()).await;
        let share = consumer.assigned().into_iter().filter(|q| q.topic == TOPIC);
        let share = share.map(|q| (q.broker_name, q.queue_id)).collect();
        let mut books = books.lock().unwrap();
        books.shares.insert(member, share);
        match got {
            Ok(Some(message)) => {
                let body = String::from_utf8(message.body().unwrap().to_vec()).unwrap();
                *books.consumed.entry(body).or_default() += 1;
            }
            Ok(None) => return,
            Err(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_brokers_and_two_name_servers() {
    let dir = tempfile::tempdir().unwrap();
    let mut name_servers = ["names-1", "names-2"].map(|name| Node::name_server(dir.path().join(name)));
    let names = name_servers.iter().map(|n| n.addr.to_string()).collect::<Vec<_>>().join(";");
    let mut brokers = BROKERS.map(|name| Node::broker(dir.path().join(name), name, &names));
    let admin_client = client(&names, "admin").await;
    let topic = TopicConfig {
        topic_name: TOPIC.to_string(),
        read_queue_nums: QUEUES,
        write_queue_nums: QUEUES,
        ..TopicConfig::default()
    };
    for broker in &brokers {
        Admin::new(&admin_client).create_topic(&broker.addr.to_string(), &topic).await.unwrap();
    }
    for name_server in &name_servers {
        until_route_has_both(name_server).await;
    }

    let (books, stop) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let members = [client(&names, "member-0").await, client(&names, "member-1").await];
    let consuming = members.clone().into_iter().enumerate().map(|(n, c)| tokio::spawn(consume(c, n, books.clone())));
    let consuming: Vec<_> = consuming.collect();
    until("all queues shared out", LONG, &books, |b| b.is_shared_out(2 * QUEUES as usize)).await;
    let sender = client(&names, "sender").await;
    let producing = tokio::spawn(produce(sender.clone(), books.clone(), stop.clone()));
    until("sends to both", LONG, &books, |b| BROKERS.iter().all(|name| b.on(name) >= 100)).await;
    until("first messages consumed", LONG, &books, |b| b.consumed.len() >= 200).await;
    {
        let books = books.lock().unwrap();
        assert!(books.consumed.values().all(|times| *times == 1), "twice, though nothing was wrong");
        assert!(books.failed.is_empty(), "{:?}", books.failed);
    }

    // One of each is killed in the midst of it.
    name_servers[0].kill();
    brokers[1].kill();
    let on_survivor = books.lock().unwrap().on(BROKERS[0]);
    until("sends go on", DRAIN, &books, |b| b.on(BROKERS[0]) >= on_survivor + 200).await;
    until("the survivor's backlog", DRAIN, &books, |b| b.backlog(&BROKERS[..1]) == 0).await;
    until("the survivor's queues shared out", DRAIN, &books, |b| b.is_shared_out(QUEUES as usize)).await;

    // And comes back.
    let mut books_before = books.lock().unwrap().on(BROKERS[1]);
    name_servers[0].start_again();
    brokers[1].start_again();
    for name_server in &name_servers {
        until_route_has_both(name_server).await;
    }
    books_before += 100;
    until("the one that is back is sent to", DRAIN, &books, |b| b.on(BROKERS[1]) >= books_before).await;
    until("all queues shared out again", DRAIN, &books, |b| b.is_shared_out(2 * QUEUES as usize)).await;
    stop.store(true, Ordering::Relaxed);
    producing.await.unwrap();
    until("everything consumed", DRAIN, &books, |b| b.backlog(&BROKERS) == 0).await;
    for client in members.iter().chain([&sender, &admin_client]) {
        client.shutdown().await;
    }
    for task in consuming {
        task.await.unwrap();
    }
    let books = books.lock().unwrap();
    assert!(books.failed.is_empty(), "failed sends: {:?}", books.failed);
}
