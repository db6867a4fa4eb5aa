//! Keywords that refer to other schemas, resolved until only plain ones are left.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::merge::merged;
use super::{Keywords, PARTS_PER_VISIT, Sampler};

/// Nested uses of one reference.
const REPEATS_MAX: usize = 6;

impl Sampler<'_> {
    /// Resolves one keyword that refers to other schemas, and makes a value of the result.
    pub(super) fn composed(
        &mut self,
        keywords: &Keywords,
        variant: usize,
    ) -> Result<Value, String> {
        if let Some(given) = self.given(keywords, variant) {
            return Ok(given);
        }
        if ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|name| keywords.contains_key(*name)) {
            // what follows copies the keywords
            self.visits += keywords.values().map(parts_of).sum::<usize>() / PARTS_PER_VISIT;
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            return self.referred(&without(keywords, "$ref"), reference, variant);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = keywords.get(keyword) {
                let chosen = self.alternative(alternatives)?;
                return self.value(&merged(&without(keywords, keyword), chosen)?, variant);
            }
        }
        if let Some(Value::Array(parts)) = keywords.get("allOf") {
            let mut whole = Value::Object(without(keywords, "allOf"));
            for part in parts {
                let Value::Object(so_far) = &whole else { break };
                whole = merged(so_far, part)?;
            }
            return self.value(&whole, variant);
        }
        self.plain(keywords, variant)
    }

    /// Returns a value that the schema itself names: `const`, `default`, an example, one of `enum`.
    fn given(&mut self, keywords: &Keywords, variant: usize) -> Option<Value> {
        if let Some(constant) = keywords.get("const") {
            return Some(constant.clone());
        }
        let example = keywords.get("examples").and_then(|examples| examples.get(variant));
        let default = keywords.get("default").filter(|_| variant == 0);
        let suggested: Vec<&Value> = default.into_iter().chain(example).collect();
        if !suggested.is_empty() {
            let choice = self.choose(suggested.len() + 1);
            if let Some(value) = suggested.get(choice) {
                return Some((*value).clone());
            }
        }
        let Some(Value::Array(allowed)) = keywords.get("enum") else { return None };
        let choice = self.choose(allowed.len().max(1));
        allowed.get((choice + variant) % allowed.len().max(1)).cloned()
    }

    fn referred(
        &mut self,
        rest: &Keywords,
        reference: &str,
        variant: usize,
    ) -> Result<Value, String> {
        if self.following.iter().filter(|followed| *followed == reference).count() >= REPEATS_MAX {
            return Err(format!("{reference} contains itself without end"));
        }
        let pointer = reference.strip_prefix('#').map(percent_decode_str);
        let pointer = pointer.and_then(|pointer| pointer.decode_utf8().ok());
        let target = pointer.and_then(|pointer| self.root.pointer(&pointer));
        let target =
            target.ok_or_else(|| format!("{reference} is no JSON pointer into the schema"))?;
        self.visits += parts_of(target) / PARTS_PER_VISIT;
        let whole = match target {
            Value::Object(keywords) => merged(keywords, &Value::Object(rest.clone()))?,
            other => other.clone(),
        };
        self.following.push(reference.to_owned());
        let made = self.value(&whole, variant);
        self.following.pop();
        made
    }

    fn alternative<'s>(&mut self, alternatives: &'s [Value]) -> Result<&'s Value, String> {
        let mut ordered: Vec<&Value> = alternatives.iter().collect();
        if self.is_recursing() {
            // alternatives without references end a recursion
            ordered.sort_by_key(|schema| schema.to_string().contains("\"$ref\""));
        }
        let choice = self.choose(ordered.len());
        ordered.get(choice).copied().ok_or_else(|| "no alternative is given".to_owned())
    }
}

fn without(keywords: &Keywords, removed: &str) -> Keywords {
    let kept = keywords.iter().filter(|(keyword, _)| *keyword != removed);
    kept.map(|(keyword, value)| (keyword.clone(), value.clone())).collect()
}

/// Number of values in a value, itself included.
fn parts_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts_of).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(parts_of).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
