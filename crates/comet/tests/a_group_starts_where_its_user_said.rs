//! A group without offsets gets, from the first: all that is there; from the last: nothing that is there, and all that is
//! sent once its consumer has started; from a time: what was stored since. Also where the first messages are deleted,
//! where the topic comes later than the consumer, and after the group was deleted. Method: our client against
//! `comet serve`; the deletion is that of a file of the log between two lives of the server.

mod support;

use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use cometmq_client::{
    Admin, Client, ClientOptions, Consumer, Message, MessageQueue, Producer, Puller, StartFrom, SubExpression,
};
use support::*;

const SMALL_FILES: [&str; 2] = ["--set", "mappedFileSizeCommitLog=1048576"];

struct Cluster {
    comet: Comet,
    client: Client,
    producer: Producer,
}

impl Cluster {
    async fn start(data: &Path) -> Self {
        let ports = ["--namesrv-port", "0", "--broker-port", "0"];
        let comet = Comet::start_with(data, &[&ports[..], &SMALL_FILES].concat());
        let client = Client::start(ClientOptions::new(&comet.namesrv.to_string()).unwrap()).await.unwrap();
        let producer = Producer::builder(&client, "producers").start().await.unwrap();
        Self { comet, client, producer }
    }

    /// With a topic of one queue, which has messages `old 0` to `old 4`.
    async fn with_messages(data: &Path) -> Self {
        let cluster = Self::start(data).await;
        cluster.create_topic().await;
        cluster.send("old", 5).await;
        cluster
    }

    /// Returns once the name server knows it.
    async fn create_topic(&self) {
        Peer::connect(self.comet.broker).ok(&create_topic("orders", 1, 6));
        let admin = Admin::new(&self.client);
        let end = Instant::now() + LONG;
        while let Err(error) = admin.route("orders").await {
            assert!(Instant::now() < end, "no route within {LONG:?}: {error}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn send(&self, name: &str, count: usize) {
        for n in 0..count {
            self.producer.send(Message::new("orders", format!("{name} {n}"))).await.unwrap();
        }
    }

    async fn consumer(&self, group: &str, from: StartFrom) -> Consumer {
        let builder = Consumer::builder(&self.client, group).subscribe("orders", SubExpression::All).from(from);
        builder.start().await.unwrap()
    }

    /// Gets `count` messages; that there are no others is shown by one that is sent behind them.
    async fn gets(&self, consumer: &mut Consumer, count: usize) -> Vec<String> {
        self.send("last", 1).await;
        let mut bodies = Vec::new();
        loop {
            let received = tokio::time::timeout(LONG, consumer.recv()).await;
            let message = received.unwrap_or_else(|_| panic!("only {bodies:?} within {LONG:?}")).unwrap();
            match String::from_utf8(message.body().unwrap().to_vec()).unwrap() {
                last if last == "last 0" => break,
                body => bodies.push(body),
            }
        }
        assert_eq!(bodies.len(), count, "{bodies:?}");
        bodies
    }

    async fn stop(self) {
        self.client.shutdown().await;
        assert!(self.comet.terminate().success());
    }
}

fn numbered(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name} {n}")).collect()
}

/// Case C27.
#[tokio::test]
async fn from_the_last_is_what_is_sent_after_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Cluster::with_messages(&dir.path().join("data")).await;
    let mut consumer = cluster.consumer("last", StartFrom::Last).await;
    cluster.send("new", 3).await;
    assert_eq!(cluster.gets(&mut consumer, 3).await, numbered("new", 3));
    consumer.shutdown().await;
    // It goes on where it was, whatever it is told.
    cluster.send("later", 2).await;
    let mut consumer = cluster.consumer("last", StartFrom::Last).await;
    assert_eq!(cluster.gets(&mut consumer, 2).await, numbered("later", 2));
    cluster.stop().await;
}

/// Case C27.
#[tokio::test]
async fn from_a_time_is_what_was_stored_since() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Cluster::with_messages(&dir.path().join("data")).await;
    let queue = cluster.producer.queues("orders").await.unwrap().remove(0);
    let time = stored_ms(&cluster.client, &queue, 4).await + 1;
    while i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap() < time {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    cluster.send("since", 3).await;
    let mut consumer = cluster.consumer("since", StartFrom::Timestamp(time)).await;
    cluster.send("new", 2).await;
    assert_eq!(cluster.gets(&mut consumer, 5).await, [numbered("since", 3), numbered("new", 2)].concat());
    cluster.stop().await;
}

