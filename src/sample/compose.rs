//! Keywords that refer to other schemas: taken apart until only plain ones are left.

use serde_json::Value;

use super::merge::merged;
use super::reference::resolved;
use super::{Keywords, PARTS_PER_VISIT, Sampler};

/// How often one reference may stand inside itself.
const REPEATS_MAX: usize = 6;

const COMPOSING: [&str; 6] = ["$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if"];

impl Sampler<'_> {
    /// Takes the keywords apart that refer to other schemas, one per call, then makes the value.
    pub(super) fn composed(
        &mut self,
        keywords: &Keywords,
        variant: usize,
    ) -> Result<Value, String> {
        if let Some(given) = self.given(keywords, variant) {
            return Ok(given);
        }
        if COMPOSING.iter().any(|keyword| keywords.contains_key(*keyword)) {
            // what follows copies the keywords
            self.visits += keywords.values().map(parts_of).sum::<usize>() / PARTS_PER_VISIT;
        }
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(reference) = keywords.get(keyword).and_then(Value::as_str) {
                return self.referred(&without(keywords, &[keyword]), reference, variant);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = keywords.get(keyword) {
                let rest = without(keywords, &[keyword]);
                let chosen = self.alternative(alternatives)?;
                return self.value(&merged(&rest, chosen)?, variant);
            }
        }
        if let Some(Value::Array(parts)) = keywords.get("allOf") {
            let mut whole = Value::Object(without(keywords, &["allOf"]));
            for part in parts {
                let Value::Object(so_far) = &whole else { break };
                whole = merged(so_far, part)?;
            }
            return self.value(&whole, variant);
        }
        if let Some(condition) = keywords.get("if") {
            return self.conditional(keywords, condition, variant);
        }
        self.plain(keywords, variant)
    }

    /// A value that the schema itself names: `const`, `default`, an example, one of `enum`.
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
        let target = resolved(self.root, reference)
            .ok_or_else(|| format!("{reference} is nowhere in the schema"))?;
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
        if alternatives.is_empty() {
            return Err("no alternative is given".to_owned());
        }
        let mut ordered: Vec<&Value> = alternatives.iter().collect();
        if self.is_recursing() {
            // those that refer to nothing end a recursion
            ordered.sort_by_key(|schema| schema.to_string().contains("\"$ref\""));
        }
        let choice = self.choose(ordered.len());
        Ok(ordered[choice])
    }

    fn conditional(
        &mut self,
        keywords: &Keywords,
        condition: &Value,
        variant: usize,
    ) -> Result<Value, String> {
        let rest = without(keywords, &["if", "then", "else"]);
        let always = Value::Bool(true);
        let then = keywords.get("then").unwrap_or(&always);
        let otherwise = keywords.get("else").unwrap_or(&always);
        let whole = match self.choose(2) {
            0 => match merged(&rest, condition)? {
                Value::Object(held) => merged(&held, then)?,
                other => other,
            },
            _ => merged(&rest, otherwise)?,
        };
        self.value(&whole, variant)
    }
}

fn without(keywords: &Keywords, removed: &[&str]) -> Keywords {
    let kept = keywords.iter().filter(|(keyword, _)| !removed.contains(&keyword.as_str()));
    kept.map(|(keyword, value)| (keyword.clone(), value.clone())).collect()
}

/// Values in a value, itself included.
fn parts_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts_of).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(parts_of).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
