//! Event streams: numbered from 1, without a gap, the same for every reader and after a restart.

use std::io::Read as _;

use serde_json::json;

use super::site::{Site, at};
use support::client::{Event, Events, Wire};
use support::store::Store;

/// Opens a stream; headers may give the position to continue from.
fn open(site: &Site, path: &str, headers: &[(&str, &str)]) -> Events {
    let mut wire = Wire::open(site.address).unwrap();
    wire.send("GET", path, headers, None).unwrap();
    Events::read(wire).unwrap()
}

/// Starts an execution and streams its events.
fn start(site: &Site, workflow: &str, id: &str, input: &serde_json::Value) -> Events {
    let body = json!({ "input": input, "options": { "executionId": id } });
    let mut wire = Wire::open(site.address).unwrap();
    let path = format!("/workflows/{workflow}/stream");
    wire.send("POST", &path, &[], Some(body.to_string().as_bytes())).unwrap();
    let events = Events::read(wire).unwrap();
    assert_eq!(events.head.header("x-execution-id"), Some(id));
    assert_eq!(events.head.header("cache-control"), Some("no-cache"));
    events
}

fn to_end(events: &mut Events) -> Vec<Event> {
    std::iter::from_fn(|| events.next().unwrap()).collect()
}

/// Reads up to an event of this type.
fn upto(events: &mut Events, kind: &str) -> Vec<Event> {
    let mut read = Vec::new();
    while read.last().is_none_or(|event: &Event| event.kind() != kind) {
        read.push(events.next().unwrap().unwrap_or_else(|| panic!("no {kind} in {read:#?}")));
    }
    read
}

fn kinds(events: &[Event]) -> Vec<String> {
    events.iter().map(Event::kind).collect()
}

fn assert_numbered(events: &[Event], first: u64) {
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    let expected: Vec<_> = (first..first + ids.len() as u64).collect();
    assert_eq!(ids, expected);
}

/// Last events of a workflow.
const TWO_STEPS_AND_THE_END: [&str; 6] = [
    "step-start",
    "step-complete",
    "step-start",
    "step-complete",
    "workflow-complete",
    "workflow-result",
];

