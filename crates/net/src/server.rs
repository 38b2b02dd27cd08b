//! Listeners and shards of one server. Each accepted connection goes to the shard with the fewest connections.
//! Java: `NettyRemotingServer`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::memory::Memory;
use crate::shard::{self, Envelope, Mailbox, Service, Shard, ShardId};
use crate::stats::ShardStats;
use crate::{Error, stats};

/// Pending connections that the kernel keeps for us.
const BACKLOG: i32 = 1024;

/// Where to listen. `role` is told to the service with each connection (main port, fast port).
#[derive(Debug, Clone, Copy)]
pub struct Listen {
    pub addr: SocketAddr,
    pub role: u8,
}

/// A running server. Dropping it without [`Server::stop`] leaves its threads running until the process ends.
pub struct Server {
    shards: Vec<Shard>,
    local: Vec<SocketAddr>,
    memory: Arc<Memory>,
    stop: CancellationToken,
}

impl Server {
    /// Binds all of `listen`, starts `shard_count` threads and accepts. `make` runs on each shard's thread; it gets the
    /// mailboxes of all shards, its own included. A connection without a whole frame in either direction for `idle_max`
    /// is closed. Must be called inside a tokio runtime, which runs the accept loops.
    pub fn start<S, F>(
        name: &str,
        listen: &[Listen],
        shard_count: usize,
        idle_max: Duration,
        make: F,
    ) -> Result<Self, Error>
    where
        S: Service,
        F: Fn(ShardId, &[Mailbox]) -> S + Send + Sync + 'static,
    {
        let listeners = listen.iter().map(bind).collect::<Result<Vec<_>, Error>>()?;
        let local = listeners.iter().map(|(l, _)| l.local_addr()).collect::<Result<Vec<_>, _>>();
        let local = local.map_err(|source| Error::Listen { addr: format!("{listen:?}"), source })?;
        let memory = Arc::default();
        let shards = shard::start(name, shard_count, idle_max, &memory, Arc::new(make))?;
        let stop = CancellationToken::new();
        for (listener, role) in listeners {
            let doors: Vec<_> = shards.iter().map(|s| (s.mailbox.clone(), s.stats.clone())).collect();
            tokio::spawn(accept(listener, role, doors, stop.clone()));
        }
        Ok(Self { shards, local, memory, stop })
    }

    /// The address of each listener, in the order given; a port 0 is resolved.
    pub fn local(&self) -> &[SocketAddr] {
        &self.local
    }

    pub fn mailboxes(&self) -> Vec<Mailbox> {
        self.shards.iter().map(|s| s.mailbox.clone()).collect()
    }

    pub fn stats(&self) -> Vec<Arc<ShardStats>> {
        self.shards.iter().map(|s| s.stats.clone()).collect()
    }

    /// What all connections hold together.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Stops accepting, lets connections write what is pending (at most `grace`), closes them and joins the threads. Blocks.
    pub fn stop(self, grace: Duration) {
        self.stop.cancel();
        for shard in &self.shards {
            shard.mailbox.stop(grace);
        }
        for shard in self.shards {
            shard.join();
        }
    }

    /// Stops accepting new connections; those that exist go on.
    pub fn stop_accepting(&self) {
        self.stop.cancel();
    }
}

fn bind(listen: &Listen) -> Result<(tokio::net::TcpListener, u8), Error> {
    let open = || -> std::io::Result<tokio::net::TcpListener> {
        let domain = socket2::Domain::for_address(listen.addr);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
        // A restart must not wait for old connections in TIME_WAIT; a second live process is still refused.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&listen.addr.into())?;
        socket.listen(BACKLOG)?;
        tokio::net::TcpListener::from_std(socket.into())
    };
    let listener = open().map_err(|source| Error::Listen { addr: listen.addr.to_string(), source })?;
    Ok((listener, listen.role))
}

async fn accept(
    listener: tokio::net::TcpListener,
    role: u8,
    doors: Vec<(Mailbox, Arc<ShardStats>)>,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok(pair) => pair,
            Err(error) => {
                // Out of descriptors, most likely: wait for some to come back instead of spinning.
                tracing::warn!(%error, "accept failed; trying again in 100 ms");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some((door, stats)) = doors.iter().min_by_key(|(_, s)| s.connections.load(Relaxed)) else { return };
        if let Ok(stream) = stream.into_std() {
            // Counted here, so that a burst spreads before the shards have woken up.
            stats.connections.fetch_add(1, Relaxed);
            stats::add(&stats.accepted, 1);
            if !door.send(Envelope::Accept { stream, peer, role }).await {
                return;
            }
        }
    }
}
