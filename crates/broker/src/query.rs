//! Query: QUERY_MESSAGE (12) by key, unique key or tag, VIEW_MESSAGE_BY_ID (33) by log offset. Both wait for the disk away
//! from the shard. Java: `QueryMessageProcessor`.
//!
//! Unlike Java's, an answer holds only messages that carry the key (the index knows hashes of it), and a unique key is found
//! whatever times are asked for: clients derive them from their own clock.

use std::rc::Rc;

use cometmq_store::{Found, KeyKind, Query};
use cometmq_wire::frame::Builder;
use cometmq_wire::headers::{QueryAnswer, QueryMessage, ViewMessage};
use cometmq_wire::{Frame, ResponseCode};

use crate::error::Reject;
use crate::shard::{After, Asker, BrokerShard, Step, blocking};

impl BrokerShard {
    pub(crate) fn query_message(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let header = QueryMessage::decode(&frame.head.ext)?;
        let settings = self.broker.settings.load();
        let (kind, asked) = match header.index_type.as_deref() {
            _ if header.unique_key == Some(true) => (KeyKind::Unique, settings.unique_query_max),
            Some("U") => (KeyKind::Unique, usize::try_from(header.max_num).unwrap_or(0)),
            Some("T") => (KeyKind::Tag, usize::try_from(header.max_num).unwrap_or(0)),
            _ => (KeyKind::Key, usize::try_from(header.max_num).unwrap_or(0)),
        };
        let max = if settings.query_enable { asked.min(settings.query_max) } else { 0 };
        let (topic, key) = (header.topic.into_owned(), header.key.into_owned());
        let (begin_ms, end_ms) = (header.begin_timestamp, header.end_timestamp);
        let (store, asker) = (self.broker.store.clone(), asker.clone());
        Ok(Step::Later(Box::pin(async move {
            let find = move || store.query(&Query { topic: &topic, key: &key, kind, max, begin_ms, end_ms });
            answer_query(&asker, &blocking(find).await?);
            Ok(After::Answered)
        })))
    }

    pub(crate) fn view_message(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>) -> Result<Step, Reject> {
        let offset = ViewMessage::decode(&frame.head.ext)?.offset;
        let (store, asker) = (self.broker.store.clone(), asker.clone());
        Ok(Step::Later(Box::pin(async move {
            let find = move || u64::try_from(offset).map_or(Ok(None), |at| store.message_at(at));
            let record = blocking(find).await?.ok_or_else(|| {
                Reject::new(ResponseCode::SYSTEM_ERROR, format!("can not find message by the offset, {offset}"))
            })?;
            asker.body(&mut asker.conn.out(), &record);
            Ok(After::Answered)
        })))
    }
}

fn answer_query(asker: &Asker, found: &Found) {
    if asker.oneway {
        return;
    }
    let (code, remark) = match found.records.is_empty() {
        false => (ResponseCode::SUCCESS, None),
        true => (ResponseCode::QUERY_NOT_FOUND, Some("can not find message, maybe time range not correct")),
    };
    let header = QueryAnswer::new(found.index_ms, found.index_at as i64);
    let mut out = asker.conn.out();
    let answer = Builder::response(&mut out, asker.kind, code, asker.opaque, remark).ext(|w| header.write(w));
    found.records.iter().fold(answer, |answer, record| answer.body(record)).finish();
}
