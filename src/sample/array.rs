//! Arrays: their first items, the rest, and what they must contain.

use serde_json::Value;

use super::merge::merged;
use super::{Keywords, Sampler, count_of};

impl Sampler<'_> {
    /// Makes an array with the items that have a place, and one more when there may be.
    pub(super) fn array(&mut self, keywords: &Keywords) -> Result<Value, String> {
        let (first, rest) = items_of(keywords);
        let fewest = count_of(keywords, "minItems").unwrap_or(0);
        let most = count_of(keywords, "maxItems").unwrap_or(usize::MAX);
        let contained = keywords.get("contains");
        let needed = contained.map_or(0, |_| count_of(keywords, "minContains").unwrap_or(1));
        let wants_more = !self.is_recursing() && self.choose(2) == 0;
        let shown = if wants_more { first.len().max(1) } else { 0 };
        let fewest = fewest.max(if needed > 0 { first.len().saturating_add(needed) } else { 0 });
        let length = fewest.max(shown.min(most));
        let differ = keywords.get("uniqueItems") == Some(&Value::Bool(true));

        let mut made = Vec::new();
        for index in 0..length {
            let after_first = index.checked_sub(first.len());
            let schema = first.get(index).unwrap_or(rest);
            let variant = if differ { index } else { 0 };
            let item = match (contained, after_first) {
                (Some(contained), Some(at)) if at < needed => {
                    let both = match contained {
                        Value::Object(contained) => merged(contained, schema)?,
                        _ => schema.clone(),
                    };
                    self.value(&both, variant)
                }
                _ => self.value(schema, variant),
            };
            match item {
                Ok(item) => made.push(item),
                // an item that cannot be made need not be
                Err(_) if index >= fewest => break,
                Err(reason) => return Err(reason),
            }
        }
        Ok(Value::Array(made))
    }
}

/// Schemas of the first items and of all further ones, in the words of old drafts as well.
fn items_of(keywords: &Keywords) -> (&[Value], &Value) {
    const ANY: &Value = &Value::Bool(true);
    match (keywords.get("prefixItems"), keywords.get("items")) {
        (_, Some(Value::Array(first))) => (first, keywords.get("additionalItems").unwrap_or(ANY)),
        (Some(Value::Array(first)), rest) => (first, rest.unwrap_or(ANY)),
        (_, rest) => (&[], rest.unwrap_or(ANY)),
    }
}
