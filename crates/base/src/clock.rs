//! The wall clock, as a value that is handed down, so that a test can decide what time it is.
//! Milliseconds since 1970, because that is what messages carry and files hold. It may jump when the operator sets
//! the machine's time: measure durations with `Instant`.
//! Java: `System.currentTimeMillis`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug, Default)]
pub enum Clock {
    #[default]
    System,
    /// Epoch milliseconds. Clones share the value: advancing one advances all.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub fn manual(epoch_ms: i64) -> Clock {
        Clock::Manual(Arc::new(AtomicI64::new(epoch_ms)))
    }

    /// Milliseconds since 1970-01-01 UTC; negative before.
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::System => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => millis(since),
                Err(before) => -millis(before.duration()),
            },
            Clock::Manual(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Moves a manual clock forward. The system's clock cannot be moved: calling this on it is a bug.
    pub fn advance(&self, by: Duration) {
        match self {
            Clock::System => panic!("only a manual clock can be advanced"),
            Clock::Manual(now) => {
                now.fetch_add(millis(by), Ordering::SeqCst);
            }
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_manual_clock_advance_together() {
        let clock = Clock::manual(1_000);
        let seen_elsewhere = clock.clone();
        clock.advance(Duration::from_millis(234));
        assert_eq!(seen_elsewhere.now_ms(), 1_234);
    }

    #[test]
    fn the_system_clock_counts_milliseconds_since_1970() {
        let year_2020 = 1_577_836_800_000;
        let year_2200 = 7_258_118_400_000;
        let now = Clock::System.now_ms();
        assert!(year_2020 < now && now < year_2200, "{now}");
    }
}
