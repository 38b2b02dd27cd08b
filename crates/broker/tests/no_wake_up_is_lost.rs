//! A pull that is about to wait while the message that it waits for arrives gets that message at once.
//! Method: 10,000 rounds. In each, a pull on a connection of one shard and a send on a connection of the other are released
//! together, one of them held back by up to 40 µs, a bit more each round. In every second round the pull wants a tag, and a
//! message of another tag goes first, which wakes and re-arms a waiting pull just before the one that matters (or is answered
//! at once, "retry immediately", when it comes before the pull). A pull that misses its wake-up is answered by its deadline
//! only, five seconds later.

mod support;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use support::*;

const RETRY_IMMEDIATELY: i32 = 20;
const ROUNDS: i64 = 10_000;
const SUSPEND: Duration = Duration::from_secs(5);
/// Between the answer of the send and the one of the pull.
const PROMPT: Duration = Duration::from_millis(50);
/// Rounds in which a busy machine may take longer; a lost wake-up takes `SUSPEND`.
const STALLS_MAX: usize = 10;

/// Releases one side later than the other.
fn hold_back(by: Duration) {
    let end = Instant::now() + by;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Both sides leave it at about the same time. A side that is gone does not hold up the other for ever.
#[derive(Default)]
struct Meeting(AtomicI64);

impl Meeting {
    fn wait(&self, round: i64) {
        self.0.fetch_add(1, Ordering::SeqCst);
        let end = Instant::now() + LONG;
        while self.0.load(Ordering::SeqCst) < 2 * (round + 1) {
            assert!(Instant::now() < end, "the other side is gone in round {round}");
            std::thread::yield_now();
        }
    }
}

fn has_tag(round: i64) -> bool {
    round % 2 == 1
}

/// Queue offset of the first message of a round: one message in even rounds, two in odd ones.
fn first_offset(round: i64) -> i64 {
    round + round / 2
}

/// How long to hold back the sender (positive) or the puller (negative), µs.
fn lead(round: i64) -> i64 {
    round % 81 - 40
}

#[test]
fn no_wake_up_is_lost() {
    let broker = TestBroker::start(&[]);
    let (mut puller, mut sender) = (broker.connect(), broker.connect());
    sender.ok(&create_topic("races", 1, 6));
    let start = Meeting::default();
    let answered: Vec<Instant> = std::thread::scope(|threads| {
        let pulls = threads.spawn(|| {
            let one_round = |round: i64| {
                let tag = if has_tag(round) { "wanted" } else { "*" };
                let ask = |offset| parked("races", 0, offset, tag, SUSPEND);
                start.wait(round);
                hold_back(Duration::from_micros((-lead(round)).max(0) as u64));
                let mut got = puller.ask(&ask(first_offset(round)));
                if has_tag(round) && got.code == RETRY_IMMEDIATELY {
                    assert_eq!(got.num("nextBeginOffset"), first_offset(round) + 1, "round {round}");
                    got = puller.ask(&ask(first_offset(round) + 1));
                }
                let at = Instant::now();
                assert_eq!((got.code, got.remark.as_str()), (0, "FOUND"), "round {round}: the wake-up was lost");
                let messages = got.messages();
                let expected = first_offset(round) + i64::from(has_tag(round));
                assert_eq!(messages, [(expected, b"wanted".to_vec())], "round {round}");
                (round, at)
            };
            (0..ROUNDS).map(one_round).map(|(_, at)| at).collect()
        });
        let mut sent = Vec::new();
        for round in 0..ROUNDS {
            if pulls.is_finished() {
                break;
            }
            let other = send_with("races", 0, "other", "TAGS", "other");
            let wanted = send_with("races", 0, "wanted", "TAGS", "wanted");
            start.wait(round);
            hold_back(Duration::from_micros(lead(round).max(0) as u64));
            if has_tag(round) {
                sender.ok(&other);
            }
            sender.ok(&wanted);
            sent.push(Instant::now());
        }
        let answered: Vec<Instant> = pulls.join().unwrap();
        let late = answered.iter().zip(&sent).map(|(pulled, sent)| pulled.saturating_duration_since(*sent));
        let late: Vec<Duration> = late.filter(|by| *by > PROMPT).collect();
        assert!(late.len() <= STALLS_MAX && late.iter().all(|by| *by < SUSPEND / 5), "late pulls: {late:?}");
        answered
    });
    assert_eq!(answered.len(), ROUNDS as usize);
    broker.stop();
}
