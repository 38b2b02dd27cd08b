//! Offsets of groups: resetOffsetByTime and skipAccumulatedMessage (222; for old brokers without a connected consumer 208,
//! 202, 29, 30, 15), cloneGroupOffset (208, 15). Java: `tools.command.offset.*`.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{ArgAction, Args};
use cometmq_client::{MessageQueue, ResponseCode};
use cometmq_wire::body::OffsetWrapper;
use serde_json::{Value, json};

use crate::args::truth;
use crate::progress::route_topic;
use crate::report::{Changes, Report};
use crate::session::{Session, named_replicas};
use crate::table::{Table, front};
use crate::time;

#[derive(Args)]
#[command(after_help = "Running consumers go on from the new offsets.

Examples:
  comet admin resetOffsetByTime -g billing -t orders -s now
  comet admin resetOffsetByTime -g billing -t orders -s '2026-11-30#08:00:00:000'     local time
  comet admin resetOffsetByTime -g billing -t orders -s 2026-11-30T08:00:00Z
  comet admin resetOffsetByTime -g billing -t orders -s 0 -b 10.0.0.1:10911 -q 3 -o 1200")]
pub(crate) struct ResetOffsetByTime {
    /// Name of the group.
    #[arg(short = 'g', long)]
    group: String,
    /// Name of the topic.
    #[arg(short = 't', long)]
    topic: String,
    /// now, epoch milliseconds, yyyy-MM-dd#HH:mm:ss:SSS in local time, or RFC 3339; -1 is the end.
    #[arg(short = 's', long, value_name = "TIME", allow_hyphen_values = true)]
    timestamp: String,
    /// Also forwards. Brokers from 5.0 on always do.
    #[arg(short = 'f', long, value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = true)]
    force: bool,
    /// With -q: only this broker.
    #[arg(short = 'b', long, value_name = "ADDR", requires = "queue")]
    broker: Option<String>,
    /// With -b: only this queue.
    #[arg(short = 'q', long, value_name = "ID", requires = "broker")]
    queue: Option<i32>,
    /// With -b and -q: this offset instead of that of the time.
    #[arg(short = 'o', long, value_name = "N", requires = "queue")]
    offset: Option<i64>,
    /// Cluster, or parent topic, whose route is used for a topic that has none of its own.
    #[arg(short = 'c', long, value_name = "CLUSTER")]
    cluster: Option<String>,
}

impl ResetOffsetByTime {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let when = self.timestamp.trim();
        let epoch_ms = time::parse(when)?;
        if let (Some(broker), Some(queue_id)) = (&self.broker, self.queue) {
            return self.one_queue(session, broker.trim(), queue_id, epoch_ms).await;
        }
        let move_ = Move {
            group: self.group.trim(),
            topic: self.topic.trim(),
            cluster: self.cluster.as_deref(),
            epoch_ms: Some(epoch_ms).filter(|ms| *ms >= 0),
            force: self.force,
        };
        let (group, topic, force) = (move_.group, move_.topic, move_.force);
        let stamp = format!("force[{force}], timestamp(string)[{when}], timestamp(long)[{epoch_ms}]");
        let new = format!("start reset consumer offset by specified, group[{group}], topic[{topic}], {stamp}");
        let old = format!("reset consumer offset by specified consumerGroup[{group}], topic[{topic}], {stamp}");
        move_.run(session, Some(&new), Some(&old), "#resetOffset").await
    }

    async fn one_queue(&self, session: &Session, broker: &str, queue_id: i32, epoch_ms: i64) -> anyhow::Result<Report> {
        let (group, topic) = (self.group.trim(), self.topic.trim());
        let mut changes = Changes::default();
        changes.say(format_args!(
            "start reset consumer offset by specified, group[{group}], topic[{topic}], queueId[{queue_id}], \
             broker[{broker}], timestamp(string)[{}], timestamp(long)[{epoch_ms}]",
            self.timestamp.trim()
        ));
        let stats = offsets_of(session, broker, group, topic).await?;
        let found = stats.iter().find(|(queue, _)| queue.queue_id == queue_id);
        let before = found.map(|(_, at)| at.consumer_offset);
        let broker_name = found.map(|(queue, _)| queue.broker_name.clone()).unwrap_or_default();
        let queue = MessageQueue { broker_name, queue_id, topic: topic.to_string() };
        let offset = match self.offset {
            Some(offset) => offset,
            None => session.admin.search_offset_at(broker, &queue, epoch_ms).await?,
        };
        changes.say(format_args!("reset consumer offset to {offset}"));
        if moves_single_queues(session, broker).await? {
            session.admin.reset_queue_offset(broker, group, &queue, offset).await?;
        } else {
            session.admin.update_consumer_offset_at(broker, group, &queue, offset).await?;
            changes.say("running consumers of the group do not hear of it: stop them, or they store their own offsets");
        }
        changes.add(format!("{broker} queue {queue_id}"), Some(json!(before)), json!(offset));
        changes.report()
    }
}

