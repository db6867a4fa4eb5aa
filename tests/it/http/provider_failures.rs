//! Failures of providers, as seen by the callers of each route.

use serde_json::{Value, json};

use super::site::Site;
use super::upstream::{
    FORMATS, ROUTES, ask, begin, begins, clerk, event, events, failure, model, newest, only,
    question, says,
};
use support::provider::{Deed, Provider, piece, stream_end, stream_head, whole};

/// Starts a site with one agent for each format, named like it.
fn site(servers: &[Provider], keys: &str) -> Site {
    let of = |(format, server): (&&str, &Provider)| {
        let model = model(format, format, server);
        format!("{model}{keys}\n[agents.{format}]\nmodel = \"{format}\"\n")
    };
    Site::with(&FORMATS.iter().zip(servers).map(of).collect::<String>())
}

fn refusal(said: &str) -> String {
    json!({ "error": { "message": said } }).to_string()
}

/// Behaviour of the server, the code, and the text after the provider's name.
fn failures() -> Vec<(Vec<Deed>, &'static str, &'static str)> {
    let html = [("content-type", "text/html")];
    vec![
        (whole(400, &[], &refusal("bad seed")), "provider_error", "answered 400: bad seed"),
        (whole(401, &[], &refusal("wrong key")), "provider_auth", "answered 401: wrong key"),
        (
            whole(429, &[("retry-after", "7")], &refusal("slow down")),
            "provider_rate_limited",
            "answered 429: slow down",
        ),
        (whole(500, &[], &refusal("it broke")), "provider_error", "answered 500: it broke"),
        (vec![], "provider_error", "closed the connection early"),
        (vec![stream_head()], "provider_error", "closed the connection early"),
        (
            vec![stream_head(), stream_end()],
            "provider_error",
            "ended the connection without an answer",
        ),
        (
            vec![stream_head(), piece(b"data: {\"x\": oops\n\n"), stream_end()],
            "provider_error",
            "sent an answer that is not JSON",
        ),
        (
            whole(200, &html, "<html>welcome</html>"),
            "provider_error",
            "sent an answer that is not JSON",
        ),
        (
            vec![stream_head(), event(&json!({ "error": { "message": "overloaded" } }))],
            "provider_error",
            "overloaded",
        ),
    ]
}

#[test]
fn before_the_first_output_a_failure_is_the_answer_or_the_last_event() {
    let rows = failures();
    let servers = FORMATS.map(|_| {
        let scripts = rows.iter().flat_map(|(script, ..)| vec![script.clone(); ROUTES.len()]);
        Provider::start(scripts)
    });
    let site = site(&servers, "");
    for format in FORMATS {
        for (script, code, said) in &rows {
            for route in ROUTES {
                let reply = ask(&site, format, route, &question());
                let place = format!("{format} {route} {script:?}: {}", reply.text());
                let (told, error) = failure(route, &reply);
                assert!(told.is_none_or(|told| told == *code), "{place}");
                assert!(error.starts_with(format) && error.contains(said), "{place}");
                let entry = newest(&site, format);
                assert_eq!(entry["status"], "error", "{place}");
                assert!(entry["error"].as_str().unwrap().contains(said), "{place}");
            }
        }
    }
    let asked: Vec<_> = servers.iter().map(|server| server.asked().len()).collect();
    assert_eq!(asked, [rows.len() * ROUTES.len(); 3]);
}

#[test]
fn a_provider_that_never_answers_times_out() {
    let silent = [vec![Deed::Hold], vec![stream_head(), Deed::Hold]];
    let servers = FORMATS.map(|_| Provider::start(silent.iter().cycle().take(10).cloned()));
    let site = site(&servers, "timeouts = { first_token = \"50ms\" }");
    for (format, server) in FORMATS.iter().zip(&servers) {
        for route in ROUTES.iter().chain(&ROUTES) {
            let reply = ask(&site, format, route, &question());
            let (code, error) = failure(route, &reply);
            assert!(code.is_none_or(|code| code == "provider_timeout"), "{}", reply.text());
            let expected =
                format!("{format} did not begin to answer within 50ms (timeouts.first_token)");
            assert_eq!(error, expected, "{route}");
            // on a busy machine the time may be over before it is asked
            server.wait_until_left(server.asked().len());
        }
    }
}

