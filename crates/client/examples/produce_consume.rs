//! Sends 100 messages and consumes them: exits 0 when all came exactly once, within a minute.
//! The name server is taken from NAMESRV_ADDR (default 127.0.0.1:9876).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cometmq_client::{Client, ClientOptions, Consumer, Error, Message, Producer, StartFrom, SubExpression};

const MESSAGES: usize = 100;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let namesrv = std::env::var("NAMESRV_ADDR").unwrap_or_else(|_| "127.0.0.1:9876".to_string());
    let client = Client::start(ClientOptions::new(&namesrv)?).await?;
    let run = format!("{}", std::process::id());
    let (topic, group) = (format!("produce_consume_{run}"), format!("group_{run}"));

    let producer = Producer::builder(&client, "produce_consume").start().await?;
    let consumer = Consumer::builder(&client, &group).subscribe(&topic, SubExpression::All).from(StartFrom::First);
    let mut consumer = consumer.start().await?;
    for i in 0..MESSAGES {
        let sent = producer.send(Message::new(&topic, format!("message {i}")).tags("A").keys([i.to_string()])).await?;
        if i == 0 {
            eprintln!("first: {sent:?}");
        }
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    let began = Instant::now();
    while seen.len() < MESSAGES && began.elapsed() < Duration::from_secs(60) {
        if let Ok(Some(message)) = tokio::time::timeout(Duration::from_secs(1), consumer.recv()).await {
            *seen.entry(String::from_utf8_lossy(message.body()?).into_owned()).or_default() += 1;
        }
    }
    // Whether one comes twice.
    while let Ok(Some(message)) = tokio::time::timeout(Duration::from_secs(1), consumer.recv()).await {
        *seen.entry(String::from_utf8_lossy(message.body()?).into_owned()).or_default() += 1;
    }
    let twice = seen.values().filter(|n| **n != 1).count();
    eprintln!("{} of {MESSAGES} came, {twice} of them more than once, {:?}", seen.len(), began.elapsed());
    consumer.shutdown().await;
    producer.shutdown().await;
    client.shutdown().await;
    std::process::exit(if seen.len() == MESSAGES && twice == 0 { 0 } else { 1 })
}