/// Whether 222 may be sent for one queue. Other brokers take no notice of the queue in it, and mqadmin's request sends the
/// consumers of the group to the beginning of every queue.
async fn moves_single_queues(session: &Session, broker: &str) -> anyhow::Result<bool> {
    let config = session.admin.broker_config(broker).await?;
    let mut keys = cometmq_base::config::properties::parse(&config).into_iter();
    Ok(keys.any(|(key, value)| key == "useServerSideResetOffset" && value.trim() == "true"))
}

#[derive(Args)]
#[command(after_help = "Running consumers go on from the new offsets.

Examples:
  comet admin skipAccumulatedMessage -g billing -t orders")]
pub(crate) struct SkipAccumulatedMessage {
    /// Name of the group.
    #[arg(short = 'g', long)]
    group: String,
    /// Name of the topic.
    #[arg(short = 't', long)]
    topic: String,
    /// Also forwards. Brokers from 5.0 on always do.
    #[arg(short = 'f', long, value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = true)]
    force: bool,
    /// Cluster, or parent topic, whose route is used for a topic that has none of its own.
    #[arg(short = 'c', long, value_name = "CLUSTER")]
    cluster: Option<String>,
}

impl SkipAccumulatedMessage {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let move_ = Move {
            group: self.group.trim(),
            topic: self.topic.trim(),
            cluster: self.cluster.as_deref(),
            epoch_ms: None,
            force: self.force,
        };
        move_.run(session, None, None, "#rollbackOffset").await
    }
}

/// A group is moved in all queues of a topic.
struct Move<'a> {
    group: &'a str,
    topic: &'a str,
    cluster: Option<&'a str>,
    /// `None`: to the end.
    epoch_ms: Option<i64>,
    force: bool,
}

/// Where a queue stood, and where it goes.
struct Moved {
    queue: MessageQueue,
    ends: OffsetWrapper,
    wanted: i64,
    now: i64,
}

