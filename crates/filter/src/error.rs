//! What can be wrong with an expression: `SqlError` when it is parsed, `Incomparable` when it meets a message.

use crate::parse::{LITERALS_MAX, NESTING_MAX, TEXT_BYTES_MAX};

/// The text is not an expression. The subscription is refused with SUBSCRIPTION_PARSE_FAILED, and this as the remark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at position {position}{}", place(.near))]
pub struct SqlError {
    /// Byte offset into the expression, from 0; its length if something is missing at the end.
    pub position: usize,
    pub what: What,
    /// The text from there on, cut to a length that a remark can carry. Empty at the end.
    pub near: String,
}

/// The complaint of a `SqlError`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum What {
    #[error("expression longer than {TEXT_BYTES_MAX} bytes")]
    TooLong,
    #[error("more than {NESTING_MAX} nested or chained operators")]
    TooDeep,
    #[error("more than {LITERALS_MAX} literals")]
    TooManyLiterals,
    #[error("unknown character {0:?}")]
    UnknownCharacter(char),
    #[error("string without closing quote")]
    UnclosedString,
    #[error("comment without closing */")]
    UnclosedComment,
    #[error("number out of range")]
    NumberOutOfRange,
    #[error("expected {0}")]
    Expected(&'static str),
    #[error("LIKE is not supported (there are CONTAINS, STARTSWITH and ENDSWITH)")]
    Like,
    #[error("a string or number is not a condition")]
    NotACondition,
    #[error("only numbers and properties can be compared by <, <=, >, >= and BETWEEN")]
    NotOrdered,
    #[error("NULL cannot be compared (there is IS NULL)")]
    NullCompared,
    #[error("a boolean literal is compared with another type")]
    BooleanCompared,
    #[error("lower bound above the upper bound")]
    EmptyRange,
    #[error("only a property can be looked for by IN")]
    NotAProperty,
}

/// The message's properties do not fit the expression, which then does not select it, whatever stands beside the
/// comparison: `a > 5 OR b = 'x'` fails on a = "many", as in Java.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    #[error("a property that is compared with a number is not a number of its kind")]
    NotANumber,
    #[error("two strings that are not numbers are compared by <, <=, > or >=")]
    StringOrder,
    #[error("a boolean on the left is compared with a string")]
    BooleanWithString,
}

impl SqlError {
    pub(crate) fn new(text: &str, position: usize, what: What) -> Self {
        let near = text.get(position..).unwrap_or_default().chars().take(24).collect();
        Self { position, what, near }
    }
}

fn place(near: &str) -> String {
    if near.is_empty() { " (the end)".to_string() } else { format!(", near {near:?}") }
}
