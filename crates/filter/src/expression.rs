//! A parsed expression, and what it says about one message: true, false, unknown (a property is missing), or that the
//! message does not fit it. Asking allocates nothing.
//!
//! Surprises that are Java's, and that subscriptions in use rely on:
//! - a property is text until it meets a number; then it must be one of that kind (`a = 5` fails on "5.0", `a = 5.0`
//!   does not), and a failure decides the whole expression unless `AND`/`OR` were decided before it;
//! - `=` is not symmetric: a missing left side is unknown, a missing right side false, two missing sides are equal;
//! - `NOT` binds tighter than everything: `NOT a = 1` compares the boolean `NOT a` with 1;
//! - CONTAINS, STARTSWITH, ENDSWITH and their NOT forms are false, not unknown, on a missing property or an empty string.
//!
//! Java: `filter.expression.*`.

use std::cmp::Ordering;

use crate::error::{Incomparable, SqlError};
use crate::number::{compare_doubles, double, int, long};
use crate::parse;

/// A SQL92 subscription. Cheap to share between threads; `parse` once, `matches` per message.
#[derive(Debug, Clone)]
pub struct SqlFilter {
    /// Operands stand before their operators.
    pub(crate) nodes: Box<[Node]>,
    pub(crate) root: Id,
}

/// Index into `SqlFilter::nodes`.
pub(crate) type Id = u32;

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Literal(Literal),
    Property(Box<str>),
    /// `-` before what is not a number literal: never a number, so unknown.
    Negated(Id),
    /// A property where a condition is asked for: text is no boolean, so false, or unknown if missing.
    PropertyAsCondition(Box<str>),
    Not(Id),
    Or(Box<[Id]>),
    And(Box<[Id]>),
    Equal(Id, Id),
    Order(Comparison, Id, Id),
    Between {
        value: Id,
        low: Id,
        high: Id,
        outside: bool,
    },
    Search {
        search: Search,
        within: Id,
        sought: Box<str>,
        not: bool,
    },
    In {
        property: Box<str>,
        sorted: Box<[Box<str>]>,
        not: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Text(Box<str>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Comparison {
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Search {
    Contains,
    StartsWith,
    EndsWith,
}

/// What an operand comes to. Java: null, Boolean, Integer, Long, Double, String.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Text(&'v str),
}

impl SqlFilter {
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        parse::parse(text)
    }

    /// Whether a subscriber gets the message: only if the expression is true. `property` looks a property up by its
    /// exact name (`TAGS` and `KEYS` are properties like others).
    pub fn matches<'p, F>(&self, property: &F) -> bool
    where
        F: Fn(&str) -> Option<&'p str> + ?Sized,
    {
        self.evaluate(property) == Ok(Some(true))
    }

    /// True, false, or unknown (`None`) as SQL means it; or why this message cannot be asked.
    pub fn evaluate<'p, F>(&self, property: &F) -> Result<Option<bool>, Incomparable>
    where
        F: Fn(&str) -> Option<&'p str> + ?Sized,
    {
        self.condition(self.root, property)
    }

    /// The depth of the recursion is bounded by the parser.
    fn condition<'v, 'p: 'v, F>(&'v self, id: Id, property: &F) -> Result<Option<bool>, Incomparable>
    where
        F: Fn(&str) -> Option<&'p str> + ?Sized,
    {
        match &self.nodes[id as usize] {
            Node::Or(terms) => self.first_that_is(true, terms, property),
            Node::And(terms) => self.first_that_is(false, terms, property),
            Node::Not(term) => Ok(self.condition(*term, property)?.map(|holds| !holds)),
            Node::Equal(left, right) => equal(self.value(*left, property)?, self.value(*right, property)?),
            Node::Order(comparison, left, right) => match self.value(*left, property)? {
                Value::Null => Ok(None),
                left => comparison.holds(left, self.value(*right, property)?),
            },
            Node::Between { value, low, high, outside } => self.between([*value, *low, *high], *outside, property),
            Node::Search { sought, .. } if sought.is_empty() => Ok(Some(false)),
            Node::Search { search, within, sought, not } => match self.value(*within, property)? {
                Value::Text(text) => Ok(Some(search.finds(sought, text) != *not)),
                _ => Ok(Some(false)),
            },
            Node::In { property: name, sorted, not } => {
                Ok(property(name).map(|text| sorted.binary_search_by(|s| (**s).cmp(text)).is_ok() != *not))
            }
            Node::PropertyAsCondition(name) => Ok(property(name).map(|_| false)),
            Node::Literal(Literal::Bool(holds)) => Ok(Some(*holds)),
            Node::Negated(operand) => self.value(*operand, property).map(|_| None),
            Node::Literal(_) | Node::Property(_) => Ok(None),
        }
    }

    fn value<'v, 'p: 'v, F>(&'v self, id: Id, property: &F) -> Result<Value<'v>, Incomparable>
    where
        F: Fn(&str) -> Option<&'p str> + ?Sized,
    {
        match &self.nodes[id as usize] {
            Node::Property(name) => Ok(property(name).map_or(Value::Null, Value::Text)),
            Node::Literal(literal) => Ok(literal.value()),
            _ => Ok(self.condition(id, property)?.map_or(Value::Null, Value::Bool)),
        }
    }

    /// `deciding` at the first term that is; else unknown if any term is; else the opposite.
    fn first_that_is<'v, 'p: 'v, F>(
        &'v self,
        deciding: bool,
        terms: &[Id],
        property: &F,
    ) -> Result<Option<bool>, Incomparable>
    where
        F: Fn(&str) -> Option<&'p str> + ?Sized,
    {
        let mut otherwise = Some(!deciding);
        for term in terms {
            match self.condition(*term, property)? {
                Some(holds) if holds == deciding => return Ok(Some(deciding)),
                Some(_) => {}
                None => otherwise = None,
            }
        }
        Ok(otherwise)
    }

    /// `value >= low AND value <= high`, or `value < low OR value > high`, with one look at `value`.
    fn between<'v, 'p: 'v, F>(
        &'v self,
        [value, low, high]: [Id; 3],
        outside: bool,
        property: &F,
    ) -> Result<Option<bool>, Incomparable>
    where
        F: Fn(&str) -> Option<&'p str> + ?Sized,
    {
        let value = self.value(value, property)?;
        if matches!(value, Value::Null) {
            return Ok(None);
        }
        let (at_low, at_high) = match outside {
            false => (Comparison::GreaterEqual, Comparison::LessEqual),
            true => (Comparison::Less, Comparison::Greater),
        };
        let first = at_low.holds(value, self.value(low, property)?)?;
        if first == Some(outside) {
            return Ok(first);
        }
        let second = at_high.holds(value, self.value(high, property)?)?;
        Ok(if second == Some(outside) { second } else { first.and(second) })
    }
}

