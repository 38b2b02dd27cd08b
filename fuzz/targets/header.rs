//! One header, in either serialisation, read as every request and answer that the servers know. Input: the serialize type,
//! the header. Checked: what was read as a type is read the same after it was written, in both serialisations.
#![no_main]

use cometmq_fuzz::bounded;
use cometmq_wire::frame::{Builder, Decoded, FRAME_LENGTH_MAX, decode};
use cometmq_wire::header::{ExtFields, ExtWriter, Language, SerializeType};
use cometmq_wire::{RequestCode, headers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&kind, header)) = input.split_first() else { return };
    let mut frame = (header.len() as u32 + 4).to_be_bytes().to_vec();
    frame.extend((header.len() as u32 | u32::from(kind) << 24).to_be_bytes());
    frame.extend(header);
    let decoded = bounded(frame.len(), 1, || decode(&frame, FRAME_LENGTH_MAX));
    let Ok(Decoded::Frame { len, frame: parsed }) = decoded else { panic!("a whole frame: {decoded:?}") };
    assert_eq!(len, frame.len());
    match parsed {
        Ok(parsed) => {
            bounded(frame.len(), 1, || drop(parsed.head.remark()));
            every_type(frame.len(), &parsed.head.ext);
        }
        Err(bad) => drop(bad.error.to_string()),
    }
});

/// Reads the fields as each of the types named, and those again that could be read, from what they write.
macro_rules! read_as {
    ($len:ident, $ext:ident: $($header:ident)*) => {$(
        // A text that holds escapes is copied; a field that stands twice, once more until the second replaces it.
        match bounded($len, 3, || headers::$header::decode($ext)) {
            Ok(header) => for kind in [SerializeType::Json, SerializeType::Compact] {
                written(kind, |out| header.write(out), |ext| assert_eq!(headers::$header::decode(ext).as_ref(), Ok(&header)));
            },
            Err(error) => drop(error.to_string()),
        }
    )*};
}

fn every_type(len: usize, ext: &ExtFields<'_>) {
    read_as!(len, ext: SendV2 SendV1 SendAnswer Pull PullAnswer SendBack ResetOffset ResetClientOffset ProducerGroup
        QueryConsumerOffset UpdateConsumerOffset Queue SearchOffset OffsetAnswer TimestampAnswer CreateTopic Topic
        DeleteTopicInNameServer DeleteGroup Group ConsumerGroup ConsumeStats RunningInfo AllGroups AllGroupsAnswer
        UnregisterClient RegisterBroker RegisterBrokerAnswer BrokerIdentity DataVersionAnswer BrokerHeartbeat BrokerName
        WipeWritePermAnswer AddWritePermAnswer BrokerInCluster Cluster KvConfig KvConfigAnswer BrokerConfigAnswer);
}

fn written(kind: SerializeType, write: impl FnOnce(&mut ExtWriter<'_>), check: impl FnOnce(&ExtFields<'_>)) {
    let mut out = Vec::new();
    Builder::request(&mut out, kind, RequestCode(10), 1, 0, Language::RUST, 513).ext(write).finish();
    match decode(&out, FRAME_LENGTH_MAX) {
        Ok(Decoded::Frame { frame: Ok(frame), .. }) => check(&frame.head.ext),
        other => panic!("{kind:?}: {other:?}"),
    }
}
