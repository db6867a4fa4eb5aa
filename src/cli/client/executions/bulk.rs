//! One command for many executions.

use std::io::{self, BufRead as _, IsTerminal as _};

use clap::ValueEnum;
use greenroom_actors::runtime::BULK_WORKFLOW;
use serde_json::{Value, json};

use super::Selection;
use crate::cli::client::api::Call;
use crate::cli::client::complete;
use crate::cli::client::exit::{Exit, Failure, quoted};
use crate::cli::client::follow::{Located, begun, follow, report};
use crate::cli::client::screen::{Form, note};
use crate::cli::client::session::{Session, attended, put_text};
use crate::cli::client::show::Show;
use crate::cli::client::text::{cell, items, plain, text};

const PATH: [&str; 3] = ["workflows", "executions", "bulk"];

/// Command that is given to each execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Command {
    /// Pauses running executions.
    Suspend,
    /// Lifts pauses. What a step waits for needs an answer and stays.
    Resume,
    /// Ends running and suspended executions for good.
    Cancel,
    /// Runs failed executions again, each from the step that failed or the first one undone.
    Replay,
}

/// Options of `bulk`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Bulk {
    /// Command for each execution.
    #[arg(value_enum)]
    command: Command,
    #[command(flatten)]
    selection: Selection,
    /// Id of an execution, in place of filters; repeat it for several.
    #[arg(long = "id", value_name = "ID", add = complete::executions())]
    ids: Vec<String>,
    /// Count what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before anything changes.
    #[arg(short, long)]
    yes: bool,
    /// Show the events of the operation.
    #[arg(short, long)]
    watch: bool,
    /// Print the id of the operation and leave it running.
    #[arg(long, conflicts_with = "watch")]
    detach: bool,
    /// Reason of suspensions and cancellations, which is recorded.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Replay with the workflows as they are configured now.
    #[arg(long)]
    current: bool,
    /// Replay also what was replayed before.
    #[arg(long)]
    again: bool,
    /// Id of the operation, which is an execution itself.
    #[arg(long, value_name = "ID")]
    execution_id: Option<String>,
    /// User who does it, if no token names one.
    #[arg(long = "by", value_name = "ID")]
    by: Option<String>,
    /// Takes effect once however often the command is repeated with this key.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Command {
    fn as_str(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Replay => "replay",
        }
    }
}

impl Bulk {
    fn query(&self) -> Result<Vec<(&'static str, &str)>, Failure> {
        let query = self.selection.query(true);
        if query.is_empty() == self.ids.is_empty() {
            let which =
                "name the executions either with filters, as --status running, or with --id";
            return Err(Failure::usage(which)
                .advise("--from 2000-01-01 selects all of them; --dry-run counts first"));
        }
        Ok(query)
    }

    fn body(&self) -> Value {
        let mut body = json!({ "action": self.command.as_str(), "options": {} });
        if !self.ids.is_empty() {
            body["executionIds"] = json!(self.ids);
        }
        put_text(&mut body, "reason", self.reason.as_ref());
        if self.current {
            body["definition"] = json!("current");
        }
        if self.again {
            body["again"] = json!(true);
        }
        put_text(&mut body["options"], "executionId", self.execution_id.as_ref());
        put_text(&mut body["options"], "userId", self.by.as_ref());
        body
    }
}

/// Runs an operation, and follows it to its end.
pub(super) async fn run(session: &Session, options: &Bulk) -> Result<Exit, Failure> {
    let (query, mut body) = (options.query()?, options.body());
    if options.dry_run || !options.yes {
        if !options.dry_run && !io::stdin().is_terminal() {
            let refusal = "many executions are changed only after a question or with --yes";
            return Err(Failure::usage(refusal).advise("--dry-run shows what would change"));
        }
        body["dryRun"] = json!(true);
        let preview = session.api.data(Call::post(&PATH, &body).query(&query).long()).await?;
        if options.dry_run {
            session.screen.value(&preview, |it| preview_of(options.command, it))?;
            return Ok(Exit::Ok);
        }
        preview_of(options.command, &preview).iter().for_each(|line| note(line));
        if preview["matched"] == 0 && preview["isComplete"] != false {
            let selected = ["skipped", "unknown"];
            let selected: u64 = selected.iter().filter_map(|key| preview[key].as_u64()).sum();
            return Err(match selected {
                0 => none_matched(),
                count => Failure::new(
                    Exit::Failed,
                    format!("none of the {count} selected executions would change"),
                ),
            });
        }
        if !is_confirmed(options.command).await? {
            return Err(Failure::new(Exit::Failed, "nothing was changed"));
        }
        body["dryRun"] = json!(false);
    }
    let mut headers = vec![("prefer", "respond-async")];
    headers.extend(options.idempotency_key.as_deref().map(|key| ("idempotency-key", key)));
    let call = Call::post(&PATH, &body).query(&query).headers(&headers);
    let at = begun(session, BULK_WORKFLOW, &session.api.any_reply(call).await?)?;
    if options.detach {
        let started = json!({ "executionId": at.id, "workflowId": at.workflow });
        session.screen.value(&started, |_| vec![plain(&at.id)])?;
        session.note(&format!("it runs: greenroom executions watch {}", quoted(&at.id)));
        return Ok(Exit::Ok);
    }
    let mut show = if options.watch { Show::on(session.screen) } else { Show::Nothing };
    let followed = follow(&session.api, &at, 0, &mut show);
    let followed = attended(followed, None, |exit| at.left(exit)).await;
    show.end();
    followed?;
    conclude(session, &at, options.watch).await
}

