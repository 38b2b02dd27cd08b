//! A full disk is met before a record is half written: the append is refused with the cause, reads go on, and when there is
//! space again writes are accepted within five seconds. Offsets have no hole, and a restart finds what was acknowledged,
//! each once.

mod support;

use std::time::{Duration, Instant};

use cometmq_store::FlushMode::{self, Async, Sync};
use cometmq_store::disk::Faulty;
use cometmq_store::{Error, Store};
use support::{LONG, body, drain, open, send, settle};

fn fill(store: &Store, acked: &mut Vec<Vec<u8>>) -> Error {
    let queue = store.queue("t", 0).unwrap();
    loop {
        let bodies = [body(&format!("message {}", acked.len()), 300)];
        match send(store, &queue, &bodies) {
            Ok(placed) => {
                assert_eq!(placed[0].queue_offset, acked.len() as i64);
                if store.flush_mode() == Sync && !store.wait_durable(placed[0].log_end, LONG) {
                    panic!("{:?}", store.write_refusal());
                }
                acked.extend(bodies);
            }
            Err(error) => return error,
        }
    }
}

fn refuses_and_resumes(flush: FlushMode, capacity: u64) {
    let disk = Faulty::healthy();
    let store = open(&disk, flush).unwrap();
    disk.set_capacity(Some(capacity));
    resumes(&disk, &store, Vec::new());
}

/// Fills the disk, makes space, and goes on.
fn resumes(disk: &Faulty, store: &Store, mut acked: Vec<Vec<u8>>) {
    let error = fill(store, &mut acked);
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    assert!(matches!(store.write_refusal(), Some(Error::DiskFull(_))));
    assert_eq!(drain(store, "t", 0), acked);

    disk.set_capacity(None);
    let since = Instant::now();
    let queue = store.queue("t", 0).unwrap();
    while let Err(error) = send(store, &queue, &["first after"]) {
        assert!(matches!(error, Error::DiskFull(_)), "{error}");
        assert!(since.elapsed() < Duration::from_secs(5), "{error}");
        std::thread::sleep(Duration::from_millis(20));
    }
    acked.push(b"first after".to_vec());
    assert!(store.write_refusal().is_none());
    settle(store);
    assert_eq!(drain(store, "t", 0), acked);
    store.close().unwrap();
    assert_eq!(drain(&open(disk, store.flush_mode()).unwrap(), "t", 0), acked);
}

#[test]
fn when_the_write_of_a_record_fails() {
    // As on a file system that cannot reserve blocks: in the middle of a segment there is suddenly no space at all.
    for flush in [Async, Sync] {
        let disk = Faulty::healthy();
        let store = open(&disk, flush).unwrap();
        let acked = vec![body("one", 100), body("two", 100)];
        send(&store, &store.queue("t", 0).unwrap(), &acked).unwrap();
        settle(&store);
        let written = store.written();
        disk.set_capacity(Some(0));
        resumes(&disk, &store, acked);
        assert!(store.written() < written + 200, "in the same place");
    }
}

#[test]
fn when_a_segment_does_not_fit() {
    // Two segments fit, and what else there is.
    refuses_and_resumes(Async, 2 * 4096 + 2000);
    refuses_and_resumes(Sync, 2 * 4096 + 2000);
}

#[test]
fn wherever_it_is_met() {
    // Each capacity ends at another write: of a segment, a queue file, a checkpoint.
    std::thread::scope(|scope| {
        for step in 0..24 {
            let flush = if step % 2 == 0 { Async } else { Sync };
            scope.spawn(move || refuses_and_resumes(flush, 4200 + 270 * step));
        }
    });
}
