//! fastjson's conversions, for bodies that do not fit their type strictly: a null member is a missing one, a string
//! that holds a number is that number, a number is a truncated or printed one. Cold: entered after a strict failure.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

pub(super) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    let value = serde_json::from_slice(json).ok()?;
    T::deserialize(Coerced(value)).ok()
}

struct Coerced(Value);

impl Coerced {
    /// The number that fastjson would see; anything else is left for serde to refuse.
    fn number(self) -> Value {
        match &self.0 {
            Value::String(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(int), _) => Value::from(int),
                (_, Ok(float)) => Value::from(float),
                _ => self.0,
            },
            Value::Bool(bool) => Value::from(u8::from(*bool)),
            _ => self.0,
        }
    }

    fn integer(self) -> Value {
        match self.number() {
            Value::Number(float) if float.is_f64() => Value::from(float.as_f64().unwrap_or_default() as i64),
            other => other,
        }
    }

    fn bool(self) -> Value {
        match &self.0 {
            Value::String(text) if text.eq_ignore_ascii_case("true") => Value::from(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Value::from(false),
            Value::Number(number) => Value::from(number.as_i64() != Some(0)),
            _ => self.0,
        }
    }

    fn text(self) -> Value {
        match &self.0 {
            Value::Number(number) => Value::from(number.to_string()),
            Value::Bool(bool) => Value::from(bool.to_string()),
            _ => self.0,
        }
    }
}

impl IntoDeserializer<'_, Error> for Coerced {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Methods that convert first: name → conversion.
macro_rules! converting {
    ($($method:ident: $conversion:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.$conversion().deserialize_any(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Coerced {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Coerced))),
            Value::Object(members) => {
                let members = members.into_iter().filter(|(_, value)| !value.is_null());
                let members = members.map(|(key, value)| (Coerced(Value::String(key)), Coerced(value)));
                visitor.visit_map(MapDeserializer::new(members))
            }
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    converting! {
        deserialize_bool: bool,
        deserialize_i8: integer, deserialize_i16: integer, deserialize_i32: integer, deserialize_i64: integer,
        deserialize_u8: integer, deserialize_u16: integer, deserialize_u32: integer, deserialize_u64: integer,
        deserialize_f32: number, deserialize_f64: number,
        deserialize_str: text, deserialize_string: text,
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
