//! Flags and commands, and the way from a command line to an exit code. Java: `MQAdminStartup`, `ServerUtil`.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use cometmq_client::{Client, ClientOptions};

use crate::report::{self, Report};
use crate::session::Session;
use crate::{clean, cluster, cluster_rt, config, group, group_show, lists, offset, progress, topic, topic_show};

/// Wrong flags. (clap's own code for them, 2, means "nothing changed" here.)
const FAILED: i32 = 1;
/// Java: `DefaultMQAdminExtImpl.timeoutMillis`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Parser)]
#[command(name = "admin", bin_name = "comet admin", infer_long_args = true)]
#[command(about = "Manage topics, groups, offsets and brokers: mqadmin's commands, flags and columns")]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 nothing changed.

Examples:
  comet admin topicList -n 10.0.0.1:9876
  comet admin updateTopic -c DefaultCluster -t orders -r 8 -w 8
  comet admin consumerProgress -g billing --json
  export NAMESRV_ADDR=10.0.0.1:9876;  comet admin clusterList")]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Common {
    /// Name servers, by ';'.
    #[arg(
        short = 'n',
        long = "namesrvAddr",
        env = "NAMESRV_ADDR",
        default_value = "127.0.0.1:9876",
        value_name = "ADDRS",
        global = true
    )]
    namesrv: String,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

