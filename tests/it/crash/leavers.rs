//! Chats whose clients leave at any moment: while text is streamed, while tools run, while people are
//! asked, and in the stream that an answer continues. Nothing of them stays behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Value, json};

use super::rng::Rng;
use crate::http::tool_approvals::{decide, user};
use crate::http::upstream::{begins, calls, event, says};
use support::client::{Events, Reply, Wire};
use support::eventually;
use support::provider::{Asked, Deed, Provider};
use support::server::{Home, Server};

const CHATS: u64 = 100;
/// Chats at once.
const CLIENTS: u64 = 8;
/// Part of the chats after which memory and files are measured first.
const WARMUP: u64 = 5;
/// Growth of resident memory from there to the end that is allowed, in bytes: caches of the store and
/// pools of the allocator, which fill up to a limit on each thread. It was 2 MB with 1,000 chats, where
/// a chat that stays in memory is 40 kB and more: its actor, its conversation and its stream.
const GROWTH_MAX: f64 = 12e6;
/// The store opens readers when they are first needed.
const FILES_MAX: f64 = 16.0;
/// Events of a stream that comes to nothing more: of a text, and of a call that does not return.
const TEXT_EVENTS: u64 = 7;
const CALL_EVENTS: u64 = 5;
const PAGE: u64 = 100;

/// Answers as the newest message asks: with an endless text, a call that does not return or one that
/// needs an approval. After a result it has a few words, and ends.
fn answer(asked: &Asked) -> Vec<Deed> {
    let messages = asked.body["messages"].as_array().unwrap();
    let newest = messages.last().unwrap();
    let said = newest["content"].as_str().unwrap_or_default();
    match said {
        _ if newest["role"] == "tool" => says("and so it was"),
        "TOOL" => calls("wait", "{}"),
        "ASK" => calls("refund", "{\"amount\":500}"),
        "TEXT" => {
            let more = json!({ "choices": [{ "delta": { "content": "on and " } }] });
            let more = (0..TEXT_EVENTS).map(|_| event(&more));
            begins("openai", "on and ").into_iter().chain(more).chain([Deed::Hold]).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// The server, and those that it calls.
struct Site {
    home: Home,
    server: Server,
    models: Provider,
    tools: Provider,
    /// Numbers of ways to go, by name.
    ways: Mutex<BTreeMap<&'static str, u64>>,
}

/// Memory and files of a server without clients.
#[derive(Debug)]
struct Measured {
    resident: f64,
    files: f64,
}

impl Site {
    fn open() -> Self {
        let models = Provider::choosing(answer);
        let tools = Provider::choosing(|_| vec![Deed::Hold]);
        let home = Home::new(&format!(
            "[models.remote]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n\
             retry = {{ attempts = 1 }}\n[agents.clerk]\nmodel = \"remote\"\n\
             tools = [\"wait\", \"refund\"]\n[tools.wait]\nkind = \"http\"\nmethod = \"POST\"\n\
             description = \"Waits\"\nurl = \"{}wait\"\nparameters = {{ type = \"object\" }}\n",
            models.base_url(),
            tools.base_url()
        ));
        let server = Server::start(home.test_server());
        Self { home, server, models, tools, ways: Mutex::default() }
    }

    fn note(&self, way: &'static str) {
        *self.ways.lock().unwrap().entry(way).or_default() += 1;
    }

    /// Sends messages of a conversation, reads so many events, and leaves. Returns the generation, if
    /// it was read, and the events.
    fn chat(&self, talk: &str, messages: &Value, events: u64) -> (Option<String>, Vec<Value>) {
        let body = json!({ "id": talk, "messages": messages, "options": { "userId": talk } });
        let mut wire = Wire::open(self.server.address).unwrap();
        let json = [("content-type", "application/json")];
        wire.send("POST", "/agents/clerk/chat", &json, Some(body.to_string().as_bytes())).unwrap();
        if events == 0 {
            return (None, Vec::new());
        }
        let mut stream = Events::read(wire).unwrap();
        let id = stream.head.header("x-generation-id").map(str::to_owned);
        let mut read = Vec::new();
        while (read.len() as u64) < events
            && let Some(event) = stream.next().unwrap()
            && event.data != "[DONE]"
        {
            read.push(event.json());
        }
        (id, read)
    }

    fn post(&self, path: &str, body: &Value) -> Reply {
        self.server.post(path, body)
    }

    /// Waits until a generation works no more; returns its status.
    fn settled(&self, id: &str) -> String {
        eventually(&format!("the end of {id}"), || {
            let shown = self.server.get(&format!("/agents/clerk/generations/{id}")).data();
            let status = shown["status"].as_str().unwrap();
            (status != "working").then(|| status.to_owned())
        })
    }

    fn open_asks(&self, talk: &str) -> Vec<Value> {
        let path = format!("/inbox?limit={PAGE}{talk}");
        self.server.get(&path).data()["asks"].as_array().unwrap().clone()
    }

    /// Refuses what is asked.
    fn refuse(&self, ask: &Value) -> Reply {
        let path = format!("/inbox/{}/answer", ask["askId"].as_str().unwrap());
        let data = json!({ "approved": false, "reason": "nobody is there" });
        self.post(&path, &json!({ "data": data, "options": { "userId": "lea" } }))
    }

    /// Has one chat and leaves it.
    fn leave(&self, number: u64, rng: &mut Rng) {
        let talk = format!("t{number}");
        match rng.below(4) {
            0 => {
                self.note("in a text");
                self.chat(&talk, &json!([user("m1", "TEXT")]), rng.below(TEXT_EVENTS));
            }
            1 => {
                self.note("in a call");
                self.chat(&talk, &json!([user("m1", "TOOL")]), rng.below(CALL_EVENTS + 1));
            }
            2 => {
                let asked = json!([user("m1", "ASK")]);
                let (id, _) = self.chat(&talk, &asked, rng.below(10));
                self.note("while asked");
                if let Some(id) = id {
                    self.end(&talk, &id, rng);
                }
            }
            _ => {
                let asked = json!([user("m1", "ASK")]);
                self.chat(&talk, &asked, u64::MAX);
                let path = format!(
                    "/api/memory/conversations/{talk}/messages?agentId=clerk&userId={talk}"
                );
                let stored = self.server.get(&path).data();
                let approved = decide(&stored["messages"][1], &[true]);
                let events = rng.below(10);
                // it is unknown whether the server has read what was sent and left at once
                self.note(if events > 0 { "in a continued stream" } else { "with an answer" });
                self.chat(&talk, &json!([approved]), events);
            }
        }
    }

    /// Ends a generation that may wait for people, in one of the ways that there are.
    fn end(&self, talk: &str, id: &str, rng: &mut Rng) {
        if self.settled(id) != "suspended" {
            return;
        }
        match rng.below(4) {
            0 => {
                self.note("answered");
                for ask in self.open_asks(&format!("&userId={talk}")) {
                    self.refuse(&ask).data();
                }
            }
            1 => {
                self.note("cancelled");
                self.post(&format!("/agents/clerk/generations/{id}/cancel"), &json!({})).data();
            }
            2 => {
                self.note("withdrawn by a new message");
                self.chat(talk, &json!([user("m2", "TEXT")]), 1 + rng.below(TEXT_EVENTS - 1));
            }
            _ => self.note("left open"),
        }
    }

    /// Has many chats at once, answers what they have left open, and waits until nothing of them is
    /// there.
    fn wave(&self, numbers: std::ops::Range<u64>, rng: &mut Rng) -> Measured {
        let numbers = Mutex::new(numbers);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let (mut rng, numbers) = (rng.split(), &numbers);
                scope.spawn(move || {
                    loop {
                        let next = numbers.lock().unwrap().next();
                        let Some(number) = next else { return };
                        self.leave(number, &mut rng);
                    }
                });
            }
        });
        let is_zero = |what: &str| self.server.figure(&format!("greenroom_{what}")) == Some(0.0);
        // chats of which nothing was read may not have begun yet
        eventually("nothing runs and nobody is asked", || {
            for ask in self.open_asks("") {
                let reply = self.refuse(&ask);
                assert!([200, 409].contains(&reply.status), "{}", reply.text());
            }
            let is_idle = is_zero("generations_live")
                && is_zero("sse_subscribers")
                && is_zero("unread_bytes{what=\"streams\"}")
                && self.server.figure("greenroom_http_connections") == Some(1.0);
            (is_idle && self.open_asks("").is_empty()).then_some(())
        });
        self.models.wait_until_all_left();
        self.tools.wait_until_all_left();
        Measured {
            resident: self.server.figure("process_resident_memory_bytes").unwrap(),
            files: self.server.figure("process_open_fds").unwrap(),
        }
    }

    /// Returns the number of generations by status.
    fn history(&self) -> BTreeMap<String, u64> {
        let mut statuses = BTreeMap::new();
        for page in 0.. {
            let path = format!("/agents/clerk/history?page={page}&limit={PAGE}");
            let data = self.server.get(&path).data();
            for entry in data["entries"].as_array().unwrap() {
                *statuses.entry(entry["status"].as_str().unwrap().to_owned()).or_default() += 1;
            }
            if (page + 1) * PAGE >= data["pagination"]["total"].as_u64().unwrap() {
                break;
            }
        }
        statuses
    }
}

