//! `comet store check` finds the stores that Java wrote sound, and ours, whether they were stopped or killed. Each kind of damage gives its
//! line, with file, byte and what to do, and exit code 1; a store that cannot be checked gives 2. Not a byte or a time of a file changes.
//! Method: a store that is known to be sound is spoiled in one place, and all lines are compared.

mod support;
#[path = "support/stores.rs"]
mod stores;

use std::fs;
use std::path::Path;

use stores::*;
use support::*;

const LOG: &str = "commitlog/00000000000000000000";
const QUEUE: &str = "consumequeue/fixture_normal/1/00000000000000000000";
const INDEX: &str = "index/20261130151357933";
/// Where the log of the clean fixture ends.
const END: u64 = 81_455;
/// 500 slots behind a header of 40 bytes.
const ITEMS: u64 = 40 + 500 * 4;

/// Checks a store, which stays as it is; all lines but the summary.
fn check(root: &Path) -> (i32, Vec<String>, String) {
    let before = tree(root);
    let conf = tempfile::NamedTempFile::new().unwrap();
    fs::write(conf.path(), "maxHashSlotNum=500\nmaxIndexNum=2000\n").unwrap();
    let mut args = vec!["store".to_string(), "check".to_string(), root.display().to_string()];
    if root.join(INDEX).exists() {
        args.extend(["-c".to_string(), conf.path().display().to_string()]);
    }
    let ended = comet(&args.iter().map(String::as_str).collect::<Vec<_>>(), "");
    assert!(tree(root) == before, "check changed the store");
    let mut lines: Vec<String> = ended.lines().into_iter().map(str::to_string).collect();
    let summary = lines.pop().unwrap_or(ended.err);
    (ended.code, lines, summary.rsplit_once(", in ").map_or(summary.clone(), |(s, _)| s.to_string()))
}

#[test]
fn stores_that_java_wrote_are_sound() {
    let sound = |name: &str, summary: &str| {
        let dir = java_store(name);
        assert_eq!(check(dir.path()), (0, vec![], format!("sound: {summary}")), "{name}");
    };
    sound("clean", "285 records in 79.5 KiB of log, 19 queues with 285 entries compared, 665 index keys compared");
    sound("killed", "567 records in 157.8 KiB of log, 21 queues with 567 entries compared, 1322 index keys compared");
}

/// Spoils the clean fixture.
fn spoiled(spoil: impl Fn(&Path)) -> (i32, Vec<String>) {
    let dir = java_store("clean");
    // 37 MB that nobody looks at.
    fs::remove_file(dir.path().join("timerwheel")).unwrap();
    spoil(dir.path());
    let (code, lines, summary) = check(dir.path());
    let errors = lines.iter().filter(|l| l.starts_with("ERROR ")).count();
    assert_eq!(code, i32::from(errors > 0), "{lines:#?}");
    assert_eq!(summary.starts_with("sound"), errors == 0, "{summary}");
    (code, lines)
}

fn finds(what: &str, spoil: impl Fn(&Path), expected: &[&str]) {
    assert_eq!(spoiled(spoil).1, expected, "{what}");
}

const LOST: &str = "restore it from a copy; without one these messages are lost, and brokers step over them";
const REBUILD: &str = "repair makes the entries of all queues again from the log";
const REINDEX: &str = "repair sets the index aside in comet/ and makes it again from the log";

#[test]
fn damage_of_the_log_is_found() {
    // The second record of the log is the first of fixture_normal-1; its body starts 88 bytes behind its begin.
    let torn = format!(
        "ERROR {LOG} at 309: 276 bytes of the commit log are damaged: a body that does not match its crc; {LOST}"
    );
    let lost = format!(
        "WARN {QUEUE} at 0: 1 messages of fixture_normal-1 from offset 0 on are not in the log; it is damaged there; nothing: consumers are led past them"
    );
    finds("a body", |root| flip(&root.join(LOG), 309 + 88), &[&torn, &lost]);
    let torn = torn.replace("a body that does not match its crc", "a record that says it lies at 65845");
    finds("its own offset", |root| write_at(&root.join(LOG), 309 + 33, &[1]), &[&torn, &lost]);
    let behind = format!(
        "ERROR {LOG} at {}: bytes behind the end of the log at byte {END}: no whole record starts there; repair keeps them in comet/ and puts zeros here, as a start after a kill does",
        END + 100
    );
    finds("behind the end", |root| write_at(&root.join(LOG), END + 100, b"x"), &[&behind]);
    let stray = "ERROR commitlog/x.tmp: not a commit-log file (a name of 20 digits is expected); move it away; no broker starts with it, and nothing else was looked at";
    finds("a stray file", |root| fs::write(root.join("commitlog/x.tmp"), "x").unwrap(), &[stray]);
}

