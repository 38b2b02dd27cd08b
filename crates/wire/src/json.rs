//! The JSON dialect of bodies and config files: what fastjson writes and reads.
//!
//! Not JSON  integer map keys are bare, `{0:"10.0.0.2:10911"}`, and `MessageQueue` keys are objects,
//!           `{{"brokerName":"b","queueId":1,"topic":"t"}:2}`. Reading turns both into string keys (`normalise`), then it
//!           is serde_json's work; writing has three flavours (`to_vec`, `to_fastjson`, `to_pretty`).
//! Order     keys are alphabetical: body structs declare their fields in that order, maps are `BTreeMap`. Null fields
//!           are left out.
//! Lenient   the C++ and Python clients send `"subVersion":"7"`, the Go client sends null for an empty list. fastjson
//!           accepts that, so a body that does not fit its type strictly is tried once more with fastjson's
//!           conversions (`coerce`). The fast path pays nothing for it.
//!
//! Java     `RemotingSerializable`, fastjson2 2.0.59

mod normalise;
mod coerce;
mod write;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::DecodeError;

pub use normalise::{NESTING_MAX, normalise};
pub use write::inline;

const ERROR_CHARS_MAX: usize = 240;
/// Bodies above this must fit their type strictly: coercing builds a tree, up to 95 bytes of memory a byte of text. The
/// clients that need it send heartbeats of a few KiB.
const LENIENT_BYTES_MAX: usize = 64 << 10;

/// Bytes of a request's body that is not a message's, and objects and lists in it. A small text becomes a large value: an empty
/// object of two bytes a struct of up to 180 in a vector that doubles, or `{"":0}` a map with a node of 600. Within both
/// limits no body takes more memory than the largest frame has bytes.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;
pub const REQUEST_VALUES_MAX: usize = 16_384;

/// Whether a request's body is within [`REQUEST_BYTES_MAX`] and [`REQUEST_VALUES_MAX`].
pub fn check_request(body: &[u8]) -> Result<(), DecodeError> {
    if body.len() > REQUEST_BYTES_MAX {
        return Err(DecodeError::Body(format!("it has {} bytes, limit {REQUEST_BYTES_MAX}", body.len())));
    }
    let values = body.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    if values > REQUEST_VALUES_MAX {
        return Err(DecodeError::Body(format!("it has {values} objects and lists, limit {REQUEST_VALUES_MAX}")));
    }
    Ok(())
}

/// Reads a body. An empty one is an error: where a body may be missing, the caller looks first.
pub fn from_slice<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    if body.is_empty() {
        return Err(DecodeError::Body("empty, JSON expected".to_owned()));
    }
    let json = normalise(body)?;
    serde_json::from_slice(&json).or_else(|strict| {
        let lenient =
            if strict.is_data() && json.len() <= LENIENT_BYTES_MAX { coerce::from_slice(&json) } else { None };
        // Cut, as serde quotes the value that does not fit, whatever its length, and this becomes a remark.
        lenient.ok_or_else(|| DecodeError::Body(strict.to_string().chars().take(ERROR_CHARS_MAX).collect()))
    })
}

/// Standard JSON, with quoted integer keys; for requesters that say they cannot read anything else.
/// (Object keys have no standard form and stay as fastjson writes them.)
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    write::to_vec(value, write::Flavour { quoted_integer_keys: true, pretty: false })
}

/// What Java puts on the wire: integer keys bare.
pub fn to_fastjson<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    write::to_vec(value, write::Flavour { quoted_integer_keys: false, pretty: false })
}

/// What Java puts into config files: a TAB a level, no space after a colon, integer keys bare.
pub fn to_pretty<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    write::to_vec(value, write::Flavour { quoted_integer_keys: false, pretty: true })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Sample {
        active: bool,
        name: String,
        offsets: BTreeMap<i32, i64>,
        tags: Vec<String>,
        version: i64,
        zone: Option<String>,
    }

    fn sample(json: &str) -> Result<Sample, DecodeError> {
        from_slice(json.as_bytes())
    }

    #[test]
    fn reads_bare_and_quoted_integer_keys() {
        let expected = Sample { offsets: BTreeMap::from([(0, 12), (-1, 9)]), ..Sample::default() };
        assert_eq!(sample(r#"{"offsets":{0:12, -1 : 9}}"#).unwrap(), expected);
        assert_eq!(sample(r#"{"offsets":{"0":12,"-1":9},"unknown":{1:{2:[]}}}"#).unwrap(), expected);
    }

    #[test]
    fn converts_as_fastjson_does() {
        let lenient =
            sample(r#"{"active":"true","name":7,"tags":null,"version":"12","offsets":{0:"5",1:6.0},"zone":null}"#);
        let expected = Sample {
            active: true,
            name: "7".into(),
            version: 12,
            offsets: BTreeMap::from([(0, 5), (1, 6)]),
            ..Sample::default()
        };
        assert_eq!(lenient.unwrap(), expected);
        assert!(sample(r#"{"version":"twelve"}"#).is_err());
        assert!(sample(r#"{"tags":{"a":1}}"#).is_err());
    }

    #[test]
    fn a_large_body_is_not_coerced() {
        let with =
            |version: &str, padding: usize| format!(r#"{{"version":{version},"name":"{}"}}"#, "x".repeat(padding));
        assert!(sample(&with("\"7\"", LENIENT_BYTES_MAX - 100)).is_ok());
        assert!(sample(&with("\"7\"", LENIENT_BYTES_MAX)).is_err());
        assert!(sample(&with("7", LENIENT_BYTES_MAX)).is_ok());
    }

    #[test]
    fn errors_say_what_and_where() {
        let remark = |json: &str| sample(json).unwrap_err().to_string();
        assert_eq!(remark(""), "body: empty, JSON expected");
        assert_eq!(remark("{\"name\":\"x\",}"), "body: trailing comma at line 1 column 13");
        assert_eq!(remark("7"), "body: invalid type: integer `7`, expected struct Sample at line 1 column 1");
        assert!(remark(r#"{name:"x"}"#).starts_with("body: key must be a string"));
        assert!(remark(&format!(r#"{{"version":"{}"}}"#, "x".repeat(10_000))).len() < 300);
    }

    #[test]
    fn flavours_differ_in_keys_and_space_only() {
        let value = Sample {
            offsets: BTreeMap::from([(0, 12), (1, 9)]),
            tags: vec!["a\"\n\u{1}\u{7f}é".into()],
            ..Sample::default()
        };
        let text = |json: Vec<u8>| String::from_utf8(json).unwrap();
        assert_eq!(
            text(to_vec(&value)),
            r#"{"active":false,"name":"","offsets":{"0":12,"1":9},"tags":["a\"\n\u0001é"],"version":0}"#
                .replace("é", "\u{7f}é")
        );
        assert!(text(to_fastjson(&value)).contains("{0:12,1:9}"));
        assert_eq!(
            text(to_pretty(&value)),
            "{\n\t\"active\":false,\n\t\"name\":\"\",\n\t\"offsets\":{\n\t\t0:12,\n\t\t1:9\n\t},\n\t\"tags\":[\n\t\t\
             \"a\\\"\\n\\u0001\u{7f}é\"\n\t],\n\t\"version\":0\n}"
        );
        assert_eq!(from_slice::<Sample>(&to_vec(&value)).unwrap(), value);
        assert_eq!(from_slice::<Sample>(&to_fastjson(&value)).unwrap(), value);
        assert_eq!(from_slice::<Sample>(&to_pretty(&value)).unwrap(), value);
    }
}
