//! `greenroom executions`: finding, following and moving executions.

mod explain;
mod find;
mod state;

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use greenroom_actors::ports::store::Status;
use serde_json::{Value, json};

use super::api::Call;
use super::complete;
use super::events::painted;
use super::exit::{Exit, Failure};
use super::follow::{Located, begun, conclude, follow, report};
use super::session::{Session, attended, duration_of, put_json, put_text};
use super::show::Show;
use super::text::{cell, plain, text};

/// Largest page of a list.
const PAGE_MAX: usize = 200;

/// Actions on executions.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists executions, newest first.
    List(Filters),
    /// Shows an execution with its steps.
    Show(Which),
    /// Shows its events from the first one on, until it ends or waits for a person.
    Watch {
        #[command(flatten)]
        which: Which,
        /// Stop watching after this time, as 30s or 5m, with exit code 124.
        #[arg(long, value_name = "DURATION", value_parser = duration_of)]
        timeout: Option<Duration>,
    },
    /// Pauses it: running steps finish, and none starts.
    Suspend(Reason),
    /// Continues it: lifts a pause, or answers a step that waits.
    Resume(Resume),
    /// Ends it for good.
    Cancel(Reason),
    /// Starts a new execution from the middle of this one, and waits until that ends or waits.
    Replay(Replay),
    /// Lists its recorded events.
    Events {
        #[command(flatten)]
        which: Which,
        /// Only those behind this number.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
        /// Most events to list.
        #[arg(short = 'n', long, default_value_t = 1_000)]
        limit: usize,
    },
    /// Shows what it waits for and who can continue it, or how it ended.
    Why(Which),
}

/// An execution.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Which {
    /// Id of the execution.
    #[arg(add = complete::executions())]
    id: String,
    /// Its workflow. Default: found by the id.
    #[arg(long, value_name = "ID", add = complete::workflows())]
    workflow: Option<String>,
}

/// Filters of the list.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Filters {
    /// Only of this workflow.
    #[arg(long, value_name = "ID", add = complete::workflows())]
    workflow: Option<String>,
    /// Only with this status.
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.map(Status::as_str)))]
    status: Option<String>,
    /// Only of this user.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Only those that began at this time or later, as 2026-11-27 or 2026-11-27T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only those that began at this time or before.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Only those whose failure has this text in its message.
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only replays of this execution.
    #[arg(long, value_name = "ID")]
    replay_of: Option<String>,
    /// Only those that a step of this execution started.
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Most executions to list.
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: usize,
}

/// Options of `suspend` and `cancel`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Reason {
    #[command(flatten)]
    which: Which,
    /// Reason, which is recorded.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// User who does it, if no token names one.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
}

/// Options of `resume`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Resume {
    #[command(flatten)]
    which: Which,
    /// Data for the step that waits: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON")]
    data: Option<String>,
    /// Id or path of the step, if several wait.
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// Id of the suspension; refused if it no longer waits.
    #[arg(long, value_name = "ID")]
    suspension: Option<String>,
    /// User who does it, if no token names one.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Takes effect once however often the command is repeated with this key.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Options of `replay`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Replay {
    #[command(flatten)]
    which: Which,
    /// Step to begin with. Default: the one that failed.
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// Run the workflow as it is configured now, not as the execution began with it.
    #[arg(long)]
    current: bool,
    /// Data that resumes the step: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON")]
    data: Option<String>,
    /// Input in place of the recorded one: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON")]
    input: Option<String>,
    /// Id of the new execution.
    #[arg(long, value_name = "ID")]
    execution_id: Option<String>,
    /// User who does it, if no token names one.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Takes effect once however often the command is repeated with this key.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    match action {
        Action::List(filters) => list(session, filters).await,
        Action::Show(which) => {
            let at = find::locate(&session.api, which).await?;
            let state = at.state(&session.api).await?;
            session.screen.value(&state, |it| state::lines_of(&session.screen, it))?;
            Ok(Exit::Ok)
        }
        Action::Watch { which, timeout } => watch(session, which, *timeout).await,
        Action::Suspend(reason) => {
            change(session, reason, "suspend", "pauses; running steps finish").await
        }
        Action::Cancel(reason) => change(session, reason, "cancel", "is cancelled").await,
        Action::Resume(options) => resume(session, options).await,
        Action::Replay(options) => replay(session, options).await,
        Action::Events { which, after, limit } => {
            explain::events(session, which, *after, *limit).await
        }
        Action::Why(which) => explain::why(session, which).await,
    }
}