#[test]
fn nothing_stays_behind_of_chats_that_are_left() {
    let chats = super::amount("GREENROOM_CHATS", CHATS);
    let mut rng = Rng::new();
    let site = Site::open();
    let start = Instant::now();
    let first = site.wave(0..chats / WARMUP, &mut rng);
    let last = site.wave(chats / WARMUP..chats, &mut rng);
    let history = site.history();
    let closed = (site.models.wait_until_all_left(), site.tools.wait_until_all_left());
    println!(
        "{chats} chats left: {:?}; generations: {history:?}; {} streams of models and {} calls closed \
         with their readers; resident {:.1} MB after {}, {:.1} MB at the end; files {} and {}; \
         {:.1} s",
        site.ways.lock().unwrap(),
        closed.0,
        closed.1,
        first.resident / 1e6,
        chats / WARMUP,
        last.resident / 1e6,
        first.files,
        last.files,
        start.elapsed().as_secs_f64()
    );
    let ended = ["cancelled", "completed"];
    assert!(history.keys().all(|status| ended.contains(&&**status)), "{history:?}");
    assert!(closed.0 > 0 && closed.1 > 0, "the drill has drilled nothing");
    assert!(last.resident < first.resident + GROWTH_MAX, "{first:?}, then {last:?}");
    assert!(last.files < first.files + FILES_MAX, "{first:?}, then {last:?}");
    eventually("no ask is counted", || {
        (site.server.figure("greenroom_asks{kind=\"approval\"}") == Some(0.0)).then_some(())
    });
    let ledger = site.home.ledger_lines();
    let made: BTreeSet<_> = ledger.iter().collect();
    assert_eq!(made.len(), ledger.len(), "approved calls are made once");
    let ways = site.ways.lock().unwrap();
    let (continued, sent) = (ways["in a continued stream"], ways.get("with an answer"));
    let made = made.len() as u64;
    assert!((continued..=continued + sent.unwrap_or(&0)).contains(&made), "{made}: {ways:?}");
}
