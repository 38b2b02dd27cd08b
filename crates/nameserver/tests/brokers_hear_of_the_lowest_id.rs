//! A broker that stays is told over a connection to its own address that one with a lower id has come, if the name server is
//! asked to. One that cannot be reached keeps no other from being told.

mod common;

use std::collections::HashMap;

use cometmq_wire::RequestCode;
use common::{Broker, Fixture, Raw, SOON};
use tokio::net::TcpListener;

#[tokio::test]
async fn a_slave_hears_of_its_master() {
    let f = Fixture::start_with(&[("notifyMinBrokerIdChanged", "true")]);
    let slave = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slave_addr: &'static str = slave.local_addr().unwrap().to_string().leak();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone_addr: &'static str = gone.local_addr().unwrap().to_string().leak();
    drop(gone);
    f.register(&Broker { id: 1, ..Broker::new("b1", gone_addr, &["orders", "bills"]) }).await;
    f.register(&Broker { id: 2, ..Broker::new("b1", slave_addr, &["orders", "bills"]) }).await;
    f.register(&Broker::new("b1", "10.0.0.1:10911", &["orders", "bills"])).await;
    let told = tokio::time::timeout(SOON, async { Raw::accept(&slave).await.receive().await }).await;
    let told = told.unwrap().unwrap();
    let frame = told.frame();
    assert_eq!(told.code(), cometmq_wire::ResponseCode(RequestCode::NOTIFY_MIN_BROKER_ID_CHANGE.0));
    assert!(frame.head.is_oneway());
    let fields: HashMap<_, _> = frame.head.ext.iter().collect();
    let field = |name: &str| fields.get(name).map(|value| value.to_string());
    assert_eq!(field("minBrokerId").as_deref(), Some("0"));
    assert_eq!(field("minBrokerAddr").as_deref(), Some("10.0.0.1:10911"));
    assert_eq!(field("haBrokerAddr").as_deref(), Some("10.0.0.1:10912"));
    assert_eq!(field("offlineBrokerAddr"), None);
    f.stop();
}
