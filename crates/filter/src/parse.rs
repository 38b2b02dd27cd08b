//! Tokens → `SqlFilter`, by recursive descent, one function a rule. Which operands fit which operator is checked here,
//! so that an error has a position.
//!
//! ```text
//! filter     = or END
//! or         = and { OR and }
//! and        = equality { AND equality }
//! equality   = comparison { (= | <>) comparison | IS [NOT] NULL }
//! comparison = unary { (> | >= | < | <=) unary | [NOT] BETWEEN unary AND unary | [NOT] IN ( text {, text} )
//!                    | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) text }
//! unary      = + unary | - unary | NOT unary | literal | name | ( or )
//! ```
//!
//! Stricter than Java on purpose: Java stops reading at the first token that fits nowhere and ignores the rest, so that
//! `a < 10bbbbb` passes as `a < 10`. Here it is an error, but for a final `name LIKE 'text'`: that is in use, Java takes
//! it for `name` (never true), and a consumer that starts must go on starting. The limits below are ours, too.
//! Java: `filter.parser.SelectorParser`.

use std::cmp::Ordering;

use crate::error::{SqlError, What};
use crate::expression::{Comparison, Id, Literal, Node, Search, SqlFilter, compare};
use crate::lex::{self, Kind, Token};

pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Parentheses and signs inside each other, and operators in a row (`a = b = c …`). AND and OR in a row do not count.
pub const NESTING_MAX: usize = 64;
/// Strings and numbers.
pub const LITERALS_MAX: usize = 8192;

pub(crate) fn parse(text: &str) -> Result<SqlFilter, SqlError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SqlError { near: String::new(), ..SqlError::new(text, TEXT_BYTES_MAX, What::TooLong) });
    }
    let ahead = lex::token(text, 0)?;
    let before = Token { kind: Kind::End, at: 0, end: 0 };
    let mut parser = Parser { text, ahead, before, nodes: Vec::new(), literals: 0, depth: 0 };
    let whole = parser.or()?;
    parser.end()?;
    let root = parser.condition(whole)?.id;
    Ok(SqlFilter { nodes: parser.nodes.into(), root })
}

struct Parser<'t> {
    text: &'t str,
    ahead: Token<'t>,
    before: Token<'t>,
    nodes: Vec<Node>,
    literals: usize,
    depth: usize,
}

/// A node, and what the checks need to know of it.
#[derive(Clone, Copy)]
struct Operand {
    id: Id,
    class: Class,
    /// Where it begins in the text, for errors.
    at: usize,
    /// How deep asking it recurses.
    height: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Null,
    Bool,
    Number,
    Text,
    Property,
    /// What begins with `-`, `-5` too: Java checks it less than a literal.
    Negated,
    Condition,
}

impl<'t> Parser<'t> {
    fn or(&mut self) -> Result<Operand, SqlError> {
        let first = self.and()?;
        self.terms(first, Kind::Or, Self::and, Node::Or)
    }

    fn and(&mut self) -> Result<Operand, SqlError> {
        let first = self.equality()?;
        self.terms(first, Kind::And, Self::equality, Node::And)
    }

    /// The terms joined by `joint` become one flat node: thousands of them need no recursion.
    fn terms(
        &mut self,
        first: Operand,
        joint: Kind<'static>,
        term: fn(&mut Self) -> Result<Operand, SqlError>,
        node: fn(Box<[Id]>) -> Node,
    ) -> Result<Operand, SqlError> {
        if self.ahead.kind != joint {
            return Ok(first);
        }
        let mut height = 0;
        let mut ids = Vec::new();
        let mut next = first;
        loop {
            let condition = self.condition(next)?;
            height = height.max(condition.height);
            ids.push(condition.id);
            if !self.skip(joint)? {
                return self.made(node(ids.into()), Class::Condition, first.at, height);
            }
            next = term(self)?;
        }
    }

