//! Calls that manage a cluster: topics, groups, offsets, configuration. Each is one request to the address given, or to any
//! name server. Java: `DefaultMQAdminExt`.

use std::sync::Arc;

use cometmq_wire::body::{
    ClusterInfo, ConsumeStats, ConsumerConnection, ConsumerRunningInfo, GroupList, KVTable, MessageQueue,
    ProducerConnection, ResetOffsetBody, SubscriptionGroupConfig, SubscriptionGroupTable, TopicConfig,
    TopicConfigAndQueueMapping, TopicList, TopicStatsTable,
};
use cometmq_wire::frame::OwnedFrame;
use cometmq_wire::header::ExtWriter;
use cometmq_wire::{DecodeError, RequestCode, ResponseCode, headers, json, names};

use crate::call::{Call, Target};
use crate::route::Route;
use crate::{Client, Error};

/// Groups that one answer of a listing may hold.
const GROUPS_PAGE: i32 = 1000;

/// Admin calls of a client; cheap to clone.
#[derive(Clone)]
pub struct Admin {
    client: Client,
}

impl Admin {
    pub fn new(client: &Client) -> Self {
        Self { client: client.clone() }
    }

    /// The name servers of the client's options, all of them.
    pub fn name_servers(&self) -> &[String] {
        self.client.name_servers().addrs()
    }

    // Topics.

    /// Creates or changes a topic on one broker (17).
    pub async fn create_topic(&self, broker_addr: &str, config: &TopicConfig) -> Result<(), Error> {
        let attributes: Vec<_> = config.attributes.iter().map(|(k, v)| format!("+{k}={v}")).collect();
        self.update_topic(broker_addr, config, &attributes.join(",")).await
    }

