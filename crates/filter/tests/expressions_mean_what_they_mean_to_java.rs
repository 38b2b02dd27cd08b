//! Every line of `java_vectors.tsv` was put to the parser and evaluator of Apache RocketMQ 5.5.0; ours says the same, but
//! for the lines whose last column says otherwise. The file's head explains its columns.

use cometmq_filter::SqlFilter;

fn unescape(text: &str) -> String {
    let (mut plain, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next().expect("an escaped character") {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'f' => '\x0c',
                '0' => '\0',
                other => panic!("unknown escape {other}"),
            },
            _ => c,
        });
    }
    plain
}

fn properties(column: &str) -> Vec<(&str, &str)> {
    column.split(';').filter(|p| !p.is_empty()).map(|p| p.split_once('=').expect("name=value")).collect()
}

fn ours(expression: &str, properties: &[(&str, &str)]) -> &'static str {
    let Ok(filter) = SqlFilter::parse(expression) else { return "INVALID" };
    let look_up = |name: &str| properties.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
    let answer = filter.evaluate(&look_up);
    assert_eq!(filter.matches(&look_up), answer == Ok(Some(true)), "{expression}");
    match answer {
        Ok(Some(true)) => "TRUE",
        Ok(Some(false)) => "FALSE",
        Ok(None) => "NULL",
        Err(_) => "ERROR",
    }
}

#[test]
fn expressions_mean_what_they_mean_to_java() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for line in include_str!("java_vectors.tsv").lines().filter(|l| !l.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let expected = columns.get(3).unwrap_or(&columns[2]);
        let got = ours(&unescape(columns[0]), &properties(columns[1]));
        checked += 1;
        if got != *expected {
            wrong.push(format!("{line}   ours: {got}"));
        }
    }
    assert!(checked > 1400, "only {checked} lines were read");
    assert!(wrong.is_empty(), "{} of {checked} differ:\n{}", wrong.len(), wrong.join("\n"));
}
