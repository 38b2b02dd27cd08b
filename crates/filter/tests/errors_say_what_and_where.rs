//! A refused expression comes with the place and the reason: they are the remark that the consumer's log shows.

use cometmq_filter::{LITERALS_MAX, NESTING_MAX, SqlFilter, TEXT_BYTES_MAX, What};

fn refused(expression: &str) -> (usize, What) {
    let error = SqlFilter::parse(expression).expect_err(expression);
    (error.position, error.what)
}

#[test]
fn a_refused_expression_says_where() {
    assert_eq!(refused("a/b/c = 1"), (1, What::UnknownCharacter('/')));
    assert_eq!(refused("a = 1;"), (5, What::UnknownCharacter(';')));
    assert_eq!(refused("组 = 1"), (0, What::UnknownCharacter('组')));
    assert_eq!(refused("a > 1 AND b = 'x"), (14, What::UnclosedString));
    assert_eq!(refused("a = 1 /* b"), (6, What::UnclosedComment));
    assert_eq!(refused("a > 9223372036854775808"), (4, What::NumberOutOfRange));
    assert_eq!(refused("a > 0.0"), (4, What::NumberOutOfRange));
    assert_eq!(refused("a IS NULL AND 'x'"), (14, What::NotACondition));
    assert_eq!(refused("a > 1 OR b < 'x'"), (13, What::NotOrdered));
    assert_eq!(refused("(a = 1) > 2"), (0, What::NotOrdered));
    assert_eq!(refused("a = NULL"), (4, What::NullCompared));
    assert_eq!(refused("TRUE = 1"), (0, What::BooleanCompared));
    assert_eq!(refused("a BETWEEN 9 AND 1"), (10, What::EmptyRange));
    assert_eq!(refused("1 IN ('1')"), (0, What::NotAProperty));
    assert_eq!(refused("s LIKE 's%' AND a = 1"), (2, What::Like));
}

#[test]
fn what_is_missing_is_named() {
    for (expression, position, wanted) in [
        ("", 0, "a property, a literal or ("),
        ("a >", 3, "a property, a literal or ("),
        ("a = = 1", 4, "a property, a literal or ("),
        ("(a = 1", 6, ")"),
        ("a BETWEEN 3", 11, "AND and the upper bound"),
        ("a IS 5", 5, "NULL or NOT NULL"),
        ("a IN ('x' 'y')", 10, ", or )"),
        ("a CONTAINS b", 11, "a string in single quotes"),
        ("a NOT LIKE 'x'", 6, "CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN"),
        ("a < 10bbbbb", 6, "an operator or the end"),
        ("a = 1)", 5, "an operator or the end"),
    ] {
        assert_eq!(refused(expression), (position, What::Expected(wanted)), "{expression}");
    }
}

#[test]
fn an_error_reads_well() {
    let text = |expression| SqlFilter::parse(expression).expect_err(expression).to_string();
    assert_eq!(text("a < 10bbbbb"), r#"expected an operator or the end at position 6, near "bbbbb""#);
    assert_eq!(text("a >"), "expected a property, a literal or ( at position 3 (the end)");
    assert_eq!(text("a/b/c"), r#"unknown character '/' at position 1, near "/b/c""#);
    assert!(text(&format!("a = '{}", "x".repeat(1000))).len() < 100);
}

#[test]
fn everything_has_a_limit() {
    let nested = |depth| format!("{}a = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(SqlFilter::parse(&nested(NESTING_MAX)).is_ok());
    assert_eq!(refused(&nested(NESTING_MAX + 1)), (NESTING_MAX, What::TooDeep));
    for endless in ["NOT ", "- ", "+ ", "("] {
        assert_eq!(refused(&endless.repeat(10_000)).1, What::TooDeep, "{endless}");
    }
    for chained in [" = 1", " <> TRUE", " IS NULL", " IS NOT NULL", " CONTAINS 'x'"] {
        assert_eq!(refused(&format!("a{}", chained.repeat(4000))).1, What::TooDeep, "{chained}");
    }

    let list = |strings| format!("a IN ({}'')", "'',".repeat(strings - 1));
    assert!(SqlFilter::parse(&list(LITERALS_MAX)).is_ok());
    assert_eq!(refused(&list(LITERALS_MAX + 1)).1, What::TooManyLiterals);

    let long = |bytes: usize| format!("a = 1{}", " ".repeat(bytes - 5));
    assert!(SqlFilter::parse(&long(TEXT_BYTES_MAX)).is_ok());
    assert_eq!(refused(&long(TEXT_BYTES_MAX + 1)).1, What::TooLong);
}

#[test]
fn many_terms_are_not_deep() {
    let terms: Vec<String> = (0..5000).map(|i| format!("a = {i}")).collect();
    let filter = SqlFilter::parse(&terms.join(" OR ")).expect("5000 terms");
    assert!(filter.matches(&|_: &str| Some("4999")));
    assert!(!filter.matches(&|_: &str| Some("5000")));
}
