//! Bytes that cannot be cut into frames end their connection, after an answer in the protocol that they seem to be of, and
//! no other. Method: a connection for each kind of bytes, which reads up to the end of the stream; a sender on another
//! connection goes on meanwhile, and the broker counts each as a framing error.

mod support;

use std::time::Instant;

use support::*;

const FRAMING_ERRORS: &str = "comet.net.framingErrors";

struct Broken {
    name: &'static str,
    bytes: Vec<u8>,
    /// Whether these are the right last words.
    farewell: fn(&[u8]) -> bool,
}

/// One frame: SYSTEM_ERROR with a sentence.
fn says(last: &[u8], words: &[&str]) -> bool {
    let frames = frames(last);
    frames.len() == 1 && frames[0].code == 1 && words.iter().all(|w| frames[0].remark.contains(w))
}

fn table() -> Vec<Broken> {
    let behind = |prefix: &[u8]| [prefix, &[b'x'; 100]].concat();
    vec![
        Broken {
            name: "a frame over 16 MiB",
            bytes: behind(&16_777_217u32.to_be_bytes()),
            farewell: |last| says(last, &["frame length 16777217 is out of range", "RocketMQ remoting protocol"]),
        },
        Broken {
            name: "a negative length",
            bytes: behind(&(-5i32).to_be_bytes()),
            farewell: |last| says(last, &["frame length -5 is out of range"]),
        },
        Broken {
            name: "a length below that of any frame",
            bytes: behind(&3u32.to_be_bytes()),
            farewell: |last| says(last, &["frame length 3 is out of range"]),
        },
        Broken {
            name: "a header longer than its frame",
            bytes: behind(&[0, 0, 0, 20, 0, 0, 0, 17]),
            farewell: |last| says(last, &["header length 17 does not fit into a frame of 20 bytes"]),
        },
        Broken {
            name: "HTTP/1.1",
            bytes: b"GET /metrics HTTP/1.1\r\nHost: broker:10911\r\n\r\n".to_vec(),
            farewell: |last| {
                let text = String::from_utf8_lossy(last);
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len().to_string()).unwrap_or_default();
                text.starts_with("HTTP/1.1 400 Bad Request\r\n")
                    && text.contains(&format!("Content-Length: {body}\r\n"))
                    && text.contains("first bytes of HTTP, not of a RocketMQ")
            },
        },
        Broken {
            name: "HTTP/2",
            bytes: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
            farewell: |last| {
                let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
                let Some(goaway) = last.strip_prefix(&settings) else { return false };
                let len = goaway.len() - 9;
                goaway[..9] == [0, 0, len as u8, 7, 0, 0, 0, 0, 0]
                    && goaway[9..17] == [0, 0, 0, 0, 0, 0, 0, 0xd]
                    && String::from_utf8_lossy(&goaway[17..]).contains("first bytes of HTTP/2")
            },
        },
        Broken {
            name: "TLS",
            bytes: behind(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]),
            // A fatal alert: protocol_version.
            farewell: |last| last == [0x15, 3, 1, 0, 2, 2, 70],
        },
    ]
}

#[test]
fn each_gets_its_last_words_and_the_others_go_on() {
    let broker = TestBroker::start(&[]);
    let before = broker.counter(FRAMING_ERRORS);
    let steady = SteadySender::start(&broker, "steady");
    let table = table();
    for broken in &table {
        let began = Instant::now();
        let mut peer = broker.connect();
        peer.write(&broken.bytes);
        let last = peer.rest();
        let text = String::from_utf8_lossy(&last);
        assert!((broken.farewell)(&last), "{}: {text:?}", broken.name);
        assert!(began.elapsed() < LONG / 2, "{}", broken.name);
        steady.goes_on(5);
    }
    assert_eq!(broker.counter(FRAMING_ERRORS) - before, table.len() as u64);
    steady.stop();
    broker.stop();
}

/// What came before the broken bytes in one read is served first.
#[test]
fn good_frames_before_the_broken_bytes_are_answered() {
    let broker = TestBroker::start(&[]);
    let mut peer = broker.connect();
    peer.ok(&send("orders", 0, "first"));
    let mut bytes = send("orders", 0, "second").frame(71);
    bytes.extend(max_offset("orders", 1).frame(72));
    bytes.extend([0xff; 50]);
    peer.write(&bytes);
    let last: Vec<_> = frames(&peer.rest()).into_iter().map(|got| (got.opaque, got.code)).collect();
    let mut answers = last[..2].to_vec();
    answers.sort_unstable();
    assert_eq!((answers.as_slice(), last[2].1, last.len()), ([(71, 0), (72, 0)].as_slice(), 1, 3));
    assert_eq!(broker.connect().ok(&max_offset("orders", 0)).num("offset"), 2);
    broker.stop();
}

/// A peer that goes in the middle of a frame is no error worth counting, and leaves nothing behind.
#[test]
fn half_a_frame_and_then_nothing() {
    let broker = TestBroker::start(&[]);
    let before = broker.counter(FRAMING_ERRORS);
    let whole = send("orders", 0, vec![b'x'; 100_000]).frame(1);
    for cut in [1, 4, 7, 8, 20, 300, 50_000] {
        let mut peer = broker.connect();
        peer.write(&whole[..cut]);
        drop(peer);
    }
    // The counting connection is the only one left.
    wait_until("closed", || broker.counter("comet.net.connections") == 1);
    assert_eq!(broker.counter(FRAMING_ERRORS), before);
    broker.stop();
}
