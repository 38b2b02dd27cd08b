//! How far the reading of a log is, on standard error, if that is a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::human;

const EVERY: Duration = Duration::from_millis(200);
const WIDTH: usize = 30;

pub struct Progress {
    began: Instant,
    last: Option<Instant>,
    shown: bool,
}

impl Progress {
    pub fn start() -> Self {
        Self { began: Instant::now(), last: None, shown: std::io::stderr().is_terminal() }
    }

    /// `done` of at most `total` bytes are read.
    pub fn at(&mut self, done: u64, total: u64) {
        if !self.shown || self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        eprint!("\r{}", line(done, total, self.began.elapsed()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.last.is_some() {
            eprint!("\r{:width$}\r", "", width = WIDTH + 60);
        }
    }
}

fn line(done: u64, total: u64, took: Duration) -> String {
    let total = total.max(1);
    let full = (done.min(total) as u128 * WIDTH as u128 / u128::from(total)) as usize;
    let rate = done as f64 / took.as_secs_f64().max(0.001);
    let left = total.saturating_sub(done) as f64 / rate.max(1.0);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(WIDTH - full));
    format!("[{bar}] {} of {}, {}/s, {left:.0} s left  ", human(done), human(total), human(rate as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_with_figures() {
        assert_eq!(
            line(1 << 30, 4 << 30, Duration::from_secs(2)),
            "[#######.......................] 1.0 GiB of 4.0 GiB, 512.0 MiB/s, 6 s left  "
        );
        assert_eq!(
            line(0, 0, Duration::ZERO),
            "[..............................] 0 bytes of 1 bytes, 0 bytes/s, 1 s left  "
        );
    }
}
