//! Operators whose results can be as large as data demands, with charges.
//!
//! `*` repeats a text or a list, `+` and `~` join texts, and the engine does not charge for that.
//! So each of them that may do more than arithmetic is rewritten as a filter of our own before
//! the engine compiles the source.

mod applied;

use std::borrow::Cow;

use minijinja::Environment;
use minijinja::machinery::{Span, ast};

use super::members::Member;
use super::syntax;

/// Names of the filters. Lints accept no filter with a dot in its name, so definitions cannot use
/// them.
pub(super) const FILTERS: [&str; 3] = ["engine.times", "engine.plus", "engine.concat"];

/// An operator that is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Times,
    Plus,
    Concat,
}

impl Operator {
    fn of(kind: &ast::BinOpKind) -> Option<Self> {
        match kind {
            ast::BinOpKind::Mul => Some(Self::Times),
            ast::BinOpKind::Add => Some(Self::Plus),
            ast::BinOpKind::Concat => Some(Self::Concat),
            ast::BinOpKind::Sub
            | ast::BinOpKind::Div
            | ast::BinOpKind::FloorDiv
            | ast::BinOpKind::Rem
            | ast::BinOpKind::Pow
            | ast::BinOpKind::Eq
            | ast::BinOpKind::Ne
            | ast::BinOpKind::Lt
            | ast::BinOpKind::Lte
            | ast::BinOpKind::Gt
            | ast::BinOpKind::Gte
            | ast::BinOpKind::ScAnd
            | ast::BinOpKind::ScOr
            | ast::BinOpKind::In => None,
        }
    }

    /// Returns the operator of an operation whose result may be larger than a number.
    fn charged(operation: &ast::BinOp<'_>) -> Option<Self> {
        let (left, right) = (is_number(&operation.left), is_number(&operation.right));
        Self::of(&operation.op).filter(|operator| match operator {
            Self::Times => !(left && right),
            // a number and anything else give a number or an error
            Self::Plus => !(left || right),
            Self::Concat => true,
        })
    }

    const fn sign(self) -> char {
        match self {
            Self::Times => '*',
            Self::Plus => '+',
            Self::Concat => '~',
        }
    }

    /// Returns the beginning of the filter that replaces it.
    const fn applied(self) -> &'static str {
        match self {
            Self::Times => "|engine.times(",
            Self::Plus => "|engine.plus(",
            Self::Concat => "|engine.concat(",
        }
    }
}

/// Adds the filters that replace operators.
pub(super) fn add_filters(environment: &mut Environment<'static>) {
    let [times, plus, concat] = FILTERS;
    environment.add_filter(times, applied::times);
    environment.add_filter(plus, applied::plus);
    environment.add_filter(concat, applied::concat);
}

/// An operation to rewrite.
pub(super) struct Operation {
    start: usize,
    operator: Operator,
    /// Position of its operator.
    sign: usize,
    end: usize,
    /// True if its left operand is an operation to rewrite, too.
    is_chained: bool,
}

impl Operation {
    /// Returns an operation in `source`, if it is to be rewritten.
    pub(super) fn of(source: &str, operation: &ast::BinOp<'_>, span: Span) -> Option<Self> {
        let operator = Operator::charged(operation)?;
        // only closing brackets and white space can be between the two
        let left_end = operation.left.span().end_offset as usize;
        let sign = left_end + source.get(left_end..)?.find(operator.sign())?;
        let is_chained = match &operation.left {
            ast::Expr::BinOp(left) => Operator::charged(left).is_some(),
            _ => false,
        };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        Some(Self { start, operator, sign, end, is_chained })
    }
}

/// Returns true if the result of an expression is a number or an error.
fn is_number(expression: &ast::Expr<'_>) -> bool {
    match expression {
        ast::Expr::Const(constant) => constant.value.is_number(),
        ast::Expr::UnaryOp(operation) => matches!(operation.op, ast::UnaryOpKind::Neg),
        ast::Expr::BinOp(operation) => match operation.op {
            ast::BinOpKind::Sub
            | ast::BinOpKind::Div
            | ast::BinOpKind::FloorDiv
            | ast::BinOpKind::Rem
            | ast::BinOpKind::Pow => true,
            ast::BinOpKind::Add => is_number(&operation.left) || is_number(&operation.right),
            ast::BinOpKind::Mul => is_number(&operation.left) && is_number(&operation.right),
            _ => false,
        },
        _ => false,
    }
}

/// Parts of a source that are rewritten.
#[derive(Default)]
pub(super) struct Rewriting {
    pub(super) operations: Vec<Operation>,
    /// Lookups in values that may be undefined.
    pub(super) members: Vec<Member>,
}

/// Position, inserted text, and number of bytes that it replaces.
pub(super) type Insertion = (usize, Cow<'static, str>, usize);

/// Returns true if a source may contain something to rewrite.
pub(super) fn may_be_in(source: &str) -> bool {
    source.contains(['*', '+', '~', '|']) || source.contains("defined")
}

/// Returns the rewritten source of an expression; `None` if there is nothing to rewrite.
pub(super) fn of_expression(source: &str) -> Option<String> {
    if !may_be_in(source) {
        return None;
    }
    rewritten(source, syntax::rewriting_of_expression(source))
}

/// Rewrites `a * b` as `(a )|engine.times( b)`; further factors become further filters after it.
/// Returns `None` if there is nothing to rewrite.
pub(super) fn rewritten(source: &str, rewriting: Rewriting) -> Option<String> {
    let Rewriting { operations, members } = rewriting;
    if operations.is_empty() && members.is_empty() {
        return None;
    }
    let mut insertions: Vec<Insertion> =
        members.iter().flat_map(|member| member.insertions(source)).collect();
    for Operation { start, operator, sign, end, is_chained } in operations {
        let closing = |at: usize| (at, Cow::Borrowed(")"), 0);
        if !is_chained {
            insertions.extend([(start, Cow::Borrowed("("), 0), closing(sign)]);
        }
        insertions.extend([(sign, Cow::Borrowed(operator.applied()), 1), closing(end)]);
    }
    // an end at the position of an operator or of a bracket comes before it
    insertions.sort_by_key(|(at, _, replaced)| (*at, *replaced));
    let mut written = String::with_capacity(source.len() * 2);
    let mut done = 0;
    for (at, inserted, replaced) in insertions {
        written.push_str(source.get(done..at)?);
        written.push_str(&inserted);
        done = at + replaced;
    }
    written.push_str(source.get(done..)?);
    Some(written)
}

#[cfg(test)]
mod tests;
