//! Topics: updateTopic (17, order: 100, 101), deleteTopic (215, 216), updateTopicPerm (17), topicList (206, 300), topicRoute
//! (105), topicClusterList (105, 106), topicStatus (202), allocateMQ (105), updateOrderConf (100 to 102).
//! Java: `tools.command.topic.*`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use clap::{ArgAction, Args, ValueEnum};
use cometmq_client::{Error, MessageQueue, ResponseCode, Route, TopicConfig, averagely};
use cometmq_wire::flags::perm;
use cometmq_wire::{json, names};
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::ORDER_TOPIC_CONFIG;
use crate::report::{Changes, Progress, Report, state};
use crate::session::{Brokers, Session, named_replicas};
use crate::table::{Table, front};
use crate::time;

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
    #[arg(short = 'o', long, value_name = "BOOL", action = ArgAction::Set, ignore_case = true, default_value_t = false)]
    order: bool,
    #[arg(short = 'u', long, value_name = "BOOL", action = ArgAction::Set, default_value_t = false)]
    unit: bool,
    #[arg(short = 's', long = "hasUnitSub", value_name = "BOOL", action = ArgAction::Set, default_value_t = false)]
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
        for addr in &addrs {
            match change_topic(session, addr, &config, self.attributes.trim()).await {
                Ok((before, after)) => {
                    changes.say(format_args!("create topic to {addr} success."));
                    changes.add(addr, before, after);
                }
                Err(error) => changes.fail(error),
            }
            progress.step();
        }
        if self.order && !changes.has_failed() {
            self.fix_queues(session, &mut changes).await?;
        }
        if !changes.has_failed() {
            config.attributes = attributes;
            changes.say(java_text(&config));
        }
        changes.report()
    }

    /// The order configuration: of one broker it is put into that of the others, of a cluster it is all.
    async fn fix_queues(&self, session: &Session, changes: &mut Changes) -> anyhow::Result<()> {
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
            let what = if self.brokers.addr.is_some() { "broker" } else { "cluster" };
            changes.say(format_args!("set {what} orderConf. isOrder=true, orderConf=[{value}]"));
            changes.add(format!("{addr} {ORDER_TOPIC_CONFIG}"), Some(json!(before)), json!(value));
        }
        Ok(())
    }
}

