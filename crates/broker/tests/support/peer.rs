//! A peer on a blocking socket: requests with the fields that the protocol's documents name, answers taken apart, and
//! whatever bytes a test wants to send instead. Every read ends within [`LONG`].

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use cometmq_wire::RequestCode;
use cometmq_wire::frame::{self, Builder, Decoded, FLAG_ONEWAY, FLAG_RESPONSE, FRAME_LENGTH_MAX};
use cometmq_wire::header::{Language, SerializeType};
use cometmq_wire::record::{Record, records};

/// Longer than anything takes that is to happen.
pub const LONG: Duration = Duration::from_secs(20);

/// A request before it has an opaque.
#[derive(Debug, Clone)]
pub struct Ask {
    code: i32,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    flag: i32,
}

impl Ask {
    pub fn new(code: i32) -> Self {
        Self { code, fields: Vec::new(), body: Vec::new(), flag: 0 }
    }

    /// Puts a field, in place of one of the same name.
    pub fn field(mut self, name: &str, value: impl ToString) -> Self {
        self = self.without(name);
        self.fields.push((name.to_string(), value.to_string()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(n, _)| n != name);
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn oneway(mut self) -> Self {
        self.flag = FLAG_ONEWAY;
        self
    }

    pub fn frame(&self, opaque: i32) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len() + 512);
        let code = RequestCode(self.code);
        Builder::request(&mut out, SerializeType::Json, code, opaque, self.flag, Language::JAVA, 513)
            .ext(|w| self.fields.iter().for_each(|(name, value)| w.str(name, value)))
            .body(&self.body)
            .finish();
        out
    }
}

/// SEND_MESSAGE_V2.
pub fn send(topic: &str, queue: i32, body: impl Into<Vec<u8>>) -> Ask {
    let ask = Ask::new(310).field("a", "producers").field("b", topic).field("c", "TBW102").field("d", 4);
    let ask = ask.field("e", queue).field("f", 0).field("g", 1_750_000_000_000i64).field("h", 0);
    ask.field("i", "").body(body)
}

/// A send with one property.
pub fn send_with(topic: &str, queue: i32, body: &str, property: &str, value: &str) -> Ask {
    send(topic, queue, body).field("i", format!("{property}\u{1}{value}\u{2}"))
}

/// PULL_MESSAGE of all tags, at most 32 messages, answered at once.
pub fn pull(topic: &str, queue: i32, offset: i64) -> Ask {
    let ask = Ask::new(11).field("consumerGroup", "readers").field("topic", topic).field("queueId", queue);
    let ask = ask.field("queueOffset", offset).field("maxMsgNums", 32).field("sysFlag", 4).field("commitOffset", 0);
    let ask = ask.field("suspendTimeoutMillis", 0).field("subVersion", 0).field("subscription", "*");
    ask.field("expressionType", "TAG")
}

/// A pull that waits for a message with one of `tags`.
pub fn parked(topic: &str, queue: i32, offset: i64, tags: &str, suspend: Duration) -> Ask {
    let ask = pull(topic, queue, offset).field("sysFlag", 6).field("subscription", tags);
    ask.field("suspendTimeoutMillis", suspend.as_millis())
}

pub fn max_offset(topic: &str, queue: i32) -> Ask {
    Ask::new(30).field("topic", topic).field("queueId", queue)
}

pub fn create_topic(topic: &str, queues: i32, perm: i32) -> Ask {
    let ask = Ask::new(17).field("topic", topic).field("defaultTopic", "TBW102").field("readQueueNums", queues);
    ask.field("writeQueueNums", queues).field("perm", perm).field("topicFilterType", "SINGLE_TAG")
}

pub fn commit(group: &str, topic: &str, queue: i32, offset: i64) -> Ask {
    let ask = Ask::new(15).field("consumerGroup", group).field("topic", topic).field("queueId", queue);
    ask.field("commitOffset", offset)
}

pub fn committed(group: &str, topic: &str, queue: i32) -> Ask {
    Ask::new(14).field("consumerGroup", group).field("topic", topic).field("queueId", queue)
}

/// HEART_BEAT of a consumer that subscribes to all of one topic.
pub fn heartbeat(client: &str, group: &str, topic: &str) -> Ask {
    heartbeat_with(client, group, &[(topic, "*")])
}

/// HEART_BEAT of a consumer that subscribes to topics by tags.
pub fn heartbeat_with(client: &str, group: &str, topics: &[(&str, &str)]) -> Ask {
    let subscription = |(topic, tags): &(&str, &str)| {
        format!(
            r#"{{"topic":"{topic}","subString":"{tags}","tagsSet":[],"codeSet":[],"subVersion":1,
            "expressionType":"TAG","classFilterMode":false}}"#
        )
    };
    let subscriptions = topics.iter().map(subscription).collect::<Vec<_>>().join(",");
    let body = format!(
        r#"{{"clientID":"{client}","producerDataSet":[],"consumerDataSet":[{{"groupName":"{group}",
        "consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",
        "unitMode":false,"subscriptionDataSet":[{subscriptions}]}}]}}"#
    );
    Ask::new(34).body(body)
}

