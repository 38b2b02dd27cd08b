//! A message's properties string. Input: the string. Checked: what iteration gives is the same after it was pushed into a
//! new string, `find` gives the last of a name, and a push onto the given string adds exactly one property.
#![no_main]

use cometmq_fuzz::bounded;
use cometmq_wire::properties;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    bounded(input.len(), 1, || {
        let _ = (properties::iter(text).count(), properties::find(text, properties::KEYS), properties::is_legal(text));
    });
    let pairs: Vec<(&str, &str)> = properties::iter(text).collect();
    let mut again = String::new();
    for (name, value) in &pairs {
        properties::push(&mut again, name, value);
    }
    for (name, _) in pairs.iter().take(8) {
        let last = pairs.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v);
        assert_eq!(properties::find(text, name), last);
    }
    assert!(properties::iter(&again).eq(pairs.iter().copied()));
    let mut longer = text.to_owned();
    properties::push(&mut longer, "PGROUP", "p");
    assert!(properties::iter(&longer).eq(pairs.iter().copied().chain([("PGROUP", "p")])));
});
