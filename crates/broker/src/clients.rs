//! Who is connected: the members of consumer groups with their subscriptions, and producers.
//!
//! A member is a connection. It leaves by unregistering, by closing, or by not heartbeating for 120 s. When the members of
//! a group change, the others are told (NOTIFY_CONSUMER_IDS_CHANGED) if the group wants it.
//! Java: `ConsumerManager`, `ProducerManager`, `ClientHousekeepingService`.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cometmq_net::ConnId;
use cometmq_wire::body::{ConsumeFromWhere, ConsumeType, ConsumerData, MessageModel};
use cometmq_wire::header::Language;

use crate::subscription::Subscription;

/// Java: `ConsumerManager.CHANNEL_EXPIRED_TIMEOUT`.
const EXPIRED_MS: i64 = 120_000;

/// A client on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) client_id: String,
    pub(crate) address: SocketAddr,
    pub(crate) language: Language,
    pub(crate) version: i32,
    pub(crate) seen_ms: i64,
}

#[derive(Debug, Default)]
pub(crate) struct ConsumerGroup {
    pub(crate) members: HashMap<ConnId, Member>,
    pub(crate) consume_type: ConsumeType,
    pub(crate) message_model: MessageModel,
    pub(crate) consume_from_where: ConsumeFromWhere,
    pub(crate) subscriptions: BTreeMap<String, Arc<Subscription>>,
    /// Fingerprint of the last heartbeat (version 2): 0 = none.
    fingerprint: i32,
    notify: bool,
}

#[derive(Default)]
pub(crate) struct Clients {
    tables: RwLock<Tables>,
}

#[derive(Default)]
struct Tables {
    consumers: HashMap<String, ConsumerGroup>,
    producers: HashMap<String, HashMap<ConnId, Member>>,
}

/// Who sent a heartbeat, and how it is to be taken.
pub(crate) struct Seen<'a> {
    pub(crate) conn: ConnId,
    pub(crate) member: &'a Member,
    /// The subscriptions are those of the last full heartbeat.
    pub(crate) without_sub: bool,
    pub(crate) notify: bool,
    pub(crate) property_filter: bool,
}

/// Connections to tell that the members of a group changed.
pub(crate) type Changed = Vec<(String, Vec<ConnId>)>;

impl Clients {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A consumer's heartbeat.
    pub(crate) fn consumer_seen(&self, seen: &Seen<'_>, data: &ConsumerData) -> Changed {
        let mut tables = self.write();
        let group = tables.consumers.entry(data.group_name.clone()).or_default();
        group.consume_type = data.consume_type;
        group.message_model = data.message_model;
        group.consume_from_where = data.consume_from_where;
        group.notify = seen.notify;
        let before = group.members.insert(seen.conn, seen.member.clone());
        let joined = before.is_none_or(|old| old.client_id != seen.member.client_id);
        let subscribed = !seen.without_sub && group.subscribe(data, seen.property_filter);
        if joined || subscribed { group.changed(&data.group_name) } else { Changed::new() }
    }

    /// Whether the fingerprint of a group's heartbeat differs from the one before. Java: `consumerGroupHeartbeatTable`.
    pub(crate) fn fingerprint_changed(&self, group: &str, fingerprint: i32) -> bool {
        let mut tables = self.write();
        let group = tables.consumers.entry(group.to_string()).or_default();
        let before = std::mem::replace(&mut group.fingerprint, fingerprint);
        before != 0 && before != fingerprint
    }

    pub(crate) fn producer_seen(&self, conn: ConnId, group: &str, member: &Member) {
        let mut tables = self.write();
        tables.producers.entry(group.to_string()).or_default().insert(conn, member.clone());
    }

    /// UNREGISTER_CLIENT.
    pub(crate) fn leave(&self, conn: ConnId, producer_group: Option<&str>, consumer_group: Option<&str>) -> Changed {
        let mut tables = self.write();
        if let Some(members) = producer_group.and_then(|g| tables.producers.get_mut(g)) {
            members.remove(&conn);
        }
        let changed = consumer_group.map(|g| tables.leave_consumer(g, |c, _| *c == conn)).unwrap_or_default();
        tables.prune();
        changed
    }

