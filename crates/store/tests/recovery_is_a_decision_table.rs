//! Recovery is a decision: of what it finds at a start follows what it does, and nothing else. A row each: how the store
//! stopped, what was changed while it was down, and what is true afterwards: which messages are missing, where the log ends,
//! what was counted as damage, what was set aside. In every row: the log below its end is not changed, behind it are zeros,
//! a new message gets an offset that none had that is still in the log, and the next start, after a clean stop, finds the same.

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_store::FlushMode::Async;
use cometmq_store::disk::{Disk, Faulty, Open};
use cometmq_store::{Appended, Error, Options, Store};
use support::{LONG, ROOT, SEGMENT, body, drain_with_holes, files, options, send, settle, wait_until};

/// Messages at the last checkpoint, and all. Even ones are in queue `t`, odd ones in `u`.
const DURABLE: usize = 10;
const ALL: usize = 14;

#[derive(Clone, Copy, PartialEq)]
enum Stop {
    /// Ten messages, stopped.
    Clean,
    /// The same, then four more that no checkpoint covers, and `kill -9`.
    Killed,
}
use Stop::{Clean, Killed};

struct Row {
    found: &'static str,
    stop: Stop,
    change: fn(&Stopped),
    missing: &'static [usize],
    /// The message at which the log ends; `None` = behind all.
    ends_at: Option<usize>,
    /// Names in `comet/` that came into being; `@` stands for the end of the log.
    aside: &'static [&'static str],
}

const ROW: Row = Row { found: "", stop: Clean, change: |_| {}, missing: &[], ends_at: None, aside: &[] };

/// A stopped store and where its messages lie.
struct Stopped {
    disk: Faulty,
    placed: Vec<Appended>,
}

fn open(disk: &Faulty, checkpoint: Duration) -> Result<Store, Error> {
    // The rows of the index have tests of their own: `the_index_is_javas_and_finds_every_key`, `the_index_survives_power_loss`.
    let options = Options { checkpoint_interval: checkpoint, tail_bytes: 0, index: false, ..options(ROOT, Async) };
    Store::open(options, Arc::new(disk.clone()), Clock::manual(1_000))
}

fn topic(n: usize) -> &'static str {
    if n.is_multiple_of(2) { "t" } else { "u" }
}

fn message(n: usize) -> Vec<u8> {
    body(&format!("message {n}"), 100 + 300 * (n % 4))
}

fn append(store: &Store, numbers: std::ops::Range<usize>) -> Vec<Appended> {
    let one = |n| send(store, &store.queue(topic(n), 0).unwrap(), &[message(n)]).unwrap()[0];
    numbers.map(one).collect()
}

fn stopped(stop: Stop) -> Stopped {
    let disk = Faulty::healthy();
    let mut placed = Vec::new();
    // Twice: our checkpoint names Java's before and after, and neither is that of a new store.
    for numbers in [0..2, 2..DURABLE] {
        let store = open(&disk, Duration::ZERO).unwrap();
        placed.extend(append(&store, numbers));
        store.close().unwrap();
    }
    if stop == Killed {
        let store = open(&disk, Duration::from_secs(3600)).unwrap();
        placed.extend(append(&store, DURABLE..ALL));
        assert!(store.wait_durable(store.written(), LONG));
        wait_until("dispatched", || store.dispatched() == store.written());
    }
    assert!(placed[DURABLE - 1].log_offset > SEGMENT, "the messages lie in more than one file");
    Stopped { disk, placed }
}

fn path(name: impl AsRef<Path>) -> PathBuf {
    Path::new(ROOT).join(name)
}

fn segment(at: u64) -> PathBuf {
    path(format!("commitlog/{:020}", at - at % SEGMENT))
}

impl Stopped {
    fn file(&self, name: impl AsRef<Path>) -> Arc<dyn cometmq_store::disk::File> {
        self.disk.open(&path(name), Open::Create).unwrap()
    }

    fn remove(&self, name: &str) {
        self.disk.remove(&path(name)).unwrap();
    }

    fn no_queue(&self, topic: &str) {
        let dir = path(format!("consumequeue/{topic}/0"));
        files(&self.disk, &dir).iter().for_each(|name| self.disk.remove(&dir.join(name)).unwrap());
    }

