//! Invariants of a world's record at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::FutureExt;
use greenroom_actors::domain::effort::Budget;
use greenroom_actors::domain::expression::Closures;
use greenroom_actors::domain::fact::{Fact, Parent, Recorded, ResumedBy, Suspension};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::machine::{Command, Handled, Machine, MachineLimits, Moment};
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::state::{Outcome, State};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    ASK_PREFIX, AskFilter, AskSubject, AskedStep, Asks as _, Executions, Projection, Status,
};
use greenroom_actors::requests::StepStatus;
use greenroom_actors::runtime::RuntimeStats;

use crate::simulator::approvals;
use crate::simulator::compensations;
use crate::simulator::due::start_of;
use crate::simulator::law;
use crate::simulator::picture;
use crate::simulator::spans;
use crate::simulator::stage::Stage;
use crate::simulator::world::Report;

/// Checks that no actor, body, timer or subscription outlives its execution.
pub(crate) fn nothing_is_left(stage: &Stage, stats: &RuntimeStats) {
    let counts = [
        ("executions in memory", stats.executions_live),
        ("bodies", stats.steps_running),
        ("generations", stats.generations_live),
        ("timers in memory", stats.timers_held),
        ("running bodies", stage.running()),
        ("running", stats.executions_running.iter().map(|(_, count)| count).sum()),
    ];
    for (what, count) in counts {
        stage.require(count == 0, || format!("{count} {what} are left over"));
    }
    stage.require(stats.actors_panicked == 0, || "an actor panicked".to_owned());
    let disk = stage.disk();
    let slots = SlotSet::all();
    let timers = disk.timers_due(&slots, Timestamp(i64::MAX), usize::MAX);
    let timers = timers.now_or_never().unwrap().unwrap();
    stage.require(timers.is_empty(), || format!("timers are left over: {timers:?}"));
}

pub(crate) fn records(stage: &Stage) {
    the_inbox_follows_the_record(stage);
    approvals::nothing_waits(stage);
    let executions = stage.executions();
    let mut states = BTreeMap::new();
    let mut children = BTreeSet::new();
    for projection in &executions {
        let id = &projection.header.id;
        let facts = stage.facts(id);
        let lawful = std::panic::catch_unwind(|| {
            law::numbers_have_no_gaps(&facts);
            law::the_order_of_facts_is_valid(&facts);
            if projection.ended_at.is_some() {
                spans::check(&projection.header, &facts);
            }
            law::children_of(&facts)
        });
        stage.require(lawful.is_ok(), || format!("the record of {id} is not lawful, see above"));
        for child in lawful.unwrap_or_default().into_keys() {
            stage.require(!children.contains(&child), || format!("{child} has two parents"));
            children.insert(child);
        }
        nothing_wakes_too_early(stage, id, &facts);
        let Some(plan) = stage.plans.get(&*projection.header.workflow_id) else { continue };
        let machine = Machine::replay(Arc::clone(plan), id.clone(), &facts).unwrap();
        the_row_is_the_fold(stage, projection, machine.state());
        states.insert(id.clone(), machine);
    }
    for projection in &executions {
        if let Some(parent) = &projection.header.parent {
            has_a_parent(stage, &projection.header.id, parent);
        }
    }
    compensations::check(stage, &states);
    for machine in states.values() {
        outputs_are_those_of_children(stage, machine, &states);
    }
}

/// Checks that the inbox has exactly what waits for a person.
pub(crate) fn the_inbox_follows_the_record(stage: &Stage) {
    let mut waiting = BTreeSet::new();
    for projection in stage.executions() {
        let Projection { header, .. } = projection;
        let Some(plan) = stage.plans.get(&*header.workflow_id) else { continue };
        let facts = stage.facts(&header.id);
        let machine = Machine::replay(Arc::clone(plan), header.id.clone(), &facts).unwrap();
        if machine.state().end.is_some() {
            continue;
        }
        machine.state().each_live_node(machine.plan(), &mut |_, path, step, node| {
            if step.waits_for_generation(node.attempt) {
                // the asks are those of its generation
                return;
            }
            if let Some(wait) = node.wait().filter(|wait| node.child.is_none() && !wait.fired) {
                waiting.insert((header.id.to_string(), path.to_owned(), wait.id.to_string()));
            }
        });
    }
    let open = AskFilter { is_open: true, ..AskFilter::default() };
    let page = stage.disk().asks(&open, None, usize::MAX).now_or_never().unwrap().unwrap();
    let suspension = |id: &str| id.trim_start_matches(ASK_PREFIX).to_owned();
    let listed = page.asks.into_iter().filter_map(|ask| match ask.subject {
        AskSubject::Step(AskedStep { execution_id, path, .. }) => {
            Some((execution_id.to_string(), path.to_string(), suspension(&ask.id)))
        }
        AskSubject::Call(_) => None,
    });
    let listed: BTreeSet<_> = listed.collect();
    stage.require(listed == waiting, || {
        format!("the inbox has {listed:?}, and what waits is {waiting:?}")
    });
}

/// Checks that all executions have ended.
pub(crate) fn nothing_is_stuck(stage: &Stage) {
    let open = stage.executions();
    for found in open.iter().filter(|it| !it.status.is_terminal()) {
        let (id, status) = (&found.header.id, found.status);
        stage.violated(&format!("{id} is stuck as {status:?}"));
    }
}

