//! `greenroom executions`: finding, following and moving executions.

mod bulk;
mod explain;
mod list;
mod resume;
mod state;

use std::convert::Infallible;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::ports::store::Status;
use serde_json::{Value, json};

use super::api::{Api, Call};
use super::complete;
use super::events::painted;
use super::exit::{Exit, Failure};
use super::find::locate;
use super::follow::{Located, conclude, follow};
use super::session::{Session, attended, deadline_of, duration_of, limit_of, put_text};
use super::show::Show;
use super::text::{cell, plain};

/// Largest page of a list.
const PAGE_MAX: usize = 200;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Actions on executions.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists executions, newest first.
    List(list::List),
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
    Resume(resume::Resume),
    /// Ends it for good.
    Cancel(Reason),
    /// Starts a new execution from the middle of this one, and follows it until that ends or waits.
    Replay(resume::Replay),
    /// Gives one command to many executions, which filters select.
    Bulk(bulk::Bulk),
    /// Lists its recorded events.
    Events {
        #[command(flatten)]
        which: Which,
        /// Only those behind this number.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
        /// Most events to list.
        #[arg(short = 'n', long, default_value_t = 1_000, value_parser = limit_of)]
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

impl Which {
    /// Finds the execution. Fails with the nearest id if there is none.
    async fn locate(&self, api: &Api) -> Result<Located, Failure> {
        locate(api, &self.id, self.workflow.as_ref()).await
    }
}

/// Executions that filters select.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Selection {
    /// Only of this workflow.
    #[arg(long, value_name = "ID", add = complete::workflows())]
    workflow: Option<String>,
    /// Only with this status.
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.map(Status::as_str)))]
    status: Option<String>,
    /// Only of this user.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Only those that began at this time or later, as 2026-11-27T08:00:00Z, or since the begin of a
    /// day in UTC, as 2026-11-27, `today` or `yesterday`.
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    from: Option<String>,
    /// Only those that began at this time or before.
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    to: Option<String>,
    /// Only those that ended at this time or later.
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    ended_from: Option<String>,
    /// Only those that ended at this time or before.
    #[arg(long, value_name = "TIME", value_parser = time_of)]
    ended_to: Option<String>,
    /// Only those whose failure has this text in its message.
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only those that were started through this API: `openai`, `mcp`, or `mcp:NAME` of a face for MCP
    /// with a name.
    #[arg(long, value_name = "API")]
    via: Option<String>,
    /// Only replays of this execution.
    #[arg(long, value_name = "ID")]
    replay_of: Option<String>,
    /// Only those that a step of this execution started.
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
}

impl Selection {
    /// Returns the parameters of a query; the workflow may be a part of the path instead.
    fn query(&self, with_workflow: bool) -> Vec<(&'static str, &str)> {
        let given = [
            ("workflowId", self.workflow.as_deref().filter(|_| with_workflow)),
            ("status", self.status.as_deref()),
            ("userId", self.user.as_deref()),
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
            ("endedFrom", self.ended_from.as_deref()),
            ("endedTo", self.ended_to.as_deref()),
            ("error", self.error.as_deref()),
            ("via", self.via.as_deref()),
            ("replayOf", self.replay_of.as_deref()),
            ("parentExecutionId", self.parent.as_deref()),
        ];
        given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

/// Returns a time as the server takes it. Days are those of UTC.
fn time_of(written: &str) -> Result<String, Infallible> {
    Ok(on_day(written, SystemClock.now()))
}

fn on_day(written: &str, now: Timestamp) -> String {
    let days_ago = match written {
        "today" => 0,
        "yesterday" => 1,
        _ => return written.to_owned(),
    };
    let time = Timestamp(now.0 - days_ago * DAY_MS).to_iso();
    time.split('T').next().unwrap_or_default().to_owned()
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

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    match action {
        Action::List(options) => list::run(session, options).await,
        Action::Show(which) => {
            let at = which.locate(&session.api).await?;
            let state = at.state(&session.api).await?;
            session.screen.value(&state, |it| state::lines_of(&session.screen, it))?;
            Ok(Exit::Ok)
        }
        Action::Watch { which, timeout } => watch(session, which, *timeout).await,
        Action::Suspend(reason) => {
            change(session, reason, "suspend", |_| "pauses; running steps finish").await
        }
        Action::Cancel(reason) => change(session, reason, "cancel", cancelled).await,
        Action::Resume(options) => resume::resume(session, options).await,
        Action::Replay(options) => resume::replay(session, options).await,
        Action::Bulk(options) => bulk::run(session, options).await,
        Action::Events { which, after, limit } => {
            explain::events(session, which, *after, *limit).await
        }
        Action::Why(which) => explain::why(session, which).await,
    }
}

async fn watch(
    session: &Session,
    which: &Which,
    timeout: Option<Duration>,
) -> Result<Exit, Failure> {
    let look = async {
        let at = which.locate(&session.api).await?;
        let history = at.state(&session.api).await?["lastSequence"].as_u64().unwrap_or(0);
        Ok((at, history))
    };
    let unanswered = |exit| Failure::new(exit, "the server has not answered");
    let deadline = deadline_of(timeout);
    let (at, history) = attended(look, deadline, unanswered).await?;
    let mut show = Show::on(session.screen);
    let following = follow(&session.api, &at, history, &mut show);
    let followed = attended(following, deadline, |exit| at.left(exit)).await;
    show.end();
    followed?;
    conclude(session, &at).await
}

async fn change(
    session: &Session,
    options: &Reason,
    command: &str,
    done: impl Fn(&Value) -> &'static str,
) -> Result<Exit, Failure> {
    let at = options.which.locate(&session.api).await?;
    let mut body = json!({ "options": {} });
    put_text(&mut body, "reason", options.reason.as_ref());
    put_text(&mut body["options"], "userId", options.user.as_ref());
    let changed = session.api.data(Call::post(&at.path(command), &body)).await?;
    let Located { workflow, id } = &at;
    let line = |changed: &Value| vec![plain(&format!("{workflow} {id} {}", done(changed)))];
    session.screen.value(&changed, line)?;
    Ok(Exit::Ok)
}

/// Says what a cancellation did.
fn cancelled(changed: &Value) -> &'static str {
    match changed["status"].as_str() {
        Some("running") => "undoes its completed steps, and is cancelled afterwards",
        _ => "is cancelled",
    }
}

/// Colours the status in a line of fields.
fn coloured(session: &super::screen::Screen, status: &Value) -> String {
    painted(session, status.as_str().unwrap_or_default(), &cell(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancellation_that_compensates_is_not_done() {
        assert_eq!(cancelled(&json!({ "status": "cancelled" })), "is cancelled");
        let undone = cancelled(&json!({ "status": "running" }));
        assert_eq!(undone, "undoes its completed steps, and is cancelled afterwards");
    }

    #[test]
    fn days_by_name_are_days_in_utc() {
        let now = Timestamp::from_iso("2026-03-01T00:30:00Z").unwrap();
        for (written, expected) in [
            ("today", "2026-03-01"),
            ("yesterday", "2026-02-28"),
            ("2026-11-27T08:00:00Z", "2026-11-27T08:00:00Z"),
            ("tomorrow", "tomorrow"),
        ] {
            assert_eq!(on_day(written, now), expected);
        }
    }
}
