//! Frames: the unit that a connection carries in both directions.
//!
//! ```text
//! | length 4 | type 1 | header length 3 | header | body |      length = 4 + header + body
//! ```
//!
//! [`decode`] borrows from the read buffer and allocates nothing. [`Builder`] appends one frame to an output buffer;
//! lengths are patched when it is finished, so a body can be written straight behind the header.
//! Java: `NettyDecoder`, `RemotingCommand`.

use crate::header::{self, ExtFields, ExtWriter, Head, Language, SerializeType};
use crate::{DecodeError, FramingError, RequestCode, ResponseCode};

/// Largest value of the length field (`com.rocketmq.remoting.frameMaxLength`), bytes.
pub const FRAME_LENGTH_MAX: usize = 16_777_216;
/// Bytes before the header.
pub const PREFIX: usize = 8;

pub const FLAG_RESPONSE: i32 = 1;
pub const FLAG_ONEWAY: i32 = 2;

/// One frame, borrowed from the buffer it was read into.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub head: Head<'a>,
    pub body: &'a [u8],
}

/// One step of cutting a buffer into frames.
#[derive(Debug)]
pub enum Decoded<'a> {
    /// At least `need` bytes must be there before the next frame is whole.
    Incomplete { need: usize },
    /// A frame of `len` bytes. `Err` = its header does not decode; `opaque` is what could still be found of it.
    Frame { len: usize, frame: Result<Frame<'a>, BadFrame> },
}

/// A well-framed request whose header is broken.
#[derive(Debug, PartialEq, Eq)]
pub struct BadFrame {
    pub opaque: i32,
    pub error: DecodeError,
}

/// Cuts the first frame off `buf`. `max` bounds the length field.
pub fn decode(buf: &[u8], max: usize) -> Result<Decoded<'_>, FramingError> {
    let Some((length, rest)) = split_u32(buf) else {
        return Ok(Decoded::Incomplete { need: PREFIX });
    };
    let frame_len = length as usize;
    if frame_len < 4 || frame_len > max {
        return Err(other_protocol(buf).unwrap_or(FramingError::FrameLength { length: i64::from(length as i32), max }));
    }
    let Some((mark, rest)) = split_u32(rest) else {
        return Ok(Decoded::Incomplete { need: PREFIX });
    };
    let header_len = (mark & 0x00FF_FFFF) as usize;
    if header_len > frame_len - 4 {
        return Err(FramingError::HeaderLength { header: header_len, frame: frame_len });
    }
    let len = frame_len + 4;
    let Some(payload) = rest.get(..frame_len - 4) else {
        return Ok(Decoded::Incomplete { need: len });
    };
    let (header, body) = payload.split_at(header_len);
    let frame = match SerializeType::from_byte((mark >> 24) as u8) {
        Ok(kind) => header::decode(kind, header).map(|head| Frame { head, body }),
        Err(error) => Err(error),
    };
    Ok(Decoded::Frame { len, frame: frame.map_err(|error| BadFrame { opaque: header::find_opaque(header), error }) })
}

/// How an unfinished frame, of which the header is there, is to be answered: type, opaque, whether it is one-way. `None` = the
/// header is not whole, or does not decode.
pub fn head_of_unfinished(buf: &[u8]) -> Option<(SerializeType, i32, bool)> {
    let (_, rest) = split_u32(buf)?;
    let (mark, rest) = split_u32(rest)?;
    let header = rest.get(..(mark & 0x00FF_FFFF) as usize)?;
    let kind = SerializeType::from_byte((mark >> 24) as u8).ok()?;
    let head = header::decode(kind, header).ok()?;
    Some((kind, head.opaque, head.is_oneway()))
}

fn split_u32(buf: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = buf.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*head), rest))
}

/// Names the protocol that somebody speaks to us by mistake. A TLS hello or an HTTP verb read as a length is always
/// out of range, so this costs nothing on the good path.
fn other_protocol(buf: &[u8]) -> Option<FramingError> {
    let verbs: [&[u8]; 8] = [b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN"];
    let first = buf.get(..4)?;
    if first == b"PRI " {
        return Some(FramingError::OtherProtocol("HTTP/2"));
    }
    if verbs.contains(&first) {
        return Some(FramingError::OtherProtocol("HTTP"));
    }
    (first[0] == 0x16 && first[1] == 3).then_some(FramingError::OtherProtocol("TLS"))
}

/// Appends one frame to `out`. Header fields first ([`Builder::ext`]), then the body, then [`Builder::finish`].
pub struct Builder<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    kind: SerializeType,
    tail: Tail,
    header_end: Option<usize>,
    ext_count: usize,
}

/// What the JSON header writes behind its `extFields`.
struct Tail {
    flag: i32,
    language: Language,
    opaque: i32,
    version: i32,
    remark_json: Option<Vec<u8>>,
    compact_ext_len_at: usize,
}

impl<'o> Builder<'o> {
    pub fn request(
        out: &'o mut Vec<u8>,
        kind: SerializeType,
        code: RequestCode,
        opaque: i32,
        flag: i32,
        language: Language,
        version: i32,
    ) -> Self {
        Self::begin(out, kind, code.0, flag, language, opaque, version, None)
    }

