//! One story for each kind of step: a kill interrupts its running bodies, and it ends as it would
//! have without the kill. All stories are killed at the same moment.

mod counter;
mod kinds;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use self::counter::Counter;
use self::kinds::stories;
use super::ledger;
use crate::test_server::HELD;
use support::client::{Event, Events, Wire};
use support::eventually;
use support::server::{Home, Server};
use support::store::Store;

/// A workflow, and its expected outcome.
struct Story {
    /// The workflow's id, and its execution's.
    name: &'static str,
    /// Its keys in the configuration.
    definition: String,
    input: Value,
    /// The last event before the kill: its type and path.
    seen: (&'static str, &'static str),
    /// Data of the resume after the kill.
    answer: Option<Value>,
    result: Value,
    /// Number of attempts of each body, with the kill; a child's path follows the path of its
    /// parent's step and a colon.
    begun: Vec<(&'static str, u64)>,
}

/// Final state and events of an execution.
struct Told {
    state: Value,
    events: Vec<Event>,
}

impl Story {
    fn start(&self, server: &Server) -> Events {
        let mut wire = Wire::open(server.address).unwrap();
        let path = format!("/workflows/{}/stream", self.name);
        let options = json!({ "executionId": self.name });
        let body = json!({ "input": self.input, "options": options }).to_string();
        wire.send("POST", &path, &[], Some(body.as_bytes())).unwrap();
        Events::read(wire).unwrap()
    }

    /// Reads events up to the one after which the server is killed.
    fn read_until_seen(&self, mut events: Events) -> Vec<Event> {
        let mut read = Vec::new();
        loop {
            let event =
                events.next().unwrap().unwrap_or_else(|| panic!("{}: {read:#?}", self.name));
            let data = event.json();
            read.push(event);
            let path = data["path"].as_str().or_else(|| data["from"].as_str()).unwrap_or_default();
            if (data["type"].as_str().unwrap(), path) == self.seen {
                return read;
            }
        }
    }

    /// Waits until every body that the kill interrupts runs, once.
    fn wait_for_bodies(&self, server: &Server, ledger: &Path) {
        eventually(&format!("the bodies of {}", self.name), || {
            let state = server.state(self.name, self.name);
            let begun = begun(ledger, &names(self.name, &state));
            let mut interrupted = self.begun.iter().filter(|(_, times)| *times > 1);
            interrupted.all(|(path, _)| begun.contains_key(*path)).then_some(())
        });
    }

    fn resume(&self, server: &Server) {
        if let Some(answer) = &self.answer {
            let path = format!("/workflows/{0}/executions/{0}/resume", self.name);
            let reply = server.post(&path, &json!({ "resumeData": answer }));
            assert_eq!(reply.status, 200, "{}: {}", self.name, reply.text());
        }
    }

    fn end(&self, server: &Server) -> Told {
        let state = server.state_when(self.name, self.name, |state| state["endAt"].is_string());
        assert_eq!(state["status"], "completed", "{}: {state:#}", self.name);
        assert_eq!(state["result"], self.result, "{}: {state:#}", self.name);
        let last = state["lastSequence"].as_u64().unwrap();
        let events = server.events(self.name, self.name, 0, last);
        let ids: Vec<_> = events.iter().map(|event| event.id).collect();
        assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "{}", self.name);
        Told { state, events }
    }
}

impl Told {
    /// Returns the outcome of the steps, and the events without starts: only starts differ after a
    /// kill. Concurrent steps end in any order.
    fn outline(&self) -> (Vec<String>, Vec<String>) {
        let words = |value: &Value, keys: &[&str]| {
            let words = keys.iter().map(|key| format!("{key}: {}", value[key]));
            words.collect::<Vec<_>>().join(", ")
        };
        let steps = self.state["steps"].as_array().unwrap();
        let steps = steps.iter().map(|step| words(step, &["path", "status", "output", "error"]));
        let events = self.events.iter().map(Event::json);
        let events = events.filter(|event| event["type"] != "step-start");
        let keys =
            ["type", "from", "path", "status", "output", "result", "error", "willRetry", "reason"];
        let events = events.map(|event| words(&event, &keys));
        let (mut steps, mut events): (Vec<_>, Vec<_>) = (steps.collect(), events.collect());
        steps.sort();
        events.sort();
        (steps, events)
    }
}

