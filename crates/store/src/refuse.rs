//! Refuse: a store whose data lies where nothing here reads it. Looked at before anything is created, locked or written, so a
//! store that is refused stays as it was, byte for byte.
//!
//! RocksDB holds   refused                                  only said
//! queues          `consumequeue_rocksdb/` with files
//! configuration   `config/{topics,subscriptionGroups,consumerOffsets,metadata,rdb}/` with files
//! timers, halves  (by key, in the broker)                  tables or a log with bytes in `rocksdbstore/`, `kvStore/`
//!
//! Java opens `rocksdbstore/` always: a default broker leaves an empty database there.
//! Java: `RocksDBConsumeQueueStore`, `RocksDBConfigManager`, `ConfigStorage`, `MessageRocksDBStorage`.

use std::path::Path;

use crate::Error;
use crate::disk::{Disk, Open};

const QUEUES: &str = "consumequeue_rocksdb";
const CONFIG: [&str; 5] = ["topics", "subscriptionGroups", "consumerOffsets", "metadata", "rdb"];
const OTHER: [&str; 2] = ["rocksdbstore", "kvStore"];

pub(crate) fn check(disk: &dyn Disk, root: &Path) -> Result<(), Error> {
    let has_files = |path: &Path| disk.list(path).is_ok_and(|list| !list.is_empty());
    let queues = root.join(QUEUES);
    if has_files(&queues) {
        let what = "the queues of this store are in RocksDB, which is not supported; nothing was touched. Move this folder away \
                    and start again with storeType=default: the queues are then built anew from the commit log";
        return Err(Error::Layout { path: queues, what: what.to_string() });
    }
    if let Some(path) = CONFIG.iter().map(|name| root.join("config").join(name)).find(|path| has_files(path)) {
        let what = "topics, groups or offsets of this store are in RocksDB, which is not supported; nothing was touched. Write \
                    them to JSON with `mqadmin rocksDBConfigToJson`, move this folder away, and start again with \
                    storeType=default and configManagerVersion=v1";
        return Err(Error::Layout { path, what: what.to_string() });
    }
    for path in OTHER.iter().map(|name| root.join(name)).filter(|path| has_data(disk, path)) {
        tracing::warn!(
            path = %path.display(),
            "RocksDB holds data here (timerRocksDBEnable, transRocksDBEnable, indexRocksDBEnable or popConsumerKVServiceEnable \
             was on); it is kept and not read"
        );
    }
    Ok(())
}

/// Whether a RocksDB folder holds more than an opened, empty database: tables, or a log that is not empty.
fn has_data(disk: &dyn Disk, dir: &Path) -> bool {
    let bytes = |name: &str| disk.open(&dir.join(name), Open::Read).and_then(|f| f.size()).unwrap_or(0);
    let is_data = |name: &str| name.ends_with(".sst") || (name.ends_with(".log") && bytes(name) > 0);
    disk.list(dir).is_ok_and(|list| list.iter().any(|e| !e.is_dir && is_data(&e.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Faulty;

    fn with_file(name: &str, bytes: &[u8]) -> Faulty {
        let disk = Faulty::healthy();
        let path = Path::new("/s").join(name);
        disk.create_dirs(path.parent().unwrap()).unwrap();
        disk.open(&path, Open::Create).unwrap().write_all_at(bytes, 0).unwrap();
        disk
    }

    #[test]
    fn what_a_default_java_broker_leaves_is_no_data() {
        for (name, bytes) in [("CURRENT", &b"MANIFEST-000005\n"[..]), ("000004.log", b""), ("LOCK", b"")] {
            let disk = with_file(&format!("rocksdbstore/{name}"), bytes);
            assert!(!has_data(&disk, Path::new("/s/rocksdbstore")), "{name}");
            assert!(check(&disk, Path::new("/s")).is_ok());
        }
        assert!(has_data(&with_file("kvStore/000004.log", b"x"), Path::new("/s/kvStore")));
        assert!(has_data(&with_file("kvStore/000007.sst", b""), Path::new("/s/kvStore")));
    }

    #[test]
    fn queues_and_configuration_in_rocksdb_are_refused_by_folder() {
        for name in ["consumequeue_rocksdb", "config/topics", "config/metadata", "config/rdb"] {
            let error =
                check(&with_file(&format!("{name}/CURRENT"), b"x"), Path::new("/s")).err().map(|e| e.to_string());
            assert!(error.as_ref().is_some_and(|e| e.starts_with(&format!("/s/{name}: "))), "{error:?}");
            let disk = Faulty::healthy();
            disk.create_dirs(&Path::new("/s").join(name)).unwrap();
            assert!(check(&disk, Path::new("/s")).is_ok(), "an empty {name}");
        }
    }
}
