//! Changes of topics: updateTopic (17, order: 100, 101), deleteTopic (215, 216), updateTopicPerm (17), updateOrderConf (100 to
//! 102).
//! Java: `tools.command.topic.*`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use clap::{ArgAction, Args, ValueEnum};
use cometmq_client::{ResponseCode, Route, TopicConfig};
use cometmq_wire::flags::perm;
use serde_json::{Value, json};

use crate::args::truth;
use crate::config::ORDER_TOPIC_CONFIG;
use crate::report::{Changes, Progress, Report, state};
use crate::session::{Brokers, Session};

/// Queues of a topic for which no number is given.
const QUEUES_DEFAULT: i32 = 8;
const UNIT: i32 = 1;
const UNIT_SUB: i32 = 2;

#[derive(Args)]
#[command(after_help = "What is not given gets its default, also in a topic that exists, as with mqadmin.

Examples:
  comet admin updateTopic -c DefaultCluster -t orders
  comet admin updateTopic -b 10.0.0.1:10911 -t orders -r 16 -w 16 -p 6
  comet admin updateTopic -c DefaultCluster -t bills -o true -a +message.type=FIFO")]
pub(crate) struct UpdateTopic {
    #[command(flatten)]
    brokers: Brokers,
    /// Name of the topic.
    #[arg(short = 't', long)]
    topic: String,
    /// Queues for consumers.
    #[arg(short = 'r', long = "readQueueNums", value_name = "N", default_value_t = QUEUES_DEFAULT)]
    read: i32,
    /// Queues for producers.
    #[arg(short = 'w', long = "writeQueueNums", value_name = "N", default_value_t = QUEUES_DEFAULT)]
    write: i32,
    /// 2 write, 4 read, 6 both.
    #[arg(short = 'p', long, value_name = "N", default_value_t = perm::READ | perm::WRITE)]
    perm: i32,
    /// Ordered: its queue counts are fixed at the name servers (updateOrderConf).
    #[arg(short = 'o', long, value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    order: bool,
    #[arg(short = 'u', long, value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    unit: bool,
    #[arg(short = 's', long = "hasUnitSub", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    has_unit_sub: bool,
    /// Change attributes: +key=value,-key.
    #[arg(short = 'a', long, value_name = "CHANGES", allow_hyphen_values = true, default_value = "")]
    attributes: String,
}

