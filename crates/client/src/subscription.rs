//! What a consumer wants of a topic. The broker filters by the hash of the tag, so different tags of one hash come
//! through; the exact comparison is made here. Java: `FilterAPI`, `PullAPIWrapper.processPullResult`.

use std::collections::BTreeSet;

use cometmq_wire::body::SubscriptionData;
use cometmq_wire::java_hash::hash_code;

use crate::Error;

/// Which messages of a topic are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubExpression {
    All,
    /// `A||B`: messages with one of these tags; `*` or empty = all.
    Tags(String),
}

impl SubExpression {
    /// As text, the way it travels.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Tags(tags) if !tags.trim().is_empty() => tags,
            _ => "*",
        }
    }

    /// The tags that are wanted; empty = all.
    pub(crate) fn tags(&self) -> BTreeSet<String> {
        if self.text() == "*" {
            return BTreeSet::new();
        }
        self.text().split("||").map(str::trim).filter(|t| !t.is_empty()).map(str::to_string).collect()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.text() == "*" || !self.tags().is_empty() {
            return Ok(());
        }
        Err(Error::Option { name: "subscription", value: self.text().to_string(), why: "no tag in it; expected A||B" })
    }

    pub(crate) fn data(&self, topic: &str, version: i64) -> SubscriptionData {
        let tags_set = self.tags();
        SubscriptionData {
            code_set: tags_set.iter().map(|t| hash_code(t)).collect(),
            sub_string: self.text().to_string(),
            sub_version: version,
            tags_set,
            topic: topic.to_string(),
            ..SubscriptionData::default()
        }
    }
}

/// Whether a message with this tag is wanted.
pub(crate) fn wants(tags: &BTreeSet<String>, tag: Option<&str>) -> bool {
    tags.is_empty() || tag.is_some_and(|t| tags.contains(t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_split_as_java_does() {
        let tags = |text: &str| SubExpression::Tags(text.into());
        assert_eq!(tags("TA || TB||").tags(), BTreeSet::from(["TA".to_string(), "TB".to_string()]));
        assert_eq!((tags("").text(), tags("*").text(), SubExpression::All.text()), ("*", "*", "*"));
        assert!(tags("||").check().is_err() && tags("").check().is_ok());
        let data = tags("TA||TB").data("t", 7);
        assert_eq!((data.code_set, data.sub_string.as_str()), (BTreeSet::from([2669, 2670]), "TA||TB"));
        assert_eq!((data.sub_version, data.expression_type.as_str()), (7, "TAG"));
    }

    #[test]
    fn only_the_exact_tag_is_wanted() {
        // These two have one hash: the broker cannot tell them apart.
        let tags = SubExpression::Tags("Aa".into()).tags();
        assert!(wants(&tags, Some("Aa")) && !wants(&tags, Some("BB")) && !wants(&tags, None));
        assert!(wants(&BTreeSet::new(), None));
    }
}