    /// The connection is gone.
    pub(crate) fn closed(&self, conn: ConnId) -> Changed {
        self.remove(|c, _| *c == conn)
    }

    /// Members without a heartbeat for too long.
    pub(crate) fn expire(&self, now_ms: i64) -> Changed {
        self.remove(|_, member| now_ms - member.seen_ms > EXPIRED_MS)
    }

    fn remove(&self, gone: impl Fn(&ConnId, &Member) -> bool) -> Changed {
        let touched = {
            let tables = self.read();
            let consumes = tables.consumers.values().any(|g| g.members.iter().any(|(c, m)| gone(c, m)));
            consumes || tables.producers.values().any(|g| g.iter().any(|(c, m)| gone(c, m)))
        };
        if !touched {
            return Changed::new();
        }
        let mut tables = self.write();
        let groups: Vec<String> = tables.consumers.keys().cloned().collect();
        let changed = groups.iter().flat_map(|g| tables.leave_consumer(g, &gone)).collect();
        tables.producers.values_mut().for_each(|g| g.retain(|c, m| !gone(c, m)));
        tables.prune();
        changed
    }

    /// The client ids of a group; `None` = no such group is connected.
    pub(crate) fn consumer_ids(&self, group: &str) -> Option<Vec<String>> {
        let tables = self.read();
        let members = &tables.consumers.get(group)?.members;
        let mut ids: Vec<String> = members.values().map(|m| m.client_id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        Some(ids)
    }

    /// The message model of a connected group and its subscription of `topic`.
    pub(crate) fn subscription(&self, group: &str, topic: &str) -> Option<(MessageModel, Option<Arc<Subscription>>)> {
        let tables = self.read();
        let group = tables.consumers.get(group).filter(|g| !g.members.is_empty())?;
        Some((group.message_model, group.subscriptions.get(topic).cloned()))
    }

    pub(crate) fn producers(&self, group: &str) -> Option<Vec<Member>> {
        self.read().producers.get(group).map(|members| members.values().cloned().collect())
    }

    pub(crate) fn with_consumer_group<R>(&self, group: &str, look: impl FnOnce(&ConsumerGroup) -> R) -> Option<R> {
        self.read().consumers.get(group).map(look)
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        let tables = self.read();
        let members = |n: usize, g: usize| n + g;
        let consumers = tables.consumers.values().map(|g| g.members.len()).fold(0, members);
        (tables.producers.values().map(HashMap::len).fold(0, members), consumers)
    }
}

impl ConsumerGroup {
    /// Takes over newer subscriptions, drops those that are no longer there. Java: `ConsumerGroupInfo.updateSubscription`.
    fn subscribe(&mut self, data: &ConsumerData, property_filter: bool) -> bool {
        let mut changed = false;
        for sub in &data.subscription_data_set {
            let old = self.subscriptions.get(&sub.topic);
            if old.is_none_or(|o| sub.sub_version > o.data.sub_version) {
                changed |= old.is_none();
                self.subscriptions.insert(sub.topic.clone(), Arc::new(Subscription::of(sub, property_filter)));
            }
        }
        let before = self.subscriptions.len();
        self.subscriptions.retain(|topic, _| data.subscription_data_set.iter().any(|s| s.topic == *topic));
        changed || before != self.subscriptions.len()
    }

    fn changed(&self, name: &str) -> Changed {
        let tell: Vec<ConnId> = self.members.keys().copied().collect();
        if self.notify && !tell.is_empty() { vec![(name.to_string(), tell)] } else { Changed::new() }
    }
}

impl Tables {
    fn leave_consumer(&mut self, name: &str, gone: impl Fn(&ConnId, &Member) -> bool) -> Changed {
        let Some(group) = self.consumers.get_mut(name) else { return Changed::new() };
        let before = group.members.len();
        group.members.retain(|c, m| !gone(c, m));
        if group.members.len() == before { Changed::new() } else { group.changed(name) }
    }

    fn prune(&mut self) {
        self.consumers.retain(|_, g| !g.members.is_empty());
        self.producers.retain(|_, g| !g.is_empty());
    }
}
