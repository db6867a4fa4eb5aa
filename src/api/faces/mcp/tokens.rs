//! Texts that clients keep between two requests: the state of a question, and the id of a task.
//! Nothing is stored for them; they are worth nothing to another user and at another face.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::runtime::AskedBefore;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::auth::SealKey;

/// Form of the state.
const VERSION: u8 = 2;

/// Time for the answer to a question, in milliseconds.
const STATE_MS: u64 = 60 * 60 * 1000;

/// Keeps marks of calls apart from those of tasks.
const CALL: &str = "call";
const TASK: &str = "task";

/// An execution, by its workflow and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub workflow: String,
    pub execution: ExecutionId,
}

/// Origin of a question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Asking {
    /// An execution of this workflow.
    Workflow { id: String, execution: String, ask: AskedFor },
    /// A generation of this agent.
    Agent { id: String, generation: String, ask: AskedFor },
    /// A tool that is called directly, and again with the answer.
    Tool { before: AskedBefore, key: String },
}

/// An ask that a client has shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedFor {
    pub id: String,
    /// True if it is answered on a page, not with the next request.
    pub is_on_page: bool,
}

/// State of a question.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct State {
    version: u8,
    /// Mark of the call that asks: of its tool and arguments, and of the face.
    call: String,
    asking: Asking,
    /// User of the token, if there was one.
    user: Option<String>,
    expires: Timestamp,
}

/// Makes and reads such texts for one user of a face.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a> {
    pub key: &'a SealKey,
    /// Name of the face.
    pub face: Option<&'a str>,
    pub user: Option<&'a str>,
}

impl Tokens<'_> {
    /// Returns the mark of a call, which its question is bound to.
    pub fn call(&self, tool: &str, arguments: &Map<String, Value>) -> String {
        let arguments = sorted(&Value::Object(arguments.clone())).to_string();
        let [has_face, face] = optional(self.face);
        self.key.mark(&[CALL, has_face, face, tool, &arguments])
    }

    /// Returns the state of a question of a call; `None` if it is too large.
    pub fn state(&self, call: &str, asking: Asking, now: Timestamp) -> Option<String> {
        let state = State {
            version: VERSION,
            call: call.to_owned(),
            asking,
            user: self.user.map(str::to_owned),
            expires: now.plus_ms(STATE_MS),
        };
        self.key.seal(&serde_json::to_vec(&state).ok()?)
    }

    /// Returns what a state asks; `None` if it is forged, of another call or user, or old.
    pub fn read_state(&self, call: &str, text: &str, now: Timestamp) -> Option<Asking> {
        let state: State = serde_json::from_slice(&self.key.open(text)?).ok()?;
        let is_own = state.call == call && state.user.as_deref() == self.user;
        let is_good = state.version == VERSION && is_own && now < state.expires;
        is_good.then_some(state.asking)
    }

    /// Returns the id of a task.
    pub fn task_id(&self, run: &Run) -> String {
        let Run { workflow, execution } = run;
        let mark = self.key.mark(&self.marked(workflow, execution.as_str()));
        format!("{workflow}/{execution}.{mark}")
    }

    /// Returns the execution of a task; `None` if the id is forged, or of another user or face.
    pub fn read_task_id(&self, text: &str) -> Option<Run> {
        let (name, mark) = text.rsplit_once('.')?;
        let (workflow, execution) = name.split_once('/')?;
        let is_own = self.key.knows(mark, &self.marked(workflow, execution));
        let execution = ExecutionId::parse(execution).ok().filter(|_| is_own)?;
        Some(Run { workflow: workflow.to_owned(), execution })
    }

    fn marked<'t>(&'t self, workflow: &'t str, execution: &'t str) -> [&'t str; 7] {
        let [has_face, face] = optional(self.face);
        let [has_user, user] = optional(self.user);
        [TASK, has_face, face, workflow, execution, has_user, user]
    }
}

/// Keeps a text that is missing apart from an empty one.
fn optional(text: Option<&str>) -> [&str; 2] {
    [if text.is_some() { "some" } else { "" }, text.unwrap_or_default()]
}

