//! Answers of the person at the terminal to what an agent asks.

use serde_json::{Value, json};

use super::Memory;
use super::chat::{Lines, text_of};
use crate::cli::client::api::Call;
use crate::cli::client::exit::{Exit, Failure};
use crate::cli::client::screen::note;
use crate::cli::client::session::{Session, interrupt};
use crate::cli::client::text::{compact, plain, text};

/// Asks the person at the terminal. Returns false if there is no answer: Ctrl-C, or Ctrl-D.
pub(super) async fn decide(
    session: &Session,
    ask: &Value,
    memory: &Memory,
    lines: &mut Lines,
) -> Result<bool, Failure> {
    let is_approval = text(ask, "kind") == "approval";
    note(&format!("the agent waits: {}", text(ask, "reason")));
    if is_approval {
        note(&format!("  {} {}", text(ask, "toolName"), compact(&ask["input"])));
    } else if !ask["schema"].is_null() {
        note(&format!("  it takes {}", compact(&ask["schema"])));
    }
    let prompt = if is_approval { "approve? y, n, or n REASON: " } else { "answer: " };
    loop {
        session.screen.write(prompt)?;
        let line = tokio::select! {
            line = lines.recv() => line,
            _ = interrupt() => None,
        };
        let Some(line) = text_of(line)? else { return Ok(false) };
        let data = if is_approval { decision(&line) } else { answer(&line) };
        let Some(data) = data else { continue };
        let body = json!({ "data": data, "options": memory.caller() });
        let path = ["inbox", text(ask, "askId"), "answer"];
        match session.api.data(Call::post(&path, &body)).await {
            Ok(_) => return Ok(true),
            // the same person may write another answer
            Err(failure) if failure.exit == Exit::Usage => note_lines(&failure),
            // another one was first: the agent continues
            Err(failure) if failure.is_refused_as("ask_answered") => {
                note_lines(&failure);
                return Ok(true);
            }
            Err(failure) => return Err(failure),
        }
    }
}

fn note_lines(failure: &Failure) {
    failure.to_string().lines().for_each(|line| note(&plain(line)));
}

/// Reads the answer to an approval; `None` if it is none.
fn decision(line: &str) -> Option<Value> {
    let (word, reason) = line.trim().split_once(' ').unwrap_or_else(|| (line.trim(), ""));
    let approved = match word.to_ascii_lowercase().as_str() {
        "y" | "yes" | "approve" => true,
        "n" | "no" | "refuse" => false,
        _ => return None,
    };
    let mut data = json!({ "approved": approved });
    if !reason.trim().is_empty() {
        data["reason"] = json!(reason.trim());
    }
    Some(data)
}

/// Reads the answer to a question: JSON, or else a text.
fn answer(line: &str) -> Option<Value> {
    let line = line.trim();
    (!line.is_empty()).then(|| serde_json::from_str(line).unwrap_or_else(|_| json!(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_yes_or_no() {
        for (line, expected) in [
            ("y", Some(json!({ "approved": true }))),
            (" Yes\r", Some(json!({ "approved": true }))),
            ("n too much", Some(json!({ "approved": false, "reason": "too much" }))),
            ("", None),
            ("what?", None),
        ] {
            assert_eq!(decision(line), expected, "{line:?}");
        }
        assert_eq!(answer("{\"n\":1}"), Some(json!({ "n": 1 })));
        assert_eq!(answer("blue"), Some(json!("blue")));
        assert_eq!(answer(" "), None);
    }
}
