//! Whatever a client sends as an expression is answered, and whatever the message then holds. Method: random rows of
//! tokens, and of their pieces, from a fixed seed; what parses is asked with properties of every kind.

use cometmq_filter::SqlFilter;

const PIECES: &[&str] = &[
    "a",
    "b",
    "s",
    "'x'",
    "'5'",
    "''",
    "'",
    "5",
    "0",
    "007",
    "5l",
    "5.5",
    "1.",
    ".",
    "1e",
    "1e1",
    "e+",
    "2147483648",
    "9223372036854775807",
    "99999999999999999999",
    "TRUE",
    "false",
    "NULL",
    "(",
    ")",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "AND",
    "or",
    "NOT",
    "BETWEEN",
    "IN",
    "IS",
    "IS NULL",
    "IS NOT NULL",
    "CONTAINS",
    "startswith",
    "ENDSWITH",
    "LIKE",
    ",",
    "+",
    "-",
    "--",
    "--x\n",
    "/*",
    "*/",
    "/* x */",
    "/",
    "\0",
    "组",
    "$",
    "\u{feff}",
    "a = 1 AND",
    "b IN ('x')",
];
const VALUES: &[&str] = &["5", "-5", "5.5", "abc", "true", "", "NaN", "1e400", "组", "99999999999999999999", "-", "."];

/// Xorshift: the same rows in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

#[test]
fn no_expression_panics() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut parsed = 0;
    for _ in 0..200_000 {
        let mut text = String::new();
        for _ in 0..=random.below(10) {
            text.push_str(random.pick(PIECES));
            text.push_str(["", " ", " ", " "][random.below(4)]);
        }
        match SqlFilter::parse(&text) {
            Ok(filter) => {
                parsed += 1;
                let values = [(); 3].map(|()| (random.below(4) > 0).then(|| random.pick(VALUES)));
                let look_up = |name: &str| match name {
                    "a" => values[0],
                    "b" => values[1],
                    _ => values[2],
                };
                let _ = filter.evaluate(&look_up);
            }
            Err(error) => {
                assert!(error.position <= text.len() && text.is_char_boundary(error.position), "{text:?}: {error:?}");
                assert!(text[error.position..].starts_with(&error.near), "{text:?}: {error:?}");
            }
        }
    }
    assert!(parsed > 5000, "only {parsed} of the rows are expressions");
}
