//! The client: connections, route cache, heartbeats. One background task refreshes and beats; it ends with
//! [`Client::shutdown`], or when the last handle is dropped. Java: `MQClientInstance`.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_net::Remotes;
use cometmq_wire::frame::Builder;
use cometmq_wire::message_id::UniqueIds;
use cometmq_wire::{Frame, RequestCode, ResponseCode, headers, json};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::call::{Call, Target};
use crate::groups::Groups;
use crate::name_servers::NameServers;
use crate::routes::Routes;
use crate::{ClientOptions, Error};

/// Refreshes that failed sends ask for come at most this often.
const REFRESH_GAP: Duration = Duration::from_secs(1);
/// How long one broker may take to hear that we leave.
const GOODBYE: Duration = Duration::from_secs(1);

/// A member of a cluster; cheap to clone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    id: String,
    options: ClientOptions,
    clock: Clock,
    ids: UniqueIds,
    remotes: Remotes,
    name_servers: NameServers,
    routes: Routes,
    groups: Arc<Groups>,
    /// Asks for a refresh of all routes.
    stale: Arc<Notify>,
    stop: CancellationToken,
    /// The background task and those of the consumers.
    tasks: Mutex<JoinSet<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Client {
    /// Opens no connection yet: a name server is first asked when a topic is used.
    pub async fn start(options: ClientOptions) -> Result<Self, Error> {
        options.check()?;
        let clock = Clock::System;
        let ip = match options.ip {
            Some(ip) => ip,
            None => own_address(options.namesrv.first().map_or("", String::as_str)).await,
        };
        let (pid, now_ms) = (std::process::id(), clock.now_ms());
        let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_nanos());
        let instance = options.instance.clone().unwrap_or_else(|| format!("{pid}#{nanos}"));
        let groups = Arc::new(Groups::default());
        let inner = Arc::new(Inner {
            id: format!("{ip}@{instance}"),
            // Low bits of the time tell the clients of a process apart.
            ids: UniqueIds::new(ip, pid, (nanos >> 8) as u32),
            remotes: Remotes::new(serve_brokers(groups.clone())),
            name_servers: NameServers::new(options.namesrv.clone(), now_ms.unsigned_abs() as usize),
            options,
            clock,
            routes: Routes::default(),
            groups,
            stale: Arc::default(),
            stop: CancellationToken::new(),
            tasks: Mutex::default(),
        });
        let client = Self { inner };
        let (weak, stop) = (Arc::downgrade(&client.inner), client.inner.stop.clone());
        client.spawn(async move {
            let _ = stop.run_until_cancelled(background(weak)).await;
        });
        Ok(client)
    }

    /// `ip@instance`: how brokers and other members of a group know this client.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    pub fn options(&self) -> &ClientOptions {
        &self.inner.options
    }

    /// Ends the consumers (their offsets are stored), leaves the groups and closes all connections, within the
    /// `shutdown_timeout` of the options.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.tasks());
        let goodbye = async {
            while tasks.join_next().await.is_some() {}
            for group in self.inner.groups.producers() {
                self.leave(&group, true).await;
            }
        };
        if tokio::time::timeout(self.inner.options.shutdown_timeout, goodbye).await.is_err() {
            tracing::warn!(client = self.id(), "shutdown did not end in time");
        }
        self.inner.remotes.shutdown();
    }

    pub(crate) fn remotes(&self) -> &Remotes {
        &self.inner.remotes
    }

    pub(crate) fn name_servers(&self) -> &NameServers {
        &self.inner.name_servers
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.inner.routes
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.inner.groups
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.inner.clock.now_ms()
    }

    pub(crate) fn unique_id(&self) -> String {
        self.inner.ids.next(self.now_ms())
    }

    /// Ends when the client is shut down.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.inner.stop.child_token()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.inner.stop.is_cancelled()
    }

    /// The routes look wrong: refresh them soon.
    pub(crate) fn routes_are_stale(&self) {
        self.inner.stale.notify_one();
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task that [`Client::shutdown`] waits for.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Addresses of the brokers of all known routes; of masters only on request.
    fn broker_addrs(&self, masters_only: bool) -> BTreeSet<String> {
        let routes = self.inner.routes.all();
        let brokers = routes.iter().flat_map(|(_, r)| &r.data().broker_datas);
        let addrs = brokers.flat_map(|b| &b.broker_addrs).filter(|(id, _)| !masters_only || **id == 0);
        addrs.map(|(_, addr)| addr.clone()).collect()
    }

    /// HEART_BEAT (34) to every broker of a known route.
    pub(crate) async fn heartbeat(&self) {
        let Some(beat) = self.inner.groups.heartbeat(self.id()) else { return };
        let body = Arc::new(json::to_fastjson(&beat));
        let limit = self.inner.options.request_timeout;
        let mut calls = JoinSet::new();
        for addr in self.broker_addrs(beat.consumer_data_set.is_empty()) {
            let (client, body) = (self.clone(), body.clone());
            calls.spawn(async move {
                let call = Call { addr: &addr, code: RequestCode::HEART_BEAT, target: Target::Group(client.id()) };
                if let Err(error) = call.ok(&client, |_| {}, &body, limit).await {
                    tracing::warn!(%error, "heartbeat failed");
                }
            });
        }
        while calls.join_next().await.is_some() {}
    }

    /// UNREGISTER_CLIENT (35) to every broker of a known route.
    pub(crate) async fn leave(&self, group: &str, is_producer: bool) {
        let mut calls = JoinSet::new();
        for addr in self.broker_addrs(false) {
            let (client, group) = (self.clone(), group.to_string());
            calls.spawn(async move {
                let name = |wanted: bool| wanted.then(|| group.as_str().into());
                let header = headers::UnregisterClient::new(client.id().into(), name(is_producer), name(!is_producer));
                let call = Call { addr: &addr, code: RequestCode::UNREGISTER_CLIENT, target: Target::Group(&group) };
                if let Err(error) = call.ok(&client, |w| header.write(w), &[], GOODBYE).await {
                    tracing::debug!(%error, "cannot take leave of a broker");
                }
            });
        }
        while calls.join_next().await.is_some() {}
    }
}

