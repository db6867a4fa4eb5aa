//! Values that may not be there when a text reads them: lookups in what is none, and keys that a
//! schema does not require. The engine refuses both, unless the text allows for it.

use crate::definition::StepDefinition;
use crate::expression::{Path, PathKey, Reading};

use super::Callers;
use super::conditions::truth;
use super::remarks::Remark;
use super::shape::Shape;

/// What a text allows not to be there.
pub(super) struct Allowed<'r> {
    pub(super) reading: &'r Reading,
    /// What the conditions around the text read: where those hold it is there, or was asked about.
    pub(super) around: &'r [Path],
}

impl Allowed<'_> {
    /// Whether the value may be missing that the first keys of a path lead to.
    fn covers(&self, path: &Path, count: usize) -> bool {
        let keys = &path.keys[..count.min(path.keys.len())];
        let is_asked = |it: &Path| it.is_optional && it.root == path.root && it.keys == keys;
        let is_around = |it: &Path| it.root == path.root && it.keys.starts_with(keys);
        self.reading.paths.iter().any(is_asked) || self.around.iter().any(is_around)
    }

    /// Whether the text reads a name without looking anything up in it, as `if user` does, or a
    /// condition around it reads the name.
    fn names(&self, root: &str) -> bool {
        self.reading.paths.iter().any(|it| it.root == root && it.keys.is_empty())
            || self.around.iter().any(|it| it.root == root)
    }
}

/// The first key on a path that its schema does not require. The last `keys` of the path are
/// looked up in the shape of what stands under `way`.
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
                    return Some(unsaid(&message));
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

/// What is wrong with a lookup in a name whose value may be none.
pub(super) fn none(
    path: &Path,
    step: Option<&StepDefinition>,
    callers: Callers,
    allowed: &Allowed<'_>,
) -> Option<Remark> {
    let root = path.root.as_str();
    let reason = match root {
        "user" if callers == Callers::Any => "for a request without a token",
        "resumed_by" => "when a resume names no user, and when a deadline resumes the step",
        "resume" => {
            let when = step?.suspend.as_ref()?.when.as_ref()?;
            (truth(when) != Some(true)).then_some("when `suspend.when` does not hold")?
        }
        _ => return None,
    };
    if path.keys.is_empty() || allowed.names(root) || allowed.covers(path, 1) {
        return None;
    }
    Some(unsaid(&format!("`{root}` is none {reason}")))
}

fn unsaid(problem: &str) -> Remark {
    Remark::warning(format!("{problem}; say what holds then with `default()`"))
}
