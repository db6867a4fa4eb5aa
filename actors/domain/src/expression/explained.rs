//! Probable causes of errors, found in the source and in the scope.

use serde_json::Value;

use super::error::{joined, key_step};
use super::{ExpressionError, Path, PathKey, Reading, SCOPE_NAMES, Scope};

/// Adds the probable cause to an error, unless the definition raised it.
pub(super) fn explained(
    source: &str,
    scope: &Scope,
    reading: impl FnOnce() -> Reading,
    mut error: ExpressionError,
) -> ExpressionError {
    if error.is_raised {
        return error;
    }
    if error.is_undefined {
        let paths = reading().paths;
        let mut looked_up = paths.iter().filter(|path| !path.keys.is_empty() && !path.is_optional);
        if let Some(path) = looked_up.clone().find(|path| scope.is_none(&path.root)) {
            let hint = format!("; `{}` is none: add a `default()`", path.root);
            error.message.push_str(&hint);
        } else if let Some(hint) = looked_up.find_map(|path| looked_up_in_scalar(path, scope)) {
            error.message.push_str(&hint);
        }
    }
    if let Some(suggestion) = hyphenated_step_reference(source) {
        error.message.push_str(&format!("; did you mean {suggestion}?"));
    }
    error
}

/// Returns a hint for a path that looks a member up in a text, a number or a boolean.
fn looked_up_in_scalar(path: &Path, scope: &Scope) -> Option<String> {
    let (mut value, mut way, keys) = match scope.value(&path.root) {
        Some(value) => (&**value, path.root.clone(), path.keys.as_slice()),
        None => {
            let (PathKey::Name(key), keys) = path.keys.split_first()? else { return None };
            let value = scope.value_by_key(&path.root, key)?;
            (&**value, joined(&path.root, &key_step(key)), keys)
        }
    };
    for key in keys {
        let PathKey::Name(name) = key else { return None };
        match value {
            Value::Object(members) => {
                way = joined(&way, &key_step(name));
                value = members.get(name)?;
            }
            Value::String(_) => {
                let instead = match name.as_str() {
                    "length" | "size" | "count" => "length` counts its characters",
                    _ => "fromjson` reads JSON in it",
                };
                return Some(format!("; `{way}` is a text: `{way} | {instead}"));
            }
            Value::Number(_) => return Some(format!("; `{way}` is a number")),
            Value::Bool(_) => return Some(format!("; `{way}` is a boolean")),
            Value::Null | Value::Array(_) => return None,
        }
    }
    None
}

/// Finds a step id with a hyphen written as an attribute (`steps.my-step`, a subtraction in the
/// language) and returns the correct form: `steps['my-step']`. Only a hint, since `steps.a-1` may
/// be intended.
pub fn hyphenated_step_reference(source: &str) -> Option<String> {
    const PREFIX: &str = "steps.";
    let code = without_texts(source);
    code.match_indices(PREFIX).find_map(|(at, _)| {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) {
            return None;
        }
        let rest = &code[at + PREFIX.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
            .unwrap_or(rest.len());
        let words: Vec<&str> =
            rest[..end].split('-').take_while(|word| !SCOPE_NAMES.contains(word)).collect();
        let id = words.join("-");
        let id = id.trim_end_matches('-');
        (id.contains('-')).then(|| format!("steps['{id}']"))
    })
}

/// Returns the source with the contents of its string literals blanked, byte for byte.
pub(super) fn without_texts(source: &str) -> String {
    let mut quote = None;
    let mut escaped = false;
    let blanked = source.chars().flat_map(|character| {
        let inside = quote.is_some();
        match quote {
            None if matches!(character, '\'' | '"') => quote = Some(character),
            Some(_) if escaped => escaped = false,
            Some(_) if character == '\\' => escaped = true,
            Some(open) if open == character => quote = None,
            _ => {}
        }
        let shown = if inside { ' ' } else { character };
        let width = if inside { character.len_utf8() } else { 1 };
        std::iter::repeat_n(shown, width)
    });
    blanked.collect()
}
