//! Questions of servers to people: how they are read, asked and answered. No I/O.

use greenroom_actors::agent::ToolAsk;
use greenroom_actors::agent::tool::ToolError;
use greenroom_actors::domain::failure::{ErrorKind, shortened};
use rmcp::model::ElicitRequestParams;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::adapters::mcp::failed::failed;
use crate::adapters::mcp::settings::{McpServer, McpTransport, OnInput};
use crate::mcp_servers::OPEN_PAGE;

/// Longest text of a question, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;
/// Longest text that is whole in the reason of an ask, beside the name of its server.
pub(crate) const REASON_BYTES: usize = 450;
/// Largest form, in bytes of JSON.
pub(crate) const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Longest address of a page, in bytes.
const URL_BYTES_MAX: usize = 2048;
/// Longest address in the text of a question, which may have 500 bytes in a list.
pub(crate) const URL_SHOWN_BYTES_MAX: usize = 250;

/// Answers to a question that is a page.
const DONE: &str = "done";
pub(crate) const DECLINED: &str = "declined";

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Question {
    Form { message: String, schema: Value },
    Page { message: String, url: String },
}

impl Question {
    /// Reads a question. The error is for models and callers.
    pub(crate) fn of(server: &McpServer, asked: ElicitRequestParams) -> Result<Self, ToolError> {
        let name = &server.name;
        let refused = |why: &str| {
            failed(ErrorKind::Tool, format!("the MCP server {name} asks a person, but {why}"))
        };
        match asked {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema);
                let mut schema = schema.map_err(|_| refused("its form cannot be read"))?;
                // people answer what is asked and nothing else
                schema["additionalProperties"] = Value::Bool(false);
                if message.len() > REASON_BYTES && schema.get("description").is_none() {
                    schema["description"] = Value::from(text(&message));
                }
                if schema.to_string().len() > SCHEMA_BYTES_MAX {
                    return Err(refused("its form is larger than 64 KiB"));
                }
                Ok(Self::Form { message: text(&message), schema })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let parsed = Url::parse(&url).ok().filter(|parsed| {
                    matches!(parsed.scheme(), "http" | "https") && parsed.has_host()
                });
                let parsed = parsed.filter(|_| url.len() <= URL_BYTES_MAX);
                let parsed = parsed
                    .ok_or_else(|| refused("its URL is not http(s), or longer than 2048 bytes"))?;
                Ok(Self::Page { message: text(&message), url: parsed.into() })
            }
            _ => Err(refused("in a way that is not supported")),
        }
    }

    /// Returns the ask that shows it, with what the call that waits has to remember.
    pub(crate) fn ask(
        &self,
        server: &McpServer,
        memo: &impl Serialize,
    ) -> Result<ToolAsk, ToolError> {
        let on_input = allowed(server)?;
        let name = &server.name;
        let mut ask = match self {
            Self::Form { message, schema } => {
                let ask = ToolAsk::new(format!("{name} asks: {message}"));
                ask.schema(schema.clone()).declinable()
            }
            Self::Page { message, url } => {
                let server_host = other_host(server, url);
                let hosts = hosts(url, server_host);
                let shown = match url.len() {
                    0..=URL_SHOWN_BYTES_MAX => url.clone(),
                    _ => format!("{}… (whole in the form)", shortened(url, URL_SHOWN_BYTES_MAX)),
                };
                let text = format!("{name} asks to open {shown} ({hosts}): {message}");
                let mut page = json!({ "url": url });
                if let Some(host) = server_host {
                    page["serverHost"] = Value::from(host);
                }
                ToolAsk::new(text).schema(json!({
                    "type": "string", "enum": [DONE, DECLINED],
                    "description": format!("Open {url} ({hosts}). Then answer whether it is done."),
                    OPEN_PAGE: page
                }))
            }
        };
        let memo = serde_json::to_value(memo);
        let memo =
            memo.map_err(|_| failed(ErrorKind::Internal, "the question cannot be stored"))?;
        ask = ask.to(on_input.to.iter().cloned()).memo(memo);
        Ok(match on_input.deadline {
            Some(deadline) => ask.deadline(deadline),
            None => ask,
        })
    }

    /// Returns what the server gets of an answer.
    pub(crate) fn response(&self, answer: &Value) -> Value {
        match self {
            Self::Form { .. } => answer.clone(),
            Self::Page { .. } if answer == DONE => json!({ "action": "accept" }),
            Self::Page { .. } => json!({ "action": "decline" }),
        }
    }
}

/// Fails a call with which its server would have asked too often.
pub(crate) fn within(server: &McpServer, questions: usize) -> Result<(), ToolError> {
    let questions_max = allowed(server)?.questions_max;
    if questions <= questions_max {
        return Ok(());
    }
    let why = format!(
        "the MCP server {} asks more than {questions_max} questions in one call \
         (on_input.questions_max)",
        server.name
    );
    Err(failed(ErrorKind::Limit, why))
}

/// Returns the settings of asks; the error is that of a server that may not ask.
pub(crate) fn allowed(server: &McpServer) -> Result<&OnInput, ToolError> {
    server.on_input.as_ref().ok_or_else(|| {
        let why = format!("the MCP server {} asks a person, which `on_input` refuses", server.name);
        failed(ErrorKind::Tool, why)
    })
}

/// Returns the host of the server of a page; `None` if it is that of the page, or the server is a program.
fn other_host<'a>(server: &'a McpServer, url: &str) -> Option<&'a str> {
    let McpTransport::Http { url: own, .. } = &server.transport else { return None };
    let page = Url::parse(url).ok();
    let is_own = page.is_some_and(|page| page.host_str() == own.host_str());
    (!is_own).then(|| own.host_str().unwrap_or("another host"))
}

/// Names the host of a page, and that of the server if it is another.
fn hosts(url: &str, server_host: Option<&str>) -> String {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = host.unwrap_or_default();
    match server_host {
        Some(other) => format!("at {host}; the server is at {other}"),
        None => format!("at {host}"),
    }
}

fn text(message: &str) -> String {
    shortened(message.trim(), MESSAGE_BYTES_MAX).to_owned()
}
