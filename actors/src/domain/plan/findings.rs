//! What its author cannot have meant, in a definition that would run: names that cannot be there,
//! conditions that never change.
//!
//! Not a part of [`Plan::compile`](super::Plan::compile): executions go on with definitions that
//! were stored before anybody looked for this.

mod conditions;
mod given;
mod texts;

use std::collections::{HashMap, HashSet};

use crate::domain::definition::{Body, StepDefinition, StepKind, WorkflowDefinition};
use crate::domain::expression::{
    Expression, ExpressionError, References, SCOPE_NAMES, Template, is_function,
};

pub use self::given::{Callee, Given, given};

use self::texts::{Asked, Form, Text};

/// Something that its author cannot have meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// As in [`Problem`](super::Problem).
    pub place: Vec<String>,
    pub message: String,
    /// Whether it must be put right; else it works, but hardly as it was meant.
    pub is_error: bool,
    pub misspelt: Option<Misspelt>,
}

/// A name that stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misspelt {
    pub written: String,
    /// What could have been meant.
    pub known: Vec<String>,
}

/// Everything of the kind in a definition, in the order of its steps. What does not compile is
/// passed over: the plan says so.
pub fn findings(definition: &WorkflowDefinition) -> Vec<Finding> {
    let mut search = Search::default();
    search.learn(&definition.steps, &Way::new());
    search.steps(&definition.steps, Here::default());
    let end = Here { visible: search.ways.keys().copied().collect(), ..Here::default() };
    for text in texts::of_result(definition) {
        search.text(None, &text, &end);
    }
    search.found
}

/// The containers around a step, and the block of each that it is in.
type Way<'d> = Vec<(&'d StepDefinition, usize)>;

#[derive(Default)]
struct Search<'d> {
    /// Where each step is, by id.
    ways: HashMap<&'d str, Way<'d>>,
    found: Vec<Finding>,
}

/// What can be read at a place.
#[derive(Clone, Default)]
struct Here<'d> {
    /// Steps that may have run.
    visible: HashSet<&'d str>,
    around: Way<'d>,
    has_item: bool,
    has_index: bool,
}

impl<'d> Here<'d> {
    /// In a block of the step; earlier rounds of a loop can be read in it.
    fn inside(&self, step: &'d StepDefinition) -> Self {
        let mut inside = self.clone();
        match step.kind {
            StepKind::ForEach { .. } => (inside.has_item, inside.has_index) = (true, true),
            StepKind::DoWhile { .. } | StepKind::DoUntil { .. } => {
                inside.has_index = true;
                collect_inside(step, &mut inside.visible);
            }
            StepKind::When { .. }
            | StepKind::All { .. }
            | StepKind::Race { .. }
            | StepKind::Branch { .. }
            | StepKind::Then { .. }
            | StepKind::Tap { .. }
            | StepKind::Map { .. }
            | StepKind::Agent { .. }
            | StepKind::Workflow { .. }
            | StepKind::Sleep { .. }
            | StepKind::SleepUntil { .. } => {}
        }
        inside
    }
}

impl<'d> Search<'d> {
    fn learn(&mut self, steps: &'d [StepDefinition], way: &Way<'d>) {
        for step in steps {
            self.ways.insert(&step.id, way.clone());
            for (lane, block) in step.kind.blocks().into_iter().enumerate() {
                let mut inner = way.clone();
                inner.push((step, lane));
                self.learn(&block.steps, &inner);
            }
        }
    }

    fn steps(&mut self, steps: &'d [StepDefinition], mut here: Here<'d>) {
        for step in steps {
            let inside = here.inside(step);
            for text in texts::of_step(step) {
                let at = if text.asked == Asked::AfterRound { &inside } else { &here };
                self.text(Some(step), &text, at);
            }
            self.found.extend(conditions::of_step(step));
            for (lane, block) in step.kind.blocks().into_iter().enumerate() {
                let mut inner = inside.clone();
                inner.around.push((step, lane));
                self.steps(&block.steps, inner);
            }
            collect_inside(step, &mut here.visible);
            here.visible.insert(&step.id);
        }
    }

