//! Tools of the kind `http`.

use greenroom_actors::domain::expression::{CompiledProjection, Expression, Template};
use reqwest::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TRANSFER_ENCODING};
use serde_json::Value;
use toml::de::DeValue;

use crate::adapters::tools::http::{
    HeaderPiece, HeaderTemplate, HttpMethod, HttpToolConfig, Secret, UrlTemplate,
};
use crate::config::entry::Entry;
use crate::config::problem::nearest;
use crate::config::secret::secrets_of;
use crate::config::section::Section;
use crate::config::texts;

/// What a call's templates and expressions can read.
const IN_SCOPE: [&str; 3] = ["args", "context", "user"];

/// Headers that follow from the connection and the body.
const OWN_HEADERS: [HeaderName; 4] = [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION];

/// Reads the keys that only this kind has.
pub(super) fn read(section: &Section<'_>) -> Option<HttpToolConfig> {
    let method = section.get("method").map(|entry| method(&entry));
    let url = section.required("url").and_then(|entry| {
        let compiled = UrlTemplate::compile(&entry.filled_text()?);
        let url = compiled.map_err(|problem| entry.place.refuse(problem)).ok()?;
        texts::scope(&entry.place, &IN_SCOPE, url.names());
        Some(url)
    });
    let headers = section.named_entries("headers").into_iter();
    let headers: Vec<_> = headers.map(|(name, entry)| header(&name, &entry)).collect();
    let query = section.named_entries("query").into_iter();
    let query: Vec<_> = query.map(|(key, entry)| Some((key, expression(&entry)?))).collect();
    let body = section.get("body").map(|entry| {
        if method.is_none_or(|method| method == Some(HttpMethod::Get)) {
            entry.place.refuse("a GET sends no body; method = \"POST\" does");
        }
        body(&entry)
    });
    Some(HttpToolConfig {
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

fn method(entry: &Entry<'_>) -> Option<HttpMethod> {
    let written = entry.text()?;
    let known = HttpMethod::NAMES.into_iter().find(|(name, _)| *name == written);
    if known.is_none() {
        let names = HttpMethod::NAMES.map(|(name, _)| name);
        let problem = entry.place.spot().error(format!("must be one of {}", names.join(", ")));
        entry.place.findings.report(problem.meant(nearest(&written, names)));
    }
    known.map(|(_, method)| method)
}

fn header(name: &str, entry: &Entry<'_>) -> Option<(HeaderName, HeaderTemplate)> {
    let refuse = |problem: String| entry.place.refuse(problem);
    let parsed =
        HeaderName::try_from(name).map_err(|_| refuse("is no name of a header".to_owned()));
    if parsed.as_ref().is_ok_and(|name| OWN_HEADERS.contains(name)) {
        refuse("follows from the call; it cannot be chosen".to_owned());
    }
    let DeValue::String(text) = entry.value else {
        refuse("must be a template in a string".to_owned());
        return None;
    };
    let (secrets, rest) = secrets_of(text);
    let mut pieces = Vec::new();
    let add_template = |text: &str, pieces: &mut Vec<HeaderPiece>| {
        if text.is_empty() {
            return;
        }
        match Template::compile(text) {
            Ok(template) => {
                texts::scope(&entry.place, &IN_SCOPE, template.names());
                pieces.push(HeaderPiece::Template(template));
            }
            Err(error) => refuse(error.to_string()),
        }
    };
    for (before, name) in secrets {
        add_template(before, &mut pieces);
        match secret(name) {
            Ok(secret) => pieces.push(HeaderPiece::Secret(secret)),
            Err(problem) => entry.place.refuse(problem),
        }
    }
    add_template(rest, &mut pieces);
    Some((parsed.ok()?, HeaderTemplate(pieces)))
}

/// A secret by the name of its variable. Problems name the variable and never its value.
fn secret(name: &str) -> Result<Secret, String> {
    let value = match std::env::var(name) {
        Ok(value) => value,
        Err(std::env::VarError::NotPresent) => {
            return Err(format!("the environment variable {name} is not set"));
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            return Err(format!("the environment variable {name} is not UTF-8"));
        }
    };
    Secret::new(&value).map_err(|problem| format!("the environment variable {name} {problem}"))
}

fn expression(entry: &Entry<'_>) -> Option<Expression> {
    texts::expression(entry);
    let source = match entry.json()? {
        Value::String(source) => source,
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            entry.place.refuse("must be an expression in a string");
            return None;
        }
    };
    let expression = Expression::compile(&source).ok()?;
    texts::scope(&entry.place, &IN_SCOPE, expression.names());
    Some(expression)
}

fn body(entry: &Entry<'_>) -> Option<CompiledProjection> {
    texts::projection(entry);
    let body = CompiledProjection::compile(&entry.projection()?).ok()?;
    texts::scope(&entry.place, &IN_SCOPE, body.names());
    Some(body)
}
