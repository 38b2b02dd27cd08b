//! What a broker has acknowledged of topics, groups and consumer offsets is there after `kill -9`, whenever that comes; of
//! topics and groups also after a power cut. Method: after each acknowledgement the disk in memory is copied as the kill (or
//! the cut) would leave it; a broker starts on each copy and is asked for everything acknowledged by then.

mod support;

use cometmq_store::disk::{Disk, Faulty};
use support::gated::Gated;
use support::*;

fn update_group(name: &str, retry_max: i32) -> Ask {
    Ask::new(200).body(format!(r#"{{"groupName":"{name}","retryMaxTimes":{retry_max},"consumeEnable":true}}"#))
}

fn json(got: &Got) -> String {
    assert_eq!(got.code, 0, "{}", got.remark);
    String::from_utf8(got.body.clone()).unwrap()
}

/// Something acknowledged, and how to see that it is there.
type Check = Box<dyn Fn(&mut Peer) -> bool>;

#[test]
fn everything_acknowledged_is_there_after_the_kill() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    let has_offset = |group: &'static str, queue: i32, offset: i64| -> Check {
        Box::new(move |peer| peer.ok(&committed(group, "orders", queue)).num("offset") == offset)
    };
    let pull_and_commit = pull("orders", 3, 0).field("sysFlag", 5).field("commitOffset", 0);
    let steps: Vec<(&str, Ask, i32, Check)> = vec![
        (
            "topic",
            create_topic("orders", 4, 6).field("attributes", "+message.type=FIFO"),
            0,
            Box::new(|peer| {
                let config = json(&peer.ask(&Ask::new(351).field("topic", "orders")));
                config.contains(r#""writeQueueNums":4"#) && config.contains("FIFO")
            }),
        ),
        (
            "group",
            update_group("billing", 3),
            0,
            Box::new(|peer| json(&peer.ask(&Ask::new(352).field("group", "billing"))).contains(r#""retryMaxTimes":3"#)),
        ),
        ("message", send("orders", 0, "x"), 0, Box::new(|peer| peer.ok(&max_offset("orders", 0)).num("offset") == 1)),
        ("commit", commit("billing", "orders", 0, 1), 0, has_offset("billing", 0, 1)),
        ("commit of another queue", commit("billing", "orders", 3, 0), 0, has_offset("billing", 3, 0)),
        (
            "changed group",
            update_group("billing", 5),
            0,
            Box::new(|peer| json(&peer.ask(&Ask::new(352).field("group", "billing"))).contains(r#""retryMaxTimes":5"#)),
        ),
        ("commit carried by a pull", pull_and_commit, 19, has_offset("readers", 3, 0)),
        (
            "topic made by a send",
            send("made", 0, "x"),
            0,
            Box::new(|peer| peer.ok(&pull("made", 0, 0)).messages() == [(0, b"x".to_vec())]),
        ),
    ];
    let mut killed = Vec::new();
    for (name, ask, code, _) in &steps {
        let got = peer.ask(ask);
        assert_eq!(got.code, *code, "{name}: {}", got.remark);
        killed.push(disk.surviving_kill());
    }
    for (at, disk) in killed.into_iter().enumerate() {
        // Twice: the first start after a kill must not lose it either.
        for life in ["first", "second"] {
            let broker = TestBroker::start_in_memory(disk.clone(), &[]);
            let mut peer = broker.connect();
            for (name, _, _, is_there) in steps[..=at].iter().filter(|s| s.0 != "group" || at < 5) {
                assert!(is_there(&mut peer), "killed after '{}', {life} start: no {name}", steps[at].0);
            }
            drop(peer);
            broker.stop();
        }
    }
    broker.stop();
}

/// The journal keeps them: the JSON is written each few seconds only.
#[test]
fn commits_are_in_the_journal_before_they_are_in_the_file() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[("flushConsumerOffsetInterval", "3600000")]);
    let mut peer = broker.connect();
    peer.ok(&create_topic("orders", 1, 6));
    peer.ok(&update_group("billing", 3));
    (0..5).for_each(|_| drop(peer.ok(&send("orders", 0, "x"))));
    for offset in [1, 4, 2, 3] {
        peer.ok(&commit("billing", "orders", 0, offset));
        let killed = disk.surviving_kill();
        let file = killed.read_all(format!("{ROOT}/config/consumerOffset.json").as_ref()).unwrap();
        assert!(!String::from_utf8(file).unwrap().contains("orders@billing"));
        assert!(exists(&killed, "comet/offsets.journal"));
        let after = TestBroker::start_in_memory(killed, &[]);
        assert_eq!(after.connect().ok(&committed("billing", "orders", 0)).num("offset"), offset);
        after.stop();
    }
    broker.stop();
}

#[test]
fn topics_and_groups_survive_a_power_cut_too() {
    for seed in 0..12 {
        let disk = Faulty::lose_power_at(u64::MAX, seed);
        let broker = TestBroker::start_in_memory(disk.clone(), &[]);
        let mut peer = broker.connect();
        peer.ok(&create_topic("orders", 4, 6));
        peer.ok(&update_group("billing", 3));
        let after = TestBroker::start_in_memory(disk.surviving(), &[]);
        let mut peer = after.connect();
        assert!(json(&peer.ask(&Ask::new(351).field("topic", "orders"))).contains(r#""writeQueueNums":4"#), "{seed}");
        assert!(json(&peer.ask(&Ask::new(352).field("group", "billing"))).contains(r#""retryMaxTimes":3"#), "{seed}");
        drop(peer);
        after.stop();
    }
}

/// Whoever comes second while a topic is being saved waits for it as well: its message would be out of reach after a kill.
#[test]
fn nothing_is_acknowledged_before_its_topic_is_on_disk() {
    let disk = Gated::new();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let (mut first, mut second, mut third) = (broker.connect(), broker.connect(), broker.connect());
    first.ok(&send("warm", 0, "x"));
    disk.hold("topics.json");
    let opaques = [
        first.post(&send("orders", 0, "a")),
        first.post(&send("orders", 0, "b")),
        second.post(&send("orders", 1, "c")),
    ];
    disk.wait_for_sync();
    let created = third.post(&create_topic("orders", 4, 6));
    // Everything else goes on.
    first.ok(&send("warm", 0, "x"));
    second.ok(&send("warm", 0, "x"));
    third.ok(&send("warm", 0, "x"));
    disk.release();
    let mut answered: Vec<(i32, i32)> = [first.receive(), first.receive()].map(|got| (got.opaque, got.code)).to_vec();
    answered.sort_unstable();
    assert_eq!(answered, [(opaques[0], 0), (opaques[1], 0)]);
    let got = second.receive();
    assert_eq!((got.opaque, got.code), (opaques[2], 0), "{}", got.remark);
    let got = third.receive();
    assert_eq!((got.opaque, got.code), (created, 0), "{}", got.remark);
    let after = TestBroker::start_in_memory(disk.disk.surviving_kill(), &[]);
    assert_eq!(drain(&mut after.connect(), "orders", 0, 0).len(), 2);
    assert_eq!(drain(&mut after.connect(), "orders", 1, 0).len(), 1);
    after.stop();
    broker.stop();
}

/// A topic that cannot be saved is refused to everybody, until it can.
#[test]
fn a_topic_that_cannot_be_saved_takes_no_message() {
    let disk = Faulty::healthy();
    let broker = TestBroker::start_in_memory(disk.clone(), &[]);
    let mut peer = broker.connect();
    peer.ok(&send("warm", 0, "x"));
    // The commit log flushes in the background, and a failed flush stops all writes: fill the disk instead.
    disk.set_capacity(Some(0));
    for _ in 0..2 {
        let got = peer.ask(&send("orders", 0, "x"));
        assert_eq!(got.code, 1, "{}", got.remark);
        assert!(got.remark.contains("cannot save the change"), "{}", got.remark);
    }
    disk.set_capacity(None);
    peer.ok(&send("orders", 0, "x"));
    let after = TestBroker::start_in_memory(disk.surviving_kill(), &[]);
    assert_eq!(drain(&mut after.connect(), "orders", 0, 0), [b"x"]);
    after.stop();
    broker.stop();
}
