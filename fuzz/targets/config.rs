//! A configuration text: `broker.conf`, or the body of UPDATE_BROKER_CONFIG / UPDATE_NAMESRV_CONFIG. Input: the text.
//! Checked: entries, and a whole configuration, are the same after they were written and read again.
#![no_main]

use cometmq_base::config::{Config, Role, properties};
use cometmq_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// A line of one letter becomes three strings of 24 bytes with a block of 8 each, in vectors that double.
const FACTOR: usize = 128;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let entries = bounded(input.len(), FACTOR, || properties::parse(&text));
    let mut again = String::new();
    for (key, value) in &entries {
        properties::write(&mut again, key, value);
    }
    assert_eq!(properties::parse(&again), entries);
    let role = if input.len().is_multiple_of(2) { Role::Broker } else { Role::NameServer };
    let mut config = Config::new(role);
    match bounded(input.len(), FACTOR, || config.load_properties(&text)) {
        Ok(loaded) => {
            let _ = config.not_built();
            assert!(loaded.changed.len() + loaded.unknown.len() <= entries.len());
            // Writing and reading all keys takes a hundred times as long as all of the above.
            if !loaded.changed.is_empty() && input.len() % 16 < 2 {
                let mut copy = Config::new(role);
                copy.load_properties(&config.to_properties()).expect("we wrote it");
                assert_eq!(copy.to_properties(), config.to_properties());
            }
        }
        Err(errors) => errors.iter().for_each(|error| drop(error.to_string())),
    }
});
