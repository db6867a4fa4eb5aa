//! Every refusal of the routes that run an agent.

use serde_json::{Value, json};

use super::refusals::{Row, refused, row, with_header};
use super::site::Site;

const ROUTES: [&str; 5] = ["text", "stream", "chat", "object", "stream-object"];
const OBJECTS: [&str; 2] = ["object", "stream-object"];

fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn post(agent: &str, route: &str) -> &'static str {
    kept(format!("POST /agents/{agent}/{route}"))
}

/// Returns a row per route with the same body, and a schema where one is needed.
fn everywhere(body: &Value, code: &'static str, text: &str) -> Vec<Row> {
    let refusal = |route: &&str| {
        let mut body = body.clone();
        if OBJECTS.contains(route) {
            body["schema"] = json!({ "type": "object" });
        }
        row(post("assistant", route), kept(body.to_string()), 400, code, text)
    };
    ROUTES.iter().map(refusal).collect()
}

fn invalid(body: &Value, text: &str) -> Vec<Row> {
    everywhere(body, "body_invalid", &format!("Invalid request body: {text}"))
}

#[test]
fn an_unknown_agent_comes_first() {
    let site = Site::start();
    let mut rows = Vec::new();
    let text = "Agent nope not found";
    for route in ROUTES.iter().chain(&["generations/g1/cancel"]) {
        for body in ["-", "{", "{}", "{\"input\":\"hi\",\"schema\":{}}"] {
            rows.push(row(post("nope", route), body, 404, "agent_not_found", text));
        }
    }
    let attach = "GET /agents/nope/chat/c1/stream";
    rows.push(row(attach, "-", 404, "agent_not_found", text));
    refused(&site, rows);
}

#[test]
fn bodies_that_are_no_json() {
    let site = Site::start();
    let mut rows = Vec::new();
    for route in ROUTES {
        for (body, text) in [
            ("-", "EOF while parsing a value at line 1 column 0"),
            ("{", "EOF while parsing an object at line 1 column 1"),
            ("{\"input\":\n,}", "expected value at line 2 column 1"),
            ("{\"input\":1e999}", "number out of range at line 1 column 14"),
        ] {
            let text = format!("Invalid JSON: {text}");
            rows.push(row(post("assistant", route), body, 400, "json_invalid", &text));
        }
        let text = "Invalid request body: invalid type: sequence, expected an object";
        rows.push(row(post("assistant", route), "[]", 400, "body_invalid", text));
    }
    refused(&site, rows);
}

#[test]
fn inputs() {
    let site = Site::start();
    let ui = json!({ "role": "user", "parts": [{ "type": "text", "text": "a" }] });
    let model = json!({ "role": "user", "content": "a" });
    let result = json!({ "role": "tool", "content": [
        { "type": "tool-result", "toolCallId": "t", "toolName": "add", "output": 1 }] });
    let call = json!({ "role": "assistant", "content": [
        { "type": "tool-call", "toolCallId": "t", "toolName": "add", "input": {} }] });
    let rows = [
        (json!(null), "input: must be a string or an array of messages"),
        (json!({ "role": "user" }), "input: must be a string or an array of messages"),
        (json!([]), "input: must not be empty"),
        (json!([{ "role": "user", "parts": [] }]), "input: must not be empty"),
        (json!([model, "b"]), "input[1]: must be an object"),
        (json!([ui, model]), "input[1]: UI messages and model messages are mixed"),
        (json!([model, ui]), "input[1]: UI messages and model messages are mixed"),
        (json!([{ "bogus": 1 }]), "input[0]: must have parts or content"),
        (json!([{ "parts": [] }]), "input[0].role: missing"),
        (json!([ui, { "role": "boss", "parts": [] }]), "input[1].role: unknown role"),
        (json!([{ "role": "tool", "parts": [] }]), "input[0].role: unknown role"),
        (json!([{ "role": 5, "content": "a" }]), "input[0].role: unknown role"),
        (json!([{ "role": "user", "parts": "a" }]), "input[0].parts: must be an array"),
        (json!([{ "role": "user", "parts": [7] }]), "input[0].parts[0]: must be an object"),
        (
            json!([{ "role": "user", "parts": [{ "text": "a" }] }]),
            "input[0].parts[0].type: must be a non-empty string",
        ),
        (
            json!([{ "role": "user", "parts": [{ "type": "smell" }] }]),
            "input[0].parts[0].type: unknown type of part",
        ),
        (
            json!([{ "role": "user", "parts": [{ "type": "text", "text": 5 }] }]),
            "input[0].parts[0].text: must be a string",
        ),
        (
            json!([{ "role": "user", "parts": [{ "type": "file" }] }]),
            "input[0].parts[0].url: must be a non-empty string",
        ),
        (
            json!([{ "role": "assistant", "parts": [{ "type": "tool-add" }] }]),
            "input[0].parts[0].toolCallId: must be a non-empty string",
        ),
        (
            json!([{ "role": "user", "content": 5 }]),
            "input[0].content: must be a string or an array of parts",
        ),
        (
            json!([model, { "role": "user", "content": [{ "type": "smell" }] }]),
            "input[1].content[0].type: unknown type of part",
        ),
        (
            json!([{ "role": "user", "content": call["content"] }]),
            "input[0].content[0].type: not a part for a message of this role",
        ),
        (json!([model, result]), "input[1].content[0].toolCallId: no earlier call has this id"),
        (json!([call, model]), "input[0].content[0].toolCallId: the call has no result after it"),
    ];
    let rows = rows.iter().flat_map(|(input, text)| invalid(&json!({ "input": input }), text));
    refused(&site, rows.chain(invalid(&json!({ "options": {} }), "input: missing")).collect());
}