/// Shows the counts. An operation with failures is not done.
async fn conclude(session: &Session, at: &Located, is_watched: bool) -> Result<Exit, Failure> {
    let state = at.state(&session.api).await?;
    let with_json = !(is_watched && session.screen.form == Form::Jsonl);
    let exit = report(session, at, &state, with_json).await?;
    let count = |key: &str| state["result"][key].as_u64().unwrap_or(0);
    if count("matched") == 0 && count("failed") == 0 && exit == Exit::Ok {
        return Err(none_matched());
    }
    if count("done") == 0 && count("failed") == 0 && exit == Exit::Ok {
        let why = format!("none of the {} executions changed", count("matched"));
        return Err(Failure::new(Exit::Failed, why).advise(
            "all were skipped: they are in another state, compensate already (`inbox list --kind \
             compensation` shows what failed there), or wait for data, which `inbox answer` gives",
        ));
    }
    if count("compensating") > 0 {
        session.note(&cancelled(count("done"), count("compensating")));
    }
    match count("failed") {
        0 => Ok(exit),
        count => {
            let mut failure =
                Failure::new(Exit::Failed, format!("{count} of the executions did not change"));
            for it in items(&state["result"], "failures") {
                let line = format!("{}: {}", text(it, "executionId"), text(it, "message"));
                failure = failure.advise(line);
            }
            Err(failure)
        }
    }
}

/// Says that cancelled executions have not ended.
fn cancelled(done: u64, compensating: u64) -> String {
    format!(
        "{done} cancelled, of these {compensating} compensate first; those whose compensation fails \
         wait for a person: greenroom inbox list --kind compensation"
    )
}

fn none_matched() -> Failure {
    Failure::new(Exit::Failed, "the filters select no execution")
        .advise("`executions list` with the same filters shows what they select")
}

/// Shows for people what would change.
fn preview_of(command: Command, preview: &Value) -> Vec<String> {
    let count = |key: &str| preview[key].as_u64().unwrap_or(0);
    let at_least = if preview["isComplete"] == false { "at least " } else { "" };
    let done = match command {
        Command::Suspend => "suspended",
        Command::Resume => "resumed",
        Command::Cancel => "cancelled",
        Command::Replay => "replayed",
    };
    let mut lines = vec![format!("{at_least}{} would be {done}", count("matched"))];
    for (key, what) in [
        ("children", "that they have started would be cancelled with them"),
        ("skipped", "do not fit"),
        ("replayed", "of those were replayed before"),
        ("unknown", "ids name no execution"),
    ] {
        if count(key) > 0 {
            lines.push(format!("{} {what}", count(key)));
        }
    }
    for it in items(preview, "executions") {
        lines.push(format!("  {} {}", cell(&it["executionId"]), cell(&it["workflowId"])));
    }
    lines
}

/// Asks the person at the terminal.
async fn is_confirmed(command: Command) -> Result<bool, Failure> {
    note(&format!("{} them? y or n", command.as_str()));
    let reading = async {
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        Ok(line.await.map_err(io::Error::other)??)
    };
    let line = attended(reading, None, |exit| Failure::new(exit, "nothing was changed")).await?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_for_people() {
        let preview = json!({
            "matched": 2, "skipped": 1, "replayed": 0, "children": 3, "unknown": 0,
            "isComplete": false, "executions": [{ "executionId": "a", "workflowId": "w" }],
        });
        let expected = [
            "at least 2 would be cancelled",
            "3 that they have started would be cancelled with them",
            "1 do not fit",
            "  a w",
        ];
        assert_eq!(preview_of(Command::Cancel, &preview), expected);
    }

    #[test]
    fn what_compensates_may_wait_for_a_person() {
        let advice = "3 cancelled, of these 2 compensate first; those whose compensation fails wait for a \
                      person: greenroom inbox list --kind compensation";
        assert_eq!(cancelled(3, 2), advice);
    }
}
