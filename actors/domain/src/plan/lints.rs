//! Lints: probable mistakes in definitions that compile, such as names that are not in scope, keys
//! that a schema does not have, constant conditions, and syntax of other languages.
//!
//! Not a part of [`Plan::compile`](super::Plan::compile), because executions continue with stored
//! definitions that are older than a lint.

mod absent;
mod comparisons;
mod conditions;
mod constant_inputs;
mod constants;
mod fields;
mod formats;
mod here;
mod lookalikes;
mod outputs;
mod paths;
mod remarks;
mod shape;
mod texts;
mod unrun;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::definition::{Block, Body, StepDefinition, WorkflowDefinition};
use crate::expression::{Guard, PathKey, Reading, SCOPE_NAMES};
use crate::failure::ErrorKind;

pub use self::constant_inputs::{Callee, ConstantInput, constant_inputs};
pub use self::constants::constant_condition;
pub use self::formats::format_remarks;
pub use self::remarks::{Form, Remark, no_function, remarks};
pub use self::shape::Shape;

use self::absent::Allowed;
use self::here::Here;
use self::remarks::{not_in_scope, of_reading, reading};
use self::shape::{NUMBER, TEXT};
use self::texts::{Text, Timing};
use self::unrun::{not_yet, resume_problem, unsure};

/// Keys of `execution`.
pub const EXECUTION_KEYS: [&str; 5] = ["id", "workflowId", "userId", "conversationId", "startedAt"];

/// Keys of `resumed_by`.
pub const PRINCIPAL_KEYS: [&str; 2] = ["id", "verified"];

/// Keys of `error`.
pub const ERROR_KEYS: [&str; 5] = ["kind", "status", "message", "stepId", "attempt"];

/// Authentication of the callers that start executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// Every caller has a token, so `user` is set; or this is unknown.
    Named,
    /// Some callers have no token.
    Any,
}

/// A probable mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// As in [`Problem`](super::Problem).
    pub place: Vec<String>,
    pub message: String,
    /// True if it must be corrected; otherwise it is a warning.
    pub is_error: bool,
    pub misspelt: Option<Misspelt>,
}

/// An unknown name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misspelt {
    pub written: String,
    /// Names that may have been meant.
    pub known: Vec<String>,
}

/// Returns the lints of a definition, in the order of its steps. Skips sources that do not
/// compile, since the plan reports them.
pub fn lints(definition: &WorkflowDefinition, callers: Callers) -> Vec<Finding> {
    let mut search = Search::new(definition, callers);
    search.found.extend(formats::of_workflow(definition));
    search.index(&definition.steps, &Containers::new());
    let data = Rc::clone(&search.input);
    search.steps(&definition.steps, Here { data, ..Here::default() });
    let mut end = Here::default();
    definition.steps.iter().for_each(|step| end.pass(step));
    for text in texts::of_result(definition) {
        search.text(None, &text, &end);
    }
    search.found
}

/// The containers around a step, each with the index of the block that contains the step.
type Containers<'d> = Vec<(&'d StepDefinition, usize)>;

struct Search<'d> {
    definition: &'d WorkflowDefinition,
    callers: Callers,
    /// Steps with the containers around them, by id.
    known_steps: HashMap<&'d str, (&'d StepDefinition, Containers<'d>)>,
    /// Ids that more than one step has.
    ambiguous: HashSet<&'d str>,
    /// Shapes of the outputs of the steps so far.
    outputs: HashMap<&'d str, Rc<Shape>>,
    input: Rc<Shape>,
    found: Vec<Finding>,
}

impl<'d> Search<'d> {
    fn new(definition: &'d WorkflowDefinition, callers: Callers) -> Self {
        Self {
            definition,
            callers,
            known_steps: HashMap::new(),
            ambiguous: HashSet::new(),
            outputs: HashMap::new(),
            input: definition.input_schema.as_ref().map_or_else(Rc::default, schema_shape),
            found: Vec::new(),
        }
    }

    fn index(&mut self, steps: &'d [StepDefinition], way: &Containers<'d>) {
        for step in steps {
            if self.known_steps.insert(&step.id, (step, way.clone())).is_some() {
                self.ambiguous.insert(&step.id);
            }
            self.found.extend(paths::of_step(step, way));
            for (lane, block) in step.kind.blocks().into_iter().enumerate() {
                let mut inner = way.clone();
                inner.push((step, lane));
                self.index(&block.steps, &inner);
            }
        }
    }