    /// The same, with the attributes as a change: `+key=value,-key`.
    pub async fn update_topic(&self, broker_addr: &str, config: &TopicConfig, attributes: &str) -> Result<(), Error> {
        names::check_topic(&config.topic_name)?;
        let header = headers::CreateTopic::new(
            config.topic_name.as_str().into(),
            names::AUTO_CREATE_TOPIC.into(),
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            config.topic_filter_type.name().into(),
            Some(config.topic_sys_flag),
            Some(config.order),
            (!attributes.is_empty()).then(|| attributes.into()),
            Some(false),
        );
        let (code, target) = (RequestCode::UPDATE_AND_CREATE_TOPIC, Target::Topic(&config.topic_name));
        self.ok(broker_addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    /// One topic as a broker knows it (351).
    pub async fn topic_config(&self, broker_addr: &str, topic: &str) -> Result<TopicConfig, Error> {
        let header = headers::Topic::new(topic.into(), None);
        let (code, target) = (RequestCode::GET_TOPIC_CONFIG, Target::Topic(topic));
        let both: TopicConfigAndQueueMapping =
            self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await?;
        Ok(both.into_config())
    }

    /// Deletes a topic at all masters of a cluster (215) and at all name servers (216).
    pub async fn delete_topic(&self, cluster: &str, topic: &str) -> Result<(), Error> {
        for addr in self.masters(Some(cluster)).await? {
            self.delete_topic_at_broker(&addr, topic).await?;
        }
        for addr in self.name_servers() {
            self.delete_topic_at_name_server(addr, topic, Some(cluster)).await?;
        }
        Ok(())
    }

    /// Deletes a topic and its messages on one broker (215).
    pub async fn delete_topic_at_broker(&self, broker_addr: &str, topic: &str) -> Result<(), Error> {
        let header = headers::Topic::new(topic.into(), None);
        let (code, target) = (RequestCode::DELETE_TOPIC_IN_BROKER, Target::Topic(topic));
        self.ok(broker_addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    /// Deletes the route of a topic at one name server (216), of one cluster or of all.
    pub async fn delete_topic_at_name_server(
        &self,
        addr: &str,
        topic: &str,
        cluster: Option<&str>,
    ) -> Result<(), Error> {
        let header = headers::DeleteTopicInNameServer::new(topic.into(), cluster.map(Into::into));
        let (code, target) = (RequestCode::DELETE_TOPIC_IN_NAMESRV, Target::Topic(topic));
        self.ok(addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    /// The names of all topics that a name server knows (206).
    pub async fn topics(&self) -> Result<TopicList, Error> {
        self.read_any(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Target::Cluster, json::from_slice).await
    }

    /// The route of a topic, from a name server and not from the cache (105).
    pub async fn route(&self, topic: &str) -> Result<Arc<Route>, Error> {
        let data = self.client.fetch_route(topic).await?;
        Ok(Arc::new(Route::new(topic, data, None)))
    }

    /// Where the queues of a topic begin and end on one broker (202).
    pub async fn topic_stats(&self, broker_addr: &str, topic: &str) -> Result<TopicStatsTable, Error> {
        let header = headers::Topic::new(topic.into(), None);
        let (code, target) = (RequestCode::GET_TOPIC_STATS_INFO, Target::Topic(topic));
        self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await
    }

    /// The groups that consume a topic, as one broker knows them (300).
    pub async fn groups_of_topic(&self, broker_addr: &str, topic: &str) -> Result<GroupList, Error> {
        let header = headers::Topic::new(topic.into(), None);
        let (code, target) = (RequestCode::QUERY_TOPIC_CONSUME_BY_WHO, Target::Topic(topic));
        self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await
    }

    // Groups and their clients.

    /// Creates or changes a consumer group on one broker (200); attributes are a change, `+key` or `-key`.
    pub async fn update_group(&self, broker_addr: &str, config: &SubscriptionGroupConfig) -> Result<(), Error> {
        names::check_group(&config.group_name)?;
        let (code, target) =
            (RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, Target::Group(config.group_name.as_str()));
        self.put(broker_addr, code, target, &json::to_fastjson(config)).await
    }

    /// All consumer groups of one broker (201). (352 would create a group that is not there.)
    pub async fn groups(&self, broker_addr: &str) -> Result<SubscriptionGroupTable, Error> {
        let call =
            Call { addr: broker_addr, code: RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG, target: Target::Cluster };
        let mut all = SubscriptionGroupTable::default();
        let mut version = String::new();
        loop {
            let seen = i32::try_from(all.subscription_group_table.len()).unwrap_or(i32::MAX);
            let header = headers::AllGroups::new(seen, Some(version.as_str().into()), Some(GROUPS_PAGE));
            let answer = self.ok(call.addr, call.code, call.target, |w| header.write(w)).await?;
            let page: SubscriptionGroupTable = call.decoded(json::from_slice(answer.body()))?;
            version = String::from_utf8_lossy(&json::to_vec(&page.data_version)).into_owned();
            let total = call.decoded(headers::AllGroupsAnswer::decode(&answer.ext()))?.total_group_num;
            all.data_version = page.data_version;
            all.forbidden_table.extend(page.forbidden_table);
            all.subscription_group_table.extend(page.subscription_group_table);
            let now = i32::try_from(all.subscription_group_table.len()).unwrap_or(i32::MAX);
            // A page that brings nothing new ends it, whatever the total says: groups may be deleted meanwhile.
            if now == seen || total.is_none_or(|total| now >= total) {
                return Ok(all);
            }
        }
    }

    /// Deletes a consumer group on one broker (207), with its offsets if asked.
    pub async fn delete_group(&self, broker_addr: &str, group: &str, offsets_too: bool) -> Result<(), Error> {
        let header = headers::DeleteGroup::new(group.into(), Some(offsets_too));
        let (code, target) = (RequestCode::DELETE_SUBSCRIPTIONGROUP, Target::Group(group));
        self.ok(broker_addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    /// The connected members of a group (203).
    pub async fn consumer_connection(&self, broker_addr: &str, group: &str) -> Result<ConsumerConnection, Error> {
        let header = headers::ConsumerGroup::new(group.into());
        let (code, target) = (RequestCode::GET_CONSUMER_CONNECTION_LIST, Target::Group(group));
        self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await
    }

    /// The connected producers of a group (204).
    pub async fn producer_connection(&self, broker_addr: &str, group: &str) -> Result<ProducerConnection, Error> {
        let header = headers::ProducerGroup::new(group.into());
        let (code, target) = (RequestCode::GET_PRODUCER_CONNECTION_LIST, Target::Group(group));
        self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await
    }

    /// What a connected consumer says about itself (307), asked through the broker.
    pub async fn running_info(
        &self,
        broker_addr: &str,
        group: &str,
        client_id: &str,
    ) -> Result<ConsumerRunningInfo, Error> {
        let header = headers::RunningInfo::new(group.into(), client_id.into(), Some(false));
        let (code, target) = (RequestCode::GET_CONSUMER_RUNNING_INFO, Target::Group(group));
        self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await
    }

    // Offsets.

    /// How far a group is on one broker, in one topic or in all of its topics (208).
    pub async fn consume_stats(
        &self,
        broker_addr: &str,
        group: &str,
        topic: Option<&str>,
    ) -> Result<ConsumeStats, Error> {
        let header = headers::ConsumeStats::new(group.into(), topic.map(Into::into), None);
        let (code, target) = (RequestCode::GET_CONSUME_STATS, Target::Group(group));
        self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await
    }

    /// Moves a group in all queues of a topic on one broker (222): to the first messages stored at or after a time, epoch
    /// milliseconds, or to the ends of the queues. Running consumers hear of it. The answer has the new offsets.
    pub async fn reset_offset(
        &self,
        broker_addr: &str,
        group: &str,
        topic: &str,
        epoch_ms: Option<i64>,
        force: bool,
    ) -> Result<ResetOffsetBody, Error> {
        let time = epoch_ms.unwrap_or(-1);
        let header = headers::ResetOffset::new(group.into(), topic.into(), Some(-1), Some(-1), time, force);
        let (code, target) = (RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, Target::Group(group));
        self.read(broker_addr, code, target, |w| header.write(w), json::from_slice).await
    }

    /// Moves a group in one queue (222) to an offset.
    pub async fn reset_queue_offset(
        &self,
        broker_addr: &str,
        group: &str,
        queue: &MessageQueue,
        offset: i64,
    ) -> Result<(), Error> {
        let (topic, queue_id) = (queue.topic.as_str().into(), Some(queue.queue_id));
        let header = headers::ResetOffset::new(group.into(), topic, queue_id, Some(offset), 0, true);
        let (code, target) = (RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, Target::Queue(queue));
        self.ok(broker_addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    /// The offset behind the last message of a queue (30).
    pub async fn max_offset(&self, queue: &MessageQueue) -> Result<i64, Error> {
        self.client.max_offset(queue).await
    }

    /// The offset of the first message of a queue (31).
    pub async fn min_offset(&self, queue: &MessageQueue) -> Result<i64, Error> {
        self.client.min_offset(queue).await
    }

    /// The offset of the first message stored at or after a time, epoch milliseconds (29).
    pub async fn search_offset(&self, queue: &MessageQueue, epoch_ms: i64) -> Result<i64, Error> {
        self.client.search_offset(queue, epoch_ms).await
    }

    /// The same, asked of one broker.
    pub async fn search_offset_at(&self, broker_addr: &str, queue: &MessageQueue, epoch_ms: i64) -> Result<i64, Error> {
        let header = headers::SearchOffset::new(queue.topic.as_str().into(), queue.queue_id, epoch_ms, None);
        let (code, target) = (RequestCode::SEARCH_OFFSET_BY_TIMESTAMP, Target::Queue(queue));
        let answer = self.ok(broker_addr, code, target, |w| header.write(w)).await?;
        let call = Call { addr: broker_addr, code, target };
        Ok(call.decoded(headers::OffsetAnswer::decode(&answer.ext()))?.offset)
    }

    /// How far a group is in a queue (14); `None` = it has no offset there.
    pub async fn query_consumer_offset(&self, group: &str, queue: &MessageQueue) -> Result<Option<i64>, Error> {
        self.client.consumer_offset(group, queue).await
    }

    /// Sets how far a group is in a queue (15). A running consumer of the group does not hear of it.
    pub async fn update_consumer_offset(&self, group: &str, queue: &MessageQueue, offset: i64) -> Result<(), Error> {
        self.client.commit_offset(group, queue, offset).await
    }

    /// The same, at one broker.
    pub async fn update_consumer_offset_at(
        &self,
        broker_addr: &str,
        group: &str,
        queue: &MessageQueue,
        offset: i64,
    ) -> Result<(), Error> {
        let topic = queue.topic.as_str().into();
        let header = headers::UpdateConsumerOffset::new(group.into(), topic, queue.queue_id, offset);
        let (code, target) = (RequestCode::UPDATE_CONSUMER_OFFSET, Target::Queue(queue));
        self.ok(broker_addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    // Brokers.

    /// All brokers that a name server knows (106).
    pub async fn cluster_info(&self) -> Result<ClusterInfo, Error> {
        self.read_any(RequestCode::GET_BROKER_CLUSTER_INFO, Target::Cluster, json::from_slice).await
    }

    /// Addresses of the masters of one cluster, or of all.
    pub async fn masters(&self, cluster: Option<&str>) -> Result<Vec<String>, Error> {
        let info = self.cluster_info().await?;
        let brokers = info.broker_addr_table.values().filter(|b| cluster.is_none_or(|c| b.cluster == c));
        Ok(brokers.filter_map(|b| b.broker_addrs.get(&0).cloned()).collect())
    }

    /// Figures of a broker by name (28).
    pub async fn runtime_info(&self, broker_addr: &str) -> Result<KVTable, Error> {
        self.read(broker_addr, RequestCode::GET_BROKER_RUNTIME_INFO, Target::Cluster, |_| {}, json::from_slice).await
    }

    /// Sends a broker an order that has neither fields nor a body: 306, 316, 329.
    pub async fn tell(&self, broker_addr: &str, order: RequestCode) -> Result<(), Error> {
        self.put(broker_addr, order, Target::Cluster, &[]).await
    }

    /// The configuration of a broker as properties text (26).
    pub async fn broker_config(&self, broker_addr: &str) -> Result<String, Error> {
        self.text(broker_addr, RequestCode::GET_BROKER_CONFIG).await
    }

    /// Changes keys of a broker's configuration, given as properties text (25).
    pub async fn update_broker_config(&self, broker_addr: &str, properties: &str) -> Result<(), Error> {
        self.put(broker_addr, RequestCode::UPDATE_BROKER_CONFIG, Target::Cluster, properties.as_bytes()).await
    }

    // Name servers.

    /// Takes the write permission off all routes of a broker at one name server (205); the number of its topics.
    pub async fn wipe_write_perm(&self, addr: &str, broker_name: &str) -> Result<i32, Error> {
        let header = headers::BrokerName::new(broker_name.into());
        let (code, target) = (RequestCode::WIPE_WRITE_PERM_OF_BROKER, Target::Cluster);
        let answer = self.ok(addr, code, target, |w| header.write(w)).await?;
        let call = Call { addr, code, target };
        Ok(call.decoded(headers::WipeWritePermAnswer::decode(&answer.ext()))?.wipe_topic_count)
    }

    /// Gives the write permission back (327); the number of the broker's topics.
    pub async fn add_write_perm(&self, addr: &str, broker_name: &str) -> Result<i32, Error> {
        let header = headers::BrokerName::new(broker_name.into());
        let (code, target) = (RequestCode::ADD_WRITE_PERM_OF_BROKER, Target::Cluster);
        let answer = self.ok(addr, code, target, |w| header.write(w)).await?;
        let call = Call { addr, code, target };
        Ok(call.decoded(headers::AddWritePermAnswer::decode(&answer.ext()))?.add_topic_count)
    }

    /// A value of the KV configuration at one name server (101); `None` = there is none.
    pub async fn kv_config(&self, addr: &str, namespace: &str, key: &str) -> Result<Option<String>, Error> {
        let header = headers::KvConfig::new(namespace.into(), Some(key.into()), None);
        let call = Call { addr, code: RequestCode::GET_KV_CONFIG, target: Target::Cluster };
        let answer = call.send(&self.client, |w| header.write(w), &[], self.client.options().request_timeout).await?;
        match answer.code() {
            ResponseCode::SUCCESS => {
                let value = call.decoded(headers::KvConfigAnswer::decode(&answer.ext()))?.value;
                Ok(value.map(std::borrow::Cow::into_owned))
            }
            ResponseCode::QUERY_NOT_FOUND => Ok(None),
            _ => Err(call.refused(&answer)),
        }
    }

    /// Sets a value of the KV configuration at one name server (100).
    pub async fn put_kv_config(&self, addr: &str, namespace: &str, key: &str, value: &str) -> Result<(), Error> {
        let header = headers::KvConfig::new(namespace.into(), Some(key.into()), Some(value.into()));
        self.ok(addr, RequestCode::PUT_KV_CONFIG, Target::Cluster, |w| header.write(w)).await.map(|_| ())
    }

    /// Deletes a value of the KV configuration at one name server (102).
    pub async fn delete_kv_config(&self, addr: &str, namespace: &str, key: &str) -> Result<(), Error> {
        let header = headers::KvConfig::new(namespace.into(), Some(key.into()), None);
        self.ok(addr, RequestCode::DELETE_KV_CONFIG, Target::Cluster, |w| header.write(w)).await.map(|_| ())
    }

    /// The configuration of a name server as properties text (319).
    pub async fn name_server_config(&self, addr: &str) -> Result<String, Error> {
        self.text(addr, RequestCode::GET_NAMESRV_CONFIG).await
    }

    /// Changes keys of a name server's configuration, given as properties text (318).
    pub async fn update_name_server_config(&self, addr: &str, properties: &str) -> Result<(), Error> {
        self.put(addr, RequestCode::UPDATE_NAMESRV_CONFIG, Target::Cluster, properties.as_bytes()).await
    }

    // One request.

    async fn ok(
        &self,
        addr: &str,
        code: RequestCode,
        target: Target<'_>,
        ext: impl FnOnce(&mut ExtWriter<'_>) + Send,
    ) -> Result<OwnedFrame, Error> {
        Call { addr, code, target }.ok(&self.client, ext, &[], self.client.options().request_timeout).await
    }

    /// Sends a body; the answer has none.
    async fn put(&self, addr: &str, code: RequestCode, target: Target<'_>, body: &[u8]) -> Result<(), Error> {
        let limit = self.client.options().request_timeout;
        Call { addr, code, target }.ok(&self.client, |_| {}, body, limit).await.map(|_| ())
    }

    /// Reads the body of the answer.
    async fn read<T>(
        &self,
        addr: &str,
        code: RequestCode,
        target: Target<'_>,
        ext: impl FnOnce(&mut ExtWriter<'_>) + Send,
        decode: fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, Error> {
        let answer = self.ok(addr, code, target, ext).await?;
        Call { addr, code, target }.decoded(decode(answer.body()))
    }

    /// The same, from whichever name server answers.
    async fn read_any<T>(
        &self,
        code: RequestCode,
        target: Target<'_>,
        decode: fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, Error> {
        let (addr, answer) = self.client.ask_name_server(code, target, |_| {}).await?;
        let call = Call { addr: &addr, code, target };
        if answer.code() != ResponseCode::SUCCESS {
            return Err(call.refused(&answer));
        }
        call.decoded(decode(answer.body()))
    }

    async fn text(&self, addr: &str, code: RequestCode) -> Result<String, Error> {
        let answer = self.ok(addr, code, Target::Cluster, |_| {}).await?;
        Ok(String::from_utf8_lossy(answer.body()).into_owned())
    }
}
