//! Changes of consumer groups: updateSubGroup (200), deleteSubGroup (207, 215, 216, 102). Java: `tools.command.consumer.*`.

use anyhow::Context;
use clap::{ArgAction, Args};
use cometmq_client::ResponseCode;
use cometmq_wire::body::group::{CustomizedRetryPolicy, ExponentialRetryPolicy};
use cometmq_wire::body::{GroupRetryPolicy, SubscriptionGroupConfig};
use cometmq_wire::{json, names};
use serde_json::json;

use crate::args::truth;
use crate::config::ORDER_TOPIC_CONFIG;
use crate::report::{Changes, Report, state};
use crate::session::{Brokers, Session};
use crate::topic::{attribute_changes, delete_topic, java_map};

#[derive(Args)]
#[command(after_help = "What is not given gets its default, also in a group that exists, as with mqadmin.

Examples:
  comet admin updateSubGroup -c DefaultCluster -g billing
  comet admin updateSubGroup -b 10.0.0.1:10911 -g billing -r 3 -o true
  comet admin updateSubGroup -c DefaultCluster -g billing \\
      -p '{\"type\":\"EXPONENTIAL\",\"exponentialRetryPolicy\":{\"initial\":5000,\"max\":7200000,\"multiplier\":2}}'")]
pub(crate) struct UpdateSubGroup {
    #[command(flatten)]
    brokers: Brokers,
    /// Name of the group.
    #[arg(short = 'g', long = "groupName", value_name = "GROUP")]
    group: String,
    /// Whether the group may consume.
    #[arg(short = 's', long = "consumeEnable", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = true)]
    consume: bool,
    /// Whether a new group begins at the first message.
    #[arg(short = 'm', long = "consumeFromMinEnable", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    from_min: bool,
    /// Whether broadcasting is allowed.
    #[arg(short = 'd', long = "consumeBroadcastEnable", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    broadcast: bool,
    /// Ordered consumption by POP.
    #[arg(short = 'o', long = "consumeMessageOrderly", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    orderly: bool,
    #[arg(short = 'q', long = "retryQueueNums", value_name = "N", default_value_t = 1)]
    retry_queues: i32,
    /// Deliveries after the first; then a message goes to the dead letters.
    #[arg(short = 'r', long = "retryMaxTimes", value_name = "N", default_value_t = 16, allow_negative_numbers = true)]
    retry_max: i32,
    /// How long retries wait, as JSON.
    #[arg(short = 'p', long = "groupRetryPolicy", value_name = "JSON")]
    retry_policy: Option<String>,
    /// Id of the broker to consume from.
    #[arg(short = 'i', long = "brokerId", value_name = "ID", default_value_t = 0, allow_negative_numbers = true)]
    broker_id: i64,
    /// Id of the broker to consume from when the group is far behind.
    #[arg(
        short = 'w',
        long = "whichBrokerWhenConsumeSlowly",
        value_name = "ID",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    when_slow: i64,
    /// Whether members hear at once when others come and go.
    #[arg(short = 'a', long = "notifyConsumerIdsChanged", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = true)]
    notify: bool,
    /// Change attributes: +key=value,-key.
    #[arg(long, value_name = "CHANGES", allow_hyphen_values = true, default_value = "")]
    attributes: String,
}

impl UpdateSubGroup {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let config = self.config()?;
        let mut changes = Changes::default();
        for addr in session.masters(&self.brokers).await? {
            let before = state(session.group(&addr, &config.group_name).await)?;
            if let Err(error) = session.admin.update_group(&addr, &config).await {
                changes.fail(error);
                continue;
            }
            let after = state(session.group(&addr, &config.group_name).await)?;
            changes.say(format_args!("create subscription group to {addr} success."));
            changes.add(addr, before, after.unwrap_or(json!(config)));
        }
        if !changes.has_failed() {
            changes.say(java_text(&config));
        }
        changes.report()
    }

    fn config(&self) -> anyhow::Result<SubscriptionGroupConfig> {
        let policy = |text: &String| -> anyhow::Result<GroupRetryPolicy> {
            json::from_slice(text.trim().as_bytes()).with_context(|| format!("-p {text}: not a retry policy"))
        };
        Ok(SubscriptionGroupConfig {
            consume_enable: self.consume,
            consume_from_min_enable: self.from_min,
            consume_broadcast_enable: self.broadcast,
            consume_message_orderly: self.orderly,
            retry_queue_nums: self.retry_queues,
            retry_max_times: self.retry_max,
            group_retry_policy: self.retry_policy.as_ref().map(policy).transpose()?.unwrap_or_default(),
            broker_id: self.broker_id,
            which_broker_when_consume_slowly: self.when_slow,
            notify_consumer_ids_changed_enable: self.notify,
            attributes: attribute_changes(&self.attributes)?,
            ..SubscriptionGroupConfig::new(self.group.trim())
        })
    }
}

