//! Hashes: `String.hashCode` of tags and keys, and the CRC of bodies without its highest bit, are what Java computes.

mod support;

use cometmq_wire::body::register;
use cometmq_wire::java_hash::{hash_code, tags_code};
use cometmq_wire::record::body_crc;
use support::{golden, unhex};

#[test]
fn hashes_and_checksums_are_javas() {
    let lines = golden("hashes.txt");
    assert_eq!(lines.len(), 27);
    for line in lines {
        let fact = |name: &str| line.facts[name].as_i64().unwrap();
        match line.name.as_str() {
            "string" => {
                assert_eq!(i64::from(hash_code(&line.data)), fact("hash"), "{:?}", line.data);
                assert_eq!(tags_code(&line.data), fact("hash"), "{:?}", line.data);
            }
            "crc32" => assert_eq!(i64::from(body_crc(line.data.as_bytes())), fact("crc"), "{:?}", line.data),
            "crc32-bytes" => {
                assert_eq!(i64::from(body_crc(&unhex(&line.data))), fact("crc"), "{}", line.data);
                assert_eq!(i64::from(register::crc32(&unhex(&line.data))), fact("crc"), "{}", line.data);
            }
            other => panic!("{other}"),
        }
    }
}
