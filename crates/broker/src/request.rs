//! Request code → handler. What is not here gets REQUEST_CODE_NOT_SUPPORTED.

use std::rc::Rc;

use cometmq_store::Batch;
use cometmq_wire::{Frame, RequestCode, ResponseCode, json};

use crate::error::Reject;
use crate::shard::{Asker, BrokerShard, FAST_PORT, Step};

impl BrokerShard {
    pub(crate) fn handle(self: &Rc<Self>, asker: &Asker, frame: &Frame<'_>, batch: &mut Batch) -> Result<Step, Reject> {
        let code = RequestCode(frame.head.code);
        match code {
            RequestCode::SEND_MESSAGE_V2 | RequestCode::SEND_MESSAGE | RequestCode::SEND_BATCH_MESSAGE => {
                return self.send(asker, frame, batch);
            }
            RequestCode::PULL_MESSAGE | RequestCode::LITE_PULL_MESSAGE => {
                if asker.conn.role() == FAST_PORT {
                    return Err(Reject::wrong_port(code.0));
                }
                return self.pull(asker, frame);
            }
            _ => {}
        }
        json::check_request(frame.body)
            .map_err(|error| Reject::new(ResponseCode::SYSTEM_ERROR, format!("{code}: {error}")))?;
        let out = &mut asker.conn.out();
        match code {
            RequestCode::QUERY_CONSUMER_OFFSET => self.query_consumer_offset(asker, frame, out),
            RequestCode::UPDATE_CONSUMER_OFFSET => self.update_consumer_offset(asker, frame, out),
            RequestCode::GET_CONSUMER_LIST_BY_GROUP => self.consumer_list(asker, frame, out),
            RequestCode::GET_CONSUMER_CONNECTION_LIST => self.consumer_connections(asker, frame, out),
            RequestCode::GET_CONSUME_STATS => self.consume_stats(asker, frame),
            RequestCode::CONSUMER_SEND_MSG_BACK => self.send_back(asker, frame, out),
            RequestCode::INVOKE_BROKER_TO_RESET_OFFSET => self.reset_offset(asker, frame),
            RequestCode::GET_PRODUCER_CONNECTION_LIST => self.producer_connections(asker, frame, out),
            RequestCode::SEARCH_OFFSET_BY_TIMESTAMP => self.search_offset(asker, frame),
            RequestCode::QUERY_MESSAGE => self.query_message(asker, frame),
            RequestCode::VIEW_MESSAGE_BY_ID => self.view_message(asker, frame),
            RequestCode::GET_MAX_OFFSET => self.max_offset(asker, frame, out),
            RequestCode::GET_MIN_OFFSET => self.min_offset(asker, frame, out),
            RequestCode::GET_EARLIEST_MSG_STORETIME => self.earliest_store_time(asker, frame),
            RequestCode::HEART_BEAT => self.heartbeat(asker, frame, out),
            RequestCode::UNREGISTER_CLIENT => self.unregister_client(asker, frame, out),
            RequestCode::CHECK_CLIENT_CONFIG => self.check_client_config(asker, frame, out),
            RequestCode::LOCK_BATCH_MQ => self.lock_queues(asker, frame, out),
            RequestCode::UNLOCK_BATCH_MQ => self.unlock_queues(asker, frame, out),
            RequestCode::UPDATE_AND_CREATE_TOPIC => self.update_topic(asker, frame),
            RequestCode::GET_TOPIC_CONFIG => self.topic_config(asker, frame, out),
            RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => self.update_group(frame),
            RequestCode::GET_SUBSCRIPTIONGROUP_CONFIG => self.group_config(asker, frame, out),
            RequestCode::GET_ALL_TOPIC_CONFIG => self.all_topics(asker, out),
            RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG => self.all_groups(asker, out),
            RequestCode::GET_TOPIC_STATS_INFO => self.topic_stats(asker, frame),
            RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_BROKER => self.system_topics(asker, out),
            RequestCode::DELETE_TOPIC_IN_BROKER => self.delete_topic(asker, frame),
            RequestCode::DELETE_SUBSCRIPTIONGROUP => self.delete_group(asker, frame),
            RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE => self.clean_expired_queues(asker),
            RequestCode::CLEAN_UNUSED_TOPIC => self.clean_unused_topics(asker),
            RequestCode::DELETE_EXPIRED_COMMITLOG => self.delete_expired_log(asker, out),
            RequestCode::GET_BROKER_CONFIG => self.broker_config(asker, out),
            RequestCode::GET_BROKER_RUNTIME_INFO => self.runtime_info(asker),
            other => Err(Reject::unsupported(other.0)),
        }
    }
}