impl UpdateTopic {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let attributes = attribute_changes(&self.attributes)?;
        let mut config = TopicConfig::new(self.topic.trim(), self.write, self.perm);
        config.read_queue_nums = self.read;
        config.topic_sys_flag = if self.unit { UNIT } else { 0 } | if self.has_unit_sub { UNIT_SUB } else { 0 };
        config.order = self.order;
        let mut changes = Changes::default();
        let addrs = session.masters(&self.brokers).await?;
        let mut progress = Progress::start("brokers", addrs.len());
        let mut said = Vec::new();
        for addr in &addrs {
            match change_topic(session, addr, &config, self.attributes.trim()).await {
                Ok((before, after)) => {
                    said.push(format!("create topic to {addr} success."));
                    changes.add(addr, before, after);
                }
                Err(error) => changes.fail(error),
            }
            progress.step();
        }
        if self.order && !changes.has_failed() {
            match self.fix_queues(session, &mut changes).await {
                // mqadmin says it first of a broker, last of a cluster.
                Ok(line) if self.brokers.addr.is_some() => said.insert(0, line),
                Ok(line) => said.push(line),
                Err(error) => changes.fail(error),
            }
        }
        said.iter().for_each(|line| changes.say(line));
        if !changes.has_failed() {
            config.attributes = attributes;
            changes.say(java_text(&config));
        }
        changes.report()
    }

    /// The order configuration: of one broker it is put into that of the others, of a cluster it is all. Returns what mqadmin
    /// says of it.
    async fn fix_queues(&self, session: &Session, changes: &mut Changes) -> anyhow::Result<String> {
        let topic = self.topic.trim();
        let info = session.admin.cluster_info().await?;
        let ours: BTreeSet<&String> = match (&self.brokers.addr, &self.brokers.cluster) {
            (Some(addr), _) => {
                let has = |b: &&cometmq_wire::body::BrokerData| b.broker_addrs.values().any(|a| a == addr.trim());
                let found = info.broker_addr_table.values().find(has);
                let unknown = || format!("no broker at {addr} is known to {}", session.admin.name_servers().join(";"));
                BTreeSet::from([&found.with_context(unknown)?.broker_name])
            }
            (None, cluster) => cluster.iter().flat_map(|c| info.cluster_addr_table.get(c)).flatten().collect(),
        };
        for addr in session.admin.name_servers() {
            let before = session.admin.kv_config(addr, ORDER_TOPIC_CONFIG, topic).await?;
            let others = before.as_deref().filter(|_| self.brokers.addr.is_some()).unwrap_or_default();
            let kept = others.split(';').filter_map(|part| part.split_once(':'));
            let mut parts: BTreeMap<&str, String> = kept.map(|(name, n)| (name, n.to_string())).collect();
            parts.extend(ours.iter().map(|name| (name.as_str(), self.write.to_string())));
            let value: Vec<String> = parts.iter().map(|(name, n)| format!("{name}:{n}")).collect();
            let value = value.join(";");
            session.admin.put_kv_config(addr, ORDER_TOPIC_CONFIG, topic, &value).await?;
            changes.add(format!("{addr} {ORDER_TOPIC_CONFIG}"), Some(json!(before)), json!(value));
        }
        let what = if self.brokers.addr.is_some() { "broker" } else { "cluster" };
        let ours: Vec<String> = ours.iter().map(|name| format!("{name}:{}", self.write)).collect();
        Ok(format!("set {what} orderConf. isOrder=true, orderConf=[{}]", ours.join(";")))
    }
}

/// Changes a topic on one broker: the state before and after.
pub(crate) async fn change_topic(
    session: &Session,
    addr: &str,
    config: &TopicConfig,
    attributes: &str,
) -> anyhow::Result<(Option<Value>, Value)> {
    let before = state(session.topic(addr, &config.topic_name).await)?;
    session.admin.update_topic(addr, config, attributes).await?;
    let after = state(session.topic(addr, &config.topic_name).await)?;
    Ok((before, after.unwrap_or(json!(config))))
}

/// `+key=value,-key` as a map that keeps the signs. Java: `AttributeParser.parseToMap`.
pub(crate) fn attribute_changes(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut changes = BTreeMap::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').map_or((part, ""), |(key, value)| (key, value));
        let sign = if part.contains('=') { '+' } else { '-' };
        if !key.starts_with(sign) || key.len() == 1 {
            bail!("attributes {text}: {part} is neither +key=value nor -key");
        }
        if changes.insert(key.to_string(), value.to_string()).is_some() {
            bail!("attributes {text}: {key} stands there twice");
        }
    }
    Ok(changes)
}

/// Java: `TopicConfig.toString`.
fn java_text(config: &TopicConfig) -> String {
    format!(
        "TopicConfig [topicName={}, readQueueNums={}, writeQueueNums={}, perm={}, topicFilterType={}, topicSysFlag={}, \
         order={}, attributes={}]",
        config.topic_name,
        config.read_queue_nums,
        config.write_queue_nums,
        perm::name(config.perm),
        config.topic_filter_type,
        config.topic_sys_flag,
        config.order,
        java_map(&config.attributes)
    )
}

/// Java: `AbstractMap.toString`.
pub(crate) fn java_map<K: std::fmt::Display, V: std::fmt::Display>(map: &BTreeMap<K, V>) -> String {
    let entries: Vec<String> = map.iter().map(|(k, v)| format!("{k}={v}")).collect();
    format!("{{{}}}", entries.join(", "))
}

#[derive(Args)]
#[command(after_help = "The messages of the topic are deleted with it.

Examples:
  comet admin deleteTopic -c DefaultCluster -t orders")]