impl Literal {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(*b),
            Self::Int(n) => Value::Int(*n),
            Self::Long(n) => Value::Long(*n),
            Self::Double(n) => Value::Double(*n),
            Self::Text(text) => Value::Text(text),
        }
    }
}

impl Comparison {
    /// Two texts are compared as doubles.
    fn holds(self, left: Value<'_>, right: Value<'_>) -> Result<Option<bool>, Incomparable> {
        let order = match (left, right) {
            (Value::Null, _) | (_, Value::Null) => return Ok(None),
            (Value::Text(left), Value::Text(right)) => match (double(left), double(right)) {
                (Some(left), Some(right)) => compare_doubles(left, right),
                _ => return Err(Incomparable::StringOrder),
            },
            _ => compare(left, right)?,
        };
        Ok(Some(match self {
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
        }))
    }
}

impl Search {
    fn finds(self, sought: &str, text: &str) -> bool {
        match self {
            Self::Contains => text.contains(sought),
            Self::StartsWith => text.starts_with(sought),
            Self::EndsWith => text.ends_with(sought),
        }
    }
}

fn equal(left: Value<'_>, right: Value<'_>) -> Result<Option<bool>, Incomparable> {
    match (left, right) {
        (Value::Null, Value::Null) => Ok(Some(true)),
        (Value::Null, _) => Ok(None),
        (_, Value::Null) => Ok(Some(false)),
        _ => Ok(Some(compare(left, right)?.is_eq())),
    }
}

/// Java: `ComparisonExpression.__compare`. The side that is text becomes what the other side is, with one exception:
/// a boolean on the left and text on the right fails in Java's cast. Neither side is null.
pub(crate) fn compare(left: Value<'_>, right: Value<'_>) -> Result<Ordering, Incomparable> {
    use Value::{Bool, Double, Int, Long, Null, Text};
    let number = Incomparable::NotANumber;
    Ok(match (left, right) {
        (Int(l), Int(r)) => l.cmp(&r),
        (Int(l), Long(r)) => i64::from(l).cmp(&r),
        (Long(l), Int(r)) => l.cmp(&i64::from(r)),
        (Long(l), Long(r)) => l.cmp(&r),
        (Double(l), Double(r)) => compare_doubles(l, r),
        (Double(l), Int(r)) => compare_doubles(l, r.into()),
        (Double(l), Long(r)) => compare_doubles(l, r as f64),
        (Int(l), Double(r)) => compare_doubles(l.into(), r),
        (Long(l), Double(r)) => compare_doubles(l as f64, r),
        (Text(l), Text(r)) => l.cmp(r),
        (Text(l), Int(r)) => int(l).ok_or(number)?.cmp(&r),
        (Text(l), Long(r)) => long(l).ok_or(number)?.cmp(&r),
        (Text(l), Double(r)) => compare_doubles(double(l).ok_or(number)?, r),
        (Int(l), Text(r)) => l.cmp(&int(r).ok_or(number)?),
        (Long(l), Text(r)) => l.cmp(&long(r).ok_or(number)?),
        (Double(l), Text(r)) => compare_doubles(l, double(r).ok_or(number)?),
        (Text(l), Bool(r)) => l.eq_ignore_ascii_case("true").cmp(&r),
        (Bool(l), Bool(r)) => l.cmp(&r),
        (Bool(_), Text(_)) => return Err(Incomparable::BooleanWithString),
        // A boolean and a number: Java says "less" whichever side they stand on. They meet only under `=`.
        (Bool(_), Int(_) | Long(_) | Double(_)) | (Int(_) | Long(_) | Double(_), Bool(_)) => Ordering::Less,
        (Null, _) | (_, Null) => Ordering::Less,
    })
}
