//! Following an execution until it ends or waits, over lost connections.

use std::pin::pin;
use std::time::Duration;

use greenroom_actors::runtime::BULK_WORKFLOW;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::api::{Api, Call};
use super::attempts::Attempts;
use super::exit::{Exit, Failure, quoted};
use super::refusal::Reply;
use super::screen::{Form, note};
use super::session::{Session, attended, duration_of};
use super::show::Show;
use super::text::{duration, plain, pretty, text};
use super::wait::waiting;

/// An execution, and its workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) workflow: String,
    pub(super) id: String,
}

impl Located {
    /// Returns the path of something about the execution.
    pub(super) fn path<'a>(&'a self, what: &'a str) -> [&'a str; 5] {
        ["workflows", &self.workflow, "executions", &self.id, what]
    }

    /// Reads the state.
    pub(super) async fn state(&self, api: &Api) -> Result<Value, Failure> {
        api.data(Call::get(&self.path("state"))).await
    }

    /// Returns the advice to follow it later.
    pub(super) fn back(&self) -> String {
        format!("come back: greenroom executions watch {}", quoted(&self.id))
    }

    /// Returns the failure of a command that leaves a running execution.
    pub(super) fn left(&self, exit: Exit) -> Failure {
        let id = quoted(&self.id);
        let why = if exit == Exit::Timeout { "time is over" } else { "interrupted" };
        Failure::new(exit, format!("{why}; execution {} continues at the server", self.id))
            .advise(self.back())
            .advise(format!("end it: greenroom executions cancel {id}"))
    }
}

/// Returns the execution that an answer names. It may have failed already: its state says why.
pub(super) fn begun(session: &Session, workflow: &str, reply: &Reply) -> Result<Located, Failure> {
    let has_failed = reply.header("x-error-code") == Some("execution_failed");
    match reply.header("x-execution-id") {
        Some(id) if has_failed || !reply.is_refusal() => {
            Ok(Located { workflow: workflow.to_owned(), id: id.to_owned() })
        }
        Some(_) | None => Err(session.api.refused(reply)),
    }
}

/// Place in the events of an execution.
#[derive(Debug, Default)]
struct Reading {
    /// Number of the last event.
    after: u64,
    /// Events up to this number are history: a suspension among them may be over.
    history: u64,
    is_suspended: bool,
}

impl Reading {
    /// Notes an event; returns true if the execution has ended or waits.
    fn note(&mut self, number: Option<u64>, event: &Value) -> bool {
        self.after = number.unwrap_or(self.after);
        match text(event, "type") {
            "workflow-result" => return true,
            "workflow-suspended" => self.is_suspended = true,
            "workflow-resumed" => self.is_suspended = false,
            _ => {}
        }
        self.is_at_end()
    }

    fn is_at_end(&self) -> bool {
        self.is_suspended && self.after >= self.history
    }
}

/// Follows an execution until it ends or waits. `history` is the number of its last event so far.
pub(super) async fn follow(
    api: &Api,
    at: &Located,
    history: u64,
    show: &mut Show,
) -> Result<(), Failure> {
    read_on(api, at, &mut Reading { history, ..Reading::default() }, show).await
}

/// Follows an execution that is about to continue, behind the event with this number. `resuming` ends
/// when the resume is answered: with a refusal, or once the execution has ended or waits.
pub(super) async fn follow_resumed(
    api: &Api,
    at: &Located,
    after: u64,
    resuming: impl Future<Output = Result<Located, Failure>>,
    show: &mut Show,
) -> Result<(), Failure> {
    let mut reading = Reading { after, history: after, is_suspended: false };
    let mut answered = pin!(async {
        resuming.await?;
        at.state(api).await
    });
    let state = tokio::select! {
        // first, so that the last event has been shown if it came with the answer
        biased;
        followed = read_on(api, at, &mut reading, show) => {
            followed?;
            return answered.await.map(drop);
        }
        state = &mut answered => state?,
    };
    // a resume that is repeated with its key gets the answer of the first one and moves nothing: the
    // stream may bring no event that ends the reading
    reading.history = state["lastSequence"].as_u64().unwrap_or(after);
    reading.is_suspended = text(&state, "status") != "running";
    if reading.is_at_end() {
        return Ok(());
    }
    read_on(api, at, &mut reading, show).await
}

