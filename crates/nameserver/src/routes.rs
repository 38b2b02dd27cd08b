//! The route tables: clusters, brokers, the queues that each broker holds of a topic, and who is alive.
//!
//! Locks    One lock over all tables, since a registration changes them together. It is the innermost: nothing else is
//!          locked and nothing is awaited while it is held, and answers are encoded after it is released.
//! Order    A registration writes its live entry last. Should it panic halfway, the entry still has the old data version
//!          (or there is none), so the broker's next QUERY_DATA_VERSION tells it to register again.
//! Limits   `BROKERS_MAX` addresses, `TOPICS_MAX` topics, `NAME_BYTES_MAX` a name.
//! Java     `RouteInfoManager`. Unlike there: nothing waits in a queue to be unregistered; all brokers of a lost
//!          connection go, not one; what a broker that is gone has left (its old name, static mappings) goes too.

mod register;
mod leave;
mod edit;
mod lookup;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_net::ConnId;
use cometmq_wire::body::{
    BrokerData, BrokerMemberGroup, ClusterInfo, DataVersion, QueueData, RegisterBrokerBody, TopicList,
    TopicQueueMappingInfo, TopicRouteData,
};
use tokio::sync::{Notify, mpsc};

use crate::notices::{self, Notice};
use crate::settings::LiveSettings;

pub(crate) use lookup::Unit;
pub(crate) use lookup::only_zone;

/// Bytes of a broker, cluster, address or topic name.
pub const NAME_BYTES_MAX: usize = 255;
pub const BROKERS_MAX: usize = 10_000;
pub const TOPICS_MAX: usize = 1_000_000;
/// After this long without a word a broker is dropped, unless its registration says otherwise.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(120);

const MASTER: i64 = 0;

/// REGISTER_BROKER (103), decoded.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    pub cluster: String,
    pub broker_name: String,
    /// `host:port`.
    pub broker_addr: String,
    /// 0 = master.
    pub broker_id: i64,
    pub ha_server_addr: String,
    pub zone_name: Option<String>,
    /// Milliseconds; `None` = [`HEARTBEAT_TIMEOUT`].
    pub heartbeat_timeout_ms: Option<i64>,
    /// Whether a slave may stand in for a lost master; `None` = a broker too old to know.
    pub enable_acting_master: Option<bool>,
    pub body: RegisterBrokerBody,
    /// The connection whose end takes the broker with it.
    pub connection: Option<ConnId>,
}

