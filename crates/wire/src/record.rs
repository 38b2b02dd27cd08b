//! The message record: what the commit log holds and what a pull answers, byte for byte the same.
//!
//! ```text
//! total 4 | magic 4 | body crc 4 | queue id 4 | flag 4 | queue offset 8 | log offset 8 | sys flag 4 | born ms 8 |
//! born host 8/20 | store ms 8 | store host 8/20 | reconsume 4 | prepared offset 8 | body 4+n | topic 1/2+n | properties 2+n
//! ```
//!
//! [`Draft`] is encoded before its place in the log is known; [`place`] fills in the three fields that the append decides.
//! [`Record`] reads one: all lengths are checked in [`Record::parse`], then fields are plain reads.
//! Java: `MessageExtEncoder`, `CommitLog.checkMessageAndReturnSize`, `MessageDecoder`.

use std::net::{IpAddr, SocketAddr};

use crate::flags::message::{BORN_HOST_V6, STORE_HOST_V6};
use crate::{DecodeError, properties};

/// Version 1: one byte of topic length.
pub const MAGIC_V1: u32 = 0xDAA3_20A7;
/// Version 2: two bytes of topic length, used for topics of more than 127 bytes.
pub const MAGIC_V2: u32 = 0xDAA3_20AB;
/// Filler at the end of a commit-log file: remaining size 4, this magic 4, the rest undefined.
pub const MAGIC_BLANK: u32 = 0xCBD4_3194;
/// Bytes that must stay free behind a record for the filler's own header.
pub const BLANK_MIN: usize = 8;
/// Length of a record with IPv4 hosts, version 1, and empty body, topic and properties.
const FIXED_V4_V1: usize = 91;

const AT_BODY_CRC: usize = 8;
const AT_QUEUE_ID: usize = 12;
const AT_FLAG: usize = 16;
const AT_QUEUE_OFFSET: usize = 20;
const AT_LOG_OFFSET: usize = 28;
const AT_SYS_FLAG: usize = 36;
const AT_BORN_MS: usize = 40;
const AT_BORN_HOST: usize = 48;

/// A message that has no place in the log yet.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    pub topic: &'a str,
    pub queue_id: i32,
    pub flag: i32,
    /// The host bits are set by [`Draft::encode`].
    pub sys_flag: i32,
    pub born_ms: i64,
    pub born_host: SocketAddr,
    pub store_host: SocketAddr,
    pub reconsume_times: i32,
    pub prepared_offset: i64,
    pub body: &'a [u8],
    pub properties: &'a str,
}

impl Draft<'_> {
    /// Bytes that [`Draft::encode`] will write.
    pub fn encoded_len(&self) -> usize {
        let v6 = usize::from(self.born_host.is_ipv6()) + usize::from(self.store_host.is_ipv6());
        let v2 = usize::from(self.topic.len() > 127);
        FIXED_V4_V1 + v2 + 12 * v6 + self.body.len() + self.topic.len() + self.properties.len()
    }

    /// Appends the record to `out` and returns its length. The offsets and the store time are zero until [`place`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<usize, DecodeError> {
        if self.properties.len() > properties::LEN_MAX {
            let value = self.properties.len() as i64;
            return Err(DecodeError::Record { what: "properties too long", value, limit: properties::LEN_MAX as i64 });
        }
        if self.topic.len() > i16::MAX as usize {
            let value = self.topic.len() as i64;
            return Err(DecodeError::Record { what: "topic too long", value, limit: i64::from(i16::MAX) });
        }
        let v2 = self.topic.len() > 127;
        let sys_flag = self.sys_flag & !(BORN_HOST_V6 | STORE_HOST_V6)
            | if self.born_host.is_ipv6() { BORN_HOST_V6 } else { 0 }
            | if self.store_host.is_ipv6() { STORE_HOST_V6 } else { 0 };
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(if v2 { MAGIC_V2 } else { MAGIC_V1 }).to_be_bytes());
        out.extend_from_slice(&body_crc(self.body).to_be_bytes());
        out.extend_from_slice(&self.queue_id.to_be_bytes());
        out.extend_from_slice(&self.flag.to_be_bytes());
        out.extend_from_slice(&[0; 16]);
        out.extend_from_slice(&sys_flag.to_be_bytes());
        out.extend_from_slice(&self.born_ms.to_be_bytes());
        push_host(out, self.born_host);
        out.extend_from_slice(&[0; 8]);
        push_host(out, self.store_host);
        out.extend_from_slice(&self.reconsume_times.to_be_bytes());
        out.extend_from_slice(&self.prepared_offset.to_be_bytes());
        out.extend_from_slice(&(self.body.len() as u32).to_be_bytes());
        out.extend_from_slice(self.body);
        if v2 {
            out.extend_from_slice(&(self.topic.len() as u16).to_be_bytes());
        } else {
            out.push(self.topic.len() as u8);
        }
        out.extend_from_slice(self.topic.as_bytes());
        out.extend_from_slice(&(self.properties.len() as u16).to_be_bytes());
        out.extend_from_slice(self.properties.as_bytes());
        let total = out.len() - start;
        out[start..start + 4].copy_from_slice(&(total as u32).to_be_bytes());
        Ok(total)
    }
}

