//! Flags and sub-commands.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{consume, produce, serve, store};

#[derive(Parser)]
#[command(name = "comet", version, about = "RocketMQ without the JVM: name server, broker and tools in one binary")]
#[command(after_help = "Examples:
  comet serve                                  name server and broker, data in ./comet-data
  comet serve --data /srv/mq --advertise 10.0.0.5
  comet namesrv                                name server alone
  comet broker -n 10.0.0.1:9876 -c broker.conf one broker of a cluster
  echo hello | comet produce orders
  comet consume orders --from first --max 1
  comet store check ./comet-data               once it is stopped")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run name server and broker in one process.
    Serve(ServeArgs),
    /// Run a name server alone.
    Namesrv(NamesrvArgs),
    /// Run a broker alone.
    Broker(BrokerArgs),
    /// Send messages: lines of standard input or of a file, or generated ones.
    Produce(produce::Produce),
    /// Receive messages of a topic.
    Consume(consume::Consume),
    /// Manage topics, groups, offsets and brokers: mqadmin's commands. `comet admin --help` lists them.
    #[command(disable_help_flag = true)]
    Admin {
        // Parsed by `cometmq_admin`: its exit codes and spelling are not clap's.
        /// A command of mqadmin and its flags.
        #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Check, print, count and repair the store of a stopped broker, ours or Java's.
    Store(store::Store),
    /// Print a completion script for a shell.
    #[command(after_help = "Examples:
  comet completions bash > /etc/bash_completion.d/comet
  comet completions zsh > ~/.zfunc/_comet
  comet completions fish > ~/.config/fish/completions/comet.fish")]
    Completions { shell: CompletionShell },
    /// Print the manual page of comet or of one of its commands.
    #[command(after_help = "Examples:
  comet man | man -l -
  comet man admin updateTopic | man -l -")]
    Man {
        /// Command and sub-command.
        command: Vec<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

/// What every server role takes.
#[derive(Args)]
pub struct Common {
    /// Configuration file in Java's format (broker.conf, namesrv.conf).
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set a configuration key (Java's names); may be repeated; wins over the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the whole configuration as it would be used, and exit.
    #[arg(long)]
    pub print_config: bool,
    /// Directory for all data (storePathRootDir).
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0")]
    pub host: IpAddr,
}

/// What roles with a broker take.
#[derive(Args)]
pub struct BrokerFlags {
    /// Address that routes hand out to clients (brokerIP1); by default one of this machine that others can reach.
    #[arg(long, value_name = "ADDR")]
    pub advertise: Option<String>,
    /// Port of the broker (listenPort); 0 picks one.
    #[arg(long, value_name = "PORT")]
    pub broker_port: Option<u16>,
    /// Threads that serve connections; by default one a core.
    #[arg(long, value_name = "N")]
    pub shards: Option<usize>,
}

#[derive(Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub broker: BrokerFlags,
    /// Port of the name server; 0 picks one.
    #[arg(long, value_name = "PORT", default_value_t = 9876)]
    pub namesrv_port: u16,
    /// Port of the gRPC proxy. Not built yet: accepted with a warning.
    #[arg(long, value_name = "PORT")]
    pub grpc_port: Option<u16>,
    /// Port of the web console. Not built yet: accepted with a warning.
    #[arg(long, value_name = "PORT")]
    pub http_port: Option<u16>,
}

#[derive(Args)]
pub struct NamesrvArgs {
    #[command(flatten)]
    pub common: Common,
    /// Port to listen on; 0 picks one. Default: listenPort of the configuration, 9876.
    #[arg(long, value_name = "PORT")]
    pub namesrv_port: Option<u16>,
}

#[derive(Args)]
pub struct BrokerArgs {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub broker: BrokerFlags,
    /// Name servers, by ';' (namesrvAddr).
    #[arg(short = 'n', long = "namesrv", value_name = "ADDRS")]
    pub namesrv: Option<String>,
}

impl Cli {
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Serve(args) => serve::serve(args),
            Command::Namesrv(args) => serve::namesrv(args),
            Command::Broker(args) => serve::broker(args),
            Command::Produce(args) => args.run(),
            Command::Consume(args) => args.run(),
            Command::Admin { args } => std::process::exit(cometmq_admin::run(args)),
            Command::Store(args) => std::process::exit(args.run()),
            Command::Completions { shell } => completions(shell),
            Command::Man { command } => manual(&command),
        }
    }
}

/// All commands, those of `admin` included.
fn tree() -> clap::Command {
    Cli::command().mut_subcommand("admin", |_| cometmq_admin::command())
}

fn completions(shell: CompletionShell) -> anyhow::Result<()> {
    let shell = match shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    clap_complete::generate(shell, &mut tree(), "comet", &mut std::io::stdout());
    Ok(())
}

fn manual(path: &[String]) -> anyhow::Result<()> {
    let mut tree = tree();
    tree.build();
    let mut command = &tree;
    for name in path {
        command = command.find_subcommand(name).with_context(|| format!("man {}: no such command", path.join(" ")))?;
    }
    Ok(clap_mangen::Man::new(command.clone()).render(&mut std::io::stdout())?)
}
