//! Flags, `--set`, file and defaults become one configuration. Precedence: flag > `--set` > `-c` > default.

use anyhow::{Context, bail};
use cometmq_base::config::{Config, Role, find};

use crate::address;
use crate::cli::{BrokerFlags, Common};

/// Keys that nobody knows, by role; a key counts as unknown only if no role of this process knows it.
pub fn configure(role: Role, others: &[Role], common: &Common) -> anyhow::Result<Config> {
    let mut config = Config::new(role);
    let known_elsewhere = |key: &str| others.iter().any(|r| find(*r, key).is_some());
    // What concerns both roles of a process, the broker says.
    let speaks = role == Role::Broker || others.is_empty();
    if let Some(path) = &common.config {
        let text = std::fs::read(path).with_context(|| format!("configuration file {}", path.display()))?;
        let loaded = config.load_properties(&String::from_utf8_lossy(&text)).map_err(|errors| {
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("configuration file {}: {}", path.display(), all.join("; "))
        })?;
        for key in loaded.unknown.iter().filter(|k| speaks && !known_elsewhere(k)) {
            tracing::warn!(key, file = %path.display(), "unknown configuration key, ignored as Java does");
        }
    }
    for pair in &common.set {
        let Some((key, value)) = pair.split_once('=') else { bail!("--set {pair}: expected KEY=VALUE") };
        if find(role, key.trim()).is_none() && known_elsewhere(key.trim()) {
            continue;
        }
        config.set(key.trim(), value).with_context(|| format!("--set {pair}"))?;
    }
    if let Some(data) = &common.data {
        config
            .set("storePathRootDir", &data.to_string_lossy())
            .or_else(|e| if role == Role::NameServer { Ok(find_any()) } else { Err(e) })?;
    }
    for (key, value) in config.not_built().into_iter().filter(|(key, _)| speaks || !known_elsewhere(key.name)) {
        tracing::warn!(key = key.name, value, "this configuration key has no effect in this version");
    }
    Ok(config)
}

/// The name server has no data directory key of its own.
fn find_any() -> &'static cometmq_base::config::Key {
    find(Role::Broker, "storePathRootDir").unwrap_or_else(|| unreachable!("a key of the table"))
}

/// Puts the broker's flags on top, and finds what is left to be found.
pub fn finish_broker(config: &mut Config, flags: &BrokerFlags, common: &Common) -> anyhow::Result<()> {
    if let Some(port) = flags.broker_port {
        config.set("listenPort", &port.to_string())?;
    }
    if let Some(address) = &flags.advertise {
        config.set("brokerIP1", address)?;
    }
    if config.str("brokerIP1").is_empty() {
        config.set("brokerIP1", &address::advertised(common.host).to_string())?;
    }
    if config.str("brokerIP2").is_empty() {
        let ip = config.str("brokerIP1").to_string();
        config.set("brokerIP2", &ip)?;
    }
    if config.str("brokerName").is_empty() {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        config.set("brokerName", if name.is_empty() { "DEFAULT_BROKER" } else { &name })?;
    }
    if config.str("storePathCommitLog").is_empty() {
        let path = format!("{}/commitlog", config.str("storePathRootDir"));
        config.set("storePathCommitLog", &path)?;
    }
    Ok(())
}

pub fn shards(flags: &BrokerFlags) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    flags.shards.unwrap_or(cores).clamp(1, 63)
}
