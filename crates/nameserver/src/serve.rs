//! Start and stop, the shard's loop over frames, and the guard around each request.
//! Java: `NamesrvController`, `BrokerHousekeepingService`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cometmq_base::Clock;
use cometmq_base::config::Config;
use cometmq_net::conn::OUT_PAUSE;
use cometmq_net::{Conn, ConnId, Listen, Mailbox, Server, Service, ShardId};
use cometmq_wire::frame::BadFrame;
use cometmq_wire::header::{Head, SerializeType};
use cometmq_wire::{Frame, RequestCode};
use tokio::task::AbortHandle;

use crate::Error;
use crate::answer::{self, Answer, Reject};
use crate::files::{FilesQueue, FilesThread};
use crate::kv::KvConfig;
use crate::notices;
use crate::requests::{self, State, Step};
use crate::routes::Routes;
use crate::settings::LiveSettings;

pub struct Options {
    /// Port 0 = any free one.
    pub listen: SocketAddr,
    /// `kvConfig.json`; an empty `configStorePath` means `namesrv.properties` beside it.
    pub kv_config_path: PathBuf,
    /// Of `Role::NameServer`. Its `listenPort` is overwritten with the port in use.
    pub config: Config,
    pub clock: Clock,
}

/// A running name server. Dropping it without [`NameServer::stop`] leaves its threads running.
pub struct NameServer {
    addr: SocketAddr,
    server: Server,
    files: FilesThread,
    expiry: AbortHandle,
    notices: AbortHandle,
    state: Arc<State>,
}

