//! What there is to see of groups: getConsumerConfig (106, 201), consumerConnection (203), producerConnection (204).
//! Java: `GetConsumerConfigSubCommand`, `tools.command.connection.*`.

use anyhow::bail;
use clap::Args;
use cometmq_client::ResponseCode;
use cometmq_wire::body::{self, ClientConnection, SimpleSubscription, SubscriptionGroupConfig};
use cometmq_wire::version;
use serde::Serialize;
use serde_json::json;

use crate::group::policy_text;
use crate::report::{Report, sentence};
use crate::session::{Session, any_replicas};
use crate::table::{Table, format};
use crate::topic::java_map;

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin getConsumerConfig -g billing
  comet admin getConsumerConfig -g billing --json")]
pub(crate) struct GetConsumerConfig {
    /// Name of the group.
    #[arg(short = 'g', long = "groupName", value_name = "GROUP")]
    group: String,
}

/// What one broker keeps about a group.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    cluster: String,
    broker_name: String,
    config: SubscriptionGroupConfig,
}

impl GetConsumerConfig {
    /// Brokers that do not have the group are left out (mqadmin stops at the first of them).
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let group = self.group.trim();
        let (mut all, mut failures) = (Vec::new(), Vec::new());
        for broker in session.brokers(None).await? {
            let Some(addr) = broker.broker_addrs.values().next() else { continue };
            match session.group(addr, group).await {
                Ok(None) => {}
                Ok(Some(config)) => {
                    all.push(Kept { cluster: broker.cluster, broker_name: broker.broker_name, config });
                }
                Err(error) => failures.push(sentence(&error.into())),
            }
        }
        if all.is_empty() && failures.is_empty() {
            bail!("no broker known to {} has group {group}", session.admin.name_servers().join(";"));
        }
        Ok(Report::new(all.iter().map(Kept::text).collect(), &all)?.failures(failures))
    }
}

impl Kept {
    /// The fields in the order in which Java's class declares them.
    fn text(&self) -> String {
        let c = &self.config;
        let subscriptions = c.subscription_data_set.as_deref().map(|set| {
            let set: Vec<String> = set.iter().map(subscription_text).collect();
            format!("[{}]", set.join(", "))
        });
        let lines = [
            ("groupName", c.group_name.clone()),
            ("consumeEnable", c.consume_enable.to_string()),
            ("consumeFromMinEnable", c.consume_from_min_enable.to_string()),
            ("consumeBroadcastEnable", c.consume_broadcast_enable.to_string()),
            ("consumeMessageOrderly", c.consume_message_orderly.to_string()),
            ("retryQueueNums", c.retry_queue_nums.to_string()),
            ("retryMaxTimes", c.retry_max_times.to_string()),
            ("groupRetryPolicy", policy_text(&c.group_retry_policy)),
            ("brokerId", c.broker_id.to_string()),
            ("whichBrokerWhenConsumeSlowly", c.which_broker_when_consume_slowly.to_string()),
            ("notifyConsumerIdsChangedEnable", c.notify_consumer_ids_changed_enable.to_string()),
            ("groupSysFlag", c.group_sys_flag.to_string()),
            ("consumeTimeoutMinute", c.consume_timeout_minute.to_string()),
            ("subscriptionDataSet", subscriptions.unwrap_or_default()),
            ("attributes", java_map(&c.attributes)),
        ];
        let bar = "=".repeat(29);
        let lines: String = lines.iter().map(|(key, value)| format("%-40s=  %s", &[key, value.as_str()])).collect();
        format!("{bar}{}:{}{bar}\n{lines}", self.cluster, self.broker_name)
    }
}

/// Java: `SimpleSubscriptionData.toString`.
fn subscription_text(s: &SimpleSubscription) -> String {
    let or_null = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_string());
    let (kind, expression) = (or_null(&s.expression_type), or_null(&s.expression));
    let (topic, version) = (&s.topic, s.version);
    format!(
        "SimpleSubscriptionData{{topic={topic}, expressionType={kind}, expression={expression}, version={version}}}"
    )
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin consumerConnection -g billing
  comet admin consumerConnection -g billing -b 10.0.0.1:10911 --json")]
