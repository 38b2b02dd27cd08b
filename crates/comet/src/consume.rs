//! `comet consume TOPIC`: prints messages. With `--group` as a member of that group, whose offsets are committed; without,
//! as a reader that leaves no trace.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use cometmq_client::{
    Admin, Client, ClientOptions, Consumer, MessageQueue, PullStatus, Puller, Received, StartFrom, SubExpression,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The group that a reader without one names in its pulls; it commits nothing.
const READER: &str = "TOOLS_CONSUMER";
const PULL_BATCH: i32 = 32;
const SUSPEND: Duration = Duration::from_secs(15);
/// Between two attempts after an error.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Args)]
#[command(after_help = "Examples:
  comet consume orders --from first             all messages there are, then stop
  comet consume orders --follow                 new messages, until interrupted
  comet consume orders --group billing --follow share the work with the other members of the group
  comet consume orders --from 2026-11-30T08:00:00Z --format json")]
pub struct Consume {
    topic: String,
    /// Name servers, by ';'.
    #[arg(short = 'n', long, env = "NAMESRV_ADDR", default_value = "127.0.0.1:9876")]
    namesrv: String,
    /// Join this consumer group: share its queues, start at its offsets, commit.
    #[arg(long)]
    group: Option<String>,
    /// Where to start: first, last, or a time (epoch milliseconds, or 2026-11-30T08:00:00Z). In a group, only where it has
    /// no offset yet. Default: first; with --follow last.
    #[arg(long, value_name = "first|last|TIME")]
    from: Option<String>,
    /// Wait for more instead of stopping at the end.
    #[arg(long)]
    follow: bool,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Stop after this many messages.
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// Only these tags: `A||B`.
    #[arg(long, value_name = "TAGS")]
    tag: Option<String>,
    /// In a group without --follow: stop when nothing came for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    idle: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// The body, a line a message.
    Text,
    /// A JSON object a line: ids, queue, offsets, times, properties, body.
    Json,
}

impl Consume {
    pub fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(async {
            let client = Client::start(ClientOptions::new(&self.namesrv)?).await?;
            let result = tokio::select! {
                result = self.consume(&client) => result,
                _ = tokio::signal::ctrl_c() => Ok(()),
            };
            client.shutdown().await;
            result
        })
    }

    async fn consume(&self, client: &Client) -> anyhow::Result<()> {
        let from = self.start_from()?;
        let filter = self.tag.as_ref().map_or(SubExpression::All, |t| SubExpression::Tags(t.clone()));
        match &self.group {
            Some(group) => self.as_member(client, group, from, filter).await,
            None => self.as_reader(client, from, filter).await,
        }
    }

    fn start_from(&self) -> anyhow::Result<StartFrom> {
        let default = if self.follow { "last" } else { "first" };
        match self.from.as_deref().unwrap_or(default) {
            "first" => Ok(StartFrom::First),
            "last" => Ok(StartFrom::Last),
            time => parse_time(time).map(StartFrom::Timestamp),
        }
    }

    async fn as_member(
        &self,
        client: &Client,
        group: &str,
        from: StartFrom,
        filter: SubExpression,
    ) -> anyhow::Result<()> {
        let mut consumer = Consumer::builder(client, group).subscribe(&self.topic, filter).from(from).start().await?;
        let idle = Duration::from_secs(self.idle.max(1));
        let mut printed = 0;
        while self.max.is_none_or(|max| printed < max) {
            let next = consumer.recv();
            let message = if self.follow {
                tokio::select! {
                    message = next => message,
                    _ = tokio::signal::ctrl_c() => break,
                }
            } else {
                match tokio::time::timeout(idle, next).await {
                    Ok(message) => message,
                    Err(_) => break,
                }
            };
            let Some(message) = message else { break };
            self.print(&message)?;
            printed += 1;
        }
        consumer.shutdown().await;
        Ok(())
    }

    /// Reads all queues at once, each from its start to its end as it was when we came, or on and on.
    async fn as_reader(&self, client: &Client, from: StartFrom, filter: SubExpression) -> anyhow::Result<()> {
        let admin = Admin::new(client);
        let route = admin.route(&self.topic).await?;
        let (tx, mut rx) = mpsc::channel(PULL_BATCH as usize);
        let mut readers = JoinSet::new();
        for queue in route.subscribe_queues() {
            let end = admin.max_offset(queue).await?;
            let start = match from {
                StartFrom::First => admin.min_offset(queue).await?,
                StartFrom::Last => end,
                StartFrom::Timestamp(ms) => admin.search_offset(queue, ms).await?,
            };
            let end = if self.follow { i64::MAX } else { end };
            let puller = Puller::new(client, READER)?;
            readers.spawn(read_queue(puller, queue.clone(), start..end, filter.clone(), tx.clone()));
        }
        drop(tx);
        let mut printed = 0;
        while self.max.is_none_or(|max| printed < max) {
            let Some(message) = rx.recv().await else { break };
            self.print(&message)?;
            printed += 1;
        }
        drop(rx);
        while let Some(done) = readers.join_next().await {
            done??;
        }
        Ok(())
    }

    fn print(&self, message: &Received) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        let body = message.body().with_context(|| format!("message {}", message.msg_id()))?;
        match self.format {
            Format::Text => {
                out.write_all(body)?;
                out.write_all(b"\n")?;
            }
            Format::Json => {
                serde_json::to_writer(&mut out, &json(message, body))?;
                out.write_all(b"\n")?;
            }
        }
        Ok(out.flush()?)
    }
}

