//! HTTP calls: values stay where the author put them, whatever they hold.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::text::{UnresolvedTemplate, UnresolvedText};
use super::url::{HostChoice, URL_BYTES_MAX, UrlTemplate, plain_text};
use crate::definition::HttpMethod;
use crate::expression::{CompiledProjection, Scope};

/// Headers that follow from the connection and the body.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

/// A compiled call.
#[derive(Debug, Clone)]
pub struct HttpCall {
    pub method: HttpMethod,
    pub url: UrlTemplate,
    pub headers: Vec<(Arc<str>, UnresolvedTemplate)>,
    /// Added behind the URL's own query. A value of none leaves its key out, an array repeats it.
    pub query: Vec<(Arc<str>, CompiledProjection)>,
    pub body: Option<CompiledProjection>,
}

/// A call as it is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub url: Url,
    /// Who chose where it goes.
    pub host: HostChoice,
    pub headers: Vec<(Arc<str>, UnresolvedText)>,
    /// JSON.
    pub body: Option<String>,
}

/// What is wrong with a header's name.
pub fn header_problem(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return Some("is no name of a header");
    }
    let is_own = OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
    is_own.then_some("follows from the call; it cannot be chosen")
}

impl HttpCall {
    /// The names that it reads, functions included, in no order; some more than once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter().flat_map(|(_, value)| value.names());
        let query = self.query.iter().flat_map(|(_, value)| value.names());
        let body = self.body.iter().flat_map(CompiledProjection::names);
        self.url.names().chain(headers).chain(query).chain(body)
    }

    /// The variables of its secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().flat_map(|(_, value)| value.secrets())
    }

    /// The call for what is in scope. `data` is its body where the author named none and the
    /// method has one.
    pub fn request(&self, scope: &Scope, data: &Value) -> Result<HttpRequest, String> {
        let mut url = self.url.render(scope)?;
        add_query(&mut url, &self.query, scope)?;
        let body = match &self.body {
            Some(body) => {
                let body = body.evaluate(scope).map_err(|error| format!("body: {error}"))?;
                Some(body.to_string())
            }
            None => self.method.sends_data().then(|| data.to_string()),
        };
        let header = |(name, value): &(Arc<str>, UnresolvedTemplate)| {
            let text = value.render(scope).map_err(|error| format!("header {name}: {error}"))?;
            Ok((Arc::clone(name), text))
        };
        let headers = self.headers.iter().map(header).collect::<Result<_, String>>()?;
        Ok(HttpRequest { method: self.method, url, host: self.url.host_choice(), headers, body })
    }
}

fn add_query(
    url: &mut Url,
    query: &[(Arc<str>, CompiledProjection)],
    scope: &Scope,
) -> Result<(), String> {
    for (key, value) in query {
        let value = value.evaluate(scope).map_err(|error| format!("query.{key}: {error}"))?;
        let values = match value {
            Value::Null => continue,
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in &values {
            let text = plain_text(value)
                .ok_or_else(|| format!("query.{key}: is no text and no number"))?;
            url.query_pairs_mut().append_pair(key, &text);
        }
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(format!("the URL is longer than {URL_BYTES_MAX} bytes"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::Projection;

    fn call(method: HttpMethod) -> HttpCall {
        let projection = |value| CompiledProjection::compile(&Projection(value)).unwrap();
        HttpCall {
            method,
            url: UrlTemplate::compile("https://a.example/{{ data.id }}?fixed=1").unwrap(),
            headers: vec![("x-a".into(), UnresolvedTemplate::compile("{{ data.id }}").unwrap())],
            query: vec![
                ("tag".into(), projection(json!("data.tags"))),
                ("none".into(), projection(json!("data.none | default(none)"))),
                ("page".into(), projection(json!(2))),
                ("both".into(), projection(json!(["data.id", 3]))),
            ],
            body: None,
        }
    }

    #[test]
    fn a_call_holds_what_its_scope_gives() {
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
    fn what_fits_nowhere_is_refused_with_its_place() {
        for (data, expected) in [
            (json!({ "id": 1, "tags": {} }), "query.tag: is no text and no number"),
            (json!({ "id": 1, "tags": "x".repeat(9000) }), "the URL is longer than 8192 bytes"),
            (json!({ "id": 1 }), "query.tag: undefined value in `data.tags`"),
        ] {
            let data = Arc::new(data);
            let scope = Scope::new().with("data", Arc::clone(&data));
            let refused = call(HttpMethod::Get).request(&scope, &data).unwrap_err();
            assert_eq!(refused, expected);
        }
    }

    #[test]
    fn headers_of_the_connection_are_not_chosen() {
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
}