    /// Zeros over message `n` from its byte `from` on.
    fn zero(&self, n: usize, from: u64) {
        let Appended { log_offset, log_end, .. } = self.placed[n];
        let at = log_offset + from;
        let bytes = vec![0; (log_end - at) as usize];
        self.file(segment(log_offset)).write_all_at(&bytes, at % SEGMENT).unwrap();
    }

    fn flip(&self, n: usize, byte: u64) {
        let at = self.placed[n].log_offset + byte;
        self.flip_in(segment(at), at % SEGMENT);
    }

    fn flip_in(&self, name: impl AsRef<Path>, at: u64) {
        let file = self.file(name);
        let mut byte = [0];
        assert_eq!(file.read_at(&mut byte, at, true).unwrap(), 1);
        file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
    }

    /// An entry of queue `t`.
    fn entry(&self, n: u64, log_at: u64, len: u32) {
        let mut bytes = log_at.to_be_bytes().to_vec();
        bytes.extend_from_slice(&len.to_be_bytes());
        bytes.extend_from_slice(&[0; 8]);
        let file = self.file(format!("consumequeue/t/0/{:020}", n * 20 / 100 * 100));
        file.set_len(100).unwrap();
        file.write_all_at(&bytes, n * 20 % 100).unwrap();
    }

    /// What another broker leaves in Java's checkpoint: times, and the offset up to which queues are written.
    fn java_was_here(&self, physic_ms: u64, logics_offset: u64) {
        let file = self.file("checkpoint");
        file.write_all_at(&physic_ms.to_be_bytes(), 0).unwrap();
        file.write_all_at(&logics_offset.to_be_bytes(), 40).unwrap();
    }

    fn end(&self) -> u64 {
        self.placed.last().unwrap().log_end
    }

    /// All bytes of the log, files that are missing as zeros.
    fn log(&self) -> Vec<u8> {
        let dir = path("commitlog");
        let mut log = Vec::new();
        for name in files(&self.disk, &dir) {
            log.resize(name.parse().unwrap(), 0);
            log.extend(self.disk.read_all(&dir.join(name)).unwrap());
        }
        log
    }

    fn own_files(&self) -> Vec<String> {
        files(&self.disk, path("comet"))
    }
}

/// The messages of both queues that are expected: offset and body.
fn expected(topic: &str, count: usize, missing: &[usize]) -> Vec<(i64, Vec<u8>)> {
    let all = (0..count).filter(|n| self::topic(*n) == topic);
    (0..).zip(all).filter(|(_, n)| !missing.contains(n)).map(|(offset, n)| (offset, message(n))).collect()
}

fn check(row: &Row) {
    let Row { found, stop, missing, .. } = row;
    let s = stopped(*stop);
    let count = s.placed.len();
    (row.change)(&s);
    let (log, own) = (s.log(), s.own_files());
    let end = row.ends_at.map_or(s.end(), |n| s.placed[n].log_offset);

    let store = open(&s.disk, Duration::ZERO).unwrap_or_else(|e| panic!("{found}: {e}"));
    assert_eq!(store.written(), end, "{found}: the end of the log");
    for topic in ["t", "u"] {
        assert_eq!(drain_with_holes(&store, topic, 0), expected(topic, count, missing), "{found}: {topic}");
    }
    let damaged = store.stats().damaged.load(Ordering::Relaxed);
    assert_eq!(damaged, 0, "{found}: counted as damage");
    let after = s.log();
    let end_at = end as usize;
    assert!(
        after[..end_at.min(log.len())] == log[..end_at.min(log.len())],
        "{found}: the log was changed below its end"
    );
    assert!(after[end_at.min(after.len())..].iter().all(|b| *b == 0), "{found}: behind the end");
    let name = |name: &&str| name.replace('@', &end.to_string());
    let mut new: Vec<String> = s.own_files().into_iter().filter(|f| !own.contains(f)).collect();
    new.retain(|f| f != "checkpoint");
    assert_eq!(new, row.aside.iter().map(name).collect::<Vec<_>>(), "{found}: set aside");

    // It goes on: behind every offset that a message in the log has, whole or not.
    let is_cut = |n: &usize| row.ends_at.is_some_and(|at| *n >= at);
    let next = (0..count).filter(|n| topic(*n) == "t" && !is_cut(n)).count() as i64;
    assert_eq!(send(&store, &store.queue("t", 0).unwrap(), &["new"]).unwrap()[0].queue_offset, next, "{found}");
    settle(&store);
    store.close().unwrap();
    let store = open(&s.disk, Duration::ZERO).unwrap();
    let mut all = expected("t", count, missing);
    all.push((next, b"new".to_vec()));
    assert_eq!(drain_with_holes(&store, "t", 0), all, "{found}: after the next start");
}

