//! GET_BROKER_RUNTIME_INFO (28): a table of figures under Java's keys, as far as they mean something here, and our counters
//! under `comet.`. Java: `AdminBrokerProcessor.prepareRuntimeInfo`, `StoreStatsService`.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use cometmq_store::disk::Space;
use cometmq_wire::body::KVTable;
use cometmq_wire::{json, version};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::broker::Broker;
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step};

/// Seconds of the three windows that Java prints rates for.
const WINDOWS_MS: [i64; 3] = [10_000, 60_000, 600_000];
const SAMPLES_MAX: usize = 130;

/// Totals over time, sampled each few seconds.
#[derive(Default)]
pub(crate) struct Rates(Mutex<VecDeque<(i64, [u64; 2])>>);

impl Rates {
    /// `totals`: messages put, messages got.
    pub(crate) fn sample(&self, now_ms: i64, totals: [u64; 2]) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back((now_ms, totals));
        while samples.len() > SAMPLES_MAX || samples.front().is_some_and(|(at, _)| now_ms - at > 2 * WINDOWS_MS[2]) {
            samples.pop_front();
        }
    }

    /// `10s 60s 600s` rates of one total, as Java writes them.
    fn text(&self, which: usize, now_ms: i64, total: u64) -> String {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = |window: i64| {
            let since = samples.iter().find(|(at, _)| now_ms - at <= window).or(samples.back());
            since
                .filter(|(at, _)| now_ms > *at)
                .map_or(0.0, |(at, totals)| total.saturating_sub(totals[which]) as f64 * 1000.0 / (now_ms - at) as f64)
        };
        WINDOWS_MS.map(|w| format!("{:.3}", rate(w))).join(" ")
    }
}

/// Totals at the beginnings of yesterday and of today, in local time: zeros before the first midnight of this process.
/// Java: `BrokerStats`.
#[derive(Default)]
pub(crate) struct Mornings(Mutex<(Option<Date>, [[u64; 2]; 2])>);

impl Mornings {
    pub(crate) fn sample(&self, now_ms: i64, totals: [u64; 2]) {
        // Beyond the year 9999 there are no days.
        let Ok(now) = Timestamp::from_millisecond(now_ms) else { return };
        self.begin(now.to_zoned_datetime(TimeZone::system()).date(), totals);
    }

