//! The thread that writes `kvConfig.json` and `namesrv.properties`, in the order the requests came, so that no shard waits
//! for a disk. A request is answered after its write.
//!
//! Crash   A file is replaced by a rename of `<file>.tmp`, written and synced first: after a crash it is the old or the
//!         new one, whole. A leftover `.tmp` is overwritten by the next write and never read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use cometmq_wire::ResponseCode;

use crate::Error;
use crate::answer::Reject;

/// Writes that may wait; the next one is refused with SYSTEM_BUSY.
const WAITING_MAX: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct FilesThread {
    queue: FilesQueue,
    thread: JoinHandle<()>,
}

/// The way to the thread, for a shard.
#[derive(Clone)]
pub(crate) struct FilesQueue(SyncSender<Job>);

impl FilesThread {
    pub(crate) fn start() -> Result<Self, Error> {
        let (tx, rx) = sync_channel::<Job>(WAITING_MAX);
        let run = move || rx.into_iter().for_each(|job| job());
        let spawned = std::thread::Builder::new().name("namesrv-files".into()).spawn(run);
        let thread = spawned.map_err(cometmq_net::Error::Spawn)?;
        Ok(Self { queue: FilesQueue(tx), thread })
    }

    pub(crate) fn queue(&self) -> FilesQueue {
        self.queue.clone()
    }

    /// Returns when all that was queued is written. The shards, which hold queues too, must have stopped.
    pub(crate) fn stop(self) {
        drop(self.queue);
        if self.thread.join().is_err() {
            tracing::error!("the thread that writes the name server's files panicked");
        }
    }
}

impl FilesQueue {
    /// `job` must not panic: that would end the thread.
    pub(crate) fn push(&self, job: Job) -> Result<(), Reject> {
        self.0.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(_) => {
                Reject::new(ResponseCode::SYSTEM_BUSY, format!("more than {WAITING_MAX} writes wait for the disk"))
            }
            TrySendError::Disconnected(_) => Reject::system_error("the name server is shutting down"),
        })
    }
}

/// Makes `bytes` the content of `path`, durably.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |op| move |source| Error::Io { op, path: path.to_path_buf(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed("create the folder of"))?;
    let temporary = temporary(path);
    let written = File::create(&temporary).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(failed("write"))?;
    fs::rename(&temporary, path).map_err(failed("replace"))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync the folder of"))
}

/// The content of `path`; `None` when there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { op: "read", path: path.to_path_buf(), source }),
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}
