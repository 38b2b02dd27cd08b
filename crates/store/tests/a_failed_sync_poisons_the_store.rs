//! After a failed sync nobody knows what is on the disk: the store takes no more writes, shows nothing under SYNC_FLUSH that
//! is not durable, and says why. What was durable before is still read, and a restart finds it.

mod support;

use std::time::Duration;

use cometmq_store::FlushMode::{Async, Sync};
use cometmq_store::disk::{Disk, Faulty};
use cometmq_store::{Batch, Error, Store};
use support::{LONG, ROOT, draft, drain, files, open, send, wait_until};

/// Our checkpoint; empty while there is none.
fn checkpoint(disk: &Faulty) -> String {
    let bytes = disk.read_all(&std::path::Path::new(ROOT).join("comet/checkpoint")).unwrap_or_default();
    String::from_utf8(bytes).unwrap()
}

/// Until queues, index and checkpoint are as far as the log.
fn wait_until_claimed(disk: &Faulty, store: &Store) {
    let claimed = format!("\ndispatched {}\n", store.written());
    wait_until("claimed", || checkpoint(disk).contains(&claimed));
}

#[test]
fn under_sync_flush() {
    let disk = Faulty::healthy();
    let store = open(&disk, Sync).unwrap();
    let queue = store.queue("t", 0).unwrap();
    let good = send(&store, &queue, &["durable"]).unwrap();
    assert!(store.wait_durable(good[0].log_end, LONG));
    assert_eq!(queue.end(), 1);

    // Nothing but the log is to be synced from here on.
    wait_until_claimed(&disk, &store);
    disk.fail_syncs(true);
    let bad = send(&store, &queue, &["not durable"]).unwrap();
    assert!(!store.wait_durable(bad[0].log_end, LONG), "it waits no longer than until the store is poisoned");
    assert_eq!((store.durable(), store.written()), (good[0].log_end, bad[0].log_end));
    assert_eq!(queue.end(), 1);
    // A sync that would succeed now is not tried: the kernel may have dropped the pages.
    disk.fail_syncs(false);
    let error = send(&store, &queue, &["refused"]).unwrap_err();
    assert!(matches!(&error, Error::Poisoned(why) if why.contains("sync") && why.contains("commitlog")), "{error}");
    assert!(!store.wait_durable(bad[0].log_end, Duration::from_millis(20)));
    assert_eq!(drain(&store, "t", 0), [b"durable"]);
    assert!(matches!(store.write_refusal(), Some(Error::Poisoned(_))));

    assert!(matches!(store.close(), Err(Error::Poisoned(_))));
    assert!(files(&disk, ROOT).contains(&"abort".to_string()));
    drop(store);
    let store = open(&disk.surviving(), Sync).unwrap();
    assert_eq!(drain(&store, "t", 0)[0], b"durable");
}

#[test]
fn under_async_flush() {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    // A new file of the log is synced before it is written to.
    send(&store, &queue, &["first"]).unwrap();
    disk.fail_syncs(true);
    send(&store, &queue, &["written"]).unwrap();
    assert_eq!(queue.end(), 2);
    wait_until("poisoned", || store.write_refusal().is_some());
    assert!(matches!(send(&store, &queue, &["refused"]), Err(Error::Poisoned(_))));
    assert_eq!(drain(&store, "t", 0), [&b"first"[..], b"written"]);
}

#[test]
fn no_checkpoint_claims_what_is_not_there() {
    let disk = Faulty::healthy();
    let store = open(&disk, Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    send(&store, &queue, &["one"]).unwrap();
    wait_until_claimed(&disk, &store);
    disk.fail_syncs(true);
    let mut batch = Batch::default();
    batch.push(&draft("t", b"two", ""), &queue).unwrap();
    store.append(&mut batch).unwrap();
    wait_until("poisoned", || store.write_refusal().is_some());
    // No checkpoint claims what is not there.
    let durable = checkpoint(&disk);
    assert!(durable.contains(&format!("\ndurable {}\n", batch.placed(0).unwrap().log_offset)), "{durable}");
}
