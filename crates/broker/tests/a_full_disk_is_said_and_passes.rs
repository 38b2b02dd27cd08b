//! A disk without room: sends are refused with SERVICE_NOT_AVAILABLE before anything is written, with the figures of the disk
//! and the limit; request 28 says the same; pulls go on; and sends are accepted again within five seconds after there is
//! space, without a restart. What was answered SEND_OK is there, also after a restart.
//! On a file system of 64 MiB in memory where one may be mounted, and on a disk of our own.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use cometmq_store::disk::{Disk, Faulty};
use cometmq_wire::body::KVTable;
use support::*;

fn table(peer: &mut Peer) -> std::collections::BTreeMap<String, String> {
    cometmq_wire::json::from_slice::<KVTable>(&peer.ok(&Ask::new(28)).body).unwrap().table
}

/// Sends until the broker refuses; returns why.
fn fill(peer: &mut Peer, acked: &mut Vec<Vec<u8>>, len: usize) -> String {
    let end = Instant::now() + LONG;
    loop {
        let body = vec![acked.len() as u8; len];
        let got = peer.ask(&send("orders", 0, body.clone()));
        if got.code == 14 {
            return got.remark;
        }
        assert_eq!((got.code, got.num("queueOffset")), (0, acked.len() as i64), "{}", got.remark);
        acked.push(body);
        assert!(Instant::now() < end, "not full within {LONG:?}");
    }
}

fn resumes(peer: &mut Peer, acked: &mut Vec<Vec<u8>>) {
    let since = Instant::now();
    while peer.ask(&send("orders", 0, "first after")).code == 14 {
        assert!(since.elapsed() < Duration::from_secs(5), "still refused");
        std::thread::sleep(Duration::from_millis(10));
    }
    acked.push(b"first after".to_vec());
    assert!(!table(peer).contains_key("comet.writesRefused"));
    assert_eq!(drain(peer, "orders", 0, 0), *acked);
}

#[test]
fn the_answer_and_request_28_say_which_limit_is_passed() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    let mut acked = vec![b"before".to_vec()];
    peer.ok(&send("orders", 0, "before"));
    let used = disk.space(ROOT.as_ref()).unwrap().used;
    disk.set_capacity(Some(used + used / 50));
    // Nobody has to send to find out.
    wait_until("seen", || table(&mut peer).contains_key("comet.writesRefused"));
    let got = peer.ask(&send("orders", 0, "refused"));
    let why = got.remark;
    assert_eq!(got.code, 14, "{why}");
    let space = disk.space(ROOT.as_ref()).unwrap();
    let figures = format!("of {} bytes are free; writes need {}", space.total, space.total / 16);
    for part in [
        "the disk is full: /data/store/commitlog is 99 % used, ",
        &figures,
        ", by diskFreeBytesMin=268435456 (here a sixteenth of the disk)",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let table = table(&mut peer);
    assert_eq!(table["comet.writesRefused"], why);
    let ratios = ["commitLogDiskRatio", "commitLogDiskRatio_/data/store/commitlog", "consumeQueueDiskRatio"];
    assert_eq!(ratios.map(|key| table[key].as_str()), ["0.99"; 3]);
    assert_eq!(drain(&mut peer, "orders", 0, 0), acked);
    disk.set_capacity(None);
    resumes(&mut peer, &mut acked);
}

#[test]
fn a_poisoned_store_says_why() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    peer.ok(&send("orders", 0, "one"));
    disk.fail_syncs(true);
    wait_until("refused", || peer.ask(&send("orders", 0, "two")).code == 14);
    let why = "the store takes no more writes: sync /data/store/commitlog/00000000000000000000: sync failed";
    assert_eq!(table(&mut peer)["comet.writesRefused"], why);
    assert_eq!(peer.ask(&send("orders", 0, "three")).remark, why);
}

/// A file system of 64 MiB; `None` where it may not be mounted.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "comet-test"]).arg(dir.path()).output();
        mount.is_ok_and(|o| o.status.success()).then_some(Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

const FILES: [(&str, &str); 2] = [("mappedFileSizeCommitLog", "4194304"), ("mappedFileSizeConsumeQueue", "20000")];

#[test]
fn a_small_disk_fills_up_and_is_used_again() {
    let small = Small::mount();
    let memory = Faulty::healthy();
    let root = small.as_ref().map_or(PathBuf::new(), |s| s.path().join("store"));
    let ballast = small.as_ref().map(|s| s.path().join("ballast"));
    let start = |memory: &Faulty| match &small {
        Some(_) => TestBroker::start_at(root.clone(), &FILES),
        None => TestBroker::start_in_memory(memory.clone(), &FILES),
    };
    match &ballast {
        Some(path) => std::fs::write(path, vec![1; 30 << 20]).unwrap(),
        None => memory.set_capacity(Some(34 << 20)),
    }
    let broker = start(&memory);
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    let mut acked = Vec::new();
    let why = fill(&mut peer, &mut acked, 100_000);
    assert!(why.starts_with("the disk is full: "), "{why}");
    assert!(why.contains("commitlog is ") && why.contains(" bytes are free"), "{why}");
    assert!((50..350).contains(&acked.len()), "{} of 100,000 bytes fit", acked.len());
    assert_eq!(drain(&mut peer, "orders", 0, 0), acked);
    match &ballast {
        Some(path) => std::fs::remove_file(path).unwrap(),
        None => memory.set_capacity(Some(64 << 20)),
    }
    resumes(&mut peer, &mut acked);
    drop(peer);
    broker.stop();
    let broker = start(&memory);
    assert_eq!(drain(&mut broker.connect(), "orders", 0, 0), acked);
}
