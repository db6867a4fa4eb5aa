//! Comparisons with constants.

use minijinja::machinery::ast;
use minijinja::value::ValueKind;
use serde_json::Value;

use super::{Guard, Path, Walk, path_of, start};

/// A comparison of a value with a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    pub path: Path,
    pub constant: Value,
    pub how: How,
}

/// Kind of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Equal,
    Among,
    Order,
}

impl How {
    pub(super) fn of_one(operation: &ast::BinOpKind) -> Option<Self> {
        match operation {
            ast::BinOpKind::Eq | ast::BinOpKind::Ne => Some(Self::Equal),
            ast::BinOpKind::In => Some(Self::Among),
            ast::BinOpKind::Lt | ast::BinOpKind::Lte | ast::BinOpKind::Gt | ast::BinOpKind::Gte => {
                Some(Self::Order)
            }
            _ => None,
        }
    }

    pub(super) fn of_several(operation: &ast::CompareOpKind) -> Self {
        match operation {
            ast::CompareOpKind::Eq | ast::CompareOpKind::Ne => Self::Equal,
            ast::CompareOpKind::In | ast::CompareOpKind::NotIn => Self::Among,
            ast::CompareOpKind::Lt
            | ast::CompareOpKind::Lte
            | ast::CompareOpKind::Gt
            | ast::CompareOpKind::Gte => Self::Order,
        }
    }
}

impl Walk<'_> {
    /// Notes `value == 'constant'` and similar comparisons.
    pub(super) fn compared(&mut self, left: &ast::Expr<'_>, right: &ast::Expr<'_>, how: How) {
        let (value, constants) = match (how, left.as_const(), right.as_const()) {
            (How::Equal | How::Order, None, Some(constant)) => (left, vec![constant]),
            (How::Equal | How::Order, Some(constant), None) => (right, vec![constant]),
            (How::Among, None, Some(list)) if list.kind() == ValueKind::Seq => {
                (left, list.try_iter().into_iter().flatten().collect())
            }
            _ => return,
        };
        let Some((root, keys)) = path_of(value).filter(|(root, _)| !self.is_own(root)) else {
            return;
        };
        let at = start(value.span());
        let (root, guard) = (root.to_owned(), Guard::None);
        let path = Path { root, keys, is_optional: false, guard, at };
        let constants = constants.iter().filter_map(|it| serde_json::to_value(it).ok());
        let compared = constants.map(|constant| Compared { path: path.clone(), constant, how });
        self.reading.compared.extend(compared);
    }
}
