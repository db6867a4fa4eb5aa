//! The state of an execution, for people.

use serde_json::Value;

use super::coloured;
use crate::cli::client::events::ms_between;
use crate::cli::client::screen::{Screen, fields};
use crate::cli::client::table::Table;
use crate::cli::client::text::{cell, compact, duration, items, plain, text};

/// Shows a state with its steps.
pub(super) fn lines_of(screen: &Screen, state: &Value) -> Vec<String> {
    let error = &state["error"];
    let waits = items(state, "suspensions");
    let waits: Vec<_> = waits.iter().map(|it| plain(text(it, "reason"))).collect();
    let mut lines = fields(&[
        ("execution", cell(&state["executionId"])),
        ("workflow", cell(&state["workflowId"])),
        ("status", coloured(screen, &state["status"])),
        ("waits for", waits.join("; ")),
        ("error", plain(text(error, "message"))),
        ("cancelled", cell(&state["reason"])),
        ("by", cell(&state["cancelledBy"]["id"])),
        ("undone", undone(&state["compensation"])),
        ("started", cell(&state["startAt"])),
        ("ended", cell(&state["endAt"])),
        ("user", cell(&state["userId"])),
        ("parent", cell(&state["parentExecutionId"])),
        ("replay of", cell(&state["replayedFrom"]["executionId"])),
        ("trace", cell(&state["traceId"])),
        ("input", compact(&state["input"])),
        ("result", absent_or_compact(&state["result"])),
    ]);
    lines.push(String::new());
    lines.extend(screen.rows(&steps(items(state, "steps"))));
    lines
}

/// Returns how many completed steps were compensated, skipped and are left; empty unless it compensates.
fn undone(compensation: &Value) -> String {
    let count = |key: &str| compensation[key].as_u64().unwrap_or(0);
    if compensation.is_null() {
        return String::new();
    }
    let (done, left) = (count("completed"), count("remaining"));
    match count("skipped") {
        0 => format!("{done}, {left} left"),
        skipped => format!("{done}, {skipped} skipped, {left} left"),
    }
}

fn absent_or_compact(value: &Value) -> String {
    if value.is_null() { String::new() } else { compact(value) }
}

fn steps(steps: &[Value]) -> Table<5> {
    let mut table = Table::new(["STEP", "STATUS", "ATTEMPTS", "TOOK", "OUTPUT"]);
    for step in steps {
        let took = ms_between(text(step, "startedAt"), text(step, "endedAt"));
        let output = match text(step, "error") {
            "" => absent_or_compact(&step["output"]),
            error => plain(error),
        };
        table.row([
            cell(&step["path"]),
            cell(&step["status"]),
            cell(&step["attempts"]),
            took.map_or_else(|| "-".to_owned(), duration),
            output,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::client::screen::Form;

    #[test]
    fn a_cancelled_execution_says_why_and_who_did_it() {
        let state = json!({
            "executionId": "e", "workflowId": "w", "status": "cancelled", "reason": "late\u{1b}",
            "cancelledBy": { "id": "eve", "verified": false }, "steps": [],
        });
        let lines = lines_of(&Screen::plain(Form::Table), &state);
        let after: Vec<_> = lines.iter().skip(3).take(2).collect();
        assert_eq!(after, ["cancelled  late\\u{1b}", "by         eve"]);
    }
}
