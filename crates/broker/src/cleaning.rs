//! Old data: when it goes, and CLEAN_EXPIRED_CONSUMEQUEUE (306), CLEAN_UNUSED_TOPIC (316), DELETE_EXPIRED_COMMITLOG (329).
//! Java: `AdminBrokerProcessor`, `MessageStoreConfig`.

use std::rc::Rc;
use std::time::Duration;

use cometmq_base::config::Config;
use cometmq_store::Retention;
use cometmq_wire::names;

use crate::broker::{Broker, OpenError};
use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step, blocking};

/// The keys of retention and of disk space. Ratios are held within Java's bounds; hours that are none are refused.
pub(crate) fn retention(config: &Config) -> Result<Retention, OpenError> {
    let number = |key| u32::try_from(config.int(key)).unwrap_or(0);
    let ms = |key| Duration::from_millis(number(key).into());
    let hour = |part: &str| part.trim().parse().ok().filter(|hour| *hour < 24);
    let hours: Option<Vec<u32>> = config.str("deleteWhen").split(';').filter(|p| !p.is_empty()).map(hour).collect();
    Ok(Retention {
        reserved: Duration::from_secs(u64::from(number("fileReservedTime")) * 3600),
        hours: hours.ok_or_else(|| OpenError::config(config, "deleteWhen", "expected hours from 0 to 23, by ;"))?,
        batch_max: number("deleteFileBatchMax") as usize,
        pause: ms("deleteCommitLogFilesInterval"),
        queue_pause: ms("deleteConsumeQueueFilesInterval"),
        used_max: number("diskMaxUsedSpaceRatio").clamp(10, 95),
        used_forcibly: number("diskSpaceCleanForciblyRatio").clamp(30, 85),
        forcibly: config.bool("cleanFileForciblyEnable"),
        used_full: number("diskSpaceWarningLevelRatio").clamp(35, 90),
        free_min: u64::try_from(config.long("diskFreeBytesMin")).unwrap_or(0),
        interval: ms("cleanResourceInterval"),
        ..Retention::default()
    })
}

impl BrokerShard {
    pub(crate) fn delete_expired_log(&self, asker: &Asker, out: &mut Vec<u8>) -> Result<Step, Reject> {
        tracing::info!(peer = %asker.conn.peer(), "told to delete expired files of the commit log");
        self.broker.store.delete_expired();
        Ok(asker.success(out))
    }

    pub(crate) fn clean_expired_queues(self: &Rc<Self>, asker: &Asker) -> Result<Step, Reject> {
        tracing::info!(peer = %asker.conn.peer(), "told to clean consume queues without messages");
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            let clean = move || broker.store.clean_expired_queues(|topic, id| broker.has_queue(topic, id));
            let removed = blocking(clean).await?;
            tracing::info!(removed, "consume queues without messages are cleaned");
            Ok(After::Success)
        })))
    }

    pub(crate) fn clean_unused_topics(self: &Rc<Self>, asker: &Asker) -> Result<Step, Reject> {
        tracing::info!(peer = %asker.conn.peer(), "told to clean topics that are not configured");
        let broker = self.broker.clone();
        Ok(Step::Later(Box::pin(async move {
            blocking(move || broker.clean_unused_topics()).await?;
            Ok(After::Success)
        })))
    }
}

impl Broker {
    /// Whether a queue may get messages. (Java cleans such queues, too: their offsets then begin at 0 again, and groups that
    /// had committed higher ones miss what comes.)
    fn has_queue(&self, topic: &str, id: i32) -> bool {
        self.topics.is_system(topic) || self.topics.find(topic).is_some_and(|t| id < t.queue_count())
    }

    fn clean_unused_topics(&self) -> Result<(), Reject> {
        let is_used =
            |topic: &str| self.topics.find(topic).is_some() || self.topics.is_system(topic) || names::is_lmq(topic);
        for topic in self.store.queue_topics()? {
            if self.store.delete_topic_unless(&topic, &|| is_used(&topic))? {
                tracing::info!(topic, "queues of a topic that is not configured are deleted");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cometmq_base::config::Role;

    use super::*;

    fn of(set: &[(&str, &str)]) -> Result<Retention, String> {
        let mut config = Config::new(Role::Broker);
        for (key, value) in set {
            config.set(key, value).unwrap();
        }
        retention(&config).map_err(|e| e.to_string())
    }

    #[test]
    fn the_defaults_are_java_s() {
        let (ours, java) = (of(&[]).unwrap(), Retention::default());
        assert_eq!(format!("{ours:?}"), format!("{java:?}"));
        assert_eq!((ours.reserved.as_secs(), ours.hours, ours.batch_max), (259_200, vec![4], 10));
        assert_eq!((ours.used_max, ours.used_forcibly, ours.used_full), (75, 85, 90));
    }

    #[test]
    fn hours_are_a_list_and_ratios_stay_in_java_s_bounds() {
        assert_eq!(of(&[("deleteWhen", "04;05;23")]).unwrap().hours, [4, 5, 23]);
        for wrong in ["24", "4,5", "-1", "four"] {
            let error = of(&[("deleteWhen", wrong)]).unwrap_err();
            assert_eq!(error, format!("deleteWhen={wrong}: expected hours from 0 to 23, by ;"));
        }
        let keys = ["diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio", "diskSpaceWarningLevelRatio"];
        for (value, bounds) in [("99", (95, 85, 90)), ("1", (10, 30, 35))] {
            let r = of(&keys.map(|key| (key, value))).unwrap();
            assert_eq!((r.used_max, r.used_forcibly, r.used_full), bounds);
        }
    }
}
