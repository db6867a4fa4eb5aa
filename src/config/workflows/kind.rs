//! Keys of steps: those of every step, and how one that does not belong is refused. Which keys a
//! kind has is in the table of kinds ([`StepType`]); TOML and the builders both ask it.

use greenroom_actors::domain::definition::StepType;

/// Keys of every step.
pub(crate) const COMMON: &[&str] =
    &["id", "name", "purpose", "type", "input_schema", "output_schema", "on_error"];

/// Keys that name a body: a step has exactly one of them.
pub(crate) const BODIES: [&str; 5] = ["map", "run", "http", "command", "tool"];

/// Why `args` without a tool is refused.
pub(crate) const ARGS_ALONE: &str = "belongs to `tool`, which is not there";

/// Returns the names of all kinds.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    StepType::ALL.into_iter().map(StepType::name)
}

/// Returns whether the key belongs to some kind of step.
pub(crate) fn is_key_of_any(key: &str) -> bool {
    StepType::ALL.into_iter().any(|kind| kind.keys().contains(&key))
}

/// Returns the key that a key of other languages stands for.
pub(crate) fn meant(key: &str, keys: &[&'static str]) -> Option<&'static str> {
    let is_condition = matches!(key, "while" | "until" | "if" | "condition");
    keys.iter().copied().find(|known| is_condition && *known == "when")
}

/// Returns the refusal of a key that is out of place.
pub(crate) fn misfit(key: &str, kind: StepType) -> String {
    format!("key `{key}` does not belong to {}", kind.name())
}