    fn text(&mut self, step: Option<&'d StepDefinition>, text: &Text<'_>, here: &Here<'d>) {
        let Ok(References { names, steps }) = references(text) else { return };
        let finding = |message: String, is_error: bool| {
            let place = step.map_or_else(Vec::new, place_of);
            let place = place.into_iter().chain(text.keys.iter().cloned()).collect();
            Finding { place, message, is_error, misspelt: None }
        };
        let unknown = |written: &str, known: Vec<String>| {
            Some(Misspelt { written: written.to_owned(), known })
        };
        for name in &names {
            let name = name.as_str();
            let found = match name {
                "item" if !here.has_item => {
                    finding("`item` is none here: no andForEach is around this".to_owned(), true)
                }
                "index" if !here.has_index => {
                    let message = "`index` is none here: neither an andForEach nor a loop is \
                                   around this";
                    finding(message.to_owned(), true)
                }
                "error" if text.asked != Asked::AfterFailure => {
                    let message = "`error` is none here: `on_error` and `retry` can read it";
                    finding(message.to_owned(), true)
                }
                "resume" => match resume_problem(step, text) {
                    Some(problem) => finding(format!("`resume` is none here{problem}"), false),
                    None => continue,
                },
                _ if SCOPE_NAMES.contains(&name) || is_function(name) => continue,
                _ => {
                    let mut known = SCOPE_NAMES.map(str::to_owned).to_vec();
                    known.retain(|it| it != "error" || text.asked == Asked::AfterFailure);
                    let message = format!("`{name}` is not in scope; {} are", known.join(", "));
                    let misspelt = unknown(name, known);
                    Finding { misspelt, ..finding(message, true) }
                }
            };
            self.found.push(found);
        }
        for id in steps.iter().filter(|id| !here.visible.contains(id.as_str())) {
            let found = match self.ways.get(id.as_str()) {
                Some(way) => finding(not_yet(id, way, step, here), true),
                None => {
                    let mut known: Vec<_> = self.ways.keys().map(ToString::to_string).collect();
                    known.sort_unstable();
                    let misspelt = unknown(id, known);
                    Finding { misspelt, ..finding(format!("there is no step {id}"), true) }
                }
            };
            self.found.push(found);
        }
    }
}

fn references(text: &Text<'_>) -> Result<References, ExpressionError> {
    match text.form {
        Form::Expression => Ok(Expression::compile(text.source)?.references()),
        Form::Template => Ok(Template::compile(text.source)?.references()),
    }
}

/// Why the data of a resume cannot be read, if it cannot.
fn resume_problem(step: Option<&StepDefinition>, text: &Text<'_>) -> Option<&'static str> {
    let Some(step) = step else {
        return Some(": a result is made when nothing waits; `steps.<id>` has what a step gave");
    };
    let may_suspend_itself = match &step.kind {
        StepKind::Then { body: Body::Run { .. } } => true,
        StepKind::Then {
            body: Body::Map(_) | Body::Http(_) | Body::Command(_) | Body::Tool { .. },
        }
        | StepKind::Tap { .. }
        | StepKind::Map { .. }
        | StepKind::Agent { .. }
        | StepKind::Workflow { .. }
        | StepKind::Sleep { .. }
        | StepKind::SleepUntil { .. }
        | StepKind::When { .. }
        | StepKind::All { .. }
        | StepKind::Race { .. }
        | StepKind::ForEach { .. }
        | StepKind::Branch { .. }
        | StepKind::DoWhile { .. }
        | StepKind::DoUntil { .. } => false,
    };
    match (&step.suspend, text.asked) {
        (Some(_), Asked::BeforeAnswer) => Some(": this is asked before anybody answers"),
        (Some(_), Asked::AtWork | Asked::AfterRound | Asked::AfterFailure) => None,
        (None, _) if may_suspend_itself => None,
        (None, _) => {
            Some(", unless the execution was suspended from outside: the step has no `suspend`")
        }
    }
}

/// Why a step that there is cannot have run.
fn not_yet(id: &str, way: &Way<'_>, step: Option<&StepDefinition>, here: &Here<'_>) -> String {
    let own = step.map_or("", |step| &step.id);
    if id == own {
        return format!("step {id} is this step, which has given nothing yet");
    }
    if here.around.iter().any(|(container, _)| container.id == id) {
        return format!("step {id} has given nothing yet: this is inside of it");
    }
    if way.iter().any(|(container, _)| container.id == own) {
        return format!("step {id} has not run yet: it is inside of this step");
    }
    let parting = here
        .around
        .iter()
        .zip(way)
        .find(|((one, lane), (other, its_lane))| one.id != other.id || lane != its_lane);
    if let Some(((one, _), (other, _))) = parting
        && one.id == other.id
    {
        let container = &one.id;
        return match one.kind {
            StepKind::Branch { .. } => {
                format!("step {id} is in another case of {container}, and only one case runs")
            }
            StepKind::All { .. }
            | StepKind::Race { .. }
            | StepKind::When { .. }
            | StepKind::ForEach { .. }
            | StepKind::DoWhile { .. }
            | StepKind::DoUntil { .. }
            | StepKind::Then { .. }
            | StepKind::Tap { .. }
            | StepKind::Map { .. }
            | StepKind::Agent { .. }
            | StepKind::Workflow { .. }
            | StepKind::Sleep { .. }
            | StepKind::SleepUntil { .. } => {
                format!("step {id} is in another block of {container}, which runs at the same time")
            }
        };
    }
    format!("step {id} has not run yet: it comes later")
}

fn place_of(step: &StepDefinition) -> Vec<String> {
    vec!["steps".to_owned(), step.id.clone()]
}

/// Adds the ids of all steps inside of a step.
fn collect_inside<'d>(step: &'d StepDefinition, ids: &mut HashSet<&'d str>) {
    for inner in step.kind.blocks().into_iter().flat_map(|block| &block.steps) {
        ids.insert(&inner.id);
        collect_inside(inner, ids);
    }
}

#[cfg(test)]
mod tests;
