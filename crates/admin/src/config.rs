//! Configuration: getBrokerConfig (26), updateBrokerConfig (25), getNamesrvConfig (319), updateNamesrvConfig (318),
//! updateKvConfig (100), deleteKvConfig (102). Java: `tools.command.broker.*`, `tools.command.namesrv.*`.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{ArgAction, Args};
use cometmq_base::config::properties;
use serde_json::{Value, json};

use crate::args::truth;
use crate::report::{Changes, Report, state};
use crate::session::{Brokers, Session};
use crate::table::format;

/// The KV namespace of ordered topics: topic → `broker:queues;broker:queues`.
pub(crate) const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";
const LINE: &str = "%-50s=  %s";

type Keys = BTreeMap<String, String>;

fn keys(text: &str) -> Keys {
    properties::parse(text).into_iter().collect()
}

fn lines(keys: &Keys) -> String {
    keys.iter().map(|(key, value)| format(LINE, &[key, value])).collect()
}

/// `key=value` as properties text.
fn one(key: &str, value: &str) -> String {
    let mut text = String::new();
    properties::write(&mut text, key, value);
    text
}

/// `{"key": value}` of a configuration, or null when it has no such key.
fn pick(keys: &Keys, key: &str) -> Value {
    keys.get(key).map_or(Value::Null, |value| json!({key: value}))
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin getBrokerConfig -b 10.0.0.1:10911
  comet admin getBrokerConfig -c DefaultCluster --json")]
pub(crate) struct GetBrokerConfig {
    #[command(flatten)]
    brokers: Brokers,
}

impl GetBrokerConfig {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let mut all = BTreeMap::new();
        let mut text = String::new();
        for replica in session.replicas(&self.brokers).await? {
            let addr = &replica.addr;
            let found = keys(&session.admin.broker_config(addr).await?);
            let title = match &replica.master {
                _ if self.brokers.addr.is_some() => addr.clone(),
                _ if replica.id == 0 => format!("Master: {addr}"),
                Some(master) => format!("My Master: {master}=====Slave: {addr}"),
                None => format!("My Master: NO_MASTER=====Slave: {addr}"),
            };
            text += &format!("============{title}============\n{}\n", lines(&found));
            all.insert(replica.addr, found);
        }
        Report::new(text, all)
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin updateBrokerConfig -b 10.0.0.1:10911 -k flushIntervalCommitLog -v 200
  comet admin updateBrokerConfig -c DefaultCluster -a true -k autoCreateTopicEnable -v false")]
pub(crate) struct UpdateBrokerConfig {
    #[command(flatten)]
    brokers: Brokers,
    /// With -c: the slaves, too.
    #[arg(short = 'a', long = "updateAllBroker", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    all: bool,
    #[arg(short = 'k', long)]
    key: String,
    #[arg(short = 'v', long, allow_hyphen_values = true)]
    value: String,
}

impl UpdateBrokerConfig {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let (key, value) = (self.key.trim(), self.value.trim());
        let mut changes = Changes::default();
        let read = async |addr: &str| {
            let found = session.admin.broker_config(addr).await;
            state(found.map(|text| keys(&text).remove(key).map(|value| json!({key: value}))))
        };
        for replica in session.replicas(&self.brokers).await?.into_iter().filter(|r| self.all || r.id == 0) {
            let addr = replica.addr;
            let before = read(&addr).await?;
            if let Err(error) = session.admin.update_broker_config(&addr, &one(key, value)).await {
                changes.fail(error);
                continue;
            }
            let after = read(&addr).await?.unwrap_or_else(|| json!({key: value}));
            if after.is_null() {
                // Java ignores a key that it does not know, and says success.
                changes.say(format_args!("{addr} has no key {key}"));
            } else {
                changes.say(format_args!("update broker config success, {addr}"));
            }
            changes.add(addr, before, after);
        }
        changes.report()
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin getNamesrvConfig -n '10.0.0.1:9876;10.0.0.2:9876'")]
pub(crate) struct GetNamesrvConfig {}

impl GetNamesrvConfig {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let mut all = BTreeMap::new();
        for addr in session.admin.name_servers() {
            all.insert(addr, keys(&session.admin.name_server_config(addr).await?));
        }
        let text = all.iter().map(|(addr, keys)| format!("============{addr}============\n{}", lines(keys))).collect();
        Report::new(text, &all)
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin updateNamesrvConfig -n 10.0.0.1:9876 -k scanNotActiveBrokerInterval -v 3000")]
pub(crate) struct UpdateNamesrvConfig {
    #[arg(short = 'k', long)]
    key: String,
    #[arg(short = 'v', long, allow_hyphen_values = true)]
    value: String,
}

impl UpdateNamesrvConfig {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let (key, value) = (self.key.trim(), self.value.trim());
        let mut changes = Changes::default();
        for addr in session.admin.name_servers() {
            let before = pick(&keys(&session.admin.name_server_config(addr).await?), key);
            if let Err(error) = session.admin.update_name_server_config(addr, &one(key, value)).await {
                changes.fail(error);
                continue;
            }
            let after = pick(&keys(&session.admin.name_server_config(addr).await?), key);
            if after.is_null() {
                changes.say(format_args!("{addr} has no key {key}"));
            }
            changes.add(addr, Some(before), after);
        }
        if !changes.has_failed() {
            let servers = session.admin.name_servers().join(", ");
            changes.say(format_args!("update name server config success![{servers}]\n{key} : {value}"));
        }
        changes.report()
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin updateKvConfig -s ORDER_TOPIC_CONFIG -k orders -v broker-a:4")]
pub(crate) struct UpdateKvConfig {
    #[arg(short = 's', long)]
    namespace: String,
    #[arg(short = 'k', long)]
    key: String,
    #[arg(short = 'v', long, allow_hyphen_values = true)]
    value: String,
}

impl UpdateKvConfig {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let done = "create or update kv config to namespace success.";
        change_kv(session, self.namespace.trim(), self.key.trim(), Some(self.value.trim()), done).await
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin deleteKvConfig -s ORDER_TOPIC_CONFIG -k orders")]
pub(crate) struct DeleteKvConfig {
    #[arg(short = 's', long)]
    namespace: String,
    #[arg(short = 'k', long)]
    key: String,
}

impl DeleteKvConfig {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let done = "delete kv config from namespace success.";
        change_kv(session, self.namespace.trim(), self.key.trim(), None, done).await
    }
}

/// At all name servers.
async fn change_kv(
    session: &Session,
    namespace: &str,
    key: &str,
    value: Option<&str>,
    done: &str,
) -> anyhow::Result<Report> {
    if namespace.is_empty() || key.is_empty() {
        bail!("-s and -k must not be empty");
    }
    let mut changes = Changes::default();
    for addr in session.admin.name_servers() {
        let before = session.admin.kv_config(addr, namespace, key).await?;
        let changed = match value {
            Some(value) => session.admin.put_kv_config(addr, namespace, key, value).await,
            None => session.admin.delete_kv_config(addr, namespace, key).await,
        };
        match changed {
            Ok(()) => changes.add(addr, Some(json!(before)), json!(value)),
            Err(error) => changes.fail(error),
        }
    }
    if !changes.has_failed() {
        changes.say(done);
    }
    changes.report()
}