    /// An answer. The language is JAVA, as from Apache's server: old clients reject names that they do not know.
    pub fn response(
        out: &'o mut Vec<u8>,
        kind: SerializeType,
        code: ResponseCode,
        opaque: i32,
        remark: Option<&str>,
    ) -> Self {
        Self::begin(out, kind, code.0, FLAG_RESPONSE, Language::JAVA, opaque, crate::version::V5_5_0, remark)
    }

    #[allow(clippy::too_many_arguments)]
    fn begin(
        out: &'o mut Vec<u8>,
        kind: SerializeType,
        code: i32,
        flag: i32,
        language: Language,
        opaque: i32,
        version: i32,
        remark: Option<&str>,
    ) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        let mut tail = Tail { flag, language, opaque, version, remark_json: None, compact_ext_len_at: 0 };
        match kind {
            SerializeType::Json => {
                out.extend_from_slice(b"{\"code\":");
                header::write_int(out, i64::from(code));
                tail.remark_json = remark.map(|text| {
                    let mut quoted = Vec::with_capacity(text.len() + 2);
                    header::write_json_string(&mut quoted, text);
                    quoted
                });
            }
            SerializeType::Compact => {
                out.extend_from_slice(&(code as i16).to_be_bytes());
                out.push(language.0);
                out.extend_from_slice(&(version as i16).to_be_bytes());
                out.extend_from_slice(&opaque.to_be_bytes());
                out.extend_from_slice(&flag.to_be_bytes());
                let remark = remark.unwrap_or_default();
                out.extend_from_slice(&(remark.len() as u32).to_be_bytes());
                out.extend_from_slice(remark.as_bytes());
                tail.compact_ext_len_at = out.len();
                out.extend_from_slice(&[0; 4]);
            }
        }
        Self { out, start, kind, tail, header_end: None, ext_count: 0 }
    }

    /// Writes header fields; may be called several times before the first body byte.
    pub fn ext(mut self, fields: impl FnOnce(&mut ExtWriter<'_>)) -> Self {
        assert!(self.header_end.is_none(), "header fields come before the body");
        if self.kind == SerializeType::Json && self.ext_count == 0 {
            self.out.extend_from_slice(b",\"extFields\":{");
        }
        let mut writer = ExtWriter::new(self.out, self.kind, self.ext_count);
        fields(&mut writer);
        self.ext_count = writer.count();
        if self.kind == SerializeType::Json && self.ext_count == 0 {
            self.out.truncate(self.out.len() - b",\"extFields\":{".len());
        }
        self
    }

    fn close_header(&mut self) {
        if self.header_end.is_some() {
            return;
        }
        match self.kind {
            SerializeType::Json => {
                if self.ext_count > 0 {
                    self.out.push(b'}');
                }
                self.out.extend_from_slice(b",\"flag\":");
                header::write_int(self.out, i64::from(self.tail.flag));
                self.out.extend_from_slice(b",\"language\":\"");
                self.out.extend_from_slice(self.tail.language.name().as_bytes());
                self.out.extend_from_slice(b"\",\"opaque\":");
                header::write_int(self.out, i64::from(self.tail.opaque));
                if let Some(remark) = &self.tail.remark_json {
                    self.out.extend_from_slice(b",\"remark\":");
                    self.out.extend_from_slice(remark);
                }
                self.out.extend_from_slice(b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
                header::write_int(self.out, i64::from(self.tail.version));
                self.out.push(b'}');
            }
            SerializeType::Compact => {
                let at = self.tail.compact_ext_len_at;
                let len = (self.out.len() - at - 4) as u32;
                self.out[at..at + 4].copy_from_slice(&len.to_be_bytes());
            }
        }
        self.header_end = Some(self.out.len());
    }

    /// Appends body bytes; may be called several times.
    pub fn body(mut self, bytes: &[u8]) -> Self {
        self.close_header();
        self.out.extend_from_slice(bytes);
        self
    }

    /// Patches the lengths. The frame is whole afterwards.
    pub fn finish(mut self) {
        self.close_header();
        let header_end = self.header_end.unwrap_or(self.out.len());
        let total = (self.out.len() - self.start - 4) as u32;
        let header = (header_end - self.start - PREFIX) as u32 | (u32::from(self.kind.byte()) << 24);
        self.out[self.start..self.start + 4].copy_from_slice(&total.to_be_bytes());
        self.out[self.start + 4..self.start + 8].copy_from_slice(&header.to_be_bytes());
    }
}

/// A frame that owns its bytes: what outlives the read buffer (answers on the client side, requests that wait).
#[derive(Debug, Clone)]
pub struct OwnedFrame {
    bytes: Vec<u8>,
}

impl OwnedFrame {
    /// `bytes` is exactly one whole frame whose header decodes.
    pub fn new(bytes: Vec<u8>) -> Result<Self, DecodeError> {
        match decode(&bytes, FRAME_LENGTH_MAX) {
            Ok(Decoded::Frame { len, frame: Ok(_) }) if len == bytes.len() => Ok(Self { bytes }),
            Ok(Decoded::Frame { frame: Err(bad), .. }) => Err(bad.error),
            _ => Err(DecodeError::Header { what: "not exactly one frame", at: 0 }),
        }
    }

    pub fn frame(&self) -> Frame<'_> {
        match decode(&self.bytes, FRAME_LENGTH_MAX) {
            Ok(Decoded::Frame { frame: Ok(frame), .. }) => frame,
            _ => unreachable!("checked in new"),
        }
    }

    pub fn body(&self) -> &[u8] {
        self.frame().body
    }

    pub fn code(&self) -> ResponseCode {
        ResponseCode(self.frame().head.code)
    }

    pub fn ext(&self) -> ExtFields<'_> {
        self.frame().head.ext
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::SerializeType::{Compact, Json};
    use proptest::prelude::*;

    fn one(bytes: &[u8]) -> Frame<'_> {
        match decode(bytes, FRAME_LENGTH_MAX) {
            Ok(Decoded::Frame { len, frame: Ok(frame) }) => {
                assert_eq!(len, bytes.len());
                frame
            }
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn round_trip(compact: bool, code in 0..30000i32, opaque: i32, oneway: bool, version in 0..600i32,
                      fields in prop::collection::vec(("[a-zA-Z]{1,12}", "\\PC{1,20}|[\u{1}\u{2}\"\\\\]{1,4}"), 0..6),
                      body in prop::collection::vec(any::<u8>(), 0..200)) {
            let kind = if compact { Compact } else { Json };
            let flag = if oneway { FLAG_ONEWAY } else { 0 };
            let mut out = vec![1, 2, 3];
            Builder::request(&mut out, kind, RequestCode(code), opaque, flag, Language::RUST, version)
                .ext(|w| for (k, v) in &fields { w.str(k, v) })
                .body(&body)
                .finish();
            let frame = one(&out[3..]);
            prop_assert_eq!(frame.head.code, code);
            prop_assert_eq!(frame.head.opaque, opaque);
            prop_assert_eq!(frame.head.is_oneway(), oneway);
            prop_assert_eq!(frame.head.version, version);
            prop_assert_eq!(frame.head.language, Language::RUST);
            prop_assert_eq!(frame.body, &body[..]);
            let seen: Vec<(String, String)> = frame.head.ext.iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
            prop_assert_eq!(seen, fields);
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode(&bytes, FRAME_LENGTH_MAX);
            let mut framed = (bytes.len() as u32 + 4).to_be_bytes().to_vec();
            for kind in [0u8, 1] {
                framed.truncate(4);
                framed.extend((bytes.len() as u32 | u32::from(kind) << 24).to_be_bytes());
                framed.extend(&bytes);
                if let Ok(Decoded::Frame { frame: Ok(frame), .. }) = decode(&framed, FRAME_LENGTH_MAX) {
                    for _ in frame.head.ext.iter() {}
                }
            }
        }
    }

    #[test]
    fn response_is_what_java_writes() {
        let mut out = Vec::new();
        Builder::response(&mut out, Json, ResponseCode(17), 4711, Some("no \"x\"")).finish();
        assert_eq!(
            std::str::from_utf8(&out[8..]).unwrap(),
            r#"{"code":17,"flag":1,"language":"JAVA","opaque":4711,"remark":"no \"x\"","serializeTypeCurrentRPC":"JSON","version":513}"#
        );
    }

    #[test]
    fn framing_errors() {
        let max = FRAME_LENGTH_MAX;
        let err = |b: &[u8]| decode(b, max).map(|_| ()).unwrap_err();
        assert_eq!(err(&[0x7f, 0, 0, 0, 1]), FramingError::FrameLength { length: 0x7f00_0000, max });
        assert_eq!(err(&[0xff; 8]), FramingError::FrameLength { length: -1, max });
        assert_eq!(err(&[0, 0, 0, 3, 0]), FramingError::FrameLength { length: 3, max });
        assert_eq!(err(&[0, 0, 0, 8, 0, 0, 0, 100, 1]), FramingError::HeaderLength { header: 100, frame: 8 });
        assert_eq!(err(b"GET / HTTP/1.1\r\n"), FramingError::OtherProtocol("HTTP"));
        assert_eq!(err(b"PRI * HTTP/2.0\r\n"), FramingError::OtherProtocol("HTTP/2"));
        assert_eq!(err(&[0x16, 3, 1, 2, 0, 1]), FramingError::OtherProtocol("TLS"));
    }

    #[test]
    fn a_bad_header_keeps_its_opaque() {
        let text = br#"{"code":1x,"opaque":77}"#;
        let mut bytes = (text.len() as u32 + 4).to_be_bytes().to_vec();
        bytes.extend((text.len() as u32).to_be_bytes());
        bytes.extend(text);
        match decode(&bytes, FRAME_LENGTH_MAX).unwrap() {
            Decoded::Frame { frame: Err(bad), .. } => assert_eq!(bad.opaque, 77),
            other => panic!("{other:?}"),
        }
    }
}
