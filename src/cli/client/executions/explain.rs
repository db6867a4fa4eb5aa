//! The events of an execution, and the reasons why it waits or has ended.

use serde_json::Value;

use super::Which;
use crate::cli::client::api::Call;
use crate::cli::client::events::{detail_of, painted, step_of};
use crate::cli::client::exit::{Exit, Failure, quoted};
use crate::cli::client::screen::Screen;
use crate::cli::client::session::Session;
use crate::cli::client::text::{cell, compact, items, plain, text};
use crate::cli::client::wait::asked;

/// Lists the recorded events.
pub(super) async fn events(
    session: &Session,
    which: &Which,
    after: u64,
    limit: usize,
) -> Result<Exit, Failure> {
    /// Largest page.
    const PAGE_MAX: usize = 1_000;
    let at = which.locate(&session.api).await?;
    let path = at.path("events");
    let mut found: Vec<Value> = Vec::new();
    let mut after = Some(after);
    while let Some(number) = after.filter(|_| found.len() < limit) {
        let (number, size) = (number.to_string(), (limit - found.len()).min(PAGE_MAX).to_string());
        let query = [("after", number.as_str()), ("limit", size.as_str())];
        let page = session.api.data(Call::get(&path).query(&query)).await?;
        found.extend_from_slice(items(&page, "events"));
        after = page["nextAfter"].as_u64();
    }
    let cells = |it: &Value| {
        let (number, time) = (cell(&it["sequence"]), cell(&it["timestamp"]));
        [number, time, cell(&it["type"]), plain(step_of(it)), detail_of(it)]
    };
    let head = ["NUMBER", "TIME", "EVENT", "STEP", "ABOUT"];
    session.screen.list(&found, head, cells, "no events")?;
    Ok(Exit::Ok)
}

/// Shows what an execution waits for, or how it ended.
pub(super) async fn why(session: &Session, which: &Which) -> Result<Exit, Failure> {
    let at = which.locate(&session.api).await?;
    let why = session.api.data(Call::get(&at.path("why"))).await?;
    session.screen.value(&why, |why| lines_of(&session.screen, why, &session.addressing))?;
    Ok(Exit::Ok)
}

fn lines_of(screen: &Screen, why: &Value, addressing: &str) -> Vec<String> {
    let (workflow, id) = (text(why, "workflowId"), text(why, "executionId"));
    let status = text(why, "status");
    let status = painted(screen, status, status);
    let mut lines = vec![format!("{} {} is {status}", plain(workflow), plain(id))];
    let compensates = &why["compensates"];
    if !compensates.is_null() {
        let (since, message) = (text(compensates, "at"), text(compensates, "message"));
        lines.push(plain(&format!("compensates since {since}: {message}")));
        details(compensates, &mut lines);
    }
    for awaited in items(why, "waitsFor") {
        lines.push(String::new());
        wait(awaited, addressing, &mut lines);
    }
    if !why["ended"].is_null() {
        end(&why["ended"], id, addressing, &mut lines);
    }
    lines
}

fn wait(awaited: &Value, addressing: &str, lines: &mut Vec<String>) {
    lines.push(plain(text(awaited, "message")));
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            lines.push(format!("  {name:7} {}", plain(value)));
        }
    };
    field("step", text(awaited, "path"));
    field("tool", text(awaited, "tool"));
    for call in items(awaited, "calls") {
        field("call", text(call, "message"));
    }
    field("since", text(awaited, "since"));
    field("until", text(awaited, "until"));
    field("error", text(awaited, "error"));
    if !awaited["payload"].is_null() {
        field("shows", &compact(&awaited["payload"]));
    }
    for ask in items(awaited, "asks") {
        field("asks", &asked(ask));
        let id = quoted(text(ask, "askId"));
        field("ask", &format!("greenroom{addressing} inbox show {id}"));
    }
    for mover in items(awaited, "movedBy") {
        field("needs", &format!("{}: {}", text(mover, "by"), text(mover, "how")));
        if let Some(command) = resume_of(mover, awaited) {
            field("", &format!("greenroom{addressing} executions resume {command}"));
        }
    }
}

/// Returns what follows `executions resume` for a resume; `None` for another mover, and for an ask,
/// which `inbox` answers.
fn resume_of(mover: &Value, awaited: &Value) -> Option<String> {
    let (id, step) = (text(mover, "executionId"), text(mover, "stepId"));
    if text(mover, "by") != "resume" || id.is_empty() || !items(awaited, "asks").is_empty() {
        return None;
    }
    let id = quoted(id);
    Some(if step.is_empty() { id } else { format!("{id} --step {} --data JSON", quoted(step)) })
}

