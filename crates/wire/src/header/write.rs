//! Writing header fields, in either serialisation, straight into the output buffer.

use super::SerializeType;

/// Writes custom fields in the serialisation of the frame under construction.
pub struct ExtWriter<'o> {
    out: &'o mut Vec<u8>,
    kind: SerializeType,
    count: usize,
}

impl<'o> ExtWriter<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>, kind: SerializeType, count: usize) -> Self {
        Self { out, kind, count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn key(&mut self, key: &str) {
        match self.kind {
            SerializeType::Json => {
                if self.count > 0 {
                    self.out.push(b',');
                }
                self.out.push(b'"');
                self.out.extend_from_slice(key.as_bytes());
                self.out.extend_from_slice(b"\":");
            }
            SerializeType::Compact => {
                self.out.extend_from_slice(&(key.len() as u16).to_be_bytes());
                self.out.extend_from_slice(key.as_bytes());
            }
        }
        self.count += 1;
    }

    /// `key` is plain ASCII without quotes: the name of a header field.
    pub fn str(&mut self, key: &str, value: &str) {
        self.key(key);
        match self.kind {
            SerializeType::Json => write_json_string(self.out, value),
            SerializeType::Compact => {
                self.out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                self.out.extend_from_slice(value.as_bytes());
            }
        }
    }

    pub fn int(&mut self, key: &str, value: i64) {
        self.key(key);
        match self.kind {
            SerializeType::Json => {
                self.out.push(b'"');
                write_int(self.out, value);
                self.out.push(b'"');
            }
            SerializeType::Compact => {
                let at = self.out.len();
                self.out.extend_from_slice(&[0; 4]);
                write_int(self.out, value);
                let len = (self.out.len() - at - 4) as u32;
                self.out[at..at + 4].copy_from_slice(&len.to_be_bytes());
            }
        }
    }

    pub fn bool(&mut self, key: &str, value: bool) {
        self.str(key, if value { "true" } else { "false" });
    }
}

/// Decimal digits of `value`.
pub(crate) fn write_int(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

pub(crate) fn write_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(i) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) {
        out.extend_from_slice(&rest[..i]);
        match rest[i] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                let hex = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(hex[usize::from(control >> 4)]);
                out.push(hex[usize::from(control & 15)]);
            }
        }
        rest = &rest[i + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
