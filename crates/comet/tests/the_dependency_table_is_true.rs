//! ARCHITECTURE.md says which crate may use which. The table is compared with what cargo sees, both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

type Table = BTreeMap<String, BTreeSet<String>>;

fn short(name: &str) -> String {
    name.strip_prefix("cometmq-").unwrap_or(name).to_string()
}

fn written() -> Table {
    let text = include_str!("../../../ARCHITECTURE.md");
    let rows =
        text.lines().skip_while(|l| !l.starts_with("| crate | may use |")).skip(2).take_while(|l| l.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let uses = cells[2].split(',').map(str::trim).filter(|c| *c != "–").map(str::to_string).collect();
        (cells[1].to_string(), uses)
    })
    .collect()
}

fn real() -> Table {
    let output =
        Command::new(env!("CARGO")).args(["metadata", "--no-deps", "--format-version", "1", "--offline"]).output();
    let metadata: serde_json::Value = serde_json::from_slice(&output.expect("cargo metadata").stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let uses = |package: &serde_json::Value| -> BTreeSet<String> {
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let normal = dependencies.iter().filter(|d| d["kind"].is_null());
        normal.filter_map(|d| d["name"].as_str()).filter(|n| ours.contains(n)).map(short).collect()
    };
    packages.iter().map(|p| (short(p["name"].as_str().expect("name")), uses(p))).collect()
}

#[test]
fn the_dependency_table_is_true() {
    let (written, real) = (written(), real());
    assert!(written.len() >= 8, "the table was not found: {written:?}");
    assert_eq!(written, real);
}
