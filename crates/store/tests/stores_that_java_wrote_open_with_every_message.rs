//! Two store directories that Apache RocketMQ 5.5.0 wrote, one stopped cleanly and one killed (see `fixtures/README.md`),
//! open here with file sizes taken from the files. Every message that a Java consumer read from them is at the same offset
//! of the same queue, with the same record: ids, times, flags, body, properties. The queue files that we rebuild from the
//! log are Java's own byte for byte, those of delay, retry, transaction and timer topics too.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cometmq_base::Clock;
use cometmq_store::disk::Real;
use cometmq_store::{Options, Status, Store};
use cometmq_wire::flags::message::COMPRESSED;
use cometmq_wire::message_id::offset_id;
use cometmq_wire::record::Record;
use cometmq_wire::{json, properties};
use support::{read, send, settle};

type Fields = BTreeMap<String, String>;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("java-store-5.5.0-{name}"))
}

fn unpack(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let archive = fixture(&format!("{name}.tar.gz"));
    let done = Command::new("tar").arg("--sparse").arg("-xzf").arg(archive).arg("-C").arg(dir.path()).status().unwrap();
    assert!(done.success());
    dir
}

/// The messages of the list: fields, and properties, which stand last in a line.
fn messages(name: &str) -> Vec<(Fields, Fields)> {
    let out = Command::new("gzip").arg("-dc").arg(fixture(&format!("{name}.jsonl.gz"))).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let message = |line: &str| {
        let (fields, properties) = line.split_once(",\"properties\":").unwrap();
        let fields = json::from_slice::<Fields>(format!("{fields}}}").as_bytes()).unwrap();
        let mut properties: Fields = json::from_slice(&properties.as_bytes()[..properties.len() - 1]).unwrap();
        // Added by the client that read it.
        properties.remove("MIN_OFFSET").and(properties.remove("MAX_OFFSET")).unwrap();
        (fields, properties)
    };
    text.lines().map(message).collect()
}

fn delay_levels_ms() -> Vec<i64> {
    let seconds = [1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200];
    seconds.map(|s| s * 1000).to_vec()
}

fn open(root: &Path) -> Store {
    open_with(root, None)
}

fn open_with(root: &Path, queue_file_bytes: Option<u64>) -> Store {
    let options = Options { delay_levels_ms: delay_levels_ms(), queue_file_bytes, ..Options::new(root) };
    Store::open(options, Arc::new(Real), Clock::System).unwrap()
}

/// zlib, as Java compresses bodies, through `gzip` (which wants its own header and misses its trailer at the end).
fn inflate(zlib: &[u8]) -> Vec<u8> {
    let gzip =
        || Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = gzip().unwrap();
    let mut input = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    input.extend_from_slice(&zlib[2..zlib.len() - 4]);
    child.stdin.take().unwrap().write_all(&input).unwrap();
    child.wait_with_output().unwrap().stdout
}

fn assert_same(record: &Record<'_>, fields: &Fields, expected: &Fields) {
    let whose = format!("{}-{} at {}", record.topic(), record.queue_id(), record.queue_offset());
    let found: Fields =
        properties::iter(record.properties()).map(|(name, value)| (name.to_string(), value.to_string())).collect();
    assert_eq!(&found, expected, "{whose}");
    let is_compressed = record.sys_flag() & COMPRESSED != 0;
    let body = if is_compressed { inflate(record.body()) } else { record.body().to_vec() };
    // The client clears the bit when it has inflated the body.
    let sys_flag = record.sys_flag() & !COMPRESSED;
    let found = [
        ("topic", record.topic().to_string()),
        ("queueId", record.queue_id().to_string()),
        ("queueOffset", record.queue_offset().to_string()),
        ("commitLogOffset", record.log_offset().to_string()),
        ("storeSize", record.len().to_string()),
        ("msgId", record.property(properties::UNIQ_KEY).unwrap().to_string()),
        ("offsetMsgId", offset_id(record.store_host(), record.log_offset())),
        ("sysFlag", sys_flag.to_string()),
        ("flag", record.flag().to_string()),
        ("bornTimestamp", record.born_ms().to_string()),
        ("storeTimestamp", record.store_ms().to_string()),
        ("bodyCRC", record.body_crc().to_string()),
        ("reconsumeTimes", record.reconsume_times().to_string()),
        ("bodyHex", body.iter().map(|b| format!("{b:02x}")).collect()),
    ];
    assert_eq!(
        &found.map(|(name, value)| (name.to_string(), value)).into_iter().collect::<Fields>(),
        fields,
        "{whose}"
    );
}

