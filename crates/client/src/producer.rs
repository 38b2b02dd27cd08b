//! The producer: picks a queue, sends, and tries another broker when that may help.
//! Java: `DefaultMQProducerImpl`.

use std::sync::Arc;
use std::time::Duration;

use cometmq_wire::frame::OwnedFrame;
use cometmq_wire::headers::{SendAnswer, SendV2};
use cometmq_wire::record::BatchItem;
use cometmq_wire::{RequestCode, ResponseCode, names, properties};
use tokio::time::Instant;

use cometmq_wire::body::MessageQueue;

use crate::call::{Call, Target};
use crate::options::check_duration;
use crate::route::{DEFAULT_QUEUES, Route};
use crate::{Client, Error, Message, compression};

/// How a stored message stands. All four mean that the message is stored and will be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    Ok,
    FlushDiskTimeout,
    FlushSlaveTimeout,
    SlaveNotAvailable,
}

/// What became of a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendResult {
    pub status: SendStatus,
    /// The unique id, made here. Of a batch: all ids, separated by `,`.
    pub msg_id: String,
    /// Broker address and log offset. Of a batch: all, separated by `,`.
    pub offset_msg_id: String,
    pub queue: MessageQueue,
    /// Of a batch: that of its first message.
    pub queue_offset: i64,
}

/// Sends messages; cheap to clone. Concurrent sends share a connection per broker.
#[derive(Clone)]
pub struct Producer {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    options: ProducerBuilder,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.client.groups().remove_producer(&self.options.group);
    }
}

/// Options of a producer, with Java's defaults.
#[derive(Clone)]
pub struct ProducerBuilder {
    client: Client,
    group: String,
    send_timeout: Duration,
    attempt_timeout: Option<Duration>,
    retries: u32,
    body_bytes_max: usize,
    compress_over: Option<usize>,
}

impl ProducerBuilder {
    /// The longest that one send takes, route look-up, connecting and retries included; default 3 s.
    pub fn send_timeout(mut self, limit: Duration) -> Self {
        self.send_timeout = limit;
        self
    }

    /// The longest that one try takes while others are left; default: all the time that is left.
    pub fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = Some(limit);
        self
    }

    /// Tries after the first; default 2.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Largest body before compression; default 4 MiB.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    /// Bodies of at least this size are compressed; default 4 KiB, `None` = never.
    pub fn compress_over(mut self, bytes: Option<usize>) -> Self {
        self.compress_over = bytes;
        self
    }

    /// Checks the options and joins the group.
    pub async fn start(self) -> Result<Producer, Error> {
        names::check_group(&self.group)?;
        check_duration("send_timeout", self.send_timeout, Duration::from_millis(1))?;
        check_duration("attempt_timeout", self.attempt_timeout.unwrap_or(self.send_timeout), Duration::from_millis(1))?;
        let out_of_range =
            |name, value: usize| Err(Error::Option { name, value: value.to_string(), why: "out of range" });
        if self.retries > 100 {
            return out_of_range("retries", self.retries as usize);
        }
        // A frame must hold it, with its header.
        if self.body_bytes_max == 0 || self.body_bytes_max > 15 * 1024 * 1024 {
            return out_of_range("max_message_bytes", self.body_bytes_max);
        }
        if self.group == names::DEFAULT_PRODUCER {
            let why = "reserved, choose another name";
            return Err(Error::Option { name: "group", value: self.group, why });
        }
        if self.client.is_stopped() {
            return Err(Error::ShutDown);
        }
        self.client.groups().add_producer(&self.group)?;
        let inner = Inner { client: self.client.clone(), options: self };
        inner.client.heartbeat().await;
        Ok(Producer { inner: Arc::new(inner) })
    }
}

impl Producer {
    /// `group` names what this producer is part of: an application, or one kind of transaction.
    pub fn builder(client: &Client, group: &str) -> ProducerBuilder {
        ProducerBuilder {
            client: client.clone(),
            group: group.to_string(),
            send_timeout: Duration::from_secs(3),
            attempt_timeout: None,
            retries: 2,
            body_bytes_max: 4 * 1024 * 1024,
            compress_over: Some(4096),
        }
    }

    /// Sends to the topic's queues in turn. After a retryable failure another broker is tried, so that a message may be
    /// stored twice when an answer was lost.
    pub async fn send(&self, message: Message) -> Result<SendResult, Error> {
        message.check(self.options().body_bytes_max)?;
        self.deliver(&self.prepare_single(&message).await?).await
    }

