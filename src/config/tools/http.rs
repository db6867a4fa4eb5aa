//! Tools of the kind `http`.

use std::sync::Arc;

use greenroom_actors::domain::call::{HttpCall, UnresolvedTemplate, UrlTemplate, header_problem};
use greenroom_actors::domain::definition::{HttpMethod, Projection};
use greenroom_actors::domain::expression::CompiledProjection;
use greenroom_actors::domain::plan::Form;
use serde_json::Value;

use crate::adapters::tools::secrets::SecretLookup;
use crate::config::calls::{header_secret_problem, warn_of_plain_secret};
use crate::config::entry::Entry;
use crate::config::section::Section;
use crate::config::texts::TextScope;

/// Reads the keys of this kind.
pub(super) fn read(section: &Section<'_>, scope: &TextScope) -> Option<HttpCall> {
    let method = section.get("method").map(|entry| entry.one_of(&HttpMethod::NAMES));
    let url = section.required("url").and_then(|entry| {
        let written = entry.filled_text()?;
        let compiled = UrlTemplate::compile(&written);
        let url = compiled.map_err(|problem| entry.place.refuse(problem)).ok()?;
        scope.check(&written, Form::Template, &entry.place);
        Some(url)
    });
    let headers = section.named_entries("headers").into_iter();
    let headers: Vec<_> = headers.map(|(name, entry)| header(&name, &entry, scope)).collect();
    let query = section.named_entries("query").into_iter();
    let query: Vec<_> =
        query.map(|(key, entry)| Some((Arc::from(key), query_value(&entry, scope)?))).collect();
    let body = section.get("body").map(|entry| {
        if method.is_none_or(|method| method == Some(HttpMethod::Get)) {
            entry.place.refuse("a GET sends no body; method = \"POST\" does");
        }
        body(&entry, scope)
    });
    Some(HttpCall {
        method: method.unwrap_or(Some(HttpMethod::Get))?,
        url: url?,
        headers: headers.into_iter().collect::<Option<_>>()?,
        query: query.into_iter().collect::<Option<_>>()?,
        body: match body {
            Some(body) => Some(body?),
            None => None,
        },
    })
}

fn header(
    name: &str,
    entry: &Entry<'_>,
    scope: &TextScope,
) -> Option<(Arc<str>, UnresolvedTemplate)> {
    if let Some(problem) = header_problem(name) {
        entry.place.refuse(problem);
    }
    warn_of_plain_secret(name, entry);
    let written = entry.text_with_secrets("a template in a string")?;
    let value = UnresolvedTemplate::compile(&written);
    let value = value.map_err(|error| entry.place.refuse(error.to_string())).ok()?;
    scope.check(&written, Form::Template, &entry.place);
    for variable in value.secrets() {
        match SecretLookup::of_process().secret(variable) {
            Err(problem) => entry.place.refuse(problem),
            Ok(value) => {
                if let Some(problem) = header_secret_problem(&value) {
                    entry.place.refuse(format!("the environment variable {variable} {problem}"));
                }
            }
        }
    }
    Some((Arc::from(name.to_ascii_lowercase()), value))
}

fn query_value(entry: &Entry<'_>, scope: &TextScope) -> Option<CompiledProjection> {
    scope.expression(entry);
    let value = entry.json()?;
    if !matches!(value, Value::String(_) | Value::Bool(_) | Value::Number(_)) {
        return entry.refuse("must be an expression in a string");
    }
    CompiledProjection::compile(&Projection(value)).ok()
}

fn body(entry: &Entry<'_>, scope: &TextScope) -> Option<CompiledProjection> {
    scope.projection(entry);
    CompiledProjection::compile(&entry.projection()?).ok()
}
