//! Finds the next fact that follows from the state, one at a time, from the root inwards.

use std::sync::Arc;

use serde_json::Value;

use crate::expression::{CompiledMapping, Expression, ExpressionError};
use crate::fact::{Fact, Opening, ResumedBy};
use crate::failure::{AttemptFailure, ErrorClass, ErrorKind};
use crate::ids::StepPath;
use crate::machine::container::Condition;
use crate::machine::failure::{default_reason, recorded_reason, shown_payload};
use crate::machine::place::{Place, Site, Within};
use crate::machine::scope::Named;
use crate::machine::{Machine, MachineLimits, Moment};
use crate::plan::{Step, Suspend, Work};
use crate::state::{Node, Phase, Sequence, Settled, suspension_id};
use crate::time::Timestamp;

impl Machine {
    /// Returns the next fact that follows without a command; `None` while the execution is paused.
    pub(super) fn next_fact(&self, moment: &Moment<'_>) -> Option<Fact> {
        if self.state.end.is_some() || self.state.hold.is_some() {
            return None;
        }
        // Its length is limited by what completed, and it has to take place beyond any limit.
        if let Some(compensating) = &self.state.compensating {
            return self.next_of_compensation(compensating, moment);
        }
        if let Some(begun) = self.start_of_reversal() {
            return Some(begun);
        }
        if let Some(too_much) = self.too_much(moment.limits) {
            let ended = || self.concluded(self.ended_by(&too_much));
            return Some(self.next_cancelled().unwrap_or_else(ended));
        }
        let since = self.state.created_at;
        match self.state.root.settled(&self.plan.steps) {
            Some(Settled::Passed { output, .. }) => {
                Some(self.concluded(self.finished(output, moment)))
            }
            Some(Settled::Failed { error, class, step_id, .. }) => {
                let path = self.failed_path();
                let step_id = Some(step_id);
                let failed = Fact::WorkflowFailed { since, error, step_id, path, class };
                Some(self.concluded(failed))
            }
            None => self.next_in(&self.plan.steps, &self.state.root, None, moment),
        }
    }

    /// Returns the exceeded limit of the execution in words.
    fn too_much(&self, limits: &MachineLimits) -> Option<String> {
        if self.state.next_seq > limits.events_max {
            return Some(format!("more than {} events", limits.events_max));
        }
        let max = limits.execution_bytes_max;
        (self.state.bytes > max).then(|| format!("its values are larger than {max} bytes in total"))
    }

    fn ended_by(&self, error: &str) -> Fact {
        Fact::WorkflowFailed {
            since: self.state.created_at,
            error: Arc::from(error),
            step_id: None,
            path: None,
            class: Some(ErrorClass::of(ErrorKind::Limit)),
        }
    }

    fn finished(&self, output: Arc<Value>, moment: &Moment<'_>) -> Fact {
        let since = self.state.created_at;
        let Some(result) = &self.plan.result else {
            return Fact::WorkflowCompleted { since, result: output };
        };
        let scope = self.scope("", &output, None, Named::by(|name| result.uses(name)), moment);
        let made = result.evaluate(&scope);
        let made = made.map_err(|error| AttemptFailure::not_evaluated("result: ", &error));
        match made.and_then(|result| self.checked_part("result", result, moment)) {
            Ok(result) => Fact::WorkflowCompleted { since, result: Arc::new(result) },
            Err(AttemptFailure { message, class, .. }) => Fact::WorkflowFailed {
                since,
                error: Arc::from(message),
                step_id: None,
                path: None,
                class,
            },
        }
    }

    /// Returns the next fact inside a sequence that has not ended.
    pub(super) fn next_in(
        &self,
        steps: &[Step],
        sequence: &Sequence,
        outer: Option<Within<'_>>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        let count = sequence.nodes.len();
        match sequence.nodes.last() {
            Some(node) if node.is_live() => {
                let step = steps.get(count - 1)?;
                let place = Place::of(step, outer);
                self.next_of(&Site { step, node, place, moment })
            }
            Some(_) | None => {
                let step = steps.get(count)?;
                self.begin(step, sequence.data_before(count), Place::of(step, outer), moment)
            }
        }
    }