async fn list(session: &Session, filters: &Filters) -> Result<Exit, Failure> {
    let path = match filters.workflow.as_deref() {
        Some(workflow) => vec!["workflows", workflow, "executions"],
        None => vec!["workflows", "executions"],
    };
    let given = [
        ("status", filters.status.as_deref()),
        ("userId", filters.user.as_deref()),
        ("from", filters.from.as_deref()),
        ("to", filters.to.as_deref()),
        ("error", filters.error.as_deref()),
        ("replayOf", filters.replay_of.as_deref()),
        ("parentExecutionId", filters.parent.as_deref()),
    ];
    let query: Vec<_> = given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let limits = (filters.limit, PAGE_MAX);
    let executions = session.pages(&path, &query, "executions", limits).await?;
    let cells = |it: &Value| {
        let about = match (text(&it["error"], "message"), text(&it["suspension"], "reason")) {
            ("", reason) => plain(reason),
            (error, _) => plain(error),
        };
        let (id, workflow) = (cell(&it["executionId"]), cell(&it["workflowId"]));
        [id, workflow, cell(&it["status"]), cell(&it["startAt"]), cell(&it["endAt"]), about]
    };
    let head = ["ID", "WORKFLOW", "STATUS", "STARTED", "ENDED", "ABOUT"];
    session.screen.list(&executions, head, cells, "no executions")?;
    Ok(Exit::Ok)
}

async fn watch(
    session: &Session,
    which: &Which,
    timeout: Option<Duration>,
) -> Result<Exit, Failure> {
    let look = async {
        let at = find::locate(&session.api, which).await?;
        let history = at.state(&session.api).await?["lastSequence"].as_u64().unwrap_or(0);
        Ok((at, history))
    };
    let unanswered = |exit| Failure::new(exit, "the server has not answered");
    let (at, history) = attended(look, timeout, unanswered).await?;
    let mut show = Show::on(session.screen);
    let following = follow(&session.api, &at, history, &mut show);
    let followed = attended(following, timeout, |exit| at.left(exit)).await;
    show.end();
    followed?;
    conclude(session, &at).await
}

async fn change(
    session: &Session,
    options: &Reason,
    command: &str,
    done: &str,
) -> Result<Exit, Failure> {
    let at = find::locate(&session.api, &options.which).await?;
    let mut body = json!({ "options": {} });
    put_text(&mut body, "reason", options.reason.as_ref());
    put_text(&mut body["options"], "userId", options.user.as_ref());
    let changed = session.api.data(Call::post(&at.path(command), &body)).await?;
    let Located { workflow, id } = &at;
    session.screen.value(&changed, |_| vec![plain(&format!("{workflow} {id} {done}"))])?;
    Ok(Exit::Ok)
}

async fn resume(session: &Session, options: &Resume) -> Result<Exit, Failure> {
    let mut body = json!({ "options": {} });
    put_json(&mut body, "resumeData", ("--data", options.data.as_ref()))?;
    put_text(&mut body["options"], "stepId", options.step.as_ref());
    put_text(&mut body["options"], "suspensionId", options.suspension.as_ref());
    put_text(&mut body["options"], "userId", options.user.as_ref());
    let at = find::locate(&session.api, &options.which).await?;
    let path = at.path("resume");
    let key = options.idempotency_key.as_deref();
    let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
    // answered when the execution ends or waits
    let call = Call::post(&path, &body).headers(&headers).long();
    let reply = attended(session.api.any_reply(call), None, |exit| at.left(exit)).await?;
    let at = begun(session, &at.workflow, &reply)?;
    let state = at.state(&session.api).await?;
    report(session, &at, &state, true)
}

async fn replay(session: &Session, options: &Replay) -> Result<Exit, Failure> {
    let mut body = json!({ "options": {} });
    put_json(&mut body, "resumeData", ("--data", options.data.as_ref()))?;
    put_json(&mut body, "input", ("--input", options.input.as_ref()))?;
    put_text(&mut body, "stepId", options.step.as_ref());
    if options.current {
        body["definition"] = json!("current");
    }
    put_text(&mut body["options"], "executionId", options.execution_id.as_ref());
    put_text(&mut body["options"], "userId", options.user.as_ref());
    let at = find::locate(&session.api, &options.which).await?;
    let path = at.path("replay");
    let mut headers = vec![("prefer", "respond-async")];
    headers.extend(options.idempotency_key.as_deref().map(|key| ("idempotency-key", key)));
    let reply = session.api.any_reply(Call::post(&path, &body).headers(&headers)).await?;
    let new = begun(session, &at.workflow, &reply)?;
    let mut nothing = Show::Nothing;
    let following = follow(&session.api, &new, 0, &mut nothing);
    attended(following, None, |exit| new.left(exit)).await?;
    let state = new.state(&session.api).await?;
    report(session, &new, &state, true)
}

/// Colours the status in a line of fields.
fn coloured(session: &super::screen::Screen, status: &Value) -> String {
    painted(session, status.as_str().unwrap_or_default(), &cell(status))
}
