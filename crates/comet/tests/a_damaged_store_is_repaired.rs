//! `comet store repair` makes a damaged store pass its check, keeps every whole message where it was, in its queue and in its index, and
//! keeps what it takes away in `comet/`. It says first what it will do and does nothing without a yes. A copy is repaired without
//! touching the store.
//! Method: each kind of damage in a store that Java wrote; what can be dumped after the repair is what could be dumped before the damage.

mod support;
#[path = "support/stores.rs"]
mod stores;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use stores::*;
use support::*;

const LOG: &str = "commitlog/00000000000000000000";
const QUEUES: &str = "consumequeue/fixture_normal";
const QUEUE: &str = "consumequeue/fixture_normal/1/00000000000000000000";
const INDEX: &str = "index/20261130151357933";
const END: u64 = 81_455;

fn store(args: &[&str], root: &Path, more: &[&str], input: &str) -> Ended {
    comet(&[&["store"], args, &[&root.display().to_string()], more].concat(), input)
}

fn dump(root: &Path) -> Vec<String> {
    store(&["dump"], root, &["--format", "json"], "").lines().into_iter().map(str::to_string).collect()
}

/// Every queue of the clean fixture, as bytes, those of one file left out.
fn queues(root: &Path, but: &str) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let files = tree(&root.join("consumequeue")).into_iter().filter_map(|(path, file)| Some((path, file?.0)));
    let files = files.map(|(path, bytes)| (path.strip_prefix(root).unwrap().to_path_buf(), bytes));
    files.filter(|(path, _)| path != Path::new(but)).collect()
}

fn clean() -> tempfile::TempDir {
    let dir = java_store("clean");
    // 37 MB that nobody looks at.
    fs::remove_file(dir.path().join("timerwheel")).unwrap();
    dir
}

fn check(root: &Path) -> (i32, String) {
    let ended = store(&["check"], root, &[], "");
    let summary = ended.out.rsplit_once(", in ").map_or(String::new(), |(text, _)| text.to_string());
    (ended.code, summary)
}

const SOUND: &str =
    "sound: 285 records in 79.5 KiB of log, 19 queues with 285 entries compared, 665 index keys compared";

/// The damage is found, repaired, and nothing of it is left; returns the store.
fn repaired(what: &str, spoil: impl Fn(&Path)) -> tempfile::TempDir {
    let dir = clean();
    let (messages, entries) = (dump(dir.path()), queues(dir.path(), ""));
    spoil(dir.path());
    assert_ne!(check(dir.path()).1, SOUND, "{what} is found");
    let ended = store(&["repair"], dir.path(), &["--in-place", "--yes"], "");
    assert_eq!(ended.code, 0, "{what}: {ended:#?}");
    assert_eq!(check(dir.path()), (0, SOUND.to_string()), "{what}");
    assert!(dump(dir.path()) == messages, "{what}: messages are missing or changed");
    assert!(queues(dir.path(), "") == entries, "{what}: queues differ");
    dir
}

#[test]
fn queues_are_made_again() {
    let other_place = |root: &Path| write_at(&root.join(QUEUE), 40, &read_at(&root.join(QUEUE), 0, 20));
    repaired("an entry that points elsewhere", other_place);
    repaired("entries that are missing", |root| write_at(&root.join(QUEUE), 200, &[0; 300]));
    repaired("an entry too many", |root| write_at(&root.join(QUEUE), 1400, &read_at(&root.join(QUEUE), 0, 20)));
    repaired("a topic's queues", |root| fs::remove_dir_all(root.join(QUEUES)).unwrap());
    let cut = |root: &Path| fs::OpenOptions::new().write(true).open(root.join(QUEUE)).unwrap().set_len(1399).unwrap();
    let dir = repaired("a file of a wrong length", cut);
    let aside = dir.path().join("comet/queue-fixture_normal-1-00000000000000000000");
    assert_eq!(fs::metadata(aside).unwrap().len(), 1399);
    let stray = |root: &Path| fs::write(root.join(QUEUES).join("notes"), "mine").unwrap();
    let dir = repaired("a stray file", stray);
    assert_eq!(fs::read(dir.path().join("comet/stray-notes")).unwrap(), b"mine");
}

