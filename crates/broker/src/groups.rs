//! Subscription groups. `config/subscriptionGroup.json` is Java's. Java: `SubscriptionGroupManager`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use cometmq_base::Clock;
use cometmq_store::disk::Disk;
use cometmq_wire::body::{SubscriptionGroupConfig, SubscriptionGroupTable};
use cometmq_wire::{json, names};

use crate::error::Reject;
use crate::json_file::JsonFile;

/// The bit of a group's forbidden mask that stands for reading. Java: `PermName.INDEX_PERM_READ`.
const FORBIDDEN_READ: i32 = 1 << 2;

type Table = BTreeMap<String, Arc<SubscriptionGroupConfig>>;

pub(crate) struct Groups {
    table: ArcSwap<Table>,
    /// Version and forbidden masks; held while the table is changed.
    rest: Mutex<SubscriptionGroupTable>,
    file: Arc<JsonFile>,
    clock: Clock,
}

impl Groups {
    pub(crate) fn load(disk: Arc<dyn Disk>, root: &Path, clock: Clock) -> io::Result<Self> {
        let file = Arc::new(JsonFile::new(disk, root, "subscriptionGroup.json"));
        let mut rest = file.load::<SubscriptionGroupTable>()?.unwrap_or_default();
        let mut table: Table =
            std::mem::take(&mut rest.subscription_group_table).into_iter().map(|(n, g)| (n, Arc::new(g))).collect();
        let predefined = [
            names::TOOLS_CONSUMER,
            names::FILTERSRV_CONSUMER,
            names::SELF_TEST_CONSUMER,
            names::ONS_HTTP_PROXY,
            names::ONSAPI_PULL,
            names::ONSAPI_PERMISSION,
            names::ONSAPI_OWNER,
            names::TRANS_GROUP,
        ];
        for name in predefined {
            table.entry(name.to_string()).or_insert_with(|| Arc::new(SubscriptionGroupConfig::new(name)));
        }
        Ok(Self { table: ArcSwap::from_pointee(table), rest: Mutex::new(rest), file, clock })
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<SubscriptionGroupConfig>> {
        self.table.load().get(name).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.load().len()
    }

    fn rest(&self) -> MutexGuard<'_, SubscriptionGroupTable> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a group, new or changed.
    pub(crate) fn put(&self, group: SubscriptionGroupConfig) {
        let mut rest = self.rest();
        let mut table = self.table.load().as_ref().clone();
        table.insert(group.group_name.clone(), Arc::new(group));
        let state = rest.data_version.state_version;
        rest.data_version.next(self.clock.now_ms(), state);
        self.table.store(Arc::new(table));
        self.file.changed();
    }

    pub(crate) fn remove(&self, name: &str) {
        let mut rest = self.rest();
        let mut table = self.table.load().as_ref().clone();
        if table.remove(name).is_some() | rest.forbidden_table.remove(name).is_some() {
            let state = rest.data_version.state_version;
            rest.data_version.next(self.clock.now_ms(), state);
            self.table.store(Arc::new(table));
            self.file.changed();
        }
    }

    /// Creates a group with Java's defaults if there is none. Java: `findSubscriptionGroupConfig`.
    pub(crate) fn auto_create(&self, name: &str) -> Result<(), Reject> {
        names::check_group(name).map_err(|_| Reject::no_group(name))?;
        if self.find(name).is_none() {
            tracing::info!(group = name, "subscription group created by its first use");
            self.put(SubscriptionGroupConfig::new(name));
        }
        Ok(())
    }

    pub(crate) fn is_read_forbidden(&self, group: &str, topic: &str) -> bool {
        let rest = self.rest();
        rest.forbidden_table.get(group).and_then(|t| t.get(topic)).is_some_and(|mask| mask & FORBIDDEN_READ != 0)
    }

    pub(crate) fn snapshot(&self) -> SubscriptionGroupTable {
        let rest = self.rest();
        let groups = self.table.load().iter().map(|(n, g)| (n.clone(), g.as_ref().clone())).collect();
        SubscriptionGroupTable { subscription_group_table: groups, ..rest.clone() }
    }

    pub(crate) async fn save(&self) -> Result<(), Reject> {
        self.file.save(|| json::to_pretty(&self.snapshot())).await.map_err(|e| Reject::from(&e))
    }

    pub(crate) fn save_now(&self) -> io::Result<()> {
        self.file.write(&json::to_pretty(&self.snapshot()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cometmq_store::disk::Faulty;

    #[tokio::test]
    async fn groups_survive_a_restart() {
        let disk = Faulty::healthy();
        disk.create_dirs(Path::new("/s/comet")).unwrap();
        let load = || Groups::load(Arc::new(disk.clone()), Path::new("/s"), Clock::manual(5)).unwrap();
        let groups = load();
        groups.auto_create("g1").unwrap();
        let mut g2 = SubscriptionGroupConfig::new("g2");
        g2.consume_enable = false;
        groups.put(g2.clone());
        groups.save().await.unwrap();
        let again = load();
        assert_eq!(again.find("g1").as_deref(), Some(&SubscriptionGroupConfig::new("g1")));
        assert_eq!(again.find("g2").as_deref(), Some(&g2));
        assert_eq!(again.len(), 10);
        assert!(again.auto_create("bad name").is_err());
    }
}
