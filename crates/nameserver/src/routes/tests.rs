//! The tables, without sockets. Brokers are told in Java's terms: id 0 is a master, another one a slave.

use std::time::Duration;

use cometmq_base::config::{Config, Role};
use cometmq_wire::body::{TopicConfig, TopicQueueMappingInfo};
use cometmq_wire::names;

use super::*;

struct Fixture {
    routes: Routes,
    notices: mpsc::Receiver<Notice>,
    clock: Clock,
    _dir: tempfile::TempDir,
}

fn fixture(set: &[(&str, &str)]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(Role::NameServer);
    for (key, value) in set {
        config.set(key, value).unwrap();
    }
    let settings = Arc::new(LiveSettings::open(config, dir.path().join("namesrv.properties")).unwrap());
    let clock = Clock::manual(1_750_000_000_000);
    let (routes, notices) = Routes::new(clock.clone(), settings);
    Fixture { routes, notices, clock, _dir: dir }
}

/// Broker `b1` of cluster `c1` at `h<id>:1`, with `topics` of 4 queues and data version `counter`.
fn broker(id: i64, counter: i64, topics: &[&str]) -> Registration {
    let mut body = RegisterBrokerBody::default();
    let table = &mut body.topic_config_serialize_wrapper;
    table.data_version = DataVersion { counter, state_version: 0, timestamp: 1 };
    for topic in topics {
        table.topic_config_table.insert((*topic).to_owned(), TopicConfig::new(topic, 4, 6));
    }
    Registration {
        cluster: "c1".into(),
        broker_name: "b1".into(),
        broker_addr: format!("h{id}:1"),
        broker_id: id,
        ha_server_addr: format!("h{id}:2"),
        enable_acting_master: Some(false),
        body,
        ..Registration::default()
    }
}

fn named(name: &str, topics: &[&str]) -> Registration {
    Registration { broker_name: name.into(), broker_addr: format!("{name}:1"), ..broker(0, 1, topics) }
}

impl Fixture {
    fn register(&self, registration: Registration) -> Registered {
        self.routes.register(registration).unwrap()
    }

    fn perm(&self, topic: &str) -> Option<i32> {
        Some(self.routes.route(topic)?.queue_datas[0].perm)
    }

    fn topics(&self) -> Vec<String> {
        self.routes.topics().topic_list.into_iter().collect()
    }
}

#[test]
fn topics_change_with_the_data_version_and_stay_without_it() {
    let f = fixture(&[]);
    f.register(broker(0, 1, &["t1", "t2"]));
    assert_eq!(f.perm("t1"), Some(6));
    assert_eq!(f.routes.change_write_perm("b1", false), 2);
    assert_eq!(f.perm("t1"), Some(4));
    f.register(broker(0, 1, &["t1", "t2", "t3"]));
    assert_eq!(f.perm("t1"), Some(4), "the same version: what an admin changed stays");
    assert_eq!(f.perm("t3"), Some(6), "a topic without this broker is taken nevertheless");
    f.register(broker(0, 2, &["t1", "t2"]));
    assert_eq!(f.perm("t1"), Some(6));
    assert_eq!(f.topics(), ["t1", "t2", "t3"], "a topic that is not told any more stays by default");
    assert_eq!(f.routes.change_write_perm("b1", true), 3);
    assert_eq!(f.routes.change_write_perm("nobody", true), 0);
}

#[test]
fn topics_that_vanished_are_removed_on_demand() {
    let f = fixture(&[("deleteTopicWithBrokerRegistration", "true")]);
    f.register(broker(0, 1, &["t1", "t2"]));
    f.register(named("b2", &["t2", "t3"]));
    f.register(broker(0, 1, &["t1", "t4"]));
    assert_eq!(f.topics(), ["t1", "t2", "t3", "t4"]);
    assert_eq!(f.routes.route("t2").unwrap().queue_datas[0].broker_name, "b2");
}

#[test]
fn one_topic_alone_needs_a_registration() {
    let f = fixture(&[]);
    assert_eq!(f.routes.register(broker(0, 1, &["t1"])), Err(RegistrationRefused::NotRegisteredYet));
    assert_eq!(f.routes.cluster_info(), ClusterInfo::default(), "a refusal leaves nothing");
    f.register(broker(0, 1, &[]));
    f.register(broker(0, 2, &["t1"]));
    assert_eq!(f.topics(), ["t1"]);
}