fn push_host(out: &mut Vec<u8>, host: SocketAddr) {
    match host.ip() {
        IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
    }
    out.extend_from_slice(&u32::from(host.port()).to_be_bytes());
}

/// CRC-32 as the record stores it: the sign bit is dropped. Java: `UtilAll.crc32`.
pub fn body_crc(body: &[u8]) -> u32 {
    crc32fast::hash(body) & 0x7FFF_FFFF
}

/// Fills in what the append decides. `record` was made by [`Draft::encode`].
pub fn place(record: &mut [u8], queue_offset: i64, log_offset: i64, store_ms: i64) {
    let sys_flag = i32_at(record, AT_SYS_FLAG);
    let store_at = AT_BORN_HOST + host_len(sys_flag, BORN_HOST_V6);
    record[AT_QUEUE_OFFSET..AT_QUEUE_OFFSET + 8].copy_from_slice(&queue_offset.to_be_bytes());
    record[AT_LOG_OFFSET..AT_LOG_OFFSET + 8].copy_from_slice(&log_offset.to_be_bytes());
    record[store_at..store_at + 8].copy_from_slice(&store_ms.to_be_bytes());
}

fn host_len(sys_flag: i32, bit: i32) -> usize {
    if sys_flag & bit == 0 { 8 } else { 20 }
}

fn i32_at(b: &[u8], at: usize) -> i32 {
    i32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn i64_at(b: &[u8], at: usize) -> i64 {
    i64::from(i32_at(b, at)) << 32 | i64::from(i32_at(b, at + 4) as u32)
}

/// What stands at a place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message of this many bytes.
    Message(usize),
    /// The filler up to the end of the file, of this many bytes.
    Blank(usize),
    /// Zeros: nothing was written here.
    Empty,
}

/// Looks at the first eight bytes of a record.
pub fn peek(head: [u8; 8]) -> Result<Kind, DecodeError> {
    let total = i32_at(&head, 0);
    let magic = i32_at(&head, 4) as u32;
    match magic {
        MAGIC_V1 | MAGIC_V2 if total as usize >= FIXED_V4_V1 && total > 0 => Ok(Kind::Message(total as usize)),
        MAGIC_BLANK if total >= BLANK_MIN as i32 => Ok(Kind::Blank(total as usize)),
        0 if total == 0 => Ok(Kind::Empty),
        _ => Err(DecodeError::Record { what: "no message starts here, magic", value: i64::from(magic), limit: 0 }),
    }
}

