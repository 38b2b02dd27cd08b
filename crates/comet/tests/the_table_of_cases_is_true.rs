//! docs/cases.md names a test for each case, or the part that it comes with. Each test named there exists, and its file names
//! the case.

use std::path::Path;

/// Rows of the table: case, and what shows it.
fn rows() -> Vec<(&'static str, &'static str)> {
    let text = include_str!("../../../docs/cases.md");
    let rows = text.lines().skip_while(|l| !l.starts_with("| case |")).skip(2).take_while(|l| l.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 3, "{row}");
        (cells[0], cells[2])
    })
    .collect()
}

/// Why `file::test` does not show the case.
fn fault(case: &str, test: &str) -> Option<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates");
    let Some((file, name)) = test.split_once("::") else { return Some("not FILE::TEST".to_string()) };
    let text = match std::fs::read_to_string(crates.join(file)) {
        Ok(text) => text,
        Err(error) => return Some(error.to_string()),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_test = |pair: &[&str]| {
        ["#[test]", "#[tokio::test]"].contains(&pair[0])
            && [format!("fn {name}() {{"), format!("async fn {name}() {{")].contains(&pair[1].to_string())
    };
    if !lines.windows(2).any(is_test) {
        return Some("no such test".to_string());
    }
    (!text.contains(case)).then(|| format!("its file does not name {case}"))
}

#[test]
fn the_table_of_cases_is_true() {
    let rows = rows();
    assert!(rows.len() >= 23, "the table was not found: {rows:?}");
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0), "the cases are in order, each once");
    for (case, shown) in rows {
        let tests: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty() || shown.starts_with("with "), "{case} is shown by '{shown}'");
        for test in tests {
            assert_eq!(fault(case, test), None, "{case}: {test}");
        }
    }
}

#[test]
fn a_wrong_table_is_found() {
    let file = "comet/tests/the_table_of_cases_is_true.rs";
    assert_eq!(fault("case", &format!("{file}::the_table_of_cases_is_true")), None);
    assert_eq!(fault("case", &format!("{file}::fault")), Some("no such test".to_string()));
    let other = format!("C{}", 99);
    let unnamed = fault(&other, &format!("{file}::a_wrong_table_is_found"));
    assert_eq!(unnamed, Some(format!("its file does not name {other}")));
    assert!(fault("case", "comet/tests/nowhere.rs::x").is_some());
}