#[test]
fn stops_and_tails() {
    let rows = [
        Row { found: "a clean stop", ..ROW },
        Row { found: "a clean stop, abort file present", change: |s| _ = s.file("abort"), ..ROW },
        Row { found: "a kill", stop: Killed, ..ROW },
        Row {
            found: "a torn tail",
            stop: Killed,
            change: |s| s.zero(12, 60),
            missing: &[12, 13],
            ends_at: Some(12),
            aside: &["cut-@"],
        },
        Row {
            found: "a hole in the tail",
            stop: Killed,
            change: |s| s.zero(11, 0),
            missing: &[11, 12, 13],
            ends_at: Some(11),
            aside: &["cut-@"],
        },
        Row {
            found: "a hole in the tail, and something was cut here before",
            stop: Killed,
            change: |s| {
                s.zero(11, 0);
                s.file(format!("comet/cut-{}", s.placed[11].log_offset)).write_all_at(b"earlier", 0).unwrap();
            },
            missing: &[11, 12, 13],
            ends_at: Some(11),
            aside: &["cut-@.1"],
        },
        Row {
            found: "a zero tail",
            stop: Killed,
            change: |s| (12..14).for_each(|n| s.zero(n, 0)),
            missing: &[12, 13],
            ends_at: Some(12),
            ..ROW
        },
        Row {
            found: "garbage behind the end",
            stop: Killed,
            change: |s| s.file(segment(s.end())).write_all_at(&[7; 99], s.end() % SEGMENT).unwrap(),
            aside: &["cut-@"],
            ..ROW
        },
    ];
    rows.iter().for_each(check);
}

#[test]
fn queue_files() {
    let rows = [
        Row { found: "a missing consume queue", change: |s| s.no_queue("t"), ..ROW },
        Row { found: "a missing consume queue after a kill", stop: Killed, change: |s| s.no_queue("t"), ..ROW },
        Row {
            found: "a short consume queue: its last entries are gone",
            stop: Killed,
            change: |s| (3..7).for_each(|n| s.entry(n, 0, 0)),
            ..ROW
        },
        Row {
            found: "a long consume queue: entries point past the log",
            stop: Killed,
            change: |s| (7..9).for_each(|n| s.entry(n, s.end() + 500 * n, 500)),
            ..ROW
        },
        Row {
            found: "a long consume queue, and the log has no file for it",
            stop: Killed,
            change: |s| (7..9).for_each(|n| s.entry(n, 1 << 40, 500)),
            ..ROW
        },
        Row {
            found: "a consume-queue file of a wrong length",
            change: |s| s.file("consumequeue/t/0/00000000000000000000").set_len(107).unwrap(),
            aside: &["queue-t-0-00000000000000000000"],
            ..ROW
        },
        Row {
            found: "a stray file between consume-queue files",
            change: |s| s.file("consumequeue/t/0/x.tmp").write_all_at(b"?", 0).unwrap(),
            ..ROW
        },
    ];
    rows.iter().for_each(check);
}

