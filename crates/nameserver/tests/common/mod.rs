//! A name server on port 0 with its files in a temp dir, and brokers and clients on real sockets.
#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_base::config::{Config, Role};
use cometmq_nameserver::{NameServer, Options};
use cometmq_net::{Outgoing, Remotes};
use cometmq_wire::RequestCode;
use cometmq_wire::body::{DataVersion, RegisterBrokerBody, TopicConfig, register};
use cometmq_wire::frame::{self, Builder, Decoded, FRAME_LENGTH_MAX, OwnedFrame};
use cometmq_wire::header::{ExtWriter, Language, SerializeType};
use cometmq_wire::headers::RegisterBroker;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const SOON: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_millis(50);

pub struct Fixture {
    pub server: NameServer,
    pub clock: Clock,
    pub client: Remotes,
    dir: tempfile::TempDir,
}

impl Fixture {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(set: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_750_000_000_000);
        let server = start(dir.path(), &clock, set);
        Self { server, clock, client: Remotes::default(), dir }
    }

    /// Stops it and starts another one on the same files.
    pub fn restart(self) -> Self {
        let Self { server, clock, client, dir } = self;
        client.shutdown();
        server.stop(GRACE);
        let server = start(dir.path(), &clock, &[]);
        Self { server, clock, client: Remotes::default(), dir }
    }

    pub fn stop(self) {
        self.client.shutdown();
        self.server.stop(GRACE);
    }

    pub fn addr(&self) -> String {
        self.server.addr().to_string()
    }

    pub fn kv_config_path(&self) -> PathBuf {
        kv_config_path(self.dir.path())
    }

    pub async fn call(&self, code: RequestCode, fields: &[(&str, &str)], body: &[u8]) -> OwnedFrame {
        call(&self.client, &self.addr(), code, fields, body).await
    }

    pub async fn register(&self, broker: &Broker) -> OwnedFrame {
        broker.register(&self.client, &self.addr()).await
    }
}

fn kv_config_path(dir: &Path) -> PathBuf {
    dir.join("namesrv/kvConfig.json")
}

fn start(dir: &Path, clock: &Clock, set: &[(&str, &str)]) -> NameServer {
    let mut config = Config::new(Role::NameServer);
    for (key, value) in set {
        config.set(key, value).unwrap();
    }
    let listen = "127.0.0.1:0".parse().unwrap();
    NameServer::start(Options { listen, kv_config_path: kv_config_path(dir), config, clock: clock.clone() }).unwrap()
}

pub async fn call(
    remotes: &Remotes,
    addr: &str,
    code: RequestCode,
    fields: &[(&str, &str)],
    body: &[u8],
) -> OwnedFrame {
    let write = |out: &mut ExtWriter<'_>| fields.iter().for_each(|(key, value)| out.str(key, value));
    remotes.call(addr, Outgoing::new(code, write).body(body), SOON).await.unwrap()
}

/// Code and remark.
pub fn refusal(answer: &OwnedFrame) -> (i32, String) {
    (answer.code().0, answer.frame().head.remark().unwrap_or_default().into_owned())
}

pub fn text(answer: &OwnedFrame) -> &str {
    assert_eq!(refusal(answer), (0, String::new()));
    std::str::from_utf8(answer.body()).unwrap()
}

/// A broker as the name server sees one.
#[derive(Clone)]
pub struct Broker {
    pub name: &'static str,
    pub id: i64,
    pub addr: &'static str,
    pub topics: &'static [&'static str],
    pub data_version: DataVersion,
    pub compressed: bool,
    pub crc32: Option<i32>,
}

impl Broker {
    pub fn new(name: &'static str, addr: &'static str, topics: &'static [&'static str]) -> Self {
        let data_version = DataVersion { counter: 1, state_version: 0, timestamp: 1_750_000_000_000 };
        Self { name, id: 0, addr, topics, data_version, compressed: false, crc32: None }
    }

    pub async fn register(&self, remotes: &Remotes, namesrv: &str) -> OwnedFrame {
        let mut body = RegisterBrokerBody::default();
        let table = &mut body.topic_config_serialize_wrapper;
        table.data_version = self.data_version;
        for topic in self.topics {
            table.topic_config_table.insert((*topic).to_owned(), TopicConfig::new(topic, 4, 6));
        }
        let body = body.encode(self.compressed);
        let crc = self.crc32.unwrap_or_else(|| register::crc32(&body));
        let header = RegisterBroker::new(
            self.name.into(),
            self.addr.into(),
            "c1".into(),
            "10.0.0.1:10912".into(),
            self.id,
            None,
            Some(false),
            Some(self.compressed),
            Some(crc),
        );
        let request = Outgoing::new(RequestCode::REGISTER_BROKER, |out| header.write(out)).body(&body);
        remotes.call(namesrv, request, SOON).await.unwrap()
    }

    pub fn identity(&self) -> [(&'static str, &'static str); 4] {
        [("brokerName", self.name), ("brokerAddr", self.addr), ("clusterName", "c1"), ("brokerId", "0")]
    }
}

/// A connection that sends whatever bytes it is given.
pub struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Raw {
    pub async fn connect(addr: &str) -> Self {
        Self { stream: TcpStream::connect(addr).await.unwrap(), unread: Vec::new() }
    }

    /// The next one that connects to us.
    pub async fn accept(listener: &TcpListener) -> Self {
        let accepted = tokio::time::timeout(SOON, listener.accept()).await.expect("nobody connects");
        Self { stream: accepted.unwrap().0, unread: Vec::new() }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next frame; `None` = the server closed the connection.
    pub async fn receive(&mut self) -> Option<OwnedFrame> {
        loop {
            if let Ok(Decoded::Frame { len, frame: Ok(_) }) = frame::decode(&self.unread, FRAME_LENGTH_MAX) {
                return Some(OwnedFrame::new(self.unread.drain(..len).collect()).unwrap());
            }
            let read = tokio::time::timeout(SOON, self.stream.read_buf(&mut self.unread)).await;
            match read.expect("neither an answer nor an end") {
                Ok(n) if n > 0 => {}
                _ => return None,
            }
        }
    }
}

/// A request of protocol version `version`.
pub fn request(
    kind: SerializeType,
    code: i32,
    opaque: i32,
    flag: i32,
    version: i32,
    fields: &[(&str, &str)],
) -> Vec<u8> {
    let mut out = Vec::new();
    Builder::request(&mut out, kind, RequestCode(code), opaque, flag, Language::GO, version)
        .ext(|w| fields.iter().for_each(|(key, value)| w.str(key, value)))
        .finish();
    out
}

/// A frame around `header`, whatever that is.
pub fn framed(kind: u8, header: &[u8]) -> Vec<u8> {
    let mut out = (header.len() as u32 + 4).to_be_bytes().to_vec();
    out.extend((header.len() as u32 | u32::from(kind) << 24).to_be_bytes());
    out.extend(header);
    out
}
