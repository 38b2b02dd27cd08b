//! The `.properties` text format: `broker.conf`, the bodies of GET/UPDATE_BROKER_CONFIG (26/25), the name server's file.
//!
//! Reads    `key=value`, `key: value` or `key value` a line; `#` and `!` open a comment; a line that ends in an odd
//!          number of backslashes goes on in the next, whose indentation is dropped; `\t \n \r \f \uXXXX` and, for
//!          any other character, `\c` for `c`.
//!          Only the first separator separates: a value keeps its `=`, `:`, `#` and the spaces inside and behind it.
//! Writes   What the format's readers take back exactly, in ASCII, because Java decodes such a file as Latin-1.
//! Odd      Where Java throws on a `\u` without four hex digits, the text is kept as it stands: it is most likely
//!          a Windows path.
//! Java     `java.util.Properties.load`, `MixAll.string2Properties`, `MixAll.properties2String` (which escapes nothing).

/// What separates a key from its value and is dropped at the start of a line.
const BLANK: [char; 3] = [' ', '\t', '\x0c'];

/// The entries of `text` in the order they stand; a key that stands twice is there twice.
pub fn parse(text: &str) -> Vec<(String, String)> {
    logical_lines(text).iter().map(|line| entry(line)).collect()
}

/// Appends one `key=value` line.
pub fn write(out: &mut String, key: &str, value: &str) {
    for c in key.chars() {
        if matches!(c, ' ' | '=' | ':' | '#' | '!') {
            out.push('\\');
            out.push(c);
        } else {
            write_char(out, c);
        }
    }
    out.push('=');
    if value.starts_with(' ') {
        out.push('\\');
    }
    for c in value.chars() {
        write_char(out, c);
    }
    out.push('\n');
}