#[test]
fn a_stream_has_all_events_and_ends() {
    let site = Site::start();
    let events = to_end(&mut start(&site, "add", "s1", &json!({ "n": 1 })));
    assert_numbered(&events, 1);
    assert_eq!(
        kinds(&events),
        [["workflow-start", "step-start", "step-complete"].as_slice(), &TWO_STEPS_AND_THE_END]
            .concat()
    );
    for event in &events {
        let data = event.json();
        assert_eq!(data["executionId"], "s1");
        assert!(data["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{data}");
    }
    assert_eq!(
        (&events[2].json()["from"], &events[2].json()["output"]),
        (&json!("one"), &json!({ "n": 2 }))
    );
    let result = events[8].json();
    assert_eq!((&result["status"], &result["result"]), (&json!("completed"), &json!({ "n": 4 })));
    assert!(result["startAt"].is_string() && result["endAt"].is_string(), "{result}");
    assert_eq!(site.state("add", "s1")["lastSequence"], 9);
}

#[test]
fn a_failure_and_a_cancel_end_a_stream_too() {
    let site = Site::start();
    let events = to_end(&mut start(&site, "failing", "f1", &json!({})));
    assert_numbered(&events, 1);
    let tail = &kinds(&events)[events.len() - 3..];
    assert_eq!(tail, ["step-error", "workflow-error", "workflow-result"]);
    let [step, workflow, result] = [3, 2, 1].map(|back| events[events.len() - back].json());
    assert_eq!(
        (&step["from"], &step["attempt"], &step["willRetry"]),
        (&json!("bad"), &json!(1), &json!(false))
    );
    assert!(workflow["error"].is_string(), "{workflow}");
    assert_eq!((&result["status"], &result["result"]), (&json!("error"), &json!(null)));

    let mut stream = start(&site, "nap", "c1", &json!({}));
    upto(&mut stream, "step-start");
    site.post(&at("nap", "c1", "cancel"), &json!({ "reason": "no" })).data();
    assert_eq!(
        kinds(&to_end(&mut stream)),
        ["step-cancelled", "workflow-cancelled", "workflow-result"]
    );
}

#[test]
fn a_subscriber_can_continue_after_any_event_also_after_a_restart() {
    let site = Site::start();
    let whole = to_end(&mut start(&site, "add", "s1", &json!({ "n": 1 })));
    let check = |site: &Site| {
        let path = at("add", "s1", "stream");
        assert_eq!(to_end(&mut open(site, &path, &[])), whole);
        // workflow-complete and workflow-result are one fact; the position between them is valid
        // too
        for after in 0..whole.len() {
            let rest = &whole[after..];
            let by_query = open(site, &format!("{path}?fromSequence={after}"), &[]);
            let number = after.to_string();
            let by_header = open(site, &path, &[("last-event-id", &number)]);
            let both = open(site, &format!("{path}?fromSequence=1"), &[("last-event-id", &number)]);
            // The form used by polyfills, which send no headers and add a parameter against caches.
            let query = format!("{path}?fromSequence=1&lastEventId={after}&_=17");
            let polyfill = open(site, &query, &[]);
            for mut events in [by_query, by_header, both, polyfill] {
                assert_eq!(to_end(&mut events), rest, "after {after}");
            }
        }
        // the end, and a number that does not exist yet: an EventSource stops on this answer
        for after in [whole.len(), whole.len() + 90] {
            let number = after.to_string();
            let query = format!("{path}?fromSequence={after}");
            let rows: [(&str, &[(&str, &str)]); 2] =
                [(&query, &[]), (&path, &[("last-event-id", &number)])];
            for (path, headers) in rows {
                let reply = site.send("GET", path, headers, None);
                assert_eq!((reply.status, reply.body.len()), (204, 0), "after {after}");
                assert_eq!(reply.header("x-execution-id"), Some("s1"));
            }
        }
    };
    check(&site);
    check(&site.after_a_kill());
}

#[test]
fn a_suspended_stream_stays_open_for_the_resume() {
    resumed(Store::chosen());
}

#[test]
fn a_suspended_stream_stays_open_for_the_resume_on_postgres() {
    Store::postgres().into_iter().for_each(resumed);
}

fn resumed(store: Store) {
    let site = Site::on(store, "");
    let mut first = start(&site, "approval", "s1", &json!({ "who": "ann" }));
    let before = upto(&mut first, "workflow-suspended");
    assert_eq!(kinds(&before), ["workflow-start", "step-suspended", "workflow-suspended"]);
    assert_eq!(before[1].json()["payload"], json!({ "who": "ann" }));
    assert_eq!(before[2].json()["suspension"]["suspendedStepIndex"], 0);
    let mut second = open(&site, &at("approval", "s1", "stream"), &[("last-event-id", "1")]);
    assert_eq!(upto(&mut second, "workflow-suspended"), before[1..]);

    let answer = json!({ "resumeData": { "approved": true } });
    let resumed = std::thread::scope(|scope| {
        let resuming = scope.spawn(|| site.post(&at("approval", "s1", "resume"), &answer).data());
        let after = to_end(&mut first);
        assert_numbered(&after, 4);
        assert_eq!(
            kinds(&after),
            [["workflow-resumed", "step-resumed"].as_slice(), &TWO_STEPS_AND_THE_END].concat()
        );
        assert_eq!(to_end(&mut second), after);
        resuming.join().unwrap()
    });
    assert_eq!(resumed["status"], "completed");
    let whole = site.events("approval", "s1", 0, u64::MAX);
    assert_eq!(whole[..3], before);
    assert_eq!(site.after_a_kill().events("approval", "s1", 0, u64::MAX), whole);
}

#[test]
fn a_suspended_stream_stays_open_after_its_last_event() {
    let site = Site::start();
    let mut first = start(&site, "approval", "s1", &json!({ "who": "ann" }));
    let last = upto(&mut first, "workflow-suspended").pop().unwrap().id.to_string();
    let path = at("approval", "s1", "stream");
    let mut second = open(&site, &path, &[("last-event-id", &last)]);
    site.post(&at("approval", "s1", "cancel"), &json!({})).data();
    let rest = to_end(&mut second);
    assert_eq!(kinds(&rest).last().map(String::as_str), Some("workflow-result"));
    let last = rest.last().unwrap().id.to_string();
    assert_eq!(site.send("GET", &path, &[("last-event-id", &last)], None).status, 204);
}

#[test]
fn an_interrupted_stream_can_be_continued_after_a_kill() {
    let site = Site::start();
    let mut first = start(&site, "approval", "s1", &json!({ "who": "ann" }));
    let before = upto(&mut first, "workflow-suspended");
    let site = site.after_a_kill();
    assert!(first.next().is_err(), "the cut stream ended as if it were whole");
    let last = before.last().unwrap().id.to_string();
    let mut second = open(&site, &at("approval", "s1", "stream"), &[("last-event-id", &last)]);
    let answer = json!({ "resumeData": { "approved": true } });
    site.post(&at("approval", "s1", "resume"), &answer).data();
    let after = to_end(&mut second);
    assert_numbered(&after, before.len() as u64 + 1);
    assert_eq!(site.events("approval", "s1", 0, u64::MAX), [before, after].concat());
}

#[test]
fn nested_steps_name_their_branch() {
    let site = Site::start();
    let mut stream = start(&site, "pair", "p1", &json!({}));
    let before = upto(&mut stream, "workflow-suspended");
    let paths: Vec<_> = before
        .iter()
        .filter_map(|event| event.json()["path"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(paths, ["both/left/l", "both/right/r"]);
}

#[test]
fn a_disconnecting_subscriber_stops_nothing() {
    let site = Site::start();
    drop(start(&site, "approval", "s1", &json!({ "who": "ann" })));
    let state = site.state_when("approval", "s1", |state| state["status"] == "suspended");
    assert_eq!(state["lastSequence"], 3);
    let answer = json!({ "resumeData": { "approved": true } });
    assert_eq!(site.post(&at("approval", "s1", "resume"), &answer).data()["status"], "completed");
}

/// A refused append loses the execution's actor. Only a client that waits for the next heartbeat
/// would see no end here.
#[test]
fn a_stream_continues_when_its_execution_is_loaded_again() {
    let site = Site::on(Store::Sqlite, "limits.heartbeat = \"10m\"");
    let mut events = start(&site, "approval", "lost", &json!({ "who": "ann" }));
    let mut read = upto(&mut events, "workflow-suspended");
    // as if another process had written: the next append does not follow
    let connection = rusqlite::Connection::open(site.home.path("store.db")).unwrap();
    let change = "UPDATE executions SET revision = revision + 1 WHERE id = 'lost'";
    assert_eq!(connection.execute(change, ()), Ok(1));
    let resume = || {
        let path = at("approval", "lost", "resume");
        site.post(&path, &json!({ "resumeData": { "approved": true } }))
    };
    let refused = resume();
    assert_eq!(refused.status, 404, "another writer was first: {}", refused.text());
    let resumed = resume();
    assert_eq!(resumed.status, 200, "{}", resumed.text());
    read.extend(to_end(&mut events));
    assert_numbered(&read, 1);
    assert_eq!(read.last().unwrap().kind(), "workflow-result");
    let again = to_end(&mut open(&site, &at("approval", "lost", "stream"), &[]));
    assert_eq!(kinds(&read), kinds(&again));
}

#[test]
fn pages_of_events_are_those_of_the_stream() {
    let mut site = Site::start();
    let mut stream = start(&site, "approval", "e", &json!({ "who": "ann" }));
    let suspended = std::iter::from_fn(|| stream.next().unwrap());
    let count = suspended.take_while(|event| event.json()["type"] != "workflow-suspended").count();
    let page = |site: &Site, query: &str| {
        site.get(&format!("/workflows/approval/executions/e/events{query}")).data()
    };
    let waiting = page(&site, "");
    let last = count as u64 + 1;
    assert_eq!((&waiting["lastSequence"], &waiting["nextAfter"]), (&json!(last), &json!(null)));
    assert_eq!(waiting["events"].as_array().unwrap().len() as u64, last);
    site.post(&at("approval", "e", "resume"), &json!({ "resumeData": { "approved": true } }))
        .data();
    site = site.after_a_kill();

    let all = to_end(&mut open(&site, &at("approval", "e", "stream"), &[]));
    for limit in [1, 2, 1_000] {
        let (mut after, mut read) = (json!(0), Vec::new());
        while !after.is_null() {
            let page = page(&site, &format!("?after={after}&limit={limit}"));
            let events = page["events"].as_array().unwrap();
            assert!(events.len() <= limit);
            read.extend(events.iter().cloned());
            after = page["nextAfter"].clone();
        }
        let expected = all.iter().map(|event| {
            let mut expected = event.json();
            expected["sequence"] = json!(event.id);
            expected
        });
        assert_eq!(read, expected.collect::<Vec<_>>(), "{limit}");
    }
    let beyond = page(&site, "?after=1000");
    assert_eq!((&beyond["events"], &beyond["nextAfter"]), (&json!([]), &json!(null)));
    assert_eq!(beyond["lastSequence"], json!(all.len()));
    for (query, refusal) in [
        ("?after=x", "after: must be the number of an event"),
        ("?limit=1001", "limit: must be a number from 1 to 1000"),
        ("?from=1", "from: unknown; known parameters: after, limit"),
    ] {
        let refused = site.get(&format!("/workflows/approval/executions/e/events{query}"));
        assert_eq!(refused.status, 400, "{query}");
        assert_eq!(refused.json()["error"], format!("Invalid query parameter {refusal}"));
    }
}

#[test]
fn large_events_are_pages_of_their_own() {
    let site = Site::with(
        "[[workflows.large.steps]]\nid = \"a\"\ntype = \"andThen\"\nmap = \"input\"\n\
         [[workflows.large.steps]]\nid = \"b\"\ntype = \"andThen\"\nmap = \"input\"\n\
         [[workflows.large.steps]]\nid = \"c\"\ntype = \"andThen\"\nmap = \"1\"\n",
    );
    site.execute("large", "e", &json!({ "text": "x".repeat(400_000) }));
    let (mut after, mut numbers, mut sizes) = (json!(0), Vec::new(), Vec::new());
    while !after.is_null() {
        let path = format!("/workflows/large/executions/e/events?after={after}&limit=1000");
        let reply = site.get(&path);
        sizes.push(reply.body.len());
        let page = reply.data();
        let events = page["events"].as_array().unwrap();
        numbers.extend(events.iter().map(|event| event["sequence"].as_u64().unwrap()));
        after = page["nextAfter"].clone();
    }
    let last = site.get("/workflows/large/executions/e/state").data()["lastSequence"].as_u64();
    assert_eq!(numbers, (1..=last.unwrap()).collect::<Vec<_>>());
    assert!(sizes.iter().all(|size| *size < 1_000_000), "{sizes:?}");
}

#[test]
fn streams_to_old_clients_have_no_chunks_and_end_with_their_connection() {
    let site = Site::start();
    let rows = [
        ("/workflows/add/stream", "{\"input\":{\"n\":1}}", "\"workflow-result\""),
        ("/agents/assistant/stream", "{\"input\":\"hi\"}", "\"finish\""),
    ];
    for (path, body, last) in rows {
        let mut wire = Wire::open(site.address).unwrap();
        let head = format!("POST {path} HTTP/1.0\r\nconnection: keep-alive\r\n");
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        wire.write(request.as_bytes()).unwrap();
        let mut answer = String::new();
        wire.stream.read_to_string(&mut answer).unwrap();
        let (head, events) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        let head = head.to_ascii_lowercase();
        for name in ["transfer-encoding", "content-length", "connection: keep-alive"] {
            assert!(!head.contains(name), "{head}");
        }
        assert!(events.contains(last), "{events}");
        let is_line = |line: &str| {
            ["", ":"].contains(&line)
                || line.starts_with(": ")
                || line.starts_with("id: ")
                || line.starts_with("event: ")
                || line.starts_with("data: ")
        };
        assert!(events.lines().all(is_line), "{events}");
    }
}
