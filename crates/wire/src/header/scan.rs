//! A cursor over the JSON text of a header: strings stay where they are, escapes are undone only when somebody reads the
//! value. Bounded: a value that is skipped may be nested 32 deep.

use std::borrow::Cow;

use super::ExtFields;
use crate::DecodeError;

/// Bytes of a string that are looked at one by one.
const SHORT: usize = 24;
/// How deep a value that we skip may be nested.
const DEPTH_MAX: usize = 32;

/// A JSON string without its quotes, escapes still in place.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawStr<'a> {
    pub(super) raw: &'a str,
    pub(super) escaped: bool,
}

impl<'a> RawStr<'a> {
    pub(super) fn unescape(self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut out = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(i) = memchr::memchr(b'\\', rest.as_bytes()) {
            out.push_str(&rest[..i]);
            let (c, used) = unescape_one(&rest[i + 1..]);
            out.push(c);
            rest = rest.get(i + 1 + used..).unwrap_or_default();
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}

/// What follows a backslash: the character it stands for and how many bytes it took. A broken escape gives U+FFFD.
fn unescape_one(text: &str) -> (char, usize) {
    let Some(first) = text.chars().next() else { return ('\u{FFFD}', 0) };
    let plain = match first {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unescape_unicode(text),
        other => other,
    };
    (plain, first.len_utf8())
}

fn unescape_unicode(text: &str) -> (char, usize) {
    let unit = |at: usize| text.get(at..at + 4).and_then(|h| u16::from_str_radix(h, 16).ok());
    let Some(high) = unit(1) else { return ('\u{FFFD}', 1) };
    if let Some(c) = char::from_u32(u32::from(high)) {
        return (c, 5);
    }
    let low = if text.get(5..7) == Some("\\u") { unit(7) } else { None };
    match low.and_then(|low| char::decode_utf16([high, low]).next()?.ok()) {
        Some(c) => (c, 11),
        None => ('\u{FFFD}', 5),
    }
}

/// A cursor over JSON text.
pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn fail(&self, what: &'static str) -> DecodeError {
        DecodeError::Header { what, at: self.at }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), DecodeError> {
        self.skip_space();
        if self.next() == Some(byte) {
            return Ok(());
        }
        Err(self.fail(match byte {
            b':' => "expected ':'",
            b'{' => "expected '{'",
            _ => "unexpected byte",
        }))
    }

    pub(super) fn string(&mut self) -> Result<RawStr<'a>, DecodeError> {
        self.skip_space();
        if self.next() != Some(b'"') {
            return Err(self.fail("expected a string"));
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        let mut at = start;
        loop {
            // Most strings are a few bytes: looking at them one by one beats a search that has to be set up.
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(_) if at - start == SHORT => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    if bytes.get(at) == Some(&b'\\') {
                        escaped = true;
                        at += 2;
                    }
                }
                Some(_) => at += 1,
                None => return Err(self.fail("a string does not end")),
            }
        }
        self.at = at + 1;
        let raw = self.text.get(start..at).ok_or_else(|| self.fail("a string is cut"))?;
        Ok(RawStr { raw, escaped })
    }

    /// A number, a literal: everything up to the next delimiter.
    fn scalar(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest
            .bytes()
            .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' | b':' | b'"' | b'{' | b'['));
        let token = &rest[..end.unwrap_or(rest.len())];
        self.at += token.len();
        token
    }

    pub(super) fn int(&mut self) -> Result<i32, DecodeError> {
        let token = self.scalar();
        token.parse().map_err(|_| self.fail("expected a 32-bit integer"))
    }

    /// A string, number or boolean as text; `null` is `None`.
    pub(super) fn ext_value(&mut self) -> Result<Option<RawStr<'a>>, DecodeError> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(Some),
            Some(b'{' | b'[') => {
                let start = self.at;
                self.skip_value(0)?;
                Ok(Some(RawStr { raw: &self.text[start..self.at], escaped: false }))
            }
            _ => match self.scalar() {
                "null" => Ok(None),
                "" => Err(self.fail("expected a value")),
                raw => Ok(Some(RawStr { raw, escaped: false })),
            },
        }
    }

    /// The object of custom fields, or null.
    pub(super) fn ext_fields(&mut self) -> Result<ExtFields<'a>, DecodeError> {
        self.skip_space();
        if self.peek() != Some(b'{') {
            return match self.scalar() {
                "null" => Ok(ExtFields::None),
                _ => Err(self.fail("extFields is not an object")),
            };
        }
        self.at += 1;
        let start = self.at;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(ExtFields::None);
        }
        loop {
            self.string()?;
            self.expect(b':')?;
            self.ext_value()?;
            self.skip_space();
            match self.next() {
                Some(b',') => {}
                Some(b'}') => return Ok(ExtFields::Json(&self.text[start..self.at - 1])),
                _ => return Err(self.fail("expected ',' or '}' in extFields")),
            }
        }
    }

    pub(super) fn skip_value(&mut self, depth: usize) -> Result<(), DecodeError> {
        if depth > DEPTH_MAX {
            return Err(self.fail("nested too deep"));
        }
        self.skip_space();
        let (open, close) = match self.peek() {
            Some(b'"') => return self.string().map(|_| ()),
            Some(b'{') => (true, b'}'),
            Some(b'[') => (false, b']'),
            _ if self.scalar().is_empty() => return Err(self.fail("expected a value")),
            _ => return Ok(()),
        };
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            if open {
                self.string()?;
                self.expect(b':')?;
            }
            self.skip_value(depth + 1)?;
            self.skip_space();
            match self.next() {
                Some(b',') => {}
                Some(byte) if byte == close => return Ok(()),
                _ => return Err(self.fail("expected ',' or the end of a value")),
            }
        }
    }
}
