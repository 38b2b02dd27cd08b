//! Records, as the commit log is scanned and a pull's answer is read. Input: bytes of one or more records.
//! Checked: a record that parses is the same after it was encoded and parsed again.
#![no_main]

use cometmq_fuzz::bounded;
use cometmq_wire::properties;
use cometmq_wire::record::{Draft, Record, body_crc, peek, place, records};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    bounded(input.len(), 1, || {
        if let Some(head) = input.first_chunk() {
            let _ = peek(*head);
        }
        for record in records(input) {
            match record {
                Ok(record) => look(&record),
                Err(error) => drop(error.to_string()),
            }
        }
    });
    for record in records(input).flatten() {
        again(&record);
    }
});

fn look(r: &Record<'_>) {
    assert!(r.len() == r.bytes().len() && !r.is_empty());
    let _ = (r.queue_id(), r.flag(), r.queue_offset(), r.log_offset(), r.sys_flag(), r.born_ms(), r.store_ms());
    let _ = (r.born_host(), r.store_host(), r.reconsume_times(), r.prepared_offset(), r.body_is_intact());
    let _ = (r.property(properties::TAGS), r.property(properties::KEYS), r.topic());
}

fn again(r: &Record<'_>) {
    let draft = Draft {
        topic: r.topic(),
        queue_id: r.queue_id(),
        flag: r.flag(),
        sys_flag: r.sys_flag(),
        born_ms: r.born_ms(),
        born_host: r.born_host(),
        store_host: r.store_host(),
        reconsume_times: r.reconsume_times(),
        prepared_offset: r.prepared_offset(),
        body: r.body(),
        properties: r.properties(),
    };
    let mut out = Vec::new();
    let Ok(len) = draft.encode(&mut out) else { return };
    assert_eq!((len, len), (draft.encoded_len(), out.len()));
    place(&mut out, r.queue_offset(), r.log_offset(), r.store_ms());
    let seen = Record::parse(&out).expect("we encoded it");
    assert_eq!((seen.topic(), seen.body(), seen.properties()), (r.topic(), r.body(), r.properties()));
    assert_eq!((seen.queue_id(), seen.flag(), seen.sys_flag()), (r.queue_id(), r.flag(), r.sys_flag()));
    assert_eq!((seen.queue_offset(), seen.log_offset()), (r.queue_offset(), r.log_offset()));
    assert_eq!((seen.born_ms(), seen.born_host()), (r.born_ms(), r.born_host()));
    assert_eq!((seen.store_ms(), seen.store_host()), (r.store_ms(), r.store_host()));
    assert_eq!((seen.reconsume_times(), seen.prepared_offset()), (r.reconsume_times(), r.prepared_offset()));
    assert!(seen.body_is_intact() && seen.body_crc() == body_crc(r.body()));
}