#[test]
fn a_slave_is_an_address_and_learns_its_master() {
    let f = fixture(&[]);
    assert_eq!(f.register(broker(1, 1, &["t0", "t9"])), Registered::default());
    assert_eq!(f.topics(), ["t0", "t9"], "the lowest slave speaks while there is no master");
    assert_eq!(f.register(broker(0, 1, &["t1", "t2"])), Registered::default());
    let registered = f.register(broker(1, 2, &["t5", "t6"]));
    assert_eq!(registered.master_addr.as_deref(), Some("h0:1"));
    assert_eq!(registered.ha_server_addr.as_deref(), Some("h0:2"));
    assert_eq!(f.topics(), ["t0", "t1", "t2", "t9"], "a slave beside a master says nothing of topics");
    let addrs = &f.routes.route("t1").unwrap().broker_datas[0].broker_addrs;
    assert_eq!(addrs, &BTreeMap::from([(0, "h0:1".into()), (1, "h1:1".into())]));
    assert_eq!(f.routes.members("c1", "b1").broker_addrs, *addrs);
    let old = Registration { enable_acting_master: None, ..broker(2, 1, &["t7", "t8"]) };
    f.routes.unregister("c1", "h0:1", "b1");
    f.routes.unregister("c1", "h1:1", "b1");
    f.register(old);
    assert_eq!(f.routes.route("t7"), None, "an old slave never speaks");
}

#[test]
fn a_slave_that_becomes_master_has_one_id() {
    let f = fixture(&[]);
    f.register(broker(0, 1, &[]));
    f.register(broker(1, 1, &[]));
    f.routes.unregister("c1", "h0:1", "b1");
    f.register(Registration { broker_addr: "h1:1".into(), ..broker(0, 1, &["t1", "t2"]) });
    let addrs = &f.routes.cluster_info().broker_addr_table["b1"].broker_addrs;
    assert_eq!(addrs, &BTreeMap::from([(0, "h1:1".into())]));
    assert_eq!(f.topics(), ["t1", "t2"], "new under this id, though its version is known");
}

#[test]
fn a_master_of_an_older_epoch_is_ignored() {
    let f = fixture(&[]);
    let at_epoch = |addr: &str, epoch: i64, topics: &[&str]| {
        let mut registration = broker(0, 1, topics);
        registration.broker_addr = addr.into();
        registration.body.topic_config_serialize_wrapper.data_version.state_version = epoch;
        registration
    };
    f.register(at_epoch("new:1", 2, &["t1", "t2"]));
    f.register(at_epoch("old:1", 1, &["t3", "t4"]));
    assert_eq!(f.topics(), ["t1", "t2"]);
    assert_eq!(f.routes.data_version("c1", "old:1"), None);
    f.register(at_epoch("newer:1", 3, &["t3", "t4"]));
    assert_eq!(f.routes.route("t3").unwrap().broker_datas[0].broker_addrs[&0], "newer:1");
}

#[test]
fn the_lowest_slave_stands_in_for_readers() {
    let f = fixture(&[("supportActingMaster", "true")]);
    let acting = |id, counter| Registration { enable_acting_master: Some(true), ..broker(id, counter, &["t1", "t2"]) };
    for id in [0, 2, 3] {
        f.register(acting(id, 1));
    }
    let addrs = || f.routes.route("t1").unwrap().broker_datas[0].broker_addrs.clone();
    assert_eq!(addrs().len(), 3);
    f.routes.unregister("c1", "h0:1", "b1");
    assert_eq!(f.perm("t1"), Some(4), "the master is gone: read only");
    assert_eq!(addrs(), BTreeMap::from([(0, "h2:1".into()), (3, "h3:1".into())]));
    f.register(acting(2, 2));
    assert_eq!(f.perm("t1"), Some(4), "the stand-in cannot give the write permission back");
    f.register(acting(0, 3));
    assert_eq!((f.perm("t1"), addrs().len()), (Some(6), 3));
}

#[test]
fn nobody_stands_in_by_default() {
    let f = fixture(&[]);
    f.register(Registration { enable_acting_master: Some(true), ..broker(2, 1, &["t1", "t2"]) });
    let broker = f.routes.route("t1").unwrap().broker_datas.remove(0);
    assert_eq!(broker.broker_addrs, BTreeMap::from([(2, "h2:1".into())]));
    assert!(broker.enable_acting_master);
}

#[test]
fn a_silent_broker_is_dropped() {
    let f = fixture(&[]);
    let quick = Registration { heartbeat_timeout_ms: Some(1_000), ..named("quick", &["t1", "t2"]) };
    f.register(quick);
    f.register(named("slow", &["t2", "t3"]));
    f.clock.advance(Duration::from_millis(1_000));
    f.routes.expire();
    assert_eq!(f.topics(), ["t1", "t2", "t3"]);
    f.routes.heartbeat("c1", "quick:1");
    f.clock.advance(Duration::from_millis(1_000));
    f.routes.expire();
    assert_eq!(f.topics(), ["t1", "t2", "t3"], "a heartbeat counts");
    f.clock.advance(Duration::from_millis(1));
    f.routes.expire();
    assert_eq!(f.topics(), ["t2", "t3"]);
    f.routes.data_version("c1", "slow:1");
    f.clock.advance(HEARTBEAT_TIMEOUT);
    f.routes.expire();
    assert_eq!(f.topics(), ["t2", "t3"], "a question about the version counts too");
    f.clock.advance(Duration::from_millis(1));
    f.routes.expire();
    assert_eq!(f.routes.cluster_info(), ClusterInfo::default());
    assert!(f.topics().is_empty());
}

