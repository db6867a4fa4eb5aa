//! Tools that are HTTP calls.
//!
//! What a model writes into a call stays where the configuration puts it: values in URLs are
//! encoded, headers cannot be broken out of, hosts that data chooses are guarded (see
//! [`super::outgoing`]). What comes back is bounded, and secrets are struck from it.

mod answer;
mod header;
mod url;

use std::sync::Arc;

use futures_util::future::FutureExt as _;
use greenroom_actors::domain::expression::{CompiledProjection, Expression, Scope};
use greenroom_actors::domain::trace::Trace;
use greenroom_actors::tool::{ToolContext, ToolError, ToolFunction};
use percent_encoding::{CONTROLS, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;

pub use self::header::{HeaderPiece, HeaderTemplate, Secret};
pub use self::url::UrlTemplate;

use self::url::{URL_BYTES_MAX, plain_text};
use super::outgoing::{HostChoice, HostRefused, Outgoing};

/// Redirects followed in one call.
const REDIRECTS_MAX: usize = 5;

/// The same value for every attempt of a call, so that the other side can tell a repetition.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// An HTTP call, compiled. In scope of its templates and expressions: `args`, `context`, `user`.
#[derive(Debug, Clone)]
pub struct HttpToolConfig {
    pub method: HttpMethod,
    pub url: UrlTemplate,
    pub headers: Vec<(HeaderName, HeaderTemplate)>,
    /// Added behind the URL's own query. A value of none leaves its key out, an array repeats it.
    pub query: Vec<(String, Expression)>,
    /// Sent as JSON. Without it the arguments are, where the method has a body.
    pub body: Option<CompiledProjection>,
}

/// Methods that a tool may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpMethod {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// All of them, by the name on the wire.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("GET", Self::Get),
        ("POST", Self::Post),
        ("PUT", Self::Put),
        ("PATCH", Self::Patch),
        ("DELETE", Self::Delete),
    ];

    fn on_the_wire(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }

    /// Whether the arguments are its body when the configuration names none.
    fn sends_arguments(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// A tool over HTTP, ready to be called.
#[derive(Debug)]
pub struct HttpTool {
    /// For the log.
    name: String,
    config: HttpToolConfig,
    outgoing: Outgoing,
    answer_bytes_max: usize,
}

/// One request of a call: the first, or where a redirect leads.
struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    choice: HostChoice,
}

impl HttpTool {
    /// A tool whose answers have at most this many bytes.
    pub fn new(
        name: impl Into<String>,
        config: HttpToolConfig,
        outgoing: Outgoing,
        answer_bytes_max: usize,
    ) -> Self {
        Self { name: name.into(), config, outgoing, answer_bytes_max }
    }

    /// The tool as the runtime calls it.
    pub fn into_function(self) -> ToolFunction {
        let tool = Arc::new(self);
        Arc::new(move |arguments, context| {
            let tool = Arc::clone(&tool);
            async move { tool.call(arguments, &context).await.map_err(ToolError) }.boxed()
        })
    }

