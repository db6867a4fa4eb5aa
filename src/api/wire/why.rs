//! Explanation of what an execution waits for, on the wire.

mod call;
mod end;
#[cfg(test)]
mod tests;

use greenroom_actors::domain::ids::{ExecutionId, compensated_path};
use greenroom_actors::ports::store::{Projection, Status};
use greenroom_actors::wait_report::{AtDeadline, Awaited, AwaitedCall, Cause, WaitReport};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::wire::Iso;
use crate::api::wire::execution::PrincipalView;
use crate::api::wire::failure::AttemptErrorView;
use crate::api::wire::inbox::AskView;
use crate::api::wire::shape::{execution_status, one_of};
use crate::api::wire::suspension::SuspensionView;
use crate::api::wire::why::call::{AwaitedCallView, doing, doing_all};
use crate::api::wire::why::end::EndView;

pub use self::call::CALL_STAGES;

/// All values of `kind`.
pub const WAIT_KINDS: [&str; 11] = [
    "hold",
    "resume",
    "asks",
    "child",
    "sleep",
    "retry",
    "step",
    "missing",
    "interrupted",
    "server",
    "drain",
];

/// All values of `by`.
pub const MOVERS: [&str; 6] = ["resume", "answer", "time", "child", "step", "server"];

/// Kind of a wait.
fn wait_kind() -> Object {
    one_of(WAIT_KINDS)
}

/// Source of progress of a waiting execution.
fn mover() -> Object {
    one_of(MOVERS)
}

/// Explanation of what an execution waits for.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionOutlook)]
#[serde(rename_all = "camelCase")]
pub struct WhyView<'a> {
    pub execution_id: &'a str,
    pub workflow_id: &'a str,
    #[schema(schema_with = execution_status)]
    pub status: &'static str,
    /// Name of the server that continues the execution, if several servers share the database.
    pub server: Option<&'a str>,
    /// All current waits; empty if it has ended.
    pub waits_for: Vec<AwaitedView<'a>>,
    /// Future end of an execution that compensates, with the time at which its compensations began. `replayFrom` is empty,
    /// because it is known only at the end.
    pub compensates: Option<EndView<'a>>,
    /// Present if it has ended.
    pub ended: Option<EndView<'a>>,
}

impl<'a> WhyView<'a> {
    /// Shows what an execution waits for.
    pub fn of(wait_report: &'a WaitReport) -> Self {
        let header = &*wait_report.header;
        Self {
            execution_id: header.id.as_str(),
            workflow_id: &header.workflow_id,
            status: wait_report.status.as_str(),
            server: wait_report.server.as_deref(),
            waits_for: wait_report
                .waits_for
                .iter()
                .map(|awaited| AwaitedView::of(awaited, wait_report))
                .collect(),
            compensates: wait_report.pending_ending.as_ref().map(EndView::of),
            ended: wait_report.ending.as_ref().map(EndView::of),
        }
    }
}

/// Something that an execution waits for.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Awaited)]
#[serde(rename_all = "camelCase")]
pub struct AwaitedView<'a> {
    #[schema(schema_with = wait_kind)]
    pub kind: &'static str,
    pub step_id: Option<&'a str>,
    /// Absent for a step in a block that has not started.
    pub path: Option<&'a str>,
    /// Description for people.
    pub message: String,
    pub since: Iso,
    /// Time at which the wait ends by itself.
    pub until: Option<Iso>,
    /// Id of a pause or a suspended step, for `options.suspensionId` of a resume.
    pub suspension_id: Option<&'a str>,
    /// User who paused the execution.
    pub suspended_by: Option<PrincipalView<'a>>,
    /// Payload of a suspended step.
    pub payload: Option<&'a Value>,
    /// Open asks of a suspended step that the caller sees: its own, or those of the calls that its
    /// agent waits for. At most 50 in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub asks: Vec<AskView<'a>>,
    /// JSON Schema of the data of a resume.
    pub resume_schema: Option<&'a Value>,
    /// Number of the attempt that runs or was interrupted.
    pub attempt: Option<u32>,
    /// Name of the tool that the attempt calls, since `since`. Only for a step that calls one.
    pub tool: Option<&'a str>,
    /// Generation of the agent that the step runs, or waits for.
    pub generation_id: Option<&'a str>,
    /// Calls of tools by this agent that have no result so far, in the order of the model's answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub calls: Vec<AwaitedCallView<'a>>,
    /// Error of the last attempt.
    pub error: Option<&'a str>,
    /// Failed attempts, oldest first. If there are many, only the newest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<AttemptErrorView<'a>>,
    pub child: Option<ChildView<'a>>,
    /// Events that let it continue. A cancel ends every execution.
    pub moved_by: Vec<MoverView<'a>>,
}

/// Execution that an andWorkflow step started.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AwaitedChild)]
#[serde(rename_all = "camelCase")]
pub struct ChildView<'a> {
    pub execution_id: &'a str,
    pub workflow_id: &'a str,
    /// Absent until it has started.
    #[schema(schema_with = execution_status, required = false)]
    pub status: Option<&'static str>,
    pub suspension: Option<SuspensionView<'a>>,
}

