//! `comet store dump`: messages in the order of the log, as lines of text or of JSON.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use anyhow::Context;
use clap::Args;
use cometmq_wire::flags::message::COMPRESSED;
use cometmq_wire::message_id::offset_id;
use cometmq_wire::properties::{self, KEYS, TAGS, UNIQ_KEY};
use cometmq_wire::record::Record;
use serde_json::{Map, Value, json};

use super::{Format, Place};

#[derive(Args)]
#[command(after_help = "Examples:
  comet store dump /srv/mq --max 10
  comet store dump /srv/mq --topic orders --queue 0 --from 4711 --format json
  comet store dump /srv/mq --format json | jq -r .topic | sort | uniq -c
Damaged parts of the log are stepped over, and named on standard error.
Exit codes: 0 = all was read, 1 = parts are damaged, 2 = it could not be read.")]
pub(super) struct Dump {
    #[command(flatten)]
    place: Place,
    /// Only messages of this topic.
    #[arg(long)]
    topic: Option<String>,
    /// Only messages of this queue.
    #[arg(long, value_name = "N", requires = "topic")]
    queue: Option<i32>,
    /// With --topic: from this offset of its queues on. Without: from this commit-log offset on, where a message starts.
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    from: u64,
    /// At most so many messages.
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// json: one object a line; the body decompressed, in hex.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Dump {
    pub(super) fn run(&self) -> anyhow::Result<i32> {
        let store = self.place.inspect()?;
        let offset = i64::try_from(self.from).context("--from")?;
        let from = match (&self.topic, self.queue) {
            (Some(topic), Some(id)) => store.log_offset(topic, id, offset)?.unwrap_or(0),
            (Some(_), None) => 0,
            _ => self.from,
        };
        let mut left = self.max.unwrap_or(u64::MAX);
        let mut out = BufWriter::new(io::stdout().lock());
        let mut written = Ok(());
        let damaged = store.records(from, |record| {
            if left > 0 && self.wants(record, offset) {
                left -= 1;
                let line = match self.format {
                    Format::Text => text(record),
                    Format::Json => fields(record).to_string(),
                };
                written = writeln!(out, "{line}");
            }
            left > 0 && written.is_ok()
        })?;
        written?;
        out.flush()?;
        for gap in &damaged {
            eprintln!("comet: damaged from log offset {} to {}: {}", gap.from, gap.to, gap.why);
        }
        Ok(i32::from(!damaged.is_empty()))
    }

    fn wants(&self, record: &Record<'_>, offset: i64) -> bool {
        let Some(topic) = &self.topic else { return true };
        record.topic() == topic
            && self.queue.is_none_or(|id| record.queue_id() == id)
            && record.queue_offset() >= offset
    }
}

/// The body, and the system flag as it is then: a client clears the bit of what it decompressed. A body that is compressed in a way
/// that is not known here stays as it is.
fn body(record: &Record<'_>) -> (Vec<u8>, i32) {
    let flag = record.sys_flag();
    match cometmq_client::decompress(record.body().to_vec().into(), flag) {
        Ok(body) => (body.into(), flag & !COMPRESSED),
        Err(_) => (record.body().to_vec(), flag),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|b| _ = write!(hex, "{b:02x}"));
    hex
}

/// As a Java client knows the message.
fn fields(record: &Record<'_>) -> Value {
    let (body, sys_flag) = body(record);
    let offset_id = offset_id(record.store_host(), record.log_offset());
    let properties: Map<String, Value> =
        properties::iter(record.properties()).map(|(name, value)| (name.to_string(), value.into())).collect();
    json!({
        "topic": record.topic(),
        "queueId": record.queue_id(),
        "queueOffset": record.queue_offset(),
        "commitLogOffset": record.log_offset(),
        "storeSize": record.len(),
        "msgId": record.property(UNIQ_KEY).unwrap_or(&offset_id),
        "offsetMsgId": offset_id,
        "sysFlag": sys_flag,
        "flag": record.flag(),
        "bornTimestamp": record.born_ms(),
        "storeTimestamp": record.store_ms(),
        "bodyCRC": record.body_crc(),
        "reconsumeTimes": record.reconsume_times(),
        "bodyHex": hex(&body),
        "properties": properties,
    })
}

/// `topic-queue offset, log offset, size, store time, id, tag, keys, body`; bytes that are no text as hex.
fn text(record: &Record<'_>) -> String {
    let (body, _) = body(record);
    let mut line = format!(
        "{}-{} {} log={} size={} stored={}",
        record.topic(),
        record.queue_id(),
        record.queue_offset(),
        record.log_offset(),
        record.len(),
        record.store_ms()
    );
    for (label, name) in [("id", UNIQ_KEY), ("tags", TAGS), ("keys", KEYS)] {
        if let Some(value) = record.property(name) {
            _ = write!(line, " {label}={}", value.escape_debug());
        }
    }
    match std::str::from_utf8(&body) {
        Ok(text) => _ = write!(line, " body={}", text.escape_debug()),
        Err(_) => _ = write!(line, " bodyHex={}", hex(&body)),
    }
    line
}
