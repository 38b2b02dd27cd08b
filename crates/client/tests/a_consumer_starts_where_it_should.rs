//! A group without an offset that starts from the last really does, an error never becomes offset 0, an offset outside of
//! the queue is corrected, what was consumed is committed at shutdown. Method: a scripted broker that fails at first.

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cometmq_client::{Client, Consumer, RequestCode, ResponseCode, StartFrom, SubExpression};
use cometmq_wire::body::GetConsumerListByGroupResponseBody;
use cometmq_wire::{json, record};
use fake::{Answer, Fake, Request};

/// Answers heartbeats and member lists; everything else is the test's.
async fn broker(rest: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Fake {
    let members = std::sync::Mutex::new(Vec::new());
    Fake::start(move |request| match request.code {
        RequestCode::HEART_BEAT => {
            let beat: cometmq_wire::body::HeartbeatData = json::from_slice(&request.body).unwrap();
            *members.lock().unwrap() = vec![beat.client_id];
            Answer::code(ResponseCode::SUCCESS)
        }
        RequestCode::GET_CONSUMER_LIST_BY_GROUP => {
            let consumer_id_list = members.lock().unwrap().clone();
            Answer::body(json::to_fastjson(&GetConsumerListByGroupResponseBody { consumer_id_list }))
        }
        RequestCode::UPDATE_CONSUMER_OFFSET | RequestCode::UNREGISTER_CLIENT => Answer::code(ResponseCode::SUCCESS),
        _ => rest(request),
    })
    .await
}

fn offset(offset: i64) -> Option<Answer> {
    Answer::fields(ResponseCode::SUCCESS, &[("offset", offset.to_string())])
}

fn pulled(code: ResponseCode, next: i64, body: Vec<u8>) -> Option<Answer> {
    let fields = [
        ("suggestWhichBrokerId", "0".to_string()),
        ("nextBeginOffset", next.to_string()),
        ("minOffset", "0".to_string()),
        ("maxOffset", "9".to_string()),
    ];
    Answer::fields(code, &fields).map(|answer| Answer { body, ..answer })
}

fn message(at: i64, tag: &str) -> Vec<u8> {
    let (host, properties) = ("127.0.0.1:1".parse().unwrap(), format!("TAGS\u{1}{tag}\u{2}"));
    let mut out = Vec::new();
    let draft = record::Draft {
        topic: "t",
        queue_id: 0,
        flag: 0,
        sys_flag: 0,
        born_ms: 0,
        born_host: host,
        store_host: host,
        reconsume_times: 0,
        prepared_offset: 0,
        body: b"x",
        properties: &properties,
    };
    draft.encode(&mut out).unwrap();
    record::place(&mut out, at, 0, 0);
    out
}

async fn consume(broker: &Fake, from: StartFrom) -> (Client, Consumer) {
    let ns = fake::name_server(vec![("a", broker.addr.clone())]).await;
    let client = fake::client(&ns.addr).await;
    let builder = Consumer::builder(&client, "g").subscribe("t", SubExpression::Tags("Aa".into())).from(from);
    let consumer = builder.rebalance_interval(Duration::from_millis(20)).start().await.unwrap();
    (client, consumer)
}

/// Case C27.
#[tokio::test]
async fn last_is_last_and_an_error_is_not_zero() {
    let tries = Arc::new(AtomicUsize::new(0));
    let broker = broker(move |request| match request.code {
        RequestCode::QUERY_CONSUMER_OFFSET => match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::code(ResponseCode::SYSTEM_ERROR),
            _ => Answer::code(ResponseCode::QUERY_NOT_FOUND),
        },
        RequestCode::GET_MAX_OFFSET if tries.load(Ordering::Relaxed) < 3 => Answer::code(ResponseCode::SYSTEM_BUSY),
        RequestCode::GET_MAX_OFFSET => offset(42),
        _ => None,
    })
    .await;
    let (client, _consumer) = consume(&broker, StartFrom::Last).await;
    fake::until(|| !broker.seen(RequestCode::PULL_MESSAGE).is_empty()).await;
    let pulls = broker.seen(RequestCode::PULL_MESSAGE);
    assert!(pulls.iter().all(|p| p.field("queueOffset") == "42"), "{pulls:?}");
    // Stored before anything is pulled: another member that takes the queue over must not start from a later end.
    assert_eq!(broker.seen(RequestCode::UPDATE_CONSUMER_OFFSET)[0].field("commitOffset"), "42");
    let asked = broker.seen(RequestCode::QUERY_CONSUMER_OFFSET);
    assert!(asked.iter().all(|q| q.field("setZeroIfNotFound") == "false"));
    client.shutdown().await;
}

