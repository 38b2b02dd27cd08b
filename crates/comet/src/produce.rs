//! `comet produce TOPIC`: lines become messages; with `--count`, generated ones for load.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use cometmq_client::{Client, ClientOptions, Message, Producer};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Sends in flight; with one, messages keep the order of the lines.
const WINDOW: usize = 256;
/// A longer line is an error, not a message.
const LINE_MAX: u64 = 4 << 20;

#[derive(Args)]
#[command(after_help = "Examples:
  echo hello | comet produce orders
  comet produce orders --file orders.txt --tag new --key k1
  comet produce orders --count 100000 --size 1024     generated messages, for load")]
pub struct Produce {
    topic: String,
    /// Name servers, by ';'.
    #[arg(short = 'n', long, env = "NAMESRV_ADDR", default_value = "127.0.0.1:9876")]
    namesrv: String,
    /// Read lines from a file instead of standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "count")]
    file: Option<PathBuf>,
    /// Key of every message; may be repeated.
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// Tag of every message.
    #[arg(long)]
    tag: Option<String>,
    /// Property of every message; may be repeated.
    #[arg(long = "property", value_name = "KEY=VALUE")]
    properties: Vec<String>,
    /// Generate this many messages instead of reading lines.
    #[arg(long)]
    count: Option<u64>,
    /// Body of a generated message, bytes.
    #[arg(long, default_value_t = 1024, requires = "count")]
    size: usize,
    /// Sends in flight; 1 keeps the order of the lines.
    #[arg(long, default_value_t = 1)]
    window: usize,
    /// Producer group.
    #[arg(long, default_value = "comet-produce")]
    group: String,
}

impl Produce {
    pub fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(self.send_all())
    }

    async fn send_all(self) -> anyhow::Result<()> {
        let client = Client::start(ClientOptions::new(&self.namesrv)?).await?;
        let producer = Producer::builder(&client, &self.group).start().await?;
        let began = Instant::now();
        let result = self.pump(&producer).await;
        client.shutdown().await;
        let (sent, bytes) = result?;
        let took = began.elapsed();
        let rate = sent as f64 / took.as_secs_f64().max(1e-9);
        writeln!(
            std::io::stdout(),
            "sent {sent} {} ({bytes} bytes) to {} in {:.3} s, {rate:.0} msg/s",
            if sent == 1 { "message" } else { "messages" },
            self.topic,
            took.as_secs_f64()
        )?;
        Ok(())
    }

    /// Sends everything; the first failure ends it, and names what was sent before.
    async fn pump(&self, producer: &Producer) -> anyhow::Result<(u64, u64)> {
        let window = self.window.clamp(1, WINDOW);
        let mut bodies = self.bodies()?;
        let mut flying = JoinSet::new();
        let (mut sent, mut bytes) = (0u64, 0u64);
        loop {
            let body = if flying.len() < window { bodies.recv().await } else { None };
            if let Some(body) = body {
                let body = body?;
                bytes += body.len() as u64;
                let (producer, message) = (producer.clone(), self.message(body)?);
                flying.spawn(async move { producer.send(message).await });
                continue;
            }
            match flying.join_next().await {
                None => return Ok((sent, bytes)),
                Some(result) => {
                    result?.with_context(|| format!("after {sent} messages that were sent"))?;
                    sent += 1;
                }
            }
        }
    }

    fn message(&self, body: Vec<u8>) -> anyhow::Result<Message> {
        let mut message = Message::new(&self.topic, body);
        if let Some(tag) = &self.tag {
            message = message.tags(tag);
        }
        if !self.keys.is_empty() {
            message = message.keys(&self.keys);
        }
        for pair in &self.properties {
            let Some((name, value)) = pair.split_once('=') else { bail!("--property {pair}: expected KEY=VALUE") };
            message = message.property(name, value);
        }
        Ok(message)
    }

    /// The bodies, read ahead by at most a window.
    fn bodies(&self) -> anyhow::Result<mpsc::Receiver<anyhow::Result<Vec<u8>>>> {
        let (tx, rx) = mpsc::channel(WINDOW);
        if let Some(count) = self.count {
            let body = vec![b'x'; self.size];
            std::thread::spawn(move || (0..count).all(|_| tx.blocking_send(Ok(body.clone())).is_ok()));
            return Ok(rx);
        }
        let input: Box<dyn Read + Send> = match &self.file {
            Some(path) => Box::new(std::fs::File::open(path).with_context(|| format!("--file {}", path.display()))?),
            None => Box::new(std::io::stdin()),
        };
        std::thread::spawn(move || {
            let mut lines = BufReader::new(input);
            let mut number = 0u64;
            loop {
                number += 1;
                let line = read_line(&mut lines, number);
                let Some(line) = line.transpose() else { return };
                let is_last = line.is_err();
                // An empty line is no message: brokers refuse an empty body.
                if line.as_ref().is_ok_and(Vec::is_empty) {
                    continue;
                }
                if tx.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(rx)
    }
}

fn read_line(lines: &mut impl BufRead, number: u64) -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let n = lines.take(LINE_MAX + 1).read_until(b'\n', &mut line).with_context(|| format!("line {number}"))?;
    if n == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
    if line.len() as u64 > LINE_MAX {
        bail!("line {number} is longer than {LINE_MAX} bytes");
    }
    Ok(Some(line))
}
