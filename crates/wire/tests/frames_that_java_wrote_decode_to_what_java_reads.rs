//! Frames: each one that Java's netty encoder wrote decodes here to the fields that Java's decoder reads from it. Written
//! again from those fields, in the order that the frame has them, it is the same byte for byte; the typed headers read
//! every field of the requests and answers that they stand for, and write all of them.

mod support;

use std::collections::BTreeMap;

use cometmq_wire::frame::{Builder, Decoded, FRAME_LENGTH_MAX, Frame, decode};
use cometmq_wire::header::{ExtFields, ExtWriter, SerializeType};
use cometmq_wire::record::batch_items;
use cometmq_wire::{DecodeError, RequestCode, ResponseCode, headers};
use serde_json::{Map, Value, json};
use support::{golden, hex, hex_or_null, unhex};

fn one(bytes: &[u8]) -> Frame<'_> {
    match decode(bytes, FRAME_LENGTH_MAX) {
        Ok(Decoded::Frame { len, frame: Ok(frame) }) if len == bytes.len() => frame,
        other => panic!("{other:?}"),
    }
}

/// What we read, in the form of the facts. A ROCKETMQ header has no null: Java reads an empty text as one.
fn read(frame: &Frame<'_>) -> Value {
    let head = &frame.head;
    let compact = head.kind == SerializeType::Compact;
    let text = |value: &str| if compact && value.is_empty() { Value::Null } else { value.into() };
    let ext: Map<String, Value> = head.ext.iter().map(|(k, v)| (k.into_owned(), text(&v))).collect();
    json!({
        "serialize": if compact { "ROCKETMQ" } else { "JSON" },
        "code": head.code,
        "language": head.language.name(),
        "version": head.version,
        "opaque": head.opaque,
        "flag": head.flag,
        "response": head.is_response(),
        "oneway": head.is_oneway(),
        "remark": head.remark().map_or(Value::Null, |r| text(&r)),
        "extFields": if ext.is_empty() { Value::Null } else { Value::Object(ext) },
        "body": hex_or_null(frame.body),
    })
}

fn write_again(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let head = &frame.head;
    let remark = head.remark();
    let builder = if head.is_response() {
        Builder::response(&mut out, head.kind, ResponseCode(head.code), head.opaque, remark.as_deref())
    } else {
        let code = RequestCode(head.code);
        Builder::request(&mut out, head.kind, code, head.opaque, head.flag, head.language, head.version)
    };
    builder.ext(|w| head.ext.iter().for_each(|(k, v)| w.str(&k, &v))).body(frame.body).finish();
    out
}

#[test]
fn they_decode_to_the_facts_and_are_written_the_same() {
    let lines = golden("frames.hex");
    assert_eq!(lines.len(), 87);
    for line in lines {
        let bytes = unhex(&line.data);
        let frame = one(&bytes);
        assert_eq!(read(&frame), line.facts, "{}", line.name);
        assert_eq!(hex(&write_again(&frame)), line.data, "{}", line.name);
    }
}

#[test]
fn a_frame_that_is_not_whole_says_how_much_it_needs() {
    for line in golden("frames.hex") {
        let bytes = unhex(&line.data);
        for cut in [8, 9, bytes.len() - 1].into_iter().filter(|cut| *cut < bytes.len()) {
            match decode(&bytes[..cut], FRAME_LENGTH_MAX) {
                Ok(Decoded::Incomplete { need }) => assert_eq!(need, bytes.len(), "{} cut to {cut}", line.name),
                other => panic!("{} cut to {cut}: {other:?}", line.name),
            }
        }
    }
}

/// Reads the fields with a typed header and writes them into a frame again; returns what that frame has.
fn through<'a>(
    ext: ExtFields<'a>,
    again: impl FnOnce(&ExtFields<'a>, &mut ExtWriter<'_>) -> Result<(), DecodeError>,
) -> BTreeMap<String, String> {
    let mut out = Vec::new();
    let kind = if matches!(ext, ExtFields::Compact(_)) { SerializeType::Compact } else { SerializeType::Json };
    Builder::response(&mut out, kind, ResponseCode(0), 0, None).ext(|w| again(&ext, w).unwrap()).finish();
    fields(one(&out).head.ext)
}

fn fields(ext: ExtFields<'_>) -> BTreeMap<String, String> {
    ext.iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect()
}

#[test]
fn typed_headers_have_every_field() {
    macro_rules! again {
        ($header:ident) => {
            |ext, w| headers::$header::decode(ext).map(|h| h.write(w))
        };
    }
    let mut seen = 0;
    for line in golden("frames.hex") {
        let bytes = unhex(&line.data);
        let ext = one(&bytes).head.ext;
        let name = line.name.split('.').next().unwrap_or_default();
        let ours = match name {
            "send-v1" => through(ext, again!(SendV1)),
            "send-v2" | "send-v2-required-fields-only" | "send-batch" => through(ext, again!(SendV2)),
            "send-ok" | "send-ok-with-transaction" | "send-flush-timeout" => through(ext, again!(SendAnswer)),
            "pull-stored-subscription" | "pull-tags" | "pull-sql" => through(ext, again!(Pull)),
            "pull-found" | "pull-not-found" | "pull-offset-moved" => through(ext, again!(PullAnswer)),
            "commit-oneway" => through(ext, again!(UpdateConsumerOffset)),
            "route" | "route-standard-json" => through(ext, again!(Topic)),
            _ => continue,
        };
        let mut javas = fields(ext);
        if name.starts_with("pull-") {
            javas.remove("bname"); // Routing inside of Java's client library; no broker reads it.
        }
        assert_eq!(ours, javas, "{}", line.name);
        seen += 1;
    }
    assert_eq!(seen, 41);
}

#[test]
fn the_messages_of_a_batch_come_apart_and_together_again() {
    for line in golden("frames.hex").iter().filter(|l| l.name.starts_with("send-batch")) {
        let bytes = unhex(&line.data);
        let body = one(&bytes).body;
        let items: Vec<_> = batch_items(body).map(Result::unwrap).collect();
        assert_eq!(items.len(), 3, "{}", line.name);
        let mut again = Vec::new();
        items.iter().for_each(|i| i.encode(&mut again));
        assert_eq!(hex(&again), hex(body), "{}", line.name);
    }
}
