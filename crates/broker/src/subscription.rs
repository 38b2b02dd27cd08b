//! What a consumer wants of a topic, in the form that a read needs: the set of tag codes.
//! Java: `FilterAPI.build`, `ExpressionMessageFilter.isMatchedByConsumeQueue`.

use std::sync::Arc;

use cometmq_wire::body::SubscriptionData;
use cometmq_wire::java_hash::tags_code;

use crate::error::Reject;

/// Tags of one expression. Far above what a person writes.
const TAGS_MAX: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TagFilter {
    All,
    /// Sorted codes.
    Codes(Arc<[i64]>),
}

impl TagFilter {
    /// Parses `A || B`; `*` and an empty text mean all.
    pub(crate) fn parse(expression: &str) -> Result<Self, Reject> {
        let expression = expression.trim();
        if expression.is_empty() || expression == "*" {
            return Ok(Self::All);
        }
        let tags = expression.split("||").map(str::trim).filter(|t| !t.is_empty());
        let mut codes: Vec<i64> = tags.map(tags_code).collect();
        if codes.is_empty() || codes.len() > TAGS_MAX {
            let code = cometmq_wire::ResponseCode::SUBSCRIPTION_PARSE_FAILED;
            let what =
                format!("parse the consumer's subscription failed: {} tags, expected 1 to {TAGS_MAX}", codes.len());
            return Err(Reject::new(code, what));
        }
        codes.sort_unstable();
        codes.dedup();
        Ok(Self::Codes(codes.into()))
    }

    pub(crate) fn matches(&self, code: i64) -> bool {
        match self {
            Self::All => true,
            Self::Codes(codes) => codes.binary_search(&code).is_ok(),
        }
    }
}

/// TAG, or nothing said. Java: `ExpressionType.isTagType`.
pub(crate) fn is_tag_type(expression_type: &str) -> bool {
    expression_type.is_empty() || expression_type == "TAG"
}

/// Java's words when property filters are off; they are not built yet.
pub(crate) fn refuse_expression(expression_type: &str) -> Reject {
    Reject::new(
        cometmq_wire::ResponseCode::SYSTEM_ERROR,
        format!("The broker does not support consumer to filter message by {expression_type}"),
    )
}

/// A subscription of a group, from its heartbeat.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) data: SubscriptionData,
    /// `None`: not a tag expression.
    pub(crate) filter: Option<TagFilter>,
}

impl Subscription {
    pub(crate) fn of(data: &SubscriptionData) -> Self {
        let filter = is_tag_type(&data.expression_type).then(|| TagFilter::parse(&data.sub_string).ok()).flatten();
        Self { data: data.clone(), filter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_by_their_java_hash() {
        assert_eq!(TagFilter::parse(" * ").unwrap(), TagFilter::All);
        assert_eq!(TagFilter::parse("").unwrap(), TagFilter::All);
        let ab = TagFilter::parse("TA || TB||TA").unwrap();
        assert_eq!(ab, TagFilter::Codes([2669, 2670].into()));
        assert!(ab.matches(2669) && !ab.matches(2671) && !ab.matches(0));
        assert!(TagFilter::parse("||").is_err());
    }
}
