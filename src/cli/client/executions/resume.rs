//! Continuing an execution, and running one again from its middle.

use std::time::Duration;

use serde_json::{Value, json};

use super::Which;
use crate::cli::client::api::Call;
use crate::cli::client::complete;
use crate::cli::client::exit::{Exit, Failure, quoted};
use crate::cli::client::follow::{
    Following, Located, begun, conclude, follow_new, follow_resumed, history_of, report,
};
use crate::cli::client::problems::all_of;
use crate::cli::client::screen::note;
use crate::cli::client::session::{
    Session, attended, deadline_of, duration_of, put_json, put_text,
};
use crate::cli::client::show::Show;
use crate::cli::client::text::{items, plain, text};

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
    /// Step to begin with. Default: the one that failed, or the first one that was compensated.
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
    #[command(flatten)]
    following: Following,
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
    let at = options.which.locate(&session.api).await?;
    let path = at.path("resume");
    let key = options.idempotency_key.as_deref();
    let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
    // answered when the execution ends or waits
    let call = Call::post(&path, &body).headers(&headers).long();
    let resuming = async {
        let reply = session.api.any_reply(call).await?;
        match begun(session, &at.workflow, &reply) {
            Err(failure) if failure.is_refused_as("resume_data_invalid") => {
                let step = options.step.as_deref();
                Err(Box::pin(all_problems(session, &at, step, failure, &body)).await)
            }
            begun => begun,
        }
    };
    let deadline = deadline_of(options.timeout);
    if !options.watch {
        let at = attended(resuming, deadline, |exit| at.left(exit)).await?;
        let state = at.state(&session.api).await?;
        return report(session, &at, &state, true).await;
    }
    let before = at.state(&session.api).await?["lastSequence"].as_u64().unwrap_or(0);
    let mut show = Show::on(session.screen);
    // a request and a stream at once are a large future
    let watching = Box::pin(follow_resumed(&session.api, &at, before, resuming, &mut show));
    let watched = attended(watching, deadline, |exit| at.left(exit)).await;
    show.end();
    watched?;
    conclude(session, &at).await
}

/// Adds to a refusal of data what else does not fit the schema of the step.
async fn all_problems(
    session: &Session,
    at: &Located,
    step: Option<&str>,
    failure: Failure,
    body: &Value,
) -> Failure {
    // without it, the refusal still names the first problem
    let why = session.api.data(Call::get(&at.path("why"))).await.unwrap_or_default();
    match schema_of(&why, step, &body["options"]["suspensionId"]) {
        Some(schema) => all_of(failure, schema, &body["resumeData"]),
        None => failure,
    }
}

/// Returns the schema of the only step that waits and fits; `None` if there is no such one.
fn schema_of<'a>(why: &'a Value, step: Option<&str>, suspension: &Value) -> Option<&'a Value> {
    let mut fitting = items(why, "waitsFor").iter().filter(|wait| {
        let is_step =
            step.is_none_or(|step| [text(wait, "stepId"), text(wait, "path")].contains(&step));
        let is_suspension = suspension.is_null() || wait["suspensionId"] == *suspension;
        is_step && is_suspension && wait["resumeSchema"].is_object()
    });
    let first = fitting.next()?;
    fitting.next().is_none().then(|| &first["resumeSchema"])
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
    let at = options.which.locate(&session.api).await?;
    let path = at.path("replay");
    let mut headers = vec![("prefer", "respond-async")];
    headers.extend(options.idempotency_key.as_deref().map(|key| ("idempotency-key", key)));
    // servers of earlier versions answer when the new execution ends or waits
    let call = Call::post(&path, &body).headers(&headers).long();
    let unanswered = |exit| {
        let id = quoted(&at.id);
        Failure::new(exit, "the server has not answered; the new execution may have begun")
            .advise(format!("look: greenroom executions list --replay-of {id}"))
    };
    let replaying = session.api.any_reply(call);
    let deadline = deadline_of(options.following.timeout);
    let reply = attended(replaying, deadline, unanswered).await?;
    let new = begun(session, &at.workflow, &reply)?;
    note(&begins(&new.id, text(&reply.body["data"]["replayedFrom"], "stepId")));
    let history = history_of(&session.api, &new, options.idempotency_key.as_deref()).await?;
    follow_new(session, (&new, history), &options.following, deadline).await
}

/// Says from which step a replay began.
fn begins(id: &str, step: &str) -> String {
    plain(&match step {
        "" => format!("{id} has begun"),
        step => format!("{id} begins at {step}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_that_of_the_step_that_waits() {
        let wait = |path: &str, id: &str, schema: Value| json!({ "stepId": "a", "path": path, "suspensionId": id, "resumeSchema": schema });
        let (one, two) = (json!({ "type": "object" }), json!({ "type": "array" }));
        let waits = [wait("x/a", "s1", one.clone()), wait("y/a", "s2", two), json!({})];
        let why = json!({ "waitsFor": waits });
        for (step, suspension, expected) in [
            (None, Value::Null, None),
            (Some("a"), Value::Null, None),
            (Some("x/a"), Value::Null, Some(&one)),
            (None, json!("s1"), Some(&one)),
            (Some("y/a"), json!("s1"), None),
        ] {
            assert_eq!(schema_of(&why, step, &suspension), expected, "{step:?} {suspension}");
        }
    }
}
