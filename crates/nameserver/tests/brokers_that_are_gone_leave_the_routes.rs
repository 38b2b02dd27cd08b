//! A broker goes with its own word, with its connection, or after its heartbeats stop; others stay. Time is a manual clock,
//! and the test waits for the change itself.

mod common;

use std::time::Duration;

use cometmq_net::{Outgoing, Remotes};
use cometmq_wire::RequestCode;
use common::{Broker, Fixture, SOON};

fn two() -> [Broker; 2] {
    [
        Broker::new("b1", "10.0.0.1:10911", &["orders", "bills"]),
        Broker::new("b2", "10.0.0.2:10911", &["orders", "mails"]),
    ]
}

#[tokio::test]
async fn a_lost_connection_takes_all_its_brokers_along() {
    let f = Fixture::start();
    let routes = f.server.routes();
    let [b1, b2] = two();
    let doomed = Remotes::default();
    b1.register(&doomed, &f.addr()).await;
    Broker::new("b3", "10.0.0.3:10911", &[]).register(&doomed, &f.addr()).await;
    f.register(&b2).await;
    doomed.shutdown();
    assert!(routes.wait_until_gone("b1", SOON).await);
    assert!(routes.wait_until_gone("b3", SOON).await);
    assert_eq!(routes.route("bills"), None);
    let names: Vec<_> = routes.cluster_info().broker_addr_table.into_keys().collect();
    assert_eq!(names, ["b2"]);
    f.stop();
}

#[tokio::test]
async fn a_broker_that_came_back_outlives_its_old_connection() {
    let f = Fixture::start();
    let routes = f.server.routes();
    let [b1, b2] = two();
    let old = Remotes::default();
    b1.register(&old, &f.addr()).await;
    b2.register(&old, &f.addr()).await;
    f.register(&b1).await;
    old.shutdown();
    assert!(routes.wait_until_gone("b2", SOON).await, "the server has seen the end of the old connection");
    assert!(routes.route("bills").is_some());
    f.stop();
}

#[tokio::test]
async fn a_silent_broker_is_dropped_and_its_connection_closed() {
    let f = Fixture::start();
    let [b1, b2] = two();
    let silent = Remotes::default();
    b1.register(&silent, &f.addr()).await;
    f.register(&b2).await;
    f.clock.advance(Duration::from_secs(120));
    let heartbeat = [("clusterName", "c1"), ("brokerAddr", b2.addr), ("brokerName", "b2")];
    f.call(RequestCode::BROKER_HEARTBEAT, &heartbeat, b"").await;
    f.server.expire_brokers();
    assert!(f.server.routes().route("bills").is_some(), "not a millisecond early");
    f.clock.advance(Duration::from_millis(1));
    let remote = silent.to(&f.addr()).await.unwrap();
    f.server.expire_brokers();
    assert_eq!(f.server.routes().route("bills"), None);
    assert!(f.server.routes().route("mails").is_some());
    // A call may still overtake the close; in the end one finds the connection gone.
    let ask = || Outgoing::new(RequestCode::GET_BROKER_CLUSTER_INFO, |_| {});
    let closed = async { while remote.call(ask(), SOON).await.is_ok() {} };
    tokio::time::timeout(SOON, closed).await.expect("the connection is closed");
    f.stop();
}

#[tokio::test]
async fn a_broker_unregisters_itself() {
    let f = Fixture::start();
    let [b1, b2] = two();
    f.register(&b1).await;
    f.register(&b2).await;
    let answer = f.call(RequestCode::UNREGISTER_BROKER, &b1.identity(), b"").await;
    assert_eq!(answer.code().0, 0);
    assert_eq!(f.server.routes().route("bills"), None);
    assert_eq!(f.server.routes().route("orders").unwrap().broker_datas.len(), 1);
    f.stop();
}

#[tokio::test]
async fn a_caller_can_wait_for_a_broker() {
    let f = Fixture::start();
    let routes = f.server.routes();
    assert!(!routes.wait_for_broker("b1", Duration::ZERO).await);
    let waiting = tokio::spawn({
        let routes = routes.clone();
        async move { routes.wait_for_broker("b1", SOON).await }
    });
    f.register(&two()[0]).await;
    assert!(waiting.await.unwrap());
    assert!(routes.wait_for_broker("b1", Duration::ZERO).await, "it is there already");
    f.stop();
}
