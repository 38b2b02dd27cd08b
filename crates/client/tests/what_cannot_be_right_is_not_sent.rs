//! What every broker would refuse is refused by the client before it asks anybody: names, batches of delayed messages, topics
//! of the system. Method: a name server and a broker that write down what they are asked, which is nothing.

mod fake;

use cometmq_client::{Admin, Consumer, Error, Message, Producer, RequestCode, SubExpression, TopicConfig};
use fake::{Answer, Fake};

const TOO_LONG: &str = "is longer than topic max length: 127";

fn says(error: &Error, words: &str) {
    assert!(error.to_string().contains(words), "'{error}' does not say '{words}'");
    assert!(!error.is_retryable(), "{error}");
}

async fn storing() -> Fake {
    Fake::start(|request| match request.code {
        RequestCode::SEND_MESSAGE_V2 => Answer::sent(),
        _ => Answer::code(cometmq_client::ResponseCode::SUCCESS),
    })
    .await
}

/// Cases C06, C14, C15 and C19.
#[tokio::test]
async fn names_and_batches() {
    let broker = storing().await;
    let ns = fake::name_server(vec![("a", broker.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").start().await.unwrap();
    let (longest, too_long) = ("t".repeat(127), "t".repeat(128));
    let bad = [
        (too_long.as_str(), TOO_LONG),
        ("a.b", "illegal characters"),
        ("a b", "illegal characters"),
        ("44334\u{2248}\u{2202}\u{e7}", "illegal characters"),
        ("", "topic is blank"),
        (" ", "topic is blank"),
    ];
    let admin = Admin::new(&client);
    for (name, words) in bad {
        says(&producer.send(Message::new(name, "x")).await.unwrap_err(), words);
        says(&producer.send_oneway(Message::new(name, "x")).await.unwrap_err(), words);
        says(&producer.send_batch(vec![Message::new(name, "x")]).await.unwrap_err(), words);
        says(&admin.create_topic(&broker.addr, &TopicConfig::new(name, 1, 6)).await.unwrap_err(), words);
        let consumer = Consumer::builder(&client, "g").subscribe(name, SubExpression::All).start().await;
        says(&consumer.err().unwrap(), words);
    }
    for name in ["SCHEDULE_TOPIC_XXXX", "TBW102", "RMQ_SYS_TRANS_HALF_TOPIC"] {
        says(&producer.send(Message::new(name, "x")).await.unwrap_err(), "is forbidden");
    }
    for property in ["DELAY", "TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"] {
        let batch = vec![Message::new("t", "x"), Message::new("t", "x").property(property, "3")];
        says(&producer.send_batch(batch).await.unwrap_err(), "a batch takes no delayed messages");
    }
    assert!(ns.seen(RequestCode::GET_ROUTEINFO_BY_TOPIC).is_empty());
    for code in [RequestCode::SEND_MESSAGE_V2, RequestCode::SEND_BATCH_MESSAGE, RequestCode::UPDATE_AND_CREATE_TOPIC] {
        assert!(broker.seen(code).is_empty(), "{code}");
    }
    for name in [longest.as_str(), "ok%|-_9"] {
        producer.send(Message::new(name, "x")).await.unwrap();
        assert_eq!(broker.seen(RequestCode::SEND_MESSAGE_V2).pop().unwrap().field("b"), name);
        admin.create_topic(&broker.addr, &TopicConfig::new(name, 1, 6)).await.unwrap();
        assert_eq!(broker.seen(RequestCode::UPDATE_AND_CREATE_TOPIC).pop().unwrap().field("topic"), name);
    }
}

/// Case C01.
#[tokio::test]
async fn an_empty_body() {
    let broker = storing().await;
    let ns = fake::name_server(vec![("a", broker.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").start().await.unwrap();
    says(&producer.send(Message::new("t", "")).await.unwrap_err(), "body length is zero");
    let batch = vec![Message::new("t", "x"), Message::new("t", "")];
    says(&producer.send_batch(batch).await.unwrap_err(), "body length is zero");
    assert!(ns.seen(RequestCode::GET_ROUTEINFO_BY_TOPIC).is_empty());
}
