//! The configuration values that handlers read, taken out of the text table once and swapped as a whole on a change.
//! Names in comments are Java's keys where they differ from the field's.

use std::time::Duration;

use cometmq_base::config::Config;
use cometmq_store::Limits;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) auto_create_topic_enable: bool,
    pub(crate) auto_create_subscription_group: bool,
    pub(crate) broker_permission: i32,
    pub(crate) enable_property_filter: bool,
    pub(crate) max_message_size: usize,
    pub(crate) long_polling_enable: bool,
    pub(crate) short_polling: Duration,
    pub(crate) sync_flush_timeout: Duration,
    pub(crate) flush_consumer_offset_interval: Duration,
    pub(crate) register_period: Duration,
    pub(crate) notify_consumer_ids_changed_enable: bool,
    /// `indexFileReadEnable`
    pub(crate) query_enable: bool,
    /// `maxMsgsNumBatch`: messages that one query answers at most; `defaultQueryMaxNum`: for a unique key.
    pub(crate) query_max: usize,
    pub(crate) unique_query_max: usize,
    /// `maxTransfer…`; `count` is the request's.
    pub(crate) limits: Limits,
    /// The value of the TRACE_ON property.
    pub(crate) trace_on: &'static str,
    pub(crate) region_id: String,
}

/// Bounds of `registerNameServerPeriod`, as Java clamps it.
const REGISTER_PERIOD_MS: std::ops::RangeInclusive<u64> = 10_000..=60_000;

impl Settings {
    pub(crate) fn of(config: &Config) -> Self {
        let count = |key| usize::try_from(config.int(key)).unwrap_or(0);
        let ms = |key| Duration::from_millis(u64::try_from(config.int(key)).unwrap_or(0));
        let period = u64::try_from(config.int("registerNameServerPeriod")).unwrap_or(0);
        Self {
            auto_create_topic_enable: config.bool("autoCreateTopicEnable"),
            auto_create_subscription_group: config.bool("autoCreateSubscriptionGroup"),
            enable_property_filter: config.bool("enablePropertyFilter"),
            broker_permission: config.int("brokerPermission"),
            max_message_size: count("maxMessageSize"),
            long_polling_enable: config.bool("longPollingEnable"),
            short_polling: Duration::from_millis(u64::try_from(config.long("shortPollingTimeMills")).unwrap_or(0)),
            sync_flush_timeout: ms("syncFlushTimeout"),
            flush_consumer_offset_interval: ms("flushConsumerOffsetInterval"),
            register_period: Duration::from_millis(
                period.clamp(*REGISTER_PERIOD_MS.start(), *REGISTER_PERIOD_MS.end()),
            ),
            notify_consumer_ids_changed_enable: config.bool("notifyConsumerIdsChangedEnable"),
            query_enable: config.bool("indexFileReadEnable"),
            query_max: count("maxMsgsNumBatch"),
            unique_query_max: count("defaultQueryMaxNum"),
            limits: Limits {
                count: 0,
                hot_count: count("maxTransferCountOnMessageInMemory"),
                hot_bytes: count("maxTransferBytesOnMessageInMemory"),
                cold_count: count("maxTransferCountOnMessageInDisk"),
                cold_bytes: count("maxTransferBytesOnMessageInDisk"),
                hot_window: memory_bytes() / 100 * config.int("accessMessageInMemoryMaxRatio").max(0) as u64,
            },
            trace_on: if config.bool("traceOn") { "true" } else { "false" },
            region_id: config.str("regionId").to_string(),
        }
    }
}

/// Physical memory of the machine. Java: `StoreUtil.TOTAL_PHYSICAL_MEMORY_SIZE`.
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit)
}