/// One record, borrowed; all lengths were checked.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    bytes: &'a [u8],
    store_ms_at: usize,
    body_at: usize,
    body_len: usize,
    topic: &'a str,
    properties: &'a str,
}

impl<'a> Record<'a> {
    /// Parses the record at the start of `bytes`; more may follow. The body's CRC is not looked at.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let wrong =
            |what, value: usize, limit: usize| DecodeError::Record { what, value: value as i64, limit: limit as i64 };
        let head = bytes.first_chunk::<8>().ok_or_else(|| wrong("cut", bytes.len(), 8))?;
        let Kind::Message(total) = peek(*head)? else { return Err(wrong("filler, not a message", 0, 0)) };
        let bytes = bytes.get(..total).ok_or_else(|| wrong("cut", bytes.len(), total))?;
        let sys_flag = i32_at(bytes, AT_SYS_FLAG);
        let store_ms_at = AT_BORN_HOST + host_len(sys_flag, BORN_HOST_V6);
        let body_len_at = store_ms_at + 8 + host_len(sys_flag, STORE_HOST_V6) + 12;
        if body_len_at + 4 > total {
            return Err(wrong("shorter than its hosts", total, body_len_at + 4));
        }
        let body_len = i32_at(bytes, body_len_at) as usize;
        let body_at = body_len_at + 4;
        let after_body = body_at.checked_add(body_len).and_then(|at| bytes.get(at..));
        let rest = after_body.ok_or_else(|| wrong("body length", body_len, total))?;
        let width = if i32_at(bytes, 4) as u32 == MAGIC_V2 { 2 } else { 1 };
        let (topic, rest) = split_len(rest, width).ok_or_else(|| wrong("topic length", total, total))?;
        let (props, rest) = split_len(rest, 2).ok_or_else(|| wrong("properties length", total, total))?;
        if !rest.is_empty() {
            return Err(wrong("lengths do not add up", total - rest.len(), total));
        }
        let text =
            |b: &'a [u8]| std::str::from_utf8(b).map_err(|e| wrong("text is not UTF-8", e.valid_up_to(), b.len()));
        Ok(Self { bytes, store_ms_at, body_at, body_len, topic: text(topic)?, properties: text(props)? })
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never: a record has at least its fixed fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn body(&self) -> &'a [u8] {
        &self.bytes[self.body_at..self.body_at + self.body_len]
    }

    pub fn topic(&self) -> &'a str {
        self.topic
    }

    pub fn properties(&self) -> &'a str {
        self.properties
    }

    pub fn property(&self, name: &str) -> Option<&'a str> {
        properties::find(self.properties, name)
    }

    pub fn queue_id(&self) -> i32 {
        i32_at(self.bytes, AT_QUEUE_ID)
    }

    pub fn flag(&self) -> i32 {
        i32_at(self.bytes, AT_FLAG)
    }

    pub fn queue_offset(&self) -> i64 {
        i64_at(self.bytes, AT_QUEUE_OFFSET)
    }

    pub fn log_offset(&self) -> i64 {
        i64_at(self.bytes, AT_LOG_OFFSET)
    }

    pub fn sys_flag(&self) -> i32 {
        i32_at(self.bytes, AT_SYS_FLAG)
    }

    pub fn born_ms(&self) -> i64 {
        i64_at(self.bytes, AT_BORN_MS)
    }

    pub fn store_ms(&self) -> i64 {
        i64_at(self.bytes, self.store_ms_at)
    }

    pub fn born_host(&self) -> SocketAddr {
        host_at(self.bytes, AT_BORN_HOST, self.sys_flag() & BORN_HOST_V6 != 0)
    }

    pub fn store_host(&self) -> SocketAddr {
        host_at(self.bytes, self.store_ms_at + 8, self.sys_flag() & STORE_HOST_V6 != 0)
    }

    pub fn reconsume_times(&self) -> i32 {
        i32_at(self.bytes, self.body_at - 16)
    }

    pub fn prepared_offset(&self) -> i64 {
        i64_at(self.bytes, self.body_at - 12)
    }

    pub fn body_crc(&self) -> u32 {
        i32_at(self.bytes, AT_BODY_CRC) as u32
    }

    /// Whether the body is what its CRC says.
    pub fn body_is_intact(&self) -> bool {
        self.body_len == 0 || body_crc(self.body()) == self.body_crc()
    }
}