    async fn call(&self, arguments: Value, context: &ToolContext) -> Result<Value, String> {
        let mut hop = self.first_hop(arguments, context)?;
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.send(&hop).await?;
            match redirection(&answer) {
                Some(location) => {
                    let tells_secret = self.struck(location.to_owned()) != location;
                    let next = hop.redirected(answer.status(), location, tells_secret);
                    hop = next.map_err(|why| self.struck(why))?;
                }
                None => return self.read(answer).await,
            }
        }
        Err(format!("redirected more than {REDIRECTS_MAX} times"))
    }

    fn first_hop(&self, arguments: Value, context: &ToolContext) -> Result<Hop, String> {
        let HttpToolConfig { method, url, headers, query, body } = &self.config;
        let choice = url.host_choice();
        let arguments = Arc::new(arguments);
        let user = context.context.get("user").cloned().map(Arc::new);
        let scope = Scope::new()
            .with("args", Arc::clone(&arguments))
            .with("context", Arc::new(Value::Object((*context.context).clone())))
            .with_optional("user", user);
        let mut url = url.render(&scope)?;
        add_query(&mut url, query, &scope)?;
        let body = match body {
            Some(body) => {
                Some(body.evaluate(&scope).map_err(|error| format!("body: {error}"))?.to_string())
            }
            None => method.sends_arguments().then(|| arguments.to_string()),
        };
        let mut sent = HeaderMap::new();
        if *method != HttpMethod::Get {
            sent.insert(IDEMPOTENCY_KEY, idempotency_key(context)?);
        }
        if body.is_some() {
            sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        // what is configured comes later, and counts
        for (name, value) in context.trace.iter().flat_map(Trace::headers) {
            let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
            sent.insert(name, value);
        }
        for (name, value) in headers {
            let value = value.render(&scope).map_err(|why| format!("header {name}: {why}"))?;
            sent.insert(name, value);
        }
        let body = body.map(String::into_bytes);
        Ok(Hop { method: method.on_the_wire(), url, headers: sent, body, choice })
    }

    async fn send(&self, hop: &Hop) -> Result<Response, String> {
        let client = self.outgoing.client(&hop.url, hop.choice).map_err(|it| self.refused(&it))?;
        let mut request = client.request(hop.method.clone(), hop.url.clone());
        request = request.headers(hop.headers.clone());
        if let Some(body) = &hop.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|error| self.failure(&error))
    }

    async fn read(&self, answer: Response) -> Result<Value, String> {
        let read = answer::read(answer, self.answer_bytes_max, |text| self.struck(text)).await;
        read.map_err(|error| match error {
            answer::AnswerError::Connection(error) => self.failure(&error),
            answer::AnswerError::Answer(why) => why,
        })
    }

    /// A text from outside without the secrets of the call.
    fn struck(&self, text: String) -> String {
        let headers = self.config.headers.iter();
        headers.fold(text, |text, (_, header)| header.struck_from(text))
    }

    /// What models and callers are told; the log has more. Neither has a URL: its query may hold
    /// what is nobody's business.
    fn failure(&self, error: &reqwest::Error) -> String {
        let mut causes = vec![];
        let mut next = std::error::Error::source(error);
        while let Some(cause) = next {
            if let Some(refused) = cause.downcast_ref::<HostRefused>() {
                return self.refused(refused);
            }
            causes.push(cause.to_string());
            next = cause.source();
        }
        log::warn!("tool {}: the call failed: {}", self.name, causes.join(": "));
        if error.is_timeout() {
            return "the other side does not answer in time".to_owned();
        }
        let problem = if error.is_connect() { "cannot be reached" } else { "broke off" };
        format!("the other side {problem}")
    }

    fn refused(&self, refused: &HostRefused) -> String {
        let HostRefused { host } = refused;
        log::warn!(
            "tool {}: {host:?} is no public address and was not called; [limits] outgoing_hosts \
             can allow it",
            self.name
        );
        refused.to_string()
    }
}

impl Hop {
    /// Where a redirect leads. Another origin gets no header of this one, as they may hold
    /// secrets, and no address that tells one: it would be looked up by name, and logged.
    fn redirected(
        self,
        status: StatusCode,
        location: &str,
        tells_secret: bool,
    ) -> Result<Self, String> {
        let Self { mut method, url: from, mut headers, mut body, mut choice } = self;
        let bad = |_| "redirected to something that is no URL".to_owned();
        let url = from.join(location).map_err(bad)?;
        // the same checks as for a URL of data
        let url = url::parsed(url.as_str()).map_err(|why| format!("redirected to a bad {why}"))?;
        if from.scheme() == "https" && url.scheme() != "https" {
            return Err("redirected from https to http".to_owned());
        }
        if from.origin() != url.origin() {
            if tells_secret {
                return Err("redirected elsewhere with a secret of the call".to_owned());
            }
            headers.clear();
            choice = HostChoice::Data;
            if body.is_some() {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
        }
        let becomes_get = match status {
            StatusCode::SEE_OTHER => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
            _ => false,
        };
        if becomes_get {
            method = Method::GET;
            body = None;
            headers.remove(CONTENT_TYPE);
            headers.remove(IDEMPOTENCY_KEY);
        }
        Ok(Self { method, url, headers, body, choice })
    }
}

/// Where the answer sends its reader.
fn redirection(answer: &Response) -> Option<&str> {
    match answer.status().as_u16() {
        301 | 302 | 303 | 307 | 308 => answer.headers().get(LOCATION)?.to_str().ok(),
        _ => None,
    }
}

fn add_query(url: &mut Url, query: &[(String, Expression)], scope: &Scope) -> Result<(), String> {
    for (key, expression) in query {
        let value = expression.evaluate(scope).map_err(|error| format!("query.{key}: {error}"))?;
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

/// Ids of calls come from models' providers and may hold anything.
fn idempotency_key(context: &ToolContext) -> Result<HeaderValue, String> {
    let key = utf8_percent_encode(&context.idempotency_key, CONTROLS).to_string();
    HeaderValue::try_from(key).map_err(|_| "the call's id cannot be sent".to_owned())
}

#[cfg(test)]
mod tests;
