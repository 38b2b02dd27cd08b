//! clusterRT (106, 310): how long sends to each broker take, again and again, until interrupted. Each broker has a topic of its
//! own name for that. Java: `CLusterSendMsgRTCommand`.

use std::cell::Cell;
use std::time::{Duration, Instant};

use clap::{ArgAction, Args};
use cometmq_client::{Message, Producer};
use serde::Serialize;

use crate::args::truth;
use crate::report::{Progress, Report, sentence};
use crate::session::Session;
use crate::table::format;
use crate::time;

const HEAD: &str = "%-24s  %-24s  %-4s  %-8s  %-8s";
const ROW: &str = "%-24s  %-24s  %-8s  %-16s  %-16s";
const GROUP: &str = "comet-cluster-rt";

#[derive(Args)]
#[command(after_help = "The messages are kept, in the topic that has the broker's name.

Examples:
  comet admin clusterRT                              until interrupted
  comet admin clusterRT -c DefaultCluster -a 10 -s 1024 -i 1
  comet admin clusterRT -p true -m room1             lines for a log: time|room|cluster|broker|milliseconds")]
pub(crate) struct ClusterRt {
    /// Messages to each broker; the first is not measured.
    #[arg(short = 'a', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..))]
    amount: u32,
    /// Of a message, in bytes.
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4 << 20))]
    size: u32,
    /// Only this cluster.
    #[arg(short = 'c', long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Lines for a log instead of a table.
    #[arg(short = 'p', long = "print log", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    log: bool,
    /// What stands for this machine in the lines of -p.
    #[arg(short = 'm', long = "machine room", value_name = "NAME", default_value = "noname")]
    room: String,
    /// Seconds between two rounds.
    #[arg(short = 'i', long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// The headline is printed once.
    #[arg(skip)]
    headed: Cell<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoundTrips {
    cluster: String,
    broker_name: String,
    /// Milliseconds, the mean.
    rt: f64,
    success_count: u32,
    fail_count: u32,
}

impl ClusterRt {
    pub(crate) fn every(&self) -> Duration {
        Duration::from_secs(self.interval)
    }

    /// One round.
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let brokers = session.brokers(self.cluster.as_deref()).await?;
        let producer = Producer::builder(&session.client, GROUP).start().await?;
        let (mut rows, mut failures) = (Vec::new(), Vec::new());
        let mut progress = Progress::start("brokers", brokers.len());
        for broker in brokers {
            rows.push(self.measure(&producer, broker.cluster, broker.broker_name, &mut failures).await);
            progress.step();
        }
        drop(progress);
        producer.shutdown().await;
        let head = ["#Cluster Name", "#Broker Name", "#RT", "#successCount", "#failCount"];
        let head = if self.log || self.headed.replace(true) { String::new() } else { format(HEAD, &head) };
        let lines: String = rows.iter().map(|row| self.line(row)).collect();
        Ok(Report::new(head + &lines, rows)?.failures(failures))
    }

    async fn measure(
        &self,
        producer: &Producer,
        cluster: String,
        broker_name: String,
        failures: &mut Vec<String>,
    ) -> RoundTrips {
        let body = vec![b'a'; self.size as usize];
        let (mut took, mut fail_count, mut last) = (Duration::ZERO, 0, None);
        for number in 0..self.amount {
            let began = Instant::now();
            if let Err(error) = producer.send(Message::new(&broker_name, body.clone())).await {
                fail_count += 1;
                last = Some(error);
            }
            // The first also finds the route and connects.
            if number > 0 {
                took += began.elapsed();
            }
        }
        failures.extend(last.map(|error| sentence(&error.into())));
        let rt = took.as_secs_f64() * 1000.0 / f64::from(self.amount - 1);
        RoundTrips { cluster, broker_name, rt, success_count: self.amount - fail_count, fail_count }
    }

    fn line(&self, row: &RoundTrips) -> String {
        let RoundTrips { cluster, broker_name, rt, success_count, fail_count } = row;
        if self.log {
            let now = time::seconds_in_china(cometmq_base::Clock::System.now_ms());
            return format!("{now}|{}|{cluster}|{broker_name}|{:.0}\n", self.room.trim(), rt.round());
        }
        let (rt, good, bad) = (format!("{rt:.2}"), success_count.to_string(), fail_count.to_string());
        format(ROW, &[cluster, broker_name, &rt, &good, &bad])
    }
}