#[test]
fn the_index_is_made_again_with_its_measures() {
    let before = fs::read(clean().path().join(INDEX)).unwrap();
    let dir = repaired("a chain", |root| flip(&root.join(INDEX), 40 + 2000 + 3 * 20 + 19));
    let files: Vec<_> = fs::read_dir(dir.path().join("index")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert!(fs::read(&files[0]).unwrap() == before);
    assert_eq!(fs::metadata(dir.path().join("comet/index-20261130151357933")).unwrap().len(), 42_040);
}

#[test]
fn checkpoints_and_configuration_are_written_again() {
    let ahead = |root: &Path| {
        write_at(&root.join("checkpoint"), 0, &u64::MAX.to_be_bytes().map(|b| b >> 1));
        write_at(&root.join("checkpoint"), 40, &(END + 1).to_be_bytes());
    };
    repaired("a checkpoint ahead of the log", ahead);
    repaired("no checkpoint", |root| fs::remove_file(root.join("checkpoint")).unwrap());
    let before = fs::read(clean().path().join("config/topics.json")).unwrap();
    let dir = repaired("half a file", |root| fs::write(root.join("config/topics.json"), "{\"dataV").unwrap());
    assert!(fs::read(dir.path().join("config/topics.json")).unwrap() == before);
    assert_eq!(fs::read(dir.path().join("comet/broken-topics.json")).unwrap(), b"{\"dataV");
    let dir = repaired("a missing file", |root| fs::remove_file(root.join("config/topics.json")).unwrap());
    assert!(fs::read(dir.path().join("config/topics.json")).unwrap() == before);
}

#[test]
fn what_lies_behind_the_end_is_kept_aside() {
    let dir = repaired("garbage", |root| write_at(&root.join(LOG), END, b"not a record"));
    let cut = fs::read(dir.path().join(format!("comet/cut-{END}"))).unwrap();
    assert_eq!(&cut[..12], b"not a record");

    let dir = java_store("killed");
    let messages = dump(dir.path());
    write_at(&dir.path().join(LOG), 161_604, &[0, 0, 1, 0, 0xDA, 0xA3, 0x20, 0xA7, 1, 2, 3]);
    assert_eq!(store(&["repair"], dir.path(), &["--in-place", "--yes"], "").code, 0);
    assert!(dump(dir.path()) == messages && !dir.path().join("abort").exists());
    assert!(check(dir.path()).1.starts_with("sound: 567 records "));
}

/// Bytes that are damaged stay as they are, and are known from then on; other bytes in their place are not.
#[test]
fn damaged_messages_are_known_and_all_others_stay() {
    let dir = clean();
    let mut messages = dump(dir.path());
    let at = |message: &str| message.contains("\"commitLogOffset\":1401,");
    let lost: Vec<String> = messages.extract_if(.., |message| at(message)).collect();
    assert_eq!(lost.len(), 1);
    flip(&dir.path().join(LOG), 1401 + 88);
    assert_eq!(store(&["check"], dir.path(), &[], "").code, 1);
    let ended = store(&["repair"], dir.path(), &["--in-place", "--yes"], "");
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(dump(dir.path()) == messages);
    let (code, found) = check(dir.path());
    assert_eq!(code, 0);
    let known = "nothing: comet/damaged says that it is known, and brokers step over it";
    assert!(found.contains(known) && found.contains("sound, 2 WARN: 284 records"), "{found}");
    flip(&dir.path().join(LOG), 1401 + 89);
    assert_eq!(store(&["check"], dir.path(), &[], "").code, 1, "this is not what was known");
}

#[test]
fn a_store_of_ours_is_repaired_and_a_broker_goes_on_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    assert!(ours(&root).terminate().success());
    let messages = dump(&root);
    assert_eq!(messages.len(), 300);
    let log = |at: u64| (root.join(format!("commitlog/{:020}", at / 65_536 * 65_536)), at % 65_536);
    let of = |message: &String, key: &str| {
        serde_json::from_str::<serde_json::Value>(message).unwrap()[key].as_u64().unwrap()
    };
    let end = of(&messages[299], "commitLogOffset") + of(&messages[299], "storeSize");
    // A body, entries, and garbage where the log ends: durable, by our checkpoint, is what lies before.
    let (file, at) = log(of(&messages[100], "commitLogOffset"));
    flip(&file, at + 88);
    let (file, at) = log(end);
    write_at(&file, at, b"not a record");
    write_at(&root.join("consumequeue/orders/2/00000000000000000000"), 0, &[0; 600]);
    let ended = store(&["check"], &root, &[], "");
    assert_eq!(
        (ended.code, ended.lines().last().unwrap().starts_with("damaged: 3 ERROR, 1 WARN: 299")),
        (1, true),
        "{ended:#?}"
    );
    let ended = store(&["repair"], &root, &["--in-place", "--yes"], "");
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert_eq!(&fs::read(root.join(format!("comet/cut-{end}"))).unwrap()[..12], b"not a record");
    let left: Vec<String> = messages.iter().filter(|m| *m != &messages[100]).cloned().collect();
    assert!(dump(&root) == left);
    let server = Comet::start_with(&root, &SMALL);
    let namesrv = server.namesrv.to_string();
    let read = comet(&["consume", "orders", "--from", "first", "-n", &namesrv], "");
    assert_eq!((read.code, read.lines().len()), (0, 299), "{}", read.err);
    assert_eq!(comet(&["produce", "orders", "--count", "10", "-n", &namesrv], "").code, 0);
    assert!(server.terminate().success());
    assert!(check(&root).1.contains("sound, 2 WARN: 309 records"), "{}", check(&root).1);
}

