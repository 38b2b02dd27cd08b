//! What the tests of the binary share: `comet` as a process of its own, with its ready line, its log and its end, and the
//! peers of the broker's tests.

#![allow(dead_code)] // Each test uses its part.

#[path = "../../../broker/tests/support/peer.rs"]
pub mod peer;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub use peer::*;

pub const COMET: &str = env!("CARGO_BIN_EXE_comet");

/// `comet serve`, ready. Killed when it is dropped.
pub struct Comet {
    child: Child,
    pub namesrv: SocketAddr,
    pub broker: SocketAddr,
    /// From the start of the process to its ready line.
    pub took: Duration,
    log: PathBuf,
}

impl Comet {
    /// On ports that are free.
    pub fn start(data: &Path) -> Self {
        Self::start_with(data, &["--namesrv-port", "0", "--broker-port", "0"])
    }

    pub fn start_with(data: &Path, args: &[&str]) -> Self {
        let log = data.with_extension("log");
        let stderr = std::fs::File::create(&log).unwrap();
        let began = Instant::now();
        let mut child = serve(data, args).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let line = lines.recv_timeout(LONG);
        let took = began.elapsed();
        let Some(parts) = line.as_ref().ok().and_then(|line| line.strip_prefix("ready ")) else {
            let _ = child.kill();
            panic!("no ready line but {line:?}; its log:\n{}", std::fs::read_to_string(&log).unwrap_or_default());
        };
        let addr = |name: &str| {
            let part = parts.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            part.and_then(|addr| addr.parse().ok()).unwrap_or_else(|| panic!("no {name} in '{parts}'"))
        };
        Self { namesrv: addr("namesrv"), broker: addr("broker"), child, took, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how it ends.
    pub fn terminate(mut self) -> ExitStatus {
        signal(&self.child, Signal::TERM);
        wait(&mut self.child, "serve")
    }
}

impl Drop for Comet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `comet serve` with its data in `data`, for this machine only.
pub fn serve(data: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(COMET);
    command.args(["serve", "--host", "127.0.0.1", "--advertise", "127.0.0.1", "--data"]).arg(data).args(args);
    command.env_remove("RUST_LOG").env_remove("NAMESRV_ADDR");
    command
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for the end of a process; kills it when that does not come.
pub fn wait(child: &mut Child, what: &str) -> ExitStatus {
    let end = Instant::now() + LONG;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            panic!("comet {what} did not end within {LONG:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The lines of a stream as they come.
pub fn lines_of(stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (tx, rx) = mpsc::channel();
    std::thread::spawn(move || BufReader::new(stream).lines().map_while(Result::ok).all(|line| tx.send(line).is_ok()));
    rx
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn lines(&self) -> Vec<&str> {
        self.out.lines().collect()
    }
}

/// Runs `comet` with these arguments and this input to its end.
pub fn comet(args: &[&str], input: &str) -> Ended {
    let mut command = Command::new(COMET);
    run(command.args(args).env_remove("RUST_LOG").env_remove("NAMESRV_ADDR"), input)
}

pub fn run(command: &mut Command, input: &str) -> Ended {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let read = |stream: Option<Box<dyn Read + Send>>| {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        })
    };
    let out = read(child.stdout.take().map(|s| Box::new(s) as _));
    let err = read(child.stderr.take().map(|s| Box::new(s) as _));
    // A command that does not read its input closes it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let status = wait(&mut child, "command");
    Ended { code: status.code().unwrap_or(-1), out: out.join().unwrap(), err: err.join().unwrap() }
}

/// A port that is free together with the one two below it.
pub fn free_port() -> u16 {
    for _ in 0..100 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if TcpListener::bind(("127.0.0.1", port - 2)).is_ok() {
            return port;
        }
    }
    panic!("no free pair of ports");
}

/// Bytes of memory of a process that are not a file's.
pub fn anonymous_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// The time that 99 of 100 sends to queue 0 of `orders` stay under, in the best of some rounds: others on this machine only ever add to it.
pub fn slowest_but_one_percent(peer: &mut Peer) -> Duration {
    const SENDS: usize = 2_000;
    const ROUNDS: usize = 5;
    let mut round = || {
        let mut times = Vec::with_capacity(SENDS);
        for _ in 0..SENDS {
            let began = Instant::now();
            peer.ok(&send("orders", 0, "x"));
            times.push(began.elapsed());
        }
        times.sort_unstable();
        times[SENDS * 99 / 100]
    };
    (0..ROUNDS).map(|_| round()).min().unwrap()
}
