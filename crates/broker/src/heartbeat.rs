//! Clients come and go: HEART_BEAT (34), UNREGISTER_CLIENT (35), CHECK_CLIENT_CONFIG (46); and what is told to the members
//! of a group when it changes, NOTIFY_CONSUMER_IDS_CHANGED (40). Java: `ClientManageProcessor`.

use std::rc::Rc;

use cometmq_wire::body::{CheckClientRequestBody, HeartbeatData};
use cometmq_wire::frame::{Builder, FLAG_ONEWAY};
use cometmq_wire::header::{Language, SerializeType};
use cometmq_wire::headers::{ConsumerGroup, UnregisterClient};
use cometmq_wire::{Frame, RequestCode, ResponseCode, json, names, version};

use crate::clients::{Member, Seen};
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};
use crate::subscription::Filter;

/// Groups, and subscriptions of one group, that one heartbeat may carry.
const GROUPS_MAX: usize = 10_000;

impl BrokerShard {
    pub(crate) fn heartbeat(
        self: &Rc<Self>,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let data: HeartbeatData = json::from_slice(frame.body)?;
        if data.client_id.is_empty() {
            return Err(Reject::invalid("the heartbeat has no clientID"));
        }
        if data.consumer_data_set.len() + data.producer_data_set.len() > GROUPS_MAX {
            return Err(Reject::invalid(format!("a heartbeat of more than {GROUPS_MAX} groups")));
        }
        if let Some(create) = self.create_groups_of(&data) {
            return Ok(create);
        }
        let member = Member {
            client_id: data.client_id.clone(),
            address: asker.conn.peer(),
            language: frame.head.language,
            version: frame.head.version,
            seen_ms: self.broker.clock.now_ms(),
        };
        let conn = asker.conn.id();
        let property_filter = self.broker.settings.load().enable_property_filter;
        let mut sub_change = data.heartbeat_fingerprint == 0;
        for consumer in &data.consumer_data_set {
            let Some(group) = self.broker.groups.find(&consumer.group_name) else { continue };
            if data.heartbeat_fingerprint != 0 {
                sub_change |= self.broker.clients.fingerprint_changed(&consumer.group_name, data.heartbeat_fingerprint);
            }
            let notify = group.notify_consumer_ids_changed_enable;
            let seen = Seen { conn, member: &member, without_sub: data.without_sub, notify, property_filter };
            let changed = self.broker.clients.consumer_seen(&seen, consumer);
            self.broker.notify_changed(changed);
        }
        for producer in &data.producer_data_set {
            self.broker.clients.producer_seen(conn, &producer.group_name, &member);
        }
        let flags = |w: &mut cometmq_wire::header::ExtWriter<'_>| {
            w.bool("IS_SUPPORT_HEART_BEAT_V2", true);
            w.bool("IS_SUB_CHANGE", sub_change);
        };
        asker.answer(out, ResponseCode::SUCCESS, None, flags, &[]);
        Ok(Step::Done)
    }

    /// Creates groups that are not there yet, and their retry topics; `None` when all are there.
    fn create_groups_of(self: &Rc<Self>, data: &HeartbeatData) -> Option<Step> {
        let auto = self.broker.settings.load().auto_create_subscription_group;
        let (mut groups, mut topics) = (false, false);
        for consumer in &data.consumer_data_set {
            let name = &consumer.group_name;
            if self.broker.groups.find(name).is_none() {
                // As in Java, a group that may not be created is passed over; its pulls say why.
                groups |= auto && self.broker.groups.auto_create(name).is_ok();
            }
            let Some(group) = self.broker.groups.find(name) else { continue };
            let retry = names::retry_topic(name);
            if self.broker.topics.find(&retry).is_none() {
                self.broker.topics.create_retry(&retry, group.retry_queue_nums);
                topics = true;
            }
        }
        if !groups && !topics {
            return None;
        }
        let broker = self.broker.clone();
        Some(Step::Later(Box::pin(async move {
            if groups {
                broker.groups.save().await?;
            }
            if topics {
                broker.topics_changed().await?;
            }
            Ok(After::Again)
        })))
    }

    pub(crate) fn unregister_client(
        &self,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let header = UnregisterClient::decode(&frame.head.ext)?;
        let (producer, consumer) = (header.producer_group.as_deref(), header.consumer_group.as_deref());
        let changed = self.broker.clients.leave(asker.conn.id(), producer, consumer);
        self.broker.notify_changed(changed);
        Ok(asker.success(out))
    }

    pub(crate) fn check_client_config(
        &self,
        asker: &Asker,
        frame: &Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Step, Reject> {
        let body: CheckClientRequestBody = json::from_slice(frame.body)?;
        if let Some(subscription) = body.subscription_data {
            let property_filter = self.broker.settings.load().enable_property_filter;
            Filter::parse(&subscription.expression_type, &subscription.sub_string, property_filter)?;
        }
        Ok(asker.success(out))
    }
}

/// The one-way request that tells a consumer to rebalance.
pub(crate) fn ids_changed_frame(group: &str) -> Vec<u8> {
    let mut frame = Vec::with_capacity(256);
    let code = RequestCode::NOTIFY_CONSUMER_IDS_CHANGED;
    Builder::request(&mut frame, SerializeType::Json, code, 0, FLAG_ONEWAY, Language::JAVA, version::V5_5_0)
        .ext(|w| ConsumerGroup::new(group.into()).write(w))
        .finish();
    frame
}
