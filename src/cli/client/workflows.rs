//! `greenroom workflows`: what a server can run, and running it.

use serde_json::{Value, json};

use super::api::Call;
use super::complete;
use super::exit::{Exit, Failure, quoted};
use super::follow::{Following, Located, begun, follow_new, history_of};
use super::graph::{Format, draw};
use super::problems::all_of;
use super::screen::fields;
use super::session::{Session, attended, deadline_of, json_of, put_text};
use super::text::{cell, compact, items, plain, text};

/// Actions on workflows.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists the workflows.
    List,
    /// Shows a workflow with its steps and schemas.
    Show {
        /// Id of the workflow.
        #[arg(add = complete::workflows())]
        id: String,
    },
    /// Draws the steps of a workflow.
    Graph {
        /// Id of the workflow.
        #[arg(add = complete::workflows())]
        id: String,
        /// Form of the graph.
        #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
        format: Format,
    },
    /// Runs a workflow until it ends or waits for a person.
    Run(Run),
}

/// Options of `run`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Run {
    /// Id of the workflow.
    #[arg(add = complete::workflows())]
    id: String,
    /// Input: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON", default_value = "{}", add = complete::json_files())]
    input: String,
    #[command(flatten)]
    following: Following,
    /// Id of the new execution.
    #[arg(long, value_name = "ID")]
    execution_id: Option<String>,
    /// User of the execution, if no token names one.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Value of `context` in steps: a JSON object, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON", add = complete::json_files())]
    context: Option<String>,
    /// Runs once however often the command is repeated with this key.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    match action {
        Action::List => list(session).await,
        Action::Show { id } => {
            let workflow = session.api.data(Call::get(&["workflows", id])).await?;
            session.screen.value(&workflow, lines_of)?;
            Ok(Exit::Ok)
        }
        Action::Graph { id, format } => {
            let workflow = session.api.data(Call::get(&["workflows", id])).await?;
            session.screen.value(&workflow, |it| vec![draw(it, *format)])?;
            Ok(Exit::Ok)
        }
        Action::Run(options) => execute(session, options).await,
    }
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let workflows = session.api.data(Call::get(&["workflows"])).await?;
    let cells = |it: &Value| {
        let steps = cell(&it["stepsCount"]);
        [cell(&it["id"]), steps, cell(&it["status"]), cell(&it["purpose"])]
    };
    let workflows = workflows.as_array().map_or(&[][..], Vec::as_slice);
    let head = ["ID", "STEPS", "STATUS", "PURPOSE"];
    session.screen.list(workflows, head, cells, "the server has no workflows")?;
    Ok(Exit::Ok)
}

/// Shows a workflow for people.
fn lines_of(workflow: &Value) -> Vec<String> {
    let mut lines = fields(&[
        ("id", cell(&workflow["id"])),
        ("name", cell(&workflow["name"])),
        ("purpose", cell(&workflow["purpose"])),
        ("status", cell(&workflow["status"])),
        ("version", cell(&workflow["definitionHash"])),
        ("input", compact(&workflow["inputSchema"])),
    ]);
    lines.push("steps".to_owned());
    steps(items(workflow, "steps"), 1, &mut lines);
    lines
}

fn steps(all: &[Value], depth: usize, lines: &mut Vec<String>) {
    for step in all {
        let of = [text(step, "agentId"), text(step, "workflowId")].concat();
        let block = text(step, "block");
        let block = if block.is_empty() { String::new() } else { format!("{block}: ") };
        let kind = text(step, "type");
        let line = format!("{}{block}{}  {kind} {of}", "  ".repeat(depth), text(step, "id"));
        lines.push(plain(line.trim_end()));
        steps(items(step, "steps"), depth + 1, lines);
    }
}

async fn execute(session: &Session, options: &Run) -> Result<Exit, Failure> {
    let unanswered = |exit| {
        Failure::new(exit, "the server has not answered; the execution may have begun")
            .advise(format!("look: greenroom executions list --workflow {}", quoted(&options.id)))
    };
    // read before signals are caught: a read of stdin or of a pipe may wait for ever
    let body = body_of(options)?;
    let deadline = deadline_of(options.following.timeout);
    let at = attended(start(session, options, &body), deadline, unanswered).await?;
    let history = history_of(&session.api, &at, options.idempotency_key.as_deref()).await?;
    follow_new(session, (&at, history), &options.following, deadline).await
}

fn body_of(options: &Run) -> Result<Value, Failure> {
    let mut body = json!({ "input": json_of("--input", &options.input)?, "options": {} });
    if let Some(context) = &options.context {
        body["options"]["context"] = json_of("--context", context)?;
    }
    put_text(&mut body["options"], "executionId", options.execution_id.as_ref());
    put_text(&mut body["options"], "userId", options.user.as_ref());
    Ok(body)
}

/// Starts an execution. Returns as soon as it is recorded.
async fn start(session: &Session, options: &Run, body: &Value) -> Result<Located, Failure> {
    let mut headers = vec![("prefer", "respond-async")];
    headers.extend(options.idempotency_key.as_deref().map(|key| ("idempotency-key", key)));
    let path = ["workflows", options.id.as_str(), "execute"];
    let reply = session.api.any_reply(Call::post(&path, body).headers(&headers)).await?;
    match begun(session, &options.id, &reply) {
        Err(failure) if failure.is_refused_as("input_invalid") => {
            let workflow = session.api.data(Call::get(&["workflows", &options.id])).await?;
            Err(all_of(failure, &workflow["inputSchema"], &body["input"]))
        }
        begun => begun,
    }
}
