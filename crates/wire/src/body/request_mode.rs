//! Whether a group's consumers pull queues they own or pop from queues they share.
//!
//! Java     `MessageRequestMode`, `SetMessageRequestModeRequestBody`, `MessageRequestModeSerializeWrapper`

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

java_enum! {
    /// How the consumers of a group get messages of a topic.
    MessageRequestMode {
        #[default]
        Pull = "PULL",
        Pop = "POP",
    }
}

/// SET_MESSAGE_REQUEST_MODE (401).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SetMessageRequestModeRequestBody {
    pub consumer_group: String,
    pub mode: MessageRequestMode,
    /// Queues that each popping client shares; 0 means all, others are shared by this many clients.
    pub pop_share_queue_num: i32,
    pub topic: String,
}

/// `config/messageRequestMode.json`, answer to 402: topic → group → mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageRequestModeTable {
    pub message_request_mode_map: BTreeMap<String, BTreeMap<String, SetMessageRequestModeRequestBody>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::testing::round_trip;

    #[test]
    fn reads_and_writes_javas_text() {
        let table: MessageRequestModeTable = round_trip(
            r#"{"messageRequestModeMap":{"s":{"s":{"consumerGroup":"s","mode":"PULL","popShareQueueNum":1,"topic":"s"}}}}"#,
        );
        assert_eq!(table.message_request_mode_map["s"]["s"].mode, MessageRequestMode::Pull);
    }
}