    fn equality(&mut self) -> Result<Operand, SqlError> {
        let mut left = self.comparison()?;
        loop {
            let negated = match self.ahead.kind {
                Kind::Equal => false,
                Kind::Unequal => true,
                Kind::Is => {
                    left = self.is_null(left)?;
                    continue;
                }
                _ => return Ok(left),
            };
            self.advance()?;
            let right = self.comparison()?;
            self.check_equal(left, right)?;
            let height = left.height.max(right.height);
            let equal = self.made(Node::Equal(left.id, right.id), Class::Condition, left.at, height)?;
            left = if negated { self.not(equal)? } else { equal };
        }
    }

    fn is_null(&mut self, left: Operand) -> Result<Operand, SqlError> {
        self.advance()?;
        let negated = self.skip(Kind::Not)?;
        self.expect(Kind::Null, if negated { "NULL" } else { "NULL or NOT NULL" })?;
        let null = self.made(Node::Literal(Literal::Null), Class::Null, left.at, 0)?;
        let is_null = self.made(Node::Equal(left.id, null.id), Class::Condition, left.at, left.height)?;
        if negated { self.not(is_null) } else { Ok(is_null) }
    }

    fn comparison(&mut self) -> Result<Operand, SqlError> {
        let mut left = self.unary()?;
        loop {
            left = match self.ahead.kind {
                Kind::Greater => self.order(left, Comparison::Greater)?,
                Kind::GreaterEqual => self.order(left, Comparison::GreaterEqual)?,
                Kind::Less => self.order(left, Comparison::Less)?,
                Kind::LessEqual => self.order(left, Comparison::LessEqual)?,
                Kind::Not => {
                    self.advance()?;
                    match self.named_operator(left, true)? {
                        Some(condition) => condition,
                        None => return Err(self.expected("CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN")),
                    }
                }
                _ => match self.named_operator(left, false)? {
                    Some(condition) => condition,
                    None => return Ok(left),
                },
            };
        }
    }

    fn order(&mut self, left: Operand, comparison: Comparison) -> Result<Operand, SqlError> {
        self.advance()?;
        let right = self.unary()?;
        self.check_ordered(left)?;
        self.check_ordered(right)?;
        let height = left.height.max(right.height);
        self.made(Node::Order(comparison, left.id, right.id), Class::Condition, left.at, height)
    }

    fn named_operator(&mut self, left: Operand, not: bool) -> Result<Option<Operand>, SqlError> {
        match self.ahead.kind {
            Kind::Contains => self.search(left, Search::Contains, not),
            Kind::StartsWith => self.search(left, Search::StartsWith, not),
            Kind::EndsWith => self.search(left, Search::EndsWith, not),
            Kind::Between => self.between(left, not),
            Kind::In => self.is_in(left, not),
            _ => return Ok(None),
        }
        .map(Some)
    }

    fn search(&mut self, left: Operand, search: Search, not: bool) -> Result<Operand, SqlError> {
        self.advance()?;
        let sought = self.string()?;
        self.made(Node::Search { search, within: left.id, sought, not }, Class::Condition, left.at, left.height)
    }

    fn between(&mut self, value: Operand, outside: bool) -> Result<Operand, SqlError> {
        self.advance()?;
        let low = self.unary()?;
        self.expect(Kind::And, "AND and the upper bound")?;
        let high = self.unary()?;
        for operand in [value, low, high] {
            self.check_ordered(operand)?;
        }
        if !outside && let (Some(low_number), Some(high_number)) = (self.number_of(low), self.number_of(high)) {
            // Two numbers always compare.
            if compare(high_number.value(), low_number.value()) == Ok(Ordering::Less) {
                return Err(SqlError::new(self.text, low.at, What::EmptyRange));
            }
        }
        let height = value.height.max(low.height).max(high.height);
        let node = Node::Between { value: value.id, low: low.id, high: high.id, outside };
        self.made(node, Class::Condition, value.at, height)
    }

