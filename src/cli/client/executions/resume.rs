//! Continuing an execution, and running one again from its middle.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Which, find};
use crate::cli::client::api::Call;
use crate::cli::client::complete;
use crate::cli::client::exit::{Exit, Failure, quoted};
use crate::cli::client::follow::{begun, conclude, follow_from, report};
use crate::cli::client::session::{Session, attended, duration_of, put_json, put_text};
use crate::cli::client::show::Show;

/// Options of `resume`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Resume {
    #[command(flatten)]
    which: Which,
    /// Data for the step that waits: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON", add = complete::json_files())]
    data: Option<String>,
    /// Id or path of the step, if several wait.
    #[arg(long, value_name = "STEP", add = complete::steps())]
    step: Option<String>,
    /// Id of the suspension; refused if it no longer waits.
    #[arg(long, value_name = "ID")]
    suspension: Option<String>,
    /// Show its events while it continues.
    #[arg(short, long)]
    watch: bool,
    /// Leave it running after this time, as 30s or 5m, with exit code 124.
    #[arg(long, value_name = "DURATION", value_parser = duration_of)]
    timeout: Option<Duration>,
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
    #[arg(long, value_name = "STEP", add = complete::steps())]
    step: Option<String>,
    /// Run the workflow as it is configured now, not as the execution began with it.
    #[arg(long)]
    current: bool,
    /// Data that resumes the step: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON", add = complete::json_files())]
    data: Option<String>,
    /// Input in place of the recorded one: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON", add = complete::json_files())]
    input: Option<String>,
    /// Leave it running after this time, as 30s or 5m, with exit code 124.
    #[arg(long, value_name = "DURATION", value_parser = duration_of)]
    timeout: Option<Duration>,
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

/// Continues an execution, and follows it until it ends or waits again.
pub(super) async fn resume(session: &Session, options: &Resume) -> Result<Exit, Failure> {
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
    let resuming = async {
        let reply = session.api.any_reply(call).await?;
        begun(session, &at.workflow, &reply)
    };
    if !options.watch {
        let at = attended(resuming, options.timeout, |exit| at.left(exit)).await?;
        let state = at.state(&session.api).await?;
        return report(session, &at, &state, true).await;
    }
    let before = at.state(&session.api).await?["lastSequence"].as_u64().unwrap_or(0);
    let mut show = Show::on(session.screen);
    let watching = async {
        let following = follow_from(&session.api, &at, before, &mut show);
        // a refused resume ends the watching; an accepted one is answered at the end
        tokio::try_join!(resuming, following)
    };
    let watched = attended(watching, options.timeout, |exit| at.left(exit)).await;
    show.end();
    watched?;
    conclude(session, &at).await
}

/// Starts an execution from the middle of another one, and waits until it ends or waits.
pub(super) async fn replay(session: &Session, options: &Replay) -> Result<Exit, Failure> {
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
    let key = options.idempotency_key.as_deref();
    let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
    // answered when the new execution ends or waits
    let call = Call::post(&path, &body).headers(&headers).long();
    let left = |exit| {
        let id = quoted(&at.id);
        Failure::new(exit, "the new execution continues at the server, if it has begun")
            .advise(format!("look: greenroom executions list --replay-of {id}"))
    };
    let reply = attended(session.api.any_reply(call), options.timeout, left).await?;
    let new = begun(session, &at.workflow, &reply)?;
    let state: Value = new.state(&session.api).await?;
    report(session, &new, &state, true).await
}
