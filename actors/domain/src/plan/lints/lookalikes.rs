//! Syntax in the wrong place: templates in expressions, expressions in templates, and syntax of
//! other languages.

use crate::expression::{Expression, Reading};

use super::remarks::{Form, Remark};

pub(super) fn of(reading: &Reading, source: &str, form: Form, names: &[&str]) -> Vec<Remark> {
    let mut found = Vec::new();
    for constant in &reading.constants {
        if constant.text.contains("{{") {
            let message =
                "`{{ }}` in a string of an expression is not replaced: concatenate with `~`";
            found.push(Remark::warning(message.to_owned()));
        }
        found.extend(foreign(&constant.text, form, names));
    }
    for plain in &reading.plain {
        found.extend(foreign(&plain.text, form, names));
    }
    if form == Form::Template && lacks_braces(reading, source, names) {
        let path = source.trim();
        let message = format!("is literal text; write `{{{{ {path} }}}}` for the value");
        found.push(Remark::warning(message));
    }
    found
}

/// Reports `${steps.x}` and `{steps.x}`, which are not replaced.
fn foreign(text: &str, form: Form, names: &[&str]) -> Option<Remark> {
    text.match_indices('{').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        let inside = rest[..rest.find('}')?].trim();
        let root = inside.split(['.', '[']).next()?;
        let is_lookup = inside.len() > root.len() && names.contains(&root);
        let has_dollar = text[..at].ends_with('$');
        let is_path = is_lookup || has_dollar && names.contains(&inside);
        if !is_path
            || text[..at].ends_with('{')
            || !Expression::compile(inside).ok()?.reading().is_path
        {
            return None;
        }
        let dollar = if has_dollar { "$" } else { "" };
        let instead = match form {
            Form::Expression => format!("concatenate with `~ {inside}`"),
            Form::Template => format!("write `{{{{ {inside} }}}}`"),
        };
        Some(Remark::warning(format!("`{dollar}{{{inside}}}` is not replaced: {instead}")))
    })
}

/// Returns true if a template consists of a path to a value, without braces.
fn lacks_braces(reading: &Reading, source: &str, names: &[&str]) -> bool {
    if !reading.paths.is_empty() || source.contains(['{', '\n']) {
        return false;
    }
    let Ok(expression) = Expression::compile(source.trim()) else { return false };
    let read = expression.reading();
    let is_way = |path: &crate::expression::Path| {
        !path.keys.is_empty() && names.contains(&path.root.as_str())
    };
    !read.paths.is_empty() && read.paths.iter().all(is_way)
}
