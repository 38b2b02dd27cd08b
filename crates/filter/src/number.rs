//! Numbers as Java reads and compares them. A property is text; the literal or property beside it decides what it is
//! read as: `Integer.valueOf`, `Long.valueOf` or `Double.valueOf`.
//!
//! Left out: hexadecimal floats and non-ASCII digits, which Java would read too.

use std::cmp::Ordering;

/// Java: `Integer.valueOf`. Rust's grammar is the same for ASCII: a sign, digits, no blanks.
pub(crate) fn int(text: &str) -> Option<i32> {
    text.parse().ok()
}

/// Java: `Long.valueOf`.
pub(crate) fn long(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Java: `Double.valueOf`: blanks around it, `1.`, `.5`, `1e5`, a suffix f or d, `NaN` and `Infinity` spelled so.
pub(crate) fn double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c| c <= ' ');
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    match digits {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(sign * f64::INFINITY),
        _ => {}
    }
    let digits = digits.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(digits);
    // Rust also reads a second sign, `inf` and `nan`.
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    digits.parse::<f64>().ok().map(|number| sign * number)
}

/// Java: `Double.compareTo`: -0.0 before 0.0, NaN equal to itself and after everything.
pub(crate) fn compare_doubles(left: f64, right: f64) -> Ordering {
    let bits = |d: f64| if d.is_nan() { i64::MAX } else { d.to_bits().cast_signed() };
    left.partial_cmp(&right).filter(|order| order.is_ne()).unwrap_or_else(|| bits(left).cmp(&bits(right)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_read_as_java_does() {
        for (text, number) in
            [("1.", 1.0), (".5", 0.5), (" +1e2\t", 100.0), ("-1.5f", -1.5), ("7D", 7.0), ("1.e1", 10.0)]
        {
            assert_eq!(double(text), Some(number), "{text:?}");
        }
        assert_eq!(double("-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(double("1e999"), Some(f64::INFINITY));
        assert!(double("NaN").is_some_and(f64::is_nan));
        for text in ["", " ", ".", "-", "+-1", "inf", "nan", "infinity", "e5", "1e", "1_0", "1fd", "NaNf", "d", "5 d"] {
            assert_eq!(double(text), None, "{text:?}");
        }
    }

    #[test]
    fn doubles_are_ordered_as_java_does() {
        let ascending = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        for (i, left) in ascending.into_iter().enumerate() {
            for (j, right) in ascending.into_iter().enumerate() {
                assert_eq!(compare_doubles(left, right), i.cmp(&j), "{left} {right}");
            }
        }
        assert_eq!(compare_doubles(-f64::NAN, f64::NAN), Ordering::Equal);
    }
}
