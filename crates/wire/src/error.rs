//! What can be wrong with bytes from outside. `FramingError` ends a connection (the start of the next frame is unknown);
//! `DecodeError` is answered and the connection goes on.

/// The byte stream can no longer be cut into frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    #[error("frame length {length} is out of range 4..={max}")]
    FrameLength { length: i64, max: usize },
    #[error("header length {header} does not fit into a frame of {frame} bytes")]
    HeaderLength { header: usize, frame: usize },
    #[error("these are the first bytes of {0}, not of a RocketMQ remoting frame")]
    OtherProtocol(&'static str),
}

/// A well-framed request, record or body whose content does not decode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("serialize type {0} is neither 0 (JSON) nor 1 (ROCKETMQ)")]
    SerializeType(u8),
    #[error("header: {what} at byte {at}")]
    Header { what: &'static str, at: usize },
    #[error("the custom field <{field}> is null")]
    MissingField { field: &'static str },
    #[error("the custom field <{field}> has the value '{value}', expected {expected}")]
    BadField { field: &'static str, value: String, expected: &'static str },
    #[error("record: {what}, {value} (limit {limit})")]
    Record { what: &'static str, value: i64, limit: i64 },
    #[error("body: {0}")]
    Body(String),
}

impl DecodeError {
    /// `value` cut to a length that a remark can carry.
    pub(crate) fn bad_field(field: &'static str, value: &str, expected: &'static str) -> Self {
        Self::BadField { field, value: value.chars().take(64).collect(), expected }
    }
}
