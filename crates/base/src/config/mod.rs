//! Configuration of one role: what was set over what the table says.
//!
//! One table ([`Section::keys`]) holds every key once; parsing, GET/UPDATE_BROKER_CONFIG (26/25) and
//! GET/UPDATE_NAMESRV_CONFIG (319/318), `--print-config`, warnings and `docs/config.md` all come from it.
//!
//! Invariants  A value kept here is of its key's kind and in its range, in one spelling (`TRUE` is kept as `true`).
//!             A text with a bad value changes nothing. Values are text: read them once into a snapshot, not a message.
//! Differs     Java drops a value it cannot parse and goes on with the default; here it is an error.
//! Java        `Configuration`, `MixAll.properties2Object`.

mod key;
mod table;
pub mod properties;
mod docs;

use std::collections::BTreeMap;

pub use docs::docs;
use key::Misfit;
pub use key::{Effect, Key, Kind, Role, Section, find};

#[derive(Clone, Debug)]
pub struct Config {
    role: Role,
    /// What was set, by name; anything else is at its default.
    values: BTreeMap<&'static str, String>,
}

/// What a properties text did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The keys whose value is now another than before, in the order of the text.
    pub changed: Vec<&'static Key>,
    /// Names the role does not know. Java ignores them; say so in a warning.
    pub unknown: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("unknown key {key}")]
    Unknown { key: String },
    #[error("{key} = {value:?}: expected {expected}")]
    WrongKind { key: &'static str, value: String, expected: Kind },
    #[error("{key} = {value}: must lie between {min} and {max}")]
    OutOfRange { key: &'static str, value: String, min: i64, max: i64 },
}

impl Config {
    pub fn new(role: Role) -> Config {
        Config { role, values: BTreeMap::new() }
    }

    pub fn role(&self) -> Role {
        self.role
    }

    /// Sets one key, surrounding space dropped.
    pub fn set(&mut self, name: &str, value: &str) -> Result<&'static Key, ConfigError> {
        let key = find(self.role, name).ok_or_else(|| ConfigError::Unknown { key: name.to_owned() })?;
        let value = checked(key, value)?;
        self.values.insert(key.name, value);
        Ok(key)
    }

    /// Sets all keys of a properties text, the last of equal ones, or none if one has a bad value.
    /// Unknown names are no error.
    pub fn load_properties(&mut self, text: &str) -> Result<Loaded, Vec<ConfigError>> {
        let mut next = self.clone();
        let mut errors = Vec::new();
        let mut loaded = Loaded::default();
        for (name, value) in properties::parse(text) {
            match next.set(&name, &value) {
                Ok(key) if !loaded.changed.contains(&key) => loaded.changed.push(key),
                Ok(_) => {}
                Err(ConfigError::Unknown { key }) => loaded.unknown.push(key),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        loaded.changed.retain(|key| self.text(key) != next.text(key));
        *self = next;
        Ok(loaded)
    }

    /// Whether the key was set, be it to its default.
    pub fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(self.key(name).name)
    }

    // The typed readers assert that the table has the key and its kind: a reader that asks for another is a bug.

    /// The value of a text or choice key.
    pub fn str(&self, name: &str) -> &str {
        let key = self.key(name);
        assert!(matches!(key.kind, Kind::Str | Kind::Choice(_)), "{name} is no text");
        self.text(key)
    }

    pub fn bool(&self, name: &str) -> bool {
        self.read(name, Kind::Bool)
    }

    pub fn int(&self, name: &str) -> i32 {
        self.read(name, Kind::Int)
    }

    pub fn long(&self, name: &str) -> i64 {
        self.read(name, Kind::Long)
    }

    pub fn double(&self, name: &str) -> f64 {
        self.read(name, Kind::Double)
    }

    /// The value of a key of any kind, as it is written in a file.
    pub fn written(&self, name: &str) -> &str {
        self.text(self.key(name))
    }

    /// All keys of the role with their values, a `key=value` line each, sorted by name.
    pub fn to_properties(&self) -> String {
        let mut text = String::new();
        for key in self.role.keys() {
            properties::write(&mut text, key.name, self.text(key));
        }
        text
    }

    /// Keys set to something else than their default although nothing reads them yet, sorted by name.
    pub fn not_built(&self) -> Vec<(&'static Key, &str)> {
        let set = self.values.iter().map(|(name, value)| (self.key(name), value.as_str()));
        set.filter(|(key, value)| key.effect == Effect::NotBuilt && *value != key.default).collect()
    }

    fn key(&self, name: &str) -> &'static Key {
        find(self.role, name).unwrap_or_else(|| panic!("{:?} has no configuration key {name}", self.role))
    }

    fn text(&self, key: &Key) -> &str {
        self.values.get(key.name).map_or(key.default, String::as_str)
    }

    fn read<T: std::str::FromStr>(&self, name: &str, kind: Kind) -> T {
        let key = self.key(name);
        assert!(key.kind == kind, "{name} is {:?}, not {kind:?}", key.kind);
        self.text(key).parse().unwrap_or_else(|_| unreachable!("{name} was checked when it was set"))
    }
}

