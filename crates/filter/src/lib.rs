//! SQL92 subscriptions: an expression over a message's properties, parsed once and asked for every message.
//! Pure: no IO, no clock, nothing of ours. Tags need no language and live with the subscription.
//!
//! Reading order: `expression` (what is kept, what it answers) → `parse` (grammar, which operands fit which operator) →
//! `lex` (tokens) → `number` (Java's numbers) → `error`. `bloom` stands alone: the bits of a subscription in the store.
//!
//! Invariants: no input panics; the depth of recursion, the length of a text and the number of its literals are bounded.
//! Java: `filter.SqlFilter`, `filter.parser.SelectorParser`, `filter.expression.*`, `filter.util.BloomFilter`.

pub mod bloom;

mod expression;
mod parse;
mod lex;
mod number;
mod error;

pub use error::{Incomparable, SqlError, What};
pub use expression::SqlFilter;
pub use parse::{LITERALS_MAX, NESTING_MAX, TEXT_BYTES_MAX};