/// A frame taken apart.
#[derive(Debug, Clone)]
pub struct Got {
    pub code: i32,
    pub opaque: i32,
    pub is_answer: bool,
    pub remark: String,
    pub fields: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Got {
    pub fn num(&self, name: &str) -> i64 {
        self.fields.get(name).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no number {name} in {self:?}"))
    }

    /// Queue offsets and bodies of a pull's answer, checked.
    pub fn messages(&self) -> Vec<(i64, Vec<u8>)> {
        let intact = |record: Record<'_>| {
            assert!(record.body_is_intact(), "offset {}", record.queue_offset());
            (record.queue_offset(), record.body().to_vec())
        };
        records(&self.body).map(|record| intact(record.unwrap())).collect()
    }

    /// The counters of GET_BROKER_RUNTIME_INFO.
    pub fn counter(&self, name: &str) -> u64 {
        let table: cometmq_wire::body::KVTable = cometmq_wire::json::from_slice(&self.body).unwrap();
        let value = table.table.get(name).unwrap_or_else(|| panic!("no {name} in the runtime table"));
        value.parse().unwrap_or_else(|_| panic!("{name} = {value}"))
    }
}

pub struct Peer {
    stream: TcpStream,
    unread: Vec<u8>,
    opaque: i32,
}

impl Peer {
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Self { stream, unread: Vec::new(), opaque: 0 }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// A handle that writes while this one reads.
    pub fn writer(&self) -> TcpStream {
        self.stream.try_clone().unwrap()
    }

    /// Sends a request and returns its opaque.
    pub fn post(&mut self, ask: &Ask) -> i32 {
        self.opaque += 1;
        self.write(&ask.frame(self.opaque));
        self.opaque
    }

    /// Sends a request and returns the next frame, which must be its answer.
    pub fn ask(&mut self, ask: &Ask) -> Got {
        let opaque = self.post(ask);
        let got = self.receive();
        assert!(got.is_answer && got.opaque == opaque, "expected the answer to {opaque} of {ask:?}: {got:?}");
        got
    }

    /// As [`Peer::ask`], for what must succeed.
    pub fn ok(&mut self, ask: &Ask) -> Got {
        let got = self.ask(ask);
        assert_eq!((got.code, got.remark.as_str()), (0, got.remark.as_str()), "{ask:?}");
        got
    }

    pub fn receive(&mut self) -> Got {
        self.receive_within(LONG).unwrap_or_else(|| panic!("nothing came within {LONG:?}"))
    }

    /// The next frame; `None` when the time is up.
    pub fn receive_within(&mut self, limit: Duration) -> Option<Got> {
        let end = Instant::now() + limit;
        loop {
            if let Some(got) = self.cut() {
                return Some(got);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1)))).unwrap();
            let mut buf = [0; 65_536];
            match self.stream.read(&mut buf) {
                Ok(0) => panic!("the broker closed the connection"),
                Ok(n) => self.unread.extend_from_slice(&buf[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => panic!("the connection is lost: {e}"),
            }
        }
    }

    /// The next frame; `None` when the broker was killed before it was whole.
    pub fn receive_or_lost(&mut self) -> Option<Got> {
        let mut buf = [0; 65_536];
        loop {
            if let Some(got) = self.cut() {
                return Some(got);
            }
            match self.stream.read(&mut buf) {
                Ok(n @ 1..) => self.unread.extend_from_slice(&buf[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => panic!("nothing came within {LONG:?}"),
                Ok(0) | Err(_) => return None,
            }
        }
    }

    /// As [`Peer::ask`] of a broker that may be killed meanwhile.
    pub fn ask_or_lost(&mut self, ask: &Ask) -> Option<Got> {
        self.opaque += 1;
        self.stream.write_all(&ask.frame(self.opaque)).ok()?;
        self.receive_or_lost()
    }

    /// Everything up to the end of the stream.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.unread);
        self.stream.set_read_timeout(Some(LONG)).unwrap();
        self.stream.read_to_end(&mut rest).unwrap();
        rest
    }

    fn cut(&mut self) -> Option<Got> {
        let Decoded::Frame { len, frame } = frame::decode(&self.unread, FRAME_LENGTH_MAX).unwrap() else { return None };
        let frame = frame.unwrap();
        let got = got(&frame);
        self.unread.drain(..len);
        Some(got)
    }
}

fn got(frame: &cometmq_wire::Frame<'_>) -> Got {
    Got {
        code: frame.head.code,
        opaque: frame.head.opaque,
        is_answer: frame.head.flag & FLAG_RESPONSE != 0,
        remark: frame.head.remark().unwrap_or_default().into_owned(),
        fields: frame.head.ext.iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect(),
        body: frame.body.to_vec(),
    }
}

/// Every frame of `bytes`, which must be whole.
pub fn frames(mut bytes: &[u8]) -> Vec<Got> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        match frame::decode(bytes, FRAME_LENGTH_MAX).unwrap() {
            Decoded::Frame { len, frame } => {
                all.push(got(&frame.unwrap()));
                bytes = &bytes[len..];
            }
            Decoded::Incomplete { .. } => panic!("half a frame: {bytes:?}"),
        }
    }
    all
}
