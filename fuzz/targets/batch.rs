//! The body of a batch send. Input: the body. Checked: the items that were read, written again, are the bytes they were
//! read from (but for magic and CRC, which no one reads), and each becomes a record.
#![no_main]

use cometmq_fuzz::bounded;
use cometmq_wire::properties;
use cometmq_wire::record::{BatchItem, Draft, Record, batch_items};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    bounded(input.len(), 1, || {
        for item in batch_items(input) {
            match item {
                Ok(item) => drop(properties::find(item.properties, properties::TAGS)),
                Err(error) => drop(error.to_string()),
            }
        }
    });
    let items: Vec<BatchItem<'_>> = batch_items(input).flatten().collect();
    let mut again = Vec::new();
    for item in &items {
        item.encode(&mut again);
        stored(item);
    }
    assert!(again.len() <= input.len());
    assert_eq!(batch_items(&again).collect::<Result<Vec<_>, _>>().expect("we wrote it"), items);
});

fn stored(item: &BatchItem<'_>) {
    let host = ([192, 0, 2, 1], 10911).into();
    let draft = Draft {
        topic: "orders",
        queue_id: 0,
        flag: item.flag,
        sys_flag: 0,
        born_ms: 0,
        born_host: host,
        store_host: host,
        reconsume_times: 0,
        prepared_offset: 0,
        body: item.body,
        properties: item.properties,
    };
    let mut out = Vec::new();
    if draft.encode(&mut out).is_ok() {
        let record = Record::parse(&out).expect("we encoded it");
        assert_eq!((record.flag(), record.body(), record.properties()), (item.flag, item.body, item.properties));
    }
}