/// Java: `GroupRetryPolicy.toString`.
pub(crate) fn policy_text(policy: &GroupRetryPolicy) -> String {
    let exponential = policy.exponential_retry_policy.as_ref().map_or("null".to_string(), |p| {
        let ExponentialRetryPolicy { initial, max, multiplier } = p;
        format!("ExponentialRetryPolicy{{initial={initial}, max={max}, multiplier={multiplier}}}")
    });
    let customized = policy.customized_retry_policy.as_ref().map_or("null".to_string(), |p| {
        let CustomizedRetryPolicy { next } = p;
        format!("CustomizedRetryPolicy{{next={next:?}}}")
    });
    format!(
        "GroupRetryPolicy{{type={}, exponentialRetryPolicy={exponential}, customizedRetryPolicy={customized}}}",
        policy.kind
    )
}

/// Java: `SubscriptionGroupConfig.toString`.
fn java_text(config: &SubscriptionGroupConfig) -> String {
    format!(
        "SubscriptionGroupConfig{{groupName={}, consumeEnable={}, consumeFromMinEnable={}, consumeBroadcastEnable={}, \
         consumeMessageOrderly={}, retryQueueNums={}, retryMaxTimes={}, groupRetryPolicy={}, brokerId={}, \
         whichBrokerWhenConsumeSlowly={}, notifyConsumerIdsChangedEnable={}, groupSysFlag={}, consumeTimeoutMinute={}, \
         subscriptionDataSet=null, attributes={}}}",
        config.group_name,
        config.consume_enable,
        config.consume_from_min_enable,
        config.consume_broadcast_enable,
        config.consume_message_orderly,
        config.retry_queue_nums,
        config.retry_max_times,
        policy_text(&config.group_retry_policy),
        config.broker_id,
        config.which_broker_when_consume_slowly,
        config.notify_consumer_ids_changed_enable,
        config.group_sys_flag,
        config.consume_timeout_minute,
        java_map(&config.attributes)
    )
}

#[derive(Args)]
#[command(after_help = "With -c the group's retry topic and its dead letters are deleted, too.

Examples:
  comet admin deleteSubGroup -c DefaultCluster -g billing
  comet admin deleteSubGroup -b 10.0.0.1:10911 -g billing -r true     and its offsets")]
pub(crate) struct DeleteSubGroup {
    #[command(flatten)]
    brokers: Brokers,
    /// Name of the group.
    #[arg(short = 'g', long = "groupName", value_name = "GROUP")]
    group: String,
    /// Delete its offsets, too.
    #[arg(short = 'r', long = "removeOffset", value_name = "BOOL", value_parser = truth, action = ArgAction::Set, default_value_t = false)]
    remove_offset: bool,
}

impl DeleteSubGroup {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        let group = self.group.trim();
        let cluster = self.brokers.cluster.as_deref().map(str::trim);
        let mut changes = Changes::default();
        for addr in session.masters(&self.brokers).await? {
            let before = state(session.group(&addr, group).await)?;
            match session.admin.delete_group(&addr, group, self.remove_offset).await {
                Err(error) if error.code() != Some(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST) => {
                    changes.fail(error);
                    continue;
                }
                _ => {}
            }
            let place = cluster.map(|cluster| format!(" in cluster [{cluster}]")).unwrap_or_default();
            changes.say(format_args!("delete subscription group [{group}] from broker [{addr}]{place} success."));
            let after = state(session.group(&addr, group).await)?.unwrap_or_default();
            if !after.is_null() {
                // Apache 5.5.0 does so while it deletes: it looks whether the group is one of light topics.
                changes.say(format_args!(
                    "{addr} has created the group again, with defaults (autoCreateSubscriptionGroup=true)"
                ));
            }
            changes.add(addr, before, after);
        }
        if let Some(cluster) = cluster.filter(|_| !changes.has_failed()) {
            delete_topics_of(session, cluster, group, &mut changes).await?;
        }
        changes.report()
    }
}

/// The retry topic, the dead letters, and what the name servers keep about them. mqadmin does it without a word.
async fn delete_topics_of(session: &Session, cluster: &str, group: &str, changes: &mut Changes) -> anyhow::Result<()> {
    for topic in [names::retry_topic(group), names::dlq_topic(group)] {
        let mut quiet = Changes::default();
        delete_topic(session, cluster, &topic, &mut quiet).await?;
        changes.merge(&topic, quiet);
        for addr in session.admin.name_servers() {
            if session.admin.kv_config(addr, ORDER_TOPIC_CONFIG, &topic).await?.is_some() {
                session.admin.delete_kv_config(addr, ORDER_TOPIC_CONFIG, &topic).await?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_written_as_java_does() {
        let mut config = SubscriptionGroupConfig::new("g1");
        (config.consume_from_min_enable, config.consume_broadcast_enable) = (false, false);
        assert_eq!(
            java_text(&config),
            "SubscriptionGroupConfig{groupName=g1, consumeEnable=true, consumeFromMinEnable=false, \
             consumeBroadcastEnable=false, consumeMessageOrderly=false, retryQueueNums=1, retryMaxTimes=16, \
             groupRetryPolicy=GroupRetryPolicy{type=CUSTOMIZED, exponentialRetryPolicy=null, \
             customizedRetryPolicy=null}, brokerId=0, whichBrokerWhenConsumeSlowly=1, \
             notifyConsumerIdsChangedEnable=true, groupSysFlag=0, consumeTimeoutMinute=15, subscriptionDataSet=null, \
             attributes={}}"
        );
    }
}
