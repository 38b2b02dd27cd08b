//! A message is found by its keys as soon as its send is answered: nothing of it is durable yet, the threads of the store
//! sleep, and there is no index file. What is found is what carries the key, in that topic, within the times; what may not be seen
//! yet, or belongs to a topic's former life, is not found. Afterwards the same is found in files.

mod support;

use std::sync::Arc;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_store::disk::Faulty;
use cometmq_store::{Batch, FlushMode, KeyKind, Options, Query, Store};
use cometmq_wire::record::{Draft, Record};
use support::{ROOT, draft, files, options, send, wait_until};

/// The threads do nothing by themselves.
fn asleep(flush: FlushMode) -> Options {
    let long = Duration::from_secs(3600);
    Options { flush_interval: long, dispatch_interval: long, ..options(ROOT, flush) }
}

fn open(disk: &Faulty, options: Options, clock: &Clock) -> Store {
    Store::open(options, Arc::new(disk.clone()), clock.clone()).unwrap()
}

/// Properties of a message; its body is its unique key.
fn put(store: &Store, topic: &str, unique: &str, keys: &str, tags: &str) -> u64 {
    let properties = format!("UNIQ_KEY\u{1}{unique}\u{2}KEYS\u{1}{keys}\u{2}TAGS\u{1}{tags}\u{2}");
    let mut batch = Batch::default();
    batch.push(&draft(topic, unique.as_bytes(), &properties), &store.queue(topic, 0).unwrap()).unwrap();
    store.append(&mut batch).unwrap();
    batch.placed(0).unwrap().log_offset
}

fn ask<'a>(topic: &'a str, kind: KeyKind, key: &'a str) -> Query<'a> {
    Query { topic, key, kind, max: 32, begin_ms: 0, end_ms: i64::MAX }
}

/// Bodies of what is found.
fn bodies(store: &Store, query: &Query<'_>) -> Vec<String> {
    let found = store.query(query).unwrap();
    let body = |record| String::from_utf8(Record::parse(record).unwrap().body().to_vec()).unwrap();
    found.records.iter().map(|r| body(r)).collect()
}

#[test]
fn under_async_flush() {
    let (disk, clock) = (Faulty::healthy(), Clock::manual(1_000));
    let store = open(&disk, asleep(FlushMode::Async), &clock);
    let first = put(&store, "orders", "u1", "red blue  red", "A||B");
    assert_eq!(files(&disk, format!("{ROOT}/index")), [""; 0]);
    clock.advance(Duration::from_millis(500));
    let second = put(&store, "orders", "u2", "blue", "A");
    put(&store, "bills", "u3", "blue", "A");

    let check = |store: &Store| {
        let is = |kind, key, expected: &[&str]| assert_eq!(bodies(store, &ask("orders", kind, key)), expected, "{key}");
        is(KeyKind::Key, "red", &["u1"]);
        is(KeyKind::Key, "blue", &["u1", "u2"]);
        is(KeyKind::Key, "u1", &["u1"]);
        is(KeyKind::Key, "A", &[]);
        is(KeyKind::Key, "T#A", &[]);
        is(KeyKind::Key, "", &[]);
        is(KeyKind::Unique, "u1", &["u1"]);
        is(KeyKind::Unique, "u3", &[]);
        is(KeyKind::Unique, "blue", &[]);
        is(KeyKind::Tag, "A", &["u2"]);
        is(KeyKind::Tag, "A||B", &["u1"]);
        is(KeyKind::Tag, "B", &[]);
        // The newest of all, and to the millisecond.
        let blue = ask("orders", KeyKind::Key, "blue");
        assert_eq!(bodies(store, &Query { max: 1, ..blue }), ["u2"]);
        assert_eq!(bodies(store, &Query { max: 0, ..blue }), [""; 0]);
        for (begin_ms, end_ms, expected) in [
            (1_000, 1_000, &["u1"][..]),
            (1_001, 1_499, &[]),
            (1_000, 1_499, &["u1"]),
            (1_001, 1_500, &["u2"]),
            (1_000, 1_500, &["u1", "u2"]),
            (0, 999, &[]),
            (1_501, i64::MAX, &[]),
            (2_000, 1_000, &[]),
        ] {
            assert_eq!(bodies(store, &Query { begin_ms, end_ms, ..blue }), expected, "{begin_ms}..={end_ms}");
        }
        // The times of a unique key are those of a client's clock.
        let unique = ask("orders", KeyKind::Unique, "u1");
        assert_eq!(bodies(store, &Query { begin_ms: 5_000, end_ms: 6_000, ..unique }), ["u1"]);
        let found = store.query(&blue).unwrap();
        assert_eq!((found.index_ms, found.index_at > second), (1_500, true));
        let nothing = store.query(&ask("orders", KeyKind::Key, "green")).unwrap();
        assert_eq!((nothing.records.len(), nothing.index_ms, nothing.index_at), (0, 0, 0));
        for (at, body) in [(first, "u1"), (second, "u2")] {
            assert_eq!(Record::parse(&store.message_at(at).unwrap().unwrap()).unwrap().body(), body.as_bytes());
            assert_eq!(store.message_at(at + 1).unwrap(), None);
        }
        assert_eq!(store.message_at(store.written()).unwrap(), None);
        assert_eq!(store.message_at(u64::MAX).unwrap(), None);
    };
    check(&store);
    store.close().unwrap();
    let store = open(&disk, asleep(FlushMode::Async), &clock);
    assert_eq!(files(&disk, format!("{ROOT}/index")).len(), 1);
    check(&store);

    // A topic's former life is over; a message of the new one is found.
    store.delete_topic("orders").unwrap();
    assert_eq!(bodies(&store, &ask("orders", KeyKind::Key, "blue")), [""; 0]);
    put(&store, "orders", "u4", "blue", "A");
    assert_eq!(bodies(&store, &ask("orders", KeyKind::Key, "blue")), ["u4"]);
    assert_eq!(bodies(&store, &ask("bills", KeyKind::Key, "blue")), ["u3"]);
}