/// Every message of the list is there, and no other in its queues.
fn has_all(store: &Store, name: &str, count: usize) {
    let messages = messages(name);
    assert_eq!(messages.len(), count);
    let mut ends: BTreeMap<(String, i32), i64> = BTreeMap::new();
    let mut compressed = 0;
    for (fields, properties) in &messages {
        let (topic, id) = (&fields["topic"], fields["queueId"].parse().unwrap());
        let offset: i64 = fields["queueOffset"].parse().unwrap();
        *ends.entry((topic.clone(), id)).or_default() += 1;
        let read = read(store, &store.queue(topic, id).unwrap(), offset, 1);
        assert_eq!(read.status, Status::Found, "{topic}-{id} at {offset}");
        let record = Record::parse(&read.records[0]).unwrap();
        compressed += usize::from(record.sys_flag() & COMPRESSED != 0);
        assert_same(&record, fields, properties);
    }
    assert!(compressed > 0);
    for ((topic, id), end) in ends {
        let queue = store.queue(&topic, id).unwrap();
        assert_eq!((queue.min(), queue.end()), (0, end), "{topic}-{id}");
    }
    assert_eq!(store.stats().damaged.load(Relaxed), 0);
}

/// All files below `dir`, by name.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

fn opens_with_every_message(name: &str, count: usize) {
    let dir = unpack(name);
    let root = dir.path();
    let (log, queues) = (root.join("commitlog"), root.join("consumequeue"));
    let (javas_log, javas_queues) = (contents(&log), contents(&queues));
    assert_eq!(root.join("abort").exists(), name == "killed");

    let store = open(root);
    has_all(&store, name, count);
    settle(&store);
    store.close().unwrap();
    assert!(contents(&log) == javas_log, "nothing is written to the log");
    let ours = contents(&queues);
    assert_eq!(ours.keys().collect::<Vec<_>>(), javas_queues.keys().collect::<Vec<_>>());
    for (path, bytes) in &javas_queues {
        assert!(&ours[path] == bytes, "{}", path.display());
    }

    // Derived without Java's files, and with their size (`mappedFileSizeConsumeQueue`): the same.
    fs::remove_dir_all(&queues).unwrap();
    let store = open_with(root, Some(2000));
    has_all(&store, name, count);
    settle(&store);
    store.close().unwrap();
    assert!(contents(&queues) == javas_queues);

    // And it goes on: a new file of Java's size, the next offset.
    let store = open(root);
    let queue = store.queue("fixture_order", 1).unwrap();
    let end = queue.end();
    let placed = send(&store, &queue, &vec![vec![7; 10_000]; 60]).unwrap();
    assert_eq!(placed[0].queue_offset, end);
    settle(&store);
    store.close().unwrap();
    assert_eq!(fs::metadata(log.join("00000000000000524288")).unwrap().len(), 524_288);
    has_all_but(&open(root), &messages(name), "fixture_order");
}

fn has_all_but(store: &Store, messages: &[(Fields, Fields)], grown: &str) {
    for (fields, properties) in messages {
        let queue = store.queue(&fields["topic"], fields["queueId"].parse().unwrap()).unwrap();
        let read = read(store, &queue, fields["queueOffset"].parse().unwrap(), 1);
        assert_same(&Record::parse(&read.records[0]).unwrap(), fields, properties);
    }
    assert!(store.queue(grown, 1).unwrap().end() > 60);
}

#[test]
fn the_one_that_was_stopped() {
    opens_with_every_message("clean", 273);
}

#[test]
fn the_one_that_was_killed() {
    opens_with_every_message("killed", 546);
}
