//! The servers that a command talks to: which brokers a cluster, a topic or a group has. Java: `CommandUtil`.

use anyhow::bail;
use clap::Args;
use cometmq_client::{Admin, Client, ClusterInfo, Error, ResponseCode, Route, TopicConfig};
use cometmq_wire::body::{BrokerData, SubscriptionGroupConfig};
use cometmq_wire::names;

const MASTER: i64 = 0;

/// One command's connection to its cluster.
pub(crate) struct Session {
    pub client: Client,
    pub admin: Admin,
}

/// Which brokers a command is about. Both flags at once are refused: some of mqadmin's commands refuse them, the others take
/// no notice of -c.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Brokers {
    /// One broker, by its address.
    #[arg(short = 'b', long = "brokerAddr", value_name = "ADDR")]
    pub addr: Option<String>,
    /// All masters of a cluster.
    #[arg(short = 'c', long = "clusterName", value_name = "CLUSTER")]
    pub cluster: Option<String>,
}

impl Session {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), admin: Admin::new(client) }
    }

    /// The addresses of a command's brokers: one, or the masters of a cluster, sorted by the brokers' names.
    pub(crate) async fn masters(&self, brokers: &Brokers) -> anyhow::Result<Vec<String>> {
        let replicas = self.replicas(brokers).await?;
        Ok(replicas.into_iter().filter(|r| r.id == MASTER).map(|r| r.addr).collect())
    }

    /// The same, slaves included.
    pub(crate) async fn replicas(&self, brokers: &Brokers) -> anyhow::Result<Vec<Replica>> {
        if let Some(addr) = &brokers.addr {
            let addr = addr.trim().to_string();
            return Ok(vec![Replica { addr: addr.clone(), id: MASTER, master: Some(addr) }]);
        }
        let cluster = brokers.cluster.as_deref().unwrap_or_default().trim();
        let of_cluster = self.cluster(cluster).await?;
        let all = of_cluster.iter().flat_map(|broker| {
            let master = broker.broker_addrs.get(&MASTER).cloned();
            let replica =
                move |(id, addr): (&i64, &String)| Replica { addr: addr.clone(), id: *id, master: master.clone() };
            broker.broker_addrs.iter().map(replica)
        });
        Ok(all.collect())
    }

    /// The brokers of a cluster or of all, sorted by cluster and name.
    pub(crate) async fn brokers(&self, cluster: Option<&str>) -> anyhow::Result<Vec<BrokerData>> {
        if let Some(cluster) = cluster.map(str::trim).filter(|name| !name.is_empty()) {
            return self.cluster(cluster).await;
        }
        let mut all: Vec<_> = self.admin.cluster_info().await?.broker_addr_table.into_values().collect();
        all.sort_by(|a, b| (&a.cluster, &a.broker_name).cmp(&(&b.cluster, &b.broker_name)));
        Ok(all)
    }

    /// The brokers of a cluster, sorted by name; an unknown cluster is an error.
    pub(crate) async fn cluster(&self, name: &str) -> anyhow::Result<Vec<BrokerData>> {
        let info = self.admin.cluster_info().await?;
        brokers_of(&info, name, &self.admin.name_servers().join(";"))
    }

    /// A topic on one broker; `None` = it is not there.
    pub(crate) async fn topic(&self, addr: &str, topic: &str) -> Result<Option<TopicConfig>, Error> {
        match self.admin.topic_config(addr, topic).await {
            Ok(config) => Ok(Some(config)),
            Err(error) if error.code() == Some(ResponseCode::TOPIC_NOT_EXIST) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A group on one broker; `None` = it is not there.
    pub(crate) async fn group(&self, addr: &str, group: &str) -> Result<Option<SubscriptionGroupConfig>, Error> {
        Ok(self.admin.groups(addr).await?.subscription_group_table.remove(group))
    }

    /// The brokers to ask about a group: those of its retry topic, which the first heartbeat of a consumer creates; without
    /// it those of the topic; without one all.
    pub(crate) async fn brokers_of_group(&self, group: &str, topic: Option<&str>) -> anyhow::Result<Vec<String>> {
        match self.admin.route(&names::retry_topic(group)).await {
            Ok(route) => return Ok(any_replicas(&route)),
            Err(Error::NoRoute { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        match topic {
            Some(topic) => Ok(any_replicas(&*self.admin.route(topic).await?)),
            None => Ok(self.admin.masters(None).await?),
        }
    }
}

/// One process of a broker.
pub(crate) struct Replica {
    pub addr: String,
    /// 0 is the master's.
    pub id: i64,
    pub master: Option<String>,
}

/// Of each broker of a route its master, or another replica when it has none: `(name, address)`.
pub(crate) fn named_replicas(route: &Route) -> Vec<(String, String)> {
    let mut brokers: Vec<_> = route.data().broker_datas.iter().collect();
    brokers.sort_by(|a, b| a.broker_name.cmp(&b.broker_name));
    // The lowest id is the master's.
    let first = |b: &&BrokerData| Some((b.broker_name.clone(), b.broker_addrs.values().next()?.clone()));
    brokers.iter().filter_map(first).collect()
}

pub(crate) fn any_replicas(route: &Route) -> Vec<String> {
    named_replicas(route).into_iter().map(|(_, addr)| addr).collect()
}

fn brokers_of(info: &ClusterInfo, cluster: &str, asked: &str) -> anyhow::Result<Vec<BrokerData>> {
    let Some(brokers) = info.cluster_addr_table.get(cluster) else {
        let known: Vec<&str> = info.cluster_addr_table.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        bail!("{asked} knows no cluster {cluster}; it knows: {known}");
    };
    Ok(brokers.iter().filter_map(|name| info.broker_addr_table.get(name)).cloned().collect())
}
