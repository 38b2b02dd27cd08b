//! The last words to a peer whose bytes cannot be cut into frames: an answer in the protocol that it seems to speak.

use cometmq_wire::frame::Builder;
use cometmq_wire::header::SerializeType;
use cometmq_wire::{FramingError, ResponseCode};

pub(crate) fn farewell(error: &FramingError) -> Vec<u8> {
    let sentence = format!("{error}; this port speaks the RocketMQ remoting protocol");
    match error {
        FramingError::OtherProtocol("HTTP") => http(&sentence),
        FramingError::OtherProtocol("HTTP/2") => http2(&sentence),
        // A fatal alert, protocol_version: TLS has no room for a sentence.
        FramingError::OtherProtocol("TLS") => vec![0x15, 3, 1, 0, 2, 2, 70],
        _ => {
            let mut out = Vec::new();
            Builder::response(&mut out, SerializeType::Json, ResponseCode::SYSTEM_ERROR, 0, Some(&sentence)).finish();
            out
        }
    }
}

fn http(sentence: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{sentence}\n",
        sentence.len() + 1
    )
    .into_bytes()
}

/// An empty SETTINGS frame, then GOAWAY (error 0xd, HTTP_1_1_REQUIRED) with the sentence as debug data.
fn http2(sentence: &str) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    let len = 8 + sentence.len() as u32;
    out.extend_from_slice(&len.to_be_bytes()[1..]);
    out.extend_from_slice(&[7, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xd]);
    out.extend_from_slice(sentence.as_bytes());
    out
}
