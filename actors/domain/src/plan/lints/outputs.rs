//! Shapes of the outputs of steps.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::definition::{OnError, Output, StepDefinition, StepKind};
use crate::expression::PathKey;

use super::shape::{Shape, TEXT};

/// Returns the shape of a step's output. `data`: shape of its input; `known`: shapes of the values
/// that its texts read; `block`: shape of its first block's output.
pub(super) fn of_step(
    step: &StepDefinition,
    data: &Rc<Shape>,
    known: &dyn Fn(&str, &[PathKey]) -> Shape,
    block: Option<&Rc<Shape>>,
) -> Rc<Shape> {
    if step.on_error != OnError::Fail {
        return Rc::default();
    }
    let found = of_kind(&step.kind, data, known, block);
    match &step.output_schema {
        Some(schema) if *found == Shape::Any => Shape::of_schema(schema).into(),
        Some(_) | None => found,
    }
}

fn of_kind(
    kind: &StepKind,
    data: &Rc<Shape>,
    known: &dyn Fn(&str, &[PathKey]) -> Shape,
    block: Option<&Rc<Shape>>,
) -> Rc<Shape> {
    let first_block = || block.map_or_else(Rc::default, Rc::clone);
    match kind.output() {
        Output::Mapping(map) => Shape::of_mapping(&map.0, known).into(),
        Output::Answer(schema) => schema.map_or_else(answer, Shape::of_schema).into(),
        Output::Data => Rc::clone(data),
        Output::OfBlock => first_block(),
        Output::ListOfBlock => Shape::List(Box::new(Shape::clone(&first_block()))).into(),
        Output::List => Shape::List(Box::default()).into(),
        Output::Unknown => Rc::default(),
    }
}

/// Returns the shape of an agent's answer without a schema.
fn answer() -> Shape {
    let keys = [("text", Shape::Plain(TEXT)), ("usage", Shape::Any)];
    let keys = keys.into_iter().map(|(key, shape)| (key.to_owned(), shape)).collect();
    Shape::Object { keys, optional: BTreeSet::new(), is_closed: false }
}
