//! `config/*.json` of a store: each parses, or its `.bak` does; offsets of groups lie within their queues.
//! Java: `ConfigManager`, `ConsumerOffsetManager`, `ScheduleMessageService`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cometmq_store::{Finding, Findings, QueueStats, Severity};
use cometmq_wire::body::{ConsumerOffsetTable, DelayOffsetTable};
use cometmq_wire::json;
use serde_json::Value;

const DELAY_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
/// A larger file is none of these.
const BYTES_MAX: u64 = 256 << 20;

/// State of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    Whole,
    /// Why it does not parse.
    Broken(String),
}

/// The bytes of a file, if it is there.
fn bytes(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let size = match std::fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.with_context(|| path.display().to_string())?.len(),
    };
    anyhow::ensure!(size <= BYTES_MAX, "{}: {size} bytes, expected at most {BYTES_MAX}", path.display());
    Ok(Some(std::fs::read(path).with_context(|| path.display().to_string())?))
}

fn state(path: &Path) -> anyhow::Result<State> {
    Ok(match bytes(path)? {
        None => State::Missing,
        Some(bytes) => match json::from_slice::<Value>(&bytes) {
            Ok(_) => State::Whole,
            Err(error) => State::Broken(error.to_string()),
        },
    })
}

pub(super) fn backup(path: &Path) -> PathBuf {
    path.with_added_extension("bak")
}

/// What a broker would read: the file, or its backup; `{}` when neither is whole.
fn load(path: &Path) -> anyhow::Result<Vec<u8>> {
    for path in [path.to_path_buf(), backup(path)] {
        if let Some(bytes) = bytes(&path)?.filter(|bytes| json::from_slice::<Value>(bytes).is_ok()) {
            return Ok(bytes);
        }
    }
    Ok(b"{}".to_vec())
}

/// The keys of an object in a file; `None` when there is no such object.
fn keys(path: &Path, object: &str) -> anyhow::Result<Option<BTreeSet<String>>> {
    let table: Value = json::from_slice(&load(path)?).with_context(|| path.display().to_string())?;
    Ok(table.get(object).and_then(Value::as_object).map(|object| object.keys().cloned().collect()))
}

/// The JSON files of a configuration, those that only have a backup too, with the state of both.
pub(super) fn files(dir: &Path) -> anyhow::Result<Vec<(PathBuf, State, State)>> {
    let listed = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| dir.display().to_string())?,
    };
    let mut names = BTreeSet::new();
    for entry in listed {
        if let Ok(name) = entry?.file_name().into_string() {
            let name = name.strip_suffix(".bak").unwrap_or(&name).to_string();
            names.extend(name.ends_with(".json").then_some(name));
        }
    }
    let both = |name: String| {
        let path = dir.join(name);
        Ok((path.clone(), state(&path)?, state(&backup(&path))?))
    };
    names.into_iter().map(both).collect()
}

/// The topics of the broker; `None` when it has no list of them.
pub(super) fn topics(dir: &Path) -> anyhow::Result<Option<BTreeSet<String>>> {
    keys(&dir.join("topics.json"), "topicConfigTable")
}

pub(super) fn offsets(dir: &Path) -> anyhow::Result<ConsumerOffsetTable> {
    let path = dir.join("consumerOffset.json");
    json::from_slice(&load(&path)?).with_context(|| path.display().to_string())
}

/// The groups that have a configuration.
pub(super) fn groups(dir: &Path) -> anyhow::Result<BTreeSet<String>> {
    Ok(keys(&dir.join("subscriptionGroup.json"), "subscriptionGroupTable")?.unwrap_or_default())
}

pub(super) fn check(
    dir: &Path,
    queues: &QueueStats,
    is_topic: &dyn Fn(&str) -> bool,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut add = |path: &Path, severity, what: String, advice| {
        let file = Path::new("config").join(path.file_name().unwrap_or_default());
        findings.add(Finding { severity, file, offset: None, what, advice });
    };
    const FROM_BACKUP: &str = "repair restores it from .bak, which a broker reads instead";
    const FROM_COPY: &str = "restore it from a copy: a broker does not start with it";
    for (path, state, backup_state) in files(dir)? {
        match (state, backup_state) {
            (State::Broken(why), State::Whole) => {
                add(&path, Severity::Error, format!("it does not parse: {why}"), FROM_BACKUP);
            }
            (State::Broken(why), _) => {
                add(&path, Severity::Error, format!("it does not parse, nor is there a whole .bak: {why}"), FROM_COPY);
            }
            (State::Missing, State::Whole) => {
                add(&path, Severity::Warn, "it is missing, but its .bak is there".to_string(), FROM_BACKUP);
            }
            (_, State::Broken(why)) => {
                let advice = "nothing: the next change of the configuration replaces it";
                add(&backup(&path), Severity::Warn, format!("it does not parse: {why}"), advice);
            }
            _ => {}
        }
    }
    let end_of = |topic: &str, id: i32| queues.get(&(topic.to_string(), id)).map_or(0, |queue| queue.max);
    const BACK: &str = "nothing: a start of comet sets it back to the end";
    let path = dir.join("consumerOffset.json");
    for (key, offsets) in offsets(dir)?.offset_table {
        let Some((topic, group)) = key.split_once('@').filter(|(topic, _)| is_topic(topic)) else { continue };
        for (id, offset) in offsets {
            let end = end_of(topic, id);
            if offset > end {
                let what = format!("group {group} is at {offset} in {topic}-{id}, which ends at {end}");
                add(&path, Severity::Warn, what, BACK);
            }
        }
    }
    let path = dir.join("delayOffset.json");
    let delays: DelayOffsetTable = json::from_slice(&load(&path)?).with_context(|| path.display().to_string())?;
    for (level, offset) in delays.offset_table {
        let end = end_of(DELAY_TOPIC, level - 1);
        if offset > end {
            add(&path, Severity::Warn, format!("delay level {level} is at {offset}, its queue ends at {end}"), BACK);
        }
    }
    Ok(())
}