async fn stored_ms(client: &Client, queue: &MessageQueue, offset: i64) -> i64 {
    let puller = Puller::new(client, "readers").unwrap();
    puller.pull(queue, offset, 1, None, &SubExpression::All).await.unwrap().messages[0].store_ms
}

/// Case C27: what is sent before the consumer knows of the topic was sent after its start.
#[tokio::test]
async fn from_the_last_of_a_topic_that_comes_later_is_all_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(&dir.path().join("data")).await;
    let mut consumer = cluster.consumer("early", StartFrom::Last).await;
    cluster.create_topic().await;
    cluster.send("new", 3).await;
    assert_eq!(cluster.gets(&mut consumer, 3).await, numbered("new", 3));
    cluster.stop().await;
}

/// Case C27.
#[tokio::test]
async fn where_the_first_messages_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let cluster = Cluster::with_messages(&data).await;
    // The sixth does not fit into the first file any more.
    for _ in 0..6 {
        cluster.producer.send(Message::new("filling", incompressible(200_000))).await.unwrap();
    }
    cluster.send("kept", 4).await;
    cluster.stop().await;
    std::fs::remove_file(data.join("commitlog/00000000000000000000")).unwrap();

    let cluster = Cluster::start(&data).await;
    let queue = cluster.producer.queues("orders").await.unwrap().remove(0);
    let admin = Admin::new(&cluster.client);
    assert_eq!((admin.min_offset(&queue).await.unwrap(), admin.max_offset(&queue).await.unwrap()), (5, 9));
    for (group, from) in [("first", StartFrom::First), ("long-ago", StartFrom::Timestamp(1))] {
        let mut consumer = cluster.consumer(group, from).await;
        let got: Vec<String> = take(&mut consumer, 4).await;
        assert_eq!(got, numbered("kept", 4), "{group}");
        consumer.shutdown().await;
    }
    let mut consumer = cluster.consumer("last", StartFrom::Last).await;
    cluster.send("new", 3).await;
    assert_eq!(cluster.gets(&mut consumer, 3).await, numbered("new", 3));
    cluster.stop().await;
}

async fn take(consumer: &mut Consumer, count: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    while bodies.len() < count {
        let message = tokio::time::timeout(LONG, consumer.recv()).await.expect("a message").unwrap();
        bodies.push(String::from_utf8(message.body().unwrap().to_vec()).unwrap());
    }
    bodies
}

/// Bytes that stay as many when they are compressed.
fn incompressible(len: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Cases C33 and C34: a deleted group starts at 0, and so does every group in a topic that was deleted.
#[tokio::test]
async fn after_a_deletion() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Cluster::with_messages(&dir.path().join("data")).await;
    let admin = |line: &str| {
        let namesrv = cluster.comet.namesrv.to_string();
        let words: Vec<&str> = ["admin"].into_iter().chain(line.split(' ')).chain(["-n", &namesrv]).collect();
        let ended = comet(&words, "");
        assert_eq!(ended.code, 0, "{line}: {}{}", ended.out, ended.err);
        ended.out
    };
    let consume_all = async |count, expected: Vec<String>| {
        let mut consumer = cluster.consumer("billing", StartFrom::First).await;
        assert_eq!(take(&mut consumer, count).await, expected);
        consumer.shutdown().await;
    };
    consume_all(5, numbered("old", 5)).await;
    assert!(admin("consumerProgress -g billing").contains("Consume Diff Total: 0"));
    admin("deleteSubGroup -c DefaultCluster -g billing -r true");
    consume_all(5, numbered("old", 5)).await;

    admin("deleteTopic -c DefaultCluster -t orders");
    admin("updateTopic -c DefaultCluster -t orders -r 1 -w 1");
    cluster.send("new", 3).await;
    let progress = admin("consumerProgress -g billing -t orders");
    assert!(progress.contains("Consume Diff Total: 3"), "{progress}");
    consume_all(3, numbered("new", 3)).await;
    assert!(admin("consumerProgress -g billing").contains("Consume Diff Total: 0"));
    cluster.stop().await;
}
