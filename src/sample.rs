//! Sample values that meet a JSON Schema.
//!
//! The sampler reads the schema and makes one value; where the schema leaves a choice it takes
//! the first. When the validator refuses the value, the sampler runs again with one choice made
//! otherwise, then two, within a bound of work: schemas come from callers.

mod array;
mod compose;
mod merge;
mod number;
mod object;
mod pattern;
mod plan;
mod reference;
mod text;

use std::collections::VecDeque;

use greenroom_actors::domain::schema::Schema;
use serde_json::{Map, Value};

use self::plan::{Choice, Plan};

/// Runs of the sampler for one schema.
const RUNS_MAX: usize = 256;

/// Subschemas visited in one run, and in all runs together: some milliseconds of work each.
const VISITS_PER_RUN_MAX: usize = 2_000;
const VISITS_MAX: usize = 50_000;

/// Copying so many parts of a schema, or so many bytes of text, counts as one visit.
const PARTS_PER_VISIT: usize = 32;

/// Subschemas inside one another; more than any schema that terminates needs.
const DEPTH_MAX: usize = 100;

const TYPES: [&str; 6] = ["string", "integer", "boolean", "object", "array", "null"];

/// Makes a value that the schema's validator accepts. The same schema always gives the same.
pub(crate) fn sample(schema: &Value) -> Result<Value, String> {
    let checker = Schema::compile(schema).map_err(|error| error.to_string())?;
    let mut refused = None;
    let mut visits_left = VISITS_MAX;
    let mut plans = VecDeque::from([Plan::default()]);
    for _ in 0..RUNS_MAX {
        let Some(plan) = plans.pop_front() else { break };
        let mut sampler = Sampler::new(schema, &plan, visits_left.min(VISITS_PER_RUN_MAX));
        let made = sampler.value(schema, 0);
        visits_left = visits_left.saturating_sub(sampler.visits);
        let refusal = match made {
            Ok(value) => match checker.check(&value) {
                Ok(()) => return Ok(value),
                Err(violation) => violation.to_string(),
            },
            Err(reason) => reason,
        };
        refused.get_or_insert(refusal);
        let room = RUNS_MAX.saturating_sub(plans.len());
        plans.extend(plan.variations(&sampler.choices).take(room));
        if visits_left == 0 {
            break;
        }
    }
    Err(format!("no sample found that meets the schema: {}", refused.unwrap_or_default()))
}

type Keywords = Map<String, Value>;

/// One run over a schema.
struct Sampler<'a> {
    root: &'a Value,
    plan: &'a Plan,
    /// In the order of asking.
    choices: Vec<Choice>,
    visits: usize,
    visits_max: usize,
    depth: usize,
    /// References that are being followed, outermost first.
    following: Vec<String>,
}

impl<'a> Sampler<'a> {
    fn new(root: &'a Value, plan: &'a Plan, visits_max: usize) -> Self {
        Self {
            root,
            plan,
            choices: Vec::new(),
            visits: 0,
            visits_max,
            depth: 0,
            following: Vec::new(),
        }
    }

    /// Makes a value for a subschema. Values of different `variant` differ where the schema
    /// lets them.
    fn value(&mut self, schema: &Value, variant: usize) -> Result<Value, String> {
        self.visits += 1;
        if self.visits > self.visits_max || self.depth > DEPTH_MAX {
            return Err("the schema is too large for a sample".to_owned());
        }
        self.depth += 1;
        let made = match schema {
            Value::Object(keywords) => self.composed(keywords, variant),
            Value::Bool(true) => Ok(text::text(&Keywords::new(), variant)?),
            _ => Err("no value is allowed".to_owned()),
        };
        self.depth -= 1;
        made
    }

    /// Makes a value from keywords that stand for themselves.
    fn plain(&mut self, keywords: &Keywords, variant: usize) -> Result<Value, String> {
        let mut types = types_of(keywords);
        if self.is_recursing() {
            types.sort_by_key(|name| *name != "null");
        }
        let choice = self.choose(types.len().max(1));
        match types.get(choice).copied() {
            Some("object") => self.object(keywords),
            Some("array") => self.array(keywords),
            Some("null") => Ok(Value::Null),
            Some("string") => {
                let text = text::text(keywords, variant + self.another())?;
                self.visits += text.as_str().map_or(0, str::len) / PARTS_PER_VISIT;
                Ok(text)
            }
            Some("boolean") => Ok(Value::Bool((variant + self.another()).is_multiple_of(2))),
            Some("integer") => number::number(keywords, true, variant + self.another()),
            Some("number") => match self.another() {
                0 => number::number(keywords, false, variant),
                _ => number::fraction(keywords, variant),
            },
            _ => Err("no type is allowed".to_owned()),
        }
    }

    /// Decides one of several ways: the first, unless the plan says otherwise.
    fn choose(&mut self, alternatives: usize) -> usize {
        self.decide(Choice { alternatives, of_scalar: false })
    }

    /// Whether the plan wants another scalar than the first that comes to mind: 0 or 1.
    fn another(&mut self) -> usize {
        self.decide(Choice { alternatives: 2, of_scalar: true })
    }

    fn decide(&mut self, choice: Choice) -> usize {
        let place = self.choices.len();
        self.choices.push(choice);
        self.plan.alternative_at(place).min(choice.alternatives.saturating_sub(1))
    }

    /// Whether the value being made stands inside one of the same reference: what is optional
    /// is then left out.
    fn is_recursing(&self) -> bool {
        self.following
            .iter()
            .enumerate()
            .any(|(at, reference)| self.following[..at].contains(reference))
    }
}

/// The types that the keywords allow, or suggest when they name none.
fn types_of(keywords: &Keywords) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => return vec![name],
        Some(Value::Array(names)) => return names.iter().filter_map(Value::as_str).collect(),
        _ => {}
    }
    let suggestions: [(&str, &[&str]); 4] = [
        ("object", &["properties", "required", "additionalProperties", "minProperties"]),
        ("array", &["items", "prefixItems", "minItems", "contains"]),
        ("string", &["pattern", "format", "minLength", "maxLength"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    for (name, signs) in suggestions {
        if signs.iter().any(|sign| keywords.contains_key(*sign)) {
            return vec![name];
        }
    }
    if keywords.contains_key("not") { TYPES.to_vec() } else { vec!["string"] }
}

/// Reads a keyword that counts something.
fn count_of(keywords: &Keywords, keyword: &str) -> Option<usize> {
    let value = keywords.get(keyword)?;
    // `3.0` counts as well
    let count = value.as_u64().or_else(|| value.as_f64().map(|float| float.max(0.0) as u64))?;
    usize::try_from(count).ok()
}

#[cfg(test)]
mod tests;
