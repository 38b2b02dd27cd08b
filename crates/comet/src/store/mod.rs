//! `comet store`: looks at the store directory of a stopped broker, ours or Java's, and repairs it.
//!
//! `check` and `config` compare, `dump` prints messages, `stat` counts, `repair` goes through the store's own recovery.
//! All but `repair` open everything for reading alone. Exit codes: 0 = sound or done, 1 = damage, 2 = it could not be done.

mod check;
mod config;
mod dump;
mod progress;
mod repair;
mod copy;
mod stat;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use cometmq_base::config::{Config, Role};
use cometmq_store::disk::Real;
use cometmq_store::{Error, Inspect, Options};

const COULD_NOT: i32 = 2;

#[derive(Args)]
#[command(after_help = "Examples:
  comet store check /srv/mq                    is everything there, and does it fit together?
  comet store stat /srv/mq
  comet store dump /srv/mq --topic orders --max 10
  comet store repair /srv/mq --out /srv/mq-repaired
The broker must be stopped: a store that is in use is refused.
Exit codes: 0 = sound or done, 1 = damage was found, 2 = it could not be done.")]
pub struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare log, queues, index, checkpoints and configuration with each other. Changes nothing.
    Check(check::Check),
    /// Print messages, in the order of the log. Changes nothing.
    Dump(dump::Dump),
    /// Sizes, numbers, topics and queues. Changes nothing.
    Stat(stat::StatArgs),
    /// Repair what can be repaired, in a copy or in place; says first what it would do.
    Repair(repair::Repair),
}

/// What every command takes.
#[derive(Args, Clone)]
struct Place {
    /// Directory of the store (storePathRootDir).
    dir: PathBuf,
    /// Configuration file of its broker: for storePathCommitLog and messageDelayLevel, if they were set.
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Store {
    pub fn run(self) -> i32 {
        let done = match self.command {
            Command::Check(args) => args.run(),
            Command::Dump(args) => args.run(),
            Command::Stat(args) => args.run(),
            Command::Repair(args) => args.run(),
        };
        done.unwrap_or_else(|error| {
            // Whoever reads the output had enough of it.
            if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
                return 0;
            }
            eprintln!("comet: {error:#}");
            COULD_NOT
        })
    }
}

impl Place {
    /// What the broker of this store tells it.
    fn options(&self) -> anyhow::Result<Options> {
        let mut config = Config::new(Role::Broker);
        if let Some(path) = &self.config {
            let text = std::fs::read(path).with_context(|| format!("configuration file {}", path.display()))?;
            config.load_properties(&String::from_utf8_lossy(&text)).map_err(|errors| {
                let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
                anyhow::anyhow!("configuration file {}: {}", path.display(), all.join("; "))
            })?;
        }
        config.set("storePathRootDir", &self.dir.to_string_lossy())?;
        Ok(cometmq_broker::store_options(&config)?)
    }

    fn inspect(&self) -> anyhow::Result<Inspect> {
        Ok(open(self.options()?)?)
    }

    fn config_dir(&self) -> PathBuf {
        self.dir.join("config")
    }
}

fn open(options: Options) -> Result<Inspect, Error> {
    Inspect::open(options, Arc::new(Real))
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Bytes as people read them.
fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let Some(power) = (1..=4u32).rev().find(|p| bytes >= 1 << (10 * p)) else { return format!("{bytes} bytes") };
    format!("{:.1} {}", bytes as f64 / (1u64 << (10 * power)) as f64, units[power as usize - 1])
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
