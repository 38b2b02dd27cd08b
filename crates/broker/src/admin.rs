//! Topics, groups and configuration: UPDATE_AND_CREATE_TOPIC (17), GET_TOPIC_CONFIG (351),
//! UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200), GET_SUBSCRIPTIONGROUP_CONFIG (352), GET_BROKER_CONFIG (26).
//! A change is on disk before it is acknowledged. Java: `AdminBrokerProcessor`.

use std::rc::Rc;

use cometmq_wire::body::{SubscriptionGroupConfig, TopicConfig, TopicConfigAndQueueMapping, TopicFilterType};
use cometmq_wire::flags::perm;
use cometmq_wire::headers::{BrokerConfigAnswer, CreateTopic, Group, Topic};
use cometmq_wire::{Frame, ResponseCode, json, names};

use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};
use crate::topics::{QUEUES_MAX, alter_attributes};

impl BrokerShard {
    pub(crate) fn update_topic(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = CreateTopic::decode(&frame.head.ext)?;
        names::check_topic(&header.topic)?;
        if self.broker.topics.is_system(&header.topic) {
            return Err(Reject::invalid(format!("The topic[{}] is conflict with system topic.", header.topic)));
        }
        let config = self.topic_of(&header)?;
        if self.broker.topics.put(config) {
            tracing::info!(topic = %header.topic, peer = %asker.conn.peer(), "topic created or changed");
        }
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            broker.topics_changed().await?;
            Ok(After::Success)
        })))
    }

    fn topic_of(&self, header: &CreateTopic<'_>) -> Result<TopicConfig, Reject> {
        for (name, queues) in [("readQueueNums", header.read_queue_nums), ("writeQueueNums", header.write_queue_nums)] {
            if !(0..=QUEUES_MAX).contains(&queues) {
                return Err(Reject::invalid(format!("{name} is {queues}, expected 0 to {QUEUES_MAX}")));
            }
        }
        if !perm::is_valid(header.perm) {
            return Err(Reject::invalid(format!("perm is {}, expected 0 to 7", header.perm)));
        }
        let current = self.broker.topics.find(&header.topic);
        let attributes = current.as_ref().map(|t| t.config.attributes.clone()).unwrap_or_default();
        let mut config = TopicConfig::new(&header.topic, header.write_queue_nums, header.perm);
        config.read_queue_nums = header.read_queue_nums;
        config.topic_sys_flag = header.topic_sys_flag.unwrap_or(0);
        config.order = header.order.unwrap_or(false);
        config.attributes = alter_attributes(&attributes, header.attributes.as_deref().unwrap_or_default())?;
        config.topic_filter_type = match header.topic_filter_type.as_ref() {
            "MULTI_TAG" => TopicFilterType::MultiTag,
            _ => TopicFilterType::SingleTag,
        };
        Ok(config)
    }

    pub(crate) fn topic_config(&self, asker: &Asker, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let header = Topic::decode(&frame.head.ext)?;
        let topic = self.broker.topics.find(&header.topic).ok_or_else(|| {
            Reject::new(ResponseCode::TOPIC_NOT_EXIST, format!("No topic in this broker. topic: {}", header.topic))
        })?;
        Ok(asker.body(out, &json::to_vec(&TopicConfigAndQueueMapping::new(topic.config.clone(), None))))
    }

    pub(crate) fn update_group(self: &Rc<Self>, frame: &Frame<'_>) -> Result<Step, Reject> {
        let group: SubscriptionGroupConfig = json::from_slice(frame.body)?;
        names::check_group(&group.group_name)?;
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            broker.groups.put(group);
            broker.groups.save().await?;
            Ok(After::Success)
        })))
    }

    pub(crate) fn group_config(&self, asker: &Asker, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let header = Group::decode(&frame.head.ext)?;
        let group = self.broker.groups.find(&header.group).ok_or_else(|| {
            let remark = format!("No group in this broker. group: {}", header.group);
            Reject::new(ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        })?;
        Ok(asker.body(out, &json::to_vec(group.as_ref())))
    }

    pub(crate) fn broker_config(&self, asker: &Asker, out: &mut Vec<u8>) -> Result<Step, Reject> {
        let version = cometmq_wire::body::DataVersion { timestamp: self.broker.started_ms, ..Default::default() };
        let header = BrokerConfigAnswer::new(String::from_utf8_lossy(&json::to_vec(&version)).into_owned().into());
        let text = self.broker.config.to_properties();
        asker.answer(out, ResponseCode::SUCCESS, None, |w| header.write(w), text.as_bytes());
        Ok(Step::Done)
    }
}