    fn begin(&self, day: Date, totals: [u64; 2]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, [_, today]) = *seen;
        if last.is_some_and(|last| last != day) {
            seen.1 = [today, totals];
        }
        seen.0 = Some(day);
    }

    /// Of yesterday, of today.
    fn totals(&self) -> [[u64; 2]; 2] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl Broker {
    pub(crate) fn totals(&self) -> [u64; 2] {
        [self.store.stats().records.load(Ordering::Relaxed), self.pulled.load(Ordering::Relaxed)]
    }

    fn runtime_table(&self) -> BTreeMap<String, String> {
        let mut table = BTreeMap::new();
        let mut put = |key: &str, value: String| {
            table.insert(key.to_string(), value);
        };
        let now = self.clock.now_ms();
        let totals = self.totals();
        let (start, end) = (self.store.log_start(), self.store.written());
        put("brokerVersion", version::V5_5_0.to_string());
        put("brokerVersionDesc", version::name(version::V5_5_0));
        put("bootTimestamp", self.started_ms.to_string());
        put("startAcceptSendRequestTimeStamp", self.started_ms.to_string());
        put("brokerActive", "true".to_string());
        put("runtime", uptime(now - self.started_ms));
        put("putTps", self.rates.text(0, now, totals[0]));
        put("getTransferredTps", self.rates.text(1, now, totals[1]));
        put("getTransferedTps", self.rates.text(1, now, totals[1]));
        put("putMessageTimesTotal", totals[0].to_string());
        put("msgPutTotalTodayNow", totals[0].to_string());
        put("msgGetTotalTodayNow", totals[1].to_string());
        let [yesterday, today] = self.mornings.totals();
        put("msgPutTotalYesterdayMorning", yesterday[0].to_string());
        put("msgGetTotalYesterdayMorning", yesterday[1].to_string());
        put("msgPutTotalTodayMorning", today[0].to_string());
        put("msgGetTotalTodayMorning", today[1].to_string());
        put("earliestMessageTimeStamp", self.store.earliest_log_time().unwrap_or(-1).to_string());
        put("commitLogMinOffset", start.to_string());
        put("commitLogMaxOffset", end.to_string());
        put("dispatchBehindBytes", (end - self.store.dispatched().min(end)).to_string());
        put("dispatchMaxBuffer", "0".to_string());
        put("remainHowManyDataToFlush", format!("{} B", end - self.store.durable().min(end)));
        if let Ok([log, queues]) = self.store.spaces() {
            let ratio = |space: &Space| format!("{:?}", f64::from(space.used_percent()) / 100.0);
            put("commitLogDiskRatio", ratio(&log));
            put(&format!("commitLogDiskRatio_{}", self.store.log_dir().display()), ratio(&log));
            put("consumeQueueDiskRatio", ratio(&queues));
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            let capacity = format!("Total : {:.1} GiB, Free : {:.1} GiB.", gib(log.total), gib(log.free));
            put("commitLogDirCapacity", capacity);
        }
        // There are no thread pools: requests wait in socket buffers only.
        for pool in ["send", "pull", "litePull", "query", "ack"] {
            put(&format!("{pool}ThreadPoolQueueSize"), "0".to_string());
            put(&format!("{pool}ThreadPoolQueueHeadWaitTimeMills"), "0".to_string());
        }
        put("pageCacheLockTimeMills", "0".to_string());
        for (key, zero) in [
            ("timerReadBehind", "0"),
            ("timerOffsetBehind", "0"),
            ("timerCongestNum", "0"),
            ("timerEnqueueTps", "0.0"),
            ("timerDequeueTps", "0.0"),
        ] {
            put(key, zero.to_string());
        }
        if let Some(refusal) = self.store.write_refusal() {
            put("comet.writesRefused", refusal.to_string());
        }
        let (producers, consumers) = self.clients.counts();
        put("comet.producers", producers.to_string());
        put("comet.consumers", consumers.to_string());
        put("comet.parkedPolls", self.parked.load(Ordering::Relaxed).to_string());
        put("comet.topics", self.topics.len().to_string());
        put("comet.groups", self.groups.len().to_string());
        for (name, value) in self.store.stats().rows() {
            put(&format!("comet.store.{name}"), value.to_string());
        }
        let mut net: BTreeMap<&str, u64> = BTreeMap::new();
        for stats in self.shard_stats.get().into_iter().flatten() {
            for (name, value) in stats.rows() {
                *net.entry(name).or_default() += value;
            }
        }
        net.extend(self.memory.get().into_iter().flat_map(|memory| memory.rows()));
        for (name, value) in net {
            put(&format!("comet.net.{name}"), value.to_string());
        }
        table
    }
}

impl BrokerShard {
    pub(crate) fn runtime_info(self: &Rc<Self>, asker: &Asker) -> Result<Step, Reject> {
        let (broker, asker) = (self.broker.clone(), asker.clone());
        Ok(Step::Later(Box::pin(async move {
            // Asks the file system for its free space, which may block.
            let table = tokio::task::spawn_blocking(move || broker.runtime_table()).await;
            let table = table.map_err(|e| Reject::new(cometmq_wire::ResponseCode::SYSTEM_ERROR, e.to_string()))?;
            asker.body(&mut asker.conn.out(), &json::to_vec(&KVTable { table }));
            Ok(After::Answered)
        })))
    }
}

/// Java: `StoreStatsService.getFormatRuntime`.
fn uptime(ms: i64) -> String {
    let s = ms / 1000;
    format!("[ {} days, {} hours, {} minutes, {} seconds ]", s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mornings_are_those_of_yesterday_and_today() {
        let mornings = Mornings::default();
        let day = |day| jiff::civil::date(2026, 11, day);
        mornings.begin(day(29), [5, 3]);
        assert_eq!(mornings.totals(), [[0, 0], [0, 0]]);
        mornings.begin(day(30), [7, 4]);
        mornings.begin(day(30), [8, 5]);
        assert_eq!(mornings.totals(), [[0, 0], [7, 4]]);
        mornings.begin(day(1), [9, 9]);
        assert_eq!(mornings.totals(), [[7, 4], [9, 9]]);
    }

    #[test]
    fn rates_over_three_windows() {
        let rates = Rates::default();
        for i in 0..=60 {
            rates.sample(i * 10_000, [i as u64 * 100, 0]);
        }
        assert_eq!(rates.text(0, 600_000, 6000), "10.000 10.000 10.000");
        assert_eq!(rates.text(0, 601_000, 7000), "1000.000 29.412 11.675");
        assert_eq!(uptime(93_784_000), "[ 1 days, 2 hours, 3 minutes, 4 seconds ]");
    }
}
