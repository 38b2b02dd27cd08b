//! A name server that is down or silent is passed over, and the one that answered is kept; a topic that none knows is sent
//! by the route of TBW102, with four queues a broker at most. Method: scripted name servers.

mod fake;

use std::time::Duration;

use cometmq_client::{Client, ClientOptions, Error, Message, Producer, RequestCode, ResponseCode};
use fake::{Answer, Fake};

#[tokio::test]
async fn a_dead_and_a_silent_one_are_passed_over() {
    let silent = Fake::start(|_| None).await;
    let good = fake::name_server(vec![("a", "127.0.0.1:1".to_string())]).await;
    let mut options =
        ClientOptions::new(&format!("{};{};{}", fake::dead_addr().await, silent.addr, good.addr)).unwrap();
    options.request_timeout = Duration::from_millis(100);
    let client = Client::start(options).await.unwrap();
    for topic in ["t1", "t2", "t3"] {
        assert_eq!(client.route(topic).await.unwrap().master("a"), Some("127.0.0.1:1"));
    }
    assert_eq!(good.seen(RequestCode::GET_ROUTEINFO_BY_TOPIC).len(), 3);
    assert!(silent.seen(RequestCode::GET_ROUTEINFO_BY_TOPIC).len() <= 1);
}

#[tokio::test]
async fn an_unknown_topic_is_created_by_the_send() {
    let broker = Fake::start(|request| match request.code {
        RequestCode::SEND_MESSAGE_V2 => Answer::sent(),
        _ => Answer::code(ResponseCode::SUCCESS),
    })
    .await;
    let addr = broker.addr.clone();
    let ns = Fake::start(move |request| match request.field("topic") {
        "TBW102" => fake::route(&[("a", &addr)], 1),
        _ => Answer::code(ResponseCode::TOPIC_NOT_EXIST),
    })
    .await;
    let client = fake::client(&ns.addr).await;
    assert!(matches!(client.route("new").await, Err(Error::NoRoute { .. })));
    let producer = Producer::builder(&client, "p").start().await.unwrap();
    producer.send(Message::new("new", "x").tags("T")).await.unwrap();
    let send = broker.seen(RequestCode::SEND_MESSAGE_V2).remove(0);
    let head: Vec<_> = ["a", "b", "c", "d", "e", "f", "m", "n"].iter().map(|k| send.field(k)).collect();
    assert_eq!(head, ["p", "new", "TBW102", "4", "0", "0", "false", "a"]);
    assert!(
        send.field("i").starts_with("TAGS\u{1}T\u{2}UNIQ_KEY\u{1}") && send.field("i").ends_with("WAIT\u{1}true\u{2}")
    );
}

#[tokio::test]
async fn with_creation_off_the_error_names_the_topic() {
    let ns = Fake::start(|_| Answer::code(ResponseCode::TOPIC_NOT_EXIST)).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").start().await.unwrap();
    let error = producer.send(Message::new("new", "x")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no name server of {} knows topic new", ns.addr));
    assert!(!error.is_retryable());
}
