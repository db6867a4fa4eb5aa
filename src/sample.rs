//! Sample values that meet a JSON Schema.
//!
//! Serves the keywords that people write for agents and tools: types, `enum`, `const`, properties
//! and items, bounds, formats and patterns, `anyOf`, `oneOf`, `allOf` and references inside the
//! schema. Where a choice is left, the first alternative is taken. If the validator rejects the
//! value, the sampler runs again with one choice changed, then two, until it succeeds or its
//! budget is spent: schemas come from callers. Other keywords are left to these attempts.

mod array;
mod compose;
mod merge;
mod number;
mod object;
mod plan;
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

/// Copied parts of a schema, or bytes of text, that count as one visit.
const PARTS_PER_VISIT: usize = 32;

/// Nesting of subschemas; schemas that terminate need less.
const DEPTH_MAX: usize = 100;

/// Returns a value that the schema's validator accepts, always the same one for a schema, or the
/// reason why the first attempt failed.
pub(crate) fn sample(schema: &Value) -> Result<Value, String> {
    let checker = Schema::compile(schema).map_err(|error| error.to_string())?;
    let mut first_failure = None;
    let mut visits_left = VISITS_MAX;
    let mut plans = VecDeque::from([Plan::default()]);
    for _ in 0..RUNS_MAX {
        let Some(plan) = plans.pop_front() else { break };
        let mut sampler = Sampler::new(schema, &plan, visits_left.min(VISITS_PER_RUN_MAX));
        let made = sampler.value(schema, 0);
        visits_left = visits_left.saturating_sub(sampler.visits);
        let failure = match made {
            Ok(value) => match checker.check(&value) {
                Ok(()) => return Ok(value),
                Err(violation) => violation.to_string(),
            },
            Err(reason) => reason,
        };
        first_failure.get_or_insert(failure);
        let room = RUNS_MAX.saturating_sub(plans.len());
        plans.extend(plan.variations(&sampler.choices).take(room));
        if visits_left == 0 {
            break;
        }
    }
    Err(format!("no sample found that meets the schema: {}", first_failure.unwrap_or_default()))
}

type Keywords = Map<String, Value>;

/// One run over a schema.
struct Sampler<'a> {
    root: &'a Value,
    plan: &'a Plan,
    /// Choices of this run so far, in order.
    choices: Vec<Choice>,
    visits: usize,
    visits_max: usize,
    depth: usize,
    /// References being followed, outermost first.
    following: Vec<String>,
}

impl<'a> Sampler<'a> {
    fn new(root: &'a Value, plan: &'a Plan, visits_max: usize) -> Self {
        let (choices, following) = (Vec::new(), Vec::new());
        Self { root, plan, choices, visits: 0, visits_max, depth: 0, following }
    }

    /// Makes a value for a subschema. Values of different `variant` differ where the schema
    /// allows it.
    fn value(&mut self, schema: &Value, variant: usize) -> Result<Value, String> {
        self.visits += 1;
        if self.visits > self.visits_max || self.depth > DEPTH_MAX {
            return Err("the schema is too large for a sample".to_owned());
        }
        self.depth += 1;
        let made = match schema {
            Value::Object(keywords) => self.composed(keywords, variant),
            Value::Bool(true) => text::text(&Keywords::new(), variant),
            _ => Err("no value is allowed".to_owned()),
        };
        self.depth -= 1;
        made
    }

    /// Makes a value from keywords without references to other schemas.
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
            Some("number") => number::number(keywords, false, variant + self.another()),
            _ => Err("no type is allowed".to_owned()),
        }
    }

    /// Returns the index of the alternative to take: the first, unless the plan differs.
    fn choose(&mut self, alternatives: usize) -> usize {
        self.decide(Choice { alternatives, of_scalar: false })
    }

    /// Returns 1 if the plan asks for another scalar than the first candidate, else 0.
    fn another(&mut self) -> usize {
        self.decide(Choice { alternatives: 2, of_scalar: true })
    }

    fn decide(&mut self, choice: Choice) -> usize {
        let place = self.choices.len();
        self.choices.push(choice);
        self.plan.alternative_at(place).min(choice.alternatives.saturating_sub(1))
    }

    /// True inside a second use of the same reference: optional parts are then left out.
    fn is_recursing(&self) -> bool {
        let mut followed = self.following.iter().enumerate();
        followed.any(|(at, reference)| self.following[..at].contains(reference))
    }
}

/// Types that the keywords allow, or the likely one if they name none.
fn types_of(keywords: &Keywords) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => return vec![name],
        Some(Value::Array(names)) => return names.iter().filter_map(Value::as_str).collect(),
        _ => {}
    }
    let suggestions: [(&str, &[&str]); 3] = [
        ("object", &["properties", "required", "additionalProperties", "minProperties"]),
        ("array", &["items", "prefixItems", "minItems"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    let is_suggested = |signs: &[&str]| signs.iter().any(|sign| keywords.contains_key(*sign));
    let suggested = suggestions.into_iter().find(|(_, signs)| is_suggested(signs));
    vec![suggested.map_or("string", |(name, _)| name)]
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
