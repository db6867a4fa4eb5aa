//! An errand: a question to the agent whose calls wait for answers, from its start to its last words.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use serde_json::{Value, json};

use super::Found;
use crate::crash::rng::Rng;
use support::client::Wire;
use support::{PATIENCE, PAUSE};

/// Every death of the server is a kill of the drill: none counts. The agent: amounts that end in 1 or 2 wait for an answer, those in 3 do not.
pub(super) const CONFIG: &str = r#"
limits.crash_attempts = 1000
limits.quarantine_after = 0

[models.offline]
provider = "rehearsal"

[[models.offline.rules]]
when = "tool_results"
reply = "{% for it in tool_results %}{{ it.output.paid if it.output is defined else it.denied }};{% endfor %}"

[[models.offline.rules]]
when = "'ONE' in prompt"
tool_calls = [
    { name = "pay", args = { amount = "(prompt | split | list)[1] | int + 1", pause = "(prompt | split | list)[2] | int" } },
]

[[models.offline.rules]]
when = "'TWO' in prompt"
tool_calls = [
    { name = "pay", args = { amount = "(prompt | split | list)[1] | int + 1", pause = "(prompt | split | list)[2] | int" } },
    { name = "pay", args = { amount = "(prompt | split | list)[1] | int + 2", pause = "(prompt | split | list)[2] | int" } },
]

[[models.offline.rules]]
when = "'MIXED' in prompt"
tool_calls = [
    { name = "pay", args = { amount = "(prompt | split | list)[1] | int + 3", pause = "(prompt | split | list)[2] | int" } },
    { name = "pay", args = { amount = "(prompt | split | list)[1] | int + 1", pause = "(prompt | split | list)[2] | int" } },
]

[agents.clerk]
model = "offline"
tools = ["pay"]

[workflows.paying]
steps = [{ id = "pay", type = "andAgent", agent = "clerk", prompt = "{{ input.text }}" }, { id = "said", map = "data.text" }]
"#;

/// A kind of errand.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: &'static str,
    how: How,
    word: &'static str,
    /// Last digits of the amounts of its calls, behind the errand's number.
    calls: &'static [u64],
    /// The second call is refused.
    refuses: bool,
}

/// The route of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Text,
    Async,
    Chat,
    Step,
}

const ONE: Plan = Plan { name: "text", how: How::Text, word: "ONE", calls: &[1], refuses: false };
const TWO: Plan = Plan { word: "TWO", calls: &[1, 2], ..ONE };

pub(super) const PLANS: [Plan; 7] = [
    ONE,
    Plan { name: "async", how: How::Async, ..ONE },
    Plan { name: "two", ..TWO },
    Plan { name: "refused", refuses: true, how: How::Async, ..TWO },
    Plan { name: "mixed", how: How::Chat, word: "MIXED", calls: &[3, 1], ..ONE },
    Plan { name: "step", how: How::Step, ..TWO },
    Plan { name: "refused in a step", how: How::Step, refuses: true, ..TWO },
];

const REFUSED: &str = "refused by a person: no";

#[derive(Debug)]
pub(super) struct Errand {
    pub(super) plan: &'static Plan,
    /// Begins the amounts of the calls, which no other errand has.
    number: u64,
    /// Duration of a call, in milliseconds.
    pause: u64,
    /// The start was sent; it may have been recorded.
    is_sent: bool,
    /// The generation, once it is known; of a step it is never asked for.
    generation: Option<String>,
    is_accepted: bool,
    /// The answer that was sent and has no reply yet: ask and amount.
    sent: Option<(String, u64)>,
    /// Answers that were acknowledged.
    pub(super) answered: Vec<(String, u64)>,
    pub(super) answers_repeated: u64,
    is_done: bool,
}

impl Errand {
    pub(super) fn new(plan: &'static Plan, number: u64, pause: u64) -> Self {
        Self {
            plan,
            number,
            pause,
            is_sent: false,
            generation: None,
            is_accepted: false,
            sent: None,
            answered: Vec::new(),
            answers_repeated: 0,
            is_done: false,
        }
    }