#[test]
fn after_a_kill_a_torn_end_is_no_damage() {
    let dir = java_store("killed");
    write_at(&dir.path().join(LOG), 161_604, &[0, 0, 1, 0, 0xDA, 0xA3, 0x20, 0xA7, 1, 2, 3]);
    let (code, lines, _) = check(dir.path());
    let line = format!(
        "WARN {LOG} at 161606: bytes behind the end of the log at byte 161604: no whole record starts there; repair keeps them in comet/ and puts zeros here, as a start after a kill does"
    );
    assert_eq!((code, lines), (0, vec![line]));
}

#[test]
fn damage_of_queues_is_found() {
    let entry = |root: &Path, n: u64, bytes: &[u8]| write_at(&root.join(QUEUE), 20 * n, bytes);
    let line = |at: u64, what: &str| format!("ERROR {QUEUE} at {at}: {what}; {REBUILD}");
    let missing =
        line(0, "2 entries of fixture_normal-1 from offset 0 on are missing; the record lies at log offset 309");
    finds("zeros", |root| entry(root, 0, &[0; 40]), &[&missing]);
    let place = line(
        0,
        "1 entries of fixture_normal-1 from offset 0 on point elsewhere; it says log offset 0, 309 bytes; the record lies at 309, 276 bytes",
    );
    let other = |root: &Path| {
        let first = root.join("consumequeue/fixture_normal/0/00000000000000000000");
        entry(root, 0, &read_at(&first, 0, 20));
    };
    finds("another record", other, &[&place]);
    let tag = line(
        0,
        "1 entries of fixture_normal-1 from offset 0 on have a wrong tag code; it says tag code 7, that of the record is 2598920",
    );
    finds("a tag", |root| entry(root, 0, &[0, 0, 0, 0, 0, 0, 1, 53, 0, 0, 1, 20, 0, 0, 0, 0, 0, 0, 0, 7]), &[&tag]);
    let alien = line(
        1400,
        "1 entries of fixture_normal-1 from offset 70 on point at no record of this queue; it says log offset 309, 276 bytes",
    );
    finds("a repeat", |root| entry(root, 70, &read_at(&root.join(QUEUE), 0, 20)), &[&alien]);
    let past = line(
        1400,
        "1 entries of fixture_normal-1 from offset 70 on point behind the end of the log; it says log offset 81455, 300 bytes; the log ends at 81455",
    );
    let beyond = [&END.to_be_bytes()[..], &300u32.to_be_bytes(), &[0; 8]].concat();
    finds("past the end", |root| entry(root, 70, &beyond), &[&past]);
    let gone =
        line(0, "70 entries of fixture_normal-1 from offset 0 on are missing; the record lies at log offset 309");
    finds("no file", |root| fs::remove_file(root.join(QUEUE)).unwrap(), &[&gone]);
    let odd = format!(
        "ERROR {QUEUE}: a queue file that has not 2000 bytes or does not start at a multiple of that; repair sets it aside in comet/ and makes its entries again from the log"
    );
    let cut = |root: &Path| fs::OpenOptions::new().write(true).open(root.join(QUEUE)).unwrap().set_len(1400).unwrap();
    finds("a wrong length", cut, &[&odd]);
    let stray = "ERROR consumequeue/fixture_normal/1/0.tmp: a file or folder that is none of a store; move it away (repair moves it to comet/): a broker may not start with it";
    finds("a stray file", |root| fs::write(root.join("consumequeue/fixture_normal/1/0.tmp"), "").unwrap(), &[stray]);
}