#[test]
fn checkpoints() {
    const ASIDE: &[&str] = &["checkpoint.aside"];
    let rows = [
        Row { found: "Java's checkpoint missing", change: |s| s.remove("checkpoint"), aside: ASIDE, ..ROW },
        Row {
            found: "Java's checkpoint missing after a kill",
            stop: Killed,
            change: |s| s.remove("checkpoint"),
            aside: ASIDE,
            ..ROW
        },
        Row { found: "our checkpoint missing", change: |s| s.remove("comet/checkpoint"), ..ROW },
        Row {
            found: "our checkpoint missing after a kill",
            stop: Killed,
            change: |s| s.remove("comet/checkpoint"),
            ..ROW
        },
        Row {
            found: "our checkpoint damaged",
            stop: Killed,
            change: |s| s.flip_in("comet/checkpoint", 40),
            aside: ASIDE,
            ..ROW
        },
        Row { found: "the checkpoint of another broker", change: |s| s.java_was_here(2_000, 100), aside: ASIDE, ..ROW },
        Row {
            found: "the checkpoint of another broker, in the future",
            stop: Killed,
            change: |s| s.java_was_here(u64::MAX >> 1, u64::MAX >> 1),
            aside: ASIDE,
            ..ROW
        },
        Row {
            found: "our checkpoint in the future: the last file of the log is lost",
            change: |s| {
                let lost = segment(s.placed[DURABLE - 1].log_offset);
                let behind = files(&s.disk, path("commitlog")).into_iter().map(|name| path("commitlog").join(name));
                behind.filter(|file| *file >= lost).for_each(|file| s.disk.remove(&file).unwrap());
            },
            // These lie in it; the log goes on in the place of that file.
            missing: LAST_FILE,
            ends_at: Some(LAST_FILE[0]),
            ..ROW
        },
        Row {
            found: "a file of the log that got no length before the crash",
            stop: Killed,
            change: |s| {
                let last: u64 = files(&s.disk, path("commitlog")).last().unwrap().parse().unwrap();
                s.file(segment(last + SEGMENT));
            },
            ..ROW
        },
    ];
    rows.iter().for_each(check);
}

/// The messages of the last file of a clean stop.
const LAST_FILE: &[usize] = &[6, 7, 8, 9];

#[test]
fn a_missing_file_in_the_middle_of_the_log_is_named() {
    let s = stopped(Killed);
    assert!(s.end() > 2 * SEGMENT, "{}", s.end());
    let middle = segment(SEGMENT);
    let bytes = s.disk.read_all(&middle).unwrap();
    s.disk.remove(&middle).unwrap();
    let before = (s.log(), files(&s.disk, path("commitlog")));
    let error = open(&s.disk, Duration::ZERO).err().map(|e| e.to_string()).unwrap_or_default();
    let what = "this file is missing: the next one is 00000000000000008192; put it back";
    assert_eq!(error, format!("{}: {what}", middle.display()));
    assert!((s.log(), files(&s.disk, path("commitlog"))) == before);
    let file = s.file(&middle);
    file.set_len(SEGMENT).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    assert_eq!(drain_with_holes(&open(&s.disk, Duration::ZERO).unwrap(), "t", 0), expected("t", ALL, &[]));
}

#[test]
fn an_empty_file_in_the_middle_of_the_log_is_damage() {
    let s = stopped(Killed);
    s.java_was_here(1, s.end());
    s.file(segment(SEGMENT)).set_len(0).unwrap();
    let store = open(&s.disk, Duration::ZERO).unwrap();
    let missing: Vec<usize> = (0..ALL).filter(|n| s.placed[*n].log_offset / SEGMENT == 1).collect();
    for topic in ["t", "u"] {
        assert_eq!(drain_with_holes(&store, topic, 0), expected(topic, ALL, &missing));
    }
    assert_eq!((store.written(), store.stats().damaged.load(Ordering::Relaxed)), (s.end(), 1));
}

/// Total size (small and beyond the file), magic, crc, log offset, body, length of topic and of properties.
fn wrong_bytes(s: &Stopped, n: usize) -> [u64; 9] {
    let len = s.placed[n].log_end - s.placed[n].log_offset;
    [0, 2, 3, 5, 10, 33, 88 + 20, len - 11, len - 9]
}

