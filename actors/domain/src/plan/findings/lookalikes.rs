//! Texts that look like something else: templates in expressions, expressions in templates, and
//! what other languages write.

use crate::expression::{Expression, Reading};

use super::remarks::{Form, Remark};

pub(super) fn of(reading: &Reading, source: &str, form: Form, names: &[&str]) -> Vec<Remark> {
    let mut found = Vec::new();
    for constant in &reading.constants {
        if constant.text.contains("{{") {
            let message = "a text in an expression is not filled in: join its parts with `~` \
                           instead of `{{ }}`";
            found.push(Remark::warning(message.to_owned()));
        }
        found.extend(foreign(&constant.text, form, names));
    }
    for plain in &reading.plain {
        found.extend(foreign(&plain.text, form, names));
    }
    if form == Form::Template && is_forgotten(reading, source, names) {
        let path = source.trim();
        let message = format!("stands for itself; `{{{{ {path} }}}}` gives the value");
        found.push(Remark::warning(message));
    }
    found
}

/// `${steps.x}` or `{steps.x}`, which nothing fills in.
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
            Form::Expression => format!("join the text with `~ {inside}`"),
            Form::Template => format!("a template writes `{{{{ {inside} }}}}`"),
        };
        Some(Remark::warning(format!("`{dollar}{{{inside}}}` is not filled in: {instead}")))
    })
}

/// Whether a template is nothing but the way to a value.
fn is_forgotten(reading: &Reading, source: &str, names: &[&str]) -> bool {
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
