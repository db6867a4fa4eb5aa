//! Messages of JSON-RPC, and the era of the protocol that each belongs to: since 2026-07-28 every
//! request says for itself what its client speaks and can do; before, a handshake said it once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom_actors::domain::failure::shortened;
use serde_json::{Map, Value, json};

use crate::api::error::ApiError;
use crate::api::json::parse_value;

/// Version of requests that describe themselves.
pub(super) const MODERN: &str = "2026-07-28";

/// Versions with a handshake, the newest first. 2025-03-26 is not among them: its servers have to take
/// several messages at once.
pub(super) const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2024-11-05"];

/// Most bytes of a text of the client that a refusal repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// Extension with which calls become tasks.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Error codes of JSON-RPC and of the protocol.
pub mod code {
    pub const PARSE: i32 = -32700;
    pub const INVALID_REQUEST: i32 = -32600;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    pub const INTERNAL: i32 = -32603;
    /// Of older versions.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// A header differs from the body.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The client has not declared a capability that the request needs.
    pub const CAPABILITY_MISSING: i32 = -32021;
    pub const VERSION_UNSUPPORTED: i32 = -32022;
}

/// Methods whose subject is repeated in the header `Mcp-Name`, and the parameter that names it.
const NAMED: [(&str, &str); 5] = [
    ("tools/call", "name"),
    ("resources/read", "uri"),
    ("tasks/get", "taskId"),
    ("tasks/update", "taskId"),
    ("tasks/cancel", "taskId"),
];

/// Headers of a request; `None` if absent or repeated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    /// `MCP-Protocol-Version`
    pub version: Option<&'a str>,
    /// `Mcp-Method`
    pub method: Option<&'a str>,
    /// `Mcp-Name`
    pub name: Option<&'a str>,
}

/// A message from a client.
#[derive(Debug, PartialEq)]
pub enum Message {
    Request(Request),
    /// A notification or a response, which has no answer.
    Unanswered,
}

/// A request.
#[derive(Debug, PartialEq)]
pub struct Request {
    /// A text or a whole number.
    pub id: Value,
    pub method: String,
    pub params: Map<String, Value>,
    pub era: Era,
}

/// The part of the protocol that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Modern(Abilities),
    /// The abilities of the client were said in another request, and are unknown.
    Legacy,
}

/// Abilities that a client has declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// It shows forms to a person.
    pub shows_forms: bool,
    /// It opens pages for a person.
    pub opens_pages: bool,
    /// It follows tasks.
    pub follows_tasks: bool,
}

/// A request that is not carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Status of HTTP.
    pub status: u16,
    /// Null where the id could not be read.
    pub id: Value,
    pub code: i32,
    pub message: String,
    pub data: Option<Box<Value>>,
}

impl Refusal {
    fn new(status: u16, id: &Value, code: i32, message: impl Into<String>) -> Self {
        Self { status, id: id.clone(), code, message: message.into(), data: None }
    }

    /// Adds what programs read.
    #[must_use]
    pub fn with(self, data: Value) -> Self {
        Self { data: Some(Box::new(data)), ..self }
    }

    /// Passes a refusal of the service on, for a message that was not read.
    pub fn unread(refusal: &ApiError) -> Self {
        Self::of(refusal, &Value::Null)
    }

    fn of(refusal: &ApiError, id: &Value) -> Self {
        let status = refusal.status();
        let code = if status < 500 { code::INVALID_REQUEST } else { code::INTERNAL };
        let mut data = json!({ "code": refusal.code().as_str(), "status": status });
        if let Some(seconds) = refusal.retry_after_s() {
            data["retryAfter"] = json!(seconds);
        }
        if let Some(id) = refusal.execution_id() {
            data["executionId"] = json!(id.as_str());
        }
        if let Some(id) = refusal.generation_id() {
            data["generationId"] = json!(id);
        }
        Self::new(status, id, code, refusal.to_string()).with(data)
    }

    /// Names what the call has begun, unless the refusal names one.
    #[must_use]
    pub fn about(mut self, kind: &str, id: &str) -> Self {
        if let Some(Value::Object(data)) = self.data.as_deref_mut() {
            data.entry(format!("{kind}Id")).or_insert_with(|| json!(id));
        }
        self
    }

    /// Returns a member of what programs read, as the text of a header.
    pub fn detail(&self, key: &str) -> Option<String> {
        match self.data.as_ref()?.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Returns the message to send.
    pub fn body(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = (**data).clone();
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error })
    }
}