fn split_len(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_at_checked(width)?;
    rest.split_at_checked(len.iter().fold(0usize, |n, b| n << 8 | usize::from(*b)))
}

fn host_at(bytes: &[u8], at: usize, v6: bool) -> SocketAddr {
    let (ip, port_at): (IpAddr, usize) = if v6 {
        let mut octets = [0; 16];
        octets.copy_from_slice(&bytes[at..at + 16]);
        (octets.into(), at + 16)
    } else {
        ([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]].into(), at + 4)
    };
    SocketAddr::new(ip, i32_at(bytes, port_at) as u16)
}

/// The records of a pull's answer, one behind the other.
pub fn records(mut bytes: &[u8]) -> impl Iterator<Item = Result<Record<'_>, DecodeError>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let record = Record::parse(bytes);
        bytes = record.as_ref().ok().and_then(|r| bytes.get(r.len()..)).unwrap_or_default();
        Some(record)
    })
}

/// One message of a batch body: total 4, magic 4, crc 4, flag 4, body 4+n, properties 2+n. Java: `MessageDecoder.encodeMessage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchItem<'a> {
    pub flag: i32,
    pub body: &'a [u8],
    pub properties: &'a str,
}

impl BatchItem<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let total = 20 + self.body.len() + 2 + self.properties.len();
        out.extend_from_slice(&(total as u32).to_be_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.flag.to_be_bytes());
        out.extend_from_slice(&(self.body.len() as u32).to_be_bytes());
        out.extend_from_slice(self.body);
        out.extend_from_slice(&(self.properties.len() as u16).to_be_bytes());
        out.extend_from_slice(self.properties.as_bytes());
    }
}

/// The messages of a batch body; ends after the first error.
pub fn batch_items(mut bytes: &[u8]) -> impl Iterator<Item = Result<BatchItem<'_>, DecodeError>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        match split_batch_item(bytes) {
            Ok((item, rest)) => {
                bytes = rest;
                Some(Ok(item))
            }
            Err(error) => {
                bytes = &[];
                Some(Err(error))
            }
        }
    })
}

