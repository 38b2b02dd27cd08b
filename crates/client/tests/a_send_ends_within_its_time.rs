//! The send timeout covers the whole call: a broker or name server that never answers costs no more than that, and with
//! an attempt timeout a silent broker leaves time for another one. Method: scripted peers that keep silent.

mod fake;

use std::time::{Duration, Instant};

use cometmq_client::{Error, Message, Producer, RequestCode, ResponseCode};
use fake::{Answer, Fake};

const LIMIT: Duration = Duration::from_millis(300);

fn assert_in_time(began: Instant, error: &Error) {
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(error.is_retryable());
    let took = began.elapsed();
    assert!(took >= LIMIT - Duration::from_millis(20) && took < LIMIT * 3, "{took:?}");
}

async fn silent_on_send() -> Fake {
    Fake::start(|request| match request.code {
        RequestCode::SEND_MESSAGE_V2 => None,
        _ => Answer::code(ResponseCode::SUCCESS),
    })
    .await
}

#[tokio::test]
async fn a_silent_broker() {
    let broker = silent_on_send().await;
    let ns = fake::name_server(vec![("a", broker.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").send_timeout(LIMIT).start().await.unwrap();
    let began = Instant::now();
    assert_in_time(began, &producer.send(Message::new("t", "x")).await.unwrap_err());
    let queue = producer.queues("t").await.unwrap().remove(0);
    let began = Instant::now();
    let error = producer.send_to(Message::new("t", "x"), &queue).await.unwrap_err();
    assert!(began.elapsed() < LIMIT * 3 && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_silent_name_server() {
    let ns = Fake::start(|_| None).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").send_timeout(LIMIT).start().await.unwrap();
    let began = Instant::now();
    assert_in_time(began, &producer.send(Message::new("t", "x")).await.unwrap_err());
}

#[tokio::test]
async fn an_attempt_timeout_leaves_time_for_another_broker() {
    let silent = silent_on_send().await;
    let good = Fake::start(|request| match request.code {
        RequestCode::SEND_MESSAGE_V2 => Answer::sent(),
        _ => Answer::code(ResponseCode::SUCCESS),
    })
    .await;
    let ns = fake::name_server(vec![("a", silent.addr.clone()), ("b", good.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let builder = Producer::builder(&client, "p").send_timeout(Duration::from_secs(10));
    let producer = builder.attempt_timeout(Duration::from_millis(100)).start().await.unwrap();
    for _ in 0..2 {
        assert_eq!(producer.send(Message::new("t", "x")).await.unwrap().queue.broker_name, "b");
    }
    assert_eq!(silent.seen(RequestCode::SEND_MESSAGE_V2).len(), 2);
}