#[test]
fn bodies_of_chats() {
    let site = Site::start();
    let ui = json!({ "role": "user", "parts": [{ "type": "text", "text": "a" }] });
    let rows = [
        (json!({ "messages": null }), "messages: must be a string or an array of messages"),
        (json!({ "messages": [] }), "messages: must not be empty"),
        (json!({ "messages": [{ "role": "user" }] }), "messages[0]: must have parts or content"),
        (json!({ "messages": [ui], "id": 5 }), "id: must be a string"),
        (
            json!({ "messages": [ui], "id": "" }),
            "id: must be 1 to 200 characters, no control characters",
        ),
    ];
    let rows = rows.iter().map(|(body, text)| {
        let text = format!("Invalid request body: {text}");
        row(post("assistant", "chat"), kept(body.to_string()), 400, "body_invalid", &text)
    });
    refused(&site, rows.collect());
}

#[test]
fn options() {
    let site = Site::start();
    let whole = "must be a whole number of at least 1";
    let id = "must be 1 to 200 characters, no control characters";
    let chosen = "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - and not only dots";
    let rows = [
        (json!(5), "options: invalid type: integer `5`, expected an object".to_owned()),
        (json!([]), "options: invalid type: sequence, expected an object".to_owned()),
        (json!({ "temperature": 1.01 }), "options.temperature: must be from 0 to 1".to_owned()),
        (json!({ "temperature": -1 }), "options.temperature: must be from 0 to 1".to_owned()),
        (json!({ "topP": 2 }), "options.topP: must be from 0 to 1".to_owned()),
        (
            json!({ "frequencyPenalty": 2.1 }),
            "options.frequencyPenalty: must be from 0 to 2".to_owned(),
        ),
        (
            json!({ "presencePenalty": -0.1 }),
            "options.presencePenalty: must be from 0 to 2".to_owned(),
        ),
        (json!({ "maxOutputTokens": 0 }), format!("options.maxOutputTokens: {whole}")),
        (json!({ "maxOutputTokens": 1.5 }), format!("options.maxOutputTokens: {whole}")),
        (json!({ "maxSteps": 0 }), format!("options.maxSteps: {whole}")),
        (
            json!({ "contextLimit": -1 }),
            "options.contextLimit: must be a whole number of at least 0".to_owned(),
        ),
        (
            json!({ "seed": 0.5 }),
            "options.seed: must be a whole number from -9007199254740991 to 9007199254740991"
                .to_owned(),
        ),
        (
            json!({ "temperature": "hot" }),
            "options.temperature: invalid type: string \"hot\", expected f64".to_owned(),
        ),
        (
            json!({ "stopSequences": "x" }),
            "options.stopSequences: invalid type: string \"x\", expected a sequence".to_owned(),
        ),
        (
            json!({ "providerOptions": [] }),
            "options.providerOptions: invalid type: sequence, expected a map".to_owned(),
        ),
        (
            json!({ "context": "x" }),
            "options.context: invalid type: string \"x\", expected a map".to_owned(),
        ),
        (json!({ "generationId": "a b" }), format!("options.generationId: {chosen}")),
        (json!({ "generationId": ".." }), format!("options.generationId: {chosen}")),
        (
            json!({ "generationId": "step-1" }),
            "options.generationId: must not begin with step-, which is reserved for steps"
                .to_owned(),
        ),
        (
            json!({ "generationId": "key-1" }),
            "options.generationId: must not begin with key-, which is reserved for keys of \
             completions"
                .to_owned(),
        ),
        (json!({ "userId": "" }), format!("options.userId: {id}")),
        (json!({ "conversationId": "a\u{0}" }), format!("options.conversationId: {id}")),
        (json!({ "memory": { "userId": "" } }), format!("options.memory.userId: {id}")),
    ];
    let rows = rows
        .iter()
        .flat_map(|(options, text)| invalid(&json!({ "input": "hi", "options": options }), text));
    refused(&site, rows.collect());
}

