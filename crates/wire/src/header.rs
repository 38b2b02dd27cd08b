//! The two header serialisations, decoded in place.
//!
//! JSON      `{"code":..,"extFields":{..},"flag":..,"language":"..","opaque":..,"remark":"..","version":..}`, any order, unknown keys skipped
//! ROCKETMQ  code 2, language 1, version 2, opaque 4, flag 4, remark 4+n, ext 4+n of (key 2+n, value 4+n)
//!
//! [`ExtFields`] is a view: iterating it allocates only where a JSON string has escapes.
//! Java: `RemotingCommand`, `RocketMQSerializable`, `RemotingSerializable`.

mod scan;
mod write;

use std::borrow::Cow;

use crate::DecodeError;
use crate::frame::{FLAG_ONEWAY, FLAG_RESPONSE};
use scan::{RawStr, Scan};
pub use write::ExtWriter;
pub(crate) use write::{write_int, write_json_string};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SerializeType {
    Json,
    /// Java's `ROCKETMQ`, the binary header.
    Compact,
}

impl SerializeType {
    pub(crate) fn from_byte(byte: u8) -> Result<Self, DecodeError> {
        match byte {
            0 => Ok(Self::Json),
            1 => Ok(Self::Compact),
            other => Err(DecodeError::SerializeType(other)),
        }
    }

    pub(crate) fn byte(self) -> u8 {
        self as u8
    }
}

/// Java: `LanguageCode`, by its byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Language(pub u8);

impl Language {
    pub const JAVA: Self = Self(0);
    pub const CPP: Self = Self(1);
    pub const OTHER: Self = Self(7);
    pub const GO: Self = Self(9);
    pub const RUST: Self = Self(12);
    const NAMES: [&'static str; 14] = [
        "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
        "NODE_JS",
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).copied().unwrap_or("OTHER")
    }

    fn from_name(name: &str) -> Self {
        Self::NAMES.iter().position(|n| *n == name).map_or(Self::OTHER, |i| Self(i as u8))
    }
}

/// A decoded header. `ext` and `remark` borrow from the frame.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub kind: SerializeType,
    pub code: i32,
    pub language: Language,
    pub version: i32,
    pub opaque: i32,
    pub flag: i32,
    pub ext: ExtFields<'a>,
    remark: Option<RawStr<'a>>,
}

impl<'a> Head<'a> {
    pub fn is_response(&self) -> bool {
        self.flag & FLAG_RESPONSE != 0
    }

    pub fn is_oneway(&self) -> bool {
        self.flag & FLAG_ONEWAY != 0
    }

    pub fn remark(&self) -> Option<Cow<'a, str>> {
        self.remark.map(RawStr::unescape)
    }
}

/// The custom fields of a header: a view. An iteration ends at the first thing that is no field ([`ExtIter::finish`]).
#[derive(Debug, Clone, Copy)]
pub enum ExtFields<'a> {
    None,
    /// What stands between the braces.
    Json(&'a str),
    Compact(&'a [u8]),
}

impl<'a> ExtFields<'a> {
    pub fn iter(&self) -> ExtIter<'a> {
        ExtIter { rest: *self }
    }

    /// The first value of `key`. Linear: for rare fields.
    pub fn find(&self, key: &str) -> Option<Cow<'a, str>> {
        self.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }
}

pub struct ExtIter<'a> {
    rest: ExtFields<'a>,
}

impl ExtIter<'_> {
    /// Fails if the iteration ended at something that is no field.
    pub fn finish(self) -> Result<(), DecodeError> {
        let rest = match self.rest {
            ExtFields::None => 0,
            ExtFields::Json(text) => text.trim_ascii().len(),
            ExtFields::Compact(bytes) => bytes.len(),
        };
        if rest == 0 {
            Ok(())
        } else {
            Err(DecodeError::Header { what: "extFields: not a list of keys and texts, from its end", at: rest })
        }
    }
}

impl<'a> Iterator for ExtIter<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        match self.rest {
            ExtFields::None => None,
            ExtFields::Json(text) => {
                let mut scan = Scan { text, at: 0 };
                loop {
                    scan.skip_space();
                    if scan.peek() == Some(b',') {
                        scan.at += 1;
                        scan.skip_space();
                    }
                    let key = scan.string().ok()?;
                    scan.expect(b':').ok()?;
                    let value = scan.ext_value().ok()?;
                    self.rest = ExtFields::Json(scan.text.get(scan.at..)?);
                    if let Some(value) = value {
                        return Some((key.unescape(), value.unescape()));
                    }
                }
            }
            ExtFields::Compact(bytes) => {
                let (key, rest) = split_text(bytes, 2)?;
                let (value, rest) = split_text(rest, 4)?;
                self.rest = ExtFields::Compact(rest);
                Some((Cow::Borrowed(key), Cow::Borrowed(value)))
            }
        }
    }
}

