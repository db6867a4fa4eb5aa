//! Values that may be absent: lookups in `none`, and keys that a schema does not require. Both
//! fail at run time, unless the text handles them.

use crate::definition::StepDefinition;
use crate::expression::{Path, PathKey, Reading};

use super::Callers;
use super::constants::truth;
use super::remarks::Remark;
use super::shape::Shape;

/// Paths that a text allows to be absent.
pub(super) struct Allowed<'r> {
    pub(super) reading: &'r Reading,
    /// Paths that the conditions around the text read, and which therefore exist or were tested.
    pub(super) around: &'r [Path],
}

impl Allowed<'_> {
    /// Returns true if the text handles an absent value at the first `count` keys of a path.
    fn covers(&self, path: &Path, count: usize) -> bool {
        let keys = &path.keys[..count.min(path.keys.len())];
        let is_around = |it: &Path| it.root == path.root && it.keys.starts_with(keys);
        self.reading.paths.iter().any(|it| it.guards(path, keys))
            || self.around.iter().any(is_around)
    }

    /// Returns true if the text tests a name itself, as in `if user`, or a condition around the
    /// text reads it.
    fn names(&self, root: &str) -> bool {
        self.reading.paths.iter().any(|it| it.root == root && it.keys.is_empty())
            || self.around.iter().any(|it| it.root == root)
    }
}

/// Reports the first key of a path that its schema does not require. `keys` are the last keys of
/// the path, looked up in the shape of the value at `way`.
pub(super) fn optional(
    path: &Path,
    way: &str,
    keys: &[PathKey],
    shape: &Shape,
    allowed: &Allowed<'_>,
) -> Option<Remark> {
    let before = path.keys.len() - keys.len();
    let (mut way, mut shape) = (way.to_owned(), shape);
    for (index, key) in keys.iter().enumerate() {
        shape = match (shape, key) {
            (Shape::Object { keys, optional, .. }, PathKey::Name(name)) => {
                way = format!("{way}.{name}");
                if optional.contains(name) && !allowed.covers(path, before + index + 1) {
                    let message = format!("`{way}` may be missing: its schema does not require it");
                    return Some(without_default(&message));
                }
                keys.get(name)?
            }
            (Shape::List(items), PathKey::Computed) => {
                way = format!("{way}[…]");
                items
            }
            (Shape::Any | Shape::Plain(_) | Shape::OneOf(_), _)
            | (Shape::Object { .. }, PathKey::Computed)
            | (Shape::List(_), PathKey::Name(_)) => return None,
        };
    }
    None
}

/// Reports a lookup in a name whose value may be none.
pub(super) fn none(
    path: &Path,
    step: Option<&StepDefinition>,
    callers: Callers,
    allowed: &Allowed<'_>,
) -> Option<Remark> {
    let root = path.root.as_str();
    let reason = match root {
        "user" if callers == Callers::Any => "for a request without a token",
        "resumed_by" => "if a resume has no user, and if a deadline resumes the step",
        "resume" => {
            let when = step?.suspend.as_ref()?.when.as_ref()?;
            (truth(when) != Some(true)).then_some("if `suspend.when` is false")?
        }
        _ => return None,
    };
    if path.keys.is_empty() || allowed.names(root) || allowed.covers(path, 1) {
        return None;
    }
    Some(without_default(&format!("`{root}` is none {reason}")))
}

fn without_default(problem: &str) -> Remark {
    Remark::warning(format!("{problem}; add a `default()`"))
}