/// The lines that hold an entry, continuations joined, escapes untouched.
fn logical_lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    let mut natural = text.split(['\n', '\r']).map(|line| line.trim_start_matches(BLANK));
    let mut lines = Vec::new();
    while let Some(first) = natural.next() {
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut line = first.to_owned();
        while goes_on(&line) {
            line.pop();
            match natural.next() {
                Some(next) => line.push_str(next),
                None => break,
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

fn goes_on(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

fn entry(line: &str) -> (String, String) {
    let mut escaped = false;
    let key_end = line.find(|c| {
        let ends = !escaped && (matches!(c, '=' | ':') || BLANK.contains(&c));
        escaped = c == '\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at(key_end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANK);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(BLANK);
    (unescape(key), unescape(value))
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some((decoded, after)) = utf16_run(rest) {
            out.push_str(&decoded);
            rest = after;
            continue;
        }
        let mut chars = rest.chars();
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => out.push_str("\\u"),
            Some(c) => out.push(c),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// The characters of `uXXXX`, and of the `\uXXXX` that follow at once: a character beyond the first 65 536 is two of
/// them. A half without its other half becomes U+FFFD.
fn utf16_run(text: &str) -> Option<(String, &str)> {
    let (unit, mut rest) = utf16_unit(text)?;
    let mut units = vec![unit];
    while let Some((unit, after)) = rest.strip_prefix('\\').and_then(utf16_unit) {
        units.push(unit);
        rest = after;
    }
    Some((String::from_utf16_lossy(&units), rest))
}

fn utf16_unit(text: &str) -> Option<(u16, &str)> {
    let (hex, rest) = text.strip_prefix('u')?.split_at_checked(4)?;
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some((u16::from_str_radix(hex, 16).ok()?, rest))
}

fn write_char(out: &mut String, c: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\x0c' => out.push_str("\\f"),
        ' '..='~' => out.push(c),
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04X}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_entries(text: &str, entries: &[(&str, &str)]) {
        let parsed = parse(text);
        let parsed: Vec<(&str, &str)> = parsed.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(parsed, entries, "from {text:?}");
    }

    fn written(key: &str, value: &str) -> String {
        let mut out = String::new();
        write(&mut out, key, value);
        out
    }

    #[test]
    fn the_three_separators_mean_the_same() {
        assert_entries("a=1\nb:2\nc 3\nd\t4", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
        assert_entries("  a = 1\n\x0cb\t:\t2\nc  3\nd =:4", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", ":4")]);
    }

    #[test]
    fn a_value_keeps_what_separates_and_comments_elsewhere() {
        assert_entries("messageDelayLevel=1s 5s 10s", &[("messageDelayLevel", "1s 5s 10s")]);
        assert_entries("k=a=b#c!d:e f ", &[("k", "a=b#c!d:e f ")]);
        assert_entries("k==", &[("k", "=")]);
    }

    #[test]
    fn comments_and_blank_lines_are_no_entries() {
        assert_entries("# a=1\n  ! b=2 \\\nc=3\n\n \t\x0c\nd=4#x", &[("c", "3"), ("d", "4#x")]);
    }

    #[test]
    fn a_key_may_lack_a_value_and_a_value_its_key() {
        assert_entries("a\nb=\n=c\n=", &[("a", ""), ("b", ""), ("", "c"), ("", "")]);
    }

    #[test]
    fn lines_end_in_any_of_the_three_ways() {
        assert_entries("a=1\r\nb=2\rc=3\nd=4", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    }

    #[test]
    fn an_odd_backslash_continues_the_line() {
        assert_entries("a=x,\\\n   y,\\\r\n\tz\nb=1", &[("a", "x,y,z"), ("b", "1")]);
        assert_entries("a=x\\\\\nb=1", &[("a", "x\\"), ("b", "1")]);
        assert_entries("a=x\\\\\\\ny", &[("a", "x\\y")]);
        assert_entries("a=x\\\n#y", &[("a", "x#y")]);
        assert_entries("a=x\\\n\nb=1", &[("a", "x"), ("b", "1")]);
        assert_entries("a=x\\", &[("a", "x")]);
        assert_entries("\\\n\nb=1", &[("b", "1")]);
    }

    #[test]
    fn escapes_are_resolved_in_keys_and_values() {
        assert_entries(r"a\ b\=c\:d=\ttab\nline\r\f", &[("a b=c:d", "\ttab\nline\r\x0c")]);
        assert_entries(r"a\\=b", &[("a\\", "b")]);
        assert_entries(r"a=\z\#\'\\", &[("a", r"z#'\")]);
        assert_entries(r"a=\u4e2d\u6587.\uD83D\uDE80!", &[("a", "中文.🚀!")]);
        assert_entries("a=中文", &[("a", "中文")]);
    }

    #[test]
    fn what_looks_like_a_unicode_escape_and_is_none_stays() {
        assert_entries(r"a=C:\users", &[("a", r"C:\users")]);
        assert_entries(r"a=\u12", &[("a", r"\u12")]);
        assert_entries(r"a=\u+123", &[("a", r"\u+123")]);
        assert_entries("a=\\u12é", &[("a", "\\u12é")]);
        assert_entries(r"a=\uD83Dx", &[("a", "\u{FFFD}x")]);
    }

    #[test]
    fn ordinary_values_are_written_as_they_are() {
        assert_eq!(written("messageDelayLevel", "1s 5s=10s #!:"), "messageDelayLevel=1s 5s=10s #!:\n");
        assert_eq!(written("namesrvAddr", ""), "namesrvAddr=\n");
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(written("a b", "中🚀\\"), "a\\ b=\\u4E2D\\uD83D\\uDE80\\\\\n");
        let values =
            [" =#!:\t\n\r\x0c\\", "  two", "ends in \\", "\\u0041", "trailing ", "é\u{0}\u{7f}", "", "=", "\\\n#"];
        for text in values {
            assert_entries(&written(text, text), &[(text, text)]);
        }
    }
}