pub(crate) struct ConsumerConnection {
    /// Name of the group.
    #[arg(short = 'g', long = "consumerGroup", value_name = "GROUP")]
    group: String,
    /// Ask this broker.
    #[arg(short = 'b', long = "brokerAddr", value_name = "ADDR")]
    broker: Option<String>,
}

/// A connected client, with the name of its version.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Connected {
    client_id: String,
    client_addr: String,
    language: String,
    version: String,
}

impl From<ClientConnection> for Connected {
    fn from(client: ClientConnection) -> Self {
        Self {
            client_id: client.client_id,
            client_addr: client.client_addr,
            language: client.language.unwrap_or_else(|| "null".to_string()),
            version: version::name(client.version),
        }
    }
}

impl Connected {
    fn cells(&self) -> [&str; 4] {
        [&self.client_id, &self.client_addr, &self.language, &self.version]
    }
}

impl ConsumerConnection {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let group = self.group.trim();
        let brokers = match &self.broker {
            Some(addr) => vec![addr.trim().to_string()],
            None => session.brokers_of_group(group, None).await?,
        };
        let Some((_, found)) = members(session, &brokers, group).await? else {
            bail!("{}: no consumer of group {group} is connected", brokers.join(", "));
        };
        let clients: Vec<Connected> = found.connection_set.into_iter().map(Connected::from).collect();
        const CLIENT: &str = "%-36s %-22s %-10s %s";
        let mut table = Table::new(CLIENT, &["#ClientId", "#ClientAddr", "#Language", "#Version"], CLIENT);
        clients.iter().for_each(|client| table.row(&client.cells()));
        const SUBSCRIPTION: &str = "%-20s %s";
        let mut subscribed = Table::new(SUBSCRIPTION, &["#Topic", "#SubExpression"], SUBSCRIPTION);
        found.subscription_table.values().for_each(|s| subscribed.row(&[&s.topic, &s.sub_string]));
        let (kind, model, from) = (found.consume_type, found.message_model, found.consume_from_where);
        let text = format!(
            "{}\nBelow is subscription:\n{}\nConsumeType: {kind}\nMessageModel: {model}\nConsumeFromWhere: {from}\n",
            table.into_text(),
            subscribed.into_text()
        );
        let json = json!({
            "group": group,
            "connections": clients,
            "subscriptions": found.subscription_table.values().collect::<Vec<_>>(),
            "consumeType": kind,
            "messageModel": model,
            "consumeFromWhere": from,
        });
        Report::new(text, json)
    }
}

/// The members of a group as the first broker that has any knows them, and which broker that is.
pub(crate) async fn members(
    session: &Session,
    brokers: &[String],
    group: &str,
) -> anyhow::Result<Option<(String, body::ConsumerConnection)>> {
    for addr in brokers {
        match session.admin.consumer_connection(addr, group).await {
            Ok(found) if !found.connection_set.is_empty() => return Ok(Some((addr.clone(), found))),
            Ok(_) => {}
            Err(error) if error.code() == Some(ResponseCode::CONSUMER_NOT_ONLINE) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin producerConnection -g shop -t orders")]
pub(crate) struct ProducerConnection {
    /// Name of the group.
    #[arg(short = 'g', long = "producerGroup", value_name = "GROUP")]
    group: String,
    /// Whose brokers are asked.
    #[arg(short = 't', long)]
    topic: String,
}

impl ProducerConnection {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let (group, topic) = (self.group.trim(), self.topic.trim());
        let brokers = any_replicas(&*session.admin.route(topic).await?);
        for addr in &brokers {
            let found = match session.admin.producer_connection(addr, group).await {
                Ok(found) => found.connection_set,
                // Apache's remark is "the producer group[…] not exist".
                Err(error) if error.code() == Some(ResponseCode::SYSTEM_ERROR) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
            if found.is_empty() {
                continue;
            }
            let clients: Vec<Connected> = found.into_iter().map(Connected::from).collect();
            let row = |(at, client): (usize, &Connected)| {
                let [id, addr, language, version] = client.cells();
                format("%s  %-32s %-22s %-8s %s", &[&format!("{:04}", at + 1), id, addr, language, version])
            };
            let text = clients.iter().enumerate().map(row).collect();
            return Report::new(text, json!({"group": group, "connections": clients}));
        }
        bail!("{}: no producer of group {group} is connected", brokers.join(", "));
    }
}
