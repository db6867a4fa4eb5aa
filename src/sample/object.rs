//! Objects: what they require, and what else they may have.

use serde_json::{Map, Value};

use super::{Keywords, Sampler, count_of};

/// Attempts at another name for a property that only has to be there.
const NAMES_TRIED_MAX: usize = 100;

impl Sampler<'_> {
    /// Makes an object with all properties that the keywords name, or, where the plan or a
    /// recursion says so, only with those that are required.
    pub(super) fn object(&mut self, keywords: &Keywords) -> Result<Value, String> {
        let none = Map::new();
        let properties = keywords.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = match keywords.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let is_optional = |name: &str| !required.contains(&name);
        let has_optional = properties.keys().any(|name| is_optional(name));
        let room = count_of(keywords, "maxProperties")
            .map_or(usize::MAX, |most| most.saturating_sub(required.len()));
        let wants_optional = has_optional && !self.is_recursing() && self.choose(2) == 0;

        let mut made = Map::new();
        let mut optional_made = 0;
        for (name, schema) in properties {
            if !is_optional(name) {
                made.insert(name.clone(), self.value(schema, 0)?);
            } else if wants_optional && optional_made < room {
                // what cannot be made, and need not be, is left out
                if let Ok(value) = self.value(schema, 0) {
                    made.insert(name.clone(), value);
                    optional_made += 1;
                }
            }
        }
        for name in required {
            if !made.contains_key(name) {
                made.insert(name.to_owned(), self.value(other_schema(keywords), 0)?);
            }
        }
        self.fill(keywords, &mut made)?;
        Ok(Value::Object(made))
    }

    /// Adds properties of any name until there are enough.
    fn fill(&mut self, keywords: &Keywords, made: &mut Map<String, Value>) -> Result<(), String> {
        let fewest = count_of(keywords, "minProperties").unwrap_or(0);
        let mut number = 0;
        while made.len() < fewest {
            let name = self.other_name(keywords, number)?;
            if !made.contains_key(&name) {
                made.insert(name, self.value(other_schema(keywords), number)?);
            }
            number += 1;
            if number > fewest.saturating_add(NAMES_TRIED_MAX) {
                return Err(format!("no {fewest} names of properties were found"));
            }
        }
        Ok(())
    }

    fn other_name(&mut self, keywords: &Keywords, number: usize) -> Result<String, String> {
        if let Some(names) = keywords.get("propertyNames")
            && let Value::String(name) = self.value(names, number)?
        {
            return Ok(name);
        }
        let pattern = patterned(keywords).map(|(pattern, _)| pattern.as_str());
        let matching = pattern.and_then(|pattern| super::pattern::matching(pattern, 1, number));
        Ok(matching.unwrap_or_else(|| format!("property{}", number + 1)))
    }
}

/// The schema of a property that `properties` does not name.
fn other_schema(keywords: &Keywords) -> &Value {
    const ANY: &Value = &Value::Bool(true);
    match (patterned(keywords), keywords.get("additionalProperties")) {
        (Some((_, schema)), _) => schema,
        (None, Some(schema)) => schema,
        (None, None) => ANY,
    }
}

fn patterned(keywords: &Keywords) -> Option<(&String, &Value)> {
    keywords.get("patternProperties").and_then(Value::as_object)?.iter().next()
}