    /// Returns the first fact about a step; `None` if the process lacks something that it needs.
    pub(super) fn begin(
        &self,
        step: &Step,
        data: Arc<Value>,
        place: Place<'_>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        if (moment.missing)(step).is_some() {
            return None;
        }
        let path = place.path();
        let node = Node::new(data, moment.now);
        let site = &Site::at(&path, (step, &node), moment);
        if let Some(schema) = &step.input_schema
            && let Err(violation) = schema.check(&node.input)
        {
            let failure = AttemptFailure::not_valid("input", &violation);
            return Some(self.failed_finally(site, &failure));
        }
        let begun = match &step.suspend {
            Some(rule) => self.ask(rule, site),
            None => match self.replay_answer(&path) {
                Some(answer) => {
                    Ok(Self::resumed(Arc::clone(&path), &node, answer, ResumedBy::Caller))
                }
                None => self.begin_work(site),
            },
        };
        Some(begun.unwrap_or_else(|why| self.failed_finally(site, &why)))
    }

    /// Suspends the step if its rule applies; otherwise begins its work.
    fn ask(&self, rule: &Suspend, site: &Site<'_>) -> Result<Fact, AttemptFailure> {
        let Site { step, node, moment, .. } = *site;
        let path = site.path();
        let failure = |key: &str, error: ExpressionError| {
            AttemptFailure::not_evaluated(&format!("suspend.{key}: "), &error)
        };
        let scope = self.scope_at(site, Named::ALL);
        let asks = match &rule.when {
            Some(when) => when.holds(&scope).map_err(|error| failure("when", error))?,
            None => true,
        };
        if !asks {
            return self.begin_work(site);
        }
        if let Some(answer) = self.replay_answer(&path)
            && self.may_replayer_answer(rule.asking.render(&scope)?.as_ref())
        {
            return Ok(Self::resumed(path, node, answer, ResumedBy::Caller));
        }
        let payload = match &rule.payload {
            Some(payload) => {
                Some(payload.evaluate(&scope).map_err(|error| failure("payload", error))?)
            }
            None => None,
        };
        if let Some(payload) = &payload {
            self.check_payload(site, payload)?;
        }
        let reason = match &rule.reason {
            Some(reason) => reason.render(&scope).map_err(|error| failure("reason", error))?,
            None => default_reason(step),
        };
        let ask = rule.asking.render(&scope)?;
        Ok(Fact::StepSuspended {
            id: Some(suspension_id(&self.state.id, &path, node.asked + 1)),
            path,
            reason: recorded_reason(&reason),
            payload: shown_payload(payload.map(Arc::new)),
            deadline: rule.deadline_ms.map(|ms| moment.now.plus_ms(ms)),
            ask: ask.map(Arc::new),
            question: None,
            mcp: None,
        })
    }

    fn begin_work(&self, site: &Site<'_>) -> Result<Fact, AttemptFailure> {
        let path = site.path();
        match &site.step.work {
            Work::Sleep { duration_ms } => {
                let until = site.moment.now.plus_ms(*duration_ms);
                Ok(Fact::StepSlept { path, attempt: 1, until })
            }
            Work::SleepUntil { until } => {
                let until = self.point_in_time(until, site)?;
                Ok(Fact::StepSlept { path, attempt: 1, until })
            }
            Work::When { when, .. } => {
                let holds = self.holds("when: ", when, site)?;
                if holds { Ok(started(path, 1, None)) } else { Ok(Fact::StepSkipped { path }) }
            }
            Work::Choice { cases, branches } => {
                let chosen = self.choose(cases, branches.len(), site)?;
                match chosen {
                    Some(block) => Ok(started(path, 1, Some(Opening::Block(block)))),
                    None => Ok(Fact::StepSkipped { path }),
                }
            }
            Work::ForEach { items, .. } => {
                let items = self.items(items, site)?;
                Ok(started(path, 1, Some(Opening::Items(items))))
            }
            Work::Map(_)
            | Work::Call(_)
            | Work::All(_)
            | Work::Race(_)
            | Work::Loop { .. }
            | Work::Agent(_)
            | Work::Workflow { .. }
            | Work::Reversal => Ok(started(path, 1, None)),
        }
    }

    /// Evaluates a condition; `of` is the prefix that names it in a failure.
    fn holds(&self, of: &str, when: &Expression, site: &Site<'_>) -> Result<bool, AttemptFailure> {
        let named = Named::by(|name| when.uses(name));
        let scope = self.scope_at(site, named);
        when.holds(&scope).map_err(|error| AttemptFailure::not_evaluated(of, &error))
    }

    /// Returns the index of the first case that is true, otherwise that of the default block, which
    /// follows those of the cases.
    fn choose(
        &self,
        cases: &[Expression],
        blocks: usize,
        site: &Site<'_>,
    ) -> Result<Option<usize>, AttemptFailure> {
        for (index, when) in cases.iter().enumerate() {
            if self.holds(&format!("case {}: when: ", index + 1), when, site)? {
                return Ok(Some(index));
            }
        }
        Ok((blocks > cases.len()).then_some(cases.len()))
    }

    fn items(
        &self,
        items: &CompiledMapping,
        site: &Site<'_>,
    ) -> Result<Vec<Arc<Value>>, AttemptFailure> {
        let named = Named::by(|name| items.uses(name));
        let scope = self.scope_at(site, named);
        let items = items.evaluate(&scope);
        let items = items.map_err(|error| AttemptFailure::not_evaluated("items: ", &error))?;
        match self.checked_part("items", items, site.moment)? {
            Value::Array(items) => Ok(items.into_iter().map(Arc::new).collect()),
            other => {
                let error = format!("items: must be an array, not {}", kind_of(&other));
                Err(AttemptFailure::expression(error))
            }
        }
    }

    fn point_in_time(
        &self,
        until: &Expression,
        site: &Site<'_>,
    ) -> Result<Timestamp, AttemptFailure> {
        let named = Named::by(|name| until.uses(name));
        let scope = self.scope_at(site, named);
        let value = until.evaluate(&scope);
        let value = value.map_err(|error| AttemptFailure::not_evaluated("until: ", &error))?;
        Timestamp::from_value(&value).ok_or_else(|| {
            AttemptFailure::expression(
                "until: must be an ISO 8601 time with a zone (2026-01-31T09:00:00Z) or \
                 milliseconds since 1970",
            )
        })
    }

    /// Returns the value of a part of the step, unless it is nested too deep.
    pub(super) fn checked_part(
        &self,
        part: &str,
        value: Value,
        moment: &Moment<'_>,
    ) -> Result<Value, AttemptFailure> {
        match self.check_made(&value, moment) {
            Ok(()) => Ok(value),
            Err(too_deep) => {
                Err(AttemptFailure::new(ErrorKind::Limit, format!("{part}: {too_deep}")))
            }
        }
    }

    /// Returns the next fact about a live node.
    pub(super) fn next_of(&self, site: &Site<'_>) -> Option<Fact> {
        let Site { step, node, moment, .. } = *site;
        match &node.phase {
            Phase::Ready | Phase::Sleeping { fired: true, retry: true, .. } => {
                let blocked = (moment.missing)(step).is_some();
                (!blocked).then(|| started(site.path(), node.attempt + 1, None))
            }
            Phase::Running => self.next_of_running(site),
            Phase::Waiting(wait) if wait.fired => Some(self.timed_out(site)),
            Phase::Sleeping { fired: true, retry: false, .. } => {
                let output = Arc::clone(&node.input);
                Some(self.completed(site, output))
            }
            Phase::Waiting(_)
            | Phase::Sleeping { fired: false, .. }
            | Phase::Completed { .. }
            | Phase::Failed { .. }
            | Phase::Skipped
            | Phase::Cancelled => None,
        }
    }

    fn next_of_running(&self, site: &Site<'_>) -> Option<Fact> {
        let Site { step, node, .. } = *site;
        match &step.work {
            Work::Map(map) => {
                let path = site.path();
                let site = &Site { place: Place::whole(&path), ..*site };
                let scope = self.scope_at(site, Named::by(|name| map.uses(name)));
                Some(match map.evaluate(&scope) {
                    Ok(output) => self.completed_with(site, Arc::new(output)),
                    Err(error) => {
                        let failure = AttemptFailure::not_evaluated("", &error);
                        self.failed(site, &failure)
                    }
                })
            }
            Work::Call(_) | Work::Agent(_) | Work::Sleep { .. } | Work::SleepUntil { .. } => None,
            Work::Workflow { workflow, input } if node.child.is_none() => {
                Some(self.next_child(workflow, input.as_ref(), site))
            }
            Work::Reversal if node.child.is_none() => self.next_reversal(site),
            Work::Workflow { .. } | Work::Reversal => None,
            Work::All(_) => self.next_of_all(site),
            Work::When { .. } | Work::Choice { .. } => self.next_of_one(site),
            Work::Race(_) => self.next_of_race(site),
            Work::ForEach { concurrency, .. } => self.next_of_each(site, *concurrency),
            Work::Loop { when, again_if, rounds_max, .. } => {
                let condition = Condition { when, again_if: *again_if, rounds_max: *rounds_max };
                self.next_of_loop(site, &condition)
            }
        }
    }
}

fn started(path: StepPath, attempt: u32, opening: Option<Opening>) -> Fact {
    Fact::StepStarted { path, attempt, interrupted: false, opening: opening.map(Box::new) }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