    /// Sends to one queue, once.
    pub async fn send_to(&self, message: Message, queue: &MessageQueue) -> Result<SendResult, Error> {
        message.check(self.options().body_bytes_max)?;
        if queue.topic != message.topic() {
            let why = format!("the queue is of topic {}", queue.topic);
            return Err(Error::Message { topic: message.topic().to_string(), why });
        }
        let outbound = self.prepare_single(&message).await?;
        let limit = self.options().send_timeout;
        let once = async {
            let route = self.client().publish_route(&outbound.topic).await?;
            self.attempt(&outbound, &route, queue, limit).await
        };
        let what = || format!("send to {}", Target::Queue(queue));
        tokio::time::timeout(limit, once)
            .await
            .unwrap_or_else(|_| Err(Error::Timeout { what: what(), limit, last: None }))
    }

    /// Sends without an answer: whether the message was stored stays unknown. Still waits for a route and a connection.
    pub async fn send_oneway(&self, message: Message) -> Result<(), Error> {
        message.check(self.options().body_bytes_max)?;
        let outbound = self.prepare_single(&message).await?;
        let limit = self.options().send_timeout;
        let once = async {
            let (route, queue) = self.pick(&outbound.topic, None).await?;
            let addr = master(&route, &queue)?;
            let call = Call { addr, code: outbound.code, target: Target::Queue(&queue) };
            let remote = self.client().remotes().to(addr).await.map_err(|e| call.network(e))?;
            let header = self.header(&outbound, &queue);
            let request = cometmq_net::Outgoing::new(outbound.code, |w| header.write(w)).body(&outbound.body);
            remote.oneway(request).map_err(|e| call.network(e))
        };
        let what = || format!("send to topic {}", outbound.topic);
        tokio::time::timeout(limit, once)
            .await
            .unwrap_or_else(|_| Err(Error::Timeout { what: what(), limit, last: None }))
    }

    /// Sends messages of one topic as one request (320): all are stored in a row in one queue, or none is.
    pub async fn send_batch(&self, messages: Vec<Message>) -> Result<SendResult, Error> {
        self.deliver(&self.prepare_batch(&messages)?).await
    }

    /// Queues of a topic that may be written.
    pub async fn queues(&self, topic: &str) -> Result<Vec<MessageQueue>, Error> {
        Ok(self.client().publish_route(topic).await?.publish_queues().to_vec())
    }

    /// Leaves the group at all brokers.
    pub async fn shutdown(self) {
        let group = &self.options().group;
        if self.client().groups().remove_producer(group) {
            self.client().leave(group, true).await;
        }
    }

    fn client(&self) -> &Client {
        &self.inner.client
    }

    fn options(&self) -> &ProducerBuilder {
        &self.inner.options
    }

    async fn prepare_single(&self, message: &Message) -> Result<Outbound, Error> {
        let (properties, msg_id) = message.encode_properties(|| self.client().unique_id())?;
        let (body, sys_flag) = match self.options().compress_over {
            Some(limit) if message.body().len() >= limit => compression::compress(message.body()).await,
            _ => (message.body().clone(), 0),
        };
        let (topic, flag) = (message.topic().to_string(), message.flag_value());
        Ok(Outbound { code: RequestCode::SEND_MESSAGE_V2, topic, flag, sys_flag, properties, msg_id, body })
    }

    fn prepare_batch(&self, messages: &[Message]) -> Result<Outbound, Error> {
        let Some(first) = messages.first() else {
            return Err(Error::Message { topic: String::new(), why: "a batch without messages".to_string() });
        };
        let refuse = |why: &str| Err(Error::Message { topic: first.topic().to_string(), why: why.to_string() });
        if names::is_retry_topic(first.topic()) {
            return refuse("a retry topic takes no batches");
        }
        let (mut body, mut ids) = (Vec::new(), Vec::with_capacity(messages.len()));
        for message in messages {
            message.check(self.options().body_bytes_max)?;
            if message.topic() != first.topic() {
                return refuse("the messages of a batch must have one topic");
            }
            if message.waits_for_store() != first.waits_for_store() {
                return refuse("the messages of a batch must agree on wait_store");
            }
            if message.is_delayed() {
                return refuse("a batch takes no delayed messages");
            }
            let (properties, id) = message.encode_properties(|| self.client().unique_id())?;
            BatchItem { flag: message.flag_value(), body: message.body(), properties: &properties }.encode(&mut body);
            ids.push(id);
        }
        if body.len() > self.options().body_bytes_max {
            return refuse(&format!("the batch takes {} bytes, MAX: {}", body.len(), self.options().body_bytes_max));
        }
        let mut properties = String::new();
        properties::push(&mut properties, properties::WAIT, if first.waits_for_store() { "true" } else { "false" });
        Ok(Outbound {
            code: RequestCode::SEND_BATCH_MESSAGE,
            topic: first.topic().to_string(),
            flag: 0,
            sys_flag: 0,
            properties,
            msg_id: ids.join(","),
            body: body.into(),
        })
    }