/// Rows of the rest of an answer that has begun, and its error.
fn breaks() -> Vec<(Vec<Deed>, &'static str)> {
    vec![
        (vec![], "closed the connection early"),
        (vec![stream_end()], "ended the connection before its answer was complete"),
        (vec![piece(b"data: {oops\n\n")], "sent an answer that is not JSON"),
        (vec![event(&json!({ "error": { "message": "overloaded" } }))], "overloaded"),
    ]
}

#[test]
fn after_the_first_output_a_failure_is_the_last_event() {
    let rows = breaks();
    let begun = "{\"name\":\"A";
    let servers = FORMATS.map(|format| {
        let script = |(rest, _): &(Vec<Deed>, _)| [begins(format, begun), rest.clone()].concat();
        Provider::start(rows.iter().flat_map(move |row| vec![script(row); ROUTES.len()]))
    });
    let site = site(&servers, "");
    for format in FORMATS {
        for (_, said) in &rows {
            for route in ROUTES {
                let reply = ask(&site, format, route, &question());
                let place = format!("{format} {route} {said}: {}", reply.text());
                if matches!(route, "text" | "object") {
                    assert_eq!(reply.status, 500, "{place}");
                    assert!(reply.error().contains(said), "{place}");
                    continue;
                }
                let events = events(&reply);
                let last = events.last().unwrap();
                assert_eq!(last["type"], "error", "{place}");
                let error = if route == "chat" { &last["errorText"] } else { &last["error"] };
                let error = error.as_str().unwrap();
                assert!(error.contains(format) && error.contains(said), "{place}");
                if route == "stream-object" {
                    assert_eq!(
                        events[0],
                        json!({ "type": "object-delta", "object": { "name": "A" } })
                    );
                } else {
                    assert_eq!(only(&events, "text-delta")["delta"], begun, "{place}");
                }
                let entry = newest(&site, format);
                assert_eq!(
                    (&entry["status"], &entry["steps"][0]["text"]),
                    (&json!("error"), &json!(begun))
                );
            }
        }
    }
}

#[test]
fn an_interrupted_object_as_text_has_no_proper_end() {
    let rows = breaks();
    let script =
        |(rest, _): &(Vec<Deed>, _)| [begins("openai", "{\"name\":"), rest.clone()].concat();
    let server = Provider::start(rows.iter().map(script));
    let site = Site::with(&clerk(&server, ""));
    for (_, said) in &rows {
        let mut wire = begin(&site, "clerk", "stream-object?format=text", &question());
        // a partial object must not look complete: the stream has no proper end
        let reply = wire.reply();
        assert!(reply.is_err(), "{said}: {reply:?}");
        assert!(newest(&site, "clerk")["error"].as_str().unwrap().contains(said));
    }
}

#[test]
fn a_provider_that_falls_silent_times_out() {
    let begun = "{\"name\":\"A";
    let script = [begins("openai", begun), vec![Deed::Hold]].concat();
    let server = Provider::start(vec![script; ROUTES.len()]);
    let keys = "[models.remote.timeouts]\nfirst_token = \"300ms\"";
    let site = Site::with(&clerk(&server, keys));
    for (at, route) in ROUTES.iter().enumerate() {
        let reply = ask(&site, "clerk", route, &question());
        let is_stream = !matches!(*route, "text" | "object");
        assert_eq!(reply.status, if is_stream { 200 } else { 500 }, "{route}");
        let said = "openai sent nothing for 300ms (timeouts.first_token)";
        assert!(reply.text().contains(said), "{route}: {}", reply.text());
        if is_stream {
            assert_eq!(events(&reply).last().unwrap()["type"], "error", "{route}");
        }
        server.wait_until_left(at + 1);
    }
}

/// An answer that repeats itself forever.
fn endless(frame: &Value) -> Vec<Deed> {
    let Deed::Send(bytes) = event(frame) else { panic!("events are sent") };
    vec![stream_head(), Deed::Repeat(bytes)]
}

#[test]
fn an_endless_answer_is_interrupted() {
    let much = "word ".repeat(50_000);
    let words = json!({ "choices": [{ "delta": { "content": much } }] });
    let function = json!({ "name": "x", "arguments": much });
    let calls = json!([{ "index": 0, "id": "c", "function": function }]);
    let call = json!({ "choices": [{ "delta": { "tool_calls": calls } }] });
    let scripts = [&words, &call].map(|frame| vec![endless(frame); ROUTES.len()]);
    let server = Provider::start(scripts.concat());
    let limits = "[limits]\ngeneration_bytes_max = 1000000\n";
    let site = Site::with(&format!("{limits}{}", clerk(&server, "")));
    for (at, route) in ROUTES.iter().chain(&ROUTES).enumerate() {
        let reply = ask(&site, "clerk", route, &question());
        server.wait_until_left(at + 1);
        // without a subscriber the size limit of the answer applies first
        let bound = match *route {
            "text" | "object" => "the model's answer has more than 16777216 bytes",
            _ => "the model's output exceeds 1000000 bytes",
        };
        assert!(reply.text().contains(bound), "{route}: {:?}", reply.text().get(..300));
        assert_eq!(reply.status, if bound.contains("answer") { 500 } else { 200 });
        assert_eq!(newest(&site, "clerk")["status"], "error");
    }
}

