//! Whatever a producer was told is stored, and whatever offset a consumer was told is committed, is there after `kill -9`.
//! Method: 20 rounds on one directory (`COMET_TORTURE_ROUNDS` for more). In each, four connections send random bodies to two
//! topics of four queues, many at a time, while four others pull two queues each, waiting for messages, and commit how far
//! they are; the process is killed at a random moment. The next one must be ready soon, have every message that was
//! acknowledged or consumed once, at the offset that was said, in queues without hole or repeat, and the committed offsets.

mod support;

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

use support::*;

const ROUNDS: u64 = 20;
/// Every message is read again after so many rounds, and at the end; the last ones of each queue after every round.
const ALL_EACH: u64 = 20;
const LAST: usize = 2000;
const PRODUCERS: u64 = 4;
const CONSUMERS: usize = 4;
/// Sends under way on one connection.
const WINDOW: usize = 64;
const TOPICS: [&str; 2] = ["orders", "payments"];
const QUEUES: i32 = 4;
const READY: Duration = Duration::from_secs(5);

/// One queue of one topic.
type Queue = (usize, i32);

fn queues() -> impl Iterator<Item = Queue> {
    (0..TOPICS.len()).flat_map(|topic| (0..QUEUES).map(move |queue| (topic, queue)))
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Unlike any other, of up to 2,000 bytes.
    fn body(&mut self) -> Vec<u8> {
        let longest = if self.below(8) == 0 { 2000 } else { 200 };
        let len = 16 + self.below(longest);
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

fn hash(body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

/// What must be there: by queue, offset → hash of the body.
#[derive(Default)]
struct Books {
    messages: HashMap<Queue, HashMap<i64, u64>>,
    /// The last acknowledged commit, and one that was sent behind it.
    commits: HashMap<Queue, (i64, i64)>,
}

/// Sends until the broker is gone; returns what was acknowledged.
fn produce(mut peer: Peer, mut random: Random) -> Vec<(Queue, i64, u64)> {
    let mut under_way: HashMap<i32, (Queue, u64)> = HashMap::new();
    let mut acknowledged = Vec::new();
    let mut writer = peer.writer();
    let mut opaque = 0;
    loop {
        let mut frames = Vec::new();
        while under_way.len() < WINDOW {
            let queue = (random.below(TOPICS.len() as u64) as usize, random.below(QUEUES as u64) as i32);
            let body = random.body();
            opaque += 1;
            under_way.insert(opaque, (queue, hash(&body)));
            frames.extend(send(TOPICS[queue.0], queue.1, body).frame(opaque));
        }
        if writer.write_all(&frames).is_err() {
            break;
        }
        // Half of the window, then more of it goes out.
        let mut take = |got: Got| {
            assert_eq!(got.code, 0, "{}", got.remark);
            let (queue, hash) = under_way.remove(&got.opaque).expect("answered twice");
            let offset = got.num("queueOffset");
            acknowledged.push((queue, offset, hash));
        };
        for _ in 0..WINDOW / 2 {
            match peer.receive_or_lost() {
                Some(got) => take(got),
                None => return acknowledged,
            }
        }
    }
    acknowledged
}

/// What one consumer did with one queue in one round.
#[derive(Default)]
struct Consumed {
    /// Hashes of the messages from the offset on where it began.
    hashes: Vec<u64>,
    /// The last acknowledged commit of the round, and one that was sent behind it.
    commit: (i64, i64),
}

/// Pulls two queues in turn from where `found` ends, and commits, until the broker is gone.
fn consume(mut peer: Peer, of: &[Queue], found: &HashMap<Queue, Vec<u64>>) -> HashMap<Queue, Consumed> {
    let mut all: HashMap<Queue, Consumed> = of.iter().map(|queue| (*queue, Consumed::default())).collect();
    loop {
        for queue in of {
            let (topic, id) = (TOPICS[queue.0], queue.1);
            let Some(consumed) = all.get_mut(queue) else { continue };
            let mut next = (found.get(queue).map_or(0, Vec::len) + consumed.hashes.len()) as i64;
            let Some(got) = peer.ask_or_lost(&parked(topic, id, next, "*", Duration::from_millis(20))) else {
                return all;
            };
            assert!(got.code == 0 || got.code == 19, "{topic}-{id} at {next}: {} {}", got.code, got.remark);
            for (at, body) in got.messages() {
                assert_eq!(at, next, "hole or repeat in {topic}-{id}");
                consumed.hashes.push(hash(&body));
                next += 1;
            }
            consumed.commit.1 = next;
            match peer.ask_or_lost(&commit("billing", topic, id, next)) {
                Some(got) => assert_eq!(got.code, 0, "{}", got.remark),
                None => return all,
            }
            consumed.commit.0 = next;
        }
    }
}

/// Reads every queue, or the last messages of each, and compares it with the books, and with what was found before.
fn check(comet: &Comet, books: &Books, found: &mut HashMap<Queue, Vec<u64>>, all: bool, when: &str) {
    let mut peer = Peer::connect(comet.broker);
    let mut unique = HashSet::new();
    for queue in queues() {
        let (topic, id) = (TOPICS[queue.0], queue.1);
        let before = found.remove(&queue).unwrap_or_default();
        let mut now = before.clone();
        now.truncate(if all { 0 } else { before.len().saturating_sub(LAST) });
        loop {
            let offset = now.len() as i64;
            let got = peer.ask(&pull(topic, id, offset).field("maxMsgNums", 1024));
            if got.code != 0 {
                assert_eq!((got.code, got.num("maxOffset")), (19, offset), "{when}: {topic}-{id}: {}", got.remark);
                break;
            }
            for (at, body) in got.messages() {
                assert_eq!(at, now.len() as i64, "{when}: hole or repeat in {topic}-{id}");
                now.push(hash(&body));
            }
        }
        assert!(now.iter().all(|hash| unique.insert(*hash)), "{when}: a message of {topic}-{id} is there twice");
        assert!(now.starts_with(&before), "{when}: {topic}-{id} had {} messages, now {}", before.len(), now.len());
        for (offset, hash) in books.messages.get(&queue).into_iter().flatten() {
            assert_eq!(now.get(*offset as usize), Some(hash), "{when}: {topic}-{id} lost its message {offset}");
        }
        if let Some((kept, sent)) = books.commits.get(&queue) {
            let offset = peer.ok(&committed("billing", topic, id)).num("offset");
            assert!(offset == *kept || offset == *sent, "{when}: {topic}-{id} committed {kept}, then {sent}: {offset}");
            assert!(offset <= now.len() as i64, "{when}: {topic}-{id}");
        }
        found.insert(queue, now);
    }
}

fn start(data: &std::path::Path) -> Comet {
    let limits = ["maxTransferCountOnMessageInMemory=1024", "maxTransferBytesOnMessageInMemory=1048576"];
    let disk = ["maxTransferCountOnMessageInDisk=1024", "maxTransferBytesOnMessageInDisk=1048576"];
    let mut args = vec!["--namesrv-port", "0", "--broker-port", "0"];
    limits.iter().chain(&disk).for_each(|pair| args.extend(["--set", *pair]));
    Comet::start_with(data, &args)
}

#[test]
fn acknowledged_messages_survive_kill_nine() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    let mut random = Random(seed);
    let (mut books, mut found) = (Books::default(), HashMap::new());
    let mut comet = start(&data);
    let mut peer = Peer::connect(comet.broker);
    TOPICS.iter().for_each(|topic| drop(peer.ok(&create_topic(topic, QUEUES, 6))));
    peer.ok(&Ask::new(200).body(r#"{"groupName":"billing"}"#));
    drop(peer);
    let rounds = std::env::var("COMET_TORTURE_ROUNDS").map_or(ROUNDS, |n| n.parse().expect("a number of rounds"));
    let all_queues: Vec<Queue> = queues().collect();
    let mut consumed = 0;
    for round in 0..rounds {
        let when = format!("seed {seed}, round {round}");
        let addr = comet.broker;
        let lives_for = Duration::from_millis(20 + random.below(230));
        std::thread::scope(|threads| {
            let began = Instant::now();
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|n| {
                    let random = Random(random.0.wrapping_mul(2 * n + 3) | 1);
                    threads.spawn(move || produce(Peer::connect(addr), random))
                })
                .collect();
            let found = &found;
            let consumers: Vec<_> = all_queues
                .chunks(all_queues.len() / CONSUMERS)
                .map(|of| threads.spawn(move || consume(Peer::connect(addr), of, found)))
                .collect();
            // The moment of the kill is what is random here.
            std::thread::sleep(lives_for.saturating_sub(began.elapsed()));
            comet.kill();
            for producer in producers {
                for (queue, offset, hash) in producer.join().unwrap() {
                    let before = books.messages.entry(queue).or_default().insert(offset, hash);
                    assert_eq!(before, None, "{when}: offset {offset} of {queue:?} was given twice");
                }
            }
            for (queue, Consumed { hashes, commit: (kept, sent) }) in
                consumers.into_iter().flat_map(|c| c.join().unwrap())
            {
                let before = books.commits.entry(queue).or_default();
                // Killed before the first answer of this round: the one before still stands.
                *before = (if kept == 0 { before.0 } else { kept }, if sent == 0 { before.1 } else { sent });
                consumed += hashes.len();
                let begin = found.get(&queue).map_or(0, Vec::len);
                for (offset, hash) in (begin as i64..).zip(hashes) {
                    let seen = books.messages.entry(queue).or_default().insert(offset, hash);
                    assert!(
                        seen.is_none_or(|seen| seen == hash),
                        "{when}: offset {offset} of {queue:?} has another body"
                    );
                }
            }
        });
        comet = start(&data);
        assert!(comet.took < READY, "{when}: ready after {:?}; its log:\n{}", comet.took, comet.log());
        check(&comet, &books, &mut found, (round + 1) % ALL_EACH == 0 || round + 1 == rounds, &when);
    }
    let acknowledged: usize = books.messages.values().map(HashMap::len).sum();
    assert!(acknowledged > 200 * rounds as usize, "only {acknowledged} messages were acknowledged");
    assert!(consumed > 100 * rounds as usize, "only {consumed} messages were consumed");
    eprintln!("{rounds} rounds, {acknowledged} messages, {consumed} of them consumed before a kill; seed {seed}");
    assert!(books.commits.values().all(|(kept, _)| *kept > 0), "a queue without a commit");
    assert!(comet.terminate().success());
}