async fn read_on(
    api: &Api,
    at: &Located,
    reading: &mut Reading,
    show: &mut Show,
) -> Result<(), Failure> {
    let mut attempts = Attempts::default();
    loop {
        let after = reading.after;
        let ended = match read(api, at, reading, &mut attempts, show).await {
            Ok(true) => return Ok(()),
            Ok(false) => Ok(()),
            Err(failure) => Err(failure),
        };
        if reading.after > after {
            attempts.begin_anew();
        }
        let left = |failure: Failure| match failure.is_transient() || failure.exit == Exit::Failed {
            true => failure.advise(at.back()),
            false => failure,
        };
        attempts.pause(ended).await.map_err(left)?;
    }
}

/// Reads a stream; returns true if the execution has ended or waits, false if the stream has ended
/// before.
async fn read(
    api: &Api,
    at: &Located,
    reading: &mut Reading,
    attempts: &mut Attempts,
    show: &mut Show,
) -> Result<bool, Failure> {
    let after = reading.after.to_string();
    let path = at.path("stream");
    let query = [("fromSequence", after.as_str())];
    let (status, mut events) = api.events(Call::get(&path).query(&query)).await?;
    if status == 204 {
        return Ok(true);
    }
    while let Some(event) = events.next().await {
        show.event(event.id, &event.data)?;
        if reading.note(event.id, &event.data) {
            return Ok(true);
        }
    }
    attempts.note_stream(events.lasted());
    Ok(false)
}

/// Options for an execution that a command has started.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Following {
    /// Show its events while it runs.
    #[arg(short, long)]
    pub(super) watch: bool,
    /// Print the id of the execution and leave it running.
    #[arg(long, conflicts_with_all = ["watch", "timeout"])]
    pub(super) detach: bool,
    /// Leave it running after this time, as 30s or 5m, with exit code 124.
    #[arg(long, value_name = "DURATION", value_parser = duration_of)]
    pub(super) timeout: Option<Duration>,
}

/// Returns the number of the last event so far of an execution that a command with this key has
/// started, which may have been long ago; 0 without a key.
pub(super) async fn history_of(api: &Api, at: &Located, key: Option<&str>) -> Result<u64, Failure> {
    match key {
        Some(_) => Ok(at.state(api).await?["lastSequence"].as_u64().unwrap_or(0)),
        None => Ok(0),
    }
}

/// Follows an execution that has begun until it ends or waits, or leaves it running. `history` is the
/// number of its last event so far. The deadline is that of the command, which has used a part of its
/// time to start the execution.
pub(super) async fn follow_new(
    session: &Session,
    (at, history): (&Located, u64),
    options: &Following,
    deadline: Option<Instant>,
) -> Result<Exit, Failure> {
    let screen = &session.screen;
    if options.detach {
        let started = json!({ "executionId": at.id, "workflowId": at.workflow });
        screen.value(&started, |_| vec![plain(&at.id)])?;
        session.note(&format!("it runs: greenroom executions watch {}", quoted(&at.id)));
        return Ok(Exit::Ok);
    }
    let mut show = if options.watch { Show::on(*screen) } else { Show::Nothing };
    let following = follow(&session.api, at, history, &mut show);
    let followed = attended(following, deadline, |exit| at.left(exit)).await;
    show.end();
    followed?;
    if options.watch {
        return conclude(session, at).await;
    }
    let state = at.state(&session.api).await?;
    report(session, at, &state, screen.form != Form::Table).await
}

/// Shows how an execution ended, or what it waits for.
pub(super) async fn conclude(session: &Session, at: &Located) -> Result<Exit, Failure> {
    let state = at.state(&session.api).await?;
    report(session, at, &state, Form::Jsonl != session.screen.form).await
}