/// What a slave learns of its master.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    pub ha_server_addr: Option<String>,
    pub master_addr: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationRefused {
    /// One topic alone is an addition to a registration; there is none.
    #[error("register broker failed")]
    NotRegisteredYet,
    #[error("{what} is empty or longer than {NAME_BYTES_MAX} bytes")]
    Name { what: &'static str },
    #[error("more than {limit} {what}")]
    Full { what: &'static str, limit: usize },
}

/// Cluster and address: what names a broker process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BrokerKey {
    cluster: String,
    addr: String,
}

impl BrokerKey {
    fn new(cluster: &str, addr: &str) -> Self {
        Self { cluster: cluster.to_owned(), addr: addr.to_owned() }
    }
}

struct Live {
    broker_name: String,
    /// Epoch milliseconds. Atomic, so that a heartbeat needs only the read lock.
    heard_at: AtomicI64,
    timeout_ms: i64,
    data_version: DataVersion,
    connection: Option<ConnId>,
    ha_server_addr: String,
    filter_servers: Vec<String>,
}

#[derive(Default)]
struct Tables {
    /// Cluster → broker names.
    clusters: BTreeMap<String, BTreeSet<String>>,
    /// By broker name.
    brokers: BTreeMap<String, BrokerData>,
    live: HashMap<BrokerKey, Live>,
    /// Topic → its queues a broker, sorted by broker name, never empty.
    topics: HashMap<String, Vec<QueueData>>,
    /// Static topic → broker name → the logical queues there.
    mappings: HashMap<String, BTreeMap<String, TopicQueueMappingInfo>>,
    /// What the change under way has to tell; taken before the lock is released.
    notices: Vec<Notice>,
}

pub struct Routes {
    tables: RwLock<Tables>,
    /// Told when a broker has come or gone.
    changed: Notify,
    notices: mpsc::Sender<Notice>,
    clock: Clock,
    settings: Arc<LiveSettings>,
}

impl Routes {
    /// The receiver gets what brokers are to be told.
    pub(crate) fn new(clock: Clock, settings: Arc<LiveSettings>) -> (Self, mpsc::Receiver<Notice>) {
        let (notices, receiver) = mpsc::channel(notices::QUEUE_MAX);
        (Self { tables: RwLock::default(), changed: Notify::new(), notices, clock, settings }, receiver)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        let (outcome, notices) = {
            let mut tables = self.write();
            let outcome = change(&mut tables);
            (outcome, std::mem::take(&mut tables.notices))
        };
        self.changed.notify_waiters();
        let notify = self.settings.now().notify_min_id;
        for notice in notices.into_iter().filter(|_| notify) {
            if let Err(error) = self.notices.try_send(notice) {
                tracing::warn!(%error, "a notice of the lowest broker id is dropped");
            }
        }
        outcome
    }

    /// Adds or refreshes a broker; its topics count when its data version is another than before.
    pub fn register(&self, registration: Registration) -> Result<Registered, RegistrationRefused> {
        let delete_missing = self.settings.now().delete_missing_topics;
        self.change(|tables| tables.register(registration, delete_missing, self.clock.now_ms()))
    }

    /// Adds or replaces queues of one topic on brokers that are registered.
    pub(crate) fn register_topic(&self, topic: &str, queues: Vec<QueueData>) -> Result<(), RegistrationRefused> {
        self.write().register_topic(topic, queues)
    }

    pub fn unregister(&self, cluster: &str, broker_addr: &str, broker_name: &str) {
        let leaving = leave::Leaving::new(BrokerKey::new(cluster, broker_addr), broker_name);
        self.change(|tables| tables.remove(&[leaving]));
    }

    /// Drops the brokers that registered over `connection`.
    pub(crate) fn connection_lost(&self, connection: ConnId) {
        self.change(|tables| tables.connection_lost(connection));
    }

    /// Drops the brokers that have been silent for too long; returns the connections they had.
    pub fn expire(&self) -> Vec<ConnId> {
        let now_ms = self.clock.now_ms();
        if self.read().expired(now_ms).is_empty() {
            return Vec::new();
        }
        self.change(|tables| tables.expire(now_ms))
    }

    pub(crate) fn heartbeat(&self, cluster: &str, broker_addr: &str) {
        if let Some(live) = self.read().live.get(&BrokerKey::new(cluster, broker_addr)) {
            live.heard_at.store(self.clock.now_ms(), Relaxed);
        }
    }

    /// The data version of a broker's last registration. Counts as a heartbeat.
    pub(crate) fn data_version(&self, cluster: &str, broker_addr: &str) -> Option<DataVersion> {
        self.heartbeat(cluster, broker_addr);
        self.read().live.get(&BrokerKey::new(cluster, broker_addr)).map(|live| live.data_version)
    }

    /// `None` when no living broker has the topic. Without `orderTopicConf`.
    pub fn route(&self, topic: &str) -> Option<TopicRouteData> {
        let acting_master = self.settings.now().acting_master;
        self.read().route(topic, acting_master)
    }

    pub fn cluster_info(&self) -> ClusterInfo {
        let tables = self.read();
        ClusterInfo { broker_addr_table: tables.brokers.clone(), cluster_addr_table: tables.clusters.clone() }
    }

    pub(crate) fn members(&self, cluster: &str, broker_name: &str) -> BrokerMemberGroup {
        let broker_addrs = self.read().brokers.get(broker_name).map(|broker| broker.broker_addrs.clone());
        BrokerMemberGroup {
            broker_addrs: broker_addrs.unwrap_or_default(),
            broker_name: broker_name.to_owned(),
            cluster: cluster.to_owned(),
        }
    }

    pub(crate) fn topics(&self) -> TopicList {
        TopicList { broker_addr: None, topic_list: self.read().topics.keys().cloned().collect() }
    }

    pub(crate) fn topics_of_cluster(&self, cluster: &str) -> TopicList {
        self.read().topics_of_cluster(cluster)
    }

    pub(crate) fn system_topics(&self) -> TopicList {
        self.read().system_topics()
    }

    pub(crate) fn unit_topics(&self, which: Unit) -> TopicList {
        self.read().unit_topics(which)
    }

    /// Takes or gives the write permission of all topics of a broker; returns how many it has.
    pub(crate) fn change_write_perm(&self, broker_name: &str, writable: bool) -> usize {
        self.write().change_write_perm(broker_name, writable)
    }

    /// Forgets a topic, on the brokers of `cluster` only if one is named.
    pub(crate) fn delete_topic(&self, topic: &str, cluster: Option<&str>) {
        self.write().delete_topic(topic, cluster);
    }

    /// Whether a broker of this name registered within `timeout`, or was there already.
    pub async fn wait_for_broker(&self, broker_name: &str, timeout: Duration) -> bool {
        self.wait_until(timeout, |tables| tables.brokers.contains_key(broker_name)).await
    }

    /// Whether no broker has this name any more within `timeout`.
    pub async fn wait_until_gone(&self, broker_name: &str, timeout: Duration) -> bool {
        self.wait_until(timeout, |tables| !tables.brokers.contains_key(broker_name)).await
    }

    async fn wait_until(&self, timeout: Duration, holds: impl Fn(&Tables) -> bool) -> bool {
        let wait = async {
            loop {
                // Made before looking: it sees every change from then on.
                let changed = self.changed.notified();
                if holds(&self.read()) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(timeout, wait).await.is_ok()
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
