//! Which keys belong to which kind of step; one table for TOML and for the builders.

/// Keys of every step.
pub(crate) const COMMON: &[&str] =
    &["id", "name", "purpose", "type", "input_schema", "output_schema", "on_error"];

/// Keys beyond [`COMMON`], by kind.
const KINDS: &[(&str, &[&str])] = &[
    (
        "andThen",
        &[
            "map",
            "run",
            "http",
            "command",
            "tool",
            "args",
            "suspend",
            "suspend_schema",
            "resume_schema",
            "retry",
            "timeout",
        ],
    ),
    ("andTap", &["map", "run", "http", "command", "tool", "args", "retry", "timeout"]),
    ("andWhen", &["when", "block"]),
    ("andAll", &["blocks"]),
    ("andRace", &["blocks"]),
    (
        "andAgent",
        &[
            "agent",
            "prompt",
            "schema",
            "options",
            "suspend",
            "suspend_schema",
            "resume_schema",
            "retry",
            "timeout",
        ],
    ),
    (
        "andWorkflow",
        &["workflow", "input", "suspend", "suspend_schema", "resume_schema", "retry", "timeout"],
    ),
    ("andSleep", &["duration"]),
    ("andSleepUntil", &["until"]),
    ("andMap", &["map", "suspend", "suspend_schema", "resume_schema", "retry", "timeout"]),
    ("andForEach", &["items", "block", "concurrency"]),
    ("andBranch", &["cases", "default"]),
    ("andDoWhile", &["block", "when", "max_iterations"]),
    ("andDoUntil", &["block", "when", "max_iterations"]),
];

/// What a step does: exactly one of these.
pub(crate) const BODIES: [&str; 5] = ["map", "run", "http", "command", "tool"];

/// Why `args` without a tool is refused.
pub(crate) const ARGS_ALONE: &str = "belongs to `tool`, which is not there";

/// Names of all kinds.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

/// Keys of a kind beyond [`COMMON`].
pub(crate) fn keys_of(kind: &str) -> Option<&'static [&'static str]> {
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, keys)| *keys)
}

/// Whether the key belongs to some kind of step.
pub(crate) fn is_key_of_any(key: &str) -> bool {
    KINDS.iter().any(|(_, keys)| keys.contains(&key))
}

/// The key of the kind that a key of other languages stands for.
pub(crate) fn meant(key: &str, keys: &[&'static str]) -> Option<&'static str> {
    let is_condition = matches!(key, "while" | "until" | "if" | "condition");
    keys.iter().copied().find(|known| is_condition && *known == "when")
}

/// Says that a key is out of place.
pub(crate) fn misfit(key: &str, kind: &str) -> String {
    format!("key `{key}` does not belong to {kind}")
}