/// A text behind its length of `width` bytes (2 or 4).
fn split_text(bytes: &[u8], width: usize) -> Option<(&str, &[u8])> {
    let (len, rest) = bytes.split_at_checked(width)?;
    let len = len.iter().fold(0usize, |n, b| n << 8 | usize::from(*b));
    let (text, rest) = rest.split_at_checked(len)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

pub(crate) fn decode(kind: SerializeType, header: &[u8]) -> Result<Head<'_>, DecodeError> {
    match kind {
        SerializeType::Json => decode_json(header),
        SerializeType::Compact => decode_compact(header),
    }
}

fn decode_json(header: &[u8]) -> Result<Head<'_>, DecodeError> {
    let text =
        std::str::from_utf8(header).map_err(|e| DecodeError::Header { what: "not UTF-8", at: e.valid_up_to() })?;
    let mut scan = Scan { text, at: 0 };
    let mut head = Head {
        kind: SerializeType::Json,
        code: 0,
        language: Language::JAVA,
        version: 0,
        opaque: 0,
        flag: 0,
        ext: ExtFields::None,
        remark: None,
    };
    if let Some((code, ext, after)) = as_fastjson_writes(text) {
        (head.code, head.ext, scan.at) = (code, ext, after);
    } else {
        scan.expect(b'{')?;
        scan.skip_space();
        if scan.peek() == Some(b'}') {
            return Ok(head);
        }
    }
    loop {
        scan.skip_space();
        let key = scan.string()?;
        scan.expect(b':')?;
        match key.raw {
            "code" => head.code = scan.int()?,
            "flag" => head.flag = scan.int()?,
            "opaque" => head.opaque = scan.int()?,
            "version" => head.version = scan.int()?,
            "language" => head.language = scan.ext_value()?.map_or(Language::OTHER, |v| Language::from_name(v.raw)),
            "remark" => head.remark = scan.ext_value()?,
            "extFields" => head.ext = scan.ext_fields()?,
            _ => scan.skip_value(0)?,
        }
        scan.skip_space();
        match scan.next() {
            Some(b',') => {}
            Some(b'}') => break,
            _ => return Err(scan.fail("expected ',' or '}'")),
        }
    }
    scan.skip_space();
    if scan.peek().is_some() { Err(scan.fail("text behind the header object")) } else { Ok(head) }
}

/// The start of a header in the order that Java and most others write: code, extFields, then flag. Returns code, fields and
/// where the key `flag` starts. The bytes `},"flag":` cannot stand inside of a string (its quotes would be escaped), so the
/// fields need not be looked at to find their end; who reads them finds out whether they are well-formed.
fn as_fastjson_writes(text: &str) -> Option<(i32, ExtFields<'_>, usize)> {
    let rest = text.strip_prefix("{\"code\":")?;
    let (code, rest) = rest.split_once(',')?;
    let fields = rest.strip_prefix("\"extFields\":{")?;
    let end = memchr::memmem::rfind(fields.as_bytes(), b"},\"flag\":")?;
    let (fields, _) = fields.split_at_checked(end)?;
    let after = text.len() - rest.len() + "\"extFields\":{".len() + end + "},".len();
    let ext = if fields.is_empty() { ExtFields::None } else { ExtFields::Json(fields) };
    Some((code.parse().ok()?, ext, after))
}

fn decode_compact(header: &[u8]) -> Result<Head<'_>, DecodeError> {
    let short = || DecodeError::Header { what: "binary header is shorter than its fields", at: header.len() };
    let (fixed, rest) = header.split_first_chunk::<13>().ok_or_else(short)?;
    let int = |at: usize| i32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let (remark, rest) = split_text(rest, 4).ok_or_else(short)?;
    let (len, ext) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let ext = ext.get(..u32::from_be_bytes(*len) as usize).ok_or_else(short)?;
    let mut check = ext;
    while !check.is_empty() {
        let (_, rest) = split_text(check, 2).ok_or_else(short)?;
        check = split_text(rest, 4).ok_or_else(short)?.1;
    }
    Ok(Head {
        kind: SerializeType::Compact,
        code: i32::from(i16::from_be_bytes([fixed[0], fixed[1]])),
        language: Language(fixed[2]),
        version: i32::from(i16::from_be_bytes([fixed[3], fixed[4]])),
        opaque: int(5),
        flag: int(9),
        ext: if ext.is_empty() { ExtFields::None } else { ExtFields::Compact(ext) },
        remark: (!remark.is_empty()).then_some(RawStr { raw: remark, escaped: false }),
    })
}

