//! A consumer takes what is in a queue, whatever that is: a message without a body that another server once stored, and a
//! retry of a message that its subscription by tag let through. Method: a store that is written without a server, `comet
//! serve` on it, our client and `comet consume`; the retry is asked for by a raw request, as Java's client does.

mod support;

use std::sync::Arc;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_client::{Client, ClientOptions, Consumer, Message, Producer, Received, StartFrom, SubExpression};
use cometmq_store::disk::Real;
use cometmq_store::{Batch, Options, Store};
use cometmq_wire::record::Draft;
use support::*;

async fn next(consumer: &mut Consumer) -> Received {
    tokio::time::timeout(LONG, consumer.recv()).await.expect("nothing came").unwrap()
}

fn text(message: &Received) -> &str {
    std::str::from_utf8(message.body().unwrap()).unwrap()
}

/// CONSUMER_SEND_MSG_BACK with the shortest delay.
fn give_back(group: &str, message: &Received) -> Ask {
    let ask = Ask::new(36).field("group", group).field("offset", message.log_offset).field("delayLevel", 1);
    ask.field("originMsgId", message.msg_id()).field("originTopic", &message.topic).field("unitMode", false)
}

fn builder(client: &Client, group: &str, topic: &str, tags: &str) -> cometmq_client::ConsumerBuilder {
    let builder = Consumer::builder(client, group).subscribe(topic, SubExpression::Tags(tags.to_string()));
    builder.from(StartFrom::First).rebalance_interval(Duration::from_millis(200))
}

/// Case C01.
#[tokio::test]
async fn an_empty_body_of_old_data() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    {
        let options = Options { segment_bytes: Some(1 << 20), ..Options::new(&data) };
        let store = Store::open(options, Arc::new(Real), Clock::System).unwrap();
        let queue = store.queue("orders", 0).unwrap();
        let mut batch = Batch::default();
        for body in ["before", "", "after"] {
            let host = "127.0.0.1:10911".parse().unwrap();
            let draft = Draft {
                topic: "orders",
                queue_id: 0,
                flag: 0,
                sys_flag: 0,
                born_ms: 1,
                born_host: host,
                store_host: host,
                reconsume_times: 0,
                prepared_offset: 0,
                body: body.as_bytes(),
                properties: "TAGS\u{1}A\u{2}",
            };
            batch.push(&draft, &queue).unwrap();
        }
        store.append(&mut batch).unwrap();
        store.close().unwrap();
    }
    let comet = Comet::start_with(&data, &["--namesrv-port", "0", "--broker-port", "0"]);
    let mut peer = Peer::connect(comet.broker);
    peer.ok(&create_topic("orders", 1, 6));
    let expected: [(i64, Vec<u8>); 3] = [(0, b"before".into()), (1, b"".into()), (2, b"after".into())];
    assert_eq!(peer.ok(&pull("orders", 0, 0)).messages(), expected);

    let namesrv = comet.namesrv.to_string();
    let client = Client::start(ClientOptions::new(&namesrv).unwrap()).await.unwrap();
    let mut consumer = builder(&client, "billing", "orders", "*").start().await.unwrap();
    assert_eq!(text(&next(&mut consumer).await), "before");
    let empty = next(&mut consumer).await;
    assert_eq!((text(&empty), empty.queue_offset), ("", 1));
    assert_eq!(text(&next(&mut consumer).await), "after");
    // It can be given back, too.
    peer.ok(&give_back("billing", &empty));
    let again = next(&mut consumer).await;
    assert_eq!((text(&again), again.topic.as_str(), again.reconsume_times), ("", "orders", 1));
    consumer.shutdown().await;
    client.shutdown().await;
    let printed = support::comet(&["consume", "orders", "--from", "first", "-n", &namesrv], "");
    assert_eq!((printed.code, printed.out.as_str()), (0, "before\n\nafter\n"), "{}", printed.err);
}

/// Case C39.
#[tokio::test]
async fn a_retry_of_a_message_that_was_subscribed_by_tag() {
    let dir = tempfile::tempdir().unwrap();
    let comet = Comet::start(&dir.path().join("data"));
    let mut peer = Peer::connect(comet.broker);
    let client = Client::start(ClientOptions::new(&comet.namesrv.to_string()).unwrap()).await.unwrap();
    let producer = Producer::builder(&client, "producers").start().await.unwrap();
    for (topic, tags) in [("plain", "A||B"), ("blanks", "A || B")] {
        let send = async |tag: &str, body: &str| {
            producer.send(Message::new(topic, body.to_string()).tags(tag)).await.unwrap();
        };
        for tag in ["C", "A", "C", "B", "C"] {
            send(tag, tag).await;
        }
        let mut consumer = builder(&client, topic, topic, tags).start().await.unwrap();
        let mut first = [next(&mut consumer).await, next(&mut consumer).await];
        first.sort_by_key(|m| text(m).to_string());
        assert_eq!(first.each_ref().map(|m| (text(m), m.reconsume_times)), [("A", 0), ("B", 0)], "{tags}");
        peer.ok(&give_back(topic, &first[0]));
        let again = next(&mut consumer).await;
        assert_eq!(
            (text(&again), again.topic.as_str(), again.tags(), again.reconsume_times),
            ("A", topic, Some("A"), 1)
        );
        // Once, and no C: the next that comes, behind both, is this one, delayed as long as the retry was.
        producer.send(Message::new(topic, "end").tags("B").delay_level(1)).await.unwrap();
        assert_eq!(text(&next(&mut consumer).await), "end", "{tags}");
        consumer.shutdown().await;
    }
    client.shutdown().await;
}