/// Changes a topic on one broker: the state before and after.
async fn change_topic(
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
  comet admin topicList
  comet admin topicList -c                     with clusters and consumer groups")]
pub(crate) struct TopicList {
    /// With the cluster and the consumer groups of each topic; without retry topics.
    #[arg(short = 'c', long = "clusterModel")]
    with_clusters: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TopicUse {
    cluster: String,
    topic: String,
    groups: Vec<String>,
}

impl TopicList {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let topics = session.admin.topics().await?.topic_list;
        if !self.with_clusters {
            let text = topics.iter().map(|topic| format!("{topic}\n")).collect();
            return Report::new(text, topics);
        }
        let shown: Vec<_> = topics.iter().filter(|t| !names::is_retry_topic(t) && !names::is_dlq_topic(t)).collect();
        let mut progress = Progress::start("topics", shown.len());
        let (mut rows, mut failures) = (Vec::new(), BTreeSet::new());
        for topic in shown {
            let mut row = TopicUse { cluster: String::new(), topic: topic.clone(), groups: Vec::new() };
            if let Err(error) = row.fill(session).await {
                failures.insert(crate::report::sentence(&error.into()));
            }
            rows.push(row);
            progress.step();
        }
        let titles = ["#Cluster Name", "#Topic", "#Consumer Group"];
        let mut table = Table::new("%-20s  %-48s  %-48s", &titles, "%-20s  %-64s  %-64s");
        for row in &rows {
            let cells =
                |group: &str| [front(&row.cluster, 20), front(&row.topic, 64), front(group, 64)].map(String::from);
            for group in &row.groups {
                table.row(&cells(group));
            }
            if row.groups.is_empty() {
                table.row(&cells(""));
            }
        }
        Ok(Report::new(table.into_text(), &rows)?.failures(failures.into_iter().collect()))
    }
}

impl TopicUse {
    /// A topic without a route, or one that nobody consumes, is an empty row and no failure.
    async fn fill(&mut self, session: &Session) -> Result<(), Error> {
        let route = match session.admin.route(&self.topic).await {
            Err(Error::NoRoute { .. }) => return Ok(()),
            found => found?,
        };
        self.cluster = route.data().broker_datas.first().map(|b| b.cluster.clone()).unwrap_or_default();
        // As mqadmin: one broker is asked, the groups of a topic are the same on all.
        let Some((_, addr)) = named_replicas(&route).into_iter().next() else { return Ok(()) };
        match session.admin.groups_of_topic(&addr, &self.topic).await {
            Ok(found) => self.groups = found.group_list,
            Err(Error::Answer { code: ResponseCode::TOPIC_NOT_EXIST | ResponseCode::SYSTEM_ERROR, .. }) => {}
            Err(error) => return Err(error),
        }
        self.groups.sort();
        Ok(())
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin topicRoute -t orders             as JSON, with the name server's own field names
  comet admin topicRoute -t orders -l          as a table")]
pub(crate) struct TopicRoute {
    #[arg(short = 't', long)]
    topic: String,
    /// Print a table.
    #[arg(short = 'l', long)]
    list: bool,
}

impl TopicRoute {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let route = session.admin.route(self.topic.trim()).await?;
        let text = if self.list {
            route_table(&route)
        } else {
            String::from_utf8_lossy(&json::to_pretty(route.data())).into_owned() + "\n"
        };
        Report::new(text, route.data())
    }
}

fn route_table(route: &Route) -> String {
    const FORMAT: &str = "%-45s %-32s %-50s %-10s %-11s %-5s";
    let titles = ["#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm"];
    let mut table = Table::new(FORMAT, &titles, FORMAT);
    let data = route.data();
    let mut brokers: Vec<_> = data.broker_datas.iter().collect();
    brokers.sort_by(|a, b| a.broker_name.cmp(&b.broker_name));
    let (mut read, mut write) = (0, 0);
    for broker in brokers {
        let queues = data.queue_datas.iter().find(|q| q.broker_name == broker.broker_name).cloned().unwrap_or_default();
        read += queues.read_queue_nums;
        write += queues.write_queue_nums;
        table.row(&[
            broker.cluster.clone(),
            broker.broker_name.clone(),
            java_map(&broker.broker_addrs),
            queues.read_queue_nums.to_string(),
            queues.write_queue_nums.to_string(),
            queues.perm.to_string(),
        ]);
    }
    let names: BTreeSet<&str> = data.queue_datas.iter().map(|q| q.broker_name.as_str()).collect();
    let total = ["Total:", &names.len().to_string(), "", &read.to_string(), &write.to_string(), ""];
    format!("{}{}\n{}", table.into_text(), "-".repeat(158), crate::table::format(FORMAT, &total))
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin topicClusterList -t orders")]
pub(crate) struct TopicClusterList {
    #[arg(short = 't', long)]
    topic: String,
}

impl TopicClusterList {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let route = session.admin.route(self.topic.trim()).await?;
        let info = session.admin.cluster_info().await?;
        let has = |name: &String| route.data().broker_datas.iter().any(|b| b.broker_name == *name);
        let with_it = info.cluster_addr_table.iter().filter(|(_, brokers)| brokers.iter().any(has));
        let clusters: Vec<&String> = with_it.map(|(cluster, _)| cluster).collect();
        Report::new(clusters.iter().map(|cluster| format!("{cluster}\n")).collect(), &clusters)
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin topicStatus -t orders
  comet admin topicStatus -t rmq_sys_wheel_timer -c DefaultCluster")]
pub(crate) struct TopicStatus {
    #[arg(short = 't', long)]
    topic: String,
    /// Cluster, or parent topic, whose route is used for a topic that has none of its own.
    #[arg(short = 'c', long, value_name = "CLUSTER")]
    cluster: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueEnds {
    broker_name: String,
    queue_id: i32,
    min_offset: i64,
    max_offset: i64,
    last_update_timestamp: i64,
}

impl TopicStatus {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let topic = self.topic.trim();
        let route = session.admin.route(self.cluster.as_deref().map_or(topic, str::trim)).await?;
        let mut queues = BTreeMap::new();
        let mut tps = 0.0;
        for (_, addr) in named_replicas(&route) {
            let stats = session.admin.topic_stats(&addr, topic).await?;
            queues.extend(stats.offset_table);
            tps += stats.topic_put_tps;
        }
        if queues.is_empty() {
            bail!("no broker of the route has a queue of topic {topic}");
        }
        let rows = queues.into_iter().map(|(queue, ends)| QueueEnds {
            broker_name: queue.broker_name,
            queue_id: queue.queue_id,
            min_offset: ends.min_offset,
            max_offset: ends.max_offset,
            last_update_timestamp: ends.last_update_timestamp,
        });
        let rows: Vec<QueueEnds> = rows.collect();
        let titles = ["#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated"];
        const FORMAT: &str = "%-32s  %-4s  %-20s  %-20s    %s";
        let mut table = Table::new(FORMAT, &titles, FORMAT);
        for row in &rows {
            let updated = row.last_update_timestamp;
            table.row(&[
                front(&row.broker_name, 32).to_string(),
                row.queue_id.to_string(),
                row.min_offset.to_string(),
                row.max_offset.to_string(),
                if updated > 0 { time::millis(updated) } else { String::new() },
            ]);
        }
        let text = format!("{}\nTopic Put TPS: {tps:?}\n", table.into_text());
        Report::new(text, json!({"topic": topic, "queues": rows, "topicPutTps": tps}))
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin allocateMQ -t orders -i 10.0.0.1,10.0.0.2")]
pub(crate) struct AllocateMq {
    #[arg(short = 't', long)]
    topic: String,
    /// Consumers, by ','.
    #[arg(short = 'i', long = "ipList", value_name = "IPS")]
    ips: String,
}

impl AllocateMq {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let route = session.admin.route(self.topic.trim()).await?;
        let members: Vec<String> = self.ips.trim().split(',').map(str::to_string).collect();
        let share =
            |member: &String| averagely(route.subscribe_queues(), &members, member).unwrap_or_default().to_vec();
        let shares: BTreeMap<&String, Vec<MessageQueue>> = members.iter().map(|m| (m, share(m))).collect();
        let json = json!({"result": shares});
        Report::new(format!("{json}\n"), json)
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin updateOrderConf -t orders -m put -v 'broker-a:4;broker-b:4'
  comet admin updateOrderConf -t orders -m get
  comet admin updateOrderConf -t orders -m delete")]
pub(crate) struct UpdateOrderConf {
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