/// Refreshes routes and sends heartbeats until the client is gone.
async fn background(client: Weak<Inner>) {
    let alive = || client.upgrade().map(|inner| Client { inner });
    // No handle is kept while this task waits: dropping the last one ends it.
    let Some(first) = alive() else { return };
    let ClientOptions { heartbeat_interval, route_interval, .. } = first.inner.options;
    let stale = first.inner.stale.clone();
    drop(first);
    let timer = |period| {
        let mut timer = tokio::time::interval_at(Instant::now() + period, period);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        timer
    };
    let (mut beats, mut refreshes) = (timer(heartbeat_interval), timer(route_interval));
    loop {
        tokio::select! {
            _ = beats.tick() => {
                let Some(client) = alive() else { return };
                client.heartbeat().await;
                let keep = client.broker_addrs(false);
                client.inner.remotes.retain(|addr| {
                    keep.contains(addr) || client.inner.name_servers.addrs().iter().any(|n| n == addr)
                });
            }
            _ = refreshes.tick() => {
                let Some(client) = alive() else { return };
                client.refresh_routes().await;
            }
            () = stale.notified() => {
                let Some(client) = alive() else { return };
                client.refresh_routes().await;
                drop(client);
                tokio::time::sleep(REFRESH_GAP).await;
            }
        }
    }
}

/// Answers what brokers ask of a client.
fn serve_brokers(groups: Arc<Groups>) -> Arc<cometmq_net::remote::Handler> {
    Arc::new(move |addr, frame: Frame<'_>| {
        let code = RequestCode(frame.head.code);
        if code == RequestCode::NOTIFY_CONSUMER_IDS_CHANGED {
            match headers::ConsumerGroup::decode(&frame.head.ext) {
                Ok(header) => groups.wake(&header.consumer_group),
                Err(error) => tracing::warn!(addr, %error, "a notification of a broker does not decode"),
            }
            return None;
        }
        tracing::debug!(addr, %code, "a request of a broker that this client does not serve");
        let (mut out, remark) = (Vec::new(), format!(" request type {} not supported", code.0));
        let refused = ResponseCode::REQUEST_CODE_NOT_SUPPORTED;
        Builder::response(&mut out, frame.head.kind, refused, frame.head.opaque, Some(&remark)).finish();
        Some(out)
    })
}

/// The local address that packets to `peer` leave from. Nothing is sent.
async fn own_address(peer: &str) -> IpAddr {
    let local = async {
        let addr = tokio::net::lookup_host(peer).await.ok()?.next()?;
        let any: IpAddr =
            if addr.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).await.ok()?;
        socket.connect(addr).await.ok()?;
        socket.local_addr().ok().map(|a| a.ip())
    };
    let found = tokio::time::timeout(Duration::from_secs(3), local).await.ok().flatten();
    found.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