#[test]
fn schemas() {
    let site = Site::start();
    let mut rows = Vec::new();
    let shapes = [
        (json!({ "input": "hi" }), "schema: missing"),
        (json!({ "input": "hi", "schema": null }), "schema: must be an object"),
        (json!({ "input": "hi", "schema": true }), "schema: must be an object"),
        (json!({ "input": "hi", "schema": "x" }), "schema: must be an object"),
    ];
    for (body, text) in shapes {
        let text = format!("Invalid request body: {text}");
        for route in OBJECTS {
            let body = kept(body.to_string());
            rows.push(row(post("assistant", route), body, 400, "body_invalid", &text));
        }
    }
    let outside =
        |address: &str| format!("/$ref: `{address}` refers outside the schema; only `#...`");
    for (schema, text) in [
        (
            json!({ "type": "car" }),
            "/type: \"car\" is not a type; expected array, boolean, integer, null, number, object \
             or string"
                .to_owned(),
        ),
        (json!({ "$ref": "https://example.com/s.json" }), outside("https://example.com/s.json")),
        (json!({ "$ref": "file:///etc/passwd" }), outside("file:///etc/passwd")),
        (json!({ "$ref": "#/$defs/nope" }), "Pointer '/$defs/nope' does not exist".to_owned()),
        (
            json!({ "type": "string", "pattern": "\\p{L}{1000}{1000}" }),
            "/pattern: \"\\\\p{L}{1000}{1000}\" is not a \"regex\"".to_owned(),
        ),
        (bomb(), "more than 20000 values with references expanded".to_owned()),
    ] {
        let text = format!("Invalid schema: {text}");
        let body = kept(json!({ "input": "hi", "schema": schema }).to_string());
        for route in OBJECTS {
            rows.push(row(post("assistant", route), body, 400, "schema_invalid", &text));
        }
    }
    let text = "Invalid query parameter format: must be sse or text";
    let body = "{\"input\":\"hi\",\"schema\":{}}";
    let route = post("assistant", "stream-object?format=xml");
    rows.push(row(route, body, 400, "query_invalid", text));
    refused(&site, rows);
}

/// Returns a small schema whose check would take 10⁹ branches.
fn bomb() -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d30".to_owned(), json!({ "type": "object" }));
    json!({ "$ref": "#/$defs/d0", "$defs": definitions })
}

#[test]
fn cancels() {
    let site = Site::start();
    let cancel = |id: &str| post("assistant", kept(format!("generations/{id}/cancel")));
    let not_found = |id: &str, body| {
        row(
            cancel(id),
            body,
            404,
            "generation_not_found",
            kept(format!("Generation {id} not found")),
        )
    };
    let done = site.post("/agents/assistant/text", &json!({ "input": "hi" }));
    let done = cancel(done.header("x-generation-id").unwrap());
    refused(
        &site,
        vec![
            not_found("nope", "-"),
            not_found("nope", "{}"),
            not_found("nope", "{"),
            not_found("%ff", "{}"),
            not_found("a%2Fb", "{}"),
            row(
                done,
                "{",
                400,
                "json_invalid",
                "Invalid JSON: EOF while parsing an object at line 1 column 1",
            ),
        ],
    );
}

#[test]
fn what_a_request_is_about_comes_before_its_body_and_query() {
    let site = Site::start();
    let generation = |what: &str| kept(format!("POST /agents/assistant/generations/nope/{what}"));
    let missing = "Generation nope not found";
    let conversations = "/api/memory/conversations";
    let conversation = |request: &str| kept(request.replace('!', &format!("{conversations}/nope")));
    let mut rows = vec![
        row(
            kept(format!("POST {conversations}?agentId=nope")),
            "{",
            404,
            "agent_not_found",
            "Agent nope not found",
        ),
        row(
            "GET /workflows/nope/executions?limit=abc",
            "-",
            404,
            "workflow_not_found",
            "Workflow nope not found",
        ),
        row(
            "GET /workflows/nope/versions?limit=1",
            "-",
            404,
            "workflow_not_found",
            "Workflow nope not found",
        ),
    ];
    for body in ["{", "{\"zzz\":1}", "[]"] {
        rows.push(row(generation("approve"), body, 404, "generation_not_found", missing));
    }
    let xml = ("content-type", "text/xml");
    for request in [
        generation("cancel"),
        generation("approve"),
        conversation("PATCH !?agentId=assistant"),
        conversation("POST !/working-memory?agentId=assistant"),
        conversation("POST !/clone?agentId=assistant"),
    ] {
        let (code, text) = match request.contains("/generations/") {
            true => ("generation_not_found", missing),
            false => ("conversation_not_found", "Conversation not found"),
        };
        rows.push(with_header(xml, row(request, "<a/>", 404, code, text)));
        rows.push(row(request, "{", 404, code, text));
    }
    refused(&site, rows);
}

#[test]
fn methods() {
    let site = Site::start();
    let mut rows = Vec::new();
    let paths = ROUTES.iter().chain(&["generations/g1/cancel"]);
    for path in paths {
        let request = kept(format!("GET /agents/assistant/{path}"));
        rows.push(row(request, "-", 405, "method_not_allowed", "Method GET is not allowed here"));
    }
    let attach = "POST /agents/assistant/chat/c1/stream";
    rows.push(row(attach, "{}", 405, "method_not_allowed", "Method POST is not allowed here"));
    refused(&site, rows);
}