#[test]
fn damage_of_the_index_is_found() {
    let line = |at: u64, what: &str| format!("ERROR {INDEX} at {at}: {what}; {REINDEX}");
    let file = |root: &Path| root.join(INDEX);
    let chain = line(ITEMS + 3 * 20 + 16, "item 3 follows item 255 in the chain of its slot 123, expected 0");
    finds("a chain", |root| flip(&file(root), ITEMS + 3 * 20 + 19), &[&chain]);
    let begin = line(16, "the header begins at log offset 7, its first item at 0");
    finds("its begin", |root| write_at(&file(root), 23, &[7]), &[&begin]);
    let end = line(24, "the header ends at log offset 81456, its last item is at 81008");
    finds("its end", |root| write_at(&file(root), 24, &(END + 1).to_be_bytes()), &[&end]);
    let impossible = line(0, "the header of an index file cannot be true: 290 used slots, 4096 items of 2000");
    let (code, lines) = spoiled(|root| write_at(&file(root), 36, &4096u32.to_be_bytes()));
    assert_eq!((code, &lines[0]), (1, &impossible));
    let moved = [
        line(16, "the header begins at log offset 0, its first item at 255"),
        line(ITEMS + 20, "the items of the record at log offset 0 are not its keys: 4 are missing, 0 are others"),
        line(ITEMS + 20, "item 1 points at log offset 255, where no record starts"),
    ];
    let moved: Vec<&str> = moved.iter().map(String::as_str).collect();
    finds("an item", |root| flip(&file(root), ITEMS + 20 + 11), &moved);
    let slot = line(40 + 4, "slot 1 names item 200, the newest of its chain is 0");
    finds("a slot", |root| write_at(&file(root), 44, &200u32.to_be_bytes()), &[&slot]);
    let dir = java_store("clean");
    write_at(&dir.path().join(INDEX), 23, &[7]);
    let ended = comet(&["store", "check", &dir.path().display().to_string()], "");
    let unknown = line(0, "an index file of 42040 bytes, expected 420000040 by maxHashSlotNum and maxIndexNum");
    assert_eq!((ended.code, ended.lines()[0]), (1, unknown.as_str()), "it does not tell its own measures any more");
    let stray = "ERROR index/notes: a file or folder that is none of a store; move it away (repair moves it to comet/): a broker may not start with it";
    finds("a stray file", |root| fs::write(root.join("index/notes"), "").unwrap(), &[stray]);
}

#[test]
fn damage_of_checkpoints_and_configuration_is_found() {
    let future = "ERROR checkpoint at 0: physicMsgTimestamp=1796051668648, but the newest record of the log is of 1796051668647: the log is not what it was; repair writes a new one";
    let newest = 1_796_051_668_647_u64;
    finds(
        "the log's end is gone",
        |root| write_at(&root.join("checkpoint"), 0, &(newest + 1).to_be_bytes()),
        &[future],
    );
    let offset = "ERROR checkpoint at 40: logicsMsgOffset=81456, but the log ends at 81455; repair writes a new one";
    finds("an offset", |root| write_at(&root.join("checkpoint"), 40, &(END + 1).to_be_bytes()), &[offset]);
    let cut = |name: &'static str| move |root: &Path| fs::write(root.join(name), "{\"dataVersion\":{").unwrap();
    let (code, lines) = spoiled(cut("config/topics.json"));
    assert!(lines[0].starts_with("ERROR config/topics.json: it does not parse: "), "{lines:?}");
    assert!(lines[0].ends_with("; repair restores it from .bak, which a broker reads instead"), "{lines:?}");
    assert_eq!((code, lines.len()), (1, 1));
    let missing = "WARN config/topics.json: it is missing, but its .bak is there; repair restores it from .bak, which a broker reads instead";
    finds("a missing file", |root| fs::remove_file(root.join("config/topics.json")).unwrap(), &[missing]);
    let past = "WARN config/consumerOffset.json: group g is at 71 in fixture_normal-1, which ends at 70; nothing: a start of comet sets it back to the end";
    let ahead = |root: &Path| {
        let text = "{\"offsetTable\":{\"fixture_normal@g\":{0:50,1:71}}}";
        fs::write(root.join("config/consumerOffset.json"), text).unwrap();
    };
    finds("an offset past the end", ahead, &[past]);
}