/// Returns the executions whose bodies belong to a story, with the prefixes of their paths.
fn names(name: &str, state: &Value) -> BTreeMap<String, String> {
    let steps = state["steps"].as_array().unwrap().iter();
    let children = steps.filter_map(|step| {
        let child = step["childExecutionId"].as_str()?;
        Some((child.to_owned(), format!("{}:", step["path"].as_str().unwrap())))
    });
    children.chain([(name.to_owned(), String::new())]).collect()
}

/// Returns the number of attempts of each body.
fn begun(ledger: &Path, names: &BTreeMap<String, String>) -> BTreeMap<String, u64> {
    let lines = ledger::read(ledger).into_iter();
    let known = lines.filter_map(|((execution, path), lines)| {
        Some((format!("{}{path}", names.get(&execution)?), lines.len() as u64))
    });
    known.collect()
}

fn home(store: Store, counter: &Counter) -> Home {
    let home = Home::on(store, "");
    let config: String = stories().iter().map(|story| story.config(&home, counter)).collect();
    home.configure(&format!("{}{config}", kinds::shared(counter)));
    home
}

/// Runs all stories on a server that is not killed.
fn undisturbed(store: Store) -> Vec<Told> {
    let home = home(store, &Counter::start());
    let server = Server::start(home.test_server());
    let stories = stories();
    for story in &stories {
        story.read_until_seen(story.start(&server));
        story.resume(&server);
    }
    let told = stories.iter().map(|story| story.end(&server)).collect();
    ledger::assert_sound(&ledger::read(&home.ledger()));
    told
}

#[test]
fn every_kind_of_step_ends_the_same_with_and_without_a_kill() {
    interrupted(Store::chosen());
}

#[test]
fn every_kind_of_step_ends_the_same_with_and_without_a_kill_on_postgres() {
    Store::postgres().into_iter().for_each(interrupted);
}

fn interrupted(store: Store) {
    let expected = undisturbed(store);

    let counter = Counter::start();
    let home = home(store, &counter);
    counter.hold(true);
    home.write(HELD, "");
    let server = Server::start(home.test_server());
    let stories = stories();
    let begun_all: Vec<_> = stories.iter().map(|story| story.start(&server)).collect();
    let seen: Vec<_> = stories
        .iter()
        .zip(begun_all)
        .map(|(story, events)| story.read_until_seen(events))
        .collect();
    stories.iter().for_each(|story| story.wait_for_bodies(&server, &home.ledger()));
    ["http", "tool", "agent"].iter().for_each(|name| counter.wait_for(name, 1));
    server.kill();

    counter.hold(false);
    std::fs::remove_file(home.path(HELD)).unwrap();
    let server = Server::start(home.test_server());
    stories.iter().for_each(|story| story.resume(&server));
    for ((story, seen), expected) in stories.iter().zip(seen).zip(expected) {
        let told = story.end(&server);
        assert_eq!(told.events[..seen.len()], seen, "{} has other events", story.name);
        assert_eq!(told.outline(), expected.outline(), "{}", story.name);
        let begun = begun(&home.ledger(), &names(story.name, &told.state));
        let expected: BTreeMap<_, _> =
            story.begun.iter().map(|(path, times)| ((*path).to_owned(), *times)).collect();
        assert_eq!(begun, expected, "{}", story.name);
    }
    ledger::assert_sound(&ledger::read(&home.ledger()));
    for name in ["http", "tool"] {
        assert_eq!(counter.keys(name), [format!("{name}/b"), format!("{name}/b")]);
    }
    assert_eq!(counter.keys("agent").len(), 2, "the interrupted turn is repeated");
    for name in ["sleep", "sleep-until"] {
        let state = server.state(name, name);
        let nap = &state["steps"][1];
        assert_eq!((&nap["path"], &nap["attempts"]), (&json!("b"), &json!(1)), "{state:#}");
    }
}
