//! The page as HTML. Links are relative, so that a proxy may add a prefix.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::api::access::AccessPolicy;
use crate::api::catalogue::{Catalogue, Route, RouteName, Tag};
use crate::api::ids::encode;
use crate::api::wire::agent::AgentView;
use crate::api::wire::tool::ToolView;
use crate::api::wire::workflow::WorkflowSummaryView;
use crate::api::workflows::FirstTry;
use crate::web::html::escape;

/// Takes a token, keeps it for the tab and loads the page. Its hash is in the page's policy.
pub(super) const SIGN_IN: &str = include_str!("sign_in.js");

/// Beginning of every page. Contains the icon, so that browsers do not request one.
const HEAD: &str = concat!(
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>greenroom</title>\n",
    "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' ",
    "viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%231c6b48'/%3E",
    "%3Ccircle cx='8' cy='8' r='3.5' fill='%23fff'/%3E%3C/svg%3E\">\n<style>\n",
    include_str!("style.css"),
    "</style>\n</head>\n<body>\n",
);

/// Maximum number of agents, workflows or tools shown; the rest is linked.
const SHOWN_MAX: usize = 50;

/// Content of the page.
pub(super) struct Page<'a> {
    /// Address of the server, as used by the client.
    pub(super) base: String,
    pub(super) catalogue: &'a Catalogue,
    /// Access policy; `None` without authentication.
    pub(super) policy: Option<&'a AccessPolicy>,
    pub(super) first: Option<FirstTry<'a>>,
    pub(super) workflows: Vec<WorkflowSummaryView<'a>>,
    pub(super) agents: Vec<AgentView<'a>>,
    /// Ids of agents that use the built-in offline model.
    pub(super) rehearsing: BTreeSet<&'a str>,
    pub(super) tools: Vec<ToolView<'a>>,
}

/// Returns the sign-in page. It shows nothing about the server.
pub(super) fn sign_in() -> String {
    format!(
        "{HEAD}<h1>greenroom</h1>\n<p>AI agents and durable workflows as actors.</p>\n\
         <form id=\"sign-in\">\n<p>Sign in with a token to see what runs on this server.</p>\n\
         <label for=\"token\">Token</label>\n<input id=\"token\" type=\"password\" \
         autocomplete=\"off\" spellcheck=\"false\" required>\n<button>Show</button>\n\
         <p id=\"message\" role=\"alert\"></p>\n</form>\n\
         <noscript><p>Without JavaScript: <code>curl -H \"authorization: Bearer $TOKEN\"</code></p>\
         </noscript>\n<script>{SIGN_IN}</script>\n</body>\n</html>\n"
    )
}

