//! The name servers: any of them will do. One is used until it fails, then the next; a call asks each at most once.
//! Java: `NettyRemotingClient.getAndCreateNameserverChannel`.

use std::sync::atomic::{AtomicUsize, Ordering};

use cometmq_wire::body::TopicRouteData;
use cometmq_wire::frame::OwnedFrame;
use cometmq_wire::header::ExtWriter;
use cometmq_wire::headers;
use cometmq_wire::{RequestCode, ResponseCode, json};

use crate::call::{Call, Target};
use crate::{Client, Error};

pub(crate) struct NameServers {
    addrs: Vec<String>,
    /// Index of the one in use.
    current: AtomicUsize,
}

impl NameServers {
    /// `seed` spreads the clients over the servers.
    pub(crate) fn new(addrs: Vec<String>, seed: usize) -> Self {
        let current = AtomicUsize::new(seed % addrs.len().max(1));
        Self { addrs, current }
    }

    pub(crate) fn addrs(&self) -> &[String] {
        &self.addrs
    }

    /// All servers, starting with the one in use.
    fn in_turn(&self) -> impl Iterator<Item = (usize, &str)> {
        let first = self.current.load(Ordering::Relaxed);
        (0..self.addrs.len()).map(move |i| {
            let at = (first + i) % self.addrs.len();
            (at, self.addrs[at].as_str())
        })
    }
}

impl Client {
    /// Asks one name server after the other until one answers; also returns which.
    pub(crate) async fn ask_name_server(
        &self,
        code: RequestCode,
        target: Target<'_>,
        ext: impl Fn(&mut ExtWriter<'_>) + Send + Sync,
    ) -> Result<(String, OwnedFrame), Error> {
        let servers = self.name_servers();
        let mut last = None;
        for (at, addr) in servers.in_turn() {
            let call = Call { addr, code, target };
            match call.send(self, &ext, &[], self.options().request_timeout).await {
                Ok(answer) => {
                    servers.current.store(at, Ordering::Relaxed);
                    return Ok((addr.to_string(), answer));
                }
                Err(error) => {
                    tracing::debug!(%error, "a name server does not answer");
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or(Error::ShutDown))
    }

    /// GET_ROUTEINFO_BY_TOPIC (105), past the cache.
    pub(crate) async fn fetch_route(&self, topic: &str) -> Result<TopicRouteData, Error> {
        let (code, target) = (RequestCode::GET_ROUTEINFO_BY_TOPIC, Target::Topic(topic));
        let header = headers::Topic::new(topic.into(), Some(true));
        let (addr, answer) = self.ask_name_server(code, target, |w| header.write(w)).await?;
        let call = Call { addr: &addr, code, target };
        match answer.code() {
            ResponseCode::SUCCESS => call.decoded(json::from_slice(answer.body())),
            ResponseCode::TOPIC_NOT_EXIST => {
                Err(Error::NoRoute { topic: topic.to_string(), asked: self.name_servers().addrs.join(";") })
            }
            _ => Err(call.refused(&answer)),
        }
    }
}
