//! The writer behind the three flavours: a serde serializer, because what a key looks like depends on its Rust type.
//! A topic named `123` is the key `"123"`, a queue id is the key `0`, and a `MessageQueue` is an object.
//!
//! Like fastjson: members whose value is null are left out, doubles are printed as Java prints them, empty brackets stay
//! on one line, and so do arrays of primitives (`inline`) in the pretty flavour.

use std::fmt;
use std::io::Write;

use serde::ser::{self, Impossible, Serialize, SerializeTuple, Serializer};

#[derive(Clone, Copy)]
pub(super) struct Flavour {
    pub quoted_integer_keys: bool,
    pub pretty: bool,
}

/// Panics when the type has no JSON form here (enum variants with content, raw bytes): a bug that its first test meets.
pub(super) fn to_vec<T: Serialize + ?Sized>(value: &T, flavour: Flavour) -> Vec<u8> {
    let mut writer = Writer { out: Vec::with_capacity(256), flavour, depth: 0 };
    let written = value.serialize(&mut writer).expect("body types have a JSON form");
    if written == Written::Nothing {
        writer.out.extend_from_slice(b"null");
    }
    writer.out
}

/// For `#[serde(serialize_with)]`: a list that is a primitive array in Java, which the pretty flavour keeps on one line.
pub fn inline<S: Serializer>(items: &[i64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut tuple = serializer.serialize_tuple(items.len())?;
    for item in items {
        tuple.serialize_element(item)?;
    }
    tuple.end()
}

/// Whether a value left bytes; a null leaves none, so that its key can be taken back.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Written {
    Something,
    Nothing,
}

#[derive(Debug)]
pub(super) struct NoJsonForm(String);

impl fmt::Display for NoJsonForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoJsonForm {}

impl ser::Error for NoJsonForm {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self(what.to_string())
    }
}

struct Writer {
    out: Vec<u8>,
    flavour: Flavour,
    depth: usize,
}

impl Writer {
    fn display(&mut self, value: impl fmt::Display) -> Result<Written, NoJsonForm> {
        write!(self.out, "{value}").expect("writing to memory");
        Ok(Written::Something)
    }

    fn line(&mut self) {
        self.out.push(b'\n');
        self.out.resize(self.out.len() + self.depth, b'\t');
    }

    fn string(&mut self, text: &str) {
        self.out.push(b'"');
        let mut copied = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escape = match byte {
                b'"' | b'\\' => byte,
                b'\x08' => b'b',
                b'\t' => b't',
                b'\n' => b'n',
                b'\x0c' => b'f',
                b'\r' => b'r',
                0..0x20 => b'u',
                _ => continue,
            };
            self.out.extend_from_slice(&text.as_bytes()[copied..at]);
            self.out.extend_from_slice(&[b'\\', escape]);
            if escape == b'u' {
                write!(self.out, "{byte:04x}").expect("writing to memory");
            }
            copied = at + 1;
        }
        self.out.extend_from_slice(&text.as_bytes()[copied..]);
        self.out.push(b'"');
    }

    fn open(&mut self, open: u8, close: u8, pretty: bool) -> Brackets<'_> {
        self.out.push(open);
        self.depth += 1;
        let pretty = pretty && self.flavour.pretty;
        Brackets { writer: self, close, pretty, empty: true, entry: (0, true) }
    }
}

