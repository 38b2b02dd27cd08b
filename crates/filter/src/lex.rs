//! Text → tokens, one at a time. White space, `/* … */` and `-- …` up to the end of a line stand between tokens.
//! Java: the token part of `SelectorParser.jj`; the longest match wins.

use crate::error::{SqlError, What};

/// `at..end` is where it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token<'t> {
    pub kind: Kind<'t>,
    pub at: usize,
    pub end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind<'t> {
    Not,
    And,
    Or,
    Between,
    In,
    True,
    False,
    Null,
    Is,
    Contains,
    StartsWith,
    EndsWith,
    /// Without the suffix `l`.
    Decimal(&'t str),
    Float(&'t str),
    /// What stands between the quotes, `''` still doubled.
    Text(&'t str),
    Name(&'t str),
    Equal,
    Unequal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Open,
    Comma,
    Close,
    Plus,
    Minus,
    End,
}

const WORDS: [(&str, Kind<'static>); 12] = [
    ("NOT", Kind::Not),
    ("AND", Kind::And),
    ("OR", Kind::Or),
    ("BETWEEN", Kind::Between),
    ("IN", Kind::In),
    ("TRUE", Kind::True),
    ("FALSE", Kind::False),
    ("NULL", Kind::Null),
    ("IS", Kind::Is),
    ("CONTAINS", Kind::Contains),
    ("STARTSWITH", Kind::StartsWith),
    ("ENDSWITH", Kind::EndsWith),
];

/// The token that begins at or after `from`, which must be the end of the token before it, or 0.
pub(crate) fn token(text: &str, from: usize) -> Result<Token<'_>, SqlError> {
    let at = skip_blanks(text, from);
    let rest = text.get(at..).unwrap_or_default();
    let (kind, len) = match rest.as_bytes() {
        [] => (Kind::End, 0),
        [b'\'', ..] => quoted(rest).ok_or_else(|| SqlError::new(text, at, What::UnclosedString))?,
        [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => number(rest),
        [b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$', ..] => word(rest),
        [b'<', b'>', ..] => (Kind::Unequal, 2),
        [b'>', b'=', ..] => (Kind::GreaterEqual, 2),
        [b'<', b'=', ..] => (Kind::LessEqual, 2),
        [b'=', ..] => (Kind::Equal, 1),
        [b'>', ..] => (Kind::Greater, 1),
        [b'<', ..] => (Kind::Less, 1),
        [b'(', ..] => (Kind::Open, 1),
        [b',', ..] => (Kind::Comma, 1),
        [b')', ..] => (Kind::Close, 1),
        [b'+', ..] => (Kind::Plus, 1),
        [b'-', ..] => (Kind::Minus, 1),
        [b'/', b'*', ..] => return Err(SqlError::new(text, at, What::UnclosedComment)),
        _ => {
            let unknown = rest.chars().next().unwrap_or_default();
            return Err(SqlError::new(text, at, What::UnknownCharacter(unknown)));
        }
    };
    Ok(Token { kind, at, end: at + len })
}

/// A `--` without an end of line behind it is no comment but two signs, as in Java: `a > --5`.
fn skip_blanks(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let blank = match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | b'\x0c', ..] => Some(1),
            [b'-', b'-', ..] => rest.iter().position(|b| matches!(b, b'\n' | b'\r')).map(|line_end| line_end + 1),
            [b'/', b'*', body @ ..] => body.windows(2).position(|w| w == b"*/").map(|end| end + 4),
            _ => None,
        };
        match blank {
            Some(len) => at += len,
            None => return at,
        }
    }
}

fn quoted(rest: &str) -> Option<(Kind<'_>, usize)> {
    let bytes = rest.as_bytes();
    let mut end = 1;
    loop {
        end += bytes.get(end..)?.iter().position(|b| *b == b'\'')?;
        match bytes.get(end + 1) {
            Some(b'\'') => end += 2,
            _ => return Some((Kind::Text(&rest[1..end]), end + 1)),
        }
    }
}

/// `007` is three tokens (only a lone 0 begins with 0), `007.` one float.
fn number(rest: &str) -> (Kind<'_>, usize) {
    let bytes = rest.as_bytes();
    let whole = digits(bytes, 0);
    let point = bytes.get(whole) == Some(&b'.');
    let mantissa = if point { digits(bytes, whole + 1) } else { whole };
    let len = exponent(bytes, mantissa);
    if point || len > mantissa {
        return (Kind::Float(&rest[..len]), len);
    }
    match bytes {
        [b'0', ..] => (Kind::Decimal("0"), 1),
        _ if matches!(bytes.get(whole), Some(b'l' | b'L')) => (Kind::Decimal(&rest[..whole]), whole + 1),
        _ => (Kind::Decimal(&rest[..whole]), whole),
    }
}

/// Where the digits that begin at `from` end.
fn digits(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Where the exponent at `from` ends; `from` if what stands there is none.
fn exponent(bytes: &[u8], from: usize) -> usize {
    let first = match bytes[from..] {
        [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] => from + 2,
        [b'e' | b'E', b'0'..=b'9', ..] => from + 1,
        _ => return from,
    };
    digits(bytes, first)
}

fn word(rest: &str) -> (Kind<'_>, usize) {
    let len = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')).count();
    let name = &rest[..len];
    let keyword = WORDS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word)).map(|(_, kind)| *kind);
    (keyword.unwrap_or(Kind::Name(name)), len)
}
