//! `GET /`: what runs here, and the first thing to try.

use std::fmt::Write as _;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HOST};
use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;
use serde_json::Value;

use crate::api::catalogue::Catalogue;
use crate::api::wire::agent::AgentView;
use crate::api::wire::workflow::WorkflowSummaryView;
use crate::api::{agents, workflows};
use crate::web::server::Settings;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;\
padding:0 1rem;color:#1d2a24;background:#fbfcfa}h1{margin-bottom:0}pre{background:#eaf0ea;\
padding:.8rem;overflow-x:auto;user-select:all}code{font-size:.9em}td{padding:.1rem .8rem .1rem 0;\
vertical-align:top}a{color:#1c6b48}@media(prefers-color-scheme:dark){body{color:#dfe8e2;\
background:#151b18}pre{background:#222c27}a{color:#7fd1a8}}";

/// `GET /`.
pub(crate) async fn page(
    request: HttpRequest,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> HttpResponse {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let base = format!("http://{}", host.unwrap_or("127.0.0.1:3141"));
    let (workflows, agents) = (workflows::list(&runtime), agents::list(&runtime));
    let html = render(
        &base,
        &settings.config.binding.catalogue,
        workflows::first_to_try(&runtime),
        &workflows,
        &agents,
    );
    let answer = HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"))
        .body(html);
    std::future::ready(answer).await
}

/// `first`: a workflow and an input that it takes.
fn render(
    base: &str,
    catalogue: &Catalogue,
    first: Option<(&str, Value)>,
    workflows: &[WorkflowSummaryView<'_>],
    agents: &[AgentView<'_>],
) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>greenroom</title>\
         <style>{STYLE}</style></head><body><h1>greenroom</h1>\
         <p>AI agents and durable workflows as actors.</p><h2>Try it</h2>"
    );
    let body = |path: &str, input: &Value| {
        let header = "-H 'content-type: application/json'";
        format!("curl -s {base}{path} \\\n  {header} -d '{{\"input\":{input}}}'")
    };
    let command = match (first, agents.first()) {
        (Some((id, input)), _) => body(&format!("/workflows/{id}/execute"), &input),
        (None, Some(agent)) => body(&format!("/agents/{}/text", agent.id()), &"hello".into()),
        (None, None) => format!("curl -s {base}/workflows"),
    };
    // Writing to a String cannot fail.
    let _ = write!(html, "<pre>{}</pre><h2>Workflows</h2>", escape(&command));
    push_table(
        &mut html,
        workflows
            .iter()
            .map(|workflow| (format!("/workflows/{}", workflow.id), workflow.id, workflow.purpose)),
    );
    html.push_str("<h2>Agents</h2>");
    push_table(
        &mut html,
        agents
            .iter()
            .map(|agent| (format!("/agents/{}", agent.id()), agent.id(), agent.description())),
    );
    html.push_str(
        "<p>Models named <code>rehearsal</code> are built in and offline: they follow written \
         rules and answer the same way every time.</p><h2>Routes</h2><table>",
    );
    for row in catalogue.rows() {
        let (method, path) = (row.method.as_str(), escape(&row.path));
        let place = if row.answers_head() && !row.path.contains(':') {
            format!("<a href=\"{path}\"><code>{path}</code></a>")
        } else {
            format!("<code>{path}</code>")
        };
        let summary = escape(&row.summary);
        let _ = write!(html, "<tr><td>{method}</td><td>{place}</td><td>{summary}</td></tr>");
    }
    html.push_str("</table></body></html>\n");
    html
}

fn push_table<'a>(html: &mut String, rows: impl Iterator<Item = (String, &'a str, &'a str)>) {
    html.push_str("<table>");
    let mut is_empty = true;
    for (address, id, text) in rows {
        is_empty = false;
        let (address, id, text) = (escape(&address), escape(id), escape(text));
        let _ = write!(html, "<tr><td><a href=\"{address}\">{id}</a></td><td>{text}</td></tr>");
    }
    html.push_str(if is_empty { "<tr><td>none yet</td></tr></table>" } else { "</table>" });
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
mod tests {
    use super::*;

    #[test]
    fn the_page_escapes_what_it_shows_and_needs_nothing_else() {
        let workflow = WorkflowSummaryView {
            id: "order",
            name: "Order",
            purpose: "<script>alert('x')</script>",
            steps_count: 1,
            status: "idle",
        };
        let first = Some(("order", serde_json::json!({ "n": 1 })));
        let html = render("http://a\"b", &Catalogue::default(), first, &[workflow], &[]);
        assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
        assert!(html.contains("curl -s http://a&quot;b/workflows/order/execute"));
        assert!(html.contains("-d &#39;{&quot;input&quot;:{&quot;n&quot;:1}}&#39;"));
        assert!(!html.contains("<script") && !html.contains("src="));
        assert!(html.contains("none yet"));
    }
}
