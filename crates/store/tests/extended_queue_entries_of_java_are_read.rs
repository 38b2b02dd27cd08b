//! A Java broker with `enableConsumeQueueExt` writes places in `consumequeue_ext` where the code of a message's tag would be.
//! Filters see the code that lies there; where the unit is lost, that of the message's own tag. Nothing in that folder is
//! changed, not even when the topic is deleted.

mod support;

use std::path::{Path, PathBuf};

use cometmq_store::FlushMode::Async;
use cometmq_store::disk::{Disk, Faulty, Open};
use cometmq_store::{Status, Wait};
use cometmq_wire::java_hash::tags_code;
use support::{ROOT, limits, open, send};

fn path(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

fn write(disk: &Faulty, name: &str, at: u64, bytes: &[u8]) {
    let path = path(name);
    disk.create_dirs(path.parent().unwrap()).unwrap();
    disk.open(&path, Open::Create).unwrap().write_all_at(bytes, at).unwrap();
}

/// Size, tags code, store time, bitmap.
fn unit(code: i64, bitmap: &[u8]) -> Vec<u8> {
    let mut unit = (20 + bitmap.len() as i16).to_be_bytes().to_vec();
    unit.extend_from_slice(&code.to_be_bytes());
    unit.extend_from_slice(&1_000i64.to_be_bytes());
    unit.extend_from_slice(&(bitmap.len() as i16).to_be_bytes());
    unit.extend_from_slice(bitmap);
    unit
}

#[test]
fn filters_see_the_codes_that_the_places_stand_for() {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    send(&store, &store.queue("t", 0).unwrap(), &["0", "1", "2", "3", "4"]).unwrap();
    store.close().unwrap();
    // Two files of 100 bytes: a unit with a bitmap and one without, the end mark, and the next file. Message 3 has a place
    // where no unit is, message 4 its own code.
    let (first, second) = ("consumequeue_ext/t/0/00000000000000000000", "consumequeue_ext/t/0/00000000000000000100");
    let units = [unit(70, &[1; 14]), unit(-71, &[]), (-1i16).to_be_bytes().to_vec()].concat();
    write(&disk, first, 0, &units);
    write(&disk, second, 0, &unit(72, &[]));
    [first, second].iter().for_each(|name| disk.open(&path(name), Open::Write).unwrap().set_len(100).unwrap());
    for (n, place) in [0, 34, 100, 60].into_iter().enumerate() {
        let code = (i64::MIN + place).to_be_bytes();
        write(&disk, "consumequeue/t/0/00000000000000000000", n as u64 * 20 + 12, &code);
    }
    let ext = || [first, second].map(|name| disk.read_all(&path(name)).unwrap());
    let before = ext();

    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    let own = tags_code("a");
    let codes: Vec<i64> = (0..5).map(|n| store.entry(&queue, n).unwrap().unwrap().tags_code).collect();
    assert_eq!(codes, [70, -71, 72, own, own]);
    for (code, count) in [(70, 1), (-71, 1), (72, 1), (own, 2), (73, 0)] {
        let read = store.read(&queue, 0, &limits(32), Wait::Yes, &|c| c == code).unwrap();
        let status = if count == 0 { Status::NoMatch } else { Status::Found };
        assert_eq!((read.status, read.records.len(), read.next), (status, count, 5), "{code}");
    }
    store.delete_topic("t").unwrap();
    store.close().unwrap();
    assert!(ext() == before);
}
