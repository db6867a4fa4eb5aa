//! Values made from expressions.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::error::{Refusal, index_step, key_step};
use super::json::Allowance;
use super::{Expression, ExpressionError, Scope};
use crate::definition::Mapping;
use crate::effort;

const DEPTH_MAX: usize = 64;

/// A [`Mapping`] with its expressions compiled. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CompiledMapping {
    root: Arc<Part>,
    names: Arc<HashSet<String>>,
}

#[derive(Debug)]
enum Part {
    Literal(Value),
    Expression(Expression),
    Items(Vec<Part>),
    Members(Vec<(String, Part)>),
}

impl CompiledMapping {
    /// Compiles every string of the mapping; an error names the key path of the string.
    pub fn compile(mapping: &Mapping) -> Result<Self, ExpressionError> {
        let root = compile(&mapping.0, 0)?;
        let mut names = HashSet::new();
        root.collect_names(&mut names);
        Ok(Self { root: Arc::new(root), names: Arc::new(names) })
    }

    /// Returns the errors of all strings of a mapping that does not compile, in their order, each
    /// with the keys from the mapping down.
    pub fn problems(mapping: &Mapping) -> Vec<(Vec<String>, ExpressionError)> {
        let mut found = Vec::new();
        collect_problems(&mapping.0, &mut Vec::new(), &mut found);
        found
    }

    /// Returns the names that the expressions read, functions included, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns true if any of the expressions reads the name.
    pub fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Evaluates all expressions; the scope's limit applies to the whole value.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, ExpressionError> {
        effort::bounded(|| self.root.evaluate(scope, &mut Allowance::new(scope.bytes_max())))
    }
}

fn compile(value: &Value, depth: usize) -> Result<Part, ExpressionError> {
    if depth > DEPTH_MAX {
        let message = format!("nested deeper than {DEPTH_MAX} levels");
        return Err(whole(Refusal::new(message)));
    }
    Ok(match value {
        Value::String(source) => Part::Expression(Expression::compile(source)?),
        Value::Array(items) => {
            let items = items.iter().enumerate().map(|(index, item)| {
                compile(item, depth + 1).map_err(|error| error.inside(&index_step(index)))
            });
            Part::Items(items.collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| {
                let part = compile(member, depth + 1);
                Ok((key.clone(), part.map_err(|error| error.inside(&key_step(key)))?))
            });
            Part::Members(members.collect::<Result<_, _>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Part::Literal(value.clone()),
    })
}

fn collect_problems(
    value: &Value,
    place: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, ExpressionError)>,
) {
    let is_too_deep = place.len() >= DEPTH_MAX;
    let mut inside = |key: String, inner: &Value| {
        place.push(key);
        collect_problems(inner, place, found);
        place.pop();
    };
    match value {
        Value::Array(items) if !is_too_deep => {
            let items = items.iter().enumerate();
            items.for_each(|(index, item)| inside(index.to_string(), item));
        }
        Value::Object(members) if !is_too_deep => {
            members.iter().for_each(|(key, member)| inside(key.clone(), member));
        }
        leaf => {
            let problem = compile(leaf, place.len()).err();
            found.extend(problem.map(|problem| (place.clone(), problem)));
        }
    }
}

impl Part {
    fn collect_names(&self, names: &mut HashSet<String>) {
        match self {
            Self::Literal(_) => {}
            Self::Expression(expression) => names.extend(expression.names().map(str::to_owned)),
            Self::Items(items) => items.iter().for_each(|item| item.collect_names(names)),
            Self::Members(members) => {
                members.iter().for_each(|(_, member)| member.collect_names(names));
            }
        }
    }

    fn evaluate(&self, scope: &Scope, allowance: &mut Allowance) -> Result<Value, ExpressionError> {
        match self {
            Self::Literal(value) => {
                allowance.spend_json(value).map_err(whole)?;
                Ok(value.clone())
            }
            Self::Expression(expression) => expression.evaluate_within(scope, allowance),
            Self::Items(items) => {
                allowance.spend(2 + items.len().saturating_sub(1)).map_err(whole)?;
                let items = items.iter().enumerate().map(|(index, item)| {
                    item.evaluate(scope, allowance)
                        .map_err(|error| error.inside(&index_step(index)))
                });
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Self::Members(members) => {
                allowance.spend(2 + members.len().saturating_sub(1)).map_err(whole)?;
                let mut object = Map::with_capacity(members.len());
                for (key, member) in members {
                    allowance.spend_text(key).and_then(|()| allowance.spend(1)).map_err(whole)?;
                    let value = member.evaluate(scope, allowance);
                    object.insert(key.clone(), value.map_err(|e| e.inside(&key_step(key)))?);
                }
                Ok(Value::Object(object))
            }
        }
    }
}

/// Converts a refusal that concerns no expression.
fn whole(refusal: Refusal) -> ExpressionError {
    let Refusal { place, message, is_undefined, .. } = refusal;
    ExpressionError { place, message, is_undefined, ..ExpressionError::default() }
}
