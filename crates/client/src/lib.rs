//! The CometMQ client: producers, consumers and admin calls for any RocketMQ 4.x or 5.x cluster over the remoting protocol.
//!
//! One [`Client`] holds the connections, the route cache and the heartbeats of a process; producers and consumers are made
//! on top of it. Nothing is global: two clients in one process know nothing of each other.
//!
//! ```no_run
//! # async fn f() -> Result<(), cometmq_client::Error> {
//! use cometmq_client::{Client, ClientOptions, Consumer, Message, Producer, StartFrom, SubExpression};
//! let client = Client::start(ClientOptions::new("127.0.0.1:9876")?).await?;
//! let producer = Producer::builder(&client, "orders-out").start().await?;
//! producer.send(Message::new("orders", "hello").tags("new")).await?;
//! let orders = Consumer::builder(&client, "billing").subscribe("orders", SubExpression::All).from(StartFrom::First);
//! let mut orders = orders.start().await?;
//! while let Some(message) = orders.recv().await {
//!     println!("{} {:?}", message.msg_id(), message.body()?);
//! }
//! # Ok(()) }
//! ```
//!
//! Reading order: `options` → `client` (connections, the background loop) → `name_servers`, `routes`, `groups` → `message`,
//! `producer` → `received`, `pull` → `subscription`, `consumer` → `offsets`, `admin`.
//! Java: `rocketmq-client`.

#![forbid(unsafe_code)]

mod options;
mod client;
mod call;
mod name_servers;
mod route;
mod routes;
mod groups;
mod message;
mod compression;
mod producer;
mod received;
mod pull;
mod subscription;
mod allocate;
mod consumer;
mod offsets;
mod admin;
mod error;

pub use admin::Admin;
pub use allocate::averagely;
pub use client::Client;
pub use compression::{BodyError, decompress};
pub use consumer::{Consumer, ConsumerBuilder};
pub use error::Error;
pub use message::Message;
pub use offsets::StartFrom;
pub use options::ClientOptions;
pub use producer::{Producer, ProducerBuilder, SendResult, SendStatus};
pub use pull::{PullResult, PullStatus, Puller};
pub use received::Received;
pub use route::Route;
pub use subscription::SubExpression;

/// What callers meet of the protocol's own types.
pub use cometmq_wire::body::{ClusterInfo, MessageQueue, TopicConfig, TopicRouteData};
pub use cometmq_wire::{RequestCode, ResponseCode};
