//! A request's body within its limits becomes values that take no more memory than the largest frame has bytes, however it
//! is made up.
//! Method: bodies of the kinds that grow most when they are read, as large as the limits let them be; the peak of the
//! memory of this process, which does nothing else.

use cometmq_wire::body::{HeartbeatData, LockBatchRequestBody, SubscriptionGroupList, TopicList};
use cometmq_wire::frame::FRAME_LENGTH_MAX;
use cometmq_wire::json::{self, REQUEST_BYTES_MAX, REQUEST_VALUES_MAX};
use serde::de::DeserializeOwned;

/// What the system counts in pages, and the allocator keeps beside what it hands out.
const SLACK: u64 = 2 << 20;

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn peak<T: DeserializeOwned>(body: &str) -> u64 {
    json::check_request(body.as_bytes()).unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    drop(json::from_slice::<T>(body.as_bytes()));
    status("VmHWM:").saturating_sub(before)
}

/// `open`, as many of `item` as both limits allow, `close`.
fn full(open: &str, item: impl Fn(usize) -> String, close: &str) -> String {
    let mut body = open.to_string();
    let mut values = open.matches(['{', '[']).count();
    for n in 0.. {
        let item = item(n);
        values += item.matches(['{', '[']).count();
        if body.len() + item.len() + close.len() + 1 > REQUEST_BYTES_MAX || values > REQUEST_VALUES_MAX {
            break;
        }
        if n > 0 {
            body.push(',');
        }
        body.push_str(&item);
    }
    body + close
}

#[test]
fn whatever_it_is_made_of() {
    let lists = ["[", "[[", "[{\"\":"].map(|open| full(open, |_| "0".to_string(), "]"));
    let peaks = [
        ("groups", peak::<SubscriptionGroupList>(&full("{\"groupConfigList\":[", |_| "{}".into(), "]}"))),
        ("a heartbeat", peak::<HeartbeatData>(&full("{\"consumerDataSet\":[", |_| "{}".into(), "]}"))),
        ("locks", peak::<LockBatchRequestBody>(&full("{\"mqSet\":[", |_| "{}".into(), "]}"))),
        ("topics", peak::<TopicList>(&full("{\"topicList\":[", |n| format!("\"{n:x}\""), "]}"))),
        ("empty names", peak::<TopicList>(&full("{\"topicList\":[", |_| "\"\"".into(), "]}"))),
        // Read once more, leniently, when it is small enough for that.
        ("what does not fit", peak::<TopicList>(&full("{\"topicList\":7,\"x\":[", |_| "{\"\":0}".into(), "]}"))),
        ("numbers", lists.iter().map(|list| peak::<TopicList>(list)).max().unwrap()),
    ];
    for (what, peak) in peaks {
        assert!(peak <= FRAME_LENGTH_MAX as u64 + SLACK, "{what}: {} KiB", peak >> 10);
    }
}

#[test]
fn what_is_beyond_either_limit_is_refused_with_the_figures() {
    let says = |body: String| json::check_request(body.as_bytes()).unwrap_err().to_string();
    assert_eq!(says(" ".repeat(REQUEST_BYTES_MAX + 1)), "body: it has 1048577 bytes, limit 1048576");
    assert_eq!(says("[{".repeat(8193)), "body: it has 16386 objects and lists, limit 16384");
}
