//! The name server's configuration while it runs: read (319), changed (318), remembered.
//!
//! Disk     `namesrv.properties` holds the keys that were ever changed by request. At start they stand below what the
//!          caller has set and above the defaults. When it is the file the server was started with (Java's `-c`), its
//!          other entries are kept; comments are not.
//! Effect   What [`Settings`] holds counts from the next request on; any other key counts at the next start.
//! Java     `NamesrvConfig`, `Configuration`

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use cometmq_base::config::{Config, ConfigError, Role, find, properties};
use cometmq_wire::ResponseCode;
use tokio::sync::Notify;

use crate::Error;
use crate::answer::Reject;
use crate::files;

/// Keys that no request may change, besides those that `configBlackList` names.
const NEVER: [&str; 4] = ["configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"];

/// What requests and the expiry of brokers go by.
pub(crate) struct Settings {
    config: Config,
    pub(crate) order_message: bool,
    pub(crate) order_topics_to_broker: bool,
    pub(crate) all_topic_list: bool,
    pub(crate) topic_list: bool,
    pub(crate) acting_master: bool,
    pub(crate) delete_missing_topics: bool,
    pub(crate) notify_min_id: bool,
    /// How long after the start routes are refused, so that brokers can come back first.
    pub(crate) wait_for_brokers: Duration,
    pub(crate) scan_every: Duration,
}

impl Settings {
    fn new(config: Config) -> Self {
        let wait = if config.bool("needWaitForService") { config.int("waitSecondsForService") } else { 0 };
        Self {
            order_message: config.bool("orderMessageEnable"),
            order_topics_to_broker: config.bool("returnOrderTopicConfigToBroker"),
            all_topic_list: config.bool("enableAllTopicList"),
            topic_list: config.bool("enableTopicList"),
            acting_master: config.bool("supportActingMaster"),
            delete_missing_topics: config.bool("deleteTopicWithBrokerRegistration"),
            notify_min_id: config.bool("notifyMinBrokerIdChanged"),
            wait_for_brokers: Duration::from_secs(u64::try_from(wait).unwrap_or(0)),
            scan_every: Duration::from_millis(u64::try_from(config.long("scanNotActiveBrokerInterval")).unwrap_or(1)),
            config,
        }
    }

    fn is_black_listed(&self, key: &str) -> bool {
        NEVER.contains(&key) || self.config.str("configBlackList").split(';').any(|listed| listed.trim() == key)
    }
}

pub(crate) struct LiveSettings {
    path: PathBuf,
    current: ArcSwap<Settings>,
    writing: Mutex<()>,
    /// Told of each change.
    pub(crate) changed: Notify,
}

impl LiveSettings {
    /// `default_path` stands in for an empty `configStorePath`.
    pub(crate) fn open(mut config: Config, default_path: PathBuf) -> Result<Self, Error> {
        assert_eq!(config.role(), Role::NameServer);
        let path = match config.str("configStorePath") {
            "" => default_path,
            path => PathBuf::from(path),
        };
        let stored = files::read(&path)?.unwrap_or_default();
        for (key, value) in properties::parse(&String::from_utf8_lossy(&stored)) {
            if find(Role::NameServer, &key).is_some() && !config.is_set(&key) {
                config.set(&key, &value).map_err(|source| Error::Settings { path: path.clone(), source })?;
            }
        }
        let current = ArcSwap::from_pointee(Settings::new(config));
        Ok(Self { path, current, writing: Mutex::default(), changed: Notify::new() })
    }

    pub(crate) fn now(&self) -> Guard<Arc<Settings>> {
        self.current.load()
    }

    /// The port in use, for those who ask; it is not stored.
    pub(crate) fn tell_port(&self, port: u16) {
        let mut config = self.now().config.clone();
        if config.set("listenPort", &port.to_string()).is_ok() {
            self.current.store(Arc::new(Settings::new(config)));
        }
    }