#[test]
fn a_copy_is_repaired_and_the_store_stays_as_it_is() {
    let dir = clean();
    let messages = dump(dir.path());
    write_at(&dir.path().join(QUEUE), 200, &[0; 300]);
    let before = tree(dir.path());
    let to = tempfile::tempdir().unwrap();
    let out = to.path().join("new");
    let ended = store(&["repair"], dir.path(), &["--out", &out.display().to_string()], "y\n");
    assert_eq!(ended.code, 0, "{ended:#?}");
    let says = [
        "ERROR consumequeue/fixture_normal/1/00000000000000000000 at 200: 15 entries of fixture_normal-1 from offset 10 on are missing;",
        &format!("\n- copy {} to {}; all that follows is done to the copy\n", dir.path().display(), out.display()),
        "- read the whole log (79.5 KiB) and make the entries of all queues again, as a start after a kill does\n",
        "\nGo on? [y/N] ",
        SOUND,
    ];
    let mut rest = ended.out.as_str();
    for words in says {
        rest = rest.split_once(words).unwrap_or_else(|| panic!("no '{words}' in {}", ended.out)).1;
    }
    assert!(tree(dir.path()) == before, "the store changed");
    assert_eq!(check(&out), (0, SOUND.to_string()));
    assert!(dump(&out) == messages);
    let again = store(&["repair"], dir.path(), &["--out", &out.display().to_string(), "--yes"], "");
    assert_eq!((again.code, again.err.trim_end().ends_with("it is not empty")), (2, true), "{}", again.err);
}

#[test]
fn without_a_yes_nothing_is_done() {
    let dir = clean();
    write_at(&dir.path().join(QUEUE), 200, &[0; 300]);
    let before = tree(dir.path());
    for (more, input, says) in [
        (&["--in-place"][..], "n\n", "nothing was done"),
        (&["--in-place"], "", "nothing was done"),
        (&[], "y\n", "the following required arguments were not provided"),
        (&["--in-place", "--out", "/tmp/x"], "y\n", "cannot be used with"),
    ] {
        let ended = store(&["repair"], dir.path(), more, input);
        assert_eq!((ended.code, ended.err.contains(says)), (2, true), "{more:?} {input}: {}", ended.err);
    }
    assert!(tree(dir.path()) == before);
    let dir = clean();
    let before = tree(dir.path());
    let ended = store(&["repair"], dir.path(), &["--in-place", "--yes"], "");
    assert_eq!((ended.code, ended.out.as_str()), (0, "sound: nothing to repair\n"));
    assert!(tree(dir.path()) == before);
}
