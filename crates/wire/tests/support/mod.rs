//! Reads `tests/golden`: bytes that the classes of Apache RocketMQ 5.5.0 wrote (see the README there).

#![allow(dead_code)] // Each test uses its part.

use serde_json::Value;

/// A line: its name, its data, and what Java's own decoder reads from the data.
pub struct Golden {
    pub name: String,
    pub data: String,
    pub facts: Value,
}

pub fn golden(file: &str) -> Vec<Golden> {
    let path = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let line = |line: &str| {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_else(|| panic!("{path}: not three parts: {line:.80}"));
        Golden { name: part(), data: part(), facts: serde_json::from_str(&part()).unwrap() }
    };
    text.lines().map(line).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// An empty byte string and Java's null are one.
pub fn hex_or_null(bytes: &[u8]) -> Value {
    if bytes.is_empty() { Value::Null } else { Value::String(hex(bytes)) }
}