#[test]
fn a_provider_that_streams_empty_text_times_out() {
    let nothing = endless(&json!({ "choices": [{ "delta": { "content": "" } }] }));
    let server = Provider::start(vec![nothing; ROUTES.len()]);
    let keys = "[models.remote.timeouts]\ntotal = \"100ms\"";
    let site = Site::with(&clerk(&server, keys));
    for (at, route) in ROUTES.iter().enumerate() {
        let reply = ask(&site, "clerk", route, &question());
        let (code, error) = failure(route, &reply);
        assert!(code.is_none_or(|code| code == "provider_timeout"), "{}", reply.text());
        assert!(error.contains("did not finish within 100ms (timeouts.total)"), "{route}: {error}");
        server.wait_until_left(at + 1);
    }
}

#[test]
fn an_invalid_object_is_requested_again_once() {
    let wrong = "{\"name\":7}";
    let scripts = [
        says(wrong),
        says(wrong),
        says(wrong),
        says(wrong),
        says(wrong),
        says("{\"name\":\"Ada\"}"),
    ];
    let server = Provider::start(scripts);
    let site = Site::with(&clerk(&server, ""));
    let detail = "name: 7 is not of type \"string\"";
    let reply = ask(&site, "clerk", "object", &question());
    assert_eq!((reply.status, reply.header("x-error-code")), (500, Some("generation_failed")));
    assert!(reply.error().starts_with("Failed to generate object: "), "{}", reply.text());
    assert!(reply.error().contains(detail), "{}", reply.text());
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|asked| asked.path == "/v1/chat/completions"));
    let told = asked[1].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(told.contains("is not of type"), "{told}");

    let stream = events(&ask(&site, "clerk", "stream-object", &question()));
    assert!(stream.last().unwrap()["error"].as_str().unwrap().contains(detail), "{stream:?}");
    assert!(stream.iter().all(|event| event["type"] != "object" && event["type"] != "finish"));
    assert_eq!(ask(&site, "clerk", "object", &question()).data(), json!({ "name": "Ada" }));
    assert_eq!(server.asked().len(), 6);
}

#[test]
fn a_failed_request_is_retried_and_then_sent_to_the_fallback() {
    let busy = || whole(429, &[("retry-after-ms", "1")], "");
    let server = Provider::start([busy(), says("at last"), busy(), busy(), whole(401, &[], "")]);
    let second = Provider::start([says("in its place"), says("for the key")]);
    let stand_in = model("second", "openai", &second);
    let config =
        model("remote", "openai", &server).replace("attempts = 1", "attempts = 2, delay = \"1ms\"");
    let config = format!("{config}fallback = [\"second\"]\n[agents.clerk]\nmodel = \"remote\"\n");
    let site = Site::with(&format!("{config}{stand_in}"));
    for (route, expected) in
        [("text", "at last"), ("text", "in its place"), ("stream", "for the key")]
    {
        let reply = ask(&site, "clerk", route, &question());
        assert!(reply.status == 200 && reply.text().contains(expected), "{}", reply.text());
        let fallback = reply.header("x-model-fallback").map(str::to_owned);
        let stands_in = expected == "in its place";
        assert_eq!(fallback.is_some(), stands_in, "{route}: {}", reply.text());
        if stands_in {
            assert_eq!(reply.data()["answeredBy"]["model"], json!(fallback));
        }
        if route == "stream" {
            let end = events(&reply).pop().unwrap();
            assert!(end["answeredBy"]["insteadOf"].is_string(), "{end}");
        }
    }
    let history = site.get("/agents/clerk/history").data();
    let instead_of = |entry: usize| {
        let step = &history["entries"][entry]["steps"].as_array().unwrap().last().unwrap().clone();
        step["answeredBy"]["insteadOf"].clone()
    };
    assert!(instead_of(0).is_string() && instead_of(1).is_string(), "{history}");
    assert!(instead_of(2).is_null(), "{history}");
}
