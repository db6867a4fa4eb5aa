//! Texts that clients keep between two requests: the state of a question, and the id of a task.
//! Nothing is stored for them; they are worth nothing to another user.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::auth::SealKey;

/// Form of the state.
const VERSION: u8 = 1;

/// Time for the answer to a question, in milliseconds.
const STATE_MS: u64 = 60 * 60 * 1000;

/// An execution, by its workflow and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub workflow: String,
    pub execution: ExecutionId,
}

/// A question to a person, by its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// The workflow or the agent.
    pub of: Of,
    /// Id of the execution or the generation.
    pub run: String,
    pub ask: String,
}

/// A workflow or an agent, by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Of {
    Workflow(String),
    Agent(String),
}

/// State of a question.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct State {
    version: u8,
    asking: Asking,
    /// User of the token, if there was one.
    user: Option<String>,
    expires: Timestamp,
}

/// Makes and reads such texts for one user.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a> {
    pub key: &'a SealKey,
    pub user: Option<&'a str>,
}

impl Tokens<'_> {
    /// Returns the state of a question.
    pub fn state(&self, asking: Asking, now: Timestamp) -> Option<String> {
        let state = State {
            version: VERSION,
            asking,
            user: self.user.map(str::to_owned),
            expires: now.plus_ms(STATE_MS),
        };
        Some(self.key.seal(&serde_json::to_vec(&state).ok()?))
    }

    /// Returns what a state asks; `None` if it is forged, of another user, or old.
    pub fn read_state(&self, text: &str, now: Timestamp) -> Option<Asking> {
        let state: State = serde_json::from_slice(&self.key.open(text)?).ok()?;
        let State { version, asking, user, expires } = state;
        let is_good = version == VERSION && user.as_deref() == self.user && now < expires;
        is_good.then_some(asking)
    }

    /// Returns the id of a task.
    pub fn task_id(&self, run: &Run) -> String {
        let Run { workflow, execution } = run;
        let mark = self.key.mark(&self.marked(workflow, execution.as_str()));
        format!("{workflow}/{execution}.{mark}")
    }

    /// Returns the execution of a task; `None` if the id is forged or of another user.
    pub fn read_task_id(&self, text: &str) -> Option<Run> {
        let (name, mark) = text.rsplit_once('.')?;
        let (workflow, execution) = name.split_once('/')?;
        let is_own = self.key.knows(mark, &self.marked(workflow, execution));
        let execution = ExecutionId::parse(execution).ok().filter(|_| is_own)?;
        Some(Run { workflow: workflow.to_owned(), execution })
    }

    fn marked<'t>(&'t self, workflow: &'t str, execution: &'t str) -> [&'t str; 4] {
        let has_user = if self.user.is_some() { "user" } else { "" };
        [workflow, execution, has_user, self.user.unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_790_000_000_000);

    fn key() -> SealKey {
        SealKey::new(b"0123456789abcdef0123456789abcdef").unwrap()
    }

    fn run() -> Run {
        Run { workflow: "trip.v2".to_owned(), execution: ExecutionId::trusted("x-1.b:c") }
    }

    #[test]
    fn a_state_is_good_for_its_user_for_an_hour() {
        let (key, other) = (key(), SealKey::random().unwrap());
        let of = |user| Tokens { key: &key, user };
        let asking = Asking {
            of: Of::Workflow("trip".to_owned()),
            run: "x-1".to_owned(),
            ask: "ask_1".to_owned(),
        };
        let state = of(Some("ann")).state(asking.clone(), NOW).unwrap();
        let last = NOW.plus_ms(STATE_MS - 1);
        let expected = Some(asking);
        assert_eq!(of(Some("ann")).read_state(&state, last), expected);
        assert_eq!(of(Some("ann")).read_state(&state, NOW.plus_ms(STATE_MS)), None, "old");
        for user in [None, Some(""), Some("ben")] {
            assert_eq!(of(user).read_state(&state, NOW), None, "{user:?}");
        }
        let foreign = Tokens { key: &other, user: Some("ann") };
        assert_eq!(foreign.read_state(&state, NOW), None);
        for forged in ["", "x", &state[1..], &of(Some("ann")).task_id(&run())] {
            assert_eq!(of(Some("ann")).read_state(forged, NOW), None, "{forged}");
        }
    }

    #[test]
    fn the_id_of_a_task_is_good_for_its_user() {
        let key = key();
        let of = |user| Tokens { key: &key, user };
        let id = of(None).task_id(&run());
        assert!(id.is_ascii() && id.starts_with("trip.v2/x-1.b:c."), "{id}");
        assert_eq!(of(None).read_task_id(&id), Some(run()));
        for user in [Some(""), Some("ben")] {
            assert_eq!(of(user).read_task_id(&id), None, "{user:?}");
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
