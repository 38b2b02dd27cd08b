//! The broker's shared state: one struct of small tables that own their locks.
//!
//! Lock order: a table's lock is never held while another table's method is called; the store's locks come last.
//! Everything here can be called in process, without a socket.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use cometmq_base::Clock;
use cometmq_base::config::Config;
use cometmq_net::stats::ShardStats;
use cometmq_net::{ConnId, Mailbox, Memory};
use cometmq_store::disk::Disk;
use cometmq_store::{FlushMode, Store};
use cometmq_wire::message_id::UniqueIds;
use tokio::sync::Notify;

use crate::cleaning;
use crate::clients::{Changed, Clients};
use crate::consumed::Consumed;
use crate::delay::Delays;
use crate::groups::Groups;
use crate::heartbeat;
use crate::offsets::Offsets;
use crate::queue_locks::QueueLocks;
use crate::runtime::{Mornings, Rates};
use crate::settings::Settings;
use crate::topics::Topics;

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] cometmq_store::Error),
    #[error("configuration files: {0}")]
    Files(#[from] io::Error),
    #[error("{key}={value}: {why}")]
    Config { key: &'static str, value: String, why: String },
    #[error(transparent)]
    Net(#[from] cometmq_net::Error),
}

impl OpenError {
    pub(crate) fn config(config: &Config, key: &'static str, why: impl ToString) -> Self {
        Self::Config { key, value: config.written(key).to_string(), why: why.to_string() }
    }
}

pub struct Broker {
    pub(crate) name: String,
    pub(crate) cluster: String,
    /// What routes hand out and what offset ids carry.
    pub(crate) address: SocketAddr,
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<Store>,
    pub(crate) topics: Topics,
    pub(crate) groups: Groups,
    pub(crate) offsets: Offsets,
    pub(crate) clients: Clients,
    pub(crate) queue_locks: QueueLocks,
    pub(crate) delays: Delays,
    pub(crate) unique_ids: UniqueIds,
    pub(crate) started_ms: i64,
    /// Messages handed out.
    pub(crate) pulled: AtomicU64,
    pub(crate) consumed: Consumed,
    pub(crate) rates: Rates,
    pub(crate) mornings: Mornings,
    /// Raised when the name servers should hear of the topics now.
    pub(crate) register: Notify,
    pub(crate) mailboxes: OnceLock<Vec<Mailbox>>,
    pub(crate) shard_stats: OnceLock<Vec<Arc<ShardStats>>>,
    pub(crate) memory: OnceLock<Arc<Memory>>,
    /// Polls that are parked now, of all shards.
    pub(crate) parked: Arc<AtomicUsize>,
}

impl Broker {
    /// Opens the store and all tables. `address` is the advertised one, with the port that is really listened on.
    pub(crate) fn open(
        config: Config,
        address: SocketAddr,
        disk: Arc<dyn Disk>,
        clock: Clock,
    ) -> Result<Arc<Self>, OpenError> {
        let options = store_options(&config)?;
        let root = options.root.clone();
        let levels = options.delay_levels_ms.clone();
        // A broker of its own memory: what was acknowledged before the crash must not be cut by what comes later.
        let crashed = disk.open(&root.join("abort"), cometmq_store::disk::Open::Read).is_ok();
        let store = Arc::new(Store::open(options, disk.clone(), clock.clone())?);
        let topics = Topics::load(disk.clone(), &root, clock.clone(), &config)?;
        let groups = Groups::load(disk.clone(), &root, clock.clone())?;
        topics.save_now()?;
        groups.save_now()?;
        let end_of = |topic: &str, queue: i32| {
            let queue = topics.find(topic)?.queue(queue, &store)?.ok()?;
            crashed.then(|| queue.end())
        };
        let offsets = Offsets::load(disk.clone(), &root, end_of)?;
        let delays = Delays::load(disk, &root, levels, &store)?;
        let started_ms = clock.now_ms();
        Ok(Arc::new(Self {
            name: config.str("brokerName").to_string(),
            cluster: config.str("brokerClusterName").to_string(),
            address,
            settings: ArcSwap::from_pointee(Settings::of(&config)),
            unique_ids: UniqueIds::new(address.ip(), std::process::id(), started_ms as u32),
            config,
            clock,
            store,
            topics,
            groups,
            offsets,
            clients: Clients::default(),
            queue_locks: QueueLocks::default(),
            delays,
            started_ms,
            pulled: AtomicU64::new(0),
            consumed: Consumed::default(),
            rates: Rates::default(),
            mornings: Mornings::default(),
            register: Notify::new(),
            mailboxes: OnceLock::new(),
            shard_stats: OnceLock::new(),
            memory: OnceLock::new(),
            parked: Arc::default(),
        }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Tells the members of groups that their list changed.
    pub(crate) fn notify_changed(&self, changed: Changed) {
        if changed.is_empty() || !self.settings.load().notify_consumer_ids_changed_enable {
            return;
        }
        for (group, conns) in changed {
            let frame = heartbeat::ids_changed_frame(&group);
            conns.into_iter().for_each(|conn| self.write_to(conn, frame.clone()));
        }
    }

    /// Writes a frame to any connection; one that is gone by now takes none.
    pub(crate) fn write_to(&self, conn: ConnId, frame: Vec<u8>) {
        if let Some(mailbox) = self.mailboxes.get().and_then(|all| all.get(conn.shard.0)) {
            mailbox.write(conn, frame);
        }
    }

    /// Saves topics, then has them registered at all name servers.
    pub(crate) async fn topics_changed(&self) -> Result<(), crate::error::Reject> {
        self.topics.save().await?;
        self.register.notify_one();
        Ok(())
    }
}

/// What the keys of a broker say about its store. Errors name the key and its value.
pub fn store_options(config: &Config) -> Result<cometmq_store::Options, OpenError> {
    let mut options = cometmq_store::Options::new(PathBuf::from(config.str("storePathRootDir")));
    // Java: `MixAll.MULTI_PATH_SPLITTER`.
    let paths = |key| config.str(key).split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    options.log_dirs = paths("storePathCommitLog");
    options.read_only_log_dirs = paths("readOnlyCommitLogStorePaths");
    refuse_other_stores(config)?;
    // A size that no key sets is taken from the files that are there.
    let size = |key| config.is_set(key).then(|| u64::try_from(config.int(key)).unwrap_or(0));
    options.segment_bytes = size("mappedFileSizeCommitLog");
    options.queue_file_bytes = size("mappedFileSizeConsumeQueue").map(|n| n.next_multiple_of(20));
    options.index = config.bool("messageIndexEnable") && config.bool("indexFileWriteEnable");
    options.index_slots = size("maxHashSlotNum").map(|n| u32::try_from(n).unwrap_or(0));
    options.index_items = size("maxIndexNum").map(|n| u32::try_from(n).unwrap_or(0));
    let ms = |key| Duration::from_millis(u64::try_from(config.int(key)).unwrap_or(0).max(1));
    options.flush_interval = ms("flushIntervalCommitLog");
    options.dispatch_interval = ms("flushIntervalConsumeQueue");
    options.flush = if config.str("flushDiskType") == "SYNC_FLUSH" { FlushMode::Sync } else { FlushMode::Async };
    options.retention = cleaning::retention(config)?;
    options.delay_levels_ms = delay_levels(config.str("messageDelayLevel")).ok_or_else(|| {
        OpenError::config(config, "messageDelayLevel", "expected numbers with s, m, h or d, by spaces")
    })?;
    Ok(options)
}

/// Keys that put a store's data where nothing here reads it. Looked at before anything is touched.
fn refuse_other_stores(config: &Config) -> Result<(), OpenError> {
    let refuse = |key, why: &str| Err(OpenError::config(config, key, format!("{why}; nothing was touched")));
    let kind = config.str("storeType");
    if !kind.is_empty() && !kind.eq_ignore_ascii_case("default") {
        return refuse(
            "storeType",
            "only file stores are supported; write topics, groups and offsets to JSON with `mqadmin rocksDBConfigToJson`, move \
             consumequeue_rocksdb away (queues are built anew from the commit log), and set storeType=default",
        );
    }
    if config.str("configManagerVersion") == "v2" {
        let why = "topics, groups and offsets would be in RocksDB; write them to JSON and set configManagerVersion=v1";
        return refuse("configManagerVersion", why);
    }
    let on = |key| config.bool(key).then_some(key);
    if let Some(key) = on("timerRocksDBEnable").or(on("transRocksDBEnable")) {
        return refuse(
            key,
            "timed or half messages would wait in RocksDB and never come; let Java deliver them, set it to false",
        );
    }
    if config.bool("rocksdbCQDoubleWriteEnable") {
        return refuse("rocksdbCQDoubleWriteEnable", "queues are kept in files alone; set it to false");
    }
    if config.bool("enableDLegerCommitLog") {
        return refuse("enableDLegerCommitLog", "a DLedger log has a format of its own that is not supported");
    }
    Ok(())
}

/// `1s 5s 10m 2h` in milliseconds.
fn delay_levels(text: &str) -> Option<Vec<i64>> {
    let level = |part: &str| {
        let unit = match part.chars().last()? {
            's' => 1000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return None,
        };
        part.get(..part.len() - 1)?.parse::<i64>().ok()?.checked_mul(unit)
    };
    text.split_whitespace().map(level).collect()
}

/// The advertised address: an IP address, or a name that resolves to one.
pub(crate) fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let mut found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| io::Error::other("the name resolves to no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_levels_have_units() {
        assert_eq!(delay_levels("1s 5s 1m 2h 1d"), Some(vec![1000, 5000, 60_000, 7_200_000, 86_400_000]));
        assert_eq!(delay_levels("1x"), None);
        assert_eq!(delay_levels("s"), None);
    }
}
