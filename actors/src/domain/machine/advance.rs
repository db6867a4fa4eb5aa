//! The next fact that follows from the state by itself: one at a time, from the outside in.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::fact::{Fact, ResumedBy};
use crate::domain::ids::StepPath;
use crate::domain::machine::failure::{check_payload, default_reason, shown_payload};
use crate::domain::machine::scope::Named;
use crate::domain::machine::{Machine, Moment};
use crate::domain::plan::{Branch, Step, Suspend, Work};
use crate::domain::state::{Node, Phase, Sequence, Settled};

/// Path of a node while the tree is walked; a text is made only when a fact needs one.
#[derive(Clone, Copy)]
struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    block: &'a str,
    step: &'a Arc<str>,
}

impl Place<'_> {
    fn path(&self) -> StepPath {
        match self.outer {
            None => Arc::clone(self.step),
            Some(outer) => Arc::from(format!("{}/{}/{}", outer.path(), self.block, self.step)),
        }
    }
}

impl Machine {
    /// What happens next without anybody's doing; nothing while a hold is in place.
    pub(super) fn next_fact(&self, moment: &Moment<'_>) -> Option<Fact> {
        if self.state.end.is_some() || self.state.hold.is_some() {
            return None;
        }
        if self.state.next_seq > moment.limits.events_max {
            return Some(self.next_cancelled().unwrap_or_else(|| self.too_many_events(moment)));
        }
        let since = self.state.created_at;
        match self.state.root.settled(&self.plan.steps) {
            Some(Settled::Passed { output, .. }) => Some(self.finished(output, moment)),
            Some(Settled::Failed { error, step_id, .. }) => {
                Some(Fact::WorkflowFailed { since, error, step_id: Some(step_id) })
            }
            None => self.next_in(&self.plan.steps, &self.state.root, None, moment),
        }
    }

    fn too_many_events(&self, moment: &Moment<'_>) -> Fact {
        let error = format!("more than {} events", moment.limits.events_max);
        Fact::WorkflowFailed {
            since: self.state.created_at,
            error: Arc::from(error),
            step_id: None,
        }
    }

    fn finished(&self, output: Arc<Value>, moment: &Moment<'_>) -> Fact {
        let since = self.state.created_at;
        let Some(result) = &self.plan.result else {
            return Fact::WorkflowCompleted { since, result: output };
        };
        let scope = self.scope("", &output, None, Named::by(|name| result.uses(name)), moment);
        match result.evaluate(&scope) {
            Ok(result) => Fact::WorkflowCompleted { since, result: Arc::new(result) },
            Err(error) => Fact::WorkflowFailed {
                since,
                error: Arc::from(format!("result: {error}")),
                step_id: None,
            },
        }
    }

    /// The next fact inside a sequence that has not settled.
    fn next_in(
        &self,
        steps: &[Step],
        sequence: &Sequence,
        outer: Option<(&Place<'_>, &str)>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        let place_of = |step: &Step| -> Option<Fact> {
            let (outer, block) = outer.map_or((None, ""), |(place, block)| (Some(place), block));
            let place = Place { outer, block, step: &step.id };
            match sequence.nodes.last() {
                Some(node) if node.is_live() => self.next_of(step, node, &place, moment),
                _ => self.begin(step, sequence.data_before(sequence.nodes.len()), &place, moment),
            }
        };
        let live = sequence.nodes.last().is_some_and(Node::is_live);
        let index = if live { sequence.nodes.len() - 1 } else { sequence.nodes.len() };
        steps.get(index).and_then(place_of)
    }