/// Returns the value with the members of objects in the order of their names, in which not every
/// client repeats them.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            let members = members.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp(1_790_000_000_000);

    fn key() -> SealKey {
        SealKey::new(b"0123456789abcdef0123456789abcdef").unwrap()
    }

    fn run() -> Run {
        Run { workflow: "trip.v2".to_owned(), execution: ExecutionId::trusted("x-1.b:c") }
    }

    fn asking() -> Asking {
        Asking::Workflow {
            id: "trip".to_owned(),
            execution: "x-1".to_owned(),
            ask: AskedFor { id: "ask_1".to_owned(), is_on_page: false },
        }
    }

    fn call_of(tokens: Tokens<'_>, tool: &str, arguments: Value) -> String {
        match arguments {
            Value::Object(arguments) => tokens.call(tool, &arguments),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_state_is_good_for_its_user_for_an_hour() {
        let (key, other) = (key(), SealKey::random().unwrap());
        let of = |user| Tokens { key: &key, face: None, user };
        let call = call_of(of(None), "trip", json!({}));
        let state = of(Some("ann")).state(&call, asking(), NOW).unwrap();
        let read = |tokens: Tokens<'_>, text: &str, at| tokens.read_state(&call, text, at);
        let last = NOW.plus_ms(STATE_MS - 1);
        assert_eq!(read(of(Some("ann")), &state, last), Some(asking()));
        assert_eq!(read(of(Some("ann")), &state, NOW.plus_ms(STATE_MS)), None, "old");
        for user in [None, Some(""), Some("ben")] {
            assert_eq!(read(of(user), &state, NOW), None, "{user:?}");
        }
        let foreign = Tokens { key: &other, face: None, user: Some("ann") };
        assert_eq!(read(foreign, &state, NOW), None);
        for forged in ["", "x", &state[1..], &of(Some("ann")).task_id(&run())] {
            assert_eq!(read(of(Some("ann")), forged, NOW), None, "{forged}");
        }
    }

    #[test]
    fn a_state_is_good_for_its_call() {
        let key = key();
        let at = |face| Tokens { key: &key, face, user: None };
        let arguments = json!({ "a": 1, "b": [{ "c": null, "d": "x" }] });
        let call = call_of(at(None), "trip", arguments.clone());
        let state = at(None).state(&call, asking(), NOW).unwrap();
        let reordered = json!({ "b": [{ "d": "x", "c": null }], "a": 1 });
        let same = call_of(at(None), "trip", reordered);
        assert_eq!(at(None).read_state(&same, &state, NOW), Some(asking()));
        for other in [
            call_of(at(None), "trips", arguments.clone()),
            call_of(at(None), "trip", json!({ "a": 2, "b": [{ "c": null, "d": "x" }] })),
            call_of(at(None), "trip", json!({ "a": 1 })),
            call_of(at(Some("")), "trip", arguments.clone()),
            call_of(at(Some("ops")), "trip", arguments),
        ] {
            assert_eq!(at(None).read_state(&other, &state, NOW), None);
        }
    }

    #[test]
    fn answers_that_are_too_large_are_not_kept() {
        let key = key();
        let tokens = Tokens { key: &key, face: None, user: None };
        let of = |bytes: usize| {
            let answers = vec![Value::from("x".repeat(bytes))];
            let before = AskedBefore { id: "a".to_owned(), ..AskedBefore::default() };
            let asking =
                Asking::Tool { before: AskedBefore { answers, ..before }, key: "a".to_owned() };
            tokens.state("call", asking, NOW)
        };
        assert!(of(20_000).is_some());
        assert_eq!(of(32_000), None);
    }

    #[test]
    fn the_id_of_a_task_is_good_for_its_user_and_face() {
        let key = key();
        let of = |user| Tokens { key: &key, face: None, user };
        let id = of(None).task_id(&run());
        assert!(id.is_ascii() && id.starts_with("trip.v2/x-1.b:c."), "{id}");
        assert_eq!(of(None).read_task_id(&id), Some(run()));
        for user in [Some(""), Some("ben")] {
            assert_eq!(of(user).read_task_id(&id), None, "{user:?}");
        }
        for face in [Some(""), Some("ops")] {
            assert_eq!(Tokens { face, ..of(None) }.read_task_id(&id), None, "{face:?}");
        }
        let forged =
            [id.replace("x-1", "x-2"), id.replace("trip", "tri"), id[..id.len() - 1].to_owned()];
        for forged in
            forged.iter().map(String::as_str).chain(["", ".", "/", "a/b.c", "trip.v2/x-1.b:c"])
        {
            assert_eq!(of(None).read_task_id(forged), None, "{forged}");
        }
    }
}
