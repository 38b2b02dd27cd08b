//! How many messages a second each group takes from each topic: `consumeTps` of GET_CONSUME_STATS (208).
//!
//! Counted where a pull is answered, by an atomic under a shared lock; sampled each 10 s. The rate is that of the last
//! minute, up to now. A pair of topic and group that took nothing for so long is forgotten, so the table is as large as what
//! is being consumed.
//! Java: `BrokerStatsManager.tpsGroupGetNums`, `StatsItem`.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// The oldest is a minute old when the next one comes.
const SAMPLES: usize = 6;
/// Beyond it, pairs that are new are not counted.
const PAIRS_MAX: usize = 65_536;

#[derive(Default)]
pub(crate) struct Consumed(RwLock<Table>);

#[derive(Default)]
struct Table {
    /// Topic → group.
    pairs: HashMap<String, HashMap<String, Pair, RandomState>, RandomState>,
    len: usize,
    sampled: Option<Instant>,
}

struct Pair {
    messages: AtomicU64,
    /// When, and how many there were; the oldest first, never empty.
    samples: VecDeque<(Instant, u64)>,
}

impl Pair {
    fn rate(&self, now: Instant) -> f64 {
        let Some((since, before)) = self.samples.front() else { return 0.0 };
        // What has just begun counts as one sample old: a single pull is no rate.
        let elapsed = now.saturating_duration_since(*since).max(SAMPLE_EVERY);
        (self.messages.load(Ordering::Relaxed) - before) as f64 / elapsed.as_secs_f64()
    }
}

impl Consumed {
    /// A pull of `group` was answered with `messages` of `topic`.
    pub(crate) fn count(&self, topic: &str, group: &str, messages: u64) {
        {
            let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(pair) = table.pairs.get(topic).and_then(|groups| groups.get(group)) {
                pair.messages.fetch_add(messages, Ordering::Relaxed);
                return;
            }
        }
        self.insert(topic, group, messages, Instant::now());
    }

    fn insert(&self, topic: &str, group: &str, messages: u64, now: Instant) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Table { pairs, len, .. } = &mut *table;
        if let Some(pair) = pairs.get(topic).and_then(|groups| groups.get(group)) {
            // Another shard was faster.
            pair.messages.fetch_add(messages, Ordering::Relaxed);
        } else if *len < PAIRS_MAX {
            let pair = Pair { messages: AtomicU64::new(messages), samples: [(now, 0)].into() };
            pairs.entry(topic.to_string()).or_default().insert(group.to_string(), pair);
            *len += 1;
        }
    }

    /// Takes a sample if it is time to; called more often than that.
    pub(crate) fn sample(&self, now: Instant) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if table.sampled.is_some_and(|at| now.saturating_duration_since(at) < SAMPLE_EVERY) {
            return;
        }
        table.sampled = Some(now);
        let is_used = |pair: &mut Pair| {
            let messages = pair.messages.load(Ordering::Relaxed);
            pair.samples.push_back((now, messages));
            if pair.samples.len() > SAMPLES {
                pair.samples.pop_front();
            }
            pair.samples.len() < SAMPLES || pair.samples.front().is_some_and(|(_, before)| *before < messages)
        };
        table.pairs.values_mut().for_each(|groups| groups.retain(|_, pair| is_used(pair)));
        table.pairs.retain(|_, groups| !groups.is_empty());
        table.len = table.pairs.values().map(HashMap::len).sum();
    }

    /// Messages a second over the last minute.
    pub(crate) fn rate(&self, topic: &str, group: &str, now: Instant) -> f64 {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.pairs.get(topic).and_then(|groups| groups.get(group)).map_or(0.0, |pair| pair.rate(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len(consumed: &Consumed) -> usize {
        let table = consumed.0.read().unwrap();
        assert_eq!(table.len, table.pairs.values().map(HashMap::len).sum::<usize>());
        table.len
    }

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let (consumed, began) = (Consumed::default(), Instant::now());
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let rate = |seconds| consumed.rate("t", "g", at(seconds));
        assert_eq!(rate(0), 0.0);
        consumed.insert("t", "g", 0, began);
        consumed.insert("t", "other", 7, began);
        consumed.count("t", "g", 50);
        assert_eq!([rate(0), rate(10), rate(20)], [5.0, 5.0, 2.5]);
        // 100 a second for two minutes, and nothing from then on.
        for second in 1..=120 {
            consumed.count("t", "g", 100);
            consumed.sample(at(second));
        }
        // Samples are those of seconds 1, 11 … 111; the oldest kept is that of 61.
        assert_eq!(rate(120), 100.0);
        assert_eq!(rate(121), 5900.0 / 60.0);
        (121..=161).for_each(|second| consumed.sample(at(second)));
        assert_eq!(rate(165), 900.0 / 54.0);
        assert_eq!(len(&consumed), 1, "the other group took nothing for a minute");
        (162..=171).for_each(|second| consumed.sample(at(second)));
        assert_eq!((rate(171), len(&consumed)), (0.0, 0));
    }

    #[test]
    fn beyond_the_limit_nothing_new_is_counted() {
        let (consumed, now) = (Consumed::default(), Instant::now());
        for n in 0..=PAIRS_MAX {
            consumed.insert("t", &n.to_string(), 10, now);
        }
        assert_eq!(len(&consumed), PAIRS_MAX);
        assert_eq!((consumed.rate("t", "0", now), consumed.rate("t", "65536", now)), (1.0, 0.0));
        consumed.count("t", "0", 10);
        assert_eq!(consumed.rate("t", "0", now), 2.0);
    }
}
