//! Brokers: REGISTER_BROKER (103), UNREGISTER_BROKER (104), BROKER_HEARTBEAT (904), QUERY_DATA_VERSION (322),
//! GET_BROKER_MEMBER_GROUP (901), WIPE_WRITE_PERM_OF_BROKER (205), ADD_WRITE_PERM_OF_BROKER (327).

use cometmq_net::ConnId;
use cometmq_wire::body::{DataVersion, GetBrokerMemberGroupResponseBody, RegisterBrokerBody, register};
use cometmq_wire::header::ExtFields;
use cometmq_wire::headers::{
    AddWritePermAnswer, BrokerHeartbeat, BrokerIdentity, BrokerInCluster, BrokerName, DataVersionAnswer,
    RegisterBroker, RegisterBrokerAnswer, WipeWritePermAnswer,
};
use cometmq_wire::{Frame, ResponseCode, json};

use super::{State, json_answer};
use crate::answer::{Answer, Reject};
use crate::kv::ORDER_TOPIC_CONFIG;
use crate::routes::{Registered, Registration, RegistrationRefused};

pub(super) const ZONE_NAME: &str = "__ZONE_NAME";

/// The answer carries the ordered topics, which a broker keeps for its clients.
pub(super) fn register(state: &State, conn: ConnId, frame: &Frame<'_>) -> Result<Answer, Reject> {
    let header = RegisterBroker::decode(&frame.head.ext)?;
    let crc = header.body_crc32.unwrap_or(0);
    if crc != 0 && crc != register::crc32(frame.body) {
        return Err(Reject::system_error("crc32 not match"));
    }
    let body = match frame.body {
        [] => RegisterBrokerBody::default(),
        body => RegisterBrokerBody::decode(body, header.compressed.unwrap_or(false), frame.head.version)?,
    };
    let registered = state.routes.register(Registration {
        cluster: header.cluster_name.into_owned(),
        broker_name: header.broker_name.into_owned(),
        broker_addr: header.broker_addr.into_owned(),
        broker_id: header.broker_id,
        ha_server_addr: header.ha_server_addr.into_owned(),
        zone_name: frame.head.ext.find(ZONE_NAME).map(|zone| zone.into_owned()),
        heartbeat_timeout_ms: header.heartbeat_timeout_millis,
        enable_acting_master: header.enable_acting_master,
        body,
        connection: Some(conn),
    })?;
    let order_topics = state.settings.now().order_topics_to_broker.then(|| state.kv.namespace(ORDER_TOPIC_CONFIG));
    let order_topics = order_topics.flatten().map(|table| json::to_fastjson(&table));
    let Registered { ha_server_addr, master_addr } = registered;
    let fields = RegisterBrokerAnswer::new(ha_server_addr.map(Into::into), master_addr.map(Into::into));
    Ok(Answer::fields(move |out| fields.write(out)).with_body(order_topics))
}

impl From<RegistrationRefused> for Reject {
    fn from(refused: RegistrationRefused) -> Self {
        let code = match refused {
            RegistrationRefused::NotRegisteredYet | RegistrationRefused::Full { .. } => ResponseCode::SYSTEM_ERROR,
            RegistrationRefused::Name { .. } => ResponseCode::INVALID_PARAMETER,
        };
        Self::new(code, refused.to_string())
    }
}

pub(super) fn unregister(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let header = BrokerIdentity::decode(ext)?;
    state.routes.unregister(&header.cluster_name, &header.broker_addr, &header.broker_name);
    Ok(Answer::default())
}

pub(super) fn heartbeat(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let header = BrokerHeartbeat::decode(ext)?;
    state.routes.heartbeat(&header.cluster_name, &header.broker_addr);
    Ok(Answer::default())
}

/// "Must I register again?"
pub(super) fn data_version(state: &State, frame: &Frame<'_>) -> Result<Answer, Reject> {
    let header = BrokerIdentity::decode(&frame.head.ext)?;
    let theirs: Option<DataVersion> = if frame.body.is_empty() { None } else { Some(json::from_slice(frame.body)?) };
    let ours = state.routes.data_version(&header.cluster_name, &header.broker_addr);
    let fields = DataVersionAnswer::new(ours.is_none() || ours != theirs);
    Ok(Answer::fields(move |out| fields.write(out)).with_body(ours.map(|version| json::to_fastjson(&version))))
}

pub(super) fn members(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let header = BrokerInCluster::decode(ext)?;
    let group = state.routes.members(&header.cluster_name, &header.broker_name);
    Ok(json_answer(&GetBrokerMemberGroupResponseBody { broker_member_group: Some(group) }))
}

pub(super) fn wipe_write_perm(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let fields = WipeWritePermAnswer::new(change_write_perm(state, ext, false)?);
    Ok(Answer::fields(move |out| fields.write(out)))
}

pub(super) fn add_write_perm(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let fields = AddWritePermAnswer::new(change_write_perm(state, ext, true)?);
    Ok(Answer::fields(move |out| fields.write(out)))
}

fn change_write_perm(state: &State, ext: &ExtFields<'_>, writable: bool) -> Result<i32, Reject> {
    let header = BrokerName::decode(ext)?;
    let topics = state.routes.change_write_perm(&header.broker_name, writable);
    tracing::info!(broker = %header.broker_name, writable, topics, "write permission of a broker changed");
    Ok(i32::try_from(topics).unwrap_or(i32::MAX))
}
