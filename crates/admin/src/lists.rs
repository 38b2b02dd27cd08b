//! Lists of topics and of groups from a file: updateTopicList (17), updateSubGroupList (200).
//! mqadmin sends a list as one request (18, 225), which older brokers do not know. Here each row is a request of its own: a
//! row that a broker refuses is a failure and keeps no other from being done, and what changed is known row by row.
//! Java: `UpdateTopicListSubCommand`, `UpdateSubGroupListSubCommand`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use cometmq_client::TopicConfig;
use cometmq_wire::body::SubscriptionGroupConfig;
use cometmq_wire::json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::report::{Changes, Progress, Report, state};
use crate::session::{Brokers, Session};
use crate::topic::change_topic;

const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Args)]
#[command(
    after_help = "The file has what topics.json of a broker has of each topic; fields that are not there get their defaults:
  [{\"topicName\":\"orders\",\"readQueueNums\":8,\"writeQueueNums\":8,\"perm\":6,\"attributes\":{\"+message.type\":\"FIFO\"}}]

Examples:
  comet admin updateTopicList -c DefaultCluster -f topics.json
  comet admin updateTopicList -b 10.0.0.1:10911 -f topics.json --json"
)]
pub(crate) struct UpdateTopicList {
    #[command(flatten)]
    brokers: Brokers,
    /// A JSON list of topics.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: PathBuf,
}

impl UpdateTopicList {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let topics: Vec<TopicConfig> = rows(&self.file)?;
        let addrs = session.masters(&self.brokers).await?;
        let mut changes = Changes::default();
        let mut progress = Progress::start("topics", addrs.len() * topics.len());
        for addr in &addrs {
            let mut all_done = true;
            for topic in &topics {
                match change_topic(session, addr, topic, &attributes(&topic.attributes)).await {
                    Ok((before, after)) => changes.add(format!("{addr} {}", topic.topic_name), before, after),
                    Err(error) => {
                        changes.fail(error);
                        all_done = false;
                    }
                }
                progress.step();
            }
            if all_done {
                changes.say(format_args!(
                    "submit batch of topic config to {addr} success, please check the result later."
                ));
            }
        }
        changes.report()
    }
}

#[derive(Args)]
#[command(
    after_help = "The file has what subscriptionGroup.json of a broker has of each group; fields that are not there get their defaults:
  [{\"groupName\":\"billing\",\"retryMaxTimes\":3}]

Examples:
  comet admin updateSubGroupList -c DefaultCluster -f groups.json
  comet admin updateSubGroupList -b 10.0.0.1:10911 -f groups.json --json"
)]
pub(crate) struct UpdateSubGroupList {
    #[command(flatten)]
    brokers: Brokers,
    /// A JSON list of groups.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    file: PathBuf,
}

impl UpdateSubGroupList {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let groups: Vec<SubscriptionGroupConfig> = rows(&self.file)?;
        let addrs = session.masters(&self.brokers).await?;
        let what = if self.brokers.addr.is_some() { "group" } else { "subscription group" };
        let mut changes = Changes::default();
        let mut progress = Progress::start("groups", addrs.len() * groups.len());
        let read = async |addr: &str| {
            let found = session.admin.groups(addr).await;
            state(found.map(|table| Some(table.subscription_group_table)))
        };
        for addr in &addrs {
            let before = read(addr).await?;
            let mut done = Vec::new();
            for group in &groups {
                match session.admin.update_group(addr, group).await {
                    Ok(()) => done.push(group),
                    Err(error) => changes.fail(error),
                }
                progress.step();
            }
            let after = read(addr).await?;
            for group in &done {
                let name = &group.group_name;
                let of = |table: &Option<Value>| table.as_ref().map(|table| table[name].clone());
                changes.add(format!("{addr} {name}"), of(&before), of(&after).unwrap_or_else(|| json!(group)));
            }
            if done.len() == groups.len() {
                changes.say(format_args!(
                    "submit batch of {what} config to {addr} success, please check the result later."
                ));
            }
        }
        changes.report()
    }
}

/// A map whose keys carry their signs as `+key=value,-key`.
fn attributes(changes: &BTreeMap<String, String>) -> String {
    let part = |(key, value): (&String, &String)| match value.is_empty() {
        true => key.clone(),
        false => format!("{key}={value}"),
    };
    changes.iter().map(part).collect::<Vec<_>>().join(",")
}

/// The rows of a file. A field that a row cannot have is an error (Java takes no notice of it): it may be a misspelt one.
fn rows<T: DeserializeOwned + Serialize + Default>(path: &Path) -> anyhow::Result<Vec<T>> {
    let place = || format!("-f {}", path.display());
    let mut text = Vec::new();
    let file = std::fs::File::open(path).with_context(place)?;
    let bytes = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).with_context(place)?;
    if bytes as u64 > FILE_BYTES_MAX {
        bail!("{}: longer than {FILE_BYTES_MAX} bytes", place());
    }
    let values: Vec<Value> = json::from_slice(&text).with_context(|| format!("{}: not a JSON list", place()))?;
    let known = serde_json::to_value(T::default()).context("the fields of a row")?;
    let row = |(at, value): (usize, Value)| {
        let here = || format!("{}: row {}", place(), at + 1);
        let fields = value.as_object().into_iter().flat_map(|object| object.keys());
        if let Some(field) = fields.into_iter().find(|field| known.get(field.as_str()).is_none()) {
            bail!("{} has an unknown field {field}", here());
        }
        serde_json::from_value(value).with_context(here)
    };
    values.into_iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_a_row_become_those_of_a_request() {
        let changes = [("+message.type", "FIFO"), ("-owner", "")].map(|(k, v)| (k.to_string(), v.to_string()));
        assert_eq!(attributes(&changes.into()), "+message.type=FIFO,-owner");
    }
}
