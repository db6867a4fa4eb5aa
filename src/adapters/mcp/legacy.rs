//! Questions that servers of older versions ask while a call runs.
//!
//! Such a question does not say which call it belongs to. While several calls run, it is refused. The
//! call that fails with that refusal is made again, and from then on the calls of the server are made
//! one at a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_actors::agent::tool::ToolError;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData};
use serde_json::Value;
use tokio::sync::{Notify, OwnedMutexGuard};

use super::elicit::Question;
use super::settings::McpServer;

/// Refusal of a question, by which the call that it belongs to is recognised when it fails.
const UNCLEAR: &str = "several calls run, and the question does not say which one asks; call again";

/// The calls of one server, and their questions.
#[derive(Debug, Default)]
pub(super) struct Asking {
    running: Mutex<Vec<Running>>,
    next: AtomicU64,
    /// True once a question could not be matched to its call.
    is_one_by_one: AtomicBool,
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Notified when a call ends.
    ended: Notify,
}

#[derive(Debug)]
struct Running {
    number: u64,
    /// Answers that are known, in the order of their questions; each is given once.
    known: Vec<(Question, Value)>,
    /// The first question without an answer, or why it cannot be asked.
    asked: Option<Result<Question, ToolError>>,
    notify: Arc<Notify>,
}

/// A call that runs. It does not when this is dropped.
#[derive(Debug)]
pub(super) struct RunningCall<'a> {
    asking: &'a Asking,
    number: u64,
    notify: Arc<Notify>,
    _turn: Option<OwnedMutexGuard<()>>,
}

impl Asking {
    /// Begins a call, with answers to earlier makings of it. Where calls are made one at a time, it
    /// waits until no other one runs.
    pub(super) async fn begin(&self, known: Vec<(Question, Value)>) -> RunningCall<'_> {
        let turn = match self.is_one_by_one.load(Ordering::Relaxed) {
            true => {
                let turn = Arc::clone(&self.turn).lock_owned().await;
                // those that began before
                while !self.lock().is_empty() {
                    self.ended.notified().await;
                }
                Some(turn)
            }
            false => None,
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let notify = Arc::new(Notify::new());
        let running = Running { number, known, asked: None, notify: Arc::clone(&notify) };
        self.lock().push(running);
        RunningCall { asking: self, number, notify, _turn: turn }
    }

    /// Answers a question of a server, if its answer is known. Otherwise the call that it belongs to
    /// ends, to be made again with the answer.
    pub(super) fn answer(
        &self,
        server: &McpServer,
        asked: ElicitRequestParams,
    ) -> Result<ElicitResult, ErrorData> {
        let refused = |why: &str| ErrorData::new(ErrorCode::INTERNAL_ERROR, why.to_owned(), None);
        let mut running = self.lock();
        let call = match running.as_mut_slice() {
            [] => return Err(refused("no call runs that could ask a person")),
            [call] => call,
            _ => {
                if !self.is_one_by_one.swap(true, Ordering::Relaxed) {
                    let name = &server.name;
                    log::warn!(
                        "MCP server {name}: it asked a person while several calls ran; from now on \
                         its calls are made one at a time"
                    );
                }
                return Err(refused(UNCLEAR));
            }
        };
        if call.asked.is_none() {
            match Question::of(server, asked) {
                Ok(question) => {
                    if let Some(at) = call.known.iter().position(|(known, _)| *known == question) {
                        let (question, answer) = call.known.remove(at);
                        return result(question.response(&answer))
                            .ok_or_else(|| refused("the answer of the person cannot be sent"));
                    }
                    call.asked = Some(Ok(question));
                }
                Err(why) => call.asked = Some(Err(why)),
            }
            call.notify.notify_one();
        }
        Ok(ElicitResult::new(ElicitationAction::Cancel))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningCall<'_> {
    /// Waits for a question whose answer is not known.
    pub(super) async fn asked(&self) -> Result<Question, ToolError> {
        loop {
            let asked = {
                let mut running = self.asking.lock();
                let call = running.iter_mut().find(|call| call.number == self.number);
                call.and_then(|call| call.asked.clone())
            };
            if let Some(asked) = asked {
                return asked;
            }
            self.notify.notified().await;
        }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.asking.lock().retain(|call| call.number != self.number);
        self.asking.ended.notify_one();
    }
}

/// Returns true if a call has failed because its question was refused: its text has the refusal.
pub(super) fn was_unclear(error: &ToolError) -> bool {
    matches!(error, ToolError::Failed(failure) if failure.message.contains(UNCLEAR))
}

/// Reads an answer, which has the form of a result.
fn result(answer: Value) -> Option<ElicitResult> {
    serde_json::from_value(answer).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::settings::tests::server;
    use super::*;

    fn form(message: &str) -> ElicitRequestParams {
        let params = json!({ "message": message, "requestedSchema": {
            "type": "object", "properties": { "n": { "type": "integer" } } } });
        serde_json::from_value(params).unwrap()
    }

    fn question(message: &str) -> Question {
        Question::of(&server("own"), form(message)).unwrap()
    }

    #[tokio::test]
    async fn a_question_is_answered_once_or_ends_its_call() {
        let (asking, server) = (Asking::default(), server("own"));
        let none = asking.answer(&server, form("a")).unwrap_err();
        assert!(none.message.contains("no call runs"), "{none}");
        let answer = json!({ "action": "accept", "content": { "n": 1 } });
        let call = asking.begin(vec![(question("a"), answer)]).await;
        let known = asking.answer(&server, form("a")).unwrap();
        assert_eq!(known.content, Some(json!({ "n": 1 })));
        for message in ["a", "b"] {
            let unknown = asking.answer(&server, form(message)).unwrap();
            assert_eq!(unknown.action, ElicitationAction::Cancel);
        }
        assert_eq!(call.asked().await, Ok(question("a")), "the first counts");
        drop(call);
        assert!(asking.lock().is_empty());
    }

    #[tokio::test]
    async fn questions_among_several_calls_are_refused_and_calls_made_one_at_a_time() {
        let (asking, server) = (Asking::default(), server("own"));
        let (one, other) = (asking.begin(Vec::new()).await, asking.begin(Vec::new()).await);
        let refused = asking.answer(&server, form("a")).unwrap_err();
        assert!(refused.message.contains("call again"), "{refused}");
        drop((one, other));
        let one = asking.begin(Vec::new()).await;
        let mut other = Box::pin(asking.begin(Vec::new()));
        assert!(futures_util::poll!(&mut other).is_pending());
        asking.answer(&server, form("a")).unwrap();
        assert_eq!(one.asked().await, Ok(question("a")));
        drop(one);
        drop(other.await);
    }
}