    fn is_in(&mut self, left: Operand, not: bool) -> Result<Operand, SqlError> {
        self.advance()?;
        self.expect(Kind::Open, "( and a list of strings")?;
        let mut strings = vec![self.string()?];
        while self.skip(Kind::Comma)? {
            strings.push(self.string()?);
        }
        self.expect(Kind::Close, ", or )")?;
        let Some(Node::Property(property)) = self.nodes.get(left.id as usize) else {
            return Err(SqlError::new(self.text, left.at, What::NotAProperty));
        };
        let property = property.clone();
        strings.sort_unstable();
        strings.dedup();
        self.made(Node::In { property, sorted: strings.into(), not }, Class::Condition, left.at, 0)
    }

    fn unary(&mut self) -> Result<Operand, SqlError> {
        let start = self.ahead;
        match start.kind {
            Kind::Plus => {
                let operand = self.nested(Self::unary)?;
                Ok(Operand { at: start.at, ..operand })
            }
            Kind::Minus => {
                let operand = self.nested(Self::unary)?;
                self.negate(operand, start.at)
            }
            Kind::Not => {
                let operand = self.nested(Self::unary)?;
                let condition = self.condition(operand)?;
                self.not(Operand { at: start.at, ..condition })
            }
            Kind::Open => {
                let operand = self.nested(Self::or)?;
                self.expect(Kind::Close, ")")?;
                Ok(Operand { at: start.at, ..operand })
            }
            _ => self.primary(),
        }
    }

    /// Steps over the sign or parenthesis ahead and reads what follows, one level deeper.
    fn nested(&mut self, rule: fn(&mut Self) -> Result<Operand, SqlError>) -> Result<Operand, SqlError> {
        if self.depth == NESTING_MAX {
            return Err(self.error(What::TooDeep));
        }
        self.depth += 1;
        self.advance()?;
        let operand = rule(self)?;
        self.depth -= 1;
        Ok(operand)
    }

    fn primary(&mut self) -> Result<Operand, SqlError> {
        let token = self.ahead;
        let (node, class) = match token.kind {
            Kind::Text(_) => {
                let text = self.string()?;
                return self.made(Node::Literal(Literal::Text(text)), Class::Text, token.at, 0);
            }
            Kind::Decimal(digits) => {
                self.count_literal()?;
                let number: i64 = digits.parse().map_err(|_| self.error(What::NumberOutOfRange))?;
                let literal = i32::try_from(number).map_or(Literal::Long(number), Literal::Int);
                (Node::Literal(literal), Class::Number)
            }
            Kind::Float(digits) => {
                self.count_literal()?;
                // Java refuses what rounds to zero, and zero itself: `0.0` is no literal.
                let number = digits.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
                let number = number.ok_or_else(|| self.error(What::NumberOutOfRange))?;
                (Node::Literal(Literal::Double(number)), Class::Number)
            }
            Kind::True => (Node::Literal(Literal::Bool(true)), Class::Bool),
            Kind::False => (Node::Literal(Literal::Bool(false)), Class::Bool),
            Kind::Null => (Node::Literal(Literal::Null), Class::Null),
            Kind::Name(name) => (Node::Property(name.into()), Class::Property),
            _ => return Err(self.expected("a property, a literal or (")),
        };
        self.advance()?;
        self.made(node, class, token.at, 0)
    }

    fn string(&mut self) -> Result<Box<str>, SqlError> {
        let Kind::Text(quoted) = self.ahead.kind else {
            return Err(self.expected("a string in single quotes"));
        };
        self.count_literal()?;
        self.advance()?;
        Ok(quoted.replace("''", "'").into())
    }

    fn count_literal(&mut self) -> Result<(), SqlError> {
        self.literals += 1;
        if self.literals > LITERALS_MAX { Err(self.error(What::TooManyLiterals)) } else { Ok(()) }
    }

    /// Nothing may follow, but for a comment that lacks its end of line and the LIKE of the module's comment.
    fn end(&mut self) -> Result<(), SqlError> {
        let rest = self.text.get(self.ahead.at..).unwrap_or_default();
        let after_name = matches!(self.before.kind, Kind::Name(_));
        match self.ahead.kind {
            Kind::End => Ok(()),
            Kind::Minus if rest.starts_with("--") => Ok(()),
            Kind::Name(name) if name.eq_ignore_ascii_case("LIKE") => {
                let like = self.error(What::Like);
                self.advance()?;
                let pattern = matches!(self.ahead.kind, Kind::Text(_));
                self.advance()?;
                if after_name && pattern && self.ahead.kind == Kind::End { Ok(()) } else { Err(like) }
            }
            _ => Err(self.expected("an operator or the end")),
        }
    }