    /// The user of the errand, which is also its conversation and its execution.
    pub(super) fn user(&self) -> String {
        format!("e{}", self.number)
    }

    fn amounts(&self) -> impl Iterator<Item = u64> {
        self.plan.calls.iter().map(|call| self.number * 10 + call)
    }

    fn is_approved(&self, amount: u64) -> bool {
        !self.plan.refuses || amount % 10 != 2
    }

    /// Returns the amounts of the calls that are made.
    pub(super) fn made(&self) -> impl Iterator<Item = u64> {
        self.amounts().filter(|amount| self.is_approved(*amount))
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.plan.word, self.number * 10, self.pause)
    }

    /// Returns where its state is shown.
    fn place(&self) -> String {
        match &self.generation {
            Some(id) => format!("/agents/clerk/generations/{id}"),
            None => format!("/workflows/paying/executions/{}/state", self.user()),
        }
    }

    /// Returns the last words of the agent.
    fn words(&self) -> String {
        let said = self.amounts().map(|amount| match self.is_approved(amount) {
            true => format!("{amount};"),
            false => format!("{REFUSED};"),
        });
        said.collect()
    }

    /// Continues where the last server left it, to its end.
    pub(super) fn go_on(&mut self, wire: &mut Wire, rng: &mut Rng) -> io::Result<()> {
        let begin = Instant::now();
        if let Some((ask, amount)) = self.sent.clone() {
            self.answers_repeated += 1;
            self.answer(wire, ask, amount)?;
        }
        while !self.is_done {
            if begin.elapsed() > PATIENCE {
                let shown = get(wire, &self.place())?;
                panic!("never ends: {self:?}: {shown:#}");
            }
            if !self.is_accepted {
                self.start(wire)?;
            }
            let open = get(wire, &format!("/inbox?userId={}", self.user()))?;
            let open = open["asks"].as_array().unwrap();
            if open.is_empty() {
                std::thread::sleep(PAUSE);
                self.look(wire)?;
                continue;
            }
            let ask = &open[rng.below(open.len() as u64) as usize];
            let id = ask["askId"].as_str().unwrap().to_owned();
            let amount = ask["reason"].as_str().unwrap().strip_prefix("Pay ").unwrap();
            self.answer(wire, id, amount.parse().unwrap())?;
        }
        Ok(())
    }

    /// Starts it, unless a start without a reply was recorded.
    fn start(&mut self, wire: &mut Wire) -> io::Result<()> {
        let user = self.user();
        let is_step = self.plan.how == How::Step;
        if self.is_sent && !is_step {
            let recent = get(wire, "/agents/clerk/history?limit=100")?;
            let mut recent = recent["entries"].as_array().unwrap().iter();
            let recorded = recent.find(|it| it["userId"] == *user && it["status"] != "error");
            if let Some(entry) = recorded {
                self.generation = Some(entry["id"].as_str().unwrap().to_owned());
                self.is_accepted = true;
                return Ok(());
            }
        }
        self.is_sent = true;
        let options = json!({ "userId": user, "conversationId": user });
        let json = ("content-type", "application/json");
        let prefer = ("prefer", "respond-async");
        let (path, headers, body) = match self.plan.how {
            How::Text => {
                let body = json!({ "input": self.text(), "options": options });
                ("/agents/clerk/text", vec![json], body)
            }
            How::Async => {
                let body = json!({ "input": self.text(), "options": options });
                ("/agents/clerk/text", vec![json, prefer], body)
            }
            How::Chat => {
                let parts = json!([{ "type": "text", "text": self.text() }]);
                let message = json!({ "id": "m", "role": "user", "parts": parts });
                let body = json!({ "id": user, "messages": [message], "options": options });
                ("/agents/clerk/chat", vec![json], body)
            }
            How::Step => {
                let mut options = options;
                options["executionId"] = json!(user);
                let body = json!({ "input": { "text": self.text() }, "options": options });
                ("/workflows/paying/execute", vec![json, prefer, ("idempotency-key", &*user)], body)
            }
        };
        wire.send("POST", path, &headers, Some(body.to_string().as_bytes()))?;
        let reply = wire.reply()?;
        assert!([200, 202].contains(&reply.status), "{self:?}: {} {}", reply.status, reply.text());
        let id = reply.header(if is_step { "x-execution-id" } else { "x-generation-id" });
        let id = id.expect("an answer names what it has begun").to_owned();
        self.generation = Some(id).filter(|_| !is_step);
        self.is_accepted = true;
        Ok(())
    }

    /// Answers, with the same key whenever it is sent; the reply is the same, too.
    fn answer(&mut self, wire: &mut Wire, ask: String, amount: u64) -> io::Result<()> {
        self.sent = Some((ask.clone(), amount));
        let approved = self.is_approved(amount);
        let data = match approved {
            true => json!({ "approved": true }),
            false => json!({ "approved": false, "reason": "no" }),
        };
        let body = json!({ "data": data, "options": { "userId": "lea" } }).to_string();
        let key = format!("answer-{amount}");
        let headers = [("content-type", "application/json"), ("idempotency-key", &*key)];
        wire.send("POST", &format!("/inbox/{ask}/answer"), &headers, Some(body.as_bytes()))?;
        let shown = wire.reply()?.data();
        let is_won = shown["state"] == "answered" && shown["answeredBy"]["id"] == "lea";
        assert!(is_won && shown["data"]["approved"] == approved, "{self:?}: {shown}");
        self.sent = None;
        self.answered.push((ask, amount));
        Ok(())
    }

    /// Looks whether it has ended. What was interrupted before its first turn begins again.
    fn look(&mut self, wire: &mut Wire) -> io::Result<()> {
        let shown = get(wire, &self.place())?;
        match shown["status"].as_str().unwrap() {
            "completed" => self.is_done = true,
            "error" if shown["error"] == "interrupted by a restart" => {
                assert_eq!(self.answered, [], "{shown:#}");
                self.is_accepted = false;
            }
            "working" | "running" | "suspended" => {}
            other => panic!("{other}: {self:?}: {shown:#}"),
        }
        if let (true, None) = (self.is_done, &self.generation) {
            assert_eq!(shown["result"], self.words(), "{shown:#}");
        }
        Ok(())
    }

    /// Compares what a server shows with what was answered, and with the effects.
    pub(super) fn check(&self, found: &Found, effects: &BTreeMap<u64, Vec<String>>) {
        let user = self.user();
        assert!(self.is_done, "{self:?}");
        let [entry] = &found.completed[&user][..] else {
            panic!("{self:?}: {:#?}", found.completed[&user])
        };
        assert_eq!(entry["output"], self.words(), "{self:?}: {entry:#}");
        for amount in self.amounts() {
            let keys = effects.get(&amount).map_or(&[][..], |keys| keys);
            assert_eq!(keys.is_empty(), !self.is_approved(amount), "{self:?}");
            assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{self:?}: {keys:?}");
        }
        let waited: Vec<_> = self.amounts().filter(|amount| amount % 10 < 3).collect();
        let mut answered: Vec<_> = self.answered.iter().map(|(_, amount)| *amount).collect();
        answered.sort_unstable();
        assert_eq!(answered, waited, "{self:?}");
        let asks = &found.asks[&user];
        assert_eq!(asks.len(), waited.len(), "{self:?}: {asks:#?}");
        for (id, _) in &self.answered {
            let ask = asks.iter().find(|ask| ask["askId"] == **id);
            assert_eq!(ask.expect("it stays")["state"], "answered", "{self:?}");
        }
        let said = |role: &str| -> Vec<&Value> {
            let of_role = found.messages[&user].iter().filter(|it| it["role"] == role);
            let parts = of_role.flat_map(|message| message["parts"].as_array().unwrap());
            parts.filter(|part| part["type"] == "text").map(|part| &part["text"]).collect()
        };
        assert_eq!(said("user"), [&json!(self.text())], "{self:?}");
        assert_eq!(said("assistant"), [&json!(self.words())], "{self:?}");
    }
}

fn get(wire: &mut Wire, path: &str) -> io::Result<Value> {
    wire.send("GET", path, &[], None)?;
    Ok(wire.reply()?.data())
}
