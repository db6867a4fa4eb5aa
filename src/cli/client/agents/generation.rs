//! One answer of an agent, while it is written.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::client::api::Call;
use crate::cli::client::exit::{Exit, Failure, quoted};
use crate::cli::client::screen::{Form, note};
use crate::cli::client::session::{Session, deadline_of, end};
use crate::cli::client::text::{compact, plain_lines, text};

/// End of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The whole text.
    Answered { text: String },
    /// Asks that people have to answer first.
    Waiting { generation: String, asks: Vec<Value> },
    /// Ctrl-C, another signal, or the end of the time.
    Stopped(Exit),
}

/// An answer so far.
#[derive(Debug, Default)]
struct Answer {
    generation: String,
    text: String,
    asks: Vec<Value>,
    is_over: bool,
}

/// Asks an agent and prints the answer as it comes. Ctrl-C and the end of the time cancel it at the
/// server.
pub(super) async fn generate(
    session: &Session,
    agent: &str,
    body: &Value,
    timeout: Option<Duration>,
) -> Result<Outcome, Failure> {
    let path = ["agents", agent, "stream"];
    let mut answer = Answer::default();
    let mut end = std::pin::pin!(end(deadline_of(timeout)));
    let mut events = tokio::select! {
        biased;
        // the server cancels what it has begun for a client that disconnects
        exit = &mut end => return Ok(Outcome::Stopped(exit)),
        opened = session.api.events(Call::post(&path, body)) => opened?.1,
    };
    loop {
        let event = tokio::select! {
            // first, so that the signal is caught before anything is printed
            biased;
            exit = &mut end => {
                end_line(session, &answer)?;
                stop(session, agent, &answer.generation).await?;
                return Ok(Outcome::Stopped(exit));
            }
            event = events.next() => event,
        };
        let Some(event) = event else { break };
        answer.note(session, &event.data)?;
    }
    end_line(session, &answer)?;
    if !answer.is_over {
        return Err(Failure::new(Exit::Failed, "the server ended the answer early").advise(
            format!(
                "the server may have the rest: greenroom agents watch {} {}",
                quoted(agent),
                quoted(&answer.generation)
            ),
        ));
    }
    if answer.asks.is_empty() {
        Ok(Outcome::Answered { text: answer.text })
    } else {
        Ok(Outcome::Waiting { generation: answer.generation, asks: answer.asks })
    }
}

impl Answer {
    /// Notes an event, and prints it.
    fn note(&mut self, session: &Session, event: &Value) -> Result<(), Failure> {
        let screen = &session.screen;
        if screen.form == Form::Jsonl {
            screen.line(&compact(event))?;
        }
        let is_table = screen.form == Form::Table;
        match text(event, "type") {
            "start" => text(event, "generationId").clone_into(&mut self.generation),
            "text-delta" => {
                let delta = text(event, "delta");
                self.text.push_str(delta);
                if is_table {
                    screen.write(&plain_lines(delta))?;
                }
            }
            "tool-call" if is_table => {
                note(&format!("[{} {}]", text(event, "toolName"), compact(&event["input"])));
            }
            "tool-error" if is_table => note(&format!("[{}]", text(event, "error"))),
            "tool-approval-request" | "ask" => self.asks.push(event.clone()),
            "finish" => self.is_over = true,
            "abort" => return Err(Failure::new(Exit::Failed, "the answer was cancelled")),
            "error" => {
                return Err(Failure::new(Exit::Failed, text(event, "error"))
                    .advise(format!("code {}: docs/errors.md", text(event, "code"))));
            }
            _ => {}
        }
        Ok(())
    }
}

fn end_line(session: &Session, answer: &Answer) -> Result<(), Failure> {
    if session.screen.form == Form::Table && !answer.text.is_empty() {
        session.screen.line("")?;
    }
    Ok(())
}

/// Cancels a generation whose answer is no longer wanted.
pub(super) async fn stop(session: &Session, agent: &str, id: &str) -> Result<(), Failure> {
    if !id.is_empty() {
        let path = ["agents", agent, "generations", id, "cancel"];
        // it may have ended meanwhile
        let _ = session.api.any_reply(Call::post(&path, &json!({}))).await?;
    }
    Ok(())
}

/// Returns the failure of an answer that waits for people.
pub(super) fn waiting(agent: &str, id: &str, asks: &[Value]) -> Failure {
    let reasons: Vec<_> = asks.iter().map(|ask| text(ask, "reason")).collect();
    let failure = Failure::new(Exit::Suspended, format!("the agent waits: {}", reasons.join("; ")));
    let failure = asks.iter().fold(failure, |failure, ask| {
        let id = quoted(text(ask, "askId"));
        let how = match text(ask, "kind") {
            "approval" => "--approve, or --refuse",
            _ => "--data JSON",
        };
        failure.advise(format!("answer: greenroom inbox answer {id} {how}"))
    });
    failure.advise(format!("come back: greenroom agents watch {} {}", quoted(agent), quoted(id)))
}
