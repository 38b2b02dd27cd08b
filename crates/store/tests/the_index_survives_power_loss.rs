//! After a power cut, wherever it falls, the index goes on to the key: nothing is left out and nothing is in it twice. Its files
//! are then the same as those that are made anew from the whole log. Damaged files, and such that point behind the log,
//! are set aside and made again; files whose messages expired go.
//! Method: a workload whose records carry one to four keys, so that files roll inside of a record, once per disk operation, with the
//! power lost there; two more lives on what is left; then the index is removed and made again, and compared.

mod support;

use std::path::{Path, PathBuf};

use cometmq_base::Clock;
use cometmq_store::disk::{Disk, Faulty, File, Open};
use cometmq_store::{Batch, FlushMode, KeyKind, Options, Query, Store};
use cometmq_wire::record::Record;
use support::{INDEX_ITEMS, INDEX_SLOTS, LONG, ROOT, draft, files, wait_until};

const INDEX: &str = "/data/store/index";

/// 19 keys fill a file.
fn open(disk: &Faulty, flush: FlushMode) -> Result<Store, cometmq_store::Error> {
    let options = Options { index_slots: Some(13), index_items: Some(20), ..support::options(ROOT, flush) };
    Store::open(options, std::sync::Arc::new(disk.clone()), Clock::manual(1_000))
}

/// Sends `count` messages, each durable before the next.
fn workload(store: &Store, life: &str, count: usize) -> Option<()> {
    let queue = store.queue("orders", 0).ok()?;
    for n in 0..count {
        let mut keys = format!("UNIQ_KEY\u{1}{life}{n}\u{2}");
        if n % 2 == 1 {
            keys += &format!("KEYS\u{1}{life} x{n}\u{2}");
        }
        if n % 3 == 1 {
            keys += "TAGS\u{1}tag\u{2}";
        }
        let mut batch = Batch::default();
        batch.push(&draft("orders", b"body", &keys), &queue).ok()?;
        store.append(&mut batch).ok()?;
        store.wait_durable(batch.placed(0)?.log_end, LONG).then_some(())?;
    }
    Some(())
}

fn life(disk: &Faulty, name: &str, count: usize) -> Option<()> {
    let store = match open(disk, FlushMode::Sync) {
        Ok(store) => store,
        Err(_) if disk.power_is_lost() => return None,
        Err(error) => panic!("{name}: {error}"),
    };
    workload(&store, name, count)?;
    wait_until("dispatched", || store.dispatched() == store.written() || store.write_refusal().is_some());
    store.close().ok()
}

/// The index files' contents, in order.
fn index(disk: &Faulty) -> Vec<Vec<u8>> {
    files(disk, INDEX).iter().map(|name| disk.read_all(&Path::new(INDEX).join(name)).unwrap()).collect()
}

/// Makes the index anew, from the whole log.
fn rebuild(disk: &Faulty) -> Vec<Vec<u8>> {
    for name in files(disk, INDEX) {
        disk.remove(&Path::new(INDEX).join(name)).unwrap();
    }
    open(disk, FlushMode::Sync).unwrap().close().unwrap();
    index(disk)
}

/// Sectors of a batch that was never counted may lie behind the last item.
fn counted(mut files: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for file in &mut files {
        let count = u32::from_be_bytes(*file[36..].first_chunk().unwrap()).max(1) as usize;
        file[40 + 13 * 4 + count * 20..].fill(0);
    }
    files
}

fn aside(disk: &Faulty) -> Vec<String> {
    files(disk, format!("{ROOT}/comet")).into_iter().filter(|name| name.starts_with("index-")).collect()
}

#[test]
fn wherever_it_falls() {
    let mut cuts = 0;
    let mut files_max = 0;
    for op in 0.. {
        let mut completed = 0;
        for seed in 0..2 {
            let disk = Faulty::lose_power_at(op, seed);
            completed += usize::from(life(&disk, "a", 16).is_some());
            cuts += usize::from(disk.power_is_lost());
            let again = disk.surviving();
            again.lose_power_after((op * 5 + seed * 17) % 90);
            life(&again, "b", 8);
            let left = again.surviving();
            life(&left, "c", 3).unwrap_or_else(|| panic!("power lost at operation {op}, seed {seed}"));
            let ours = counted(index(&left));
            files_max = files_max.max(ours.len());
            assert!(ours == rebuild(&left), "power lost at operation {op}, seed {seed}");
        }
        if completed == 2 {
            break;
        }
    }
    assert!(cuts > 100 && files_max >= 3, "{cuts} power cuts, {files_max} files");
}

#[test]
fn after_a_kill_it_goes_on() {
    let mut disk = Faulty::healthy();
    for life in ["a", "b", "c"] {
        let store = open(&disk, FlushMode::Sync).unwrap();
        workload(&store, life, 20).unwrap();
        disk = disk.surviving_kill();
    }
    life(&disk, "d", 1).unwrap();
    let ours = counted(index(&disk));
    assert_eq!(ours.len(), 8);
    assert!(ours == rebuild(&disk));
}