#[test]
fn under_sync_flush_once_it_is_durable() {
    let (disk, clock) = (Faulty::healthy(), Clock::manual(1_000));
    let store = open(&disk, asleep(FlushMode::Sync), &clock);
    // The first file of the log is there, and synced.
    put(&store, "bills", "u0", "white", "A");
    assert!(store.wait_durable(store.written(), support::LONG));
    disk.fail_syncs(true);
    let lost = put(&store, "orders", "u1", "red", "A");
    wait_until("poisoned", || store.poison().is_some());
    assert_eq!(bodies(&store, &ask("orders", KeyKind::Key, "red")), [""; 0], "nobody may see it");
    assert_eq!(store.message_at(lost).unwrap(), None);
    drop(store);
    let store = open(&Faulty::healthy(), asleep(FlushMode::Sync), &clock);
    let at = put(&store, "orders", "u1", "red", "A");
    assert!(store.wait_durable(store.written(), support::LONG));
    assert_eq!(bodies(&store, &ask("orders", KeyKind::Key, "red")), ["u1"]);
    assert!(store.message_at(at).unwrap().is_some());
}

/// "Aa" and "BB" have one hash in Java, and so have the index keys made of them.
#[test]
fn keys_with_one_hash_are_told_apart() {
    let (disk, clock) = (Faulty::healthy(), Clock::manual(1_000));
    let store = open(&disk, asleep(FlushMode::Async), &clock);
    for (topic, key) in [("AaTopic", "Aa"), ("BBTopic", "BB"), ("one", "Aa"), ("one", "BB"), ("one", "AaBB BBAa")] {
        put(&store, topic, &format!("{topic}.{key}"), key, "t");
    }
    let is = |topic, key, expected: &[&str]| assert_eq!(bodies(&store, &ask(topic, KeyKind::Key, key)), expected);
    is("AaTopic", "BB", &[]);
    is("AaTopic", "Aa", &["AaTopic.Aa"]);
    is("BBTopic", "Aa", &[]);
    is("one", "Aa", &["one.Aa"]);
    is("one", "BB", &["one.BB"]);
    is("one", "AaBB", &["one.AaBB BBAa"]);
    is("one", "AaAa", &[]);
}