#[test]
fn what_cannot_be_checked_is_said_with_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let says = |root: &Path| {
        let (code, lines, error) = check(root);
        assert_eq!((code, lines.len()), (2, 0), "{error}");
        error
    };
    let error = says(dir.path());
    assert!(
        error.contains("commitlog: no commit log: ") && error.contains("expected the directory of a store"),
        "{error}"
    );
    let rocks = java_store("clean");
    fs::create_dir(rocks.path().join("consumequeue_rocksdb")).unwrap();
    fs::write(rocks.path().join("consumequeue_rocksdb/CURRENT"), "x").unwrap();
    assert!(says(rocks.path()).contains("the queues of this store are in RocksDB"));
}

#[test]
fn a_store_of_ours_is_sound_stopped_or_killed_and_not_looked_at_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let server = ours(&root);
    let ended = comet(&["store", "check", &root.display().to_string()], "");
    assert_eq!((ended.code, ended.out.as_str()), (2, ""));
    assert!(ended.err.contains("lock is in use by another process"), "{}", ended.err);
    server.kill();
    let (code, lines, summary) = check(&root);
    assert_eq!(code, 0, "{lines:#?}");
    assert!(lines.iter().all(|line| line.starts_with("WARN ")), "{lines:#?}");
    assert!(summary.contains(": 300 records in "), "{summary}");
    assert!(Comet::start_with(&root, &SMALL).terminate().success());
    let (code, lines, summary) = check(&root);
    assert_eq!((code, lines), (0, vec![]));
    assert!(summary.ends_with("4 queues with 300 entries compared, 900 index keys compared"), "{summary}");

    let own = root.join("comet/checkpoint");
    let text = fs::read_to_string(&own).unwrap();
    fs::write(&own, text.replace("durable ", "durable 1")).unwrap();
    fs::write(root.join("comet/deleted"), "17 gone\nx\n").unwrap();
    let lines = [
        "ERROR comet/deleted: line 2 is no log offset and topic; delete that line: brokers step over it, and the topic's old messages may come back",
        "ERROR comet/checkpoint: its crc does not match: the next start reads the whole log; repair writes a new one",
    ];
    assert_eq!(check(&root).1, lines);

    for name in ["comet/checkpoint", "comet/deleted"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    // Behind the last record of the first file lies a filler: the rest of the file 4, its magic 4.
    let first = root.join("commitlog/00000000000000000000");
    let bytes = fs::read(&first).unwrap();
    let filler = bytes.windows(8).rposition(|w| w[4..] == [0xCB, 0xD4, 0x31, 0x94]).unwrap() as u64;
    assert_eq!(read_at(&first, filler, 4), (65_536 - filler as u32).to_be_bytes());
    write_at(&first, filler, &8u32.to_be_bytes());
    let line = format!(
        "WARN commitlog/00000000000000000000 at {filler}: a filler that says 8 bytes where another number is left in the file; nothing: no broker reads it"
    );
    assert_eq!(check(&root).1, [line]);

    // The second of its files of the log is gone.
    fs::remove_file(root.join("commitlog/00000000000000065536")).unwrap();
    let (code, lines, _) = check(&root);
    let line = "ERROR commitlog/00000000000000065536: this file is missing: the next one is 00000000000000131072; put it back; no broker starts with it, and nothing else was looked at";
    assert_eq!((code, lines), (1, vec![line.to_string()]));
}

#[test]
fn json_has_the_same() {
    let dir = java_store("clean");
    flip(&dir.path().join(LOG), 309 + 88);
    let ended = comet(&["store", "check", &dir.path().display().to_string(), "--format", "json"], "");
    assert_eq!(ended.code, 1);
    let found: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let first = serde_json::json!({
        "severity": "ERROR", "file": LOG, "offset": 309, "advice": LOST,
        "what": "276 bytes of the commit log are damaged: a body that does not match its crc",
    });
    assert_eq!((&found["findings"][0], &found["errors"], &found["records"]), (&first, &1.into(), &284.into()));
}
