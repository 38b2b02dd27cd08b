//! Tells the brokers of one name that another of them has the lowest id now: what a slave must hear to act as master, or to
//! stop. Only with `notifyMinBrokerIdChanged`. Java: `RouteInfoManager#notifyMinBrokerIdChanged`.

use std::collections::BTreeMap;
use std::time::Duration;

use cometmq_net::{Outgoing, Remotes};
use cometmq_wire::RequestCode;
use tokio::sync::mpsc;

/// Notices that wait to be sent; one more is dropped, with a line in the log.
pub(crate) const QUEUE_MAX: usize = 1024;
/// To connect to one broker.
const TIMEOUT: Duration = Duration::from_millis(300);

/// NOTIFY_MIN_BROKER_ID_CHANGE (905).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Addresses of the brokers to tell.
    pub(crate) to: Vec<String>,
    pub(crate) min_broker_id: i64,
    pub(crate) min_broker_addr: String,
    /// The one that has gone, if that is the reason.
    pub(crate) offline_broker_addr: Option<String>,
    /// Of the one that has come, if that is the reason.
    pub(crate) ha_broker_addr: Option<String>,
}

impl Notice {
    /// `addrs`: those of the name that are there, by id. When one came, it needs not be told, unless it is alone.
    pub(crate) fn new(addrs: &BTreeMap<i64, String>, offline: Option<&str>, ha: Option<&str>) -> Option<Self> {
        let (min_id, min_addr) = addrs.first_key_value()?;
        let all = offline.is_some() || addrs.len() == 1;
        Some(Self {
            to: addrs.iter().filter(|(id, _)| all || *id != min_id).map(|(_, addr)| addr.clone()).collect(),
            min_broker_id: *min_id,
            min_broker_addr: min_addr.clone(),
            offline_broker_addr: offline.map(str::to_owned),
            ha_broker_addr: ha.map(str::to_owned),
        })
    }
}

/// Sends what comes, in order; one connection a broker is kept, as brokers come and go rarely.
pub(crate) async fn send_forever(mut notices: mpsc::Receiver<Notice>) {
    let remotes = Remotes::default();
    while let Some(notice) = notices.recv().await {
        remotes.retain(|addr| notice.to.iter().any(|to| to == addr));
        tracing::info!(?notice, "the lowest broker id has changed");
        for addr in &notice.to {
            let sent = match tokio::time::timeout(TIMEOUT, remotes.to(addr)).await {
                Ok(Ok(remote)) => remote.oneway(request(&notice)).map_err(|e| e.to_string()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no connection within {TIMEOUT:?}")),
            };
            if let Err(error) = sent {
                tracing::warn!(addr, error, "a broker could not be told of the lowest broker id");
            }
        }
    }
}

fn request(notice: &Notice) -> Outgoing<'_> {
    Outgoing::new(RequestCode::NOTIFY_MIN_BROKER_ID_CHANGE, |ext| {
        ext.str("minBrokerId", &notice.min_broker_id.to_string());
        ext.str("minBrokerAddr", &notice.min_broker_addr);
        notice.offline_broker_addr.iter().for_each(|addr| ext.str("offlineBrokerAddr", addr));
        notice.ha_broker_addr.iter().for_each(|addr| ext.str("haBrokerAddr", addr));
    })
}