    /// Checks consecutive steps; returns the shape of the last one's output.
    fn steps(&mut self, steps: &'d [StepDefinition], mut here: Here<'d>) -> Rc<Shape> {
        for step in steps {
            let (last, first): (Vec<_>, Vec<_>) = texts::of_step(step)
                .into_iter()
                .partition(|text| text.timing == Timing::AfterIteration);
            first.iter().for_each(|text| self.text(Some(step), text, &here));
            let before_blocks = self.found.len();
            let blocks = self.blocks(step, &here);
            let of_blocks = self.found.split_off(before_blocks);
            let mut round = here.inside(step);
            round.of_earlier_iterations.clone_from(&here.of_earlier_iterations);
            round.data = blocks.first().map_or_else(Rc::default, Rc::clone);
            last.iter().for_each(|text| self.text(Some(step), text, &round));
            self.found.extend(conditions::of_step(step));
            self.found.extend(constant_inputs::of_suspension(step, self.definition));
            self.found.extend(unrun::idle_schemas(step));
            self.found.extend(formats::of_step(step));
            self.found.extend(of_blocks);
            let known = |root: &str, keys: &[PathKey]| self.shape(root, keys, Some(step), &here);
            let output = outputs::of_step(step, &here.data, &known, blocks.first());
            self.outputs.insert(&step.id, Rc::clone(&output));
            here.pass(step);
            here.data = output;
            let undo = texts::of_compensation(step);
            undo.iter().for_each(|text| self.text(Some(step), text, &here));
        }
        here.data
    }

    /// Checks the blocks of a step; returns the shapes of their outputs.
    fn blocks(&mut self, step: &'d StepDefinition, here: &Here<'d>) -> Vec<Rc<Shape>> {
        let mut inside = here.inside(step);
        if let Some(items) = step.kind.items() {
            let known = |root: &str, keys: &[PathKey]| self.shape(root, keys, Some(step), here);
            inside.item = match Shape::of_mapping(&items.0, &known) {
                Shape::List(item) => Rc::from(item),
                other => {
                    self.found.extend(conditions::of_items(step, &items.0, &other));
                    Rc::default()
                }
            };
            inside.data = Rc::clone(&inside.item);
        }
        let blocks = step.kind.blocks().into_iter().enumerate();
        let of_block = |(lane, block): (usize, &'d Block)| {
            let mut inner = inside.clone();
            inner.containers.push((step, lane));
            inner.tested_paths.extend(conditions::tested_paths(step, lane));
            self.steps(&block.steps, inner)
        };
        blocks.map(of_block).collect()
    }

    fn text(&mut self, step: Option<&'d StepDefinition>, text: &Text<'_>, here: &Here<'d>) {
        let Ok(reading) = reading(text.source, text.form) else { return };
        let mut found: Vec<_> = reading
            .names()
            .into_iter()
            .filter_map(|name| self.name(name, step, text, here))
            .collect();
        found.extend(of_reading(&reading, text.source, text.form, &names_at(text, here)));
        found.extend(self.references(&reading, step, here));
        let allowed = Allowed { reading: &reading, around: &here.tested_paths };
        for path in &reading.paths {
            if self.name(&path.root, step, text, here).is_none() {
                found.extend(absent::none(path, step, self.callers, &allowed));
            }
            let Some(root) = self.root(&path.root, &path.keys, step, here) else { continue };
            if !path.is_optional {
                found.extend(fields::remark(&root.way, root.keys, &root.shape));
            }
            found.extend(absent::optional(path, &root.way, root.keys, &root.shape, &allowed));
        }
        for compared in &reading.compared {
            let shape = self.shape(&compared.path.root, &compared.path.keys, step, here);
            found.extend(comparisons::remark(compared, &shape));
        }
        let place = step.map_or_else(Vec::new, place_of);
        let place: Vec<_> = place.into_iter().chain(text.keys.iter().cloned()).collect();
        for remark in found {
            let finding = remark.at(place.clone());
            if !self.found.contains(&finding) {
                self.found.push(finding);
            }
        }
    }

    /// Checks a name that is read at a place.
    fn name(
        &self,
        name: &str,
        step: Option<&StepDefinition>,
        text: &Text<'_>,
        here: &Here<'d>,
    ) -> Option<Remark> {
        match name {
            "item" if !here.has_item => {
                let message = "`item` is none here: this is not inside an andForEach";
                Some(Remark::error(message.to_owned()))
            }
            "index" if !here.has_index => {
                let message = "`index` is none here: this is not inside an andForEach or a loop";
                Some(Remark::error(message.to_owned()))
            }
            "resume" | "resumed_by" => {
                let problem = resume_problem(step, text)?;
                Some(Remark::warning(format!("`{name}` is none here{problem}")))
            }
            "error" if text.timing != Timing::AfterFailure => {
                let message =
                    "`error` is none here: only `on_error`, `retry` and `compensate` have it";
                Some(Remark::error(message.to_owned()))
            }
            _ if SCOPE_NAMES.contains(&name) => None,
            _ => Some(not_in_scope(name, text.source, &names_at(text, here))),
        }
    }

