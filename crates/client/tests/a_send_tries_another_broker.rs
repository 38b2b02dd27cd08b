//! A send that one broker refuses with a retryable code, or that cannot reach it, goes to another one; a refusal that no
//! other broker would lift is handed to the caller after one try. Method: two scripted brokers behind a scripted name server.

mod fake;

use cometmq_client::{Error, Message, Producer, RequestCode, ResponseCode};
use fake::{Answer, Fake};

async fn refusing(code: ResponseCode) -> Fake {
    Fake::start(move |request| match request.code {
        RequestCode::SEND_MESSAGE_V2 => Answer::code(code),
        _ => Answer::code(ResponseCode::SUCCESS),
    })
    .await
}

async fn storing() -> Fake {
    Fake::start(|request| match request.code {
        RequestCode::SEND_MESSAGE_V2 => Answer::sent(),
        _ => Answer::code(ResponseCode::SUCCESS),
    })
    .await
}

#[tokio::test]
async fn retryable_codes_go_elsewhere() {
    for code in [1, 2, 14, 16, 17, 204, 205, 1500] {
        let (bad, good) = (refusing(ResponseCode(code)).await, storing().await);
        // Two queues each: the next in turn is on the same broker.
        let ns = fake::name_server_of(vec![("a", bad.addr.clone()), ("b", good.addr.clone())], 2).await;
        let client = fake::client(&ns.addr).await;
        let producer = Producer::builder(&client, "p").retries(1).start().await.unwrap();
        for _ in 0..4 {
            let sent = producer.send(Message::new("t", "x")).await.unwrap();
            assert_eq!((sent.queue.broker_name.as_str(), sent.queue_offset), ("b", 7));
        }
        assert!(!bad.seen(RequestCode::SEND_MESSAGE_V2).is_empty());
        client.shutdown().await;
    }
}

#[tokio::test]
async fn an_unreachable_broker_is_passed_over() {
    let good = storing().await;
    let ns = fake::name_server(vec![("a", fake::dead_addr().await), ("b", good.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").start().await.unwrap();
    for _ in 0..4 {
        assert_eq!(producer.send(Message::new("t", "x")).await.unwrap().queue.broker_name, "b");
    }
}

#[tokio::test]
async fn other_codes_are_final() {
    let bad = refusing(ResponseCode::MESSAGE_ILLEGAL).await;
    let ns = fake::name_server(vec![("a", bad.addr.clone()), ("b", bad.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").start().await.unwrap();
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (Some(ResponseCode::MESSAGE_ILLEGAL), false));
    assert_eq!(bad.seen(RequestCode::SEND_MESSAGE_V2).len(), 1);
}

#[tokio::test]
async fn after_the_last_try_all_brokers_are_named() {
    let bad = refusing(ResponseCode::SYSTEM_BUSY).await;
    let ns = fake::name_server(vec![("a", bad.addr.clone()), ("b", bad.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let producer = Producer::builder(&client, "p").retries(2).start().await.unwrap();
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    assert!(matches!(error, Error::Retries { tries: 3, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("a, b, a") || text.contains("b, a, b"), "{text}");
    assert!(text.contains("SYSTEM_BUSY (2)") && text.contains(&bad.addr), "{text}");
    assert_eq!(bad.seen(RequestCode::SEND_MESSAGE_V2).len(), 3);
}
