//! Clusters and brokers: clusterList (106, 28), brokerStatus (28), wipeWritePerm (205), addWritePerm (327).
//! Java: `tools.command.cluster.*`, `tools.command.broker.*`, `tools.command.namesrv.*`.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use cometmq_client::Error;
use serde::Serialize;
use serde_json::{Value, json};

use crate::report::{Changes, Progress, Report, sentence};
use crate::session::{Brokers, Session};
use crate::table::{Table, format};

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin clusterList
  comet admin clusterList -m -c DefaultCluster       messages of yesterday and today
  comet admin clusterList -i 5                       again each 5 seconds")]
pub(crate) struct ClusterList {
    /// Messages of yesterday and today instead of rates.
    #[arg(short = 'm', long = "moreStats")]
    more: bool,
    /// Print again each so many seconds, until interrupted.
    #[arg(short = 'i', long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    interval: Option<u64>,
    /// Only this cluster.
    #[arg(short = 'c', long = "clusterName", value_name = "CLUSTER")]
    cluster: Option<String>,
}

/// One process of a broker and what it says of itself; nothing if it does not answer.
struct Member {
    cluster: String,
    broker: String,
    id: i64,
    addr: String,
    figures: BTreeMap<String, String>,
}

impl ClusterList {
    pub(crate) fn every(&self) -> Option<Duration> {
        self.interval.map(Duration::from_secs)
    }

    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let brokers = session.brokers(self.cluster.as_deref()).await?;
        let (mut members, mut failures) = (Vec::new(), Vec::new());
        let mut progress = Progress::start("brokers", brokers.iter().map(|b| b.broker_addrs.len()).sum());
        for broker in brokers {
            for (id, addr) in broker.broker_addrs {
                let figures = session.admin.runtime_info(&addr).await.map(|info| info.table);
                let figures = figures.unwrap_or_else(|error| {
                    failures.push(sentence(&error.into()));
                    BTreeMap::new()
                });
                let (cluster, broker) = (broker.cluster.clone(), broker.broker_name.clone());
                members.push(Member { cluster, broker, id, addr, figures });
                progress.step();
            }
        }
        drop(progress);
        let report = if self.more { totals(&members) } else { rates(&members) };
        Ok(report?.failures(failures))
    }
}

impl Member {
    /// `N` where the broker does not say, as mqadmin does for some of them.
    fn text(&self, key: &str) -> &str {
        let unsaid = if self.figures.is_empty() { "" } else { "N" };
        self.figures.get(key).map_or(unsaid, String::as_str)
    }

    /// The first number of a value.
    fn number(&self, key: &str) -> f64 {
        let first = self.text(key).split(' ').next().unwrap_or_default();
        first.parse().unwrap_or(0.0)
    }

    fn whole(&self, key: &str) -> i64 {
        self.text(key).parse().unwrap_or(0)
    }

