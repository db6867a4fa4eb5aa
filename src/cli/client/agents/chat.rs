//! A conversation with an agent, line by line.

use std::io::{self, BufRead as _, IsTerminal as _};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Memory;
use super::generation::{Outcome, generate, waiting};
use crate::cli::client::api::Call;
use crate::cli::client::exit::{Exit, Failure};
use crate::cli::client::screen::{Form, note};
use crate::cli::client::session::Session;

/// Talks until stdin ends. Without a conversation of the server, this side keeps what was said.
pub(super) async fn run(session: &Session, agent: &str, memory: &Memory) -> Result<Exit, Failure> {
    // an unknown agent is refused before the first message is written
    session.api.data(Call::get(&["agents", agent])).await?;
    let is_prompted = io::stdin().is_terminal() && session.screen.form == Form::Table;
    let mut lines = lines();
    let mut said: Vec<Value> = Vec::new();
    loop {
        if is_prompted {
            session.screen.write("> ")?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            Ok(()) = tokio::signal::ctrl_c() => None,
        };
        let Some(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        said.push(json!({ "role": "user", "content": line }));
        let input = if memory.conversation.is_some() { json!(line) } else { json!(said) };
        let body = json!({ "input": input, "options": memory.options() });
        match generate(session, agent, &body).await {
            Ok(Outcome::Answered { text }) => {
                said.push(json!({ "role": "assistant", "content": text }));
            }
            Ok(Outcome::Waiting(asks)) => return Err(waiting(&asks)),
            // what was not answered is not part of the conversation
            Ok(Outcome::Stopped) => drop(said.pop()),
            // a person reads the failure, and says something else
            Err(failure) if is_prompted && failure.exit == Exit::Failed => {
                note(&failure.to_string());
                said.pop();
            }
            Err(failure) => return Err(failure),
        }
    }
    if is_prompted {
        session.screen.line("")?;
    }
    Ok(Exit::Ok)
}

/// Reads the lines of stdin on a thread, since a read of a terminal cannot be interrupted.
fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