/// Event that lets an execution continue.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Mover)]
#[serde(rename_all = "camelCase")]
pub struct MoverView<'a> {
    #[schema(schema_with = mover)]
    pub by: &'static str,
    /// Description for people.
    pub how: String,
    /// Workflow of the execution. For a resume, `stepId` is its `options.stepId`; without one it
    /// ends a pause.
    pub workflow_id: Option<&'a str>,
    pub execution_id: Option<&'a str>,
    pub step_id: Option<&'a str>,
}

impl<'a> MoverView<'a> {
    fn new(by: &'static str, how: impl Into<String>) -> Self {
        Self { by, how: how.into(), ..Self::default() }
    }

    fn resume(how: &str, workflow: &'a str, id: &'a ExecutionId, step: Option<&'a str>) -> Self {
        Self {
            workflow_id: Some(workflow),
            execution_id: Some(id.as_str()),
            step_id: step,
            ..Self::new("resume", how)
        }
    }
}

fn asks_of<'a>(wait_report: &'a WaitReport, suspension_id: &str) -> Vec<AskView<'a>> {
    wait_report.asks.get(suspension_id).into_iter().flatten().map(AskView::of).collect()
}

fn calls_of<'a>(wait_report: &'a WaitReport, generation: Option<&str>) -> &'a [AwaitedCall] {
    let found = generation.and_then(|generation| wait_report.calls.get(generation));
    found.map_or(&[][..], Vec::as_slice)
}

fn views_of(calls: &[AwaitedCall]) -> Vec<AwaitedCallView<'_>> {
    calls.iter().map(AwaitedCallView::of).collect()
}

impl<'a> AwaitedView<'a> {
    #[expect(clippy::too_many_lines, reason = "one arm for each cause")]
    fn of(awaited: &'a Awaited, wait_report: &'a WaitReport) -> Self {
        let header = &*wait_report.header;
        let path = awaited.path.as_deref();
        let resume = |how, step| MoverView::resume(how, &header.workflow_id, &header.id, step);
        let plain = |kind, message: String, moved_by| Self {
            kind,
            step_id: awaited.step_id.as_deref(),
            path,
            message: match path.and_then(compensated_path) {
                Some(step) => format!("compensation of {step}: {message}"),
                None => message,
            },
            since: Iso(awaited.since),
            until: awaited.until.map(Iso),
            moved_by,
            ..Self::default()
        };
        match &awaited.cause {
            Cause::Hold { suspension_id, reason, by } => {
                let how = "a resume without options.stepId ends the pause";
                let message = format!("paused: {reason}");
                Self {
                    suspension_id: Some(suspension_id),
                    suspended_by: by.as_deref().map(PrincipalView::of),
                    ..plain("hold", message, vec![resume(how, None)])
                }
            }
            Cause::Resume {
                suspension_id,
                reason,
                payload,
                schema,
                deadline,
                has_unused_answer,
            } => {
                let unused = match has_unused_answer {
                    true => {
                        "; the replay's resumeData was ignored: its author may not answer this step"
                    }
                    false => "",
                };
                let message = format!("waits for a resume: {reason}{unused}");
                let mut moved_by = vec![resume("a resume with the requested data", path)];
                moved_by.extend(deadline.map(of_deadline));
                Self {
                    suspension_id: Some(suspension_id),
                    payload: payload.as_deref(),
                    asks: asks_of(wait_report, suspension_id),
                    resume_schema: schema.as_ref(),
                    ..plain("resume", message, moved_by)
                }
            }
            Cause::Asks { suspension_id, reason, payload } => {
                let how = "answers to all asks of its agent, in the inbox";
                let moved_by = vec![MoverView::new("answer", how)];
                let generation = payload.as_deref().and_then(|it| it["generationId"].as_str());
                Self {
                    suspension_id: Some(suspension_id),
                    payload: payload.as_deref(),
                    asks: asks_of(wait_report, suspension_id),
                    generation_id: generation,
                    calls: views_of(calls_of(wait_report, generation)),
                    ..plain("asks", format!("waits for answers: {reason}"), moved_by)
                }
            }
            Cause::Child { child, workflow, asks } => {
                let row = wait_report.children.get(child);
                let message = match (row, asks) {
                    (None, _) => format!("execution {child} of {workflow} is starting"),
                    (Some(_), Some(asks)) => {
                        format!("execution {child} waits for a resume: {}", asks.reason)
                    }
                    (Some(_), None) => format!("execution {child} of {workflow} is running"),
                };
                let mut moved_by =
                    vec![MoverView::new("child", "progress of the execution that it started")];
                moved_by[0].execution_id = Some(child.as_str());
                moved_by[0].workflow_id = Some(workflow);
                if asks.is_some() {
                    moved_by.push(resume("a resume of this step, which is forwarded", path));
                    let how = "a resume of that execution";
                    moved_by.push(MoverView::resume(how, workflow, child, None));
                }
                let at_end = if asks.is_some() { deadline_of_child } else { timed_out };
                moved_by.extend(awaited.until.map(|_| at_end()));
                let child = Some(ChildView::of(child, workflow, row));
                let suspension_id = asks.as_ref().map(|asks| &*asks.suspension_id);
                Self { child, suspension_id, ..plain("child", message, moved_by) }
            }
            Cause::Sleep => {
                let moved_by = vec![MoverView::new("time", "the step continues at that time")];
                plain("sleep", "sleeping".to_owned(), moved_by)
            }
            Cause::Retry { failures, attempts_max, errors } => {
                let error = errors.last().map_or("", |error| &*error.message);
                let message =
                    format!("waits to retry after failure {failures} of {attempts_max}: {error}");
                let moved_by = vec![MoverView::new("time", "the next attempt starts at that time")];
                let errors = AttemptErrorView::all(errors);
                Self { error: Some(error), errors, ..plain("retry", message, moved_by) }
            }
            Cause::Body { attempt, tool, stage, generation, .. } => {
                let mut moved_by = vec![MoverView::new("step", "the attempt ends")];
                moved_by.extend(awaited.until.map(|_| timed_out()));
                let (tool, generation_id) = (tool.as_deref(), generation.as_deref());
                let calls = calls_of(wait_report, generation_id);
                let message = match (tool, doing_all(calls)) {
                    (Some(tool), _) => format!("attempt {attempt} {}", doing(tool, *stage)),
                    (None, Some(all)) => format!("attempt {attempt} runs an agent that {all}"),
                    (None, None) => format!("attempt {attempt} is running"),
                };
                Self {
                    attempt: Some(*attempt),
                    tool,
                    generation_id,
                    calls: views_of(calls),
                    ..plain("step", message, moved_by)
                }
            }
            Cause::Missing { what } => missing(plain, what, wait_report.server.as_deref()),
            Cause::Interrupted { attempt } => {
                let message =
                    format!("attempt {attempt} was interrupted and has not been restarted");
                let moved_by = vec![MoverView::new("server", "the server starts the next attempt")];
                Self { attempt: Some(*attempt), ..plain("interrupted", message, moved_by) }
            }
            Cause::Turn => {
                let moved_by = vec![MoverView::new("server", "the server resumes it")];
                plain("server", "queued; the server has not resumed it yet".to_owned(), moved_by)
            }
            Cause::Deciding => {
                let moved_by = vec![MoverView::new("server", "the server continues it")];
                plain("server", "the server computes or records its next step".to_owned(), moved_by)
            }
            Cause::Draining => {
                let moved_by = vec![MoverView::new("server", "the next start of the server")];
                plain("drain", "the server is shutting down".to_owned(), moved_by)
            }
            Cause::Elsewhere { server } => elsewhere(plain, server.as_deref()),
        }
    }
}