#[tokio::test]
async fn an_offset_outside_of_the_queue_is_corrected() {
    let broker = broker(|request| match (request.code, request.field("queueOffset")) {
        (RequestCode::QUERY_CONSUMER_OFFSET, _) => offset(100),
        (RequestCode::PULL_MESSAGE, "100") => pulled(ResponseCode::PULL_OFFSET_MOVED, 9, Vec::new()),
        _ => None,
    })
    .await;
    let (client, _consumer) = consume(&broker, StartFrom::First).await;
    fake::until(|| !broker.seen(RequestCode::UPDATE_CONSUMER_OFFSET).is_empty()).await;
    let stored = broker.seen(RequestCode::UPDATE_CONSUMER_OFFSET);
    assert!(stored.iter().all(|s| s.field("commitOffset") == "9"), "{stored:?}");
    client.shutdown().await;
}

/// Case C28: no answer of a broker makes a client pull at −1, or commit it.
#[tokio::test]
async fn an_offset_is_never_negative() {
    for from in [StartFrom::First, StartFrom::Last, StartFrom::Timestamp(5)] {
        let broker = broker(|request| match (request.code, request.field("queueOffset")) {
            (RequestCode::QUERY_CONSUMER_OFFSET, _) => offset(-1),
            (RequestCode::GET_MAX_OFFSET | RequestCode::SEARCH_OFFSET_BY_TIMESTAMP, _) => offset(-1),
            (RequestCode::PULL_MESSAGE, _) => pulled(ResponseCode::PULL_OFFSET_MOVED, -1, Vec::new()),
            _ => None,
        })
        .await;
        let (client, _consumer) = consume(&broker, from).await;
        fake::until(|| broker.seen(RequestCode::PULL_MESSAGE).len() > 2).await;
        let pulls = broker.seen(RequestCode::PULL_MESSAGE);
        assert!(pulls.iter().all(|p| p.field("queueOffset") == "0"), "{from:?}: {pulls:?}");
        let commits = broker.seen(RequestCode::UPDATE_CONSUMER_OFFSET);
        assert!(commits.iter().all(|c| c.field("commitOffset") == "0"), "{from:?}: {commits:?}");
        let queue = cometmq_client::MessageQueue { broker_name: "a".into(), queue_id: 0, topic: "t".into() };
        let puller = cometmq_client::Puller::new(&client, "g").unwrap();
        let error = puller.pull(&queue, -1, 1, None, &SubExpression::All).await.unwrap_err();
        assert_eq!(error.to_string(), "option offset = -1: expected 0 or more");
        client.shutdown().await;
    }
}

/// The broker filters by hash, and `BB` has that of `Aa`: it is not handed out, but counts as consumed.
#[tokio::test]
async fn what_was_consumed_is_committed_and_the_rest_is_not() {
    let broker = broker(|request| match (request.code, request.field("queueOffset")) {
        (RequestCode::QUERY_CONSUMER_OFFSET, _) => Answer::code(ResponseCode::QUERY_NOT_FOUND),
        (RequestCode::PULL_MESSAGE, "0") => {
            let body = [message(3, "Aa"), message(4, "BB"), message(5, "Aa"), message(6, "Aa")].concat();
            pulled(ResponseCode::SUCCESS, 8, body)
        }
        _ => None,
    })
    .await;
    let (client, mut consumer) = consume(&broker, StartFrom::First).await;
    assert_eq!(consumer.recv().await.unwrap().queue_offset, 3);
    assert_eq!(consumer.recv().await.unwrap().queue_offset, 5);
    // 3 is done with, 5 is not.
    drop(consumer);
    fake::until(|| !broker.seen(RequestCode::UPDATE_CONSUMER_OFFSET).is_empty()).await;
    assert_eq!(broker.seen(RequestCode::UPDATE_CONSUMER_OFFSET)[0].field("commitOffset"), "4");
    fake::until(|| !broker.seen(RequestCode::UNREGISTER_CLIENT).is_empty()).await;
    client.shutdown().await;
}

#[tokio::test]
async fn commit_and_shutdown_count_what_was_handed_out() {
    let broker = broker(|request| match (request.code, request.field("queueOffset")) {
        (RequestCode::QUERY_CONSUMER_OFFSET, _) => offset(3),
        (RequestCode::PULL_MESSAGE, "3") => {
            pulled(ResponseCode::SUCCESS, 8, [message(3, "Aa"), message(4, "Aa"), message(5, "BB")].concat())
        }
        _ => None,
    })
    .await;
    let (client, mut consumer) = consume(&broker, StartFrom::Last).await;
    let committed = || {
        let seen = broker.seen(RequestCode::UPDATE_CONSUMER_OFFSET);
        seen.iter().map(|r| r.field("commitOffset").to_string()).collect::<Vec<_>>()
    };
    consumer.recv().await.unwrap();
    assert!(committed().is_empty());
    consumer.commit().await.unwrap();
    assert_eq!(committed(), ["4"]);
    consumer.recv().await.unwrap();
    consumer.shutdown().await;
    assert_eq!(committed(), ["4", "8"]);
    client.shutdown().await;
}
