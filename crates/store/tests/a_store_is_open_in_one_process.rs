//! The store is locked as Java locks it: byte 0 of `lock`, a POSIX record lock. A second process is refused, be it ours
//! (this test binary started again) or Java's (python's `lockf` asks the kernel for the same), and so is a second store in
//! one process. What was refused has changed nothing, and when the first one stops the next gets in.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use cometmq_store::Error;
use cometmq_store::FlushMode::Async;
use support::{drain, open_at, send};

const ROOT_OF_HELPER: &str = "COMETMQ_TEST_OPEN_THIS_STORE";

/// Not a test of its own: what the second process runs.
#[test]
fn helper() {
    let Ok(root) = std::env::var(ROOT_OF_HELPER) else { return };
    match open_at(root, Async) {
        Ok(store) => {
            send(&store, &store.queue("t", 0).unwrap(), &["from the helper"]).unwrap();
            store.close().unwrap();
            eprintln!("opened");
        }
        Err(error) => eprintln!("refused: {error}"),
    }
}

/// What a second process says to opening `root`.
fn second_process(root: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let out = command.args(["--exact", "helper", "--nocapture"]).env(ROOT_OF_HELPER, root).output().unwrap();
    let text = String::from_utf8(out.stderr).unwrap();
    let said = text.lines().find(|l| l.starts_with("refused: ") || *l == "opened");
    said.unwrap_or_else(|| panic!("{text}")).to_string()
}

#[test]
fn another_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_at(dir.path(), Async).unwrap();
    let queue = store.queue("t", 0).unwrap();
    send(&store, &queue, &["a"]).unwrap();
    let lock = dir.path().join("lock");
    let refused = format!("refused: {} is in use by another process (its byte 0 is locked)", lock.display());
    assert_eq!(second_process(dir.path()), refused);
    // In the same process as well, and trying it does not give the lock up.
    assert!(matches!(open_at(dir.path(), Async), Err(Error::Locked { path }) if path == lock));
    assert_eq!(second_process(dir.path()), refused);
    assert!(dir.path().join("abort").exists());

    send(&store, &queue, &["b"]).unwrap();
    store.close().unwrap();
    assert_eq!(second_process(dir.path()), "opened");
    drop(store);
    let store = open_at(dir.path(), Async).unwrap();
    assert_eq!(drain(&store, "t", 0), [&b"a"[..], b"b", b"from the helper"]);
    // A crash gives it up, too.
    drop(store);
    assert_eq!(second_process(dir.path()), "opened");
}

#[test]
fn java_and_we_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("lock");
    // As `FileChannel.tryLock(0, 1, false)`; holds it until its input ends.
    let python = r#"
import fcntl, sys
f = open(sys.argv[1], "r+b")
try:
    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    print("locked", flush=True)
except OSError:
    print("refused", flush=True)
sys.stdin.read()
"#;
    let java = || {
        let mut child = Command::new("python3")
            .args(["-c", python])
            .arg(&lock)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().to_string())
    };

    std::fs::File::create(&lock).unwrap().write_all(b"lock").unwrap();
    let (mut held, said) = java();
    assert_eq!(said, "locked");
    assert!(matches!(open_at(dir.path(), Async), Err(Error::Locked { .. })));
    assert!(!dir.path().join("abort").exists(), "nothing was touched");
    drop(held.stdin.take());
    held.wait().unwrap();

    let store = open_at(dir.path(), Async).unwrap();
    let (mut refused, said) = java();
    assert_eq!(said, "refused");
    drop(refused.stdin.take());
    refused.wait().unwrap();
    store.close().unwrap();
}
