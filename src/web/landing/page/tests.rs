//! Content of the page, and escaping.

use super::*;
use crate::auth::DefaultAccess;

fn workflow<'a>(id: &'a str, purpose: &'a str) -> WorkflowSummaryView<'a> {
    WorkflowSummaryView { id, name: "Order", purpose, steps_count: 1, status: "idle" }
}

fn page<'a>(catalogue: &'a Catalogue, workflows: Vec<WorkflowSummaryView<'a>>) -> Page<'a> {
    Page {
        base: "http://localhost:3141".to_owned(),
        catalogue,
        policy: None,
        first: Some(FirstTry { id: "order", input: json!({ "n": 1 }), resume_data: None }),
        workflows,
        agents: Vec::new(),
        rehearsing: BTreeSet::new(),
        tools: Vec::new(),
    }
}

#[test]
fn shown_texts_are_escaped() {
    let catalogue = Catalogue::default();
    let mut page = page(&catalogue, vec![workflow("a\"b/c", "<script>alert('x')</script>")]);
    page.base = "http://a\"b".to_owned();
    let data = Some(json!({ "ok": "it's" }));
    page.first = Some(FirstTry { id: "it's", input: json!({ "n": "it's" }), resume_data: data });
    let html = page.html();
    assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    let link = "<a href=\"ui#/Workflows/executeWorkflow_a%22b%2Fc\">a&quot;b/c</a>";
    assert!(html.contains(link), "{html}");
    assert!(html.contains("curl -s &#39;http://a&quot;b/workflows/it%27s/execute&#39;"));
    let body = escape(r#"-d '{"input":{"n":"it'\''s"}}'"#);
    assert!(html.contains(&body), "{html}");
    let resume = escape(r#"'http://a"b/workflows/it%27s/executions/'"$ID"'/resume'"#);
    let resume = resume.replace("&#39;/resume&#39;", "/resume");
    assert!(html.contains(&resume), "{resume} is not in {html}");
    assert!(html.contains(&escape(r#"-d '{"resumeData":{"ok":"it'\''s"}}'"#)), "{html}");
    assert!(!html.contains("<script") && !html.contains("src="));
    assert!(html.contains("<p>none yet</p>"), "there are no agents");
}

#[test]
fn the_first_command_names_a_token_where_one_is_needed() {
    let catalogue = Catalogue::default();
    let mut page = page(&catalogue, Vec::new());
    let open = page.html();
    assert!(!open.contains("Bearer") && !open.contains("<em>token</em>"));
    let policy = AccessPolicy::default();
    page.policy = Some(&policy);
    let html = page.html();
    assert!(html.contains("-H &quot;authorization: Bearer $TOKEN&quot;"));
    let mark = "<code>/workflows/:id/execute</code> <em>token</em>";
    assert!(html.contains(mark), "{html}");
    let open = "<code>/workflows/:id/executions/:executionId/suspend</code> <span>";
    assert!(html.contains(open), "{html}");
}

#[test]
fn pages_that_are_off_are_not_mentioned() {
    let with = Catalogue::default();
    let without = Catalogue::default().without_ui();
    assert!(page(&with, Vec::new()).html().contains("href=\"ui\""));
    let html = page(&without, vec![workflow("order", "")]).html();
    assert!(!html.contains("href=\"ui") && !html.contains("/ui"));
    assert!(html.contains("href=\"doc\""));
    assert!(html.contains("<a href=\"workflows/order\">order</a>"), "{html}");
}

#[test]
fn many_workflows_are_counted_and_not_all_shown() {
    let catalogue = Catalogue::default();
    let ids: Vec<String> = (0..60).map(|number| format!("w{number}")).collect();
    let html = page(&catalogue, ids.iter().map(|id| workflow(id, "")).collect()).html();
    assert!(html.contains("w49") && !html.contains("w50"));
    assert!(html.contains("<a href=\"workflows\">and 10 more</a>"));
}

#[test]
fn links_lead_to_what_a_browser_may_see() {
    let catalogue = Catalogue::default();
    let private = AccessPolicy { default: DefaultAccess::Private, ..AccessPolicy::default() };
    let mut page = page(&catalogue, vec![workflow("order", "")]);
    page.policy = Some(&private);
    let html = page.html();
    let links = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let links: Vec<_> = links.filter(|link| !link.starts_with("data:")).collect();
    let expected = [
        "console",
        "ui",
        "ui#/Workflows/executeWorkflow_order",
        "ui",
        "console",
        "livez",
        "readyz",
    ];
    assert_eq!(links, expected);
}
