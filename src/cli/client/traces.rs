//! `greenroom traces`: what ran below what, and for how long.

use clap::ValueEnum;
use serde_json::Value;

use super::api::Call;
use super::complete;
use super::exit::{Exit, Failure};
use super::screen::Screen;
use super::session::{Session, limit_of};
use super::table::Table;
use super::text::{cell, duration, items, plain, text};

/// Largest page of the list.
const PAGE_MAX: usize = 100;

/// Actions on traces.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists traces, newest first.
    List {
        /// Only of workflows, or of agents.
        #[arg(long, value_enum, value_name = "KIND")]
        of: Option<Kind>,
        /// Only of the workflow or the agent with this id.
        #[arg(long, value_name = "ID")]
        entity: Option<String>,
        /// Only those that began at this time or later.
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// Most traces to list.
        #[arg(short = 'n', long, default_value_t = 20, value_parser = limit_of)]
        limit: usize,
    },
    /// Shows a trace as a tree of spans.
    Show {
        /// Id of the trace; the state of an execution has it.
        #[arg(add = complete::traces())]
        id: String,
    },
}

/// Kind of the root of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Kind {
    Workflow,
    Agent,
}

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    let (kind, entity, from, limit) = match action {
        Action::List { of, entity, from, limit } => (*of, entity, from, *limit),
        Action::Show { id } => {
            let trace = session.api.data(Call::get(&["observability", "traces", id])).await?;
            session.screen.value(&trace, |trace| lines_of(&session.screen, trace))?;
            return Ok(Exit::Ok);
        }
    };
    let kind = kind.map(|kind| match kind {
        Kind::Workflow => "workflow",
        Kind::Agent => "agent",
    });
    let given = [("entityType", kind), ("entityId", entity.as_deref()), ("from", from.as_deref())];
    let query: Vec<_> = given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let path = ["observability", "traces"];
    let traces = session.pages(&path, &query, "traces", (limit, PAGE_MAX), |_| true).await?;
    let cells = |it: &Value| {
        let (id, name) = (cell(&it["traceId"]), cell(&it["name"]));
        let more = if it["isTruncated"] == true { "+" } else { "" };
        let spans = format!("{}{more}", cell(&it["spanCount"]));
        [id, name, cell(&it["status"]["code"]), cell(&it["startTime"]), took(it), spans]
    };
    let head = ["TRACE", "NAME", "STATUS", "STARTED", "TOOK", "SPANS"];
    session.screen.list(&traces, head, cells, "no traces")?;
    Ok(Exit::Ok)
}

fn took(span: &Value) -> String {
    span["duration"].as_u64().map_or_else(|| "-".to_owned(), duration)
}

/// Shows the tree of a trace.
fn lines_of(screen: &Screen, trace: &Value) -> Vec<String> {
    let mut table = Table::new(["SPAN", "STATUS", "TOOK", "ABOUT"]);
    let mut open: Vec<(&Value, usize)> =
        items(trace, "tree").iter().rev().map(|it| (it, 0)).collect();
    while let Some((span, depth)) = open.pop() {
        let name = format!("{}{}", "  ".repeat(depth), plain(text(span, "name")));
        let status = text(&span["status"], "code");
        let about = plain(text(&span["status"], "message"));
        table.row([name, plain(status), took(span), about]);
        open.extend(items(span, "children").iter().rev().map(|child| (child, depth + 1)));
    }
    let mut lines = screen.rows(&table);
    if trace["isTruncated"] == true {
        lines.push("… more spans than a trace shows".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::client::screen::Form;

    #[test]
    fn spans_are_below_their_parents() {
        let span = |name: &str, children: Value| json!({ "name": name, "duration": 5, "status": { "code": "OK" }, "children": children });
        let tree = json!([span(
            "a",
            json!([span("b", json!([span("c", json!([]))])), span("d", json!([]))])
        )]);
        let lines = lines_of(&Screen::plain(Form::Table), &json!({ "tree": tree }));
        let expected = [
            "SPAN   STATUS  TOOK  ABOUT",
            "a      OK      5 ms",
            "  b    OK      5 ms",
            "    c  OK      5 ms",
            "  d    OK      5 ms",
        ];
        assert_eq!(lines, expected);
    }
}