impl Page<'_> {
    /// Renders the page.
    pub(super) fn html(&self) -> String {
        let mut html = format!(
            "{HEAD}<h1>greenroom <small>{}</small></h1>\n\
             <p>AI agents and durable workflows as actors.</p>\n<nav>",
            env!("CARGO_PKG_VERSION"),
        );
        if self.has(RouteName::Console) {
            html.push_str("<a href=\"console\">Console</a>");
        }
        if self.has(RouteName::BrowseApi) {
            html.push_str("<a href=\"ui\">Browse and try the API</a>");
        }
        if self.is_link(RouteName::ApiDocument) {
            html.push_str("<a href=\"doc\">OpenAPI document</a>");
        }
        // Writing to a String cannot fail.
        let _ = write!(html, "</nav>\n<h2>Try it</h2>\n<pre>{}</pre>\n", escape(&self.command()));
        if let Some(command) = self.answer_command() {
            let _ = write!(
                html,
                "<p>If the status is <code>suspended</code>, the workflow waits for input. Resume \
                 it with the <code>executionId</code> of the answer:</p>\n<pre>{}</pre>\n",
                escape(&command)
            );
        }
        self.push_workflows(&mut html);
        self.push_agents(&mut html);
        self.push_tools(&mut html);
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

    /// Returns true if a browser can follow a link to this route: it exists and requires no token.
    fn is_link(&self, name: RouteName) -> bool {
        let rows = self.catalogue.rows();
        rows.iter().any(|row| row.name == name && !self.needs_token(row, &row.path))
    }

    /// Returns a shell command that works without changes.
    fn command(&self) -> String {
        let (name, path, body) = match (&self.first, self.agents.first()) {
            (Some(FirstTry { id, input, .. }), _) => {
                let path = format!("/workflows/{}/execute", encode(id));
                (RouteName::ExecuteWorkflow, path, Some(json!({ "input": input })))
            }
            (None, Some(agent)) => {
                let path = format!("/agents/{}/text", encode(agent.id()));
                (RouteName::GenerateText, path, Some(json!({ "input": "hello" })))
            }
            (None, None) => (RouteName::ListWorkflows, "/workflows".to_owned(), None),
        };
        let address = quoted(&format!("{}{path}", self.base));
        self.curl(name, &path, &address, body.as_ref())
    }

    /// Returns a command that resumes the workflow of the first one, if that may suspend.
    fn answer_command(&self) -> Option<String> {
        let FirstTry { id, resume_data, .. } = self.first.as_ref()?;
        let body = json!({ "resumeData": resume_data.as_ref()? });
        let path = format!("/workflows/{}/executions/ID/resume", encode(id));
        let (before, after) = path.split_once("ID")?;
        // The shell inserts the id.
        let address = format!("{}\"$ID\"{after}", quoted(&format!("{}{before}", self.base)));
        let command = self.curl(RouteName::ResumeExecution, &path, &address, Some(&body));
        Some(format!("ID=the-executionId\n{command}"))
    }

    /// Returns the curl command. `address` is already quoted for the shell.
    fn curl(&self, name: RouteName, path: &str, address: &str, body: Option<&Value>) -> String {
        let row = self.catalogue.rows().iter().find(|row| row.name == name);
        let mut command = format!("curl -s {address}");
        if row.is_some_and(|row| self.needs_token(row, path)) {
            command.push_str(" \\\n  -H \"authorization: Bearer $TOKEN\"");
        }
        if let Some(body) = body {
            command.push_str(" \\\n  -H 'content-type: application/json' \\\n  -d ");
            command.push_str(&quoted(&body.to_string()));
        }
        command
    }

    /// Returns a link to an item: its operation on the page of the API, else its own route.
    fn address_of(
        &self,
        operation: &str,
        route: RouteName,
        folder: &str,
        id: &str,
    ) -> Option<String> {
        if self.has(RouteName::BrowseApi) {
            return Some(format!("ui#/{operation}"));
        }
        let row = self.catalogue.rows().iter().find(|row| row.name == route)?;
        let path = format!("/{folder}/{id}");
        (!self.needs_token(row, &path)).then(|| format!("{folder}/{}", encode(id)))
    }

    fn push_workflows(&self, html: &mut String) {
        html.push_str("<h2>Workflows</h2>\n<dl>\n");
        for workflow in self.workflows.iter().take(SHOWN_MAX) {
            let id = workflow.id;
            let operation = format!("Workflows/executeWorkflow_{}", encode(id));
            let address = self.address_of(&operation, RouteName::DescribeWorkflow, "workflows", id);
            push_item(html, address, id, "", workflow.purpose);
        }
        self.push_end(html, RouteName::ListWorkflows, "workflows", self.workflows.len());
    }

    fn push_agents(&self, html: &mut String) {
        html.push_str("<h2>Agents</h2>\n<dl>\n");
        for agent in self.agents.iter().take(SHOWN_MAX) {
            let id = agent.id();
            let is_rehearsing = self.rehearsing.contains(id);
            let mark = if is_rehearsing { " <em>mock</em>" } else { "" };
            let operation = "Agents/generateText";
            let address = self.address_of(operation, RouteName::DescribeAgent, "agents", id);
            push_item(html, address, id, mark, agent.description());
        }
        self.push_end(html, RouteName::ListAgents, "agents", self.agents.len());
        if !self.rehearsing.is_empty() {
            html.push_str(
                "<p>An agent marked <em>mock</em> uses no language model: it follows rules of the \
                 configuration, offline, and always gives the same answers.</p>\n",
            );
        }
    }

    fn push_tools(&self, html: &mut String) {
        html.push_str("<h2>Tools</h2>\n<dl>\n");
        for tool in self.tools.iter().take(SHOWN_MAX) {
            let name = tool.name();
            let has_ui = self.has(RouteName::BrowseApi);
            let address = has_ui.then(|| format!("ui#/Tools/executeTool_{}", encode(name)));
            push_item(html, address, name, "", tool.description());
        }
        self.push_end(html, RouteName::ListTools, "tools", self.tools.len());
    }

    fn push_end(&self, html: &mut String, list: RouteName, folder: &str, count: usize) {
        html.push_str("</dl>\n");
        if count == 0 {
            html.push_str("<p>none yet</p>\n");
        } else if let Some(more) = count.checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
            let more = format!("and {more} more");
            let _ = match self.is_link(list) {
                true => writeln!(html, "<p><a href=\"{folder}\">{more}</a></p>"),
                false => writeln!(html, "<p>{more}</p>"),
            };
        }
    }

    fn push_routes(&self, html: &mut String) {
        html.push_str("<h2>Routes</h2>\n");
        if self.policy.is_some() {
            html.push_str("<p>Routes marked <em>token</em> require a token.</p>\n");
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
        let needs_token = self.needs_token(row, &row.path);
        let place = match path.strip_prefix('/').filter(|_| !needs_token && is_followed(row)) {
            Some(link) => format!("<a href=\"{link}\"><code>{path}</code></a>"),
            None => format!("<code>{path}</code>"),
        };
        let mark = if needs_token { " <em>token</em>" } else { "" };
        let (method, summary) = (row.method.as_str(), escape(&row.summary));
        let _ = writeln!(html, "<li><b>{method}</b> {place}{mark} <span>{summary}</span></li>");
    }
}

/// Returns true if the path alone gives an answer to people, without parameters and without
/// requests to other servers.
fn is_followed(row: &Route) -> bool {
    let asks_for_more = matches!(
        row.name,
        RouteName::ListConversations
            | RouteName::SearchMessages
            | RouteName::CheckUpdates
            | RouteName::DescribeMcp
    );
    row.answers_head() && !row.path.contains([':', '*']) && row.path != "/" && !asks_for_more
}

/// Adds an item of a list. `mark` is HTML.
fn push_item(html: &mut String, address: Option<String>, id: &str, mark: &str, text: &str) {
    let (id, text) = (escape(id), escape(text));
    let name = match address {
        Some(address) => format!("<a href=\"{}\">{id}</a>", escape(&address)),
        None => id,
    };
    let _ = writeln!(html, "<div><dt>{name}{mark}</dt><dd>{text}</dd></div>");
}

/// Quotes a text as one word of a shell command.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