/// The opaque of a header that does not decode, as far as it can be found; 0 otherwise.
pub(crate) fn find_opaque(header: &[u8]) -> i32 {
    let key = b"\"opaque\":";
    let found = memchr::memmem::find(header, key).and_then(|i| header.get(i + key.len()..));
    let digits = found.map(|rest| {
        let end = rest.iter().position(|b| !b.is_ascii_digit() && *b != b'-').unwrap_or(rest.len());
        &rest[..end]
    });
    digits.and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| d.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_any_order_with_unknown_keys() {
        let text = br#" { "x":[1,{"y":"}"}], "version" : 513, "extFields":{"topic":"T\u00e9\ud83d\ude00\n","n":12,"b":true,"z":null}, "opaque":-7,"flag":2,"code":105,"language":"GO","remark":null } "#;
        let head = decode(SerializeType::Json, text).unwrap();
        assert_eq!((head.code, head.opaque, head.flag, head.version), (105, -7, 2, 513));
        assert_eq!(head.language, Language::GO);
        assert!(head.is_oneway() && !head.is_response());
        assert_eq!(head.remark(), None);
        let fields: Vec<_> = head.ext.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(fields, ["topic=Té😀\n", "n=12", "b=true"]);
        assert_eq!(head.ext.find("n").as_deref(), Some("12"));
        assert_eq!(head.ext.find("z"), None);
    }

    #[test]
    fn the_usual_order_takes_the_short_way_and_means_the_same() {
        let fields = r#""a":"x","i":"K\u0001},\"flag\":9\u0002","e":"-3""#;
        let tail = r#""flag":2,"language":"JAVA","opaque":5,"serializeTypeCurrentRPC":"JSON","version":475}"#;
        let usual = format!(r#"{{"code":310,"extFields":{{{fields}}},{tail}"#);
        let other = format!(r#"{{ "code":310,"extFields":{{{fields}}},{tail}"#);
        assert!(as_fastjson_writes(&usual).is_some() && as_fastjson_writes(&other).is_none());
        let seen = |text: &str| {
            let head = decode(SerializeType::Json, text.as_bytes()).unwrap();
            let mut iter = head.ext.iter();
            let list: Vec<String> = iter.by_ref().map(|(k, v)| format!("{k}={v}")).collect();
            iter.finish().unwrap();
            (head.code, head.flag, head.opaque, head.version, list)
        };
        assert_eq!(seen(&usual), seen(&other));
        assert_eq!(seen(&usual).4, ["a=x", "i=K\u{1}},\"flag\":9\u{2}", "e=-3"]);
        let broken = decode(SerializeType::Json, br#"{"code":310,"extFields":{"a":"x",5},"flag":0}"#).unwrap();
        let mut iter = broken.ext.iter();
        assert_eq!(iter.by_ref().count(), 1);
        assert!(iter.finish().is_err());
    }

    #[test]
    fn the_sample_of_the_format_page() {
        let hex = "0069000201000000070000000000000000\
                   0000002d0005746f706963000000025431\
                   00166163636570745374616e646172644a736f6e4f6e6c790000000474727565";
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        let head = decode(SerializeType::Compact, &bytes).unwrap();
        assert_eq!((head.code, head.opaque, head.version), (105, 7, 513));
        assert_eq!(head.ext.find("topic").as_deref(), Some("T1"));
        assert_eq!(head.ext.find("acceptStandardJsonOnly").as_deref(), Some("true"));
    }

    #[test]
    fn broken_headers_say_where() {
        let at = |text: &str| match decode(SerializeType::Json, text.as_bytes()).unwrap_err() {
            DecodeError::Header { at, .. } => at,
            other => panic!("{other}"),
        };
        assert_eq!(at("{bad}}"), 2);
        assert_eq!(at(r#"{"code":99999999999}"#), 19);
        assert_eq!(at(r#"{"code":1,"extFields":{"a":"b}"#), 28);
        assert_eq!(at(r#"{"code":1}x"#), 10);
        assert!(decode(SerializeType::Json, "[".repeat(100).as_bytes()).is_err());
        let deep = format!("{{\"x\":{}", "[".repeat(100));
        assert!(decode(SerializeType::Json, deep.as_bytes()).is_err());
        assert!(decode(SerializeType::Compact, &[0; 12]).is_err());
    }
}
