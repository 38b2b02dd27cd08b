//! What lies where it should not: a stray file in a folder of Java's can stop a Java broker from starting.

use std::path::{Path, PathBuf};

use super::{Finding, Findings, Inspect, Severity};
use crate::Error;
use crate::error::IoContext;
use crate::index;
use crate::log::parse_file_name;
use crate::retire::Deleted;

const STRAY: &str = "move it away (repair moves it to comet/): a broker may not start with it";

impl Inspect {
    pub(super) fn check_layout(&self, findings: &mut Findings) -> Result<(), Error> {
        for path in self.strays()? {
            let file = self.name(&path);
            let what = "a file or folder that is none of a store".to_string();
            findings.add(Finding { severity: Severity::Error, file, offset: None, what, advice: STRAY });
        }
        for file in self.odd_queue_files()? {
            findings.add(Finding {
                severity: Severity::Error,
                file,
                offset: None,
                what: format!(
                    "a queue file that has not {0} bytes or does not start at a multiple of that",
                    self.files.file_bytes
                ),
                advice: "repair sets it aside in comet/ and makes its entries again from the log",
            });
        }
        if let Some(line) = Deleted::bad_line(self.disk.as_ref(), &self.options.own_dir())? {
            findings.add(Finding {
                severity: Severity::Error,
                file: PathBuf::from("comet/deleted"),
                offset: None,
                what: format!("line {line} is no log offset and topic"),
                advice: "delete that line: brokers step over it, and the topic's old messages may come back",
            });
        }
        if let Some(topics) = self.names(&self.options.root.join("batchconsumequeue"))?.first() {
            findings.add(Finding {
                severity: Severity::Warn,
                file: PathBuf::from("batchconsumequeue"),
                offset: None,
                what: format!("batch queues, of {} and others, are not looked at", topics.0),
                advice: "nothing: they are kept as Java left them",
            });
        }
        Ok(())
    }

    /// Queue files of another length than most, or with an odd name, below the root.
    pub fn odd_queue_files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut odd = Vec::new();
        self.files.each_file(|_, path, bytes| {
            odd.extend(self.files.is_odd(path, bytes).then(|| self.name(path)));
            Ok(())
        })?;
        Ok(odd)
    }

    /// Files and folders in those of queues and of the index that have no place there.
    pub fn strays(&self) -> Result<Vec<PathBuf>, Error> {
        let mut strays = Vec::new();
        let index = self.options.root.join("index");
        let in_index = self.names(&index)?.into_iter();
        strays.extend(
            in_index.filter(|(name, is_dir)| *is_dir || !index::is_name(name)).map(|(name, _)| index.join(name)),
        );
        for (topic, is_dir) in self.names(self.files.dir())? {
            let topic = self.files.dir().join(topic);
            if !is_dir {
                strays.push(topic);
                continue;
            }
            for (id, is_dir) in self.names(&topic)? {
                let queue = topic.join(&id);
                if !is_dir || id.parse::<i32>().is_err() {
                    strays.push(queue);
                    continue;
                }
                let files = self.names(&queue)?.into_iter();
                let is_stray = |(name, is_dir): &(String, bool)| *is_dir || parse_file_name(name).is_none();
                strays.extend(files.filter(is_stray).map(|(name, _)| queue.join(name)));
            }
        }
        Ok(strays)
    }

    /// The index files, below the root.
    pub fn index_files(&self) -> Result<Vec<PathBuf>, Error> {
        let dir = Path::new("index");
        let names = self.names(&self.options.root.join(dir))?.into_iter();
        Ok(names.filter(|(name, is_dir)| !is_dir && index::is_name(name)).map(|(name, _)| dir.join(name)).collect())
    }

    /// How many slots and items index files have; `None` = there are none.
    pub fn index_geometry(&self) -> Result<Option<(u32, u32)>, Error> {
        let dir = self.options.root.join("index");
        let names: Vec<String> =
            self.names(&dir)?.into_iter().map(|(name, _)| name).filter(|n| index::is_name(n)).collect();
        let geometry = index::geometry(self.disk.as_ref(), &dir, &names, &self.options)?;
        Ok((!names.is_empty()).then_some((geometry.slots, geometry.items)))
    }

    fn names(&self, dir: &Path) -> Result<Vec<(String, bool)>, Error> {
        let mut names: Vec<(String, bool)> = match self.disk.list(dir) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => other.at("list", dir)?.into_iter().map(|e| (e.name, e.is_dir)).collect(),
        };
        names.sort();
        Ok(names)
    }
}
