//! The server roles: start, the ready line, wait for a signal, stop.
//!
//! Ready means: all ports listen, the store is recovered, and the embedded name server has the broker's route.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use cometmq_base::Clock;
use cometmq_base::config::{Config, Role};
use cometmq_broker::{BrokerServer, Options};
use cometmq_nameserver::NameServer;
use cometmq_store::disk::Real;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{BrokerArgs, BrokerFlags, Common, NamesrvArgs, ServeArgs};
use crate::{log, settings};

const ROUTE_WAIT: Duration = Duration::from_secs(10);
const STOP_GRACE: Duration = Duration::from_secs(2);

pub fn serve(args: ServeArgs) -> anyhow::Result<()> {
    log::start();
    for (flag, part, port) in
        [("--grpc-port", "gRPC proxy", args.grpc_port), ("--http-port", "web console", args.http_port)]
    {
        if port.is_some() {
            tracing::warn!("{flag}: the {part} does not exist in this version; the flag has no effect");
        }
    }
    let mut config = settings::configure(Role::Broker, &[Role::NameServer], &args.common)?;
    let namesrv = settings::configure(Role::NameServer, &[Role::Broker], &args.common)?;
    settings::finish_broker(&mut config, &args.broker, &args.common)?;
    if args.common.print_config {
        return print_config(&config);
    }
    runtime()?.block_on(async {
        let at = SocketAddr::new(args.common.host, args.namesrv_port);
        let name_server = start_name_server(namesrv, at, Path::new(config.str("storePathRootDir")))?;
        let local = SocketAddr::new(reachable(args.common.host), name_server.addr().port());
        let mut addresses = vec![local.to_string()];
        addresses.extend(config.str("namesrvAddr").split(';').filter(|a| !a.trim().is_empty()).map(str::to_string));
        config.set("namesrvAddr", &addresses.join(";"))?;
        let broker = start_broker(config, &args.common, &args.broker).await?;
        let name = broker.broker().name();
        if !name_server.routes().wait_for_broker(name, ROUTE_WAIT).await {
            bail!("the broker {name} did not register at the embedded name server {local} within {ROUTE_WAIT:?}");
        }
        let public = SocketAddr::new(broker.address().ip(), name_server.addr().port());
        ready_until_signal(&format!("namesrv={public} broker={}", broker.address())).await?;
        let stopped = broker.stop().await;
        tokio::task::spawn_blocking(move || name_server.stop(STOP_GRACE)).await?;
        stopped.context("stopping the broker")
    })
}

pub fn namesrv(args: NamesrvArgs) -> anyhow::Result<()> {
    log::start();
    let mut config = settings::configure(Role::NameServer, &[], &args.common)?;
    if let (Some(file), "") = (&args.common.config, config.str("configStorePath")) {
        // As in Java, changes by request go into the file that the configuration came from.
        config.set("configStorePath", &file.to_string_lossy())?;
    }
    if args.common.print_config {
        return print_config(&config);
    }
    let port = match args.namesrv_port {
        Some(port) => port,
        None => u16::try_from(config.int("listenPort")).context("listenPort")?,
    };
    let data = args.common.data.clone().unwrap_or_else(|| PathBuf::from("./comet-data"));
    runtime()?.block_on(async {
        let name_server = start_name_server(config, SocketAddr::new(args.common.host, port), &data)?;
        let local = SocketAddr::new(reachable(args.common.host), name_server.addr().port());
        ready_until_signal(&format!("namesrv={local}")).await?;
        tokio::task::spawn_blocking(move || name_server.stop(STOP_GRACE)).await?;
        Ok(())
    })
}

pub fn broker(args: BrokerArgs) -> anyhow::Result<()> {
    log::start();
    let mut config = settings::configure(Role::Broker, &[], &args.common)?;
    if let Some(addresses) = &args.namesrv {
        config.set("namesrvAddr", addresses)?;
    }
    settings::finish_broker(&mut config, &args.broker, &args.common)?;
    if args.common.print_config {
        return print_config(&config);
    }
    runtime()?.block_on(async {
        let broker = start_broker(config, &args.common, &args.broker).await?;
        ready_until_signal(&format!("broker={}", broker.address())).await?;
        broker.stop().await.context("stopping the broker")
    })
}

/// Everything that is not a shard: accept loops, registration, housekeeping.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(1).max_blocking_threads(8).enable_all().build()?)
}

fn start_name_server(config: Config, listen: SocketAddr, data: &Path) -> anyhow::Result<NameServer> {
    let configured = config.str("kvConfigPath");
    let kv = if configured.is_empty() { data.join("comet/namesrv/kvConfig.json") } else { PathBuf::from(configured) };
    let options = cometmq_nameserver::Options { listen, kv_config_path: kv, config, clock: Clock::System };
    NameServer::start(options).context("starting the name server")
}

async fn start_broker(config: Config, common: &Common, flags: &BrokerFlags) -> anyhow::Result<BrokerServer> {
    let options = Options {
        config,
        host: common.host,
        shards: settings::shards(flags),
        disk: Arc::new(Real),
        clock: Clock::System,
    };
    BrokerServer::start(options).await.context("starting the broker")
}

/// An address by which this process reaches a listener on `host`.
fn reachable(host: IpAddr) -> IpAddr {
    if host.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { host }
}

fn print_config(config: &Config) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(config.to_properties().as_bytes())?;
    Ok(())
}

/// Prints the ready line, and waits. Whoever reads the line may send the signal at once: it is listened for before.
async fn ready_until_signal(parts: &str) -> anyhow::Result<()> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "ready {parts}")?;
        out.flush()?;
    }
    let name = tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = int.recv() => "SIGINT",
    };
    tracing::info!(signal = name, "stopping");
    Ok(())
}