impl Move<'_> {
    /// `new` and `old` are what mqadmin says before its table: of brokers that did it, and of those that left it to us.
    async fn run(
        &self,
        session: &Session,
        new: Option<&str>,
        old: Option<&str>,
        last_title: &str,
    ) -> anyhow::Result<Report> {
        let route = session.admin.route(route_topic(self.topic, self.cluster)).await?;
        let brokers = named_replicas(&route);
        let mut before = BTreeMap::new();
        for (_, addr) in &brokers {
            before.extend(offsets_of(session, addr, self.group, self.topic).await?);
        }
        let mut moved: BTreeMap<MessageQueue, i64> = BTreeMap::new();
        for (_, addr) in &brokers {
            match session.admin.reset_offset(addr, self.group, self.topic, self.epoch_ms, self.force).await {
                Ok(body) => moved.extend(body.offset_table),
                Err(error) if error.code() == Some(ResponseCode::CONSUMER_NOT_ONLINE) => {
                    return self.by_hand(session, &brokers, old, last_title).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mut changes = Changes::default();
        new.iter().for_each(|line| changes.say(line));
        const FORMAT: &str = "%-40s  %-40s  %-40s";
        let mut table = Table::new(FORMAT, &["#brokerName", "#queueId", "#offset"], FORMAT);
        for (queue, offset) in &moved {
            table.row(&[front(&queue.broker_name, 32), &queue.queue_id.to_string(), &offset.to_string()]);
            note(&mut changes, queue, before.get(queue).map(|at| at.consumer_offset), *offset);
        }
        changes.say_table(table);
        changes.report()
    }

    /// No consumer is connected, and the broker only tells connected ones: the offsets are written one by one.
    async fn by_hand(
        &self,
        session: &Session,
        brokers: &[(String, String)],
        said: Option<&str>,
        last_title: &str,
    ) -> anyhow::Result<Report> {
        let mut changes = Changes::default();
        said.iter().for_each(|line| changes.say(line));
        let titles = ["#brokerName", "#queueId", "#brokerOffset", "#consumerOffset", "#timestampOffset", last_title];
        const FORMAT: &str = "%-20s  %-20s  %-20s  %-20s  %-20s  %-20s";
        let mut table = Table::new(FORMAT, &titles, FORMAT);
        for (name, addr) in brokers {
            for (queue, ends) in self.queues(session, name, addr).await? {
                let moved = self.move_queue(session, addr, queue, ends).await?;
                table.row(&[
                    front(&moved.queue.broker_name, 32).to_string(),
                    moved.queue.queue_id.to_string(),
                    moved.ends.broker_offset.to_string(),
                    moved.ends.consumer_offset.to_string(),
                    moved.wanted.to_string(),
                    moved.now.to_string(),
                ]);
                note(&mut changes, &moved.queue, Some(moved.ends.consumer_offset), moved.now);
            }
        }
        changes.say_table(table);
        changes.report()
    }

    /// The queues of the topic on one broker, and where the group is in them; at their beginnings if it never consumed.
    async fn queues(
        &self,
        session: &Session,
        broker_name: &str,
        addr: &str,
    ) -> anyhow::Result<Vec<(MessageQueue, OffsetWrapper)>> {
        let known: Vec<_> = offsets_of(session, addr, self.group, self.topic).await?.into_iter().collect();
        if !known.is_empty() {
            return Ok(known);
        }
        let queues = session.admin.topic_stats(addr, self.topic).await?.offset_table;
        let of_broker = queues.into_iter().filter(|(queue, _)| queue.broker_name == broker_name);
        let at_start = of_broker.map(|(queue, ends)| {
            let at = OffsetWrapper {
                broker_offset: ends.max_offset,
                consumer_offset: ends.min_offset,
                ..OffsetWrapper::default()
            };
            (queue, at)
        });
        Ok(at_start.collect())
    }

    async fn move_queue(
        &self,
        session: &Session,
        addr: &str,
        queue: MessageQueue,
        ends: OffsetWrapper,
    ) -> anyhow::Result<Moved> {
        let wanted = match self.epoch_ms {
            Some(ms) => session.admin.search_offset_at(addr, &queue, ms).await?,
            None => session.admin.max_offset(&queue).await?,
        };
        let mut now = ends.consumer_offset;
        if self.force || wanted <= now {
            session.admin.update_consumer_offset_at(addr, self.group, &queue, wanted).await?;
            now = wanted;
        }
        Ok(Moved { queue, ends, wanted, now })
    }
}

/// The queues of a topic that a group has offsets in, on one broker. All topics are asked for: asked for one, the broker
/// answers 0 in queues that the group has never seen.
async fn offsets_of(
    session: &Session,
    addr: &str,
    group: &str,
    topic: &str,
) -> anyhow::Result<BTreeMap<MessageQueue, OffsetWrapper>> {
    let mut found = session.admin.consume_stats(addr, group, None).await?.offset_table;
    found.retain(|queue, _| queue.topic == topic);
    Ok(found)
}

fn note(changes: &mut Changes, queue: &MessageQueue, before: Option<i64>, after: i64) {
    let before: Value = before.map_or(Value::Null, |offset| json!(offset));
    changes.add(format!("{} queue {}", queue.broker_name, queue.queue_id), Some(before), json!(after));
}

#[derive(Args)]
#[command(
    after_help = "The destination should have no running consumers: they would store their own offsets over these.

Examples:
  comet admin cloneGroupOffset -s billing -d billing-new -t orders"
)]
pub(crate) struct CloneGroupOffset {
    /// Group to read from.
    #[arg(short = 's', long = "srcGroup", value_name = "GROUP")]
    source: String,
    /// Group to write to.
    #[arg(short = 'd', long = "destGroup", value_name = "GROUP")]
    destination: String,
    /// Name of the topic.
    #[arg(short = 't', long)]
    topic: String,
    /// Whether the group or the topic is offline. It changes nothing, neither here nor in mqadmin.
    #[arg(short = 'o', long, value_name = "BOOL")]
    offline: Option<String>,
}

impl CloneGroupOffset {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let (source, destination, topic) = (self.source.trim(), self.destination.trim(), self.topic.trim());
        let route = session.admin.route(topic).await?;
        let mut changes = Changes::default();
        for (_, addr) in named_replicas(&route) {
            let from = offsets_of(session, &addr, source, topic).await?;
            let to = offsets_of(session, &addr, destination, topic).await?;
            // Only the topic asked for: mqadmin also writes the source's other topics, if a broker of this route has them.
            for (queue, at) in from.iter().filter(|(_, at)| at.consumer_offset >= 0) {
                let before = to.get(queue).map(|at| at.consumer_offset).filter(|offset| *offset >= 0);
                let done = session.admin.update_consumer_offset_at(&addr, destination, queue, at.consumer_offset).await;
                match done {
                    Ok(()) => note(&mut changes, queue, before, at.consumer_offset),
                    Err(error) => changes.fail(error),
                }
            }
        }
        if changes.is_empty() {
            bail!("group {source} has no offsets in topic {topic}");
        }
        if !changes.has_failed() {
            changes.say(format_args!(
                "clone group offset success. srcGroup[{source}], destGroup=[{destination}], topic[{topic}]"
            ));
        }
        changes.report()
    }
}