/// Checks that suspended executions wait only for an answer or for time, because only these can
/// arrive after a restart.
pub(crate) fn nothing_is_forgotten(stage: &Stage) {
    the_inbox_follows_the_record(stage);
    let limits = MachineLimits::default();
    let moment = Moment {
        now: Timestamp(0),
        new_id: &|| ExecutionId::trusted("unused"),
        missing: &|_| None,
        limits: &limits,
        budget: &Budget::turn(),
        closures: &Closures::default,
    };
    let suspended = stage.executions().into_iter().filter(|it| it.status == Status::Suspended);
    for projection in suspended {
        let Projection { header, .. } = projection;
        let Some(plan) = stage.plans.get(&*header.workflow_id) else { continue };
        let facts = stage.facts(&header.id);
        let mut machine = Machine::replay(Arc::clone(plan), header.id.clone(), &facts).unwrap();
        let next = machine.handle(Command::Recover, &moment);
        let is_waiting = matches!(&next, Ok(Handled::Decided(it)) if !it.has_facts());
        stage.require(is_waiting, || format!("{} is forgotten: {next:?}", header.id));
    }
}

fn the_row_is_the_fold(stage: &Stage, projection: &Projection, state: &State) {
    let announced = state.announced_suspension.as_ref();
    let announced = announced.map(|it| Arc::new(Suspension::clone(it).listed()));
    let is_so = projection.status == state.announced
        && projection.status == state.derived_status()
        && projection.last_seq == state.last_seq()
        && projection.ended_at == state.end.as_ref().map(|end| end.at)
        && projection.suspension == announced;
    stage.require(is_so, || format!("the row of {} is not its fold", state.id));
}

/// Checks that sleeps and deadlines end when they are due and not before.
fn nothing_wakes_too_early(stage: &Stage, id: &ExecutionId, facts: &[Recorded]) {
    let mut until: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for recorded in facts {
        match &recorded.fact {
            Fact::StepSlept { path, until: end, .. } => {
                until.insert(path, *end);
            }
            Fact::StepSuspended { path, deadline: Some(deadline), .. } => {
                until.insert(path, *deadline);
            }
            Fact::StepCompleted { path, .. }
            | Fact::StepResumed { path, by: ResumedBy::Deadline, .. }
            | Fact::TimerFired { path } => {
                let is_due = until.remove(&**path).is_none_or(|end| recorded.at >= end);
                stage.require(is_due, || format!("{id} {path} woke too early"));
            }
            Fact::StepResumed { path, by: ResumedBy::Caller, .. } => {
                until.remove(&**path);
            }
            _ => {}
        }
    }
}

fn has_a_parent(stage: &Stage, child: &ExecutionId, parent: &Parent) {
    let begun = stage.facts(&parent.execution).into_iter().any(|recorded| {
        matches!(&recorded.fact, Fact::ChildStarted { path, child: id, .. }
            if path == &parent.path && id == child)
    });
    let facts = stage.facts(child);
    // One that its parent did not take is reversed beside it.
    let reversed = start_of(&facts).and_then(|start| start.reversal.as_ref());
    let reversed = reversed.and_then(|reversal| stage.projection(&reversal.execution));
    let is_beside = reversed.is_some_and(|it| it.header.parent.as_ref() == Some(parent));
    stage.require(begun || is_beside, || {
        format!("{child} was started without a fact of {parent:?}")
    });
}

fn outputs_are_those_of_children(
    stage: &Stage,
    machine: &Machine,
    states: &BTreeMap<ExecutionId, Machine>,
) {
    for step in machine.state().steps(machine.plan()) {
        let (Some(child), StepStatus::Completed) = (&step.child, step.status) else { continue };
        let end = states.get(child).and_then(|child| child.state().end.as_ref());
        let result = match end.map(|end| &end.outcome) {
            Some(Outcome::Completed { result }) => Some(result),
            _ => None,
        };
        stage.require(result.is_some() && result == step.output.as_ref(), || {
            format!(
                "{} {} has the output {:?}, its child {result:?}",
                machine.state().id,
                step.path,
                step.output
            )
        });
    }
}

/// Returns the record as text, and its digest.
pub(crate) fn report(stage: &Stage) -> Report {
    let mut executions = stage.executions();
    executions.sort_by(|a, b| a.header.id.cmp(&b.header.id));
    let mut hasher = DefaultHasher::new();
    let mut count = 0;
    let mut story = stage.story();
    for projection in &executions {
        let facts = stage.facts(&projection.header.id);
        let zero = facts.first().map_or(Timestamp(0), |fact| fact.at);
        let header = &projection.header;
        story.push_str(&format!("\n{} of {}\n", header.id, header.workflow_id));
        for (line, recorded) in picture::lines(&facts, zero).iter().zip(&facts) {
            story.push_str(&format!("{:>9} {line}\n", recorded.at.ms_since(zero)));
        }
        for recorded in &facts {
            stage.count(&name_of(&recorded.fact));
        }
        serde_json::to_string(&facts).unwrap().hash(&mut hasher);
        count += facts.len();
    }
    Report {
        digest: hasher.finish(),
        executions: executions.len(),
        facts: count,
        counts: stage.counts(),
        violations: stage.violations(),
        story,
    }
}

/// Returns the kind of a fact for counting.
fn name_of(fact: &Fact) -> String {
    let text = format!("{fact:?}");
    let name = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match fact {
        Fact::StepStarted { interrupted: true, .. } => format!("{name} after a crash"),
        Fact::StepResumed { by, .. } => format!("{name} by {by:?}"),
        Fact::StepFailed { error, .. } if error.contains("timed out") => format!("{name} in time"),
        Fact::StepFailed { error, .. } if error.contains("interrupted") => {
            format!("{name} interrupted")
        }
        _ => name.to_owned(),
    }
}
