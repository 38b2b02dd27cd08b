//! `comet store stat`: how much there is.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use clap::Args;
use cometmq_store::{FileStat, Stat};
use serde_json::{Value, json};

use super::{Format, Place, config, human, print, shown};

#[derive(Args)]
#[command(after_help = "Examples:
  comet store stat /srv/mq
  comet store stat /srv/mq --format json | jq .messages
Reads the ends of queues and headers of files, not the log. Messages are counted by offsets.")]
pub(super) struct StatArgs {
    #[command(flatten)]
    place: Place,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

struct Groups {
    configured: BTreeSet<String>,
    with_offsets: BTreeSet<String>,
}

impl StatArgs {
    pub(super) fn run(&self) -> anyhow::Result<i32> {
        let stat = self.place.inspect()?.stat()?;
        let dir = self.place.config_dir();
        let keys = config::offsets(&dir)?.offset_table.into_keys();
        let with_offsets = keys.filter_map(|key| Some(key.split_once('@')?.1.to_string())).collect();
        let groups = Groups { configured: config::groups(&dir)?, with_offsets };
        let disk = disk_bytes(&self.place.dir).with_context(|| shown(&self.place.dir))?;
        print(&match self.format {
            Format::Text => text(&stat, &groups, disk)?,
            Format::Json => format!("{}\n", as_json(&stat, &groups, disk)),
        })?;
        Ok(0)
    }
}

/// Blocks that the files below a directory take.
fn disk_bytes(dir: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += meta.blocks() * 512;
        if meta.is_dir() {
            bytes += disk_bytes(&entry.path())?;
        }
    }
    Ok(bytes)
}

fn messages(stat: &Stat) -> i64 {
    stat.queues.values().map(|queue| queue.max - queue.min).sum()
}

fn text(stat: &Stat, groups: &Groups, disk: u64) -> Result<String, std::fmt::Error> {
    let mut t = String::new();
    let topics: BTreeSet<&String> = stat.queues.keys().map(|(topic, _)| topic).collect();
    let log = stat.log_end - stat.log_start;
    let time = |ms: Option<i64>| ms.map_or("-".to_string(), |ms| ms.to_string());
    writeln!(t, "stopped   {}", if stat.crashed { "by a kill or a power cut" } else { "cleanly" })?;
    writeln!(t, "log       offsets {} to {} ({})", stat.log_start, stat.log_end, human(log))?;
    writeln!(t, "          {} files of {}", stat.segments.len(), human(stat.segment_bytes))?;
    writeln!(t, "messages  {} in {} queues of {} topics", messages(stat), stat.queues.len(), topics.len())?;
    writeln!(t, "stored    from {} to {} (epoch ms)", time(stat.first_ms), time(stat.last_ms))?;
    writeln!(t, "queues    {} files of {}", stat.queue_files, human(stat.queue_file_bytes))?;
    let index_bytes = stat.index_files.iter().map(|f| f.bytes).sum();
    writeln!(t, "index     {} keys in {} files, {}", stat.index_keys, stat.index_files.len(), human(index_bytes))?;
    writeln!(t, "groups    {} configured, {} with offsets", groups.configured.len(), groups.with_offsets.len())?;
    writeln!(t, "on disk   {}", human(disk))?;
    let width = topics.iter().map(|topic| topic.chars().count()).max().unwrap_or(0).max(5);
    writeln!(t, "\n{:width$}  {:>5}  {:>12}  {:>12}  {:>12}", "topic", "queue", "min", "max", "messages")?;
    for ((topic, id), queue) in &stat.queues {
        let count = queue.max - queue.min;
        writeln!(t, "{topic:width$}  {id:>5}  {:>12}  {:>12}  {count:>12}", queue.min, queue.max)?;
    }
    Ok(t)
}

fn as_json(stat: &Stat, groups: &Groups, disk: u64) -> Value {
    let files = |files: &[FileStat]| -> Vec<Value> {
        files.iter().map(|f| json!({ "file": shown(&f.file), "bytes": f.bytes })).collect()
    };
    let queue = |((topic, id), queue): (&(String, i32), &cometmq_store::QueueStat)| json!({ "topic": topic, "queueId": id, "minOffset": queue.min, "maxOffset": queue.max });
    json!({
        "crashed": stat.crashed,
        "logStart": stat.log_start,
        "logEnd": stat.log_end,
        "segmentBytes": stat.segment_bytes,
        "segments": files(&stat.segments),
        "messages": messages(stat),
        "firstStoreTimestamp": stat.first_ms,
        "lastStoreTimestamp": stat.last_ms,
        "queueFileBytes": stat.queue_file_bytes,
        "queueFiles": stat.queue_files,
        "queues": stat.queues.iter().map(queue).collect::<Vec<_>>(),
        "indexFiles": files(&stat.index_files),
        "indexKeys": stat.index_keys,
        "groups": groups.configured,
        "groupsWithOffsets": groups.with_offsets,
        "diskBytes": disk,
    })
}
