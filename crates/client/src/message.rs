//! A message to send, and the checks that need no network.
//! Java: `Message`, `Validators.checkMessage`.

use bytes::Bytes;
use cometmq_wire::{names, properties};

use crate::Error;

/// A message to send: a topic, a body that is not empty, and properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    topic: String,
    body: Bytes,
    flag: i32,
    wait_store: bool,
    properties: Vec<(String, String)>,
}

impl Message {
    pub fn new(topic: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), body: body.into(), flag: 0, wait_store: true, properties: Vec::new() }
    }

    /// What subscriptions filter by; one tag.
    pub fn tags(self, tag: &str) -> Self {
        self.property(properties::TAGS, tag)
    }

    /// Words that the message can be looked up by; none may contain a space.
    pub fn keys<K: AsRef<str>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        let mut text = String::new();
        for key in keys {
            if !text.is_empty() {
                text.push(properties::KEY_SEPARATOR);
            }
            text.push_str(key.as_ref());
        }
        self.property(properties::KEYS, &text)
    }

    /// Delivery after a delay level of the broker: 1 = 1 s, 2 = 5 s, 3 = 10 s, 4 = 30 s, 5 = 1 min …
    pub fn delay_level(self, level: u8) -> Self {
        self.property(properties::DELAY, &level.to_string())
    }

    /// Any property. Names that RocketMQ reserves (`DELAY`, `UNIQ_KEY` …) have their effect at the broker. An empty value
    /// removes the property.
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.retain(|(n, _)| n != name);
        if !value.is_empty() {
            self.properties.push((name.to_string(), value.to_string()));
        }
        self
    }

    /// A number for the application's use; the broker keeps it.
    pub fn flag(mut self, flag: i32) -> Self {
        self.flag = flag;
        self
    }

    /// `false`: the broker may answer before the message is flushed or replicated. Default `true`.
    pub fn wait_store(mut self, wait: bool) -> Self {
        self.wait_store = wait;
        self
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub(crate) fn flag_value(&self) -> i32 {
        self.flag
    }

    pub(crate) fn waits_for_store(&self) -> bool {
        self.wait_store
    }

    /// The value of a property, if it was set.
    pub fn find_property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn is_delayed(&self) -> bool {
        use properties::{DELAY, TIMER_DELAY_MS, TIMER_DELAY_SEC, TIMER_DELIVER_MS};
        [DELAY, TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS].iter().any(|n| self.find_property(n).is_some())
    }

    /// What is wrong with it, before anything is sent.
    pub(crate) fn check(&self, body_bytes_max: usize) -> Result<(), Error> {
        names::check_topic(&self.topic)?;
        if names::is_send_forbidden(&self.topic) {
            return Err(names::NameError::SendForbidden(self.topic.clone()).into());
        }
        let refuse = |why: String| Err(Error::Message { topic: self.topic.clone(), why });
        if self.body.is_empty() {
            return refuse("the message body length is zero".to_string());
        }
        if self.body.len() > body_bytes_max {
            let len = self.body.len();
            return refuse(format!("the message body size {len} is over max value, MAX: {body_bytes_max}"));
        }
        for (name, value) in &self.properties {
            if name.is_empty() || !properties::is_legal(name) || !properties::is_legal(value) {
                return refuse(format!("property {name:?} = {value:?} is empty or has U+0001 or U+0002 in it"));
            }
        }
        Ok(())
    }

    /// The properties as they travel, with `UNIQ_KEY` (the message's own, or `unique_id`) and `WAIT`. Also returns the id.
    pub(crate) fn encode_properties(&self, unique_id: impl FnOnce() -> String) -> Result<(String, String), Error> {
        let mut text = String::with_capacity(96);
        for (name, value) in &self.properties {
            if name != properties::UNIQ_KEY && name != properties::WAIT {
                properties::push(&mut text, name, value);
            }
        }
        let id = self.find_property(properties::UNIQ_KEY).map_or_else(unique_id, str::to_string);
        properties::push(&mut text, properties::UNIQ_KEY, &id);
        properties::push(&mut text, properties::WAIT, if self.wait_store { "true" } else { "false" });
        if text.len() > properties::LEN_MAX {
            let why = format!("the properties take {} bytes, MAX: {}", text.len(), properties::LEN_MAX);
            return Err(Error::Message { topic: self.topic.clone(), why });
        }
        Ok((text, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(message: &Message) -> String {
        message.check(10).unwrap_err().to_string()
    }

    #[test]
    fn wrong_messages_are_refused_without_network() {
        let message = |topic: &str, body: &'static str| Message::new(topic, body);
        assert!(message("t", "0123456789").check(10).is_ok());
        assert_eq!(why(&message("t", "")), "message for topic t: the message body length is zero");
        let long = "message for topic t: the message body size 11 is over max value, MAX: 10";
        assert_eq!(why(&message("t", "0123456789a")), long);
        assert_eq!(why(&message("", "x")), "The specified topic is blank.");
        assert_eq!(
            why(&message("SCHEDULE_TOPIC_XXXX", "x")),
            "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."
        );
        assert!(why(&message("t", "x").property("a\u{1}", "b")).contains("U+0001"));
        let big = message("t", "x").property("p", &"v".repeat(40_000));
        assert!(big.encode_properties(|| "ID".into()).unwrap_err().to_string().contains("MAX: 32767"));
    }

    #[test]
    fn properties_carry_an_id_and_wait() {
        let message = Message::new("t", "x").tags("A").tags("B").keys(["k1", "k2"]).property("gone", "");
        let (text, id) = message.encode_properties(|| "ID".into()).unwrap();
        assert_eq!(text, "TAGS\u{1}B\u{2}KEYS\u{1}k1 k2\u{2}UNIQ_KEY\u{1}ID\u{2}WAIT\u{1}true\u{2}");
        assert_eq!(id, "ID");
        let own = Message::new("t", "x").property("UNIQ_KEY", "MINE").wait_store(false);
        let (text, id) = own.encode_properties(|| unreachable!("it has an id")).unwrap();
        assert_eq!((text.as_str(), id.as_str()), ("UNIQ_KEY\u{1}MINE\u{2}WAIT\u{1}false\u{2}", "MINE"));
    }

    #[test]
    fn delayed_messages_are_known() {
        assert!(Message::new("t", "x").delay_level(3).is_delayed());
        assert!(Message::new("t", "x").property("TIMER_DELAY_SEC", "1").is_delayed());
        assert!(!Message::new("t", "x").is_delayed());
    }
}
