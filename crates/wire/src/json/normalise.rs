//! fastjson's keys → JSON's keys, in one pass over the bytes: `{0:1}` becomes `{"0":1}`, and an object as a key becomes
//! that object's text as a string. Valid JSON comes back as it is, borrowed. This is no validator: what is neither
//! passes through, and the parser behind says what is wrong with it.

use std::borrow::Cow;

use crate::DecodeError;

/// Objects and lists within each other. fastjson's own limit is 2048; no body of the protocol has more than 8.
pub const NESTING_MAX: usize = 64;

pub fn normalise(body: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
    keys_to_strings(body, true)
}

/// What the innermost open bracket is, and whether a key comes next.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    List,
    ObjectBeforeKey,
    ObjectAfterKey,
}

/// `object_keys`: whether keys may be objects; not within such a key, as each level of quoting doubles the text.
fn keys_to_strings(body: &[u8], object_keys: bool) -> Result<Cow<'_, [u8]>, DecodeError> {
    let mut out = Vec::new();
    let mut copied = 0; // body[..copied] has its counterpart in `out`
    let mut open: Vec<Within> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = body.get(at) {
        let start = at;
        at += 1;
        let before_key = open.last() == Some(&Within::ObjectBeforeKey);
        match byte {
            b'"' => {
                at = string_end(body, start);
                key_seen(&mut open);
            }
            b'0'..=b'9' | b'-' if before_key => {
                while body.get(at).is_some_and(u8::is_ascii_digit) {
                    at += 1;
                }
                out.extend_from_slice(&body[copied..start]);
                out.push(b'"');
                out.extend_from_slice(&body[start..at]);
                out.push(b'"');
                copied = at;
                key_seen(&mut open);
            }
            b'{' if before_key => {
                at = object_end(body, start)?;
                if !object_keys {
                    return Err(DecodeError::Body(format!(
                        "an object as a key within an object as a key, at byte {start}"
                    )));
                }
                out.extend_from_slice(&body[copied..start]);
                quote(&keys_to_strings(&body[start..at], false)?, &mut out);
                copied = at;
                key_seen(&mut open);
            }
            b'{' | b'[' => {
                if open.len() == NESTING_MAX {
                    return Err(too_deep(start));
                }
                open.push(if byte == b'{' { Within::ObjectBeforeKey } else { Within::List });
            }
            b'}' | b']' => {
                open.pop();
            }
            b',' => {
                if let Some(within @ Within::ObjectAfterKey) = open.last_mut() {
                    *within = Within::ObjectBeforeKey;
                }
            }
            _ => {}
        }
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(body));
    }
    out.extend_from_slice(&body[copied..]);
    Ok(Cow::Owned(out))
}

fn key_seen(open: &mut [Within]) {
    if let Some(within @ Within::ObjectBeforeKey) = open.last_mut() {
        *within = Within::ObjectAfterKey;
    }
}

/// Index past the string that opens at `start`; the end of the body if it never closes.
fn string_end(body: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(skipped) = body.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += skipped;
        if body[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    body.len()
}

/// Index past the object that opens at `start`.
fn object_end(body: &[u8], start: usize) -> Result<usize, DecodeError> {
    let mut depth = 0;
    let mut at = start;
    while let Some(&byte) = body.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(body, at - 1),
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(at);
        }
    }
    Err(DecodeError::Body(format!("the object that is a key at byte {start} does not end")))
}

/// `json` as a JSON string. White space between its tokens is dropped: a string must not hold raw line breaks.
fn quote(json: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json {
        match byte {
            b'"' => {
                in_string ^= !escaped;
                out.extend_from_slice(b"\\\"");
            }
            b'\\' => out.extend_from_slice(b"\\\\"),
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => {}
            _ => out.push(byte),
        }
        escaped = byte == b'\\' && !escaped;
    }
    out.push(b'"');
}

fn too_deep(at: usize) -> DecodeError {
    DecodeError::Body(format!("nested deeper than {NESTING_MAX} at byte {at}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn text(body: &str) -> String {
        String::from_utf8(normalise(body.as_bytes()).unwrap().into_owned()).unwrap()
    }

    #[test]
    fn quotes_integer_keys() {
        assert_eq!(text("{0:1}"), r#"{"0":1}"#);
        assert_eq!(text("{ -7 : [1,{2:3}] ,\n 10:{}, \"a\":4}"), "{ \"-7\" : [1,{\"2\":3}] ,\n \"10\":{}, \"a\":4}");
    }

    #[test]
    fn quotes_object_keys() {
        assert_eq!(
            text(r#"{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:2,{"topic":"u\"\\"}:{3:4}}}"#),
            r#"{"offsetTable":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"t\"}":2,"{\"topic\":\"u\\\"\\\\\"}":{"3":4}}}"#
        );
        assert_eq!(text("{{\n\t\"a b\":1,\n\t2:3\n}:4}"), r#"{"{\"a b\":1,\"2\":3}":4}"#);
    }

    #[test]
    fn borrows_valid_json() {
        for json in [r#"{"a":{"0":1,"b":"{0:1}, {{"},"c":["x",-1,{"d":"\\\"{1:"}]}"#, "[1,2]", "7", "", "{}"] {
            assert!(matches!(normalise(json.as_bytes()), Ok(Cow::Borrowed(same)) if same == json.as_bytes()), "{json}");
        }
    }

    #[test]
    fn refuses_what_would_cost_too_much() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(normalise(deep(NESTING_MAX).as_bytes()).is_ok());
        assert!(normalise(deep(NESTING_MAX + 1).as_bytes()).is_err());
        assert!(normalise("{".repeat(1000).as_bytes()).is_err());
        assert!(normalise(b"{{{\"a\":1}:2}:3}").is_err());
        assert!(normalise(b"{{\"a\":1").is_err());
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    /// As fastjson would write it: keys that are integers bare, keys that are objects raw.
    fn fastjson(value: &Value) -> String {
        match value {
            Value::Array(items) => format!("[{}]", items.iter().map(fastjson).collect::<Vec<_>>().join(",")),
            Value::Object(members) => {
                let member = |(key, value): (&String, &Value)| {
                    let bare = key.parse::<i64>().is_ok_and(|number| number.to_string() == *key)
                        || serde_json::from_str::<Map<String, Value>>(key).is_ok();
                    let key = if bare { key.clone() } else { Value::from(key.as_str()).to_string() };
                    format!("{key}:{}", fastjson(value))
                };
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn is_the_identity_on_valid_json(value in json()) {
            for json in [serde_json::to_vec(&value).unwrap(), serde_json::to_vec_pretty(&value).unwrap()] {
                let same = matches!(normalise(&json), Ok(Cow::Borrowed(same)) if same == json.as_slice());
                prop_assert!(same);
            }
        }

        #[test]
        fn normalised_fastjson_parses_to_the_same(
            value in json(), queue in "[a-z\"\\\\ ]{0,8}", ints in prop::collection::btree_map(any::<i32>(), json(), 0..4)
        ) {
            let key = serde_json::json!({ "queueId": 1, "topic": queue }).to_string();
            let mut members: Map<String, Value> = ints.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
            members.insert(key, value);
            let value = Value::from(members);
            let normal = fastjson(&value).into_bytes();
            let normal = normalise(&normal).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&normal).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_survived(
            body in prop::collection::vec(prop::sample::select(&b"{}[]\",:\\ -01a\xff"[..]), 0..200)
        ) {
            if let Ok(normal) = normalise(&body) {
                prop_assert!(normal.len() <= 3 * body.len() + 2);
            }
        }
    }
}
