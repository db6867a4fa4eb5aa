//! Facts as text.

use greenroom_domain::assignment::{AskRules, Assignee};
use greenroom_domain::fact::{AfterFailure, Fact, McpCall, Opening, Recorded, ResumedBy};
use greenroom_domain::state::Outcome;
use greenroom_domain::time::Timestamp;
use greenroom_domain::usage::Usage;
use serde_json::Value;

/// Returns one line for each fact; times count from the start of the execution.
pub(crate) fn lines(facts: &[Recorded], zero: Timestamp) -> Vec<String> {
    facts.iter().map(|recorded| line(&recorded.fact, zero)).collect()
}

fn line(fact: &Fact, zero: Timestamp) -> String {
    let clock = |time: &Timestamp| time.ms_since(zero);
    match fact {
        Fact::WorkflowStarted(_) => "start".to_owned(),
        Fact::StepStarted { path, attempt, interrupted, opening } => {
            let why = if *interrupted { " after a crash" } else { "" };
            let opening = match opening.as_deref() {
                None => String::new(),
                Some(Opening::Items(items)) => format!(" over {} items", items.len()),
                Some(Opening::Block(chosen)) => format!(" with block {chosen}"),
            };
            format!("{path} starts #{attempt}{why}{opening}")
        }
        Fact::StepCompleted { .. } => completed(fact),
        Fact::StepFailed { path, attempt: _, since: _, error, class: _, next, usage, mcp } => {
            let used = used(usage.as_deref()) + &via(mcp.as_deref());
            format!("{path} fails: {error}{used}{}", after(next, zero))
        }
        Fact::StepReleased { path, attempt: _, since: _ } => format!("{path} is released"),
        Fact::StepNoted { path, attempt: _, memo } => format!("{path} notes {memo}"),
        Fact::StepSkipped { path } => format!("{path} is skipped"),
        Fact::StepCancelled { path, attempt: _, since: _ } => format!("{path} is cancelled"),
        Fact::StepSuspended { path, reason, payload, deadline, id: _, ask, question: _, mcp } => {
            let mcp = via(mcp.as_deref());
            let (shown, until) = (shown(payload.as_deref()), until(*deadline, zero));
            format!("{path} asks{}: {reason}{shown}{until}{mcp}", asked(ask.as_deref()))
        }
        Fact::StepResumed { path, data, by, id: _ } => match by {
            ResumedBy::Caller => format!("{path} is answered {data}"),
            ResumedBy::Deadline => format!("{path} answers itself {data}"),
        },
        Fact::StepSlept { path, attempt: _, until } => {
            format!("{path} sleeps until {}", clock(until))
        }
        Fact::TimerFired { path } => format!("{path} is due"),
        Fact::ChildStarted { path, child, workflow, input } => {
            format!("{path} has child {child} of {workflow} with {input}")
        }
        Fact::ChildSuspended { path, child_seq: _, reason, payload, id: _, deadline } => {
            format!(
                "{path} child asks: {reason}{}{}",
                shown(payload.as_deref()),
                until(*deadline, zero)
            )
        }
        Fact::ChildResumed { path, child_seq: _, id: _ } => format!("{path} child resumes"),
        Fact::HoldPlaced { reason, id: _ } => format!("held: {reason}"),
        Fact::HoldLifted { data } => format!("lifted with {data}"),
        Fact::WorkflowSuspended { since: _, suspension, others: _ } => {
            format!("suspended at {}: {}", suspension.path, suspension.reason)
        }
        Fact::WorkflowResumed => "resumed".to_owned(),
        Fact::CompensationStarted { outcome } => compensates(outcome),
        Fact::WorkflowCompleted { since: _, result } => format!("completed {result}"),
        Fact::WorkflowFailed { since: _, error, step_id, path: _, class: _ } => {
            let place = step_id.as_deref().map_or(String::new(), |id| format!(" at {id}"));
            format!("failed{place}: {error}")
        }
        Fact::WorkflowCancelled { since: _, reason, compensates: _ } => {
            format!("cancelled: {reason}")
        }
    }
}

fn completed(fact: &Fact) -> String {
    let Fact::StepCompleted {
        path,
        attempt: _,
        since: _,
        output,
        usage,
        compensable,
        skipped,
        mcp,
    } = fact
    else {
        return String::new();
    };
    let compensable = if *compensable { ", and can be reversed" } else { "" };
    let skipped = if *skipped { ", skipped" } else { "" };
    let (used, via) = (used(usage.as_deref()), via(mcp.as_deref()));
    format!("{path} gives {output}{skipped}{used}{compensable}{via}")
}

fn compensates(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { error, .. } => format!("compensates after: {error}"),
        Outcome::Cancelled { reason } => format!("compensates after cancel: {reason}"),
        Outcome::Completed { .. } => "compensates after success".to_owned(),
    }
}

fn after(next: &AfterFailure, zero: Timestamp) -> String {
    match next {
        AfterFailure::Fail => String::new(),
        AfterFailure::Retry { until } => format!("; again at {}", until.ms_since(zero)),
        AfterFailure::Ask => "; asks next".to_owned(),
        AfterFailure::Continue { output } => format!("; continues with {output}"),
    }
}

fn via(mcp: Option<&McpCall>) -> String {
    mcp.and_then(|call| call.tool.as_ref()).map(|tool| format!(" by {tool}")).unwrap_or_default()
}

fn used(usage: Option<&Usage>) -> String {
    usage.map_or(String::new(), |usage| format!(" for {} tokens", usage.total_tokens))
}

fn until(deadline: Option<Timestamp>, zero: Timestamp) -> String {
    deadline.map_or(String::new(), |time| format!(" until {}", time.ms_since(zero)))
}

fn asked(rules: Option<&AskRules>) -> String {
    let of = |to: &[Assignee]| to.iter().map(|it| format!(" {it}")).collect::<String>();
    let Some(AskRules { to, remind_ms, escalate }) = rules else { return String::new() };
    let remind = remind_ms.iter().map(|ms| format!(" again at {ms}")).collect::<String>();
    let escalate = escalate.iter().map(|it| format!(" at {}{}", it.after_ms, of(&it.to)));
    format!("{}{remind}{}", of(to), escalate.collect::<String>())
}

fn shown(payload: Option<&Value>) -> String {
    payload.map_or(String::new(), |payload| format!(" {payload}"))
}