/// Shows the outcome in a state, and returns its exit code.
pub(super) async fn report(
    session: &Session,
    at: &Located,
    state: &Value,
    with_json: bool,
) -> Result<Exit, Failure> {
    let screen = &session.screen;
    if screen.form != Form::Table && with_json {
        screen.value(state, |_| Vec::new())?;
    }
    let Located { workflow, id } = at;
    match text(state, "status") {
        "completed" => {
            let took = super::events::ms_between(text(state, "startAt"), text(state, "endAt"));
            let took = took.map(|ms| format!(" in {}", duration(ms))).unwrap_or_default();
            note(&format!("{workflow} {id} completed{took}"));
            if screen.form == Form::Table {
                screen.line(&pretty(&state["result"]))?;
            }
            Ok(Exit::Ok)
        }
        "suspended" => Err(waiting(session, at, state).await),
        "error" => Err(failed(at, state)),
        "cancelled" => Err(Failure::new(Exit::Failed, format!("{workflow} {id} was cancelled"))
            .advise(format!("why: greenroom executions why {}", quoted(id)))),
        status => Err(Failure::new(Exit::Failed, format!("{workflow} {id} is {}", plain(status)))),
    }
}

fn failed(at: &Located, state: &Value) -> Failure {
    let (id, error) = (quoted(&at.id), &state["error"]);
    let place = match (text(error, "path"), text(error, "stepId")) {
        ("", "") => String::new(),
        ("", step) => format!(" at {step}"),
        (path, _) => format!(" at {path}"),
    };
    let message = format!("{} {} failed{place}: {}", at.workflow, at.id, text(error, "message"));
    let failure =
        Failure::new(Exit::Failed, message).advise(format!("more: greenroom executions why {id}"));
    // without a step, the result could not be made: a replay has to name where it begins; and that of
    // a bulk operation is refused
    if place.is_empty() || at.workflow == BULK_WORKFLOW {
        return failure;
    }
    let undone = &state["compensation"];
    // it has to name the step, as it repeats what a person left as it is
    if undone["skipped"].as_u64().is_some_and(|skipped| skipped > 0) {
        return failure;
    }
    let again = match undone.is_null() {
        true => "again from there",
        false => "again from the first step that was undone",
    };
    failure.advise(format!("{again}: greenroom executions replay {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_advised_if_it_can_begin() {
        let failed_at = |place: Value| json!({ "error": place });
        let undone = json!({ "error": { "stepId": "b" }, "compensation": { "completed": 1 } });
        let skipped =
            json!({ "error": { "stepId": "b" }, "compensation": { "completed": 1, "skipped": 1 } });
        for (workflow, state, advised) in [
            ("w", skipped, None),
            ("w", failed_at(json!({ "stepId": "b" })), Some("again from there: ")),
            ("w", failed_at(json!({ "path": "a/b", "stepId": "b" })), Some("again from there: ")),
            ("w", undone, Some("again from the first step that was undone: ")),
            ("w", failed_at(json!({ "message": "result: no" })), None),
            (BULK_WORKFLOW, failed_at(json!({ "stepId": "page" })), None),
        ] {
            let at = Located { workflow: workflow.to_owned(), id: "e".to_owned() };
            let failure = failed(&at, &state).to_string();
            let advice = advised.map(|advised| format!("{advised}greenroom executions replay e"));
            let is_advised = advice.as_ref().map(|advice| failure.contains(advice));
            assert_ne!(is_advised, Some(false), "{failure}");
            assert_eq!(failure.contains("executions replay"), advised.is_some(), "{failure}");
        }
    }

    #[test]
    fn a_suspension_ends_the_reading_unless_it_is_over() {
        let event = |kind: &str| json!({ "type": kind });
        let mut reading = Reading { history: 4, ..Reading::default() };
        for (number, kind, ends) in [
            (1, "workflow-start", false),
            (2, "workflow-suspended", false),
            (3, "workflow-resumed", false),
            (4, "step-start", false),
            (5, "workflow-suspended", true),
        ] {
            assert_eq!(reading.note(Some(number), &event(kind)), ends, "{number}");
        }
        assert!(!Reading::default().note(None, &event("step-progress")));
        assert!(Reading::default().note(Some(1), &event("workflow-result")));
    }
}
