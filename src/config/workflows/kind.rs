//! Keys of steps: those of every step, and refusals of others. The keys of each kind are in the
//! table of kinds ([`StepType`]), which the builders use, too.

use greenroom_actors::domain::definition::StepType;

use crate::nearest::nearest;

/// Beginning of the name of every kind.
const PREFIX: &str = "and";

/// Keys of every step.
pub(crate) const COMMON: &[&str] =
    &["id", "name", "purpose", "type", "input_schema", "output_schema", "on_error"];

/// Refusal of `args` without a tool.
pub(crate) const ARGS_ALONE: &str = "is only valid beside `tool`";

/// Returns the names of all kinds.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    StepType::ALL.into_iter().map(StepType::name)
}

/// Returns the refusal of a kind that does not exist, and the name that was probably meant.
pub(crate) fn unknown(written: &str) -> (String, Option<String>) {
    let example = match written {
        "http" => Some("http = { url = \"…\" }"),
        "command" => Some("command = { argv = [\"…\"] }"),
        "map" => Some("map = { … }"),
        "run" | "function" => Some("run = \"…\""),
        "tool" => Some("tool = \"…\""),
        _ => None,
    };
    let message = format!("unknown type {written:?}");
    if let Some(example) = example {
        let key = example.split(' ').next().unwrap_or_default();
        return (format!("{message}; {key} is a key of andThen: {example}"), None);
    }
    // `agent` and `foreach` are short for these
    let short = names().find(|name| short_of(name).eq_ignore_ascii_case(written));
    match short.map(str::to_owned).or_else(|| nearest(written, names())) {
        Some(meant) => (message, Some(meant)),
        None => {
            (format!("{message}; it is one of {}", names().collect::<Vec<_>>().join(", ")), None)
        }
    }
}

fn short_of(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
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

/// Returns the refusal of `steps` in a step whose steps are blocks. `block` is the key that names them.
pub(crate) fn steps_inside(block: &str) -> String {
    let example = match block {
        "blocks" => "blocks = [\"…\"]",
        "cases" => "cases = [{ when = \"…\", block = \"…\" }]",
        _ => "block = \"…\"",
    };
    format!("its steps are a block of the workflow: {example}")
}
