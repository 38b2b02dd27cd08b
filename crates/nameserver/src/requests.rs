//! A request → its answer: one arm a request code, one function a request that needs more than a line.
//! Java: `DefaultRequestProcessor`, `ClientRequestProcessor`; the remarks are theirs.

mod broker;
mod topic;
mod config;

use std::sync::Arc;

use cometmq_base::Clock;
use cometmq_net::ConnId;
use cometmq_wire::{Frame, RequestCode, ResponseCode, json};

use crate::answer::{Answer, Reject};
use crate::kv::KvConfig;
use crate::routes::{Routes, Unit};
use crate::settings::LiveSettings;

/// What requests work on; shared by the shard, the expiry task and in-process callers.
pub(crate) struct State {
    pub(crate) routes: Arc<Routes>,
    pub(crate) kv: KvConfig,
    pub(crate) settings: Arc<LiveSettings>,
    pub(crate) clock: Clock,
    pub(crate) started_ms: i64,
}

type Store = Box<dyn FnOnce(&State) -> Result<Answer, Reject> + Send>;

/// How a request goes on.
pub(crate) enum Step {
    Answer(Answer),
    /// Something to store first, on the thread that may wait for the disk.
    Store(Store),
}

pub(crate) fn answer(state: &State, conn: ConnId, frame: &Frame<'_>) -> Result<Step, Reject> {
    let ext = &frame.head.ext;
    let answer = match RequestCode(frame.head.code) {
        RequestCode::GET_ROUTEINFO_BY_TOPIC => topic::route(state, frame)?,
        RequestCode::REGISTER_BROKER => broker::register(state, conn, frame)?,
        RequestCode::UNREGISTER_BROKER => broker::unregister(state, ext)?,
        RequestCode::BROKER_HEARTBEAT => broker::heartbeat(state, ext)?,
        RequestCode::QUERY_DATA_VERSION => broker::data_version(state, frame)?,
        RequestCode::GET_BROKER_MEMBER_GROUP => broker::members(state, ext)?,
        RequestCode::GET_BROKER_CLUSTER_INFO => json_answer(&state.routes.cluster_info()),
        RequestCode::WIPE_WRITE_PERM_OF_BROKER => broker::wipe_write_perm(state, ext)?,
        RequestCode::ADD_WRITE_PERM_OF_BROKER => broker::add_write_perm(state, ext)?,
        RequestCode::REGISTER_TOPIC_IN_NAMESRV => topic::register(state, frame)?,
        RequestCode::DELETE_TOPIC_IN_NAMESRV => topic::delete(state, ext)?,
        RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER => topic::all(state)?,
        RequestCode::GET_TOPICS_BY_CLUSTER => topic::of_cluster(state, ext)?,
        RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_NS => json_answer(&state.routes.system_topics()),
        RequestCode::GET_UNIT_TOPIC_LIST => topic::of_units(state, Unit::Topics)?,
        RequestCode::GET_HAS_UNIT_SUB_TOPIC_LIST => topic::of_units(state, Unit::Subscribed)?,
        RequestCode::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST => topic::of_units(state, Unit::SubscribedFromOutside)?,
        RequestCode::PUT_KV_CONFIG => return config::put_kv(ext),
        RequestCode::DELETE_KV_CONFIG => return config::delete_kv(ext),
        RequestCode::GET_KV_CONFIG => config::kv(state, ext)?,
        RequestCode::GET_KVLIST_BY_NAMESPACE => config::kv_list(state, ext)?,
        RequestCode::UPDATE_NAMESRV_CONFIG => return config::update(frame),
        RequestCode::GET_NAMESRV_CONFIG => Answer::body(state.settings.to_properties().into_bytes()),
        other => {
            let remark = format!(" request type {} not supported", other.0);
            return Err(Reject::new(ResponseCode::REQUEST_CODE_NOT_SUPPORTED, remark));
        }
    };
    Ok(Step::Answer(answer))
}

fn json_answer<T: serde::Serialize>(body: &T) -> Answer {
    Answer::body(json::to_fastjson(body))
}
