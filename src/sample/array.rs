//! Arrays: items with a schema each, and further ones.

use serde_json::{Value, json};

use super::{Keywords, Sampler, count_of};

impl Sampler<'_> {
    /// Makes an array of the items with a schema each or, without any, of one item.
    pub(super) fn array(&mut self, keywords: &Keywords) -> Result<Value, String> {
        let (first, rest) = items_of(keywords);
        let contained = keywords.get("contains").map(|part| json!({ "allOf": [rest, part] }));
        let contains = first.len()..first.len().saturating_add(min_contains(keywords));
        let fewest = count_of(keywords, "minItems").unwrap_or(0);
        let fewest = if contains.is_empty() { fewest } else { fewest.max(contains.end) };
        let most = count_of(keywords, "maxItems").unwrap_or(usize::MAX);
        let has_optional = !self.is_recursing() && self.choose(2) == 0;
        let shown = if has_optional { first.len().max(1) } else { 0 };
        let is_unique = keywords.get("uniqueItems") == Some(&Value::Bool(true));

        let mut made = Vec::new();
        for index in 0..fewest.max(shown.min(most)) {
            let further = contained.as_ref().filter(|_| contains.contains(&index)).unwrap_or(rest);
            let schema = first.get(index).unwrap_or(further);
            match self.value(schema, if is_unique { index } else { 0 }) {
                Ok(item) => made.push(item),
                // an optional item without a sample is left out
                Err(_) if index >= fewest => break,
                Err(reason) => return Err(reason),
            }
        }
        Ok(Value::Array(made))
    }
}

/// Returns the number of items that have to match `contains`.
fn min_contains(keywords: &Keywords) -> usize {
    match keywords.contains_key("contains") {
        true => count_of(keywords, "minContains").unwrap_or(1),
        false => 0,
    }
}

/// Returns the schemas of the first items and of all further ones, in current and older drafts.
fn items_of(keywords: &Keywords) -> (&[Value], &Value) {
    const ANY: &Value = &Value::Bool(true);
    match (keywords.get("prefixItems"), keywords.get("items")) {
        (_, Some(Value::Array(first))) => (first, keywords.get("additionalItems").unwrap_or(ANY)),
        (Some(Value::Array(first)), rest) => (first, rest.unwrap_or(ANY)),
        (_, rest) => (&[], rest.unwrap_or(ANY)),
    }
}
