//! A peer for tests: real sockets, scripted answers. It may stand for a name server, a broker, or both.
#![allow(dead_code)] // every test uses its part

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cometmq_client::{Client, ClientOptions, RequestCode, ResponseCode};
use cometmq_wire::body::{BrokerData, QueueData, TopicRouteData};
use cometmq_wire::frame::{self, Builder, Decoded, FRAME_LENGTH_MAX};
use cometmq_wire::header::SerializeType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub struct Request {
    pub code: RequestCode,
    pub fields: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

pub struct Answer {
    pub code: ResponseCode,
    pub fields: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn code(code: ResponseCode) -> Option<Self> {
        Some(Self { code, fields: Vec::new(), body: Vec::new() })
    }

    pub fn fields(code: ResponseCode, fields: &[(&'static str, String)]) -> Option<Self> {
        Some(Self { code, fields: fields.to_vec(), body: Vec::new() })
    }

    pub fn body(body: Vec<u8>) -> Option<Self> {
        Some(Self { code: ResponseCode::SUCCESS, fields: Vec::new(), body })
    }

    pub fn sent() -> Option<Self> {
        let fields = [("msgId", "ID".to_string()), ("queueId", "0".to_string()), ("queueOffset", "7".to_string())];
        Self::fields(ResponseCode::SUCCESS, &fields)
    }
}

/// What a request is answered with; `None` = never.
type Script = dyn Fn(&Request) -> Option<Answer> + Send + Sync;

pub struct Fake {
    pub addr: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    pub async fn start(script: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (script, seen) = (Arc::new(script), Arc::new(Mutex::new(Vec::new())));
        let log = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, script.clone(), log.clone()));
            }
        });
        Self { addr, seen }
    }

    pub fn seen(&self, code: RequestCode) -> Vec<Request> {
        self.seen.lock().unwrap().iter().filter(|r| r.code == code).cloned().collect()
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, log: Arc<Mutex<Vec<Request>>>) {
    let mut buf = Vec::new();
    loop {
        while let Decoded::Frame { len, frame } = frame::decode(&buf, FRAME_LENGTH_MAX).unwrap() {
            let frame = frame.unwrap();
            let fields = frame.head.ext.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            let request = Request { code: RequestCode(frame.head.code), fields, body: frame.body.to_vec() };
            log.lock().unwrap().push(request.clone());
            let mut out = Vec::new();
            if let Some(answer) = script(&request) {
                Builder::response(&mut out, SerializeType::Json, answer.code, frame.head.opaque, None)
                    .ext(|w| answer.fields.iter().for_each(|(k, v)| w.str(k, v)))
                    .body(&answer.body)
                    .finish();
            }
            buf.drain(..len);
            stream.write_all(&out).await.unwrap();
        }
        match stream.read_buf(&mut buf).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// An address that nobody listens on.
pub async fn dead_addr() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

/// The answer of a name server: brokers by name and address, with `queues` queues each.
pub fn route(brokers: &[(&str, &str)], queues: i32) -> Option<Answer> {
    let broker = |(name, addr): &(&str, &str)| BrokerData {
        broker_addrs: BTreeMap::from([(0, addr.to_string())]),
        broker_name: name.to_string(),
        ..BrokerData::default()
    };
    let queue = |(name, _): &(&str, &str)| QueueData {
        broker_name: name.to_string(),
        perm: 6,
        read_queue_nums: queues,
        write_queue_nums: queues,
        topic_sys_flag: 0,
    };
    let route = TopicRouteData {
        broker_datas: brokers.iter().map(broker).collect(),
        queue_datas: brokers.iter().map(queue).collect(),
        ..TopicRouteData::default()
    };
    Answer::body(route.to_json(true))
}

pub async fn name_server(brokers: Vec<(&'static str, String)>) -> Fake {
    name_server_of(brokers, 1).await
}

pub async fn name_server_of(brokers: Vec<(&'static str, String)>, queues: i32) -> Fake {
    Fake::start(move |request| {
        if request.field("topic").starts_with("%RETRY%") {
            return Answer::code(ResponseCode::TOPIC_NOT_EXIST);
        }
        let brokers: Vec<_> = brokers.iter().map(|(name, addr)| (*name, addr.as_str())).collect();
        route(&brokers, queues)
    })
    .await
}

pub async fn client(namesrv: &str) -> Client {
    Client::start(ClientOptions::new(namesrv).unwrap()).await.unwrap()
}

/// Waits until `what` holds, for at most ten seconds.
pub async fn until(what: impl Fn() -> bool) {
    let wait = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("it never happened");
}
