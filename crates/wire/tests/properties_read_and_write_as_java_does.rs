//! Properties: a properties string, odd ones too, is read as the map that Java's decoder makes of it, and written as
//! Java's encoder writes the map.

mod support;

use std::collections::BTreeMap;

use cometmq_wire::properties;
use support::{golden, hex, unhex};

#[test]
fn properties_read_and_write_as_java_does() {
    let lines = golden("properties.hex");
    assert_eq!(lines.len(), 18);
    for line in lines {
        let text = String::from_utf8(unhex(&line.data)).unwrap();
        // Java does not write a property without a value.
        let facts: BTreeMap<&str, &str> =
            line.facts.as_object().unwrap().iter().filter_map(|(k, v)| Some((k.as_str(), v.as_str()?))).collect();
        if line.name.starts_with("read-") {
            let ours: BTreeMap<&str, &str> = properties::iter(&text).collect();
            assert_eq!(ours, facts, "{}", line.name);
            for (name, value) in facts {
                assert_eq!(properties::find(&text, name), Some(value), "{}", line.name);
            }
        } else {
            let mut ours = String::new();
            facts.iter().for_each(|(name, value)| properties::push(&mut ours, name, value));
            assert_eq!(hex(ours.as_bytes()), line.data, "{}", line.name);
        }
    }
}