pub(crate) struct DeleteTopic {
    /// Name of the topic.
    #[arg(short = 't', long)]
    topic: String,
    /// Cluster to delete it from.
    #[arg(short = 'c', long = "clusterName", value_name = "CLUSTER")]
    cluster: String,
}

impl DeleteTopic {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let (topic, cluster) = (self.topic.trim(), self.cluster.trim());
        let mut changes = Changes::default();
        delete_topic(session, cluster, topic, &mut changes).await?;
        changes.report()
    }
}

/// Deletes a topic at the masters of a cluster, then its routes: those only if every broker has deleted it, or a broker that
/// still has the topic would be out of sight.
pub(crate) async fn delete_topic(
    session: &Session,
    cluster: &str,
    topic: &str,
    changes: &mut Changes,
) -> anyhow::Result<()> {
    for broker in session.cluster(cluster).await? {
        let Some(addr) = broker.broker_addrs.get(&0) else { continue };
        let before = state(session.topic(addr, topic).await)?;
        match session.admin.delete_topic_at_broker(addr, topic).await {
            Err(error) if error.code() != Some(ResponseCode::TOPIC_NOT_EXIST) => changes.fail(error),
            _ => {
                let after = state(session.topic(addr, topic).await)?;
                changes.add(addr, before, after.unwrap_or_default());
            }
        }
    }
    if changes.has_failed() {
        return Ok(());
    }
    changes.say(format_args!("delete topic [{topic}] from cluster [{cluster}] success."));
    for addr in session.admin.name_servers() {
        if let Err(error) = session.admin.delete_topic_at_name_server(addr, topic, Some(cluster)).await {
            changes.fail(error);
        }
    }
    if !changes.has_failed() {
        changes.say(format_args!("delete topic [{topic}] from NameServer success."));
    }
    Ok(())
}

#[derive(Args)]
#[command(after_help = "Everything else of the topic stays as it is, broker by broker.

Examples:
  comet admin updateTopicPerm -t orders -p 4 -c DefaultCluster      no more sends
  comet admin updateTopicPerm -t orders -p 6 -b 10.0.0.1:10911")]
pub(crate) struct UpdateTopicPerm {
    #[command(flatten)]
    brokers: Brokers,
    /// Name of the topic.
    #[arg(short = 't', long)]
    topic: String,
    /// 2 write, 4 read, 6 both.
    #[arg(short = 'p', long, value_name = "N")]
    perm: i32,
}

impl UpdateTopicPerm {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let topic = self.topic.trim();
        let route = session.admin.route(topic).await?;
        let masters = session.masters(&self.brokers).await?;
        // Only where the topic is: mqadmin would create it on the cluster's other brokers.
        let holders = route.data().broker_datas.iter().filter_map(|b| Some((&b.broker_name, b.broker_addrs.get(&0)?)));
        let holders: Vec<_> = holders.filter(|(_, addr)| masters.contains(addr)).collect();
        if holders.is_empty() {
            bail!("{} is not the master of a broker that has topic {topic}", masters.join(" or "));
        }
        let mut changes = Changes::default();
        for (name, addr) in holders {
            let mut config = match session.topic(addr, topic).await {
                Err(error) if error.code() == Some(ResponseCode::REQUEST_CODE_NOT_SUPPORTED) => {
                    as_routed(&route, name, topic)
                }
                found => found?.unwrap_or_else(|| as_routed(&route, name, topic)),
            };
            let old = std::mem::replace(&mut config.perm, self.perm);
            if old == self.perm {
                changes.say("new perm equals to the old one!");
                changes.add(addr, Some(json!({"perm": old})), json!({"perm": old}));
                continue;
            }
            match session.admin.update_topic(addr, &config, "").await {
                Ok(()) => {
                    changes.say(format_args!("update topic perm from {old} to {} in {addr} success.", self.perm));
                    if self.brokers.addr.is_some() {
                        changes.say(format_args!("{}.", java_text(&config)));
                    }
                    changes.add(addr, Some(json!({"perm": old})), json!({"perm": self.perm}));
                }
                Err(error) => changes.fail(error),
            }
        }
        changes.report()
    }
}