fn checked(key: &'static Key, value: &str) -> Result<String, ConfigError> {
    key.parse(value).map_err(|misfit| {
        let value = value.trim().to_owned();
        match misfit {
            Misfit::Kind => ConfigError::WrongKind { key: key.name, value, expected: key.kind },
            Misfit::Range { min, max } => ConfigError::OutOfRange { key: key.name, value, min, max },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker() -> Config {
        Config::new(Role::Broker)
    }

    fn names(keys: &[&'static Key]) -> Vec<&'static str> {
        keys.iter().map(|key| key.name).collect()
    }

    #[test]
    fn an_untouched_config_reads_as_the_table() {
        let config = broker();
        assert_eq!(config.str("brokerClusterName"), "DefaultCluster");
        assert_eq!(config.str("storePathRootDir"), "./comet-data");
        assert_eq!(config.str("flushDiskType"), "ASYNC_FLUSH");
        assert_eq!(config.int("listenPort"), 10911);
        assert_eq!(config.long("brokerId"), 0);
        assert_eq!(config.double("logicalDiskSpaceCleanForciblyThreshold"), 0.8);
        assert!(config.bool("autoCreateTopicEnable"));
        assert!(!config.is_set("listenPort"));
        assert_eq!(Config::new(Role::NameServer).int("listenPort"), 9876);
    }

    #[test]
    fn set_trims_checks_and_keeps_one_spelling() {
        let mut config = broker();
        assert_eq!(config.set("listenPort", " +020911 ").map(|key| key.name), Ok("listenPort"));
        config.set("traceOn", "FALSE").unwrap();
        config.set("flushDiskType", "SYNC_FLUSH").unwrap();
        assert_eq!(config.int("listenPort"), 20911);
        assert!(!config.bool("traceOn"));
        assert_eq!(config.str("flushDiskType"), "SYNC_FLUSH");
        assert!(config.is_set("listenPort"));
        assert!(config.to_properties().contains("\nlistenPort=20911\n"));
        assert!(config.to_properties().contains("\ntraceOn=false\n"));
    }

    #[test]
    fn a_refusal_names_key_value_and_limit() {
        let refusal = |name: &str, value: &str| broker().set(name, value).unwrap_err().to_string();
        assert_eq!(refusal("colour", "red"), "unknown key colour");
        assert_eq!(refusal("orderMessageEnable", "true"), "unknown key orderMessageEnable");
        assert_eq!(refusal("traceOn", "yes"), "traceOn = \"yes\": expected true or false");
        assert_eq!(refusal("listenPort", " 1O911"), "listenPort = \"1O911\": expected a whole number");
        assert_eq!(refusal("listenPort", "65536"), "listenPort = 65536: must lie between 0 and 65535");
        assert_eq!(
            refusal("haMaxGapNotInSync", "2147483648"),
            "haMaxGapNotInSync = 2147483648: must lie between -2147483648 and 2147483647"
        );
        assert_eq!(
            refusal("maxHaTransferByteInSecond", "9223372036854775808"),
            "maxHaTransferByteInSecond = 9223372036854775808: must lie between \
             -9223372036854775808 and 9223372036854775807"
        );
        assert_eq!(
            refusal("logicalDiskSpaceCleanForciblyThreshold", "NaN"),
            "logicalDiskSpaceCleanForciblyThreshold = \"NaN\": expected a number"
        );
        assert_eq!(
            refusal("flushDiskType", "sync_flush"),
            "flushDiskType = \"sync_flush\": expected one of SYNC_FLUSH, ASYNC_FLUSH"
        );
    }

    #[test]
    fn a_refused_value_changes_nothing() {
        let mut config = broker();
        config.set("listenPort", "20911").unwrap();
        config.set("listenPort", "-1").unwrap_err();
        assert_eq!(config.int("listenPort"), 20911);
    }

    #[test]
    fn a_broker_conf_loads_and_unknown_names_are_listed() {
        let mut config = broker();
        let text = "# a broker\nbrokerClusterName = c1\nbrokerName=a\nbrokerName=b\ncolour=red\nbrokerId=0\n";
        let loaded = config.load_properties(text).unwrap();
        assert_eq!(names(&loaded.changed), ["brokerClusterName", "brokerName"]);
        assert_eq!(loaded.unknown, ["colour"]);
        assert_eq!(config.str("brokerName"), "b");
        assert!(config.is_set("brokerId"));
    }

    #[test]
    fn a_text_with_a_bad_value_changes_nothing_and_tells_all_of_them() {
        let mut config = broker();
        let errors = config.load_properties("brokerName=b\nlistenPort=x\ntraceOn=1\n").unwrap_err();
        let keys: Vec<String> = errors.iter().map(|error| error.to_string()).collect();
        assert_eq!(keys, ["listenPort = \"x\": expected a whole number", "traceOn = \"1\": expected true or false"]);
        assert!(!config.is_set("brokerName"));
    }

    #[test]
    fn values_with_separators_survive_update_and_restart() {
        for value in ["1s 5s 10s", "a=b", "#a", "a # b=c:d!", "c:\\new", "中文"] {
            let mut config = broker();
            let mut update = String::new();
            properties::write(&mut update, "messageDelayLevel", value);
            config.load_properties(&update).unwrap();
            let mut restarted = broker();
            restarted.load_properties(&config.to_properties()).unwrap();
            assert_eq!(restarted.str("messageDelayLevel"), value);
        }
        let mut config = broker();
        config.load_properties("messageDelayLevel=1s 5s=10s #\n").unwrap();
        assert_eq!(config.str("messageDelayLevel"), "1s 5s=10s #");
    }

    #[test]
    fn the_printed_config_has_every_key_once_and_loads_as_no_change() {
        let mut config = broker();
        config.set("brokerName", "b").unwrap();
        let printed = config.to_properties();
        assert!(printed.lines().is_sorted_by_key(|line| line.split('=').next()));
        assert_eq!(printed.lines().count(), Role::Broker.keys().len());
        assert_eq!(config.load_properties(&printed), Ok(Loaded::default()));
    }

    #[test]
    fn only_set_keys_that_nothing_reads_are_reported_as_not_built() {
        let mut config = broker();
        config
            .load_properties("brokerName=b\nenableLmq=true\nhaListenPort=10912\ntransientStorePoolEnable=true\n")
            .unwrap();
        let reported: Vec<(&str, &str)> = config.not_built().iter().map(|(key, value)| (key.name, *value)).collect();
        assert_eq!(reported, [("enableLmq", "true"), ("transientStorePoolEnable", "true")]);
    }

    #[test]
    #[should_panic(expected = "listenPort is Int, not Long")]
    fn reading_a_key_as_another_kind_is_a_bug() {
        broker().long("listenPort");
    }

    #[test]
    #[should_panic(expected = "NameServer has no configuration key brokerName")]
    fn reading_a_key_of_another_role_is_a_bug() {
        Config::new(Role::NameServer).str("brokerName");
    }
}
