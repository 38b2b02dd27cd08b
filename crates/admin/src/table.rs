//! Tables as mqadmin prints them: its `printf` formats, filled with text.

/// Rows under a headline.
pub(crate) struct Table {
    row: &'static str,
    text: String,
}

impl Table {
    /// `head` and `row` are formats of `printf`: `%s` or `%d`, with a width and `-` for left.
    pub(crate) fn new(head: &str, titles: &[&str], row: &'static str) -> Self {
        Self { row, text: format(head, titles) }
    }

    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        self.text += &format(self.row, cells);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// One line, newline included.
pub(crate) fn format<S: AsRef<str>>(format: &str, cells: &[S]) -> String {
    let mut pieces = format.split('%');
    let mut line = pieces.next().unwrap_or_default().to_string();
    let mut cells = cells.iter();
    for piece in pieces {
        let end = piece.find(['s', 'd']).unwrap_or(piece.len());
        let (spec, rest) = piece.split_at(end);
        let cell = cells.next().map_or("", |c| c.as_ref());
        let width: usize = spec.trim_start_matches('-').parse().unwrap_or(0);
        line += &if spec.starts_with('-') { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
        line += rest.get(1..).unwrap_or_default();
    }
    line + "\n"
}

/// At most so many characters. Java: `UtilAll.frontStringAtLeast`.
pub(crate) fn front(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_printfs() {
        assert_eq!(format("%-6s|%6s|%s.", &["ab", "cd", "ef"]), "ab    |    cd|ef.\n");
        assert_eq!(format("%-2d %s", &["12345", ""]), "12345 \n");
        assert_eq!(format("plain", &[""; 0]), "plain\n");
        assert_eq!((front("abc", 2), front("äb", 5), front("äöü", 2)), ("ab", "äb", "äö"));
    }
}