/// What a route tells of a topic on one broker, for brokers before 5.0, which cannot be asked.
fn as_routed(route: &Route, broker: &str, topic: &str) -> TopicConfig {
    let Some(queues) = route.data().queue_datas.iter().find(|q| q.broker_name == broker) else {
        return TopicConfig::new(topic, QUEUES_DEFAULT, perm::READ | perm::WRITE);
    };
    TopicConfig {
        read_queue_nums: queues.read_queue_nums,
        topic_sys_flag: queues.topic_sys_flag,
        ..TopicConfig::new(topic, queues.write_queue_nums, queues.perm)
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin updateOrderConf -t orders -m put -v 'broker-a:4;broker-b:4'
  comet admin updateOrderConf -t orders -m get
  comet admin updateOrderConf -t orders -m delete")]
pub(crate) struct UpdateOrderConf {
    /// Name of the topic.
    #[arg(short = 't', long)]
    topic: String,
    /// Brokers and their numbers of queues: broker:queues;broker:queues.
    #[arg(short = 'v', long = "orderConf", value_name = "CONF", required_if_eq("method", "put"))]
    value: Option<String>,
    #[arg(short = 'm', long)]
    method: Method,
}

#[derive(Clone, Copy, ValueEnum)]
enum Method {
    Put,
    Get,
    Delete,
}

impl UpdateOrderConf {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let topic = self.topic.trim();
        let value = self.value.as_deref().unwrap_or_default().trim();
        if let Method::Get = self.method {
            return get_order_conf(session, topic).await;
        }
        let mut changes = Changes::default();
        for addr in session.admin.name_servers() {
            let before = session.admin.kv_config(addr, ORDER_TOPIC_CONFIG, topic).await?;
            let done = match self.method {
                Method::Put => session.admin.put_kv_config(addr, ORDER_TOPIC_CONFIG, topic, value).await,
                _ => session.admin.delete_kv_config(addr, ORDER_TOPIC_CONFIG, topic).await,
            };
            match done {
                Ok(()) => {
                    let after = session.admin.kv_config(addr, ORDER_TOPIC_CONFIG, topic).await?;
                    changes.add(addr, Some(json!(before)), json!(after));
                }
                Err(error) => changes.fail(error),
            }
        }
        if !changes.has_failed() {
            match self.method {
                Method::Put => {
                    changes.say(format_args!("update orderConf success. topic=[{topic}], orderConf=[{value}]"))
                }
                _ => changes.say(format_args!("delete orderConf success. topic=[{topic}]")),
            }
        }
        changes.report()
    }
}

async fn get_order_conf(session: &Session, topic: &str) -> anyhow::Result<Report> {
    let addr = session.admin.name_servers().first().context("no name server")?;
    let Some(found) = session.admin.kv_config(addr, ORDER_TOPIC_CONFIG, topic).await? else {
        bail!("{addr} answered {}: no order configuration for topic {topic}", ResponseCode::QUERY_NOT_FOUND);
    };
    let text = format!("get orderConf success. topic=[{topic}], orderConf=[{found}] \n");
    Report::new(text, json!({"topic": topic, "orderConf": found}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_changes() {
        let changes = attribute_changes("+message.type=FIFO,-owner").unwrap();
        assert_eq!(java_map(&changes), "{+message.type=FIFO, -owner=}");
        assert!(attribute_changes("").unwrap().is_empty());
        for wrong in ["a=b", "+a", "a", "-a=b", "+=b", "+a=1,+a=2"] {
            assert!(attribute_changes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_topic_is_written_as_java_does() {
        let mut config = TopicConfig::new("t1", 4, 6);
        config.attributes = attribute_changes("+a=b").unwrap();
        assert_eq!(
            java_text(&config),
            "TopicConfig [topicName=t1, readQueueNums=4, writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, \
             topicSysFlag=0, order=false, attributes={+a=b}]"
        );
    }
}
