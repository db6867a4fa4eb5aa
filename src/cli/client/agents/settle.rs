//! Generations that waited for people: their outcome, read at the server.

use std::time::Duration;

use serde_json::Value;

use super::generation::{Outcome, stop, waiting};
use crate::cli::client::api::{Api, Call};
use crate::cli::client::attempts::Attempts;
use crate::cli::client::exit::{Exit, Failure};
use crate::cli::client::screen::Form;
use crate::cli::client::session::{Session, attended, deadline_of};
use crate::cli::client::text::{items, plain_lines, pretty, text};

/// Pause between two looks; it doubles up to the longest one.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Follows a generation until it has ended or waits for a person, and shows its output.
pub(super) async fn watch(
    session: &Session,
    agent: &str,
    id: &str,
    timeout: Option<Duration>,
) -> Result<Exit, Failure> {
    let left = |exit| Failure::new(exit, "the generation continues at the server");
    let entry = attended(settled(&session.api, agent, id), deadline_of(timeout), left).await?;
    session.screen.value(&entry, shown)?;
    match outcome_of(&entry, id)? {
        Outcome::Waiting { asks, .. } => Err(waiting(agent, id, &asks)),
        Outcome::Answered { .. } | Outcome::Stopped(_) => Ok(Exit::Ok),
    }
}

/// Follows a generation whose asks were just answered, and prints what it says. Ctrl-C cancels it.
pub(super) async fn rest(session: &Session, agent: &str, id: &str) -> Result<Outcome, Failure> {
    let left = |exit| Failure::new(exit, "");
    let entry = match attended(settled(&session.api, agent, id), None, left).await {
        Err(failure) if failure.exit.is_signal() => {
            stop(session, agent, id).await?;
            return Ok(Outcome::Stopped(failure.exit));
        }
        settled => settled?,
    };
    if session.screen.form == Form::Table {
        shown(&entry).iter().try_for_each(|line| session.screen.line(line))?;
    }
    outcome_of(&entry, id)
}

/// Reads a generation until it has ended or waits for a person.
async fn settled(api: &Api, agent: &str, id: &str) -> Result<Value, Failure> {
    let path = ["agents", agent, "generations", id];
    let (mut pause, mut attempts) = (PAUSE, Attempts::default());
    loop {
        match api.data(Call::get(&path)).await {
            Ok(entry) if is_settled(&entry) => return Ok(entry),
            Ok(_) => {
                attempts.begin_anew();
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Err(failure) => attempts.pause(Err(failure)).await?,
        }
    }
}

/// Returns false while a generation works, or is about to continue after an answer.
fn is_settled(entry: &Value) -> bool {
    match text(entry, "status") {
        "working" => false,
        "suspended" => !items(entry, "asks").is_empty(),
        _ => true,
    }
}

fn outcome_of(entry: &Value, id: &str) -> Result<Outcome, Failure> {
    match text(entry, "status") {
        "suspended" => {
            let asks = items(entry, "asks").to_vec();
            Ok(Outcome::Waiting { generation: id.to_owned(), asks })
        }
        "cancelled" => Err(Failure::new(Exit::Failed, "the answer was cancelled")),
        "error" => Err(Failure::new(Exit::Failed, text(entry, "error"))),
        _ => Ok(Outcome::Answered { text: text(entry, "output").to_owned() }),
    }
}

/// Shows the output for people: a text, or an object.
fn shown(entry: &Value) -> Vec<String> {
    match &entry["output"] {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![plain_lines(text)],
        object => vec![pretty(object)],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answered_ask_is_no_reason_to_end() {
        let ask = json!([{ "askId": "ask_1" }]);
        for (entry, expected) in [
            (json!({ "status": "working" }), false),
            (json!({ "status": "suspended" }), false),
            (json!({ "status": "suspended", "asks": ask }), true),
            (json!({ "status": "completed", "output": "done" }), true),
            (json!({ "status": "error", "error": "no" }), true),
        ] {
            assert_eq!(is_settled(&entry), expected, "{entry}");
        }
    }
}