#[test]
fn a_renamed_broker_leaves_its_old_name() {
    let f = fixture(&[]);
    f.register(named("old", &["t1", "t2"]));
    f.register(Registration { broker_addr: "old:1".into(), ..named("new", &["t2", "t3"]) });
    assert_eq!(f.topics(), ["t2", "t3"]);
    assert!(!f.routes.cluster_info().broker_addr_table.contains_key("old"));
}

#[test]
fn a_topic_is_deleted_everywhere_or_in_one_cluster() {
    let f = fixture(&[]);
    f.register(named("b1", &["t1", "t2"]));
    f.register(Registration { cluster: "c2".into(), ..named("b2", &["t1", "t2"]) });
    f.routes.delete_topic("t1", Some("never"));
    f.routes.delete_topic("t1", Some("c1"));
    assert_eq!(f.routes.route("t1").unwrap().queue_datas[0].broker_name, "b2");
    assert_eq!(f.routes.topics_of_cluster("c1").topic_list, BTreeSet::from(["t2".into()]));
    assert_eq!(f.routes.topics_of_cluster("never"), TopicList::default());
    f.routes.delete_topic("t1", Some("c2"));
    f.routes.delete_topic("t2", None);
    assert!(f.topics().is_empty());
}

#[test]
fn one_topic_is_added_to_known_brokers_only() {
    let f = fixture(&[]);
    f.register(named("b1", &[]));
    let queue = |name: &str| QueueData { broker_name: name.into(), perm: 6, ..QueueData::default() };
    f.routes.register_topic("t1", vec![queue("b1"), queue("b2")]).unwrap();
    assert!(f.topics().is_empty());
    f.routes.register_topic("t1", vec![queue("b1")]).unwrap();
    assert_eq!(f.topics(), ["t1"]);
}

#[test]
fn mappings_of_static_topics_come_with_a_version_and_go_with_the_topic() {
    let f = fixture(&[]);
    let mut registration = broker(0, 1, &["t1", "t2"]);
    let info = TopicQueueMappingInfo { broker_name: Some("b1".into()), total_queues: 4, ..Default::default() };
    registration.body.topic_config_serialize_wrapper.topic_queue_mapping_info_map.insert("t1".into(), info.clone());
    f.register(registration.clone());
    let mut same_version = registration.clone();
    let table = &mut same_version.body.topic_config_serialize_wrapper;
    table.topic_queue_mapping_info_map.get_mut("t1").unwrap().epoch = 9;
    f.register(same_version);
    let mapping = f.routes.route("t1").unwrap().topic_queue_mapping_by_broker;
    assert_eq!(mapping, Some(BTreeMap::from([("b1".into(), info)])));
    assert_eq!(f.routes.route("t2").unwrap().topic_queue_mapping_by_broker, None);
    f.routes.delete_topic("t1", None);
    f.register(broker(0, 2, &["t1", "t2"]));
    assert_eq!(f.routes.route("t1").unwrap().topic_queue_mapping_by_broker, None);
    f.register(registration);
    assert!(f.routes.route("t1").unwrap().topic_queue_mapping_by_broker.is_some());
    f.routes.unregister("c1", "h0:1", "b1");
    f.register(broker(0, 2, &["t1", "t2"]));
    assert_eq!(f.routes.route("t1").unwrap().topic_queue_mapping_by_broker, None);
}

#[test]
fn lists_of_topics() {
    let f = fixture(&[]);
    let mut registration = named("b1", &["none", "unit", "sub", "both"]);
    for (topic, flag) in [("unit", 1), ("sub", 2), ("both", 3)] {
        let table = &mut registration.body.topic_config_serialize_wrapper.topic_config_table;
        table.get_mut(topic).unwrap().topic_sys_flag = flag;
    }
    f.register(registration);
    let list = |which| f.routes.unit_topics(which).topic_list.into_iter().collect::<Vec<_>>();
    assert_eq!(list(Unit::Topics), ["both", "unit"]);
    assert_eq!(list(Unit::Subscribed), ["both", "sub"]);
    assert_eq!(list(Unit::SubscribedFromOutside), ["sub"]);
    let system = f.routes.system_topics();
    assert_eq!(system.broker_addr.as_deref(), Some("b1:1"));
    assert_eq!(system.topic_list, BTreeSet::from(["b1".into(), "c1".into()]));
}

