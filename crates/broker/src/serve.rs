//! A running broker: its listeners, shards and background tasks, from open to a clean stop.
//! Java: `BrokerController`, `BrokerStartup`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_base::config::Config;
use cometmq_net::{Listen, Mailbox, Server};
use cometmq_store::disk::Disk;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::broker::{self, Broker, OpenError};
use crate::delay::{self, Delivery};
use crate::register::Registration;
use crate::shard::{FAST_PORT, MAIN_PORT, News, ShardService, wakers};

const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// How long connections may take to write their last answers when the broker stops.
const STOP_GRACE: Duration = Duration::from_secs(2);

pub struct Options {
    /// Keys as in Java's `broker.conf`; `brokerIP1` is the advertised host.
    pub config: Config,
    /// Where to listen; the port is `listenPort`, 0 picks one and opens no fast port.
    pub host: IpAddr,
    pub shards: usize,
    pub disk: Arc<dyn Disk>,
    pub clock: Clock,
}

pub struct BrokerServer {
    broker: Arc<Broker>,
    server: Server,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    delivery: Delivery,
}

impl BrokerServer {
    /// Opens the store, listens, and starts registering. Must be called inside a tokio runtime.
    pub async fn start(options: Options) -> Result<Self, OpenError> {
        let Options { config, host, shards, disk, clock } = options;
        let idle_max = match config.int("serverChannelMaxIdleTimeSeconds") {
            seconds @ 1.. => Duration::from_secs(seconds.unsigned_abs().into()),
            // To Java's server that is no limit.
            _ => Duration::MAX,
        };
        let port = u16::try_from(config.int("listenPort")).map_err(|e| OpenError::config(&config, "listenPort", e))?;
        // The port is needed before the store is opened (it is part of every record), the handlers only after it.
        let reserved = std::net::TcpListener::bind(SocketAddr::new(host, port))
            .map_err(|source| cometmq_net::Error::Listen { addr: SocketAddr::new(host, port).to_string(), source })?;
        let main = reserved.local_addr()?;
        let address = broker::resolve(config.str("brokerIP1"), main.port())
            .map_err(|e| OpenError::config(&config, "brokerIP1", e))?;
        let opened = tokio::task::spawn_blocking(move || Broker::open(config, address, disk, clock)).await;
        let broker = opened.map_err(|e| OpenError::Files(std::io::Error::other(e)))??;
        drop(reserved);

        let mut listen = vec![Listen { addr: main, role: MAIN_PORT }];
        if port > 2 {
            listen.push(Listen { addr: SocketAddr::new(host, port - 2), role: FAST_PORT });
        }
        let news: Vec<Arc<News>> = (0..shards).map(|_| Arc::default()).collect();
        let (for_shards, shard_news) = (broker.clone(), news.clone());
        let server = Server::start("broker", &listen, shards, idle_max, move |id, mailboxes: &[Mailbox]| {
            let _ = for_shards.mailboxes.set(mailboxes.to_vec());
            ShardService::new(for_shards.clone(), id.0, shard_news[id.0].clone())
        })?;
        let _ = broker.shard_stats.set(server.stats());
        let _ = broker.memory.set(server.memory().clone());
        let (delay_wake, woken) = delay::wake();
        let stop_wake = delay_wake.clone();
        let mut all = wakers(&server.mailboxes(), &news);
        all.push(Arc::new(delay_wake));
        broker.store.set_wakers(all);
        let delivery = Delivery::start(broker.clone(), shards, stop_wake, woken)?;
        let stop = CancellationToken::new();
        let tasks = vec![
            tokio::spawn(Registration::new(broker.clone()).run(stop.clone())),
            tokio::spawn(save_offsets(broker.clone(), stop.clone())),
            tokio::spawn(housekeeping(broker.clone(), stop.clone())),
        ];
        Ok(Self { broker, server, stop, tasks, delivery })
    }

    /// The address listened on.
    pub fn local(&self) -> SocketAddr {
        self.server.local()[0]
    }

    /// The address handed out by routes.
    pub fn address(&self) -> SocketAddr {
        self.broker.address
    }

    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Unregisters, answers what is pending, saves and flushes everything.
    pub async fn stop(self) -> Result<(), OpenError> {
        self.server.stop_accepting();
        self.stop.cancel();
        for task in self.tasks {
            let _ = tokio::time::timeout(Duration::from_secs(5), task).await;
        }
        let (broker, server, delivery) = (self.broker, self.server, self.delivery);
        let closing = tokio::task::spawn_blocking(move || -> Result<(), OpenError> {
            server.stop(STOP_GRACE);
            delivery.stop();
            let offsets = broker.offsets.flush(broker.clock.now_ms());
            broker.store.close()?;
            Ok(offsets?)
        });
        closing.await.map_err(|e| OpenError::Files(std::io::Error::other(e)))?
    }
}

/// Writes consumer offsets each `flushConsumerOffsetInterval`, and earlier when the journal has grown large.
async fn save_offsets(broker: Arc<Broker>, stop: CancellationToken) {
    loop {
        let interval = broker.settings.load().flush_consumer_offset_interval.max(Duration::from_millis(100));
        let due = tokio::time::Instant::now() + interval;
        while tokio::time::Instant::now() < due && !broker.offsets.is_large() {
            let wait = due.min(tokio::time::Instant::now() + Duration::from_secs(1));
            tokio::select! {
                () = tokio::time::sleep_until(wait) => {}
                () = stop.cancelled() => return,
            }
        }
        let saving = broker.clone();
        let saved = tokio::task::spawn_blocking(move || saving.offsets.flush(saving.clock.now_ms())).await;
        if let Ok(Err(error)) = saved {
            tracing::error!(%error, "cannot write consumerOffset.json; commits are kept in the journal");
        }
    }
}

async fn housekeeping(broker: Arc<Broker>, stop: CancellationToken) {
    loop {
        let now = broker.clock.now_ms();
        broker.rates.sample(now, broker.totals());
        broker.consumed.sample(std::time::Instant::now());
        broker.mornings.sample(now, broker.totals());
        broker.queue_locks.expire(now);
        let changed = broker.clients.expire(now);
        broker.notify_changed(changed);
        tokio::select! {
            () = tokio::time::sleep(HOUSEKEEPING) => {}
            () = stop.cancelled() => return,
        }
    }
}