    /// `operand` where true or false is asked for.
    fn condition(&mut self, operand: Operand) -> Result<Operand, SqlError> {
        match operand.class {
            Class::Condition | Class::Bool | Class::Null => Ok(operand),
            Class::Number | Class::Text | Class::Negated => {
                Err(SqlError::new(self.text, operand.at, What::NotACondition))
            }
            Class::Property => match self.nodes.get_mut(operand.id as usize) {
                // Only this operator sees the operand: its node may change in place.
                Some(node) => {
                    if let Node::Property(name) = node {
                        *node = Node::PropertyAsCondition(std::mem::take(name));
                    }
                    Ok(Operand { class: Class::Condition, ..operand })
                }
                None => Ok(operand),
            },
        }
    }

    fn not(&mut self, condition: Operand) -> Result<Operand, SqlError> {
        self.made(Node::Not(condition.id), Class::Condition, condition.at, condition.height)
    }

    fn negate(&mut self, operand: Operand, at: usize) -> Result<Operand, SqlError> {
        let (node, height) = match self.nodes.get(operand.id as usize) {
            Some(Node::Literal(Literal::Int(n))) => (Node::Literal(Literal::Int(n.wrapping_neg())), 0),
            Some(Node::Literal(Literal::Long(n))) => (Node::Literal(Literal::Long(n.wrapping_neg())), 0),
            Some(Node::Literal(Literal::Double(n))) => (Node::Literal(Literal::Double(-n)), 0),
            _ => (Node::Negated(operand.id), operand.height),
        };
        self.made(node, Class::Negated, at, height)
    }

    fn check_ordered(&self, operand: Operand) -> Result<(), SqlError> {
        match operand.class {
            Class::Number | Class::Property | Class::Negated => Ok(()),
            _ => Err(SqlError::new(self.text, operand.at, What::NotOrdered)),
        }
    }

    fn check_equal(&self, left: Operand, right: Operand) -> Result<(), SqlError> {
        for operand in [left, right] {
            if operand.class == Class::Null {
                return Err(SqlError::new(self.text, operand.at, What::NullCompared));
            }
        }
        match (left.class, right.class) {
            (Class::Bool, Class::Number | Class::Text) => Err(SqlError::new(self.text, left.at, What::BooleanCompared)),
            _ => Ok(()),
        }
    }

    fn number_of(&self, operand: Operand) -> Option<&Literal> {
        match self.nodes.get(operand.id as usize) {
            Some(Node::Literal(literal)) if operand.class == Class::Number => Some(literal),
            _ => None,
        }
    }

    /// Adds a node over operands of at most `height`.
    fn made(&mut self, node: Node, class: Class, at: usize, height: usize) -> Result<Operand, SqlError> {
        // A level of parentheses holds an OR over an AND over comparisons: three nodes high, and still one level.
        if height >= 4 * NESTING_MAX {
            return Err(SqlError::new(self.text, at, What::TooDeep));
        }
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        Ok(Operand { id, class, at, height: height + 1 })
    }

    fn advance(&mut self) -> Result<(), SqlError> {
        self.before = self.ahead;
        self.ahead = lex::token(self.text, self.ahead.end)?;
        Ok(())
    }

    fn skip(&mut self, kind: Kind<'static>) -> Result<bool, SqlError> {
        let there = self.ahead.kind == kind;
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    fn expect(&mut self, kind: Kind<'static>, wanted: &'static str) -> Result<(), SqlError> {
        if self.skip(kind)? { Ok(()) } else { Err(self.expected(wanted)) }
    }

    fn expected(&self, wanted: &'static str) -> SqlError {
        self.error(What::Expected(wanted))
    }

    fn error(&self, what: What) -> SqlError {
        SqlError::new(self.text, self.ahead.at, what)
    }
}
