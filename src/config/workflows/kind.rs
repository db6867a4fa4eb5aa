//! Keys of steps: those of every step, and refusals of others. The keys of each kind are in the
//! table of kinds ([`StepType`]), which the builders use, too.

use greenroom_actors::domain::definition::StepType;

/// Keys of every step.
pub(crate) const COMMON: &[&str] =
    &["id", "name", "purpose", "type", "input_schema", "output_schema", "on_error"];

/// Refusal of `args` without a tool.
pub(crate) const ARGS_ALONE: &str = "is only valid beside `tool`";

/// Returns the names of all kinds.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    StepType::ALL.into_iter().map(StepType::name)
}

/// Returns true if any kind of step has the key.
pub(crate) fn is_key_of_any(key: &str) -> bool {
    StepType::ALL.into_iter().any(|kind| kind.keys().contains(&key))
}

/// Returns the known key for a synonym from other languages.
pub(crate) fn meant(key: &str, keys: &[&'static str]) -> Option<&'static str> {
    let is_condition = matches!(key, "while" | "until" | "if" | "condition");
    keys.iter().copied().find(|known| is_condition && *known == "when")
}

/// Returns the refusal of a key that the kind does not have.
pub(crate) fn misfit(key: &str, kind: StepType) -> String {
    format!("key `{key}` does not belong to {}", kind.name())
}
