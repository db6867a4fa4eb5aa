//! Pages of links: what they show, and that nothing in them is markup of others.

use std::sync::Arc;

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::schema::Schema;
use greenroom_actors::ports::store::{AskState, AskedCall, AskedStep};
use serde_json::json;

use crate::api::inbox::declining;

use super::*;

fn link(to: &str) -> Link {
    let link = json!({ "version": 1, "ask_id": "ask_1", "to": to, "expires_at": 0 });
    serde_json::from_value(link).unwrap()
}

fn step(reason: &str, payload: Value, schema: &Value) -> AskDetail {
    let subject = AskSubject::Step(AskedStep {
        execution_id: ExecutionId::parse("exp-1").unwrap(),
        workflow_id: Arc::from("expense"),
        path: Arc::from("manager"),
    });
    detail(AskKind::Step, subject, reason, payload, schema)
}

fn detail(
    kind: AskKind,
    subject: AskSubject,
    reason: &str,
    payload: Value,
    schema: &Value,
) -> AskDetail {
    let ask = Ask {
        id: Arc::from("ask_1"),
        kind,
        state: AskState::Open,
        subject,
        user_id: None,
        reason: Arc::from(reason),
        opened_at: Timestamp(0),
        deadline: Some(Timestamp(1_790_000_000_000)),
        closed_at: None,
        revision: 0,
        rules: AskRules::default(),
        claim: None,
    };
    let schema = Some(schema.clone());
    AskDetail {
        ask,
        payload: Some(Arc::new(payload)),
        schema,
        arguments: None,
        can_decline: false,
        answer: None,
    }
}

fn html(detail: &AskDetail, to: &str, given: &[(&str, &str)], mistakes: &[Mistake]) -> String {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let given: Vec<_> = given.iter().map(pair).collect();
    let html = Filled { link: &link(to), detail, given: &given, mistakes }.html();
    assert_eq!(html.matches("<h1").count(), 1, "{html}");
    assert!(!html.contains("<script") && !html.contains("http"), "{html}");
    html
}

/// Returns the page without its style.
fn content(html: &str) -> String {
    let (head, body) = html.split_once(STYLE).unwrap();
    format!("{head}…{body}")
}

fn fields() -> Value {
    json!({
        "title": "Expense of Ada",
        "type": "object",
        "required": ["ok", "amount"],
        "properties": {
            "ok": { "type": "boolean", "title": "Approve?" },
            "amount": { "type": "number", "description": "In euros", "default": 900 },
            "level": { "enum": ["low", "high"], "default": "low" },
            "until": { "type": "string", "format": "date" },
            "note": { "type": "string" },
        },
    })
}

#[test]
fn the_page_of_a_step_asks_for_the_fields_of_its_schema() {
    let detail = step("Ada asks for 900", json!({ "who": "Ada" }), &fields());
    insta::assert_snapshot!(content(&html(&detail, "user:ann", &[], &[])));
}

#[test]
fn a_form_that_was_refused_keeps_what_was_written() {
    let detail = step("Ada asks for 900", Value::Null, &fields());
    let given = [("data.ok", "true"), ("data.amount", "much"), ("data.note", "\nas agreed")];
    let form = AskForm::of(&detail);
    let pairs: Vec<_> = given.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    let mut mistakes = form.read(&pairs).unwrap_err();
    mistakes.push(form.mistake("something else"));
    insta::assert_snapshot!(content(&html(&detail, "role:lead", &given, &mistakes)));
}

#[test]
fn an_ask_that_may_be_declined_has_a_button_for_that() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let asked = step("Which?", Value::Null, &schema);
    let button = "<button name=\"decline\" value=\"true\" formnovalidate>Decline</button>";
    assert!(!html(&asked, "user:ann", &[], &[]).contains(button));
    let asked = AskDetail { can_decline: true, ..asked };
    assert!(html(&asked, "user:ann", &[], &[]).contains(button));
    let pairs = vec![("decline".to_owned(), "true".to_owned())];
    assert_eq!(declining(&asked, &pairs), Some(json!({ "action": "decline" })));
    assert_eq!(declining(&asked, &Vec::new()), None);
}

#[test]
fn a_page_that_is_to_be_opened_is_a_link() {
    let asked = |page: Value| {
        let schema = json!({ "type": "string", "enum": ["done", "declined"], OPEN_PAGE: page });
        let detail = step("Pay", Value::Null, &schema);
        let (link, given) = (link("user:ann"), Vec::new());
        Filled { link: &link, detail: &detail, given: &given, mistakes: &[] }.html()
    };
    let page = asked(json!({ "url": "https://pay.example/a.", "serverHost": "<mcp.example>" }));
    assert!(page.contains(" href=\"https://pay.example/a.\" "), "{page}");
    assert!(page.contains(">Open the page at pay.example</a>"), "{page}");
    assert!(page.contains("which is at &lt;mcp.example&gt;."), "{page}");
    for other in [json!({ "url": "javascript:alert(1)" }), json!({}), json!("https://a.example/")] {
        assert!(!asked(other).contains("<a "));
    }
}

