//! The events of an execution, and the reasons why it waits or has ended.

use serde_json::Value;

use super::Which;
use crate::cli::client::api::Call;
use crate::cli::client::events::{detail_of, painted, step_of};
use crate::cli::client::exit::{Exit, Failure, quoted};
use crate::cli::client::follow::Located;
use crate::cli::client::screen::{Form, Screen};
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

/// Children below each other that are followed, from the execution that is asked about.
const DEPTH_MAX: usize = 8;

/// Children of the execution itself that are followed.
const CHILDREN_MAX: usize = 10;

/// Shows what an execution waits for, or how it ended. For people also what its children wait for.
pub(super) async fn why(session: &Session, which: &Which) -> Result<Exit, Failure> {
    let at = which.locate(&session.api).await?;
    let why = session.api.data(Call::get(&at.path("why"))).await?;
    let mut below = Vec::new();
    if session.screen.form == Form::Table {
        let children = items(&why, "waitsFor").iter().map(|awaited| &awaited["child"]);
        for child in children.filter(|child| !child.is_null()).take(CHILDREN_MAX) {
            below.push((text(child, "executionId").to_owned(), follow(session, child).await));
        }
    }
    let (screen, addressing) = (&session.screen, &session.addressing);
    screen.value(&why, |why| lines_of(screen, why, addressing, &below))?;
    Ok(Exit::Ok)
}

/// Returns what a child waits for, and what the child that it waits for does: a line for each. What
/// cannot be asked, or was never started, ends the chain.
async fn follow(session: &Session, child: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut next = Some(child.clone());
    while let Some(child) =
        next.filter(|child| !child["status"].is_null() && lines.len() < DEPTH_MAX)
    {
        let (workflow, id) = (text(&child, "workflowId"), text(&child, "executionId"));
        let at = Located { workflow: workflow.to_owned(), id: id.to_owned() };
        let Ok(why) = session.api.data(Call::get(&at.path("why"))).await else { break };
        lines.push(of_child(&why));
        let mut children = items(&why, "waitsFor").iter().map(|awaited| awaited["child"].clone());
        next = children.find(|child| !child.is_null());
    }
    lines
}

/// Returns what an execution waits for, or how it ended, in one line: the first wait for a child, which
/// is followed, or else the first one.
fn of_child(why: &Value) -> String {
    let waits = items(why, "waitsFor");
    let first = waits.iter().find(|it| !it["child"].is_null()).or_else(|| waits.first());
    let (message, path) = match first {
        Some(awaited) => (text(awaited, "message"), text(awaited, "path")),
        None => (text(&why["ended"], "message"), ""),
    };
    let at = if path.is_empty() { String::new() } else { format!(" at {path}") };
    let more = match waits.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!("{} {}{at}: {message}{more}", text(why, "workflowId"), text(why, "executionId"))
}

/// Lines about children, by their ids: what each waits for, and one for each child below.
type Below = [(String, Vec<String>)];

fn lines_of(screen: &Screen, why: &Value, addressing: &str, below: &Below) -> Vec<String> {
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
        let child = text(&awaited["child"], "executionId");
        let of_child = below.iter().find(|(id, _)| id == child);
        wait(awaited, addressing, of_child.map_or(&[], |(_, chain)| chain), &mut lines);
    }
    if !why["ended"].is_null() {
        end(&why["ended"], id, addressing, &mut lines);
    }
    lines
}

fn wait(awaited: &Value, addressing: &str, below: &[String], lines: &mut Vec<String>) {
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
    for child in below {
        field("child", child);
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
/// which `inbox` answers. The end of a pause takes no data.
fn resume_of(mover: &Value, awaited: &Value) -> Option<String> {
    let (id, step) = (text(mover, "executionId"), text(mover, "stepId"));
    if text(mover, "by") != "resume" || id.is_empty() || !items(awaited, "asks").is_empty() {
        return None;
    }
    let child = &awaited["child"];
    let is_of_child = text(child, "executionId") == id;
    let is_pause = match is_of_child {
        true => child["suspension"]["pause"] == true,
        false => text(awaited, "kind") == "hold",
    };
    let step = if step.is_empty() { String::new() } else { format!(" --step {}", quoted(step)) };
    let data = if is_pause { "" } else { " --data JSON" };
    Some(format!("{}{step}{data}", quoted(id)))
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
        let child = |pause: bool| json!({ "executionId": "e 1", "suspension": { "pause": pause } });
        for (mover, awaited, expected) in [
            (mover(None), json!({ "kind": "hold" }), Some("'e 1'")),
            (mover(Some("a/b")), json!({}), Some("'e 1' --step a/b --data JSON")),
            (
                mover(None),
                json!({ "kind": "child", "child": child(false) }),
                Some("'e 1' --data JSON"),
            ),
            (mover(None), json!({ "kind": "child", "child": child(true) }), Some("'e 1'")),
            (mover(None), json!({ "asks": [{}] }), None),
            (json!({ "by": "time" }), json!({}), None),
        ] {
            let command = resume_of(&mover, &awaited);
            assert_eq!(command.as_deref(), expected, "{mover}");
        }
        assert_eq!(lines_of(&screen, &why, "", &[]), expected);
    }

    #[test]
    fn children_are_explained_in_a_line_each() {
        let child =
            json!({ "message": "execution c of v is running", "child": { "executionId": "c" } });
        let asks = json!({ "message": "waits for a resume: yes?", "path": "a" });
        let of = |waits: Value, ended: Value| {
            of_child(&json!({
                "workflowId": "v", "executionId": "c", "waitsFor": waits, "ended": ended
            }))
        };
        assert_eq!(of(json!([asks]), Value::Null), "v c at a: waits for a resume: yes?");
        let first = "v c: execution c of v is running (and 1 more)";
        assert_eq!(of(json!([asks, child]), Value::Null), first, "the one that is followed");
        assert_eq!(of(json!([]), json!({ "message": "failed" })), "v c: failed");
        let why = json!({
            "executionId": "e", "workflowId": "w", "status": "running", "waitsFor": [child]
        });
        let below = [("c".to_owned(), vec!["v c: one".to_owned(), "u d: two".to_owned()])];
        let lines = lines_of(&Screen::plain(Form::Table), &why, "", &below);
        assert_eq!(
            lines[2..],
            ["execution c of v is running", "  child   v c: one", "  child   u d: two"]
        );
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
        assert_eq!(lines_of(&screen, &why, "", &[]), expected);
        let why = json!({
            "executionId": "e-1", "workflowId": "w", "status": "running", "waitsFor": [],
            "compensates": {
                "at": "T", "message": "cancelled: no stock", "replayFrom": [],
                "cancelledBy": { "id": "eve" }
            }
        });
        let expected =
            ["w e-1 is running", "compensates since T: cancelled: no stock", "  cancelled by eve"];
        assert_eq!(lines_of(&screen, &why, "", &[]), expected);
    }
}
