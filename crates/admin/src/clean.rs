//! Old data on brokers: deleteExpiredCommitLog (329), cleanExpiredCQ (306), cleanUnusedTopic (316).
//! Java: `tools.command.broker.DeleteExpiredCommitLogSubCommand`, `CleanExpiredCQSubCommand`, `CleanUnusedTopicCommand`.

use clap::Args;
use cometmq_wire::RequestCode;
use serde_json::json;

use crate::report::{Report, sentence};
use crate::session::{Brokers, Session};

/// Which brokers: without flags, all of all clusters.
#[derive(Args)]
struct Where {
    /// One broker, by its address; wins over -c.
    #[arg(short = 'b', long = "brokerAddr", value_name = "ADDR")]
    addr: Option<String>,
    /// All brokers of a cluster.
    #[arg(short = 'c', long = "cluster", value_name = "CLUSTER")]
    cluster: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Files that are younger than fileReservedTime stay, and so does the last one.

Examples:
  comet admin deleteExpiredCommitLog -b 10.0.0.1:10911
  comet admin deleteExpiredCommitLog -c DefaultCluster")]
pub(crate) struct DeleteExpiredCommitLog {
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin cleanExpiredCQ -b 10.0.0.1:10911
  comet admin cleanExpiredCQ -c DefaultCluster")]
pub(crate) struct CleanExpiredCq {
    #[command(flatten)]
    at: Where,
}

#[derive(Args)]
#[command(after_help = "Examples:
  comet admin cleanUnusedTopic -b 10.0.0.1:10911
  comet admin cleanUnusedTopic -c DefaultCluster")]
pub(crate) struct CleanUnusedTopic {
    #[command(flatten)]
    at: Where,
}

impl DeleteExpiredCommitLog {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        self.at.tell(session, RequestCode::DELETE_EXPIRED_COMMITLOG).await
    }
}

impl CleanExpiredCq {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        self.at.tell(session, RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE).await
    }
}

impl CleanUnusedTopic {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<Report> {
        self.at.tell(session, RequestCode::CLEAN_UNUSED_TOPIC).await
    }
}

impl Where {
    /// The addresses, slaves included.
    async fn addrs(&self, session: &Session) -> anyhow::Result<Vec<String>> {
        let named = self.cluster.as_deref().map(str::trim).filter(|c| !c.is_empty());
        let clusters: Vec<String> = match (&self.addr, named) {
            (Some(_), _) => vec![String::new()],
            (None, Some(cluster)) => vec![cluster.to_string()],
            (None, None) => session.admin.cluster_info().await?.cluster_addr_table.into_keys().collect(),
        };
        let mut addrs = Vec::new();
        for cluster in clusters {
            let brokers = Brokers { addr: self.addr.clone(), cluster: Some(cluster) };
            addrs.extend(session.replicas(&brokers).await?.into_iter().map(|replica| replica.addr));
        }
        addrs.sort();
        Ok(addrs)
    }

    /// mqadmin says `success` or `false`, about the last broker; here one that fails is enough for `false`.
    async fn tell(&self, session: &Session, code: RequestCode) -> anyhow::Result<Report> {
        let (mut told, mut failures) = (Vec::new(), Vec::new());
        for addr in self.addrs(session).await? {
            match session.admin.tell(&addr, code).await {
                Ok(()) => told.push(addr),
                Err(error) => failures.push(sentence(&error.into())),
            }
        }
        let said = if failures.is_empty() && !told.is_empty() { "success\n" } else { "false\n" };
        Ok(Report::new(said.to_string(), json!({"brokers": told, "failures": failures}))?.failures(failures))
    }
}
