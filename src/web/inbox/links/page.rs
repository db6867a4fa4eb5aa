//! The pages of links as HTML. Everything that comes from outside is shown as text.

mod controls;
mod notices;

use std::fmt::Write as _;

use greenroom_actors::agent::tool::ASK_USER;
use greenroom_actors::domain::assignment::Assignee;
use greenroom_actors::domain::ids::step_id_of;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Ask, AskKind, AskSubject};
use greenroom_actors::requests::AskDetail;
use serde_json::Value;

use self::controls::Controls;
use self::notices::words;
use crate::api::ApiError;
use crate::api::inbox::{AskForm, Link, Mistake};
use crate::api::query::Pairs;
use crate::mcp_servers::OPEN_PAGE;
use crate::web::html::{escape, link_to, with_links};

pub(super) const STYLE: &str = include_str!("style.css");

/// Longest text of a payload or a schema in a page, in characters; the API has the whole.
const SHOWN_CHARS_MAX: usize = 20_000;

/// An ask with a form that may have been filled in before.
pub(super) struct Filled<'a> {
    pub(super) link: &'a Link,
    pub(super) detail: &'a AskDetail,
    /// Submitted values.
    pub(super) given: &'a Pairs,
    pub(super) mistakes: &'a [Mistake],
}

/// Returns a page that says why there is no form.
pub(super) fn refusal(error: &ApiError) -> String {
    let (title, text) = words(error);
    notice(&title, &text)
}

fn notice(title: &str, text: &str) -> String {
    let text = escape(text);
    document(
        title,
        &format!(
            "<h1 dir=\"auto\">{}</h1>\n<p class=\"text\" dir=\"auto\">{text}</p>\n",
            escape(title)
        ),
    )
}

/// Returns the page after an answer.
pub(super) fn thanks() -> String {
    notice("Answer recorded", "Thank you. You can close this page.")
}

/// Wraps the content of a page, which is HTML. The icon is empty, so that browsers request none.
fn document(title: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"robots\" content=\"noindex\">\n<title>{}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {content}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

impl Filled<'_> {
    /// Renders the page.
    pub(super) fn html(&self) -> String {
        let AskDetail { ask, payload, .. } = self.detail;
        let title = title(self.detail);
        let mut html = format!("<h1 dir=\"auto\">{}</h1>\n", escape(&title));
        if !self.mistakes.is_empty() {
            html.push_str(
                "<p class=\"wrong\">Not recorded yet: correct what is marked below.</p>\n",
            );
        }
        if !ask.reason.is_empty() {
            push_text(&mut html, "text", &ask.reason);
        }
        let holder = match &self.link.to {
            Assignee::User(id) => format!("user {id}"),
            Assignee::Role(name) => format!("role {name}"),
            Assignee::NotSelf => "an unknown person".to_owned(),
        };
        html.push_str("<dl>\n");
        if let Some(deadline) = ask.deadline {
            let (iso, shown) = (deadline.to_iso(), minute(deadline));
            // Writing to a String cannot fail.
            let _ =
                writeln!(html, "<dt>Until</dt><dd><time datetime=\"{iso}\">{shown}</time></dd>");
        }
        let _ = writeln!(html, "<dt>You answer as</dt><dd>{}</dd>\n</dl>", escape(&holder));
        if let Some(link) = self.detail.schema.as_ref().and_then(page_link) {
            let _ = writeln!(html, "<p class=\"text\" dir=\"auto\">{link}</p>");
        }
        let form = AskForm::of(self.detail);
        let shown = payload.as_deref().filter(|payload| !payload.is_null());
        match (&form, shown) {
            // in the controls
            (AskForm::Decision(Some(_)), _) | (_, None) => {}
            (_, Some(payload)) if is_question(ask, payload) => {}
            (_, Some(payload)) => push_value(&mut html, "Details", payload),
        }
        let (given, mistakes) = (self.given, self.mistakes);
        let can_decline = self.detail.can_decline;
        Controls { form: &form, given, mistakes, can_decline }.push_to(&mut html);
        let head = if self.mistakes.is_empty() { title } else { format!("Not recorded: {title}") };
        document(&head, &html)
    }
}

/// Returns what is asked, in a few words.
fn title(detail: &AskDetail) -> String {
    let written =
        detail.schema.as_ref().and_then(|schema| schema.get("title")).and_then(Value::as_str);
    match (written, &detail.ask.subject) {
        (Some(title), _) if !title.trim().is_empty() => title.to_owned(),
        (_, AskSubject::Call(call)) if detail.ask.kind == AskKind::Approval => {
            format!("Approve {}?", call.tool_name)
        }
        (_, AskSubject::Call(call)) => format!("{} asks", call.agent_id),
        (_, AskSubject::Step(step)) => {
            format!("{}: {}", step.workflow_id, step_id_of(&step.path))
        }
    }
}

/// Returns a link to the page that is opened before the answer, which names its host.
fn page_link(schema: &Value) -> Option<String> {
    let page = schema.get(OPEN_PAGE)?;
    let address = page.get("url").and_then(Value::as_str)?;
    let link = link_to(address, |host| format!("Open the page at {host}"))?;
    Some(match page.get("serverHost").and_then(Value::as_str) {
        Some(other) => {
            format!("{link}. It is not of the MCP server, which is at {}.", escape(other))
        }
        None => link,
    })
}

/// Returns true if the payload is the reason once more: a model that asks has nothing else to say.
fn is_question(ask: &Ask, payload: &Value) -> bool {
    let is_own = matches!(&ask.subject, AskSubject::Call(call) if *call.tool_name == *ASK_USER);
    is_own && payload["question"] == *ask.reason
}

fn push_text(html: &mut String, class: &str, text: &str) {
    let _ = writeln!(html, "<p class=\"{class}\" dir=\"auto\">{}</p>", with_links(text));
}

/// Adds a value under a heading.
fn push_value(html: &mut String, heading: &str, value: &Value) {
    let _ = writeln!(html, "<h2>{heading}</h2>\n{}", pre(value));
}

/// Adds a schema that is hidden at first.
fn push_schema(html: &mut String, schema: &Value) {
    let shown = pre(schema);
    let _ = writeln!(html, "<details>\n<summary>JSON Schema</summary>\n{shown}\n</details>");
}

/// Shows a text as it is, anything else as JSON, which is read from left to right.
fn pre(value: &Value) -> String {
    let (text, direction) = match value {
        Value::String(text) => (text.clone(), "auto"),
        other => (format!("{other:#}"), "ltr"),
    };
    let end = text.char_indices().nth(SHOWN_CHARS_MAX).map(|(at, _)| at);
    let shown = escape(&text[..end.unwrap_or(text.len())]);
    let more = if end.is_some() { "\n…" } else { "" };
    format!("<pre tabindex=\"0\" dir=\"{direction}\">{shown}{more}</pre>")
}

/// Formats a time in UTC without seconds.
fn minute(time: Timestamp) -> String {
    let iso = time.to_iso();
    format!("{} UTC", iso.get(..16).unwrap_or(&iso).replace('T', " "))
}

#[cfg(test)]
mod tests;
