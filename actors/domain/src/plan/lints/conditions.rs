//! Constant conditions, and blocks that never run because of them.

use serde_json::Value;

use super::remarks::{Form, reading};
use super::shape::Shape;
use super::{Finding, place_of};
use crate::definition::{Block, LoopRule, Projection, StepDefinition};
use crate::expression::{CompiledProjection, Expression, Path, Scope};

/// Returns the lints of a step's own conditions.
pub(super) fn of_step(step: &StepDefinition) -> Vec<Finding> {
    let finding = |keys: &[&str], message: String, is_error: bool| {
        let keys = keys.iter().map(|key| (*key).to_owned());
        let place = place_of(step).into_iter().chain(keys).collect();
        Finding { place, message, is_error, misspelt: None }
    };
    let kind = &step.kind;
    if let Some(LoopRule { when, again_if, max_iterations }) = kind.loop_rule() {
        let word = if again_if { "always" } else { "never" };
        let message =
            format!("is {word} true: the step fails after max_iterations = {max_iterations}");
        let is_endless = truth(when) == Some(again_if);
        return is_endless.then(|| finding(&["when"], message, false)).into_iter().collect();
    }
    if kind.items().and_then(constant).is_some_and(|items| !items.is_array()) {
        return vec![finding(&["items"], "must be an array".to_owned(), true)];
    }
    let conditions = kind.conditions();
    of_blocks(&conditions, &kind.blocks())
        .into_iter()
        .map(|(key, message)| finding(&key.split('.').collect::<Vec<_>>(), message, false))
        .collect()
}

/// Returns the paths read by the conditions that are evaluated before a lane begins.
pub(super) fn tested_paths(step: &StepDefinition, lane: usize) -> Vec<Path> {
    let conditions = step.kind.conditions().into_iter().take(lane + 1);
    let readings = conditions.filter_map(|(_, when)| reading(when, Form::Expression).ok());
    readings.flat_map(|reading| reading.paths).collect()
}

/// Reports items that are known not to be an array.
pub(super) fn of_items(step: &StepDefinition, items: &Value, shape: &Shape) -> Option<Finding> {
    let what =
        shape.plain().or_else(|| matches!(shape, Shape::Object { .. }).then_some("an object"))?;
    let message = match items {
        Value::String(source) => format!("must be an array; `{}` is {what}", source.trim()),
        _ => return None,
    };
    let place = place_of(step).into_iter().chain(["items".to_owned()]).collect();
    Some(Finding { place, message, is_error: true, misspelt: None })
}

/// Reports the conditions of blocks that are never true, and the first that always is if other
/// blocks follow; each with its key.
fn of_blocks<'k>(conditions: &'k [(String, &str)], blocks: &[&Block]) -> Vec<(&'k str, String)> {
    let mut found = Vec::new();
    for (index, (key, when)) in conditions.iter().enumerate() {
        let mut names = blocks.iter().skip(index).map(|block| block.name.as_str());
        let own = names.next().unwrap_or_default();
        match truth(when) {
            Some(false) => {
                found.push((key.as_str(), format!("is never true: block {own} never runs")));
            }
            Some(true) => {
                let message = match names.collect::<Vec<_>>().as_slice() {
                    [] => return found,
                    [name] => format!("is always true: block {name} never runs"),
                    names => format!("is always true: blocks {} never run", names.join(", ")),
                };
                found.push((key, message));
                return found;
            }
            None => {}
        }
    }
    found
}

/// Returns the value of a constant condition.
pub(super) fn truth(source: &str) -> Option<bool> {
    let expression = Expression::compile(source).ok()?;
    if expression.names().next().is_some() {
        return None;
    }
    expression.holds(&Scope::new()).ok()
}

/// Returns the value of a constant projection.
pub(super) fn constant(source: &Projection) -> Option<Value> {
    let projection = CompiledProjection::compile(source).ok()?;
    if projection.names().next().is_some() {
        return None;
    }
    projection.evaluate(&Scope::new()).ok()
}