    /// Checks the steps that are read at a place.
    fn references(
        &self,
        reading: &Reading,
        step: Option<&StepDefinition>,
        here: &Here<'d>,
    ) -> Vec<Remark> {
        let mut found = Vec::new();
        for id in reading.steps().into_iter().filter(|id| !self.ambiguous.contains(id)) {
            let mut of_step = reading.paths.iter().filter(|path| path.step() == Some(id));
            let is_tested = of_step.clone().any(|path| path.guard == Guard::Presence);
            let is_optional = is_tested || of_step.all(|path| path.is_optional);
            match self.known_steps.get(id) {
                Some((read, way)) if here.visible.contains(id) => {
                    let reason = unsure(read, way, here).filter(|_| !is_optional);
                    found.extend(reason.map(|reason| {
                        let message = format!("step {id} {reason}; add a `default()`");
                        Remark::warning(message)
                    }));
                }
                Some((_, way)) => found.push(Remark::error(not_yet(id, way, step, here))),
                // it may be a step whose id is ambiguous
                None if !self.ambiguous.is_empty() => {}
                None => {
                    let mut known: Vec<_> = self.known_steps.keys().copied().collect();
                    known.sort_unstable();
                    found.push(Remark::error(format!("there is no step {id}")).meant(id, known));
                }
            }
        }
        found
    }

    /// Returns the shape of a value at a place.
    fn shape(
        &self,
        root: &str,
        keys: &[PathKey],
        step: Option<&StepDefinition>,
        here: &Here<'d>,
    ) -> Shape {
        let root = self.root(root, keys, step, here);
        root.map_or(Shape::Any, |root| root.shape.under(root.keys).clone())
    }

    /// Returns the longest beginning of a path whose shape is known.
    fn root<'k>(
        &self,
        root: &str,
        keys: &'k [PathKey],
        step: Option<&StepDefinition>,
        here: &Here<'d>,
    ) -> Option<Root<'k>> {
        let shape = match root {
            "input" => Rc::clone(&self.input),
            "data" => Rc::clone(&here.data),
            "item" => Rc::clone(&here.item),
            "index" => Rc::new(Shape::Plain(NUMBER)),
            "execution" => Rc::new(Shape::closed(EXECUTION_KEYS.map(|key| (key, Shape::Any)))),
            "resumed_by" => Rc::new(Shape::closed(PRINCIPAL_KEYS.map(|key| (key, Shape::Any)))),
            "error" => Rc::new(error_shape(step.is_none_or(calls_function))),
            "resume" => {
                let own = step.and_then(|step| step.resume_schema.as_ref());
                let schema = own.or(self.definition.resume_schema.as_ref());
                schema.map_or_else(Rc::default, schema_shape)
            }
            "steps" => {
                let (PathKey::Name(id), keys) = keys.split_first()? else { return None };
                if self.ambiguous.contains(id.as_str()) {
                    return None;
                }
                let shape = Rc::clone(self.outputs.get(id.as_str())?);
                return Some(Root { way: format!("steps.{id}"), keys, shape });
            }
            _ => return None,
        };
        Some(Root { way: root.to_owned(), keys, shape })
    }
}

/// Returns the names in scope of a text.
fn names_at(text: &Text<'_>, here: &Here<'_>) -> Vec<&'static str> {
    let is_there = |name: &&str| match *name {
        "error" => text.timing == Timing::AfterFailure,
        "item" => here.has_item,
        "index" => here.has_index,
        _ => true,
    };
    SCOPE_NAMES.into_iter().filter(is_there).collect()
}

/// A value of known shape, and the keys that are looked up in it.
struct Root<'k> {
    way: String,
    keys: &'k [PathKey],
    shape: Rc<Shape>,
}

/// Returns true if the step, or one inside it, calls a function, which may name its failures.
fn calls_function(step: &StepDefinition) -> bool {
    let calls = |body: &Body| matches!(body, Body::Run { .. });
    step.kind.body().is_some_and(calls)
        || step.kind.blocks().iter().any(|block| block.steps.iter().any(calls_function))
}

/// Returns the shape of `error`.
fn error_shape(may_be_named: bool) -> Shape {
    let kinds = ErrorKind::ALL.map(|kind| kind.as_str().to_owned());
    Shape::closed(ERROR_KEYS.map(|key| {
        let shape = match key {
            "kind" if may_be_named => Shape::Plain(TEXT),
            "kind" => Shape::OneOf(kinds.to_vec()),
            "status" | "attempt" => Shape::Plain(NUMBER),
            _ => Shape::Plain(TEXT),
        };
        (key, shape)
    }))
}

fn schema_shape(schema: &serde_json::Value) -> Rc<Shape> {
    Rc::new(Shape::of_schema(schema))
}

fn place_of(step: &StepDefinition) -> Vec<String> {
    vec!["steps".to_owned(), step.id.clone()]
}

/// Adds the ids of all steps inside a step.
fn collect_inside<'d>(step: &'d StepDefinition, ids: &mut HashSet<&'d str>) {
    for inner in step.kind.blocks().into_iter().flat_map(|block| &block.steps) {
        ids.insert(&inner.id);
        collect_inside(inner, ids);
    }
}

#[cfg(test)]
mod tests;
