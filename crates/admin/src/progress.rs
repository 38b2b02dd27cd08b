//! consumerProgress (208, 203, 206, 307): how far groups are, one in detail or all in a line each.
//! Java: `ConsumerProgressSubCommand`.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{ArgAction, Args};
use cometmq_client::{Error, MessageQueue};
use cometmq_wire::body::{ConsumeStats, ConsumeType};
use cometmq_wire::{names, version};
use serde::Serialize;
use serde_json::json;

use crate::args::truth;
use crate::group_show::members;
use crate::report::{Progress, Report, sentence};
use crate::session::Session;
use crate::table::{Table, front};
use crate::time;

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin consumerProgress                               all groups
  comet admin consumerProgress -g billing
  comet admin consumerProgress -g billing -t orders -s true  with the consumer of each queue")]
pub(crate) struct ConsumerProgress {
    #[arg(short = 'g', long = "groupName", value_name = "GROUP")]
    group: Option<String>,
    /// With -g: only this topic.
    #[arg(short = 't', long = "topicName", value_name = "TOPIC", requires = "group")]
    topic: Option<String>,
    /// With -g: which client has each queue.
    #[arg(short = 's', long = "showClientIP", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false, requires = "group")]
    show_client: bool,
    /// With -t: cluster, or parent topic, whose route is used for a topic that has none of its own.
    #[arg(short = 'c', long, value_name = "CLUSTER", requires = "topic")]
    cluster: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueProgress {
    topic: String,
    broker_name: String,
    queue_id: i32,
    broker_offset: i64,
    consumer_offset: i64,
    diff: i64,
    inflight: i64,
    last_timestamp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_ip: Option<String>,
}

impl ConsumerProgress {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        match self.group.as_deref().map(str::trim) {
            Some(group) => self.one_group(session, group).await,
            None => all_groups(session).await,
        }
    }

    async fn one_group(&self, session: &Session, group: &str) -> anyhow::Result<Report> {
        let topic = self.topic.as_deref().map(str::trim);
        let routed = topic.map(|topic| route_topic(topic, self.cluster.as_deref()));
        let brokers = session.brokers_of_group(group, routed).await?;
        let stats = consume_stats(session, &brokers, group, topic).await?;
        if stats.offset_table.is_empty() {
            let where_ = topic.map(|topic| format!(" in topic {topic}")).unwrap_or_default();
            bail!("{}: group {group} has no offsets{where_}; maybe it has never consumed", brokers.join(", "));
        }
        let with_clients = self.show_client;
        let (mut clients, mut failures) = (BTreeMap::new(), Vec::new());
        if with_clients {
            clients = clients_of_queues(session, &brokers, group, &mut failures).await?;
        }
        let row = |(queue, at): (MessageQueue, cometmq_wire::body::OffsetWrapper)| QueueProgress {
            client_ip: clients.get(&queue).cloned(),
            topic: queue.topic,
            broker_name: queue.broker_name,
            queue_id: queue.queue_id,
            broker_offset: at.broker_offset,
            consumer_offset: at.consumer_offset,
            diff: at.broker_offset - at.consumer_offset,
            inflight: at.pull_offset - at.consumer_offset,
            last_timestamp: at.last_timestamp,
        };
        let mut rows: Vec<QueueProgress> = stats.offset_table.into_iter().map(row).collect();
        rows.sort_by(|a, b| (&a.topic, &a.broker_name, a.queue_id).cmp(&(&b.topic, &b.broker_name, b.queue_id)));
        let (diff, inflight) = rows.iter().fold((0, 0), |(d, i), row| (d + row.diff, i + row.inflight));
        let text = format!(
            "{}\nConsume TPS: {:.2}\nConsume Diff Total: {diff}\nConsume Inflight Total: {inflight}\n",
            queue_table(&rows, with_clients),
            stats.consume_tps
        );
        let json = json!({
            "group": group,
            "queues": rows,
            "consumeTps": stats.consume_tps,
            "diffTotal": diff,
            "inflightTotal": inflight,
        });
        Ok(Report::new(text, json)?.failures(failures))
    }
}

fn queue_table(rows: &[QueueProgress], with_clients: bool) -> String {
    let mut titles =
        vec!["#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#Inflight", "#LastTime"];
    // mqadmin's headline has no space before the last title.
    let mut table = if with_clients {
        titles.insert(5, "#Client IP");
        let head = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s%s";
        Table::new(head, &titles, "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s %s")
    } else {
        let head = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s%s";
        Table::new(head, &titles, "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %s")
    };
    for row in rows {
        let mut cells = vec![
            front(&row.topic, 64).to_string(),
            front(&row.broker_name, 32).to_string(),
            row.queue_id.to_string(),
            row.broker_offset.to_string(),
            row.consumer_offset.to_string(),
            row.diff.to_string(),
            row.inflight.to_string(),
            if row.last_timestamp == 0 { "N/A".to_string() } else { time::seconds(row.last_timestamp) },
        ];
        if with_clients {
            cells.insert(5, row.client_ip.clone().unwrap_or_else(|| "N/A".to_string()));
        }
        table.row(&cells);
    }
    table.into_text()
}

