//! The broker tells every name server its address and topics: at start, on each change of topics, and each 10–60 s.
//! Java: `BrokerOuterAPI.registerBrokerAll`, `BrokerController.start`.

use std::sync::Arc;
use std::time::Duration;

use cometmq_net::{Outgoing, Remotes};
use cometmq_wire::body::register::crc32;
use cometmq_wire::body::{RegisterBrokerBody, TopicConfigAndMappingTable};
use cometmq_wire::flags::perm;
use cometmq_wire::headers::{BrokerIdentity, RegisterBroker};
use cometmq_wire::{RequestCode, ResponseCode};
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;

const TIMEOUT: Duration = Duration::from_secs(5);
/// After a failure, and at the start while no name server has answered yet.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) struct Registration {
    broker: Arc<Broker>,
    remotes: Remotes,
    name_servers: Vec<String>,
}

impl Registration {
    pub(crate) fn new(broker: Arc<Broker>) -> Self {
        let list = broker.config.str("namesrvAddr").split([';', ',']).map(str::trim).filter(|a| !a.is_empty());
        let name_servers = list.map(str::to_string).collect();
        Self { broker, remotes: Remotes::default(), name_servers }
    }

    /// Registers until stopped, then unregisters.
    pub(crate) async fn run(self, stop: CancellationToken) {
        if self.name_servers.is_empty() {
            tracing::warn!("namesrvAddr is empty: this broker is in no route");
        }
        let mut failed = vec![false; self.name_servers.len()];
        loop {
            self.register_all(&mut failed).await;
            let period = self.broker.settings.load().register_period;
            let wait = if failed.contains(&true) { RETRY } else { period };
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.broker.register.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.unregister_all().await;
        self.remotes.shutdown();
    }

    async fn register_all(&self, failed: &mut [bool]) {
        let body = self.body();
        let crc = crc32(&body);
        for (name_server, failed) in self.name_servers.iter().zip(failed) {
            let result = self.register(name_server, &body, crc).await;
            match (&result, *failed) {
                (Err(error), false) => tracing::error!(name_server, error, "cannot register; trying again each second"),
                (Ok(()), true) => tracing::info!(name_server, "registered again"),
                _ => {}
            }
            *failed = result.is_err();
        }
    }

    async fn register(&self, name_server: &str, body: &[u8], crc: i32) -> Result<(), String> {
        let broker = &self.broker;
        let address = broker.address.to_string();
        let ha = format!("{}:{}", broker.address.ip(), broker.config.int("haListenPort"));
        let header = RegisterBroker::new(
            broker.name.as_str().into(),
            address.as_str().into(),
            broker.cluster.as_str().into(),
            ha.into(),
            broker.config.long("brokerId"),
            // The name server's own limit (120 s): ours is for brokers that send the short heartbeat (904).
            None,
            Some(false),
            Some(false),
            Some(crc),
        );
        let request = Outgoing::new(RequestCode::REGISTER_BROKER, |w| header.write(w)).body(body);
        let answer = self.remotes.call(name_server, request, TIMEOUT).await.map_err(|e| e.to_string())?;
        match answer.code() {
            ResponseCode::SUCCESS => Ok(()),
            code => Err(format!("{code}: {}", answer.frame().head.remark().unwrap_or_default())),
        }
    }

    /// A broker without permission registers its topics without it, as Java does.
    fn body(&self) -> Vec<u8> {
        let snapshot = self.broker.topics.snapshot();
        let permission = self.broker.settings.load().broker_permission;
        let mut topics = snapshot.topic_config_table;
        if !perm::is_writeable(permission) || !perm::is_readable(permission) {
            topics.values_mut().for_each(|t| t.perm &= permission | perm::INHERIT);
        }
        RegisterBrokerBody {
            filter_server_list: Vec::new(),
            topic_config_serialize_wrapper: TopicConfigAndMappingTable {
                data_version: snapshot.data_version,
                topic_config_table: topics,
                ..TopicConfigAndMappingTable::default()
            },
        }
        .encode(false)
    }

    async fn unregister_all(&self) {
        let broker = &self.broker;
        for name_server in &self.name_servers {
            let header = BrokerIdentity::new(
                broker.name.as_str().into(),
                broker.address.to_string().into(),
                broker.cluster.as_str().into(),
                broker.config.long("brokerId"),
            );
            let request = Outgoing::new(RequestCode::UNREGISTER_BROKER, |w| header.write(w));
            if let Err(error) = self.remotes.call(name_server, request, RETRY).await {
                tracing::warn!(name_server, %error, "cannot unregister; the name server will notice by itself");
            }
        }
    }
}
