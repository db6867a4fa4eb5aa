//! `greenroom executions list`.

use serde_json::Value;

use super::{PAGE_MAX, Selection};
use crate::cli::client::api::Call;
use crate::cli::client::exit::{Exit, Failure};
use crate::cli::client::screen::note;
use crate::cli::client::session::{Session, limit_of};
use crate::cli::client::text::{cell, items, plain, text};

/// Options of the list.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    selection: Selection,
    /// Only those that no step of another execution has started.
    #[arg(long, conflicts_with = "parent")]
    topmost: bool,
    /// Only those that run and can never continue, with the reason. Takes no other filters.
    #[arg(long, conflicts_with_all = ["Selection", "topmost"])]
    stuck: bool,
    /// Most executions to list.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = limit_of)]
    limit: usize,
}

/// Lists executions.
pub(super) async fn run(session: &Session, options: &List) -> Result<Exit, Failure> {
    if options.stuck {
        return stuck(session, options.limit).await;
    }
    let path = match options.selection.workflow.as_deref() {
        Some(workflow) => vec!["workflows", workflow, "executions"],
        None => vec!["workflows", "executions"],
    };
    let query = options.selection.query(false);
    let limits = (options.limit, PAGE_MAX);
    let is_sought = |it: &Value| !options.topmost || it["parentExecutionId"].is_null();
    let executions = session.pages(&path, &query, "executions", limits, is_sought).await?;
    let cells = |it: &Value| {
        let about = about(it);
        let (id, workflow) = (cell(&it["executionId"]), cell(&it["workflowId"]));
        [id, workflow, cell(&it["status"]), cell(&it["startAt"]), cell(&it["endAt"]), about]
    };
    let head = ["ID", "WORKFLOW", "STATUS", "STARTED", "ENDED", "ABOUT"];
    session.screen.list(&executions, head, cells, "no executions")?;
    Ok(Exit::Ok)
}

/// Lists what the server has found to be stuck.
async fn stuck(session: &Session, limit: usize) -> Result<Exit, Failure> {
    let status = session.api.data(Call::get(&["observability", "status"])).await?;
    let named = items(&status["stuck"], "executions");
    let shown = &named[..named.len().min(limit)];
    let cells = |it: &Value| [&it["executionId"], &it["workflowId"], &it["cause"]].map(cell);
    session.screen.list(shown, ["ID", "WORKFLOW", "CAUSE"], cells, "no executions")?;
    if let Some(line) = unnamed(&status["stuck"], shown.len()) {
        note(&line);
    }
    Ok(Exit::Ok)
}

/// Returns what is to be said about stuck executions that are not shown.
fn unnamed(stuck: &Value, shown: usize) -> Option<String> {
    let count = stuck["count"].as_u64().and_then(|count| usize::try_from(count).ok())?;
    let named = items(stuck, "executions").len();
    match count {
        _ if count <= shown => None,
        _ if named == 0 => {
            Some(format!("{count} are stuck; only callers who see all executions learn which"))
        }
        _ if shown < named => {
            Some(format!("there are more than these {shown}: --limit N shows more"))
        }
        _ => Some(format!("{count} are stuck; the server names the first {named}")),
    }
}

/// Returns what is remarkable about an execution in a list: why it failed or waits, else when it has
/// last moved or where it comes from.
fn about(execution: &Value) -> String {
    let reasons = [(&execution["error"], "message"), (&execution["suspension"], "reason")];
    let reason = reasons.into_iter().map(|(of, key)| text(of, key)).find(|it| !it.is_empty());
    let omitted = execution["suspensionsOmitted"].as_u64().unwrap_or(0);
    let others = items(execution, "suspensions").len().saturating_sub(1) as u64 + omitted;
    plain(&match (reason, &execution["replayedFrom"]) {
        (Some(reason), _) if others > 0 => format!("{reason} +{others}"),
        (Some(reason), _) => reason.to_owned(),
        (None, _) if text(execution, "status") == "running" => {
            format!("event {} at {}", execution["lastSequence"], text(execution, "updatedAt"))
        }
        (None, Value::Object(from)) => {
            format!("replay of {}", from["executionId"].as_str().unwrap_or_default())
        }
        (None, _) => match text(execution, "parentExecutionId") {
            "" => String::new(),
            parent => format!("part of {parent}"),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_execution_has_something_about_it() {
        for (execution, expected) in [
            (json!({ "status": "error", "error": { "message": "no\u{1b}" } }), "no\\u{1b}"),
            (json!({ "status": "suspended", "suspension": { "reason": "yes?" } }), "yes?"),
            (
                json!({ "suspension": { "reason": "yes?" }, "suspensions": [{}, {}, {}],
                        "suspensionsOmitted": 27 }),
                "yes? +29",
            ),
            (json!({ "status": "running", "lastSequence": 4, "updatedAt": "T" }), "event 4 at T"),
            (
                json!({ "status": "completed", "replayedFrom": { "executionId": "e" } }),
                "replay of e",
            ),
            (json!({ "status": "completed", "parentExecutionId": "p" }), "part of p"),
            (json!({ "status": "completed", "parentExecutionId": null }), ""),
        ] {
            assert_eq!(about(&execution), expected);
        }
    }

    #[test]
    fn stuck_executions_that_are_not_shown_are_mentioned() {
        let named = |count: usize| json!({ "executions": vec![json!({}); count], "count": 30 });
        for (stuck, shown, expected) in [
            (json!({ "executions": [{}], "count": 1 }), 1, None),
            (named(0), 0, Some("30 are stuck; only callers who see all executions learn which")),
            (named(20), 5, Some("there are more than these 5: --limit N shows more")),
            (named(20), 20, Some("30 are stuck; the server names the first 20")),
        ] {
            assert_eq!(unnamed(&stuck, shown).as_deref(), expected);
        }
    }
}
