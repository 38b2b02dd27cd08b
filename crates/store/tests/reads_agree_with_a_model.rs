//! Whatever is appended to whichever queue, in batches of any size across segments and queue files, with stops and kills in
//! between: every read gives what a list in memory would.

mod support;

use cometmq_store::disk::Faulty;
use cometmq_store::{Batch, FlushMode, Limits, Status, Store, Wait};
use cometmq_wire::record::Record;
use proptest::prelude::*;
use support::{LONG, draft, drain, limits, open};

const QUEUES: [(&str, i32); 3] = [("a", 0), ("a", 1), ("b", 2)];

#[derive(Debug, Clone)]
enum Step {
    /// (queue, body length), all in one batch.
    Append(Vec<(usize, usize)>),
    /// Queue, where (a share of its end, a little beyond it too), count, bytes.
    Read(usize, f64, usize, usize),
    WaitForFiles,
    Stop,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![4 => 0..300usize, 1 => 300..3900usize];
    prop_oneof![
        6 => prop::collection::vec((0..QUEUES.len(), size), 1..12).prop_map(Step::Append),
        6 => (0..QUEUES.len(), 0.0..1.2, 1..20usize, 0..3000usize).prop_map(|(q, at, n, b)| Step::Read(q, at, n, b)),
        1 => Just(Step::WaitForFiles),
        1 => Just(Step::Stop),
        1 => Just(Step::Kill),
    ]
}

type Model = [Vec<Vec<u8>>; 3];

fn append(store: &Store, flush: FlushMode, model: &mut Model, items: &[(usize, usize)]) {
    let mut batch = Batch::default();
    for (q, len) in items {
        let (topic, id) = QUEUES[*q];
        let queue = store.queue(topic, id).unwrap();
        let body: Vec<u8> = (0..*len).map(|n| (n + model[*q].len()) as u8).collect();
        batch.push(&draft(topic, &body, "TAGS\u{1}x\u{2}"), &queue).unwrap();
        model[*q].push(body);
    }
    store.append(&mut batch).unwrap();
    let mut next = model.clone().map(|bodies| bodies.len() as i64);
    for (n, (q, _)) in items.iter().enumerate().rev() {
        next[*q] -= 1;
        assert_eq!(batch.placed(n).unwrap().queue_offset, next[*q]);
    }
    if flush == FlushMode::Sync {
        assert!(store.wait_durable(batch.placed(batch.len() - 1).unwrap().log_end, LONG));
    }
}

fn read(store: &Store, model: &Model, q: usize, at: f64, count: usize, bytes_max: usize) {
    let bodies = &model[q];
    let queue = store.queue(QUEUES[q].0, QUEUES[q].1).unwrap();
    let end = bodies.len() as i64;
    let from = (end as f64 * at) as i64;
    let limits = Limits { hot_bytes: bytes_max, ..limits(count) };
    let read = store.read(&queue, from, &limits, Wait::Yes, &|_| true).unwrap();
    assert_eq!((read.min, read.end), (0, end));
    let status = match from {
        _ if end == 0 => Status::Empty,
        _ if from == end => Status::AtEnd,
        _ if from > end => Status::BeyondEnd,
        _ => Status::Found,
    };
    assert_eq!(read.status, status);
    if status != Status::Found {
        assert_eq!((read.next, read.records.len()), (end, 0));
        return;
    }
    let got: Vec<&[u8]> = read.records.iter().map(|r| Record::parse(r).unwrap().body()).collect();
    assert_eq!(read.next, from + got.len() as i64);
    assert_eq!(got, bodies[from as usize..read.next as usize]);
    // It may stop before the limits: at the end of a queue file, or where entries are in memory only.
    let total: usize = read.records.iter().map(|r| r.len()).sum();
    assert!(got.len() <= count && (got.len() == 1 || total <= bytes_max));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_agree_with_a_model(sync: bool, steps in prop::collection::vec(step(), 1..60)) {
        let flush = if sync { FlushMode::Sync } else { FlushMode::Async };
        let disk = Faulty::healthy();
        let mut model = Model::default();
        let mut store = open(&disk, flush).unwrap();
        for step in steps {
            match step {
                Step::Append(items) => append(&store, flush, &mut model, &items),
                Step::Read(q, at, count, bytes) => read(&store, &model, q, at, count, bytes),
                Step::WaitForFiles => support::settle(&store),
                Step::Stop | Step::Kill => {
                    if matches!(step, Step::Stop) {
                        store.close().unwrap();
                    }
                    drop(store);
                    store = open(&disk, flush).unwrap();
                }
            }
        }
        for ((topic, id), bodies) in QUEUES.into_iter().zip(&model) {
            prop_assert_eq!(&drain(&store, topic, id), bodies);
        }
    }
}