/// The topic whose route leads to a topic's brokers. Light queues and the timer topic have no route.
pub(crate) fn route_topic<'a>(topic: &'a str, cluster: Option<&'a str>) -> &'a str {
    match cluster.map(str::trim).filter(|c| !c.is_empty()) {
        Some(cluster) if names::is_lmq(topic) || topic == names::TIMER_TOPIC => cluster,
        _ => topic,
    }
}

/// The progress of a group on all brokers together.
async fn consume_stats(
    session: &Session,
    brokers: &[String],
    group: &str,
    topic: Option<&str>,
) -> anyhow::Result<ConsumeStats> {
    let mut all = ConsumeStats::default();
    for addr in brokers {
        let stats = session.admin.consume_stats(addr, group, topic).await?;
        all.offset_table.extend(stats.offset_table);
        all.consume_tps += stats.consume_tps;
    }
    Ok(all)
}

/// Asks every member which queues it has. Members that cannot tell are failures, the others count nevertheless.
async fn clients_of_queues(
    session: &Session,
    brokers: &[String],
    group: &str,
    failures: &mut Vec<String>,
) -> anyhow::Result<BTreeMap<MessageQueue, String>> {
    let mut owners = BTreeMap::new();
    let Some((addr, found)) = members(session, brokers, group).await? else { return Ok(owners) };
    for client in found.connection_set {
        let id = &client.client_id;
        match session.admin.running_info(&addr, group, id).await {
            Ok(info) => {
                let ip = id.split('@').next().unwrap_or_default();
                owners.extend(info.mq_table.into_keys().map(|queue| (queue, ip.to_string())));
            }
            // The broker hands the client's answer on: which of the two does not know the request is not visible.
            Err(Error::Answer { addr, request, code, remark, .. }) => {
                failures.push(format!("{addr} answered {request} for consumer {id} with {code}: {remark}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(owners)
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct GroupProgress {
    group: String,
    count: usize,
    version: String,
    #[serde(rename = "type")]
    kind: &'static str,
    model: String,
    tps: f64,
    diff_total: i64,
}

/// The groups are those that have a retry topic, as with mqadmin.
async fn all_groups(session: &Session) -> anyhow::Result<Report> {
    let topics = session.admin.topics().await?.topic_list;
    let groups: Vec<&str> = topics.iter().filter_map(|t| t.strip_prefix(names::RETRY_PREFIX)).collect();
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    let mut progress = Progress::start("groups", groups.len());
    for group in groups {
        let mut row = GroupProgress { group: group.to_string(), ..GroupProgress::default() };
        if let Err(error) = row.fill(session).await {
            failures.push(format!("group {group}: {}", sentence(&error)));
        }
        rows.push(row);
        progress.step();
    }
    drop(progress);
    let titles = ["#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total"];
    const FORMAT: &str = "%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s";
    let mut table = Table::new(FORMAT, &titles, FORMAT);
    for row in &rows {
        table.row(&[
            front(&row.group, 64).to_string(),
            row.count.to_string(),
            if row.count > 0 { row.version.clone() } else { "OFFLINE".to_string() },
            row.kind.to_string(),
            row.model.clone(),
            (row.tps as i64).to_string(),
            row.diff_total.to_string(),
        ]);
    }
    Ok(Report::new(table.into_text(), rows)?.failures(failures))
}

impl GroupProgress {
    async fn fill(&mut self, session: &Session) -> anyhow::Result<()> {
        let brokers = session.brokers_of_group(&self.group, None).await?;
        if let Some((_, found)) = members(session, &brokers, &self.group).await? {
            self.count = found.connection_set.len();
            self.version = version::name(found.connection_set.iter().map(|c| c.version).min().unwrap_or(0));
            self.kind = if found.consume_type == ConsumeType::ConsumeActively { "PULL" } else { "PUSH" };
            if found.consume_type == ConsumeType::ConsumePassively {
                self.model = found.message_model.to_string();
            }
        }
        let stats = consume_stats(session, &brokers, &self.group, None).await?;
        self.tps = stats.consume_tps;
        self.diff_total = stats.offset_table.values().map(|at| at.broker_offset - at.consumer_offset).sum();
        Ok(())
    }
}
