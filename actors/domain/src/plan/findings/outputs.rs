//! What is known of what steps give.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::definition::{Body, OnError, StepDefinition, StepKind};
use crate::expression::PathKey;

use super::shape::{Shape, TEXT};

/// What is known of the output of a step that was given `data`. `known` tells of what its texts
/// read, `block` is what its first block gives.
pub(super) fn of_step(
    step: &StepDefinition,
    data: &Rc<Shape>,
    known: &dyn Fn(&str, &[PathKey]) -> Shape,
    block: Option<&Rc<Shape>>,
) -> Rc<Shape> {
    if step.on_error != OnError::Fail {
        return Rc::default();
    }
    let found: Rc<Shape> = match &step.kind {
        StepKind::Then { body: Body::Map(map) } | StepKind::Map { map } => {
            Shape::of_projection(&map.0, known).into()
        }
        StepKind::Agent { schema: Some(schema), .. } => Shape::of_schema(schema).into(),
        StepKind::Agent { schema: None, .. } => {
            let keys = [("text", Shape::Plain(TEXT)), ("usage", Shape::Any)];
            let keys = keys.into_iter().map(|(key, shape)| (key.to_owned(), shape)).collect();
            Shape::Object { keys, optional: BTreeSet::new(), is_closed: false }.into()
        }
        StepKind::Tap { .. } | StepKind::Sleep { .. } | StepKind::SleepUntil { .. } => {
            Rc::clone(data)
        }
        StepKind::ForEach { .. } => {
            let item = block.map_or(Shape::Any, |block| Shape::clone(block));
            Shape::List(Box::new(item)).into()
        }
        StepKind::DoWhile { .. } | StepKind::DoUntil { .. } => {
            block.map_or_else(Rc::default, Rc::clone)
        }
        // a list in the order of its blocks, whose items differ
        StepKind::All { .. } => Shape::List(Box::default()).into(),
        StepKind::Then {
            body: Body::Run { .. } | Body::Http(_) | Body::Command(_) | Body::Tool { .. },
        }
        | StepKind::Workflow { .. }
        | StepKind::When { .. }
        | StepKind::Race { .. }
        | StepKind::Branch { .. } => Rc::default(),
    };
    match &step.output_schema {
        Some(schema) if *found == Shape::Any => Shape::of_schema(schema).into(),
        Some(_) | None => found,
    }
}