/// Damage where the log was durable costs exactly the damaged message, whoever finds it and whatever says that it was durable.
#[test]
fn damage() {
    type Case = (&'static str, Stop, fn(&Stopped), &'static [&'static str]);
    let cases: [Case; 5] = [
        ("met by a reader", Clean, |_| {}, &[]),
        ("met by recovery, our checkpoint", Clean, |s| s.no_queue("t"), &[]),
        ("met by recovery, a clean stop", Clean, |s| s.remove("comet/checkpoint"), &[]),
        ("met by recovery, our checkpoint, a kill", Killed, |s| s.no_queue("u"), &[]),
        ("met by recovery, Java's checkpoint, a kill", Killed, |s| s.java_was_here(1, s.end()), &["checkpoint.aside"]),
    ];
    let last_of_file = (0..DURABLE).rfind(|n| stopped(Clean).placed[*n].log_offset < SEGMENT).unwrap();
    for (found, stop, change, aside) in cases {
        for n in [1, 4, last_of_file, last_of_file + 1] {
            for byte in wrong_bytes(&stopped(stop), n) {
                let case = format!("{found}: message {n}, byte {byte}");
                let s = stopped(stop);
                s.flip(n, byte);
                change(&s);
                let (log, own) = (s.log(), s.own_files());
                let store = open(&s.disk, Duration::ZERO).unwrap_or_else(|e| panic!("{case}: {e}"));
                for topic in ["t", "u"] {
                    let all = expected(topic, s.placed.len(), &[n]);
                    assert_eq!(drain_with_holes(&store, topic, 0), all, "{case}");
                }
                assert_eq!((store.written(), store.stats().damaged.load(Ordering::Relaxed)), (s.end(), 1), "{case}");
                assert!(s.log() == log, "{case}: the log was changed");
                let mut new: Vec<String> = s.own_files().into_iter().filter(|f| !own.contains(f)).collect();
                new.retain(|f| f != "checkpoint");
                assert_eq!(new, aside, "{case}");
            }
        }
    }
}

/// Without our checkpoint, and with whole messages behind the damage that no checkpoint of Java covers, the log ends there: after
/// a power cut these may be what was written behind a hole.
#[test]
fn what_only_may_have_been_durable_is_set_aside() {
    let s = stopped(Killed);
    s.java_was_here(1, s.placed[5].log_offset);
    s.flip(6, 100);
    let store = open(&s.disk, Duration::ZERO).unwrap();
    assert_eq!(store.written(), s.placed[6].log_offset);
    for topic in ["t", "u"] {
        assert_eq!(drain_with_holes(&store, topic, 0), expected(topic, 6, &[]));
    }
    assert!(s.own_files().contains(&format!("cut-{}", s.placed[6].log_offset)));
}

/// The last durable message is damaged, with nothing behind it: the offset that it had in its queue is not given again, so a
/// consumer that had it does not miss the next.
#[test]
fn the_offset_of_a_damaged_message_is_not_given_again() {
    let s = stopped(Clean);
    s.flip(9, 100);
    s.no_queue("t");
    let store = open(&s.disk, Duration::ZERO).unwrap();
    assert_eq!(drain_with_holes(&store, "u", 0), expected("u", DURABLE, &[9]));
    assert_eq!(send(&store, &store.queue("u", 0).unwrap(), &["new"]).unwrap()[0].queue_offset, 5);
}

/// Queues of a topic with `queue.type=BatchCQ` lie in another folder. They stay as they are, and reading the log again makes none of
/// the usual kind: a Java broker does not start when it finds a topic in both.
#[test]
fn batch_queues_are_kept_and_get_no_second_place() {
    let s = stopped(Clean);
    s.no_queue("t");
    s.disk.remove_dir(&path("consumequeue/t/0")).unwrap();
    s.disk.remove_dir(&path("consumequeue/t")).unwrap();
    let batch = "batchconsumequeue/t/0/00000000000000000000";
    s.disk.create_dirs(path(batch).parent().unwrap()).unwrap();
    s.file(batch).write_all_at(&[1; 46], 0).unwrap();
    let store = open(&s.disk, Duration::ZERO).unwrap();
    assert_eq!(drain_with_holes(&store, "u", 0), expected("u", DURABLE, &[]));
    settle(&store);
    store.close().unwrap();
    assert_eq!(s.disk.read_all(&path(batch)).unwrap(), [1; 46]);
    assert!(s.disk.list(&path("consumequeue/t")).is_err());
}
