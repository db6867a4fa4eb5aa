//! Questions that servers of older versions ask while a call runs.
//!
//! Such a question does not say which call it belongs to. While several calls run, it is refused. The
//! call that fails with that refusal is made again, and from then on the calls of the server are made
//! one at a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_actors::agent::tool::ToolError;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData};
use serde_json::Value;
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::time::Instant;

use crate::adapters::mcp::question::Question;
use crate::adapters::mcp::settings::McpServer;

/// Time for which a server may still work on a call that it was asked to cancel.
const GIVEN_UP: Duration = Duration::from_secs(10);

/// Refusal of a question, by which the call that it belongs to is recognised when it fails.
const UNCLEAR: &str = "several calls run, and the question does not say which one asks; call again";

/// The calls of one server, and their questions.
#[derive(Debug, Default)]
pub(crate) struct Asking {
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
    /// Set once the call is given up: until then its server may still work on it, and ask.
    given_up: Option<Instant>,
}

/// A call that runs. If this is dropped without [`RunningCall::end`], the call is given up.
#[derive(Debug)]
pub(crate) struct RunningCall<'a> {
    asking: &'a Asking,
    number: u64,
    has_ended: bool,
    notify: Arc<Notify>,
    _turn: Option<OwnedMutexGuard<()>>,
}

impl Asking {
    /// Begins a call, with answers to earlier makings of it. Where calls are made one at a time, it
    /// waits until no other one runs.
    pub(crate) async fn begin(&self, known: Vec<(Question, Value)>) -> RunningCall<'_> {
        let turn = match self.is_one_by_one.load(Ordering::Relaxed) {
            true => {
                let turn = Arc::clone(&self.turn).lock_owned().await;
                self.quiet().await;
                Some(turn)
            }
            false => None,
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let notify = Arc::new(Notify::new());
        let (asked, given_up) = (None, None);
        let mut calls = self.lock();
        forget_given_up(&mut calls);
        calls.push(Running { number, known, asked, notify: Arc::clone(&notify), given_up });
        drop(calls);
        RunningCall { asking: self, number, has_ended: false, notify, _turn: turn }
    }

    /// Waits until no call runs, and the server no longer works on one that was given up.
    async fn quiet(&self) {
        loop {
            let (is_empty, until) = {
                let mut running = self.lock();
                forget_given_up(&mut running);
                (running.is_empty(), running.iter().filter_map(|call| call.given_up).min())
            };
            if is_empty {
                return;
            }
            let expired = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.ended.notified() => {}
                () = expired => {}
            }
        }
    }

    /// Answers a question of a server, if its answer is known. Otherwise the call that it belongs to
    /// ends, to be made again with the answer.
    pub(crate) fn answer(
        &self,
        server: &McpServer,
        asked: ElicitRequestParams,
    ) -> Result<ElicitResult, ErrorData> {
        let refused = |why: &str| ErrorData::new(ErrorCode::INTERNAL_ERROR, why.to_owned(), None);
        let mut running = self.lock();
        forget_given_up(&mut running);
        let call = match running.as_mut_slice() {
            [] => return Err(refused("no call runs that could ask a person")),
            [call] if call.given_up.is_none() => call,
            calls if calls.iter().all(|call| call.given_up.is_some()) => {
                return Err(refused("the call was given up"));
            }
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
    pub(crate) async fn asked(&self) {
        while self.question().is_none() {
            self.notify.notified().await;
        }
    }

    /// Ends the call, which has a reply, or asks and is made again later. Returns its question.
    pub(crate) fn end(mut self) -> Option<Result<Question, ToolError>> {
        self.has_ended = true;
        self.question()
    }

    fn question(&self) -> Option<Result<Question, ToolError>> {
        let running = self.asking.lock();
        running.iter().find(|call| call.number == self.number)?.asked.clone()
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut running = self.asking.lock();
        if self.has_ended {
            running.retain(|call| call.number != self.number);
        } else if let Some(call) = running.iter_mut().find(|call| call.number == self.number) {
            call.given_up = Some(Instant::now() + GIVEN_UP);
        }
        self.asking.ended.notify_one();
    }
}

/// Forgets the calls on which the server no longer works.
fn forget_given_up(running: &mut Vec<Running>) {
    let now = Instant::now();
    running.retain(|call| call.given_up.is_none_or(|until| until > now));
}

/// Returns true if a call has failed because its question was refused: its text has the refusal.
pub(crate) fn was_unclear(error: &ToolError) -> bool {
    matches!(error, ToolError::Failed(failure) if failure.message.contains(UNCLEAR))
}

/// Reads an answer, which has the form of a result.
fn result(answer: Value) -> Option<ElicitResult> {
    serde_json::from_value(answer).ok()
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
    use serde_json::json;

    use super::*;
    use crate::adapters::mcp::settings::tests::server;

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
        call.asked().await;
        assert_eq!(call.end(), Some(Ok(question("a"))), "the first counts");
        assert!(asking.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_may_belong_to_a_call_that_was_given_up_a_while_ago() {
        let (asking, server) = (Asking::default(), server("own"));
        drop(asking.begin(Vec::new()).await);
        let refused = asking.answer(&server, form("a")).unwrap_err();
        assert!(refused.message.contains("given up"), "{refused}");
        let other = asking.begin(Vec::new()).await;
        let refused = asking.answer(&server, form("a")).unwrap_err();
        let failure = ToolError::Failed(AttemptFailure::new(ErrorKind::Tool, refused.message));
        assert!(was_unclear(&failure), "{failure:?}");
        assert_eq!(other.end(), None);
        let begun = Instant::now();
        let again = asking.begin(Vec::new()).await;
        assert!(begun.elapsed() >= GIVEN_UP, "not beside it");
        asking.answer(&server, form("a")).unwrap();
        assert_eq!(again.end(), Some(Ok(question("a"))), "known before it is waited for");
    }

    #[tokio::test]
    async fn questions_among_several_calls_are_refused_and_calls_made_one_at_a_time() {
        let (asking, server) = (Asking::default(), server("own"));
        let (one, other) = (asking.begin(Vec::new()).await, asking.begin(Vec::new()).await);
        let refused = asking.answer(&server, form("a")).unwrap_err();
        assert!(refused.message.contains("call again"), "{refused}");
        assert_eq!((one.end(), other.end()), (None, None));
        let one = asking.begin(Vec::new()).await;
        let mut other = Box::pin(asking.begin(Vec::new()));
        assert!(futures_util::poll!(&mut other).is_pending());
        asking.answer(&server, form("a")).unwrap();
        one.asked().await;
        assert_eq!(one.end(), Some(Ok(question("a"))));
        assert_eq!(other.await.end(), None);
    }
}