fn split_batch_item(bytes: &[u8]) -> Result<(BatchItem<'_>, &[u8]), DecodeError> {
    let wrong = |what, value: usize| DecodeError::Record { what, value: value as i64, limit: bytes.len() as i64 };
    let (fixed, after) = bytes.split_first_chunk::<16>().ok_or_else(|| wrong("batch item is cut", bytes.len()))?;
    let total = i32_at(fixed, 0) as usize;
    let (body, after) = split_len(after, 4).ok_or_else(|| wrong("batch item's body length", total))?;
    let (props, rest) = split_len(after, 2).ok_or_else(|| wrong("batch item's properties length", total))?;
    if bytes.len() - rest.len() != total {
        return Err(wrong("batch item's lengths do not add up", total));
    }
    let properties = std::str::from_utf8(props).map_err(|_| wrong("batch item's properties are not UTF-8", total))?;
    Ok((BatchItem { flag: i32_at(fixed, 12), body, properties }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn draft<'a>(topic: &'a str, body: &'a [u8], properties: &'a str) -> Draft<'a> {
        Draft {
            topic,
            queue_id: 3,
            flag: 0,
            sys_flag: 0,
            born_ms: 0x018b_cfe5_6800,
            born_host: "10.0.0.1:1234".parse().unwrap(),
            store_host: "10.0.0.2:10911".parse().unwrap(),
            reconsume_times: 0,
            prepared_offset: 0,
            body,
            properties,
        }
    }

    #[test]
    fn the_sample_of_the_format_page() {
        let mut out = Vec::new();
        draft("T1", b"hello", "TAGS\u{1}TA\u{2}").encode(&mut out).unwrap();
        place(&mut out, 9, 0x400, 0x018b_cfe5_6801);
        let hex: String = out.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "0000006adaa320a73610a6860000000300000000000000000000000900000000000004000000\
             00000000018bcfe568000a000001000004d20000018bcfe568010a00000200002a9f000000000000000000000000\
             0000000568656c6c6f0254310008544147530154410 2"
                .replace(' ', "")
        );
        assert_eq!(out.len(), 106);
    }

    proptest! {
        #[test]
        fn round_trip(topic in "[a-zA-Z0-9_%-]{1,200}", body in prop::collection::vec(any::<u8>(), 0..300),
                      born6: bool, store6: bool, qo: i64, lo: i64, ts: i64, queue_id: i32, flag: i32, rt: i32, po: i64) {
            let props = "KEYS\u{1}k\u{2}ünï\u{1}→\u{2}";
            let host = |v6| if v6 { "[fd00::7]:1".parse().unwrap() } else { "1.2.3.4:65535".parse().unwrap() };
            let mut d = draft(&topic, &body, props);
            d.born_host = host(born6);
            d.store_host = host(store6);
            (d.queue_id, d.flag, d.reconsume_times, d.prepared_offset) = (queue_id, flag, rt, po);
            let mut out = Vec::new();
            let len = d.encode(&mut out).unwrap();
            prop_assert_eq!(len, d.encoded_len());
            place(&mut out, qo, lo, ts);
            let r = Record::parse(&out).unwrap();
            prop_assert_eq!(r.len(), len);
            prop_assert_eq!((r.topic(), r.body(), r.properties()), (d.topic, d.body, d.properties));
            prop_assert_eq!((r.queue_id(), r.flag(), r.queue_offset(), r.log_offset()), (queue_id, flag, qo, lo));
            prop_assert_eq!((r.born_ms(), r.store_ms(), r.reconsume_times(), r.prepared_offset()), (d.born_ms, ts, rt, po));
            prop_assert_eq!((r.born_host(), r.store_host()), (d.born_host, d.store_host));
            prop_assert!(r.body_is_intact());
            for cut in [0, 7, 40, len / 2, len - 1] {
                prop_assert!(Record::parse(&out[..cut]).is_err());
            }
        }

        #[test]
        fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 91..200), len in 0..300u32) {
            bytes[..4].copy_from_slice(&len.to_be_bytes());
            for magic in [MAGIC_V1, MAGIC_V2] {
                bytes[4..8].copy_from_slice(&magic.to_be_bytes());
                if let Ok(r) = Record::parse(&bytes) {
                    let _ = (r.born_host(), r.store_host(), r.body_is_intact(), r.prepared_offset());
                }
            }
            for item in batch_items(&bytes) { let _ = item; }
        }
    }

    #[test]
    fn batch_items_come_back() {
        let items = [
            BatchItem { flag: 7, body: b"hi", properties: "KEYS\u{1}k1\u{2}" },
            BatchItem { flag: 0, body: b"", properties: "" },
        ];
        let mut out = Vec::new();
        items.iter().for_each(|i| i.encode(&mut out));
        assert_eq!(batch_items(&out).collect::<Result<Vec<_>, _>>().unwrap(), items);
        assert!(batch_items(&out[..out.len() - 1]).collect::<Result<Vec<_>, _>>().is_err());
    }

    #[test]
    fn properties_have_a_limit() {
        let long = "x".repeat(32_768);
        assert!(draft("T", b"b", &long[..32_767]).encode(&mut Vec::new()).is_ok());
        assert!(draft("T", b"b", &long).encode(&mut Vec::new()).is_err());
    }
}