async fn read_queue(
    puller: Puller,
    queue: MessageQueue,
    range: std::ops::Range<i64>,
    filter: SubExpression,
    tx: mpsc::Sender<Received>,
) -> anyhow::Result<()> {
    let mut offset = range.start;
    let follows = range.end == i64::MAX;
    while offset < range.end && !tx.is_closed() {
        let suspend = follows.then_some(SUSPEND);
        let pulled = tokio::select! {
            pulled = puller.pull(&queue, offset, PULL_BATCH, suspend, &filter) => pulled,
            () = tx.closed() => return Ok(()),
        };
        let pulled = match pulled {
            Ok(pulled) => pulled,
            Err(error) if follows && error.is_retryable() => {
                eprintln!("comet: {error}; trying again");
                tokio::time::sleep(RETRY).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for message in pulled.messages {
            if message.queue_offset < range.end && tx.send(message).await.is_err() {
                return Ok(());
            }
        }
        if pulled.status == PullStatus::NoNewMessages && !follows {
            return Ok(());
        }
        offset = pulled.next_offset;
    }
    Ok(())
}

fn json(message: &Received, body: &[u8]) -> serde_json::Value {
    let properties: BTreeMap<&str, &str> = message.properties().collect();
    let mut value = serde_json::json!({
        "topic": message.topic,
        "brokerName": message.queue.broker_name,
        "queueId": message.queue.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": message.msg_id(),
        "offsetMsgId": message.offset_msg_id(),
        "bornTimestamp": message.born_ms,
        "bornHost": message.born_host.to_string(),
        "storeTimestamp": message.store_ms,
        "storeHost": message.store_host.to_string(),
        "reconsumeTimes": message.reconsume_times,
        "flag": message.flag,
        "properties": properties,
    });
    // Text as text; anything else as hexadecimal digits, under another name.
    match std::str::from_utf8(body) {
        Ok(text) => value["body"] = text.into(),
        Err(_) => value["bodyHex"] = body.iter().map(|b| format!("{b:02x}")).collect::<String>().into(),
    }
    value
}

/// Epoch milliseconds, or `YYYY-MM-DD[Thh:mm:ss][Z]` (UTC).
fn parse_time(text: &str) -> anyhow::Result<i64> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    let wrong = || anyhow::anyhow!("--from {text}: expected first, last, epoch milliseconds or 2026-11-30T08:00:00Z");
    let plain = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = plain.split_once(['T', ' ']).unwrap_or((plain, "00:00:00"));
    let numbers = |text: &str, by: char| -> Option<[i64; 3]> {
        let parts: Vec<i64> = text.split(by).map(|p| p.parse().ok()).collect::<Option<_>>()?;
        parts.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-').ok_or_else(wrong)?;
    let [hour, minute, second] = numbers(time, ':').ok_or_else(wrong)?;
    let in_range = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        bail!(wrong());
    }
    Ok((days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000)
}

/// Days from 1970-01-01: years start in March, so that the leap day is the last of its year.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_epoch_milliseconds_or_utc() {
        assert_eq!(parse_time("1796052143547").unwrap(), 1_796_052_143_547);
        assert_eq!(parse_time("1970-01-01").unwrap(), 0);
        assert_eq!(parse_time("2026-11-30T16:02:23Z").unwrap(), 1_796_054_543_000);
        assert_eq!(parse_time("2024-02-29 00:00:01").unwrap(), 1_709_164_801_000);
        assert!(parse_time("yesterday").is_err());
        assert!(parse_time("2026-13-01").is_err());
    }
}
