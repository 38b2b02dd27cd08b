//! A connection's bytes, cut into frames as they arrive. Input: one byte that says how long the pieces are, the stream.
//! Checked: pieces and the whole stream give the same frames; a frame makes progress; `need` asks for more than is there.
#![no_main]

use cometmq_fuzz::bounded;
use cometmq_wire::frame::{Decoded, FRAME_LENGTH_MAX, Frame, OwnedFrame, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&piece, stream)) = input.split_first() else { return };
    // The carry holds what is left of a stream: a copy of the input, and twice that while it grows.
    let in_pieces = bounded(stream.len(), 3, || pieces(stream, usize::from(piece) + 1));
    let mut whole = Vec::new();
    let rest = cut(stream, &mut whole);
    if rest.is_some() {
        assert_eq!(in_pieces.0, whole.len());
    }
    assert_eq!(in_pieces.1, rest.is_none());
    for bytes in whole {
        if let Ok(owned) = OwnedFrame::new(bytes.to_vec()) {
            look(&owned.frame());
        }
    }
});

/// As the net crate's `turn`: what does not make a frame is carried. Returns frames, and whether the stream broke.
fn pieces(stream: &[u8], len: usize) -> (usize, bool) {
    let mut carry = Vec::new();
    let mut frames = 0;
    for piece in stream.chunks(len) {
        carry.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match decode(&carry[at..], FRAME_LENGTH_MAX) {
                Ok(Decoded::Frame { len, frame }) => {
                    at += len;
                    frames += 1;
                    if let Ok(frame) = frame {
                        look(&frame);
                    }
                }
                Ok(Decoded::Incomplete { .. }) => break,
                Err(_) => return (frames, true),
            }
        }
        carry.drain(..at);
    }
    (frames, false)
}

/// All frames of `stream`; the bytes behind them, or none if the stream broke.
fn cut<'s>(mut stream: &'s [u8], frames: &mut Vec<&'s [u8]>) -> Option<&'s [u8]> {
    loop {
        match decode(stream, FRAME_LENGTH_MAX) {
            Ok(Decoded::Frame { len, .. }) => {
                let (frame, rest) = stream.split_at(len);
                assert!(len >= 8);
                frames.push(frame);
                stream = rest;
            }
            Ok(Decoded::Incomplete { need }) => {
                assert!(need > stream.len() && need <= FRAME_LENGTH_MAX + 4);
                return Some(stream);
            }
            Err(error) => {
                let _ = error.to_string();
                return None;
            }
        }
    }
}

fn look(frame: &Frame<'_>) {
    let _ = frame.head.remark();
    let mut fields = frame.head.ext.iter();
    for _ in fields.by_ref() {}
    let _ = fields.finish();
    let _ =
        (frame.head.ext.find("topic"), frame.head.is_oneway(), frame.head.is_response(), frame.head.language.name());
}