fn approval(payload: Value, arguments: Option<&Value>) -> AskDetail {
    let subject = AskSubject::Call(AskedCall {
        agent_id: Arc::from("desk"),
        generation_id: Arc::from("g"),
        tool_call_id: Arc::from("c"),
        tool_name: Arc::from("refund"),
        step: None,
    });
    let arguments = arguments.map(|schema| Arc::new(Schema::compile(schema).unwrap()));
    let detail = detail(AskKind::Approval, subject, "Refund 900", payload, &json!({}));
    AskDetail { arguments, ..detail }
}

#[test]
fn an_approval_has_two_buttons() {
    let detail = approval(json!({ "amount": 900, "order": "o-1" }), None);
    insta::assert_snapshot!(content(&html(&detail, "user:ann", &[], &[])));
}

#[test]
fn arguments_that_people_may_change_are_in_controls() {
    let written = json!({ "ok": true, "amount": 500, "until": "2026-03-01" });
    let detail = approval(written, Some(&fields()));
    insta::assert_snapshot!("arguments_in_controls", content(&html(&detail, "user:ann", &[], &[])));

    let given = [("approved", "true"), ("data.ok", "true"), ("data.amount", "9000")];
    let mistakes = [AskForm::of(&detail).mistake("input: amount: 9000 is too much")];
    let refused = html(&detail, "user:ann", &given, &mistakes);
    for kept in ["value=\"9000\"", "id=\"c1-wrong\"", "9000 is too much"] {
        assert!(refused.contains(kept), "{kept} in {refused}");
    }
    assert!(!refused.contains("2026-03-01"), "what was emptied is empty");
}

#[test]
fn a_question_of_a_model_is_answered_with_a_text() {
    let subject = AskSubject::Call(AskedCall {
        agent_id: Arc::from("desk"),
        generation_id: Arc::from("g"),
        tool_call_id: Arc::from("c"),
        tool_name: Arc::from(ASK_USER),
        step: None,
    });
    let (question, schema) = (json!({ "question": "Which one?" }), json!({ "type": "string" }));
    let asked = detail(AskKind::Input, subject, "Which one?", question, &schema);
    insta::assert_snapshot!(content(&html(&asked, "user:ann", &[], &[])));
    let shortened = AskDetail { payload: Some(Arc::new(json!({ "question": "…" }))), ..asked };
    assert!(html(&shortened, "user:ann", &[], &[]).contains("Details"));
}

#[test]
fn nested_arguments_are_json() {
    let detail =
        approval(json!({ "lines": [{ "amount": 500 }] }), Some(&json!({ "type": "object" })));
    insta::assert_snapshot!("arguments_as_json", content(&html(&detail, "user:ann", &[], &[])));
}

#[test]
fn other_schemas_are_shown_beside_a_text_area() {
    let detail = step("", json!("some text"), &json!({ "type": "array" }));
    insta::assert_snapshot!(content(&html(&detail, "user:ann", &[("data", "[")], &[])));
}

#[test]
fn nothing_from_outside_is_markup() {
    const EVIL: &str = "</textarea></pre></title></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;";
    let schema = json!({
        "title": EVIL,
        "type": "object",
        "properties": {
            EVIL: { "type": "string", "title": EVIL, "description": EVIL, "default": EVIL },
            "choice": { "enum": [EVIL], "description": EVIL },
            "date": { "type": "string", "format": EVIL, "default": EVIL },
        },
    });
    let control = format!("data.{EVIL}");
    let mistakes =
        [Some(control.clone()), None].map(|control| Mistake { control, text: EVIL.to_owned() });
    let given = [(control.as_str(), EVIL), ("data.date", EVIL), ("data.choice", EVIL)];
    let to = format!("user:{EVIL}");
    let rows = [
        (step(EVIL, json!({ EVIL: [EVIL] }), &schema), &given[..]),
        (step(EVIL, json!(EVIL), &schema), &[]),
        (step(EVIL, json!(EVIL), &json!({ "title": EVIL })), &[("data", EVIL)]),
        (approval(json!({ EVIL: EVIL, "choice": EVIL }), Some(&schema)), &[]),
        (approval(json!({ EVIL: [EVIL] }), Some(&schema)), &[]),
    ];
    for (detail, given) in rows {
        let page = html(&detail, &to, given, &mistakes);
        for markup in ["<script", "<img", "</style><", "\"'>", "&lt;lt;"] {
            assert!(!page.contains(markup), "{markup} in {page}");
        }
        for (tag, count) in
            [("</textarea>", "<textarea"), ("</pre>", "<pre"), ("</title>", "<title")]
        {
            assert_eq!(page.matches(tag).count(), page.matches(count).count(), "{tag} in {page}");
        }
        assert!(page.contains("&amp;lt;"), "what was escaped before is shown as it was");
    }
    let page = notice(EVIL, EVIL);
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
}

#[test]
fn a_large_payload_is_shortened() {
    let detail = step("", json!("ö".repeat(SHOWN_CHARS_MAX + 1)), &json!({}));
    let page = html(&detail, "user:ann", &[], &[]);
    assert_eq!(page.matches('ö').count(), SHOWN_CHARS_MAX);
    assert!(page.contains("\n…</pre>"));
}
