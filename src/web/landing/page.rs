//! The page as HTML. Links are relative, so that a proxy may put a path in front.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::api::access::AccessPolicy;
use crate::api::catalogue::{Catalogue, Route, RouteName, Tag};
use crate::api::wire::agent::AgentView;
use crate::api::wire::workflow::WorkflowSummaryView;

const STYLE: &str = include_str!("style.css");

/// Agents and workflows that are shown; the rest is one link away.
const SHOWN_MAX: usize = 50;

/// What the page tells.
pub(super) struct Page<'a> {
    /// Where the server is for whoever asks.
    pub(super) base: String,
    pub(super) catalogue: &'a Catalogue,
    /// Which routes need a token; none where nobody checks tokens.
    pub(super) policy: Option<&'a AccessPolicy>,
    /// A workflow and an input that it takes.
    pub(super) first: Option<(&'a str, Value)>,
    pub(super) workflows: Vec<WorkflowSummaryView<'a>>,
    pub(super) agents: Vec<AgentView<'a>>,
    /// Ids of agents whose model only rehearses.
    pub(super) rehearsing: BTreeSet<&'a str>,
}

impl Page<'_> {
    /// Writes the page.
    pub(super) fn html(&self) -> String {
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>greenroom</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n\
             <h1>greenroom <small>{}</small></h1>\n\
             <p>AI agents and durable workflows as actors.</p>\n<nav>",
            env!("CARGO_PKG_VERSION"),
        );
        if self.has(RouteName::BrowseApi) {
            html.push_str("<a href=\"ui\">Browse and try the API</a>");
        }
        if self.has(RouteName::ApiDocument) {
            html.push_str("<a href=\"doc\">OpenAPI document</a>");
        }
        // Writing to a String cannot fail.
        let _ = write!(html, "</nav>\n<h2>Try it</h2>\n<pre>{}</pre>\n", escape(&self.command()),);
        self.push_workflows(&mut html);
        self.push_agents(&mut html);
        self.push_routes(&mut html);
        html.push_str("</body>\n</html>\n");
        html
    }

    fn has(&self, name: RouteName) -> bool {
        self.catalogue.rows().iter().any(|row| row.name == name)
    }

    fn needs_token(&self, row: &Route, path: &str) -> bool {
        self.policy.is_some_and(|policy| policy.gate(row).needs_token(path))
    }

    /// A command that works as it is, in a shell.
    fn command(&self) -> String {
        let (name, path, body) = match (&self.first, self.agents.first()) {
            (Some((id, input)), _) => {
                let path = format!("/workflows/{}/execute", segment(id));
                (RouteName::ExecuteWorkflow, path, Some(json!({ "input": input })))
            }
            (None, Some(agent)) => {
                let path = format!("/agents/{}/text", segment(agent.id()));
                (RouteName::GenerateText, path, Some(json!({ "input": "hello" })))
            }
            (None, None) => (RouteName::ListWorkflows, "/workflows".to_owned(), None),
        };
        let row = self.catalogue.rows().iter().find(|row| row.name == name);
        let mut command = format!("curl -s {}", quoted(&format!("{}{path}", self.base)));
        if row.is_some_and(|row| self.needs_token(row, &path)) {
            command.push_str(" \\\n  -H \"authorization: Bearer $TOKEN\"");
        }
        if let Some(body) = body {
            command.push_str(" \\\n  -H 'content-type: application/json' \\\n  -d ");
            command.push_str(&quoted(&body.to_string()));
        }
        command
    }

    fn push_workflows(&self, html: &mut String) {
        html.push_str("<h2>Workflows</h2>\n<dl>\n");
        for workflow in self.workflows.iter().take(SHOWN_MAX) {
            push_item(html, "workflows", workflow.id, "", workflow.purpose);
        }
        push_end(html, "workflows", self.workflows.len());
    }

    fn push_agents(&self, html: &mut String) {
        html.push_str("<h2>Agents</h2>\n<dl>\n");
        for agent in self.agents.iter().take(SHOWN_MAX) {
            let is_rehearsing = self.rehearsing.contains(agent.id());
            let mark = if is_rehearsing { " <em>rehearses</em>" } else { "" };
            push_item(html, "agents", agent.id(), mark, agent.description());
        }
        push_end(html, "agents", self.agents.len());
        if !self.rehearsing.is_empty() {
            html.push_str(
                "<p>An agent that <em>rehearses</em> asks no language model: it follows written \
                 rules, offline, and answers the same way every time.</p>\n",
            );
        }
    }

    fn push_routes(&self, html: &mut String) {
        html.push_str("<h2>Routes</h2>\n");
        if self.policy.is_some() {
            html.push_str("<p>Those marked <em>token</em> need one.</p>\n");
        }
        let mut tags: Vec<Tag> = Vec::new();
        for row in self.catalogue.rows() {
            if !tags.contains(&row.tag) {
                tags.push(row.tag);
            }
        }
        for tag in tags {
            let _ = writeln!(html, "<h3>{}</h3>\n<ul>", tag.as_str());
            for row in self.catalogue.rows().iter().filter(|row| row.tag == tag) {
                self.push_route(html, row);
            }
            html.push_str("</ul>\n");
        }
    }

    fn push_route(&self, html: &mut String, row: &Route) {
        let path = escape(&row.path);
        let is_link = row.answers_head() && !row.path.contains([':', '*']) && row.path != "/";
        let place = match path.strip_prefix('/').filter(|_| is_link) {
            Some(link) => format!("<a href=\"{link}\"><code>{path}</code></a>"),
            None => format!("<code>{path}</code>"),
        };
        let mark = if self.needs_token(row, &row.path) { " <em>token</em>" } else { "" };
        let (method, summary) = (row.method.as_str(), escape(&row.summary));
        let _ = writeln!(html, "<li><b>{method}</b> {place}{mark} <span>{summary}</span></li>");
    }
}

/// `mark` is HTML already.
fn push_item(html: &mut String, folder: &str, id: &str, mark: &str, text: &str) {
    let (address, id, text) = (segment(id), escape(id), escape(text));
    let _ = writeln!(
        html,
        "<div><dt><a href=\"{folder}/{address}\">{id}</a>{mark}</dt><dd>{text}</dd></div>",
    );
}

fn push_end(html: &mut String, folder: &str, count: usize) {
    html.push_str("</dl>\n");
    if count == 0 {
        html.push_str("<p>none yet</p>\n");
    } else if let Some(more) = count.checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(html, "<p><a href=\"{folder}\">and {more} more</a></p>");
    }
}

/// An id as a part of an address.
fn segment(id: &str) -> String {
    const SAFE: &percent_encoding::AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(id, SAFE).to_string()
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Text as it may stand in HTML, attributes included.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
