//! What can go wrong in a call. Each variant carries the facts that a log line needs: topic, queue, address, code, remark.

use std::time::Duration;

use cometmq_wire::names::NameError;
use cometmq_wire::{DecodeError, RequestCode, ResponseCode};

use crate::compression::BodyError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("option {name} = {value}: {why}")]
    Option { name: &'static str, value: String, why: &'static str },
    /// A topic or group name that no broker accepts.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The message was refused before anything was sent.
    #[error("message for topic {topic}: {why}")]
    Message { topic: String, why: String },
    #[error("no name server of {asked} knows topic {topic}")]
    NoRoute { topic: String, asked: String },
    #[error("topic {topic} has no queue that is open for {operation}")]
    NoQueue { topic: String, operation: &'static str },
    #[error("broker {broker} has no address in the route of topic {topic}")]
    NoBroker { broker: String, topic: String },
    /// The peer answered, and not with SUCCESS.
    #[error("{addr} answered {request} for {target} with {code}: {remark}")]
    Answer { addr: String, request: RequestCode, target: String, code: ResponseCode, remark: String },
    /// No answer came: the connection could not be opened or was lost, or the time ran out.
    #[error("{request} for {target} at {addr}: {source}")]
    Network { addr: String, request: RequestCode, target: String, source: cometmq_net::Error },
    #[error("{request} for {target} at {addr}: the answer does not decode: {source}")]
    Decode { addr: String, request: RequestCode, target: String, source: DecodeError },
    /// The time limit of the whole call, retries included.
    #[error("{what} took longer than {limit:?}{}", last.as_ref().map(|e| format!("; before that: {e}")).unwrap_or_default())]
    Timeout { what: String, limit: Duration, last: Option<Box<Error>> },
    #[error("topic {topic}: {tries} tries failed, at {brokers}; the last: {last}")]
    Retries { topic: String, tries: u32, brokers: String, last: Box<Error> },
    #[error(
        "the {kind} group {group} has been created before in this client: use another group name, or another client"
    )]
    GroupExists { kind: &'static str, group: String },
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("the client or consumer is shut down")]
    ShutDown,
}

/// Codes after which the same send may succeed at another broker. Java: `DefaultMQProducer.retryResponseCodes`.
const RETRYABLE: [ResponseCode; 8] = [
    ResponseCode::SYSTEM_ERROR,
    ResponseCode::SYSTEM_BUSY,
    ResponseCode::SERVICE_NOT_AVAILABLE,
    ResponseCode::NO_PERMISSION,
    ResponseCode::TOPIC_NOT_EXIST,
    ResponseCode::NO_BUYER_ID,
    ResponseCode::NOT_IN_CURRENT_UNIT,
    ResponseCode::GO_AWAY,
];

impl Error {
    /// Whether the same call may succeed later, or at another broker.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Answer { code, .. } => RETRYABLE.contains(code) || *code == ResponseCode::FLOW_CONTROL,
            Self::Network { .. } | Self::Timeout { .. } | Self::NoBroker { .. } => true,
            Self::Retries { last, .. } => last.is_retryable(),
            _ => false,
        }
    }

    /// The code that a peer answered with, where one did.
    pub fn code(&self) -> Option<ResponseCode> {
        match self {
            Self::Answer { code, .. } => Some(*code),
            Self::Retries { last, .. } => last.code(),
            Self::Timeout { last: Some(last), .. } => last.code(),
            _ => None,
        }
    }
}
