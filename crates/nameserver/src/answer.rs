//! What a request ends in, an [`Answer`] or a [`Reject`], and its way onto the wire.

use cometmq_wire::frame::{Builder, FRAME_LENGTH_MAX};
use cometmq_wire::header::{ExtWriter, SerializeType};
use cometmq_wire::{DecodeError, ResponseCode};

use crate::Error;

/// Room that a frame keeps for its header.
const HEADER_ROOM: usize = 64 * 1024;

type Fields = Box<dyn FnOnce(&mut ExtWriter<'_>) + Send>;

/// SUCCESS, with what belongs to it.
#[derive(Default)]
pub(crate) struct Answer {
    fields: Option<Fields>,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn body(body: Vec<u8>) -> Self {
        Self { body, ..Self::default() }
    }

    pub(crate) fn fields(fields: impl FnOnce(&mut ExtWriter<'_>) + Send + 'static) -> Self {
        Self { fields: Some(Box::new(fields)), body: Vec::new() }
    }

    pub(crate) fn with_body(mut self, body: Option<Vec<u8>>) -> Self {
        self.body = body.unwrap_or_default();
        self
    }
}

/// An expected answer that is not SUCCESS.
#[derive(Debug)]
pub(crate) struct Reject {
    pub(crate) code: ResponseCode,
    pub(crate) remark: String,
}

impl Reject {
    pub(crate) fn new(code: ResponseCode, remark: impl Into<String>) -> Self {
        Self { code, remark: remark.into() }
    }

    pub(crate) fn system_error(remark: impl Into<String>) -> Self {
        Self::new(ResponseCode::SYSTEM_ERROR, remark)
    }
}

impl From<DecodeError> for Reject {
    fn from(error: DecodeError) -> Self {
        Self::system_error(error.to_string())
    }
}

/// A write that failed: a human must look at the disk.
impl From<Error> for Reject {
    fn from(error: Error) -> Self {
        tracing::error!(%error, "a change could not be stored");
        Self::system_error(error.to_string())
    }
}

/// Appends the answer to request `opaque`, in the serialisation the request had.
pub(crate) fn write(out: &mut Vec<u8>, kind: SerializeType, opaque: i32, outcome: Result<Answer, Reject>) {
    let reject = match outcome {
        Ok(Answer { fields, body }) if body.len() <= FRAME_LENGTH_MAX - HEADER_ROOM => {
            let builder = Builder::response(out, kind, ResponseCode::SUCCESS, opaque, None);
            let builder = if let Some(fields) = fields { builder.ext(fields) } else { builder };
            return builder.body(&body).finish();
        }
        Ok(Answer { body, .. }) => {
            Reject::system_error(format!("an answer of {} bytes does not fit into a frame", body.len()))
        }
        Err(reject) => reject,
    };
    Builder::response(out, kind, reject.code, opaque, Some(&reject.remark)).finish();
}
