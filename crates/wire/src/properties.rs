//! The properties string of a message: `name U+0001 value U+0002`, repeated; the last U+0002 may be missing.
//! Segments without U+0001, or with an empty name or value, are ignored, as Java's decoder does.
//! Java: `MessageDecoder.string2messageProperties`, `MessageConst`.

pub const NAME_END: char = '\u{1}';
pub const VALUE_END: char = '\u{2}';

/// Longest properties string of a record, bytes. Java: `MessageExtEncoder.PROPERTIES_MAX_LEN` (`Short.MAX_VALUE`).
pub const LEN_MAX: usize = 32_767;

pub const KEYS: &str = "KEYS";
pub const TAGS: &str = "TAGS";
pub const WAIT: &str = "WAIT";
pub const DELAY: &str = "DELAY";
pub const RETRY_TOPIC: &str = "RETRY_TOPIC";
pub const REAL_TOPIC: &str = "REAL_TOPIC";
pub const REAL_QID: &str = "REAL_QID";
pub const TRAN_MSG: &str = "TRAN_MSG";
pub const PGROUP: &str = "PGROUP";
pub const ORIGIN_MESSAGE_ID: &str = "ORIGIN_MESSAGE_ID";
pub const UNIQ_KEY: &str = "UNIQ_KEY";
pub const MSG_REGION: &str = "MSG_REGION";
pub const TRACE_ON: &str = "TRACE_ON";
pub const CLUSTER: &str = "CLUSTER";
pub const TIMER_DELAY_SEC: &str = "TIMER_DELAY_SEC";
pub const TIMER_DELAY_MS: &str = "TIMER_DELAY_MS";
pub const TIMER_DELIVER_MS: &str = "TIMER_DELIVER_MS";
pub const RECONSUME_TIME: &str = "RECONSUME_TIME";
pub const MAX_RECONSUME_TIMES: &str = "MAX_RECONSUME_TIMES";
pub const INNER_MULTI_DISPATCH: &str = "INNER_MULTI_DISPATCH";
pub const SHARDING_KEY: &str = "__SHARDINGKEY";
pub const KEY_SEPARATOR: char = ' ';

/// Every (name, value) in order of writing.
pub fn iter(text: &str) -> impl Iterator<Item = (&str, &str)> {
    Iter { rest: text }
}

struct Iter<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = memchr::memchr(VALUE_END as u8, self.rest.as_bytes()).unwrap_or(self.rest.len());
            let (segment, rest) = self.rest.split_at(end);
            self.rest = rest.get(1..).unwrap_or_default();
            match segment.split_once(NAME_END) {
                Some((name, value)) if !name.is_empty() && !value.is_empty() => return Some((name, value)),
                _ => {}
            }
        }
        None
    }
}

/// The value of `name`; of several the last, as a map filled in order would say.
pub fn find<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    iter(text).filter(|(n, _)| *n == name).map(|(_, v)| v).last()
}

/// Appends one property. An open end of what stands before is closed first.
pub fn push(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() && !out.ends_with(VALUE_END) {
        out.push(VALUE_END);
    }
    out.push_str(name);
    out.push(NAME_END);
    out.push_str(value);
    out.push(VALUE_END);
}

/// Neither a name nor a value may carry the separators.
pub fn is_legal(text: &str) -> bool {
    !text.contains([NAME_END, VALUE_END])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn open_end_and_short_segments() {
        let text = "KEYS\u{1}k1\u{2}x\u{2}\u{2}noname\u{2}TAGS\u{1}T\u{1}A";
        assert_eq!(iter(text).collect::<Vec<_>>(), [("KEYS", "k1"), ("TAGS", "T\u{1}A")]);
        assert_eq!(find(text, TAGS), Some("T\u{1}A"));
        assert_eq!(find(text, "x"), None);
        assert_eq!(iter("empty\u{1}\u{2}\u{1}nameless\u{2}").next(), None);
        assert_eq!(find("a\u{1}1\u{2}a\u{1}2\u{2}", "a"), Some("2"));
    }

    #[test]
    fn push_closes_an_open_end() {
        let mut text = "TAGS\u{1}A".to_string();
        push(&mut text, WAIT, "true");
        assert_eq!(text, "TAGS\u{1}A\u{2}WAIT\u{1}true\u{2}");
    }

    proptest! {
        #[test]
        fn round_trip(pairs in prop::collection::vec(("[^\u{1}\u{2}]{1,8}", "[^\u{1}\u{2}]{1,12}"), 0..8)) {
            let mut text = String::new();
            for (n, v) in &pairs { push(&mut text, n, v) }
            let seen: Vec<_> = iter(&text).map(|(n, v)| (n.to_string(), v.to_string())).collect();
            prop_assert_eq!(seen, pairs);
        }
    }
}
