//! What there is to see of topics: topicList (206, 300), topicRoute (105), topicClusterList (105, 106), topicStatus (202),
//! allocateMQ (105). Java: `tools.command.topic.*`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use clap::Args;
use cometmq_client::{Error, MessageQueue, ResponseCode, Route, averagely};
use cometmq_wire::{json, names};
use serde::Serialize;
use serde_json::json;

use crate::report::{Progress, Report, sentence};
use crate::session::{Session, named_replicas};
use crate::table::{Table, front};
use crate::time;
use crate::topic::java_map;

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
                failures.insert(sentence(&error.into()));
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
    /// Name of the topic.
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
    /// Name of the topic.
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
    /// Name of the topic.
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
    /// Name of the topic.
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
