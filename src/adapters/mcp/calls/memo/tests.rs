//! Questions of servers, and their answers.

use std::sync::Arc;

use http::HeaderName;
use serde_json::json;
use url::Url;

use super::*;
use crate::adapters::mcp::question::{REASON_BYTES, SCHEMA_BYTES_MAX, URL_SHOWN_BYTES_MAX};
use crate::adapters::mcp::settings::tests::server;
use crate::adapters::mcp::settings::{McpTransport, OnInput};
use crate::mcp_servers::OPEN_PAGE;

fn form(message: &str) -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message,
        "requestedSchema": { "type": "object", "required": ["n"],
            "properties": { "n": { "type": "integer" } } } } })
}

fn page(url: &str) -> Value {
    json!({ "method": "elicitation/create", "params": {
        "mode": "url", "message": "Sign in", "url": url } })
}

fn asked(requests: &Value, state: &str) -> InputRequiredResult {
    let result = json!({ "resultType": "input_required", "inputRequests": requests,
                         "requestState": state });
    serde_json::from_value(result).unwrap()
}

fn failure(refused: &ToolError) -> String {
    refused.message().to_owned()
}

#[test]
fn questions_are_asked_one_by_one_and_answered_together() {
    let server = server("own");
    let requests = json!({ "a": form("How many?"), "b": page("https://a.example/in") });
    let before = [json!("earlier")];
    let round = Round::of(&server, asked(&requests, "s3al"), &before).unwrap();
    let mut given = before.to_vec();
    let accepted = json!({ "action": "accept", "content": { "n": 1 } });
    for (answer, reason) in [
        (accepted.clone(), "own asks: How many?"),
        (json!("done"), "own asks to open https://a.example/in (at a.example): Sign in"),
    ] {
        let Next::Ask(question, memo) = round.clone().next(&given) else { panic!("{given:?}") };
        let ask = question.ask(&server, &memo).unwrap();
        assert_eq!(ask.question, reason);
        // it is read as it was stored
        let mut context = ToolContext::for_test();
        context.memo = ask.memo.map(Arc::new);
        assert_eq!(Memo::of(&context).unwrap(), Some(memo));
        given.push(answer);
    }
    let Next::Call { responses, state } = round.next(&given) else { panic!("it asks again") };
    let expected = [("a", accepted), ("b", json!({ "action": "accept" }))];
    let expected = expected.map(|(key, value)| (key.to_owned(), value)).into();
    assert_eq!((responses, state.as_deref()), (Some(expected), Some("s3al")));
}

#[test]
fn a_form_is_the_schema_of_the_ask_and_can_be_declined() {
    let server = server("own");
    let long = "x".repeat(REASON_BYTES + 1);
    for (message, description) in [("short", None), (long.as_str(), Some(json!(long)))] {
        let round = Round::of(&server, asked(&json!({ "a": form(message) }), ""), &[]).unwrap();
        let Next::Ask(question, memo) = round.next(&[]) else { panic!() };
        let ask = question.ask(&server, &memo).unwrap();
        let schema = ask.schema.unwrap();
        assert_eq!((&schema["required"], ask.is_declinable), (&json!(["n"]), true));
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema.get("description"), description.as_ref());
    }
    let declined = json!({ "action": "decline" });
    let page = Question::Page { message: String::new(), url: String::new() };
    let form = Question::Form { message: String::new(), schema: json!({}) };
    assert_eq!(form.response(&declined), declined);
    assert_eq!(page.response(&json!("declined")), declined);
}

#[test]
fn asks_have_the_assignees_and_the_deadline_of_the_server() {
    let mut server = server("own");
    let deadline = std::time::Duration::from_secs(9);
    let to: Vec<_> = vec!["role:staff".parse().unwrap()];
    let on_input = OnInput { to: to.clone(), deadline: Some(deadline), ..OnInput::default() };
    server.on_input = Some(on_input);
    let question = Question::Form { message: "a".to_owned(), schema: json!({}) };
    let ask = question.ask(&server, &Memo::Again { asked: Vec::new() }).unwrap();
    assert_eq!((ask.to, ask.deadline), (to, Some(deadline)));
}

#[test]
fn a_page_of_another_host_is_shown_with_both() {
    let mut server = server("own");
    let page = |url: &str| Question::Page { message: "Pay".to_owned(), url: url.to_owned() };
    let shown = |server: &McpServer, url: &str| {
        page(url).ask(server, &Memo::Again { asked: Vec::new() }).unwrap()
    };
    let headers: Vec<(HeaderName, _)> = Vec::new();
    server.transport =
        McpTransport::Http { url: Url::parse("https://mcp.example/a").unwrap(), headers };
    for (url, hosts, server_host) in [
        ("https://mcp.example/pay", "(at mcp.example)", None),
        (
            "https://evil.example/pay",
            "(at evil.example; the server is at mcp.example)",
            Some("mcp.example"),
        ),
    ] {
        let ask = shown(&server, url);
        assert_eq!(ask.question, format!("own asks to open {url} {hosts}: Pay"));
        let schema = ask.schema.unwrap();
        assert!(schema["description"].as_str().unwrap().contains(hosts), "{schema}");
        let mut page = json!({ "url": url });
        if let Some(host) = server_host {
            page["serverHost"] = json!(host);
        }
        assert_eq!(schema[OPEN_PAGE], page);
    }
    let long = format!("https://mcp.example/{}", "a".repeat(URL_SHOWN_BYTES_MAX));
    let ask = shown(&server, &long);
    assert!(ask.question.contains("(whole in the form)") && !ask.question.contains(&long));
    let schema = ask.schema.unwrap();
    assert!(schema["description"].as_str().unwrap().contains(&long));
    assert_eq!(schema[OPEN_PAGE]["url"], *long);
    // a program has no host
    let ask = shown(&crate::adapters::mcp::settings::tests::server("own"), "https://a.example/");
    assert_eq!(ask.schema.unwrap()[OPEN_PAGE], json!({ "url": "https://a.example/" }));
}

