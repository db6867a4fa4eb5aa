//! What the page shows, and that it shows text as text.

use super::*;

fn workflow<'a>(id: &'a str, purpose: &'a str) -> WorkflowSummaryView<'a> {
    WorkflowSummaryView { id, name: "Order", purpose, steps_count: 1, status: "idle" }
}

fn page<'a>(catalogue: &'a Catalogue, workflows: Vec<WorkflowSummaryView<'a>>) -> Page<'a> {
    Page {
        base: "http://localhost:3141".to_owned(),
        catalogue,
        policy: None,
        first: Some(("order", json!({ "n": 1 }))),
        workflows,
        agents: Vec::new(),
        rehearsing: BTreeSet::new(),
    }
}

#[test]
fn what_is_shown_is_text_and_no_markup() {
    let catalogue = Catalogue::default();
    let mut page = page(&catalogue, vec![workflow("a\"b/c", "<script>alert('x')</script>")]);
    page.base = "http://a\"b".to_owned();
    page.first = Some(("it's", json!({ "n": "it's" })));
    let html = page.html();
    assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    assert!(html.contains("<a href=\"workflows/a%22b%2Fc\">a&quot;b/c</a>"));
    assert!(html.contains("curl -s &#39;http://a&quot;b/workflows/it%27s/execute&#39;"));
    let body = escape(r#"-d '{"input":{"n":"it'\''s"}}'"#);
    assert!(html.contains(&body), "{html}");
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
    let html = page(&without, Vec::new()).html();
    assert!(!html.contains("href=\"ui\"") && !html.contains("/ui"));
    assert!(html.contains("href=\"doc\""));
}

#[test]
fn many_workflows_are_counted_and_not_all_shown() {
    let catalogue = Catalogue::default();
    let ids: Vec<String> = (0..60).map(|number| format!("w{number}")).collect();
    let html = page(&catalogue, ids.iter().map(|id| workflow(id, "")).collect()).html();
    assert!(html.contains("w49") && !html.contains("w50"));
    assert!(html.contains("<a href=\"workflows\">and 10 more</a>"));
}
