//! KV configuration: namespace → key → value, set by admins; `ORDER_TOPIC_CONFIG` is what clients meet of it.
//!
//! Disk     `kvConfig.json`, `{"configTable":{"ORDER_TOPIC_CONFIG":{"T1":"b1:4;b2:4"}}}`, replaced as a whole at each change.
//! Threads  Readers take the current table without a lock. Writers hold the lock over their disk write and publish the
//!          table after it: what a reader sees is on disk. (Java publishes first and only logs a failed write.)
//! Limit    `BYTES_MAX` of names and values, so that a listing fits into a frame.
//! Java     `KVConfigManager`, `KVConfigSerializeWrapper`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use cometmq_wire::ResponseCode;
use cometmq_wire::body::KVTable;
use cometmq_wire::json;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::answer::Reject;
use crate::files;

/// Topics whose queues must not change: topic → `broker:queues;broker:queues`.
pub(crate) const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";
const BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KvFile {
    config_table: BTreeMap<String, BTreeMap<String, String>>,
}

impl KvFile {
    fn bytes(&self) -> usize {
        let entries = |(name, table): (&String, &BTreeMap<String, String>)| {
            name.len() + table.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
        };
        self.config_table.iter().map(entries).sum()
    }
}

pub(crate) struct KvConfig {
    path: PathBuf,
    current: ArcSwap<KvFile>,
    writing: Mutex<()>,
}

impl KvConfig {
    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        let file = match files::read(&path)?.filter(|bytes| !bytes.is_empty()) {
            Some(bytes) => json::from_slice(&bytes).map_err(|source| Error::KvConfig { path: path.clone(), source })?,
            None => KvFile::default(),
        };
        Ok(Self { path, current: ArcSwap::from_pointee(file), writing: Mutex::default() })
    }

    /// Blocks on the disk.
    pub(crate) fn put(&self, namespace: String, key: String, value: String) -> Result<(), Reject> {
        tracing::info!(namespace, key, value, "KV config set");
        self.change(|file| {
            file.config_table.entry(namespace).or_default().insert(key, value);
        })
    }

    /// Blocks on the disk. The namespace stays, as in Java.
    pub(crate) fn delete(&self, namespace: &str, key: &str) -> Result<(), Reject> {
        tracing::info!(namespace, key, "KV config deleted");
        self.change(|file| {
            file.config_table.get_mut(namespace).map(|table| table.remove(key));
        })
    }

    pub(crate) fn value(&self, namespace: &str, key: &str) -> Option<String> {
        self.current.load().config_table.get(namespace)?.get(key).cloned()
    }

    pub(crate) fn namespace(&self, namespace: &str) -> Option<KVTable> {
        let table = self.current.load().config_table.get(namespace)?.clone();
        Some(KVTable { table })
    }

    fn change(&self, change: impl FnOnce(&mut KvFile)) -> Result<(), Reject> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = KvFile::clone(&self.current.load());
        change(&mut next);
        if next.bytes() > BYTES_MAX {
            let remark = format!("the KV config would exceed {BYTES_MAX} bytes");
            return Err(Reject::new(ResponseCode::INVALID_PARAMETER, remark));
        }
        files::replace(&self.path, &json::to_fastjson(&next))?;
        self.current.store(Arc::new(next));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_javas() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("namesrv/kvConfig.json");
        let kv = KvConfig::open(path.clone()).unwrap();
        kv.put(ORDER_TOPIC_CONFIG.into(), "T1".into(), "b1:4;b2:4".into()).unwrap();
        kv.put("n".into(), "7".into(), "x".into()).unwrap();
        kv.delete("n", "7").unwrap();
        kv.delete("never", "7").unwrap();
        let file = r#"{"configTable":{"ORDER_TOPIC_CONFIG":{"T1":"b1:4;b2:4"},"n":{}}}"#;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), file);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing temporary is left");
        let kv = KvConfig::open(path).unwrap();
        assert_eq!(kv.value(ORDER_TOPIC_CONFIG, "T1").as_deref(), Some("b1:4;b2:4"));
        assert!(kv.namespace("n").is_some_and(|table| table.table.is_empty()));
        assert!(kv.namespace("never").is_none());
    }

    #[test]
    fn what_cannot_be_stored_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kvConfig.json");
        let kv = KvConfig::open(path.clone()).unwrap();
        kv.put("n".into(), "a".into(), "1".into()).unwrap();
        let too_long = kv.put("n".into(), "b".into(), "x".repeat(BYTES_MAX)).unwrap_err();
        assert_eq!(too_long.code, ResponseCode::INVALID_PARAMETER);
        std::fs::create_dir(path.with_extension("json.tmp")).unwrap();
        let failed = kv.put("n".into(), "a".into(), "2".into()).unwrap_err();
        assert_eq!(failed.code, ResponseCode::SYSTEM_ERROR);
        assert_eq!(kv.value("n", "a").as_deref(), Some("1"));
        assert_eq!(KvConfig::open(path).unwrap().value("n", "a").as_deref(), Some("1"));
    }

    #[test]
    fn a_damaged_file_is_named_and_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kvConfig.json");
        std::fs::write(&path, "{\"configTable\":").unwrap();
        let error = KvConfig::open(path.clone()).err().unwrap().to_string();
        assert!(error.starts_with(&format!("{}: body: ", path.display())), "{error}");
    }
}