    /// Every key with its value, a line each.
    pub(crate) fn to_properties(&self) -> String {
        self.now().config.to_properties()
    }

    /// Applies a properties text, all of it or nothing. Unknown keys are skipped, as Java does. Blocks on the disk.
    pub(crate) fn update(&self, text: &str) -> Result<(), Reject> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.current.load_full();
        let entries = properties::parse(text);
        if entries.iter().any(|(key, _)| now.is_black_listed(key)) {
            return Err(Reject::new(ResponseCode::NO_PERMISSION, "Can not update config in black list."));
        }
        let mut config = now.config.clone();
        let loaded = config.load_properties(text).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ConfigError::to_string).collect();
            Reject::system_error(errors.join("; "))
        })?;
        if !loaded.unknown.is_empty() {
            tracing::warn!(unknown = ?loaded.unknown, "a configuration update names keys that do not exist");
        }
        self.store(entries)?;
        for key in &loaded.changed {
            tracing::info!(key = key.name, "configuration changed");
        }
        self.current.store(Arc::new(Settings::new(config)));
        self.changed.notify_waiters();
        Ok(())
    }

    fn store(&self, update: Vec<(String, String)>) -> Result<(), Error> {
        let stored = files::read(&self.path)?.unwrap_or_default();
        let mut entries = properties::parse(&String::from_utf8_lossy(&stored));
        for (key, value) in update {
            if find(Role::NameServer, &key).is_some() {
                entries.retain(|(stored, _)| *stored != key);
                entries.push((key, value));
            }
        }
        let mut text = String::new();
        for (key, value) in &entries {
            properties::write(&mut text, key, value);
        }
        files::replace(&self.path, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path, set: &[(&str, &str)]) -> LiveSettings {
        let mut config = Config::new(Role::NameServer);
        for (key, value) in set {
            config.set(key, value).unwrap();
        }
        LiveSettings::open(config, path.join("namesrv.properties")).unwrap()
    }

    #[test]
    fn an_update_counts_at_once_and_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let live = open(dir.path(), &[]);
        assert!(!live.now().order_message);
        let mut told = std::pin::pin!(live.changed.notified());
        live.update("orderMessageEnable=true\ncolour=red\nlistenPort=9877\nscanNotActiveBrokerInterval=70").unwrap();
        assert!(live.now().order_message);
        assert!(told.as_mut().enable(), "who waits by the old interval is told");
        assert_eq!(live.now().scan_every, Duration::from_millis(70));
        assert!(live.to_properties().contains("\norderMessageEnable=true\n"));
        live.update("listenPort=9878").unwrap();
        let file = std::fs::read_to_string(dir.path().join("namesrv.properties")).unwrap();
        assert_eq!(file, "orderMessageEnable=true\nscanNotActiveBrokerInterval=70\nlistenPort=9878\n");
        assert!(open(dir.path(), &[]).now().order_message);
        assert!(!open(dir.path(), &[("orderMessageEnable", "false")]).now().order_message, "the caller's word counts");
    }

    #[test]
    fn a_refused_update_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let live = open(dir.path(), &[("configBlackList", "a; enableTopicList")]);
        let refusal = |text: &str| {
            let reject = live.update(text).unwrap_err();
            (reject.code.0, reject.remark)
        };
        let black = (16, "Can not update config in black list.".to_owned());
        for key in ["kvConfigPath", "configStorePath", "configBlackList", "rocketmqHome", "enableTopicList"] {
            assert_eq!(refusal(&format!("orderMessageEnable=true\n{key}=x")), black, "{key}");
        }
        let wrong = "orderMessageEnable = \"maybe\": expected true or false".to_owned();
        assert_eq!(refusal("enableAllTopicList=false\norderMessageEnable=maybe"), (1, wrong));
        assert!(live.now().all_topic_list && !live.now().order_message);
        assert!(!dir.path().join("namesrv.properties").exists());
    }
}
