//! Conditions of steps that are always true or false, and blocks that never run because of them.

use serde_json::Value;

use super::constants::{Constant, constant};
use super::remarks::{Form, reading};
use super::shape::Shape;
use super::{Finding, place_of};
use crate::definition::{Block, Container, LoopRule, StepDefinition};
use crate::expression::Path;

/// Returns the lints of a step's own conditions.
pub(super) fn of_step(step: &StepDefinition) -> Vec<Finding> {
    let finding = |keys: &[&str], message: String, is_error: bool| {
        let keys = keys.iter().map(|key| (*key).to_owned());
        let place = place_of(step).into_iter().chain(keys).collect();
        Finding { place, message, is_error, misspelt: None }
    };
    let kind = &step.kind;
    let mut found = of_attempts(step);
    if let Some(LoopRule { when, again_if, max_iterations }) = kind.loop_rule() {
        if let Some(endless) = Constant::of(when).filter(|it| it.is_true == again_if) {
            let effect = format!(": the step fails after max_iterations = {max_iterations}");
            found.push(finding(&["when"], endless.message(&effect), false));
        }
    } else if kind.items().and_then(constant).is_some_and(|items| !items.is_array()) {
        found.push(finding(&["items"], "must be an array".to_owned(), true));
    } else {
        let has_default = kind.step_type().container() == Some(Container::OneOf);
        let conditions = kind.conditions();
        let of_blocks = of_blocks(&conditions, &kind.blocks(), has_default).into_iter();
        found
            .extend(of_blocks.map(|(key, message)| {
                finding(&key.split('.').collect::<Vec<_>>(), message, false)
            }));
    }
    found
}

/// Reports the conditions of a step's suspension and of its retries, also those of its
/// compensation.
fn of_attempts(step: &StepDefinition) -> Vec<Finding> {
    let asks = step.suspend.as_ref().and_then(|rule| rule.when.as_deref());
    let retries = [
        (&[][..], step.retry.as_ref()),
        (&["compensate"], step.compensate.as_ref().map(|it| &it.retry)),
    ];
    let mut conditions = vec![(
        vec!["suspend", "when"],
        asks,
        ": the step asks each time, as without `when`",
        ": the step never asks",
    )];
    for (around, retry) in retries {
        let at = |key| [around, &["retry", key]].concat();
        let (on, never) =
            (retry.and_then(|it| it.on.as_deref()), retry.and_then(|it| it.never.as_deref()));
        let (all, none) = (": every failure is repeated", ": no failure is repeated");
        conditions.push((at("on"), on, all, none));
        conditions.push((at("never"), never, none, ": it has no effect"));
    }
    let found = conditions.into_iter().filter_map(|(keys, source, if_true, if_false)| {
        let constant = Constant::of(source?)?;
        let message = constant.message(if constant.is_true { if_true } else { if_false });
        let place = place_of(step).into_iter().chain(keys.into_iter().map(str::to_owned));
        Some(Finding { place: place.collect(), message, is_error: false, misspelt: None })
    });
    found.collect()
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

/// Reports the conditions of blocks that are never true, and the first that always is; each with
/// its key. `has_default`: the last block of several may have `true`, to run if no other does.
fn of_blocks<'k>(
    conditions: &'k [(String, &str)],
    blocks: &[&Block],
    has_default: bool,
) -> Vec<(&'k str, String)> {
    let mut found = Vec::new();
    for (index, (key, when)) in conditions.iter().enumerate() {
        let mut names = blocks.iter().skip(index).map(|block| block.name.as_str());
        let own = names.next().unwrap_or_default();
        let Some(constant) = Constant::of(when) else { continue };
        if !constant.is_true {
            let effect = format!(": block {own} never runs");
            found.push((key.as_str(), constant.message(&effect)));
            continue;
        }
        let effect = match names.collect::<Vec<_>>().as_slice() {
            [] if has_default && index > 0 && constant.is_literal => return found,
            [] if index > 0 => format!(": block {own} runs if no other does"),
            [] => format!(": block {own} runs each time"),
            [name] => format!(": block {name} never runs"),
            names => format!(": blocks {} never run", names.join(", ")),
        };
        found.push((key, constant.message(&effect)));
        return found;
    }
    found
}