/// As `Double.toString`: shortest digits, at least one behind the point, an exponent below 1E-3 and from 1E7 on.
fn java_double(value: f64) -> String {
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

/// Scalars that `Display` prints as JSON does.
macro_rules! displayed {
    ($($method:ident: $kind:ty,)*) => {
        $(fn $method(self, value: $kind) -> Result<Written, NoJsonForm> {
            self.display(value)
        })*
    };
}

impl<'w> Serializer for &'w mut Writer {
    type Ok = Written;
    type Error = NoJsonForm;
    type SerializeSeq = Brackets<'w>;
    type SerializeTuple = Brackets<'w>;
    type SerializeTupleStruct = Impossible<Written, NoJsonForm>;
    type SerializeTupleVariant = Impossible<Written, NoJsonForm>;
    type SerializeMap = Brackets<'w>;
    type SerializeStruct = Brackets<'w>;
    type SerializeStructVariant = Impossible<Written, NoJsonForm>;

    displayed! {
        serialize_bool: bool,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
    }

    fn serialize_f32(self, value: f32) -> Result<Written, NoJsonForm> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<Written, NoJsonForm> {
        if value.is_finite() { self.display(java_double(value)) } else { Ok(Written::Nothing) }
    }

    fn serialize_char(self, value: char) -> Result<Written, NoJsonForm> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<Written, NoJsonForm> {
        self.string(value);
        Ok(Written::Something)
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Written, NoJsonForm> {
        Err(ser::Error::custom("raw bytes"))
    }

    fn serialize_none(self) -> Result<Written, NoJsonForm> {
        Ok(Written::Nothing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Written, NoJsonForm> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Written, NoJsonForm> {
        Ok(Written::Nothing)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Written, NoJsonForm> {
        Ok(Written::Nothing)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Written, NoJsonForm> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Written, NoJsonForm> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        kind: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Written, NoJsonForm> {
        Err(ser::Error::custom(kind))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Brackets<'w>, NoJsonForm> {
        Ok(self.open(b'[', b']', true))
    }

    fn serialize_tuple(self, _: usize) -> Result<Brackets<'w>, NoJsonForm> {
        Ok(self.open(b'[', b']', false))
    }

    fn serialize_tuple_struct(self, kind: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, NoJsonForm> {
        Err(ser::Error::custom(kind))
    }

    fn serialize_tuple_variant(
        self,
        kind: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, NoJsonForm> {
        Err(ser::Error::custom(kind))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Brackets<'w>, NoJsonForm> {
        Ok(self.open(b'{', b'}', true))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Brackets<'w>, NoJsonForm> {
        Ok(self.open(b'{', b'}', true))
    }

    fn serialize_struct_variant(
        self,
        kind: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, NoJsonForm> {
        Err(ser::Error::custom(kind))
    }
}

/// An open `[` or `{`.
pub(super) struct Brackets<'w> {
    writer: &'w mut Writer,
    close: u8,
    pretty: bool,
    empty: bool,
    /// Where the current member began and `empty` before it, to take it back.
    entry: (usize, bool),
}

impl Brackets<'_> {
    /// Comma and line before an item or a key.
    fn next(&mut self) {
        self.entry = (self.writer.out.len(), self.empty);
        if !self.empty {
            self.writer.out.push(b',');
        }
        if self.pretty {
            self.writer.line();
        }
        self.empty = false;
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJsonForm> {
        self.next();
        if value.serialize(&mut *self.writer)? == Written::Nothing {
            self.writer.out.extend_from_slice(b"null");
        }
        Ok(())
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoJsonForm> {
        self.next();
        let start = self.writer.out.len();
        key.serialize(&mut *self.writer)?;
        let is_integer = matches!(self.writer.out.get(start), Some(b'-' | b'0'..=b'9'));
        if is_integer && self.writer.flavour.quoted_integer_keys {
            self.writer.out.insert(start, b'"');
            self.writer.out.push(b'"');
        }
        self.writer.out.push(b':');
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJsonForm> {
        if value.serialize(&mut *self.writer)? == Written::Nothing {
            let (start, empty) = self.entry;
            self.writer.out.truncate(start);
            self.empty = empty;
        }
        Ok(())
    }

    fn close(self) -> Result<Written, NoJsonForm> {
        self.writer.depth -= 1;
        if self.pretty && !self.empty {
            self.writer.line();
        }
        self.writer.out.push(self.close);
        Ok(Written::Something)
    }
}

impl ser::SerializeSeq for Brackets<'_> {
    type Ok = Written;
    type Error = NoJsonForm;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJsonForm> {
        self.item(value)
    }

    fn end(self) -> Result<Written, NoJsonForm> {
        self.close()
    }
}

impl ser::SerializeTuple for Brackets<'_> {
    type Ok = Written;
    type Error = NoJsonForm;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJsonForm> {
        self.item(value)
    }

    fn end(self) -> Result<Written, NoJsonForm> {
        self.close()
    }
}

impl ser::SerializeMap for Brackets<'_> {
    type Ok = Written;
    type Error = NoJsonForm;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NoJsonForm> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NoJsonForm> {
        self.value(value)
    }

    fn end(self) -> Result<Written, NoJsonForm> {
        self.close()
    }
}

impl ser::SerializeStruct for Brackets<'_> {
    type Ok = Written;
    type Error = NoJsonForm;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), NoJsonForm> {
        self.key(key)?;
        self.value(value)
    }

    fn end(self) -> Result<Written, NoJsonForm> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_javas() {
        for (value, text) in [
            (0.0, "0.0"),
            (0.5, "0.5"),
            (1.0, "1.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (9_999_999.0, "9999999.0"),
            (12_345_678.0, "1.2345678E7"),
            (1e10, "1.0E10"),
            (-1e-7, "-1.0E-7"),
        ] {
            assert_eq!(java_double(value), text);
        }
    }

    #[test]
    fn nulls_leave_no_trace_in_objects_and_stay_in_lists() {
        let members = std::collections::BTreeMap::from([("a", None), ("b", Some(1)), ("c", None)]);
        let flavour = Flavour { quoted_integer_keys: true, pretty: false };
        assert_eq!(to_vec(&members, flavour), br#"{"b":1}"#);
        assert_eq!(to_vec(&[None, Some(1)][..], flavour), b"[null,1]");
        assert_eq!(to_vec(&None::<i32>, flavour), b"null");
    }
}
