//! Truth of conditions that the values which they read cannot change.

use minijinja::machinery::{ast, parse_expr};

use super::Expression;

impl Expression {
    /// Returns the truth of a condition whose constant parts alone decide it, such as that of
    /// `input.a or true`.
    pub fn settled(&self) -> Option<bool> {
        truth(&parse_expr(self.source()).ok()?)
    }
}

fn truth(expression: &ast::Expr<'_>) -> Option<bool> {
    match expression {
        ast::Expr::UnaryOp(operation) if matches!(operation.op, ast::UnaryOpKind::Not) => {
            truth(&operation.expr).map(|is_true| !is_true)
        }
        ast::Expr::BinOp(operation) => {
            let sides = || [truth(&operation.left), truth(&operation.right)];
            match operation.op {
                ast::BinOpKind::ScOr => joined(sides(), true),
                ast::BinOpKind::ScAnd => joined(sides(), false),
                _ => None,
            }
        }
        other => other.as_const().map(|constant| constant.is_true()),
    }
}

/// Returns the truth of two sides of which one with this truth decides.
fn joined(sides: [Option<bool>; 2], deciding: bool) -> Option<bool> {
    if sides.contains(&Some(deciding)) {
        return Some(deciding);
    }
    sides.iter().all(Option::is_some).then_some(!deciding)
}