macro_rules! commands {
    ($($(#[$attr:meta])* $name:ident($args:ty),)*) => {
        #[derive(Subcommand)]
        #[command(rename_all = "camelCase")]
        enum Command {
            $($(#[$attr])* $name($args),)*
        }

        impl Command {
            async fn run(&self, session: &Session) -> anyhow::Result<Report> {
                match self {
                    $(Self::$name(command) => command.run(session).await,)*
                }
            }
        }
    };
}

commands! {
    /// Create a topic or change it.
    UpdateTopic(topic::UpdateTopic),
    /// Create or change the topics of a file.
    UpdateTopicList(lists::UpdateTopicList),
    /// Delete a topic and its messages.
    DeleteTopic(topic::DeleteTopic),
    /// Change what is allowed on a topic.
    UpdateTopicPerm(topic::UpdateTopicPerm),
    /// List all topics.
    TopicList(topic_show::TopicList),
    /// Show which brokers have a topic.
    TopicRoute(topic_show::TopicRoute),
    /// List the clusters of a topic.
    TopicClusterList(topic_show::TopicClusterList),
    /// Show where the queues of a topic begin and end.
    TopicStatus(topic_show::TopicStatus),
    /// Compute how queues are shared among consumers.
    #[command(name = "allocateMQ")]
    AllocateMq(topic_show::AllocateMq),
    /// Set, show or delete the fixed queue counts of an ordered topic.
    UpdateOrderConf(topic::UpdateOrderConf),
    /// Create a consumer group or change it.
    UpdateSubGroup(group::UpdateSubGroup),
    /// Create or change the consumer groups of a file.
    UpdateSubGroupList(lists::UpdateSubGroupList),
    /// Delete a consumer group, its retry topic and its dead letters.
    DeleteSubGroup(group::DeleteSubGroup),
    /// Show the configuration of a consumer group.
    GetConsumerConfig(group_show::GetConsumerConfig),
    /// Show how far consumer groups are.
    ConsumerProgress(progress::ConsumerProgress),
    /// Show the consumers that are connected, and what they subscribe to.
    ConsumerConnection(group_show::ConsumerConnection),
    /// Show the producers that are connected.
    ProducerConnection(group_show::ProducerConnection),
    /// Move a consumer group to a point in time.
    ResetOffsetByTime(offset::ResetOffsetByTime),
    /// Move a consumer group to the end: what it has not consumed is skipped.
    SkipAccumulatedMessage(offset::SkipAccumulatedMessage),
    /// Give one group the offsets of another.
    CloneGroupOffset(offset::CloneGroupOffset),
    /// List clusters and brokers.
    ClusterList(cluster::ClusterList),
    /// Measure how long sends to each broker take.
    #[command(name = "clusterRT")]
    ClusterRt(cluster_rt::ClusterRt),
    /// Show the figures of a broker.
    BrokerStatus(cluster::BrokerStatus),
    /// Stop sends to a broker: its routes lose the write permission.
    WipeWritePerm(cluster::WipeWritePerm),
    /// Allow sends to a broker again.
    AddWritePerm(cluster::AddWritePerm),
    /// Delete files of the commit log that are old enough, at whatever hour.
    DeleteExpiredCommitLog(clean::DeleteExpiredCommitLog),
    /// Remove consume queues whose messages are all gone.
    #[command(name = "cleanExpiredCQ")]
    CleanExpiredCq(clean::CleanExpiredCq),
    /// Remove the queues of topics that are not configured.
    CleanUnusedTopic(clean::CleanUnusedTopic),
    /// Show the configuration of a broker.
    GetBrokerConfig(config::GetBrokerConfig),
    /// Change a key of a broker's configuration.
    UpdateBrokerConfig(config::UpdateBrokerConfig),
    /// Show the configuration of the name servers.
    GetNamesrvConfig(config::GetNamesrvConfig),
    /// Change a key of the name servers' configuration.
    UpdateNamesrvConfig(config::UpdateNamesrvConfig),
    /// Set a value that name servers keep for tools.
    UpdateKvConfig(config::UpdateKvConfig),
    /// Delete a value that name servers keep for tools.
    DeleteKvConfig(config::DeleteKvConfig),
}

/// mqadmin's commands that are not built yet.
const NOT_BUILT: [&str; 62] = [
    "setConsumeMode",
    "addBroker",
    "removeBroker",
    "resetMasterFlushOffset",
    "queryMsgById",
    "queryMsgByKey",
    "queryMsgByUniqueKey",
    "queryMsgByOffset",
    "queryMsgTraceById",
    "printMsg",
    "printMsgByQueue",
    "sendMsgStatus",
    "brokerConsumeStats",
    "consumerStatus",
    "producer",
    "startMonitoring",
    "statsAll",
    "checkMsgSendRT",
    "queryCq",
    "sendMessage",
    "consumeMessage",
    "updateStaticTopic",
    "remappingStaticTopic",
    "exportMetadata",
    "exportConfigs",
    "exportMetrics",
    "exportMetadataInRocksDB",
    "exportPopRecord",
    "haStatus",
    "getSyncStateSet",
    "getBrokerEpoch",
    "getControllerMetaData",
    "getControllerConfig",
    "updateControllerConfig",
    "electMaster",
    "cleanBrokerMetadata",
    "dumpCompactionLog",
    "getColdDataFlowCtrInfo",
    "updateColdDataFlowCtrGroupConfig",
    "removeColdDataFlowCtrGroupConfig",
    "setCommitLogReadAheadMode",
    "createUser",
    "updateUser",
    "deleteUser",
    "getUser",
    "listUser",
    "copyUser",
    "createAcl",
    "updateAcl",
    "deleteAcl",
    "getAcl",
    "listAcl",
    "copyAcl",
    "rocksDBConfigToJson",
    "checkRocksdbCqWriteProgress",
    "switchTimerEngine",
    "getBrokerLiteInfo",
    "getParentTopicInfo",
    "getLiteTopicInfo",
    "getLiteClientInfo",
    "getLiteGroupInfo",
    "triggerLiteDispatch",
];

/// The whole command tree, for completions and the manual.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs one command line (what follows `comet admin`) and returns its exit code: 0 done, 1 failed, 2 nothing changed.
pub fn run(args: impl IntoIterator<Item = OsString>) -> i32 {
    let mut args = as_clap_wants(args.into_iter().collect());
    if args.is_empty() {
        args.push("--help".into());
    }
    if let Some(name) = args.first().and_then(|a| a.to_str()).and_then(not_built) {
        report::complain(&format!("{name} is a command of mqadmin that comet does not have yet"));
        return FAILED;
    }
    let argv = std::iter::once(OsString::from("comet admin")).chain(args);
    let parsed = command().try_get_matches_from(argv).and_then(|m| Cli::from_arg_matches(&m));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { FAILED } else { 0 };
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            report::complain(&format!("cannot start: {error}"));
            return FAILED;
        }
    };
    match runtime.block_on(execute(&cli)) {
        Ok(code) => code,
        Err(error) => {
            report::complain(&report::sentence(&error));
            FAILED
        }
    }
}

async fn execute(cli: &Cli) -> anyhow::Result<i32> {
    let mut options = ClientOptions::new(&cli.common.namesrv)?;
    options.request_timeout = REQUEST_TIMEOUT;
    let client = Client::start(options).await?;
    let session = Session::new(&client);
    let every = match &cli.command {
        Command::ClusterList(command) => command.every(),
        Command::ClusterRt(command) => Some(command.every()),
        _ => None,
    };
    let code = loop {
        let report = cli.command.run(&session).await;
        let (code, read_on) = report?.print(cli.common.json)?;
        match every {
            Some(every) if read_on => tokio::time::sleep(every).await,
            _ => break code,
        }
    };
    client.shutdown().await;
    Ok(code)
}

/// `true` or `false` in any case. (Java takes everything else for false.)
pub(crate) fn truth(text: &str) -> Result<bool, String> {
    match text.trim() {
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("expected true or false".to_string()),
    }
}

fn not_built(name: &str) -> Option<&'static str> {
    NOT_BUILT.into_iter().find(|known| known.eq_ignore_ascii_case(name))
}

/// mqadmin takes a command in any case, and a long flag, or its beginning, with one hyphen (`-topic orders`) as well as with
/// two. Java: commons-cli's `DefaultParser`.
fn as_clap_wants(mut args: Vec<OsString>) -> Vec<OsString> {
    let tree = command();
    let named = args.iter().enumerate().find_map(|(at, arg)| {
        let found = tree.get_subcommands().find(|c| arg.eq_ignore_ascii_case(c.get_name()))?;
        Some((at, found))
    });
    let Some((at, found)) = named else { return args };
    args[at] = found.get_name().into();
    let longs = |wanted: &str| {
        let mut flags = tree.get_arguments().chain(found.get_arguments());
        flags.any(|flag| flag.get_long().is_some_and(|long| long.starts_with(wanted)))
    };
    for arg in &mut args[at + 1..] {
        let Some(text) = arg.to_str() else { continue };
        let Some(name) = text.strip_prefix('-').filter(|name| !name.starts_with('-')) else { continue };
        let flag = name.split('=').next().unwrap_or(name);
        if flag.len() > 1 && longs(flag) {
            *arg = format!("--{name}").into();
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_command_tree_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_command_of_mqadmin_is_built_or_named() {
        let tree = command();
        let built: BTreeSet<&str> = tree.get_subcommands().map(clap::Command::get_name).collect();
        let missing: BTreeSet<&str> = NOT_BUILT.into_iter().collect();
        assert!(built.is_disjoint(&missing));
        assert_eq!(built.len() + missing.len(), 96);
    }

    #[test]
    fn every_command_has_examples() {
        for command in command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:\n  comet admin"), "{}: {help}", command.get_name());
        }
    }

    #[test]
    fn commands_and_long_flags_may_be_written_as_for_mqadmin() {
        assert_eq!(as_clap_wants(words("UPDATETOPIC -topic a -c=b")), words("updateTopic --topic a -c=b"));
        assert_eq!(
            as_clap_wants(words("-n x topiclist -namesrvAddr=y --json")),
            words("-n x topicList --namesrvAddr=y --json")
        );
        assert_eq!(as_clap_wants(words("topicRoute -topi a")), words("topicRoute --topi a"));
        assert_eq!(as_clap_wants(words("topicRoute -torders -t=a")), words("topicRoute -torders -t=a"));
        assert_eq!(as_clap_wants(words("nosuch -topic a")), words("nosuch -topic a"));
        assert_eq!((truth("True"), truth(" FALSE"), truth("yes").is_err()), (Ok(true), Ok(false), true));
        assert_eq!(not_built("QUERYMSGBYID"), Some("queryMsgById"));
    }
}