    /// Tries up to `1 + retries` times within the time limit of the whole call.
    async fn deliver(&self, outbound: &Outbound) -> Result<SendResult, Error> {
        let limit = self.options().send_timeout;
        let deadline = Instant::now() + limit;
        let tries = 1 + self.options().retries;
        let mut brokers: Vec<String> = Vec::new();
        let mut last = None;
        for left in (0..tries).rev() {
            let attempt = async {
                let (route, queue) = self.pick(&outbound.topic, brokers.last().map(String::as_str)).await?;
                brokers.push(queue.broker_name.clone());
                let mut limit = deadline.saturating_duration_since(Instant::now());
                if let Some(one) = self.options().attempt_timeout.filter(|_| left > 0) {
                    limit = limit.min(one);
                }
                self.attempt(outbound, &route, &queue, limit).await
            };
            match tokio::time::timeout_at(deadline, attempt).await {
                Ok(Ok(sent)) => return Ok(sent),
                Ok(Err(error)) if !error.is_retryable() => return Err(error),
                Ok(Err(error)) => {
                    tracing::debug!(%error, left, "a send failed");
                    self.client().routes_are_stale();
                    last = Some(Box::new(error));
                }
                Err(_) => {}
            }
            if Instant::now() >= deadline {
                return Err(Error::Timeout { what: format!("send to topic {}", outbound.topic), limit, last });
            }
        }
        match last {
            Some(last) if brokers.len() > 1 => Err(Error::Retries {
                topic: outbound.topic.clone(),
                tries: brokers.len() as u32,
                brokers: brokers.join(", "),
                last,
            }),
            Some(last) => Err(*last),
            None => Err(Error::ShutDown),
        }
    }

    /// The next queue of the topic, on a broker other than `avoid` if there is one.
    async fn pick(&self, topic: &str, avoid: Option<&str>) -> Result<(Arc<Route>, MessageQueue), Error> {
        let route = self.client().publish_route(topic).await?;
        let none = || Error::NoQueue { topic: topic.to_string(), operation: "writing" };
        let queue = route.next_queue(avoid).ok_or_else(none)?.clone();
        Ok((route, queue))
    }

    async fn attempt(
        &self,
        outbound: &Outbound,
        route: &Route,
        queue: &MessageQueue,
        limit: Duration,
    ) -> Result<SendResult, Error> {
        let addr = master(route, queue)?;
        let call = Call { addr, code: outbound.code, target: Target::Queue(queue) };
        let header = self.header(outbound, queue);
        let answer = call.send(self.client(), |w| header.write(w), &outbound.body, limit).await?;
        outbound.result(call, &answer, queue)
    }

    fn header<'a>(&'a self, outbound: &'a Outbound, queue: &'a MessageQueue) -> SendV2<'a> {
        SendV2::new(
            self.options().group.as_str().into(),
            outbound.topic.as_str().into(),
            names::AUTO_CREATE_TOPIC.into(),
            DEFAULT_QUEUES,
            queue.queue_id,
            outbound.sys_flag,
            self.client().now_ms(),
            outbound.flag,
            Some(outbound.properties.as_str().into()),
            Some(0),
            Some(false),
            None,
            Some(outbound.code == RequestCode::SEND_BATCH_MESSAGE),
            Some(queue.broker_name.as_str().into()),
        )
    }
}

fn master<'a>(route: &'a Route, queue: &MessageQueue) -> Result<&'a str, Error> {
    let none = || Error::NoBroker { broker: queue.broker_name.clone(), topic: queue.topic.clone() };
    route.master(&queue.broker_name).ok_or_else(none)
}

/// A request that is ready but for its queue.
struct Outbound {
    code: RequestCode,
    topic: String,
    flag: i32,
    sys_flag: i32,
    properties: String,
    msg_id: String,
    body: bytes::Bytes,
}

impl Outbound {
    fn result(&self, call: Call<'_>, answer: &OwnedFrame, queue: &MessageQueue) -> Result<SendResult, Error> {
        let status = match answer.code() {
            ResponseCode::SUCCESS => SendStatus::Ok,
            ResponseCode::FLUSH_DISK_TIMEOUT => SendStatus::FlushDiskTimeout,
            ResponseCode::FLUSH_SLAVE_TIMEOUT => SendStatus::FlushSlaveTimeout,
            ResponseCode::SLAVE_NOT_AVAILABLE => SendStatus::SlaveNotAvailable,
            _ => return Err(call.refused(answer)),
        };
        let header = call.decoded(SendAnswer::decode(&answer.ext()))?;
        Ok(SendResult {
            status,
            msg_id: self.msg_id.clone(),
            offset_msg_id: header.msg_id.into_owned(),
            queue: MessageQueue { queue_id: header.queue_id, ..queue.clone() },
            queue_offset: header.queue_offset,
        })
    }
}