impl Message {
    /// Reads a message and checks that its headers say the same.
    pub fn read(headers: Headers<'_>, bytes: &[u8]) -> Result<Self, Refusal> {
        let null = Value::Null;
        let whole = parse_value(bytes)
            .map_err(|error| Refusal::new(400, &null, code::PARSE, error.to_string()))?;
        let invalid = |id: &Value, what: &str| {
            let text = format!("Invalid request: {what}");
            Refusal::new(400, id, code::INVALID_REQUEST, text)
        };
        let Value::Object(mut message) = whole else {
            return Err(invalid(&null, "must be one message; batches are not supported"));
        };
        let id = message.shift_remove("id");
        let known = id.as_ref().filter(|id| is_request_id(id)).unwrap_or(&null);
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(known, "jsonrpc must be \"2.0\""));
        }
        let method = match message.shift_remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return Err(invalid(known, "method must be a string")),
            None if message.contains_key("result") || message.contains_key("error") => {
                return Ok(Self::Unanswered);
            }
            None => return Err(invalid(known, "method is missing")),
        };
        let params = match message.shift_remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(invalid(known, "params must be an object")),
        };
        let Some(id) = id else { return Ok(Self::Unanswered) };
        if !is_request_id(&id) {
            return Err(invalid(&null, "id must be a string or a whole number"));
        }
        let era = era_of(headers, (&id, &method, &params))?;
        Ok(Self::Request(Request { id, method, params, era }))
    }
}

impl Request {
    /// Refuses the request while it is carried out. Clients read the status before the error, so
    /// that it is 200 wherever the protocol names no other.
    pub fn refuse(&self, code: i32, message: impl Into<String>) -> Refusal {
        let status = match (code, self.era) {
            (code::METHOD_NOT_FOUND, Era::Modern(_)) => 404,
            (code::CAPABILITY_MISSING | code::HEADER_MISMATCH, _) => 400,
            _ => 200,
        };
        Refusal::new(status, &self.id, code, message)
    }

    /// Refuses an unknown method.
    pub fn unknown_method(&self) -> Refusal {
        let text = format!("Method not found: {}", shown(&self.method));
        self.refuse(code::METHOD_NOT_FOUND, text)
    }

    /// Refuses parameters.
    pub fn invalid(&self, what: impl std::fmt::Display) -> Refusal {
        self.refuse(code::INVALID_PARAMS, format!("Invalid params: {what}"))
    }

    /// Refuses headers that differ from the body.
    pub fn mismatched(&self, what: impl std::fmt::Display) -> Refusal {
        self.refuse(code::HEADER_MISMATCH, format!("Header mismatch: {what}"))
    }

    /// Passes a refusal of the service on.
    pub fn refused(&self, refusal: &ApiError) -> Refusal {
        Refusal::of(refusal, &self.id)
    }

    /// Returns a member of `_meta`.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        meta_of(&self.params)?.get(key)
    }

    /// Returns the token that notifications about progress have, if the client wants any.
    pub fn progress_token(&self) -> Option<&Value> {
        self.meta("progressToken").filter(|token| is_request_id(token))
    }

    /// Returns what the client can do; of an older one nothing is known.
    pub fn abilities(&self) -> Abilities {
        match self.era {
            Era::Modern(abilities) => abilities,
            Era::Legacy => Abilities::default(),
        }
    }

    /// Returns true if the request is of the time with a handshake.
    pub fn is_legacy(&self) -> bool {
        self.era == Era::Legacy
    }
}

