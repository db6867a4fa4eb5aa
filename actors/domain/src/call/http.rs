//! HTTP calls. A value never leaves the part of the request where the author put it.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::text::{UnresolvedTemplate, UnresolvedText};
use super::url::{HostChoice, URL_BYTES_MAX, UrlTemplate, plain_text, too_long};
use crate::definition::HttpMethod;
use crate::expression::{CompiledMapping, Scope};
use crate::failure::AttemptFailure;

/// Headers that the HTTP client derives from the connection and the body.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// A compiled call.
#[derive(Debug, Clone)]
pub struct HttpCall {
    pub method: HttpMethod,
    pub url: UrlTemplate,
    pub headers: Vec<(Arc<str>, UnresolvedTemplate)>,
    /// Appended to the URL's own query. `null` omits its key, an array repeats it.
    pub query: Vec<(Arc<str>, CompiledMapping)>,
    pub body: Option<CompiledMapping>,
}

/// A call with all its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub url: Url,
    /// Source of the host.
    pub host: HostChoice,
    pub headers: Vec<(Arc<str>, UnresolvedText)>,
    /// JSON.
    pub body: Option<String>,
}

/// Returns the problem with the name of a header.
pub fn header_problem(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return Some("is not a valid header name");
    }
    let is_own = OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
    is_own.then_some("is set by the HTTP client; it cannot be configured")
}

impl HttpCall {
    /// Returns the names that it reads, functions included, unordered and possibly repeated.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter().flat_map(|(_, value)| value.names());
        let query = self.query.iter().flat_map(|(_, value)| value.names());
        let body = self.body.iter().flat_map(CompiledMapping::names);
        self.url.names().chain(headers).chain(query).chain(body)
    }

    /// Returns the variables of its secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().flat_map(|(_, value)| value.secrets())
    }

    /// Makes the request from the values in scope. `data` is its body if the method has one and the
    /// definition does not.
    pub fn request(&self, scope: &Scope, data: &Value) -> Result<HttpRequest, AttemptFailure> {
        let mut url = self.url.render(scope)?;
        add_query(&mut url, &self.query, scope)?;
        let body = match &self.body {
            Some(body) => {
                let body = body.evaluate(scope);
                let body = body.map_err(|error| AttemptFailure::not_evaluated("body: ", &error))?;
                Some(body.to_string())
            }
            None => self.method.sends_data().then(|| data.to_string()),
        };
        let header = |(name, value): &(Arc<str>, UnresolvedTemplate)| {
            let text = value.render(scope).map_err(|error| {
                AttemptFailure::not_evaluated(&format!("header {name}: "), &error)
            })?;
            Ok((Arc::clone(name), text))
        };
        let headers = self.headers.iter().map(header).collect::<Result<_, AttemptFailure>>()?;
        Ok(HttpRequest { method: self.method, url, host: self.url.host_choice(), headers, body })
    }
}

fn add_query(
    url: &mut Url,
    query: &[(Arc<str>, CompiledMapping)],
    scope: &Scope,
) -> Result<(), AttemptFailure> {
    for (key, value) in query {
        let value = value
            .evaluate(scope)
            .map_err(|error| AttemptFailure::not_evaluated(&format!("query.{key}: "), &error))?;
        let values = match value {
            Value::Null => continue,
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in &values {
            let text = plain_text(value).ok_or_else(|| {
                let message = format!("query.{key}: must be a string, a number or a boolean");
                AttemptFailure::expression(message)
            })?;
            url.query_pairs_mut().append_pair(key, &text);
        }
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::Mapping;

    fn call(method: HttpMethod) -> HttpCall {
        let mapping = |value| CompiledMapping::compile(&Mapping(value)).unwrap();
        HttpCall {
            method,
            url: UrlTemplate::compile("https://a.example/{{ data.id }}?fixed=1").unwrap(),
            headers: vec![("x-a".into(), UnresolvedTemplate::compile("{{ data.id }}").unwrap())],
            query: vec![
                ("tag".into(), mapping(json!("data.tags"))),
                ("none".into(), mapping(json!("data.none | default(none)"))),
                ("page".into(), mapping(json!(2))),
                ("both".into(), mapping(json!(["data.id", 3]))),
            ],
            body: None,
        }
    }

    #[test]
    fn a_request_has_the_values_of_its_scope() {
        let data = Arc::new(json!({ "id": "a/b", "tags": ["x y", true] }));
        let scope = Scope::new().with("data", Arc::clone(&data));
        let made = call(HttpMethod::Post).request(&scope, &data).unwrap();
        let expected = "https://a.example/a%2Fb?fixed=1&tag=x+y&tag=true&page=2&both=a%2Fb&both=3";
        assert_eq!((made.url.as_str(), made.host), (expected, HostChoice::Operator));
        assert_eq!(made.body, Some(data.to_string()));
        assert_eq!(made.headers[0].1.resolved(Err::<String, _>), Ok("a/b".to_owned()));
        for method in [HttpMethod::Get, HttpMethod::Delete] {
            assert_eq!(call(method).request(&scope, &data).unwrap().body, None);
        }
    }

    #[test]
    fn unfit_query_values_are_refused_with_their_place() {
        for (data, expected) in [
            (json!({ "id": 1, "tags": {} }), "query.tag: must be a string, a number or a boolean"),
            (json!({ "id": 1, "tags": "x".repeat(9000) }), "the URL is longer than 8192 bytes"),
            (json!({ "id": 1 }), "query.tag: undefined value in `data.tags`"),
        ] {
            let data = Arc::new(data);
            let scope = Scope::new().with("data", Arc::clone(&data));
            let refused = call(HttpMethod::Get).request(&scope, &data).unwrap_err();
            assert_eq!(refused.message, expected);
        }
    }

    #[test]
    fn headers_of_the_connection_cannot_be_configured() {
        for (name, fits) in [
            ("authorization", true),
            ("X-A_1", true),
            ("Host", false),
            ("transfer-encoding", false),
            ("", false),
            ("a b", false),
            ("a:b", false),
            ("a\r\nb", false),
        ] {
            assert_eq!(header_problem(name).is_none(), fits, "{name:?}");
        }
    }

    #[test]
    fn a_failure_that_the_definition_raised_is_not_retried() {
        let data = Arc::new(json!({ "id": 1 }));
        let scope = Scope::new().with("data", Arc::clone(&data));
        let fail = CompiledMapping::compile(&Mapping(json!("fail('no')"))).unwrap();
        let url = || UrlTemplate::compile("https://a.example/{{ fail('no') }}").unwrap();
        let header = UnresolvedTemplate::compile("{{ fail('no') }}").unwrap();
        let plain = || HttpCall { query: Vec::new(), ..call(HttpMethod::Post) };
        for call in [
            HttpCall { url: url(), ..plain() },
            HttpCall { headers: vec![("x-a".into(), header)], ..plain() },
            HttpCall { query: vec![("q".into(), fail.clone())], ..plain() },
            HttpCall { body: Some(fail), ..plain() },
        ] {
            let failure = call.request(&scope, &data).unwrap_err();
            assert_eq!(failure.message, "no");
            assert!(failure.class.unwrap().is_never_retried());
        }
    }
}