/// A body that looks like a record, at whatever place it comes to lie, is no message.
#[test]
fn what_only_looks_like_a_message_is_none() {
    let (disk, clock) = (Faulty::healthy(), Clock::manual(1_000));
    let store = open(&disk, asleep(FlushMode::Async), &clock);
    let mut fake = Vec::new();
    draft("orders", b"fake", "KEYS\u{1}red\u{2}").encode(&mut fake).unwrap();
    let placed = send(&store, &store.queue("orders", 0).unwrap(), &[&fake]).unwrap()[0];
    let body_at = placed.log_offset + 88;
    for (offset, len) in [(body_at, fake.len() as u32), (0, fake.len() as u32), (body_at, 1 << 30), (body_at, u32::MAX)]
    {
        fake[..4].copy_from_slice(&len.to_be_bytes());
        fake[28..36].copy_from_slice(&offset.to_be_bytes());
        send(&store, &store.queue("orders", 0).unwrap(), &[&fake]).unwrap();
    }
    for at in 0..store.written() {
        let found = store.message_at(at).unwrap();
        let Some(found) = found else { continue };
        assert_ne!(Record::parse(&found).unwrap().body(), b"fake", "at {at}");
    }
}

/// With the index turned off there is no file and nothing is found; turned on again, all is, also what was sent meanwhile.
#[test]
fn an_index_that_was_off_catches_up() {
    let (disk, clock) = (Faulty::healthy(), Clock::manual(1_000));
    for (life, index) in [true, false, false, true].into_iter().enumerate() {
        let store = open(&disk, Options { index, ..asleep(FlushMode::Async) }, &clock);
        put(&store, "orders", &format!("u{life}"), "red", "A");
        let found = bodies(&store, &ask("orders", KeyKind::Key, "red"));
        let expected: Vec<String> = (0..=life).filter(|_| index).map(|n| format!("u{n}")).collect();
        assert_eq!(found, expected);
        store.close().unwrap();
    }
}

/// More than is read in one go, and more keys than are kept in memory: what a query finds does not depend on it.
#[test]
fn behind_a_great_many_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path(), FlushMode::Async);
    (options.flush_interval, options.dispatch_interval) = (Duration::from_secs(3600), Duration::from_secs(3600));
    (options.segment_bytes, options.index_interval) = (Some(48 << 20), Duration::from_secs(3600));
    (options.index_slots, options.index_items, options.queue_file_bytes) = (Some(9_000), Some(130_000), None);
    let store = Store::open(options, Arc::new(cometmq_store::disk::Real), Clock::System).unwrap();
    let queue = store.queue("orders", 0).unwrap();
    let fill = |count: usize, body: &[u8], name: &str| {
        for chunk in (0..count).collect::<Vec<_>>().chunks(1000) {
            let mut batch = Batch::default();
            for n in chunk {
                let keys = format!("UNIQ_KEY\u{1}{name}{n}\u{2}KEYS\u{1}a{n} b{n}\u{2}TAGS\u{1}{name}\u{2}");
                batch.push(&draft("orders", body, &keys), &queue).unwrap();
            }
            store.append(&mut batch).unwrap();
        }
    };
    fill(36, &vec![1; 2 << 20], "large");
    let large = |n| store.query(&ask("orders", KeyKind::Unique, &format!("large{n}"))).unwrap().records.len();
    assert_eq!((0..36).map(large).collect::<Vec<_>>(), [1; 36], "72 MiB");
    fill(70_000, b"x", "small");
    for n in [0, 1, 34_999, 65_535, 65_536, 69_998, 69_999] {
        let found = store.query(&ask("orders", KeyKind::Unique, &format!("small{n}"))).unwrap();
        assert_eq!(found.records.len(), 1, "small{n}");
    }
    assert_eq!(
        files(&cometmq_store::disk::Real, dir.path().join("index")).len(),
        3,
        "280,144 keys, most of them written"
    );
    store.close().unwrap();
}

/// Half messages are found, marks of a rollback are not. Java: `IndexService.buildIndex`.
#[test]
fn transactions() {
    let (disk, clock) = (Faulty::healthy(), Clock::manual(1_000));
    let store = open(&disk, asleep(FlushMode::Async), &clock);
    for (sys_flag, body) in [(0, "plain"), (4, "half"), (8, "committed"), (12, "rolled back")] {
        let mut batch = Batch::default();
        let draft = Draft { sys_flag, ..draft("orders", body.as_bytes(), "KEYS\u{1}red\u{2}") };
        batch.push(&draft, &store.queue("orders", 0).unwrap()).unwrap();
        store.append(&mut batch).unwrap();
    }
    assert_eq!(bodies(&store, &ask("orders", KeyKind::Key, "red")), ["plain", "half", "committed"]);
}