    fn queue(&self, pool: &str) -> String {
        let (size, wait) = ("ThreadPoolQueueSize", "ThreadPoolQueueHeadWaitTimeMills");
        format!("{},{}ms", self.text(&format!("{pool}{size}")), self.text(&format!("{pool}{wait}")))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rates<'a> {
    cluster: &'a str,
    broker_name: &'a str,
    broker_id: i64,
    addr: &'a str,
    version: &'a str,
    in_tps: f64,
    out_tps: f64,
    /// Hours since the oldest message was stored.
    hours: f64,
    /// Used part of the disk, 0 to 1.
    space: f64,
    active: bool,
}

fn rates(members: &[Member]) -> anyhow::Result<Report> {
    let titles = [
        "#Cluster Name",
        "#Broker Name",
        "#BID",
        "#Addr",
        "#Version",
        "#InTPS(LOAD)",
        "#OutTPS(LOAD)",
        "#Timer(Progress)",
        "#PCWait(ms)",
        "#Hour",
        "#SPACE",
        "#ACTIVATED",
    ];
    let mut table = Table::new(
        "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s",
        &titles,
        "%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s",
    );
    let now = cometmq_base::Clock::System.now_ms();
    let mut rows = Vec::new();
    for member in members {
        // -1: the broker has no message.
        let earliest = member.whole("earliestMessageTimeStamp");
        let row = Rates {
            cluster: &member.cluster,
            broker_name: &member.broker,
            broker_id: member.id,
            addr: &member.addr,
            version: member.text("brokerVersionDesc"),
            in_tps: member.number("putTps"),
            out_tps: member.number("getTransferredTps"),
            hours: if earliest > 0 { (now - earliest) as f64 / 3_600_000.0 } else { 0.0 },
            space: member.number("commitLogDiskRatio"),
            active: member.text("brokerActive") == "true",
        };
        let (send, pull, ack) = (member.queue("send"), member.queue("pull"), member.queue("ack"));
        let (behind, offsets) = (member.whole("timerReadBehind"), member.whole("timerOffsetBehind"));
        let (congested, enqueue, dequeue) = (
            member.whole("timerCongestNum") as f64 / 10_000.0,
            member.number("timerEnqueueTps"),
            member.number("timerDequeueTps"),
        );
        table.row(&[
            row.cluster.to_string(),
            row.broker_name.to_string(),
            row.broker_id.to_string(),
            row.addr.to_string(),
            row.version.to_string(),
            format!("{:9.2}({send})", row.in_tps),
            format!("{:9.2}({pull}|{ack})", row.out_tps),
            format!("{behind}-{offsets}({congested:.1}w, {enqueue:.1}, {dequeue:.1})"),
            member.text("pageCacheLockTimeMills").to_string(),
            format!("{:.2}", row.hours),
            format!("{:.4}", row.space),
            row.active.to_string(),
        ]);
        rows.push(row);
    }
    Report::new(table.into_text(), rows)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals<'a> {
    cluster: &'a str,
    broker_name: &'a str,
    broker_id: i64,
    addr: &'a str,
    in_total_yesterday: i64,
    out_total_yesterday: i64,
    in_total_today: i64,
    out_total_today: i64,
}

fn totals(members: &[Member]) -> anyhow::Result<Report> {
    const FORMAT: &str = "%-16s  %-32s %14s %14s %14s %14s";
    let titles = ["#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday"];
    let mut table = Table::new(FORMAT, &titles, FORMAT);
    let mut rows = Vec::new();
    for member in members {
        let at = |what: &str, when: &str| member.whole(&format!("{what}{when}"));
        let yesterday = |what| at(what, "TodayMorning") - at(what, "YesterdayMorning");
        let today = |what| at(what, "TodayNow") - at(what, "TodayMorning");
        let row = Totals {
            cluster: &member.cluster,
            broker_name: &member.broker,
            broker_id: member.id,
            addr: &member.addr,
            in_total_yesterday: yesterday("msgPutTotal"),
            out_total_yesterday: yesterday("msgGetTotal"),
            in_total_today: today("msgPutTotal"),
            out_total_today: today("msgGetTotal"),
        };
        table.row(&[
            row.cluster.to_string(),
            row.broker_name.to_string(),
            row.in_total_yesterday.to_string(),
            row.out_total_yesterday.to_string(),
            row.in_total_today.to_string(),
            row.out_total_today.to_string(),
        ]);
        rows.push(row);
    }
    Report::new(table.into_text(), rows)
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin brokerStatus -b 10.0.0.1:10911
  comet admin brokerStatus -c DefaultCluster --json")]
pub(crate) struct BrokerStatus {
    #[command(flatten)]
    brokers: Brokers,
}

impl BrokerStatus {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let (mut all, mut failures, mut text) = (BTreeMap::new(), Vec::new(), String::new());
        for replica in session.replicas(&self.brokers).await? {
            let addr = replica.addr;
            let table = match session.admin.runtime_info(&addr).await {
                Ok(info) => info.table,
                Err(error) => {
                    failures.push(sentence(&error.into()));
                    continue;
                }
            };
            for (key, value) in &table {
                text += &match self.brokers.addr {
                    Some(_) => format("%-32s: %s", &[key, value]),
                    None => format("%-24s %-32s: %s", &[&addr, key, value]),
                };
            }
            all.insert(addr, table);
        }
        Ok(Report::new(text, all)?.failures(failures))
    }
}

#[derive(Args)]
#[command(after_help = "It lasts until addWritePerm, or until the broker registers a change.

Examples:
  comet admin wipeWritePerm -b broker-a")]
pub(crate) struct WipeWritePerm {
    /// Name of the broker, not its address.
    #[arg(short = 'b', long = "brokerName", value_name = "NAME")]
    broker: String,
}

impl WipeWritePerm {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        switch_writes(session, self.broker.trim(), false).await
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin addWritePerm -b broker-a")]
pub(crate) struct AddWritePerm {
    /// Name of the broker, not its address.
    #[arg(short = 'b', long = "brokerName", value_name = "NAME")]
    broker: String,
}

impl AddWritePerm {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        switch_writes(session, self.broker.trim(), true).await
    }
}

/// At all name servers.
async fn switch_writes(session: &Session, broker: &str, on: bool) -> anyhow::Result<Report> {
    let mut changes = Changes::default();
    let what = if on { "add" } else { "wipe" };
    let before = own_topic_perm(session, broker).await?;
    let mut most = 0;
    for addr in session.admin.name_servers() {
        let done = match on {
            true => session.admin.add_write_perm(addr, broker).await,
            false => session.admin.wipe_write_perm(addr, broker).await,
        };
        let said = format!("{what} write perm of broker[{broker}] in name server[{addr}]");
        match done {
            Ok(topics) => {
                changes.say(format_args!("{said} OK, {topics}"));
                most = most.max(topics);
            }
            Err(error) => {
                changes.say(format_args!("{said} Failed"));
                changes.fail(error);
            }
        }
    }
    match (before, own_topic_perm(session, broker).await?) {
        _ if most == 0 => changes.add(broker, Some(Value::Null), Value::Null),
        (Some(before), Some(after)) => changes.add(broker, Some(json!({"perm": before})), json!({"perm": after})),
        _ => changes.add(broker, None, json!({"topics": most})),
    }
    changes.report()
}

/// The permission in the route of the topic that a broker has for itself, under its own name. The answers of 205 and 327
/// only count the broker's topics, whether or not anything changed in them.
async fn own_topic_perm(session: &Session, broker: &str) -> anyhow::Result<Option<i32>> {
    match session.admin.route(broker).await {
        Ok(route) => Ok(route.data().queue_datas.iter().find(|q| q.broker_name == broker).map(|q| q.perm)),
        Err(Error::NoRoute { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