    /// The first fact about a step.
    fn begin(
        &self,
        step: &Step,
        data: Arc<Value>,
        place: &Place<'_>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        if (moment.missing)(step).is_some() {
            return None;
        }
        let path = place.path();
        let node = Node::new(data, moment.now);
        if let Some(schema) = &step.input_schema
            && let Err(violation) = schema.check(&node.input)
        {
            let error = format!("input validation failed: {violation}");
            return Some(self.failed_for_good(step, &node, &path, &error, moment));
        }
        let begun = match &step.suspend {
            Some(rule) => self.ask(step, rule, &node, &path, moment),
            None => match self.answer_brought(&path) {
                Some(answer) => Ok(Self::resumed(Arc::clone(&path), answer, ResumedBy::Caller)),
                None => self.begin_work(step, &node, &path, moment),
            },
        };
        Some(begun.unwrap_or_else(|error| self.failed_for_good(step, &node, &path, &error, moment)))
    }

    /// Asks for a resume when the rule says so; else begins the work.
    fn ask(
        &self,
        step: &Step,
        rule: &Suspend,
        node: &Node,
        path: &StepPath,
        moment: &Moment<'_>,
    ) -> Result<Fact, String> {
        let scope = self.scope(path, &node.input, None, Named::ALL, moment);
        let asks = match &rule.when {
            Some(when) => when.holds(&scope).map_err(|error| format!("suspend.when: {error}"))?,
            None => true,
        };
        if !asks {
            return self.begin_work(step, node, path, moment);
        }
        if let Some(answer) = self.answer_brought(path) {
            return Ok(Self::resumed(Arc::clone(path), answer, ResumedBy::Caller));
        }
        let payload = match &rule.payload {
            Some(payload) => Some(
                payload.evaluate(&scope).map_err(|error| format!("suspend.payload: {error}"))?,
            ),
            None => None,
        };
        check_payload(step, payload.as_ref())?;
        let reason = match &rule.reason {
            Some(reason) => {
                reason.render(&scope).map_err(|error| format!("suspend.reason: {error}"))?
            }
            None => default_reason(step),
        };
        Ok(Fact::StepSuspended {
            path: Arc::clone(path),
            reason: Arc::from(reason),
            payload: shown_payload(payload),
            deadline: rule.deadline_ms.map(|ms| moment.now.plus_ms(ms)),
        })
    }

    fn begin_work(
        &self,
        step: &Step,
        node: &Node,
        path: &StepPath,
        moment: &Moment<'_>,
    ) -> Result<Fact, String> {
        let path = Arc::clone(path);
        match &step.work {
            Work::Sleep { duration_ms } => {
                let until = moment.now.plus_ms(*duration_ms);
                Ok(Fact::StepSlept { path, attempt: 1, until })
            }
            Work::When { when, .. } => {
                let scope =
                    self.scope(&path, &node.input, None, Named::by(|name| when.uses(name)), moment);
                let holds = when.holds(&scope).map_err(|error| format!("when: {error}"))?;
                if holds { Ok(started(path, 1)) } else { Ok(Fact::StepSkipped { path }) }
            }
            Work::Map(_)
            | Work::Call(_)
            | Work::All(_)
            | Work::Race(_)
            | Work::Agent(_)
            | Work::Workflow { .. } => Ok(started(path, 1)),
        }
    }

    /// The next fact about a node that is alive.
    fn next_of(
        &self,
        step: &Step,
        node: &Node,
        place: &Place<'_>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        match &node.phase {
            Phase::Ready | Phase::Sleeping { fired: true, retry: true, .. } => {
                let blocked = (moment.missing)(step).is_some();
                (!blocked).then(|| started(place.path(), node.attempt + 1))
            }
            Phase::Running => self.next_of_running(step, node, place, moment),
            Phase::Waiting(wait) if wait.fired => {
                Some(self.timed_out(step, node, &place.path(), moment))
            }
            Phase::Sleeping { fired: true, retry: false, .. } => {
                let output = Arc::clone(&node.input);
                Some(self.completed(step, node, &place.path(), output, moment))
            }
            Phase::Waiting(_)
            | Phase::Sleeping { fired: false, .. }
            | Phase::Completed { .. }
            | Phase::Failed { .. }
            | Phase::Skipped
            | Phase::Cancelled => None,
        }
    }

    fn next_of_running(
        &self,
        step: &Step,
        node: &Node,
        place: &Place<'_>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        match &step.work {
            Work::Map(map) => {
                let path = place.path();
                let named = Named::by(|name| map.uses(name));
                let scope = self.scope(&path, &node.input, node.resume.as_ref(), named, moment);
                Some(match map.evaluate(&scope) {
                    Ok(output) => self.completed(step, node, &path, Arc::new(output), moment),
                    Err(error) => self.failed(step, node, &path, &error.to_string(), moment),
                })
            }
            Work::Call(_) | Work::Agent(_) | Work::Sleep { .. } => None,
            Work::Workflow { workflow, input } => {
                if node.child.is_some() {
                    return None;
                }
                let path = place.path();
                let value = match input {
                    Some(input) => {
                        let named = Named::by(|name| input.uses(name));
                        let resume = node.resume.as_ref();
                        let scope = self.scope(&path, &node.input, resume, named, moment);
                        input.evaluate(&scope).map(Arc::new)
                    }
                    None => Ok(Arc::clone(&node.input)),
                };
                Some(match value {
                    Ok(input) => Fact::ChildStarted {
                        path,
                        child: (moment.new_id)(),
                        workflow: Arc::clone(workflow),
                        input,
                    },
                    Err(error) => {
                        self.failed(step, node, &path, &format!("input: {error}"), moment)
                    }
                })
            }
            Work::When { branches, .. } | Work::All(branches) => {
                self.next_of_all(step, node, branches, place, moment)
            }
            Work::Race(branches) => self.next_of_race(step, node, branches, place, moment),
        }
    }

    /// andAll, and andWhen with its one branch: the first failure ends it, completion needs all.
    fn next_of_all(
        &self,
        step: &Step,
        node: &Node,
        branches: &[Branch],
        place: &Place<'_>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        let settled = settled_branches(branches, node);
        let first_failure =
            settled.iter().flatten().filter(|end| matches!(end, Settled::Failed { .. }));
        if let Some(Settled::Failed { error, .. }) = first_failure.min_by_key(|end| end.order()) {
            return Some(next_cancelled_in(branches, node, place).unwrap_or_else(|| {
                self.failed_for_good(step, node, &place.path(), error, moment)
            }));
        }
        if let Some(fact) = self.next_in_branches(branches, node, &settled, place, moment) {
            return Some(fact);
        }
        let outputs: Option<Vec<Arc<Value>>> = settled.into_iter().map(passed).collect();
        let outputs = outputs?;
        let output = match (&step.work, outputs.as_slice()) {
            (Work::When { .. }, [only]) => Arc::clone(only),
            _ => Arc::new(outputs.iter().map(|output| Value::clone(output)).collect()),
        };
        Some(self.completed(step, node, &place.path(), output, moment))
    }

    /// andRace: the first branch that completes wins; it fails when every branch has failed.
    fn next_of_race(
        &self,
        step: &Step,
        node: &Node,
        branches: &[Branch],
        place: &Place<'_>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        let settled = settled_branches(branches, node);
        let winner = settled
            .iter()
            .flatten()
            .filter(|end| matches!(end, Settled::Passed { .. }))
            .min_by_key(|end| end.order());
        if let Some(Settled::Passed { output, .. }) = winner {
            return Some(next_cancelled_in(branches, node, place).unwrap_or_else(|| {
                self.completed(step, node, &place.path(), Arc::clone(output), moment)
            }));
        }
        let failures: Option<Vec<&Settled>> = settled.iter().map(Option::as_ref).collect();
        let first = failures.and_then(|all| all.into_iter().min_by_key(|end| end.order()));
        if let Some(Settled::Failed { error, .. }) = first {
            return Some(self.failed_for_good(step, node, &place.path(), error, moment));
        }
        self.next_in_branches(branches, node, &settled, place, moment)
    }

    fn next_in_branches(
        &self,
        branches: &[Branch],
        node: &Node,
        settled: &[Option<Settled>],
        place: &Place<'_>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        branches.iter().zip(&node.branches).zip(settled).find_map(
            |((branch, sequence), settled)| {
                if settled.is_some() {
                    return None;
                }
                self.next_in(&branch.steps, sequence, Some((place, &branch.name)), moment)
            },
        )
    }

    fn timed_out(&self, step: &Step, node: &Node, path: &StepPath, moment: &Moment<'_>) -> Fact {
        let answer = step.suspend.as_ref().and_then(|rule| rule.on_timeout.as_ref());
        let Some(answer) = answer else {
            return self.failed_for_good(step, node, path, "deadline passed", moment);
        };
        let scope =
            self.scope(path, &node.input, None, Named::by(|name| answer.uses(name)), moment);
        let data = answer.evaluate(&scope).map_err(|error| error.to_string());
        let checked = data.and_then(|data| match &step.resume_schema {
            Some(schema) => schema.check(&data).map(|()| data).map_err(|bad| bad.to_string()),
            None => Ok(data),
        });
        match checked {
            Ok(data) => Self::resumed(Arc::clone(path), Arc::new(data), ResumedBy::Deadline),
            Err(error) => {
                let error = format!("deadline passed; on_timeout: {error}");
                self.failed_for_good(step, node, path, &error, moment)
            }
        }
    }

    /// Cancels the innermost node that is alive, anywhere.
    pub(super) fn next_cancelled(&self) -> Option<Fact> {
        cancelled_in(&self.plan.steps, &self.state.root, None)
    }
}

