//! One request and its answer, with errors that say what it was about.

use std::fmt;
use std::time::Duration;

use cometmq_net::Outgoing;
use cometmq_wire::body::MessageQueue;
use cometmq_wire::frame::OwnedFrame;
use cometmq_wire::header::ExtWriter;
use cometmq_wire::{DecodeError, RequestCode, ResponseCode};

use crate::{Client, Error};

/// What a request is about; becomes text only in an error.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    Topic(&'a str),
    Group(&'a str),
    Queue(&'a MessageQueue),
    Cluster,
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic(topic) => write!(f, "topic {topic}"),
            Self::Group(group) => write!(f, "group {group}"),
            Self::Queue(q) => write!(f, "queue {}@{}:{}", q.topic, q.broker_name, q.queue_id),
            Self::Cluster => f.write_str("the cluster"),
        }
    }
}

/// Where a request goes and what it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub addr: &'a str,
    pub code: RequestCode,
    pub target: Target<'a>,
}

impl Call<'_> {
    /// Sends the request and takes its answer, whatever its code. `limit` covers connecting, too.
    pub(crate) async fn send(
        self,
        client: &Client,
        ext: impl FnOnce(&mut ExtWriter<'_>) + Send,
        body: &[u8],
        limit: Duration,
    ) -> Result<OwnedFrame, Error> {
        let request = Outgoing::new(self.code, ext).body(body);
        let answer = tokio::time::timeout(limit, client.remotes().call(self.addr, request, limit)).await;
        let timed_out = |_| {
            Err(cometmq_net::Error::Timeout {
                addr: self.addr.to_string(),
                timeout: limit,
                what: "connect and request",
            })
        };
        answer.unwrap_or_else(timed_out).map_err(|source| self.network(source))
    }

    /// The same, where only SUCCESS is an answer.
    pub(crate) async fn ok(
        self,
        client: &Client,
        ext: impl FnOnce(&mut ExtWriter<'_>) + Send,
        body: &[u8],
        limit: Duration,
    ) -> Result<OwnedFrame, Error> {
        let answer = self.send(client, ext, body, limit).await?;
        if answer.code() == ResponseCode::SUCCESS { Ok(answer) } else { Err(self.refused(&answer)) }
    }

    pub(crate) fn network(self, source: cometmq_net::Error) -> Error {
        let Self { addr, code, target } = self;
        Error::Network { addr: addr.to_string(), request: code, target: target.to_string(), source }
    }

    pub(crate) fn refused(self, answer: &OwnedFrame) -> Error {
        Error::Answer {
            addr: self.addr.to_string(),
            request: self.code,
            target: self.target.to_string(),
            code: answer.code(),
            remark: answer.frame().head.remark().unwrap_or_default().into_owned(),
        }
    }

    pub(crate) fn decoded<T>(self, result: Result<T, DecodeError>) -> Result<T, Error> {
        let Self { addr, code, target } = self;
        result.map_err(|source| Error::Decode {
            addr: addr.to_string(),
            request: code,
            target: target.to_string(),
            source,
        })
    }
}