#[test]
fn questions_that_cannot_be_asked_fail_the_call_in_words() {
    let large = json!({ "method": "elicitation/create", "params": { "message": "a",
        "requestedSchema": { "type": "object", "properties": {
            "a": { "type": "string", "description": "x".repeat(SCHEMA_BYTES_MAX) } } } } });
    let sampling = json!({ "method": "sampling/createMessage", "params": {
        "messages": [], "maxTokens": 1 } });
    let on_input = OnInput { questions_max: 2, state_bytes_max: 3, ..OnInput::default() };
    for (requests, state, expected) in [
        (json!({ "a": large }), "", "its form is larger than 64 KiB"),
        (json!({ "a": page("file:///etc/passwd") }), "", "its URL is not http(s)"),
        (json!({ "a": page("not an address") }), "", "its URL is not http(s)"),
        (
            json!({ "a": page(&format!("https://a/{}", "b".repeat(2048))) }),
            "",
            "longer than 2048 bytes",
        ),
        (json!({ "a": sampling }), "", "a request that is not supported"),
        (json!({ "a": form("a") }), "four", "a state of more than 3 bytes"),
        (
            json!({ "a": form("a"), "b": form("b") }),
            "",
            "asks more than 2 questions in one call (on_input.questions_max)",
        ),
    ] {
        let server = McpServer { on_input: Some(on_input.clone()), ..server("own") };
        let round = Round::of(&server, asked(&requests, state), &[json!("earlier")]);
        let why = failure(&round.unwrap_err());
        assert!(why.contains(expected), "{why}");
    }
    let refusing = McpServer { on_input: None, ..server("own") };
    let refused = Round::of(&refusing, asked(&json!({ "a": form("a") }), ""), &[]).unwrap_err();
    assert_eq!(failure(&refused), "the MCP server own asks a person, which `on_input` refuses");
    // at the bounds
    let server = McpServer { on_input: Some(on_input), ..server("own") };
    let round = Round::of(&server, asked(&json!({ "a": form("a") }), "abc"), &[json!("earlier")]);
    assert_eq!(round.unwrap().state.as_deref(), Some("abc"));
}

#[test]
fn a_memo_of_another_tool_fails_the_call() {
    let mut context = ToolContext::for_test();
    assert_eq!(Memo::of(&context).unwrap(), None);
    context.memo = Some(Arc::new(json!({ "step": 2 })));
    assert!(failure(&Memo::of(&context).unwrap_err()).contains("the tool changed after it asked"));
}

/// Memos are stored with asks: calls that wait cannot continue after a change of this form.
#[test]
fn memos_are_stored_in_this_form() {
    let form =
        Question::Form { message: "How many?".to_owned(), schema: json!({ "type": "object" }) };
    let page =
        Question::Page { message: "Sign in".to_owned(), url: "https://a.example/".to_owned() };
    let stored_form = json!({ "Form": { "message": "How many?", "schema": { "type": "object" } } });
    let stored_page = json!({ "Page": { "message": "Sign in", "url": "https://a.example/" } });
    let asking = Round {
        state: Some("s3al".to_owned()),
        questions: vec![("a".to_owned(), form.clone()), ("b".to_owned(), page.clone())],
        answered: 1,
        task: Some(AskingTask { id: "t1".to_owned(), answered: vec!["z".to_owned()] }),
    };
    let plain = Round { state: None, questions: Vec::new(), answered: 0, task: None };
    for (memo, stored) in [
        (
            Memo::Round(asking),
            json!({ "Round": { "state": "s3al", "questions": [["a", stored_form], ["b", stored_page]],
                               "answered": 1, "task": { "id": "t1", "answered": ["z"] } } }),
        ),
        (Memo::Round(plain), json!({ "Round": { "questions": [], "answered": 0 } })),
        (Memo::Task { id: "t1".to_owned() }, json!({ "Task": { "id": "t1" } })),
        (
            Memo::Again { asked: vec![form, page] },
            json!({ "Again": { "asked": [stored_form, stored_page] } }),
        ),
    ] {
        assert_eq!(serde_json::to_value(&memo).unwrap(), stored);
        assert_eq!(serde_json::from_value::<Memo>(stored).unwrap(), memo);
    }
}

#[test]
fn answers_of_older_servers_are_known_when_they_ask_again() {
    let question =
        |message: &str| Question::Form { message: message.to_owned(), schema: json!({}) };
    let memo = Memo::Again { asked: vec![question("a"), question("b")] };
    let known = memo.known(&[json!(1)]);
    assert_eq!(known, [(question("a"), json!(1))]);
    assert_eq!(memo.next(&[json!(1)]), Next::BEGIN);
}

#[test]
fn answers_for_a_task_are_sent_to_it() {
    let server = server("own");
    let round = Round::of(&server, asked(&json!({ "b": form("How many?") }), ""), &[]).unwrap();
    let round = round.of_task("t1".to_owned(), vec!["a".to_owned()]);
    let read: Round = serde_json::from_value(serde_json::to_value(&round).unwrap()).unwrap();
    let accepted = json!({ "action": "accept", "content": { "n": 1 } });
    let expected = Task {
        id: "t1".to_owned(),
        responses: Some([("b".to_owned(), accepted.clone())].into()),
        answered: vec!["a".to_owned()],
    };
    assert_eq!(read.next(&[accepted]), Next::Task(expected));
}