fn started(path: StepPath, attempt: u32) -> Fact {
    Fact::StepStarted { path, attempt, interrupted: false }
}

fn passed(settled: Option<Settled>) -> Option<Arc<Value>> {
    match settled? {
        Settled::Passed { output, .. } => Some(output),
        Settled::Failed { .. } => None,
    }
}

fn settled_branches(branches: &[Branch], node: &Node) -> Vec<Option<Settled>> {
    branches
        .iter()
        .zip(&node.branches)
        .map(|(branch, sequence)| sequence.settled(&branch.steps))
        .collect()
}

fn next_cancelled_in(branches: &[Branch], node: &Node, place: &Place<'_>) -> Option<Fact> {
    branches.iter().zip(&node.branches).find_map(|(branch, sequence)| {
        cancelled_in(&branch.steps, sequence, Some((place, &branch.name)))
    })
}

fn cancelled_in(
    steps: &[Step],
    sequence: &Sequence,
    outer: Option<(&Place<'_>, &str)>,
) -> Option<Fact> {
    let node = sequence.nodes.last().filter(|node| node.is_live())?;
    let step = steps.get(sequence.nodes.len() - 1)?;
    let (outer, block) = outer.map_or((None, ""), |(place, block)| (Some(place), block));
    let place = Place { outer, block, step: &step.id };
    if let Some(inner) = next_cancelled_in(step.work.branches(), node, &place) {
        return Some(inner);
    }
    let (attempt, since) = (node.attempt, node.attempt_started_at);
    Some(Fact::StepCancelled { path: place.path(), attempt, since })
}