#[test]
fn a_zone_sees_its_brokers_and_those_without_a_master() {
    let f = fixture(&[]);
    let in_zone = |name: &str, zone: &str, id| Registration {
        zone_name: Some(zone.into()),
        broker_id: id,
        body: named(name, &["t1", "t2"]).body,
        ..named(name, &[])
    };
    f.register(in_zone("near", "Z1", 0));
    f.register(in_zone("far", "z2", 0));
    f.register(in_zone("orphan", "z2", 1));
    let mut route = f.routes.route("t1").unwrap();
    only_zone(&mut route, "z1");
    let names: Vec<&str> = route.broker_datas.iter().map(|broker| broker.broker_name.as_str()).collect();
    assert_eq!(names, ["near", "orphan"]);
    let names: Vec<&str> = route.queue_datas.iter().map(|queue| queue.broker_name.as_str()).collect();
    assert_eq!(names, ["near", "orphan"]);
}

#[test]
fn names_have_bounds() {
    let f = fixture(&[]);
    let too_long = "x".repeat(NAME_BYTES_MAX + 1);
    let refused = f.routes.register(Registration { broker_addr: too_long.clone(), ..broker(0, 1, &[]) });
    assert_eq!(refused, Err(RegistrationRefused::Name { what: "brokerAddr" }));
    let refused = f.routes.register(Registration { cluster: String::new(), ..broker(0, 1, &[]) });
    assert_eq!(refused.unwrap_err().to_string(), "clusterName is empty or longer than 255 bytes");
    let longest = names::retry_topic(&"g".repeat(NAME_BYTES_MAX - names::RETRY_PREFIX.len()));
    f.register(broker(0, 1, &["t1", &too_long, &longest]));
    assert_eq!(f.topics(), [longest.as_str(), "t1"], "a broker is not refused for one bad topic");
    assert!(f.routes.register_topic(&too_long, Vec::new()).is_err());
}

#[test]
fn the_number_of_brokers_has_a_limit() {
    let f = fixture(&[]);
    for at in 0..BROKERS_MAX {
        f.register(named(&format!("b{at}"), &[]));
    }
    let refused = f.routes.register(named("one-more", &[])).unwrap_err();
    assert_eq!(refused, RegistrationRefused::Full { what: "brokers", limit: BROKERS_MAX });
    f.register(named("b0", &["t1", "t2"]));
}

/// Who is told what when the lowest id of a name changes, as Java tells it.
#[test]
fn the_lowest_id_changes() {
    let mut f = fixture(&[("notifyMinBrokerIdChanged", "true")]);
    let acting = |id| Registration { enable_acting_master: Some(true), ..broker(id, 1, &["a", "b"]) };
    let notice = |to: &[&str], id: i64, offline: Option<&str>, ha: Option<&str>| Notice {
        to: to.iter().map(|addr| (*addr).to_owned()).collect(),
        min_broker_id: id,
        min_broker_addr: format!("h{id}:1"),
        offline_broker_addr: offline.map(str::to_owned),
        ha_broker_addr: ha.map(str::to_owned),
    };
    f.register(acting(2));
    f.register(acting(3));
    assert!(f.notices.try_recv().is_err(), "neither the first nor a higher one is news");
    f.register(acting(0));
    assert_eq!(f.notices.try_recv().unwrap(), notice(&["h2:1", "h3:1"], 0, None, Some("h0:2")));
    f.routes.unregister("c1", "h3:1", "b1");
    assert!(f.notices.try_recv().is_err(), "the highest is no news");
    f.register(acting(3));
    f.routes.unregister("c1", "h0:1", "b1");
    assert_eq!(f.notices.try_recv().unwrap(), notice(&["h2:1", "h3:1"], 2, Some("h0:1"), None));
    f.routes.unregister("c1", "h2:1", "b1");
    assert_eq!(f.notices.try_recv().unwrap(), notice(&["h3:1"], 3, Some("h2:1"), None));
    // The last one becomes master.
    let promoted = Registration { broker_addr: "h3:1".into(), ..acting(0) };
    f.register(promoted);
    let alone = Notice { min_broker_addr: "h3:1".into(), ..notice(&["h3:1"], 0, None, Some("h0:2")) };
    assert_eq!(f.notices.try_recv().unwrap(), alone);
    f.routes.unregister("c1", "h3:1", "b1");
    assert!(f.notices.try_recv().is_err(), "nobody is left to be told");
}

#[test]
fn the_lowest_id_changes_and_nobody_asked() {
    let mut f = fixture(&[]);
    f.register(broker(2, 1, &["a", "b"]));
    f.register(broker(0, 1, &["a", "b"]));
    assert!(f.notices.try_recv().is_err());
}
