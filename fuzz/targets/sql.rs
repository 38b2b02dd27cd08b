//! A SQL92 subscription, and a message it is asked about. Input: the expression, NUL, the message's properties string
//! (without one, a few properties of every kind).
#![no_main]

use cometmq_filter::SqlFilter;
use cometmq_fuzz::bounded;
use cometmq_wire::properties;
use libfuzzer_sys::fuzz_target;

/// A token of one or two letters becomes a node of 40 bytes, in a vector that doubles; the text is limited to 64 KiB.
const FACTOR: usize = 64;
const MESSAGE: &str = "a\u{1}5\u{2}b\u{1}5.5\u{2}s\u{1}x\u{2}TAGS\u{1}TagA\u{2}n\u{1}\u{7ec4}\u{2}";

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (expression, message) = text.split_once('\0').unwrap_or((text, MESSAGE));
    match bounded(expression.len(), FACTOR, || SqlFilter::parse(expression)) {
        Ok(filter) => {
            // The header says that asking allocates nothing; it may at most say why a message does not fit.
            for message in [message, ""] {
                let property = |name: &str| properties::find(message, name);
                let answer = bounded(0, 0, || filter.evaluate(&property));
                assert_eq!(filter.matches(&property), answer == Ok(Some(true)));
            }
        }
        Err(error) => drop(error.to_string()),
    }
});
