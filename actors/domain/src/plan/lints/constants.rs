//! Expressions with the same value for all inputs.

use serde_json::Value;

use super::remarks::Remark;
use crate::definition::Mapping;
use crate::expression::{CompiledMapping, Expression, SCOPE_NAMES, Scope};

/// A condition that is always true, or never.
pub(super) struct Constant {
    pub(super) is_true: bool,
    /// True for `true` and `false`, which are meant to be constant.
    pub(super) is_literal: bool,
    /// Reason that an author may not expect, as the end of a sentence.
    why: String,
}

impl Constant {
    /// Returns `None` if the values that the condition reads decide.
    pub(super) fn of(source: &str) -> Option<Self> {
        let expression = Expression::compile(source).ok()?;
        if expression.names().next().is_some() {
            let is_true = expression.settled()?;
            let why = "; no value that it reads changes that".to_owned();
            return Some(Self { is_true, is_literal: false, why });
        }
        let is_true = expression.holds(&Scope::new()).ok()?;
        let is_literal = ["true", "false"].contains(&source.trim().to_lowercase().as_str());
        let value = expression.evaluate(&Scope::new()).ok();
        let why = if is_literal { String::new() } else { why_of(value.as_ref()) };
        Some(Self { is_true, is_literal, why })
    }

    /// Returns the message with an effect, which begins with a colon.
    pub(super) fn message(&self, effect: &str) -> String {
        let word = if self.is_true { "always" } else { "never" };
        format!("is {word} true{effect}{}", self.why)
    }
}

/// Explains the truth of a constant value.
fn why_of(value: Option<&Value>) -> String {
    let (what, full) = match value {
        Some(Value::String(text)) if is_path(text) => {
            return format!("; quotes make it a text: the value is written `{}`", text.trim());
        }
        Some(Value::String(text)) => ("a text", !text.is_empty()),
        Some(Value::Array(items)) => ("a list", !items.is_empty()),
        Some(Value::Object(members)) => ("an object", !members.is_empty()),
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => {
            return "; it reads no value".to_owned();
        }
    };
    match full {
        true => format!("; {what} is true unless it is empty"),
        false => format!("; {what} that is empty is not true"),
    }
}

/// Returns true for a path to a value in scope, such as `data.a`.
fn is_path(text: &str) -> bool {
    let reading = Expression::compile(text.trim()).map(|it| it.reading());
    let reading = reading.ok().filter(|it| it.is_path);
    reading.is_some_and(|it| it.paths.iter().all(|path| SCOPE_NAMES.contains(&&*path.root)))
}

/// Returns a warning of a condition that is always true or false, with the effect of either, which
/// begins with a colon.
pub fn constant_condition(source: &str, if_true: &str, if_false: &str) -> Option<Remark> {
    let constant = Constant::of(source)?;
    let effect = if constant.is_true { if_true } else { if_false };
    Some(Remark::warning(constant.message(effect)))
}

/// Returns the value of a constant condition.
pub(super) fn truth(source: &str) -> Option<bool> {
    Some(Constant::of(source)?.is_true)
}

/// Returns the value of a constant mapping.
pub(super) fn constant(source: &Mapping) -> Option<Value> {
    let mapping = CompiledMapping::compile(source).ok()?;
    if mapping.names().next().is_some() {
        return None;
    }
    mapping.evaluate(&Scope::new()).ok()
}
