//! The reference page of the configuration, `docs/config.md`, written from the table so that it cannot disagree with it.

use std::fmt::Write;

use super::key::{Effect, Key, Kind, Section};

const INTRO: &str = "\
# Configuration keys

Written from the table in `crates/base/src/config/table.rs`; to change this page, change the table and run
`COMETMQ_WRITE_DOCS=1 cargo test -p cometmq-base docs`.

The keys are RocketMQ's, so a `broker.conf` works as it is. They are set in the file given by `-c`, by `--set key=value`
and, while running, by `mqadmin updateBrokerConfig` and `updateNamesrvConfig`. A key nobody knows is ignored with a
warning; a value that is not of the key's type or range is refused.

- A broker knows the keys of `BrokerConfig`, `MessageStoreConfig`, `NettyServerConfig`, `NettyClientConfig` and
  `AuthConfig`, and those that are only ours (`CometMQ`, below); a name server those of `NamesrvConfig` and `NettyServerConfig`. Of two keys with one name, the earlier
  counts.
- **Effect**: *hot* keys work at once, *restart* keys at the next start. A dash means that the key is accepted and shown,
  but nothing reads it yet; the server warns when such a key is set to something else than its default.
- *Italics* in the default column say what stands in for an empty value. An asterisk marks what Java prints at start.
";

/// The text of `docs/config.md`.
pub fn docs() -> String {
    let mut page = INTRO.to_owned();
    for section in Section::ALL {
        let keys = section.keys();
        page += &format!("\n## {} ({} keys)\n\n", section.java_class(), keys.len());
        page += "| key | type | default | effect |\n|---|---|---|---|\n";
        for key in keys {
            page += &row(key);
        }
    }
    page
}

fn row(key: &Key) -> String {
    let mark = if key.important { " \\*" } else { "" };
    format!("| {}{mark} | {} | {} | {} |\n", key.name, type_of(key), default_of(key), effect_of(key))
}

fn type_of(key: &Key) -> String {
    let mut words = match key.kind {
        Kind::Bool => "bool".to_owned(),
        Kind::Int => "int".to_owned(),
        Kind::Long => "long".to_owned(),
        Kind::Double => "double".to_owned(),
        Kind::Str => "string".to_owned(),
        Kind::Choice(names) => names.join(", "),
    };
    if let Some((min, max)) = key.range {
        let unbounded = max == i64::MAX || max == i64::from(i32::MAX);
        let _ = if unbounded { write!(words, " ≥ {min}") } else { write!(words, " {min} to {max}") };
    }
    words
}

fn default_of(key: &Key) -> String {
    match (key.default, key.when_empty) {
        ("", "") => String::new(),
        ("", stand_in) => format!("*{stand_in}*"),
        (default, _) => format!("`{default}`"),
    }
}

fn effect_of(key: &Key) -> &'static str {
    match key.effect {
        Effect::Hot => "hot",
        Effect::Restart => "restart",
        Effect::NotBuilt => "–",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");

    #[test]
    fn docs_are_the_table() {
        if std::env::var_os("COMETMQ_WRITE_DOCS").is_some() {
            std::fs::write(PAGE, docs()).expect("docs/config.md is writable");
        }
        let page = std::fs::read_to_string(PAGE).expect("docs/config.md exists");
        let stale = page.lines().zip(docs().lines()).position(|(written, due)| written != due);
        assert!(page == docs(), "docs/config.md is stale (first at line index {stale:?}): set COMETMQ_WRITE_DOCS=1");
    }

    #[test]
    fn a_row_tells_type_range_default_and_effect() {
        let of = |section: Section, name: &str| {
            row(section.keys().iter().find(|key| key.name == name).expect("the table has the key"))
        };
        assert_eq!(of(Section::Broker, "listenPort"), "| listenPort \\* | int 0 to 65535 | `10911` | restart |\n");
        assert_eq!(of(Section::Broker, "brokerName"), "| brokerName \\* | string | *host name* | restart |\n");
        assert_eq!(of(Section::MessageStore, "maxMessageSize"), "| maxMessageSize | int ≥ 1 | `4194304` | hot |\n");
        assert_eq!(of(Section::MessageStore, "haListenPort"), "| haListenPort | int 0 to 65535 | `10912` | – |\n");
        assert_eq!(
            of(Section::MessageStore, "flushDiskType"),
            "| flushDiskType \\* | SYNC_FLUSH, ASYNC_FLUSH | `ASYNC_FLUSH` | restart |\n"
        );
    }
}
