//! Refusals, and the one place where errors become response codes.

use std::borrow::Cow;

use cometmq_wire::{DecodeError, RequestCode, ResponseCode};

/// An expected answer to a client that is not success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reject {
    pub(crate) code: ResponseCode,
    pub(crate) remark: Cow<'static, str>,
}

impl Reject {
    pub(crate) fn new(code: ResponseCode, remark: impl Into<Cow<'static, str>>) -> Self {
        Self { code, remark: remark.into() }
    }

    pub(crate) fn invalid(remark: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ResponseCode::INVALID_PARAMETER, remark)
    }

    /// Java's words for a request code without a processor.
    pub(crate) fn unsupported(code: i32) -> Self {
        Self::new(ResponseCode::REQUEST_CODE_NOT_SUPPORTED, format!(" request type {code} not supported"))
    }

    /// A feature that this version does not have, met inside of a request that it has.
    pub(crate) fn not_built(what: &str) -> Self {
        Self::new(ResponseCode::REQUEST_CODE_NOT_SUPPORTED, format!("{what} is not supported by this version"))
    }

    pub(crate) fn no_topic(topic: &str) -> Self {
        Self::new(
            ResponseCode::TOPIC_NOT_EXIST,
            format!(
                "topic[{topic}] not exist, apply first please! See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
            ),
        )
    }

    pub(crate) fn no_group(group: &str) -> Self {
        Self::new(
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            format!(
                "subscription group [{group}] does not exist, See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
            ),
        )
    }

    /// A fast port serves all but pulls. Java: the processors that are not registered on it.
    pub(crate) fn wrong_port(code: i32) -> Self {
        let name = RequestCode(code);
        Self::new(
            ResponseCode::REQUEST_CODE_NOT_SUPPORTED,
            format!(" request type {code} not supported on this port ({name} goes to the main port)"),
        )
    }
}

impl From<DecodeError> for Reject {
    /// Header errors are SYSTEM_ERROR in Java (its `RemotingCommandException`); a record that cannot be made is illegal.
    fn from(error: DecodeError) -> Self {
        let code = match &error {
            DecodeError::Record { .. } => ResponseCode::MESSAGE_ILLEGAL,
            _ => ResponseCode::SYSTEM_ERROR,
        };
        Self::new(code, error.to_string())
    }
}

impl From<cometmq_wire::names::NameError> for Reject {
    fn from(error: cometmq_wire::names::NameError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<&cometmq_store::Error> for Reject {
    fn from(error: &cometmq_store::Error) -> Self {
        use cometmq_store::Error as E;
        let code = match error {
            E::DiskFull(_) | E::Poisoned(_) | E::Closed => ResponseCode::SERVICE_NOT_AVAILABLE,
            E::TooLarge { .. } | E::Decode(_) => ResponseCode::MESSAGE_ILLEGAL,
            E::Retired { .. } => ResponseCode::TOPIC_NOT_EXIST,
            E::IndexBehind { .. } => ResponseCode::SYSTEM_BUSY,
            E::Io { .. }
            | E::Locked { .. }
            | E::Layout { .. }
            | E::NotAStore { .. }
            | E::FileSize { .. }
            | E::IndexGeometry { .. } => ResponseCode::SYSTEM_ERROR,
        };
        Self::new(code, error.to_string())
    }
}

impl From<cometmq_store::Error> for Reject {
    fn from(error: cometmq_store::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&std::io::Error> for Reject {
    fn from(error: &std::io::Error) -> Self {
        Self::new(ResponseCode::SYSTEM_ERROR, format!("cannot save the change: {error}"))
    }
}
