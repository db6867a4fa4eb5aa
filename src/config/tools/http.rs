//! Tools of the kind `http`.

use std::sync::Arc;

use greenroom_actors::domain::call::{HttpCall, UnresolvedTemplate};
use greenroom_actors::domain::definition::HttpMethod;

use super::parts::Parts;
use crate::adapters::tools::secrets::SecretLookup;
use crate::config::calls::header_secret_problem;
use crate::config::entry::Entry;
use crate::config::secret::variable_problem;
use crate::config::section::Section;

/// Reads the keys of this kind.
pub(super) fn read(section: &Section<'_>, parts: &Parts<'_>) -> Option<HttpCall> {
    let method = section.get("method").map(|entry| entry.one_of(&HttpMethod::NAMES));
    let url = section.required("url").and_then(|entry| parts.url(&entry.filled_text()?));
    let headers = section.named_entries("headers").into_iter();
    let headers: Vec<_> = headers.map(|(name, entry)| header(&name, &entry, parts)).collect();
    let query = section.named_entries("query").into_iter();
    let query: Vec<_> = query.map(|(key, entry)| parts.query(&key, &entry.json()?)).collect();
    let body = section.get("body").map(|entry| {
        parts.check_method(method.unwrap_or(Some(HttpMethod::Get)));
        parts.body(&entry.json()?)
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
    parts: &Parts<'_>,
) -> Option<(Arc<str>, UnresolvedTemplate)> {
    let Some(written) = entry.text_with_secrets("a template in a string") else {
        parts.check_header_name(name);
        return None;
    };
    let (name, value) = parts.header(name, &written)?;
    for variable in value.secrets() {
        let problem = match SecretLookup::of_process().secret(variable) {
            Ok(value) => {
                header_secret_problem(&value).map(|problem| variable_problem(variable, problem))
            }
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem {
            entry.place.refuse(problem);
        }
    }
    Some((name, value))
}
