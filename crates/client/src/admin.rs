//! Calls that manage a cluster: topics, groups, offsets. Java: `DefaultMQAdminExt`.

use std::sync::Arc;

use cometmq_wire::body::{ClusterInfo, MessageQueue, TopicConfig, TopicConfigAndQueueMapping};
use cometmq_wire::header::ExtWriter;
use cometmq_wire::{RequestCode, ResponseCode, headers, json, names};

use crate::call::{Call, Target};
use crate::route::Route;
use crate::{Client, Error};

/// Admin calls of a client; cheap to clone.
#[derive(Clone)]
pub struct Admin {
    client: Client,
}

impl Admin {
    pub fn new(client: &Client) -> Self {
        Self { client: client.clone() }
    }

    /// Creates or changes a topic on one broker (17).
    pub async fn create_topic(&self, broker_addr: &str, config: &TopicConfig) -> Result<(), Error> {
        names::check_topic(&config.topic_name)?;
        let attributes: Vec<_> = config.attributes.iter().map(|(k, v)| format!("+{k}={v}")).collect();
        let header = headers::CreateTopic::new(
            config.topic_name.as_str().into(),
            names::AUTO_CREATE_TOPIC.into(),
            config.read_queue_nums,
            config.write_queue_nums,
            config.perm,
            config.topic_filter_type.name().into(),
            Some(config.topic_sys_flag),
            Some(config.order),
            (!attributes.is_empty()).then(|| attributes.join(",").into()),
            Some(false),
        );
        let (code, target) = (RequestCode::UPDATE_AND_CREATE_TOPIC, Target::Topic(&config.topic_name));
        self.ok(broker_addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    /// One topic as a broker knows it (351).
    pub async fn topic_config(&self, broker_addr: &str, topic: &str) -> Result<TopicConfig, Error> {
        let (code, target) = (RequestCode::GET_TOPIC_CONFIG, Target::Topic(topic));
        let header = headers::Topic::new(topic.into(), None);
        let answer = self.ok(broker_addr, code, target, |w| header.write(w)).await?;
        let call = Call { addr: broker_addr, code, target };
        Ok(call.decoded(json::from_slice::<TopicConfigAndQueueMapping>(answer.body()))?.into_config())
    }

    /// Deletes a topic at all masters of a cluster (215) and at all name servers (216).
    pub async fn delete_topic(&self, cluster: &str, topic: &str) -> Result<(), Error> {
        for addr in self.masters(Some(cluster)).await? {
            let header = headers::Topic::new(topic.into(), None);
            let (code, target) = (RequestCode::DELETE_TOPIC_IN_BROKER, Target::Topic(topic));
            self.ok(&addr, code, target, |w| header.write(w)).await?;
        }
        for addr in self.client.name_servers().addrs() {
            let header = headers::DeleteTopicInNameServer::new(topic.into(), Some(cluster.into()));
            let (code, target) = (RequestCode::DELETE_TOPIC_IN_NAMESRV, Target::Topic(topic));
            self.ok(addr, code, target, |w| header.write(w)).await?;
        }
        Ok(())
    }

    /// Deletes a consumer group on one broker (207), with its offsets if asked.
    pub async fn delete_group(&self, broker_addr: &str, group: &str, offsets_too: bool) -> Result<(), Error> {
        let header = headers::DeleteGroup::new(group.into(), Some(offsets_too));
        let (code, target) = (RequestCode::DELETE_SUBSCRIPTIONGROUP, Target::Group(group));
        self.ok(broker_addr, code, target, |w| header.write(w)).await.map(|_| ())
    }

    /// All brokers that a name server knows (106).
    pub async fn cluster_info(&self) -> Result<ClusterInfo, Error> {
        let (code, target) = (RequestCode::GET_BROKER_CLUSTER_INFO, Target::Cluster);
        let (addr, answer) = self.client.ask_name_server(code, target, |_| {}).await?;
        let call = Call { addr: &addr, code, target };
        if answer.code() != ResponseCode::SUCCESS {
            return Err(call.refused(&answer));
        }
        call.decoded(json::from_slice(answer.body()))
    }

    /// Addresses of the masters of one cluster, or of all.
    pub async fn masters(&self, cluster: Option<&str>) -> Result<Vec<String>, Error> {
        let info = self.cluster_info().await?;
        let brokers = info.broker_addr_table.values().filter(|b| cluster.is_none_or(|c| b.cluster == c));
        Ok(brokers.filter_map(|b| b.broker_addrs.get(&0).cloned()).collect())
    }

    /// The route of a topic, from a name server and not from the cache (105).
    pub async fn route(&self, topic: &str) -> Result<Arc<Route>, Error> {
        let data = self.client.fetch_route(topic).await?;
        Ok(Arc::new(Route::new(topic, data, None)))
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

    /// How far a group is in a queue (14); `None` = it has no offset there.
    pub async fn query_consumer_offset(&self, group: &str, queue: &MessageQueue) -> Result<Option<i64>, Error> {
        self.client.consumer_offset(group, queue).await
    }

    /// Sets how far a group is in a queue (15). A running consumer of the group does not hear of it.
    pub async fn update_consumer_offset(&self, group: &str, queue: &MessageQueue, offset: i64) -> Result<(), Error> {
        self.client.commit_offset(group, queue, offset).await
    }

    async fn ok(
        &self,
        addr: &str,
        code: RequestCode,
        target: Target<'_>,
        ext: impl FnOnce(&mut ExtWriter<'_>) + Send,
    ) -> Result<cometmq_wire::frame::OwnedFrame, Error> {
        Call { addr, code, target }.ok(&self.client, ext, &[], self.client.options().request_timeout).await
    }
}