impl NameServer {
    /// Reads its files, listens and serves. Must be called inside a tokio runtime, which accepts connections and runs
    /// the expiry of brokers; requests are served on a thread of their own.
    pub fn start(options: Options) -> Result<Self, Error> {
        let Options { listen, kv_config_path, config, clock } = options;
        let idle_max = match config.int("serverChannelMaxIdleTimeSeconds") {
            seconds @ 1.. => Duration::from_secs(seconds.unsigned_abs().into()),
            // To Java's server that is no limit.
            _ => Duration::MAX,
        };
        let settings = LiveSettings::open(config, kv_config_path.with_file_name("namesrv.properties"))?;
        let settings = Arc::new(settings);
        let (routes, to_tell) = Routes::new(clock.clone(), settings.clone());
        let state = Arc::new(State {
            routes: Arc::new(routes),
            kv: KvConfig::open(kv_config_path)?,
            started_ms: clock.now_ms(),
            settings,
            clock,
        });
        let files = FilesThread::start()?;
        let (queue, shared) = (files.queue(), state.clone());
        let listen = [Listen { addr: listen, role: 0 }];
        let server = Server::start("namesrv", &listen, 1, idle_max, move |id: ShardId, all: &[Mailbox]| Shard {
            state: shared.clone(),
            files: queue.clone(),
            mailbox: all[id.0].clone(),
            broker_conns: RefCell::default(),
        })?;
        let addr = server.local()[0];
        state.settings.tell_port(addr.port());
        let expiry = tokio::spawn(expire_forever(state.clone(), server.mailboxes())).abort_handle();
        let notices = tokio::spawn(notices::send_forever(to_tell)).abort_handle();
        tracing::info!(%addr, "name server listens");
        Ok(Self { addr, server, files, expiry, notices, state })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn routes(&self) -> Arc<Routes> {
        self.state.routes.clone()
    }

    /// Drops the brokers that have been silent for too long, and their connections. Happens by itself every
    /// `scanNotActiveBrokerInterval`.
    pub fn expire_brokers(&self) {
        expire(&self.state, &self.server.mailboxes());
    }

    /// Stops accepting, lets connections take their answers for at most `grace`, finishes what is being written to disk.
    /// Blocks.
    pub fn stop(self, grace: Duration) {
        self.expiry.abort();
        self.notices.abort();
        self.server.stop(grace);
        self.files.stop();
    }
}

async fn expire_forever(state: Arc<State>, mailboxes: Vec<Mailbox>) {
    loop {
        let changed = state.settings.changed.notified();
        let every = state.settings.now().scan_every;
        tokio::select! {
            () = tokio::time::sleep(every) => expire(&state, &mailboxes),
            // The interval may be another one now.
            () = changed => {}
        }
    }
}

fn expire(state: &State, mailboxes: &[Mailbox]) {
    for conn in state.routes.expire() {
        if let Some(mailbox) = mailboxes.iter().find(|mailbox| mailbox.shard() == conn.shard) {
            mailbox.close(conn);
        }
    }
}

struct Shard {
    state: Arc<State>,
    files: FilesQueue,
    mailbox: Mailbox,
    /// Connections over which a broker has registered.
    broker_conns: RefCell<HashMap<ConnId, Rc<Conn>>>,
}

impl Service for Shard {
    fn turn(&self, conn: &Rc<Conn>, frames: &[Result<Frame<'_>, BadFrame>]) -> usize {
        for (at, frame) in frames.iter().enumerate() {
            match frame {
                Ok(frame) if frame.head.is_response() => {}
                Ok(frame) => self.serve(conn, frame),
                Err(bad) => {
                    let reject = Reject::from(bad.error.clone());
                    answer::write(&mut conn.out(), SerializeType::Json, bad.opaque, Err(reject));
                }
            }
            if conn.out().len() > OUT_PAUSE {
                return at + 1;
            }
        }
        frames.len()
    }

    fn closed(&self, conn: &Rc<Conn>) {
        if self.broker_conns.borrow_mut().remove(&conn.id()).is_some() {
            self.state.routes.connection_lost(conn.id());
        }
    }
}

impl Shard {
    fn serve(&self, conn: &Rc<Conn>, frame: &Frame<'_>) {
        let head = &frame.head;
        if head.code == RequestCode::REGISTER_BROKER.0 {
            // Before the registration, so that one that panics halfway is undone with the connection too.
            self.broker_conns.borrow_mut().insert(conn.id(), conn.clone());
        }
        match guard(head.code, || requests::answer(&self.state, conn.id(), frame)) {
            Ok(Step::Answer(answer)) => reply(&mut conn.out(), head, Ok(answer)),
            Err(reject) => reply(&mut conn.out(), head, Err(reject)),
            Ok(Step::Store(store)) => {
                let (state, mailbox, conn_id) = (self.state.clone(), self.mailbox.clone(), conn.id());
                let Head { kind, opaque, code, .. } = *head;
                let oneway = head.is_oneway();
                let job = move || {
                    let outcome = guard(code, || store(&state));
                    if !oneway {
                        let mut out = Vec::new();
                        answer::write(&mut out, kind, opaque, outcome);
                        mailbox.write(conn_id, out);
                    }
                };
                if let Err(reject) = self.files.push(Box::new(job)) {
                    reply(&mut conn.out(), head, Err(reject));
                }
            }
        }
    }
}

fn reply(out: &mut Vec<u8>, head: &Head<'_>, outcome: Result<Answer, Reject>) {
    if !head.is_oneway() {
        answer::write(out, head.kind, head.opaque, outcome);
    }
}

/// A bug in one request is that request's SYSTEM_ERROR.
fn guard<T>(code: i32, run: impl FnOnce() -> Result<T, Reject>) -> Result<T, Reject> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        tracing::error!(code, "a request panicked: please report this");
        Err(Reject::system_error(format!("request {} panicked, see the log", RequestCode(code))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_requests_system_error() {
        let reject = guard::<Answer>(105, || panic!("a bug")).err().unwrap();
        assert_eq!(reject.code.0, 1);
        assert_eq!(reject.remark, "request GET_ROUTEINFO_BY_TOPIC (105) panicked, see the log");
    }
}