/// Returns true for what an id or a token may be.
fn is_request_id(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn meta_of(params: &Map<String, Value>) -> Option<&Map<String, Value>> {
    params.get("_meta")?.as_object()
}

/// The body decides; headers have to agree with it.
fn era_of(
    headers: Headers<'_>,
    message: (&Value, &str, &Map<String, Value>),
) -> Result<Era, Refusal> {
    let (id, method, params) = message;
    let claim = meta_of(params).and_then(|meta| meta.get(VERSION_KEY));
    let names_modern = headers.version.is_some_and(|version| version >= MODERN);
    match claim {
        Some(claim) => {
            let abilities = abilities_of(id, claim, params)?;
            let version = claim.as_str().unwrap_or_default();
            check_headers(headers, version, message)?;
            Ok(Era::Modern(abilities))
        }
        None if method == "initialize" && names_modern => {
            Err(mismatch(id, "MCP-Protocol-Version names a version without initialize"))
        }
        None if method == "initialize" => Ok(Era::Legacy),
        None if names_modern => {
            let text = format!("Invalid params: _meta.{VERSION_KEY} is missing");
            Err(Refusal::new(400, id, code::INVALID_PARAMS, text))
        }
        None => match headers.version {
            Some(version) if !LEGACY.contains(&version) => {
                let spoken: Vec<_> = [MODERN].into_iter().chain(LEGACY).collect();
                Err(unsupported(id, version, &spoken))
            }
            Some(_) | None => Ok(Era::Legacy),
        },
    }
}

fn abilities_of(
    id: &Value,
    claim: &Value,
    params: &Map<String, Value>,
) -> Result<Abilities, Refusal> {
    let wrong = |key: &str, what: &str| {
        let text = format!("Invalid params: _meta.{key} {what}");
        Refusal::new(400, id, code::INVALID_PARAMS, text)
    };
    if !claim.is_string() {
        return Err(wrong(VERSION_KEY, "must be a string"));
    }
    let capabilities = meta_of(params).and_then(|meta| meta.get(CAPABILITIES_KEY));
    let capabilities = capabilities.ok_or_else(|| wrong(CAPABILITIES_KEY, "is missing"))?;
    let capabilities =
        capabilities.as_object().ok_or_else(|| wrong(CAPABILITIES_KEY, "must be an object"))?;
    let forms = capabilities.get("elicitation").and_then(Value::as_object);
    let extensions = capabilities.get("extensions").and_then(Value::as_object);
    Ok(Abilities {
        // without a mode it means forms
        shows_forms: forms.is_some_and(|modes| modes.is_empty() || modes.contains_key("form")),
        opens_pages: forms.is_some_and(|modes| modes.contains_key("url")),
        follows_tasks: extensions.is_some_and(|it| it.get(TASKS).is_some_and(Value::is_object)),
    })
}

/// Checks the headers of a request that describes itself, the version first.
fn check_headers(
    headers: Headers<'_>,
    claimed: &str,
    (id, method, params): (&Value, &str, &Map<String, Value>),
) -> Result<(), Refusal> {
    if headers.version.is_some_and(|version| version != claimed) {
        return Err(mismatch(id, "MCP-Protocol-Version is not the version in _meta"));
    }
    if headers.method.is_some_and(|header| header != method) {
        return Err(mismatch(id, "Mcp-Method is not the method of the request"));
    }
    if claimed != MODERN {
        // as `server/discover`: older versions have a handshake instead
        return Err(unsupported(id, claimed, &[MODERN]));
    }
    if headers.version.is_none() {
        return Err(mismatch(id, "MCP-Protocol-Version is missing"));
    }
    if headers.method.is_none() {
        return Err(mismatch(id, "Mcp-Method is missing"));
    }
    let field = NAMED.iter().find(|(named, _)| *named == method).map(|(_, field)| *field);
    let named = field.and_then(|field| Some((field, params.get(field)?.as_str()?)));
    let Some((field, named)) = named else { return Ok(()) };
    let Some(header) = headers.name else {
        return Err(mismatch(id, "Mcp-Name is missing"));
    };
    let Some(header) = decoded(header) else {
        return Err(mismatch(id, "Mcp-Name is not valid Base64"));
    };
    if header != named {
        return Err(mismatch(id, &format!("Mcp-Name is not params.{field}")));
    }
    Ok(())
}

/// Decodes a header value: `=?base64?...?=` for texts that a header cannot have.
pub(super) fn decoded(header: &str) -> Option<String> {
    let coded = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match coded {
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
        None => Some(header.to_owned()),
    }
}

/// Returns the beginning of a text of the client, for refusals.
pub fn shown(text: &str) -> &str {
    shortened(text, SHOWN_BYTES_MAX)
}

fn mismatch(id: &Value, what: &str) -> Refusal {
    Refusal::new(400, id, code::HEADER_MISMATCH, format!("Header mismatch: {what}"))
}

fn unsupported(id: &Value, requested: &str, supported: &[&str]) -> Refusal {
    let requested = shown(requested);
    let text = format!("Unsupported protocol version: {requested}");
    let data = json!({ "supported": supported, "requested": requested });
    Refusal::new(400, id, code::VERSION_UNSUPPORTED, text).with(data)
}

#[cfg(test)]
mod tests;
