//! Operators that make texts and lists as large as data say, paid for.
//!
//! `*` repeats a text or a list, `+` and `~` join texts, and the engine does so for nothing. So each
//! of them that may do more than reckon with numbers is written anew, as a filter of ours, before
//! the engine compiles it.

mod applied;

use minijinja::Environment;
use minijinja::machinery::{Span, ast};

use super::syntax;

/// What the filters are called. The check of definitions knows no filter with a dot in its name.
pub(super) const FILTERS: [&str; 3] = ["engine.times", "engine.plus", "engine.concat"];

/// An operator that is paid for.
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

    /// The operator of an operation that may make more than a number.
    fn to_be_paid(operation: &ast::BinOp<'_>) -> Option<Self> {
        let (left, right) = (is_number(&operation.left), is_number(&operation.right));
        Self::of(&operation.op).filter(|operator| match operator {
            Self::Times => !(left && right),
            // a number and anything else give a number or fail
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

    /// What stands for it.
    const fn applied(self) -> &'static str {
        match self {
            Self::Times => "|engine.times(",
            Self::Plus => "|engine.plus(",
            Self::Concat => "|engine.concat(",
        }
    }
}

/// Adds the filters that stand for operators.
pub(super) fn add_filters(environment: &mut Environment<'static>) {
    let [times, plus, concat] = FILTERS;
    environment.add_filter(times, applied::times);
    environment.add_filter(plus, applied::plus);
    environment.add_filter(concat, applied::concat);
}

/// An operation in a text that is to be written anew.
pub(super) struct Operation {
    start: usize,
    operator: Operator,
    /// Where its operator is.
    sign: usize,
    end: usize,
    /// Its left side is an operation that is written anew as well.
    is_chained: bool,
}

impl Operation {
    /// An operation in `source`, if it is one to be paid for.
    pub(super) fn of(source: &str, operation: &ast::BinOp<'_>, span: Span) -> Option<Self> {
        let operator = Operator::to_be_paid(operation)?;
        // brackets that close and white space are all that can stand between the two
        let left_end = operation.left.span().end_offset as usize;
        let sign = left_end + source.get(left_end..)?.find(operator.sign())?;
        let is_chained = match &operation.left {
            ast::Expr::BinOp(left) => Operator::to_be_paid(left).is_some(),
            _ => false,
        };
        let (start, end) = (span.start_offset as usize, span.end_offset as usize);
        Some(Self { start, operator, sign, end, is_chained })
    }
}

/// Whether an expression gives a number or fails.
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
            ast::BinOpKind::Eq
            | ast::BinOpKind::Ne
            | ast::BinOpKind::Lt
            | ast::BinOpKind::Lte
            | ast::BinOpKind::Gt
            | ast::BinOpKind::Gte
            | ast::BinOpKind::ScAnd
            | ast::BinOpKind::ScOr
            | ast::BinOpKind::Concat
            | ast::BinOpKind::In => false,
        },
        _ => false,
    }
}

/// Whether a text can have operations that are to be paid for.
pub(super) fn may_be_in(source: &str) -> bool {
    source.contains(['*', '+', '~'])
}

/// The source of an expression as the engine is to compile it.
pub(super) fn of_expression(source: &str) -> Option<String> {
    if !may_be_in(source) {
        return None;
    }
    written_anew(source, syntax::operators_of_expression(source))
}

/// `a * b` becomes `(a )|engine.times( b)`, and another factor another filter behind it. None
/// without operations: the source stays as it is.
pub(super) fn written_anew(source: &str, operations: Vec<Operation>) -> Option<String> {
    if operations.is_empty() {
        return None;
    }
    // where, what, and how many bytes it replaces
    let mut insertions: Vec<(usize, &str, usize)> = Vec::new();
    for Operation { start, operator, sign, end, is_chained } in operations {
        if !is_chained {
            insertions.extend([(start, "(", 0), (sign, ")", 0)]);
        }
        insertions.extend([(sign, operator.applied(), 1), (end, ")", 0)]);
    }
    // what ends where an operator begins stands before it
    insertions.sort_by_key(|(at, _, replaced)| (*at, *replaced));
    let mut written = String::with_capacity(source.len() * 2);
    let mut done = 0;
    for (at, inserted, replaced) in insertions {
        written.push_str(source.get(done..at)?);
        written.push_str(inserted);
        done = at + replaced;
    }
    written.push_str(source.get(done..)?);
    Some(written)
}

#[cfg(test)]
mod tests;
