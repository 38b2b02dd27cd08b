//! Configuration: the KV table (100, 101, 102, 219) and the name server's own keys (318).

use cometmq_wire::header::ExtFields;
use cometmq_wire::headers::{KvConfig, KvConfigAnswer};
use cometmq_wire::{DecodeError, Frame, ResponseCode, json};

use super::{State, Step};
use crate::answer::{Answer, Reject};

/// Bytes of a change of the configuration: all keys together have some thousands. A line of two bytes becomes strings and
/// places for them of a hundred times its length.
const UPDATE_MAX: usize = 64 << 10;

pub(super) fn put_kv(ext: &ExtFields<'_>) -> Result<Step, Reject> {
    let header = KvConfig::decode(ext)?;
    let namespace = header.namespace.into_owned();
    let key = header.key.ok_or(DecodeError::MissingField { field: "key" })?.into_owned();
    let value = header.value.ok_or(DecodeError::MissingField { field: "value" })?.into_owned();
    Ok(Step::Store(Box::new(|state| state.kv.put(namespace, key, value).map(|()| Answer::default()))))
}

pub(super) fn delete_kv(ext: &ExtFields<'_>) -> Result<Step, Reject> {
    let header = KvConfig::decode(ext)?;
    let namespace = header.namespace.into_owned();
    let key = header.key.ok_or(DecodeError::MissingField { field: "key" })?.into_owned();
    Ok(Step::Store(Box::new(move |state| state.kv.delete(&namespace, &key).map(|()| Answer::default()))))
}

pub(super) fn kv(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let header = KvConfig::decode(ext)?;
    let key = header.key.ok_or(DecodeError::MissingField { field: "key" })?;
    let value = state.kv.value(&header.namespace, &key).ok_or_else(|| {
        let remark = format!("No config item, Namespace: {} Key: {key}", header.namespace);
        Reject::new(ResponseCode::QUERY_NOT_FOUND, remark)
    })?;
    let fields = KvConfigAnswer::new(Some(value.into()));
    Ok(Answer::fields(move |out| fields.write(out)))
}

pub(super) fn kv_list(state: &State, ext: &ExtFields<'_>) -> Result<Answer, Reject> {
    let header = KvConfig::decode(ext)?;
    let table = state.kv.namespace(&header.namespace).ok_or_else(|| {
        let remark = format!("No config item, Namespace: {}", header.namespace);
        Reject::new(ResponseCode::QUERY_NOT_FOUND, remark)
    })?;
    Ok(Answer::body(json::to_fastjson(&table)))
}

pub(super) fn update(frame: &Frame<'_>) -> Result<Step, Reject> {
    if frame.body.len() > UPDATE_MAX {
        let remark = format!("the body has {} bytes, limit {UPDATE_MAX}", frame.body.len());
        return Err(Reject::system_error(remark));
    }
    let text = std::str::from_utf8(frame.body).map_err(|_| Reject::system_error("string2Properties error"))?;
    let text = text.to_owned();
    Ok(Step::Store(Box::new(move |state| {
        if !text.is_empty() {
            state.settings.update(&text)?;
        }
        Ok(Answer::default())
    })))
}
