//! Topics: GET_ROUTEINFO_BY_TOPIC (105), REGISTER_TOPIC_IN_NAMESRV (217), DELETE_TOPIC_IN_NAMESRV (216) and the topic lists
//! (206, 224, 311 to 313).

use std::time::Duration;

use cometmq_wire::body::TopicRouteData;
use cometmq_wire::header::ExtFields;
use cometmq_wire::headers::{Cluster, DeleteTopicInNameServer, Topic};
use cometmq_wire::{Frame, ResponseCode, json, version};

use super::broker::ZONE_NAME;
use super::{State, json_answer};
use crate::answer::{Answer, Reject};
use crate::kv::ORDER_TOPIC_CONFIG;
use crate::routes::{NAME_BYTES_MAX, Unit, only_zone};

const ZONE_MODE: &str = "__ZONE_MODE";
/// Java: `FAQUrl.suggestTodo`.
const SEE_FAQ: &str = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

pub(super) fn route(state: &State, frame: &Frame<'_>) -> Result<Answer, Reject> {
    let ext = &frame.head.ext;
    let header = Topic::decode(ext)?;
    let settings = state.settings.now();
    let up = u64::try_from(state.clock.now_ms() - state.started_ms).unwrap_or(0);
    if Duration::from_millis(up) < settings.wait_for_brokers {
        return Err(Reject::system_error("name server not ready"));
    }
    if header.topic.len() > NAME_BYTES_MAX {
        // The name is not repeated: it may be megabytes long.
        let remark = format!("the topic name is longer than {NAME_BYTES_MAX} bytes");
        return Err(Reject::new(ResponseCode::INVALID_PARAMETER, remark));
    }
    let mut route = state.routes.route(&header.topic).ok_or_else(|| {
        let remark = format!("No topic route info in name server for the topic: {}{SEE_FAQ}", header.topic);
        Reject::new(ResponseCode::TOPIC_NOT_EXIST, remark)
    })?;
    if settings.order_message {
        route.order_topic_conf = state.kv.value(ORDER_TOPIC_CONFIG, &header.topic);
    }
    if ext.find(ZONE_MODE).is_some_and(|mode| mode.eq_ignore_ascii_case("true"))
        && let Some(zone) = ext.find(ZONE_NAME).filter(|zone| !zone.trim().is_empty())
    {
        only_zone(&mut route, &zone);
    }
    let standard = frame.head.version >= version::V4_9_4 || header.accept_standard_json_only == Some(true);
    Ok(Answer::body(route.to_json(standard)))
}

pub(super) fn register(state: &State, frame: &Frame<'_>) -> Result<Answer, Reject> {
    let header = Topic::decode(&frame.head.ext)?;
    if !frame.body.is_empty() {
        let route: TopicRouteData = json::from_slice(frame.body)?;
        if !route.queue_datas.is_empty() {
            state.routes.register_topic(&header.topic, route.queue_datas)?;
        }
    }
    Ok(Answer::default())
}

pub(super) fn delete(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let header = DeleteTopicInNameServer::decode(ext)?;
    state.routes.delete_topic(&header.topic, header.cluster_name.as_deref());
    Ok(Answer::default())
}

pub(super) fn all(state: &State) -> Result<Answer, Reject> {
    enabled(state.settings.now().all_topic_list)?;
    Ok(json_answer(&state.routes.topics()))
}

pub(super) fn of_cluster(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    enabled(state.settings.now().topic_list)?;
    let header = Cluster::decode(ext)?;
    Ok(json_answer(&state.routes.topics_of_cluster(&header.cluster)))
}

pub(super) fn of_units(state: &State, which: Unit) -> Result<Answer, Reject> {
    enabled(state.settings.now().topic_list)?;
    Ok(json_answer(&state.routes.unit_topics(which)))
}

fn enabled(setting: bool) -> Result<(), Reject> {
    if setting { Ok(()) } else { Err(Reject::system_error("disable")) }
}
