//! A broker with nothing to do is ready at once, needs little memory and next to no processor time.
//! Method: the real process on an empty directory; its figures are those of /proc.

mod support;

use std::time::Duration;

use support::*;

/// Of a debug build on a busy machine; a release build takes 0.04 s.
const READY: Duration = Duration::from_secs(2);
const ANONYMOUS_MAX: u64 = 16 << 20;
/// Clock ticks of 10 ms in three seconds.
const TICKS_MAX: u64 = 5;

/// utime and stime of the process.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|f| f.parse::<u64>().unwrap()).sum()
}

#[test]
fn starts_fast_and_idles_small() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let comet = Comet::start(&data);
    assert!(comet.took < READY, "ready after {:?}", comet.took);
    // A stretch of time is what is measured here.
    let before = ticks(comet.pid());
    std::thread::sleep(Duration::from_secs(3));
    let spent = ticks(comet.pid()) - before;
    assert!(spent < TICKS_MAX, "{spent} ticks in three seconds of doing nothing");
    let anonymous = anonymous_memory(comet.pid());
    assert!(anonymous <= ANONYMOUS_MAX, "{} KiB of anonymous memory", anonymous >> 10);
    assert!(comet.terminate().success());
    // And again on what the first one left.
    let comet = Comet::start(&data);
    assert!(comet.took < READY, "ready again after {:?}", comet.took);
    assert!(comet.terminate().success());
}
