//! What the tests of `comet admin` share: `comet serve` as a process of its own, and commands against it as others, whose
//! output and exit code are looked at.

#![allow(dead_code)] // Each test uses its part.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// `comet serve` on free ports; killed when dropped.
pub struct Server {
    process: Child,
    pub namesrv: String,
    pub broker: String,
    _data: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn comet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comet"));
    command.env_remove("NAMESRV_ADDR").env("TZ", "UTC");
    command
}

impl Server {
    pub fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut process = comet()
            .args(["serve", "--namesrv-port", "0", "--broker-port", "0", "--host", "127.0.0.1"])
            .args(["--set", "brokerName=broker-a", "--data"])
            .arg(data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ready = ready.find(|line| line.starts_with("ready ")).expect("the server becomes ready");
        let part = |name: &str| ready.split(' ').find_map(|p| p.strip_prefix(name)).unwrap().to_string();
        Self { process, namesrv: part("namesrv="), broker: part("broker="), _data: data }
    }

    pub fn run(&self, words: &[&str]) -> Output {
        comet().args(words).env("NAMESRV_ADDR", &self.namesrv).output().unwrap()
    }

    /// Runs `comet admin LINE`, expects an exit code, and returns what it printed.
    pub fn admin(&self, code: i32, line: &str) -> String {
        let words: Vec<&str> = ["admin"].into_iter().chain(line.split(' ')).collect();
        let output = self.run(&words);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "admin {line}\nstdout: {out}\nstderr: {err}");
        if code == 1 { err } else { out }
    }

    pub fn json(&self, code: i32, line: &str) -> Value {
        let out = self.admin(code, &format!("{line} --json"));
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("admin {line} --json: {e}\n{out}"))
    }

    /// A topic with messages that a group has consumed.
    pub fn with_progress(&self) {
        self.admin(0, "updateTopic -c DefaultCluster -t orders -r 2 -w 2");
        assert!(self.run(&["produce", "orders", "--count", "10", "--size", "8"]).status.success());
        let consumed = self.run(&["consume", "orders", "--group", "billing", "--from", "first", "--max", "10"]);
        assert!(consumed.status.success(), "{}", text(&consumed.stderr));
    }
}

/// How a process ends by itself; killed, and a panic, if it does not.
pub fn end_of(mut process: Child) -> ExitStatus {
    let pid = rustix::process::Pid::from_child(&process);
    let (tx, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || tx.send(process.wait()));
    let Ok(status) = ended.recv_timeout(Duration::from_secs(20)) else {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        panic!("process {pid:?} goes on");
    };
    status.unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn assert_has_line(out: &str, line: &str) {
    assert!(out.lines().any(|l| l == line), "no line {line:?} in:\n{out}");
}
