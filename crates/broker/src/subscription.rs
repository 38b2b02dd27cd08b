//! What a consumer wants of a topic, in the form that a read needs: a set of tag codes, or a compiled expression.
//! Java: `FilterAPI.build`, `ExpressionMessageFilter`.

use std::sync::Arc;

use cometmq_filter::SqlFilter;
use cometmq_wire::ResponseCode;
use cometmq_wire::body::SubscriptionData;
use cometmq_wire::java_hash::tags_code;
use cometmq_wire::record::Record;

use crate::error::Reject;

/// Tags of one expression. Far above what a person writes.
const TAGS_MAX: usize = 1024;

#[derive(Debug, Clone)]
pub(crate) enum Filter {
    All,
    /// Sorted codes.
    Codes(Arc<[i64]>),
    /// SQL92 over the properties of a message.
    Sql(Arc<SqlFilter>),
}

impl Filter {
    /// `kind` is TAG (or nothing) or SQL92, the latter only with `enablePropertyFilter`.
    pub(crate) fn parse(kind: &str, expression: &str, property_filter: bool) -> Result<Self, Reject> {
        match kind {
            "" | "TAG" => Self::tags(expression),
            "SQL92" if property_filter => match SqlFilter::parse(expression) {
                Ok(filter) => Ok(Self::Sql(Arc::new(filter))),
                Err(error) => {
                    let remark = format!("parse the consumer's subscription failed: {error}");
                    Err(Reject::new(ResponseCode::SUBSCRIPTION_PARSE_FAILED, remark))
                }
            },
            other => Err(refuse_expression(other)),
        }
    }

    /// Parses `A || B`; `*` and an empty text mean all.
    fn tags(expression: &str) -> Result<Self, Reject> {
        let expression = expression.trim();
        if expression.is_empty() || expression == "*" {
            return Ok(Self::All);
        }
        let tags = expression.split("||").map(str::trim).filter(|t| !t.is_empty());
        let mut codes: Vec<i64> = tags.map(tags_code).collect();
        if codes.is_empty() || codes.len() > TAGS_MAX {
            let code = ResponseCode::SUBSCRIPTION_PARSE_FAILED;
            let what =
                format!("parse the consumer's subscription failed: {} tags, expected 1 to {TAGS_MAX}", codes.len());
            return Err(Reject::new(code, what));
        }
        codes.sort_unstable();
        codes.dedup();
        Ok(Self::Codes(codes.into()))
    }

    /// As far as the tag code tells. Java's broker looks no further; clients compare the tag itself.
    pub(crate) fn matches_code(&self, code: i64) -> bool {
        match self {
            Self::All | Self::Sql(_) => true,
            Self::Codes(codes) => codes.binary_search(&code).is_ok(),
        }
    }
}

/// Whether a record passes an expression; one that does not parse passes none.
pub(crate) fn sql_matches(filter: &SqlFilter, record: &[u8]) -> bool {
    Record::parse(record).is_ok_and(|r| filter.matches(&|name: &str| r.property(name)))
}

/// Java's words when the broker has property filters switched off, or does not know the kind.
fn refuse_expression(expression_type: &str) -> Reject {
    let remark = format!("The broker does not support consumer to filter message by {expression_type}");
    Reject::new(ResponseCode::SYSTEM_ERROR, remark)
}

/// A subscription of a group, from its heartbeat.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) data: SubscriptionData,
    /// Why it cannot be used, if it cannot.
    pub(crate) filter: Result<Filter, Reject>,
}

impl Subscription {
    pub(crate) fn of(data: &SubscriptionData, property_filter: bool) -> Self {
        let filter = Filter::parse(&data.expression_type, &data.sub_string, property_filter);
        Self { data: data.clone(), filter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_by_their_java_hash() {
        let tags = |text: &str| Filter::parse("TAG", text, false);
        assert!(matches!(tags(" * ").unwrap(), Filter::All));
        assert!(matches!(Filter::parse("", "", false).unwrap(), Filter::All));
        let ab = tags("TA || TB||TA").unwrap();
        assert!(matches!(&ab, Filter::Codes(codes) if **codes == [2669, 2670]));
        assert!(ab.matches_code(2669) && !ab.matches_code(2671) && !ab.matches_code(0));
        assert!(tags("||").is_err());
    }

    #[test]
    fn sql_only_where_it_is_switched_on_and_parses() {
        assert!(matches!(Filter::parse("SQL92", "a > 3", true), Ok(Filter::Sql(_))));
        let off = Filter::parse("SQL92", "a > 3", false).unwrap_err();
        assert_eq!(off.remark, "The broker does not support consumer to filter message by SQL92");
        let broken = Filter::parse("SQL92", "a < 10bbbbb", true).unwrap_err();
        assert_eq!(broken.code, ResponseCode::SUBSCRIPTION_PARSE_FAILED);
        assert!(broken.remark.contains("position"), "{}", broken.remark);
    }
}