fn end(ended: &Value, id: &str, addressing: &str, lines: &mut Vec<String>) {
    lines.push(plain(&format!("{}  {}", text(ended, "at"), text(ended, "message"))));
    details(ended, lines);
    let steps: Vec<_> = items(ended, "replayFrom").iter().map(cell).collect();
    if let Some(last) = steps.last() {
        let id = plain(&quoted(id));
        let skipped = items(ended, "skippedCompensations");
        let warning = if skipped.is_empty() { "" } else { " (repeats what was not undone)" };
        lines.push(format!("replay from {}{warning}:", steps.join(", ")));
        let last = quoted(last);
        lines.push(format!("  greenroom{addressing} executions replay {id} --step {last}"));
    }
}

/// Shows who cancelled an execution, the attempts of its failed step, and what was not undone.
fn details(ended: &Value, lines: &mut Vec<String>) {
    let by = text(&ended["cancelledBy"], "id");
    if !by.is_empty() {
        lines.push(plain(&format!("  cancelled by {by}")));
    }
    for error in items(ended, "errors") {
        let attempt = format!("attempt {} at {}", error["attempt"], text(error, "at"));
        lines.push(plain(&format!("  {attempt}: {}", text(error, "message"))));
    }
    for skip in items(ended, "skippedCompensations") {
        let by = text(&skip["by"], "id");
        let who = if by.is_empty() { String::new() } else { format!(" by {by}") };
        let when = text(skip, "at");
        let line = format!("  not undone: {}, skipped{who}  {when}", text(skip, "path"));
        lines.push(plain(line.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::client::screen::Form;

    #[test]
    fn reasons_are_for_people() {
        let why = json!({
            "executionId": "e-1", "workflowId": "w", "status": "suspended", "waitsFor": [{
                "message": "waits for a resume: yes?", "path": "a/b", "since": "T", "payload": 5,
                "asks": [{ "askId": "ask_1", "to": ["role:lead", "!self"] }],
                "movedBy": [{ "by": "resume", "how": "a resume with the requested data" }]
            }, {
                "message": "attempt 1 calls the tool own.stay", "path": "c", "since": "S",
                "tool": "own.stay"
            }, {
                "message": "attempt 1 runs an agent that calls the tool own.stay", "path": "d",
                "calls": [{ "message": "calls the tool own.stay" }], "since": "S"
            }]
        });
        let expected = [
            "w e-1 is suspended",
            "",
            "waits for a resume: yes?",
            "  step    a/b",
            "  since   T",
            "  shows   5",
            "  asks    role:lead, !self",
            "  ask     greenroom inbox show ask_1",
            "  needs   resume: a resume with the requested data",
            "",
            "attempt 1 calls the tool own.stay",
            "  step    c",
            "  tool    own.stay",
            "  since   S",
            "",
            "attempt 1 runs an agent that calls the tool own.stay",
            "  step    d",
            "  call    calls the tool own.stay",
            "  since   S",
        ];
        let screen = Screen::plain(Form::Table);
        let mover =
            |step: Option<&str>| json!({ "by": "resume", "executionId": "e 1", "stepId": step });
        for (mover, asks, expected) in [
            (mover(None), json!([]), Some("'e 1'")),
            (mover(Some("a/b")), json!([]), Some("'e 1' --step a/b --data JSON")),
            (mover(None), json!([{}]), None),
            (json!({ "by": "time" }), json!([]), None),
        ] {
            let command = resume_of(&mover, &json!({ "asks": asks }));
            assert_eq!(command.as_deref(), expected, "{mover}");
        }
        assert_eq!(lines_of(&screen, &why, ""), expected);
    }

    #[test]
    fn ends_are_for_people() {
        let screen = Screen::plain(Form::Table);
        let why = json!({
            "executionId": "e-1", "workflowId": "w", "status": "error", "waitsFor": [], "ended": {
                "at": "T", "message": "failed at b: no", "replayFrom": ["a", "b"],
                "errors": [{ "attempt": 1, "at": "S", "message": "no" }],
                "skippedCompensations": [
                    { "path": "a", "at": "R", "by": { "id": "eve" } }, { "path": "x/a" }
                ]
            }
        });
        let expected = [
            "w e-1 is error",
            "T  failed at b: no",
            "  attempt 1 at S: no",
            "  not undone: a, skipped by eve  R",
            "  not undone: x/a, skipped",
            "replay from a, b (repeats what was not undone):",
            "  greenroom executions replay e-1 --step b",
        ];
        assert_eq!(lines_of(&screen, &why, ""), expected);
        let why = json!({
            "executionId": "e-1", "workflowId": "w", "status": "running", "waitsFor": [],
            "compensates": {
                "at": "T", "message": "cancelled: no stock", "replayFrom": [],
                "cancelledBy": { "id": "eve" }
            }
        });
        let expected =
            ["w e-1 is running", "compensates since T: cancelled: no stock", "  cancelled by eve"];
        assert_eq!(lines_of(&screen, &why, ""), expected);
    }
}