/// Shows that a server lacks something; it has a name if it is one of several.
fn missing<'a>(
    plain: impl Fn(&'static str, String, Vec<MoverView<'a>>) -> AwaitedView<'a>,
    what: &str,
    server: Option<&str>,
) -> AwaitedView<'a> {
    let (message, how) = match server {
        Some(server) => (
            format!("{what} at the server {server}"),
            format!(
                "register it at {server}, or let {server} hand its executions over to a server that \
                 has it (greenroom nodes drain); the execution then continues"
            ),
        ),
        None => (
            what.to_owned(),
            "register it again, in the configuration or in code; the execution then continues"
                .to_owned(),
        ),
    };
    plain("missing", message, vec![MoverView::new("server", how)])
}

/// Shows that the server which continues the execution cannot be asked.
fn elsewhere<'a>(
    plain: impl Fn(&'static str, String, Vec<MoverView<'a>>) -> AwaitedView<'a>,
    server: Option<&str>,
) -> AwaitedView<'a> {
    let (message, how) = match server {
        Some(server) => (
            format!("it is at the server {server}, which does not answer at the moment"),
            format!("{server} continues it, or another server if {server} is lost"),
        ),
        None => (
            "its server was lost or is handing it over".to_owned(),
            "another server takes it over and continues it".to_owned(),
        ),
    };
    plain("server", message, vec![MoverView::new("server", how)])
}

impl<'a> ChildView<'a> {
    fn of(id: &'a ExecutionId, workflow: &'a str, row: Option<&'a Projection>) -> Self {
        let shown = row.filter(|row| row.status == Status::Suspended);
        Self {
            execution_id: id.as_str(),
            workflow_id: workflow,
            status: row.map(|row| row.status.as_str()),
            suspension: shown
                .and_then(|row| row.suspension.as_deref())
                .map(SuspensionView::in_state),
        }
    }
}

fn of_deadline<'a>(deadline: AtDeadline) -> MoverView<'a> {
    MoverView::new(
        "time",
        match deadline {
            AtDeadline::Fails => "the step fails at that time",
            AtDeadline::Resumes => {
                "the step is resumed at that time with a value of its definition"
            }
        },
    )
}

fn deadline_of_child<'a>() -> MoverView<'a> {
    MoverView::new("time", "the child fails or is resumed at that time, as it defines")
}

fn timed_out<'a>() -> MoverView<'a> {
    MoverView::new("time", "the attempt times out")
}
