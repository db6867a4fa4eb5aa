//! A conversation with an agent, line by line.

use std::io::{self, BufRead as _, IsTerminal as _};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Memory;
use super::approve::decide;
use super::generation::{Outcome, generate, waiting};
use super::settle::rest;
use crate::cli::client::api::Call;
use crate::cli::client::exit::{Exit, Failure, quoted};
use crate::cli::client::screen::{Form, note};
use crate::cli::client::session::{Session, interrupt};

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
            _ = interrupt() => None,
        };
        let Some(line) = text_of(line)? else { break };
        if line.trim().is_empty() {
            continue;
        }
        said.push(json!({ "role": "user", "content": line }));
        let input = if memory.conversation.is_some() { json!(line) } else { json!(said) };
        let body = json!({ "input": input, "options": memory.options() });
        let mut outcome = generate(session, agent, &body, None).await;
        while let Ok(Outcome::Waiting { generation, asks }) = outcome {
            let left = || waiting(agent, &generation, &asks).advise(continuation(agent, memory));
            for ask in &asks {
                if !is_prompted || !decide(session, ask, memory, &mut lines).await? {
                    return Err(left());
                }
            }
            outcome = rest(session, agent, &generation).await;
        }
        match outcome {
            Ok(Outcome::Answered { text }) => {
                said.push(json!({ "role": "assistant", "content": text }));
            }
            // what was not answered is not part of the conversation
            Ok(Outcome::Waiting { .. } | Outcome::Stopped(Exit::Interrupted)) => drop(said.pop()),
            Ok(Outcome::Stopped(signal)) => return Ok(signal),
            // a person reads the failure, and says something else
            Err(failure) if is_prompted && failure.exit == Exit::Failed => {
                failure.to_string().lines().for_each(note);
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

/// Returns how to continue a conversation, if the server has it.
fn continuation(agent: &str, memory: &Memory) -> String {
    let Some(conversation) = &memory.conversation else {
        return "with --conversation ID the server keeps what is said, and a chat can be continued"
            .to_owned();
    };
    let mut line = format!(
        "continue: greenroom agents chat {} --conversation {}",
        quoted(agent),
        quoted(conversation)
    );
    if let Some(user) = &memory.user {
        line.push_str(&format!(" --user {}", quoted(user)));
    }
    line
}

/// Lines of stdin; an error is the last one.
pub(super) type Lines = mpsc::Receiver<io::Result<String>>;

/// Reads the lines of stdin on a thread, since a read of a terminal cannot be interrupted.
fn lines() -> Lines {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

/// Returns the text of a line; `None` at the end. Fails if the line cannot be read.
pub(super) fn text_of(line: Option<io::Result<String>>) -> Result<Option<String>, Failure> {
    line.transpose().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => Failure::usage("stdin: a line is not UTF-8"),
        _ => Failure::usage(format!("stdin: {error}")),
    })
}