fn path(disk: &Faulty, at: usize) -> PathBuf {
    Path::new(INDEX).join(&files(disk, INDEX)[at])
}

/// A store that was stopped with five index files, of which the one at `at` is then damaged.
fn damaged(at: usize, damage: impl Fn(&dyn File)) -> (Faulty, Vec<Vec<u8>>) {
    let disk = Faulty::healthy();
    life(&disk, "a", 36).unwrap();
    let whole = index(&disk);
    assert_eq!(whole.len(), 5);
    damage(disk.open(&path(&disk, at), Open::Write).unwrap().as_ref());
    (disk, whole)
}

#[test]
fn files_that_cannot_be_believed_are_set_aside_and_made_again() {
    type Damage<'a> = &'a dyn Fn(&dyn File);
    let header = |at: u64, bytes: &'static [u8]| move |f: &dyn File| f.write_all_at(bytes, at).unwrap();
    let damages: [(&str, Damage<'_>); 6] = [
        ("short", &|f| f.set_len(100).unwrap()),
        ("empty", &|f| f.set_len(0).unwrap()),
        ("count", &header(36, &[0, 0, 0, 21])),
        ("slots", &header(32, &[0x7f, 0, 0, 0])),
        ("end", &header(24, &[0xff; 8])),
        ("behind the log", &header(24, &[0, 0, 0, 9, 0, 0, 0, 0])),
    ];
    for (what, damage) in damages {
        for at in 0..5 {
            let (disk, whole) = damaged(at, damage);
            let opened = open(&disk, FlushMode::Sync).map(|store| store.close().unwrap());
            assert!(opened.is_ok(), "{what} {at}: {opened:?}");
            assert!(index(&disk) == whole, "{what} {at}");
            // With it those behind it: keys have one order.
            let moved = aside(&disk).len();
            assert_eq!(moved, 5 - at, "{what} {at}");
        }
    }
}

/// As a Java broker leaves it that recovered from a kill: it deletes files, and reads only a part of the log again.
#[test]
fn files_behind_a_gap_are_made_again() {
    for at in 0..4 {
        let (disk, whole) = damaged(at, |_| {});
        disk.remove(&path(&disk, at)).unwrap();
        disk.remove(&Path::new(ROOT).join("comet/checkpoint")).unwrap();
        open(&disk, FlushMode::Sync).unwrap().close().unwrap();
        assert!(index(&disk) == whole, "{at}");
        assert_eq!(aside(&disk).len(), 4 - at, "{at}");
    }
}

#[test]
fn lost_files_are_made_again() {
    let (disk, whole) = damaged(4, |_| {});
    disk.remove(&path(&disk, 4)).unwrap();
    open(&disk, FlushMode::Sync).unwrap().close().unwrap();
    assert!(index(&disk) == whole);
    assert!(rebuild(&disk) == whole);
    assert_eq!(aside(&disk), [""; 0]);
}

#[test]
fn files_of_expired_messages_go_and_others_stay() {
    let (disk, whole) = damaged(4, |_| {});
    let store = open(&disk, FlushMode::Sync).unwrap();
    let end = |n: usize| u64::from_be_bytes(*whole[n][24..].first_chunk().unwrap());
    assert_eq!(store.drop_index_before(end(0)).unwrap(), 0);
    assert_eq!(store.drop_index_before(end(1) + 1).unwrap(), 2);
    assert!(index(&disk) == whole[2..]);
    let query = Query { topic: "orders", key: "a35", kind: KeyKind::Unique, max: 1, begin_ms: 0, end_ms: 0 };
    assert_eq!(Record::parse(&store.query(&query).unwrap().records[0]).unwrap().property("UNIQ_KEY"), Some("a35"));
    assert_eq!(store.drop_index_before(u64::MAX).unwrap(), 2, "the last one stays");
    store.close().unwrap();
    open(&disk, FlushMode::Sync).unwrap().close().unwrap();
    assert!(index(&disk) == whole[4..], "a start brings nothing back");
}

/// A full file is in Java's checkpoint.
#[test]
fn the_checkpoint_says_up_to_when_files_are_full() {
    let disk = Faulty::healthy();
    assert_eq!((INDEX_SLOTS, INDEX_ITEMS), (50, 200), "one file, not full");
    let store = support::open(&disk, FlushMode::Sync).unwrap();
    workload(&store, "a", 36).unwrap();
    store.close().unwrap();
    let index_ms = |disk: &Faulty| {
        i64::from_be_bytes(*disk.read_all(Path::new("/data/store/checkpoint")).unwrap()[16..].first_chunk().unwrap())
    };
    assert_eq!(index_ms(&disk), 0);
    assert_eq!(index_ms(&damaged(4, |_| {}).0), 1_000);
}
