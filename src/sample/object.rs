//! Objects: their required properties, and others.

use serde_json::{Map, Value};

use super::{Keywords, Sampler, count_of};

impl Sampler<'_> {
    /// Makes an object with all named properties or, where the plan or a recursion asks for it,
    /// only with the required ones.
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
        let with_optional = has_optional && !self.is_recursing() && self.choose(2) == 0;

        let mut made = Map::new();
        let mut optional_made = 0;
        for (name, schema) in properties {
            if !is_optional(name) {
                made.insert(name.clone(), self.value(schema, 0)?);
            } else if with_optional && optional_made < room {
                // an optional property without a sample is left out
                if let Ok(value) = self.value(schema, 0) {
                    made.insert(name.clone(), value);
                    optional_made += 1;
                }
            }
        }
        let other = keywords.get("additionalProperties").unwrap_or(&Value::Bool(true));
        for name in required {
            if !made.contains_key(name) {
                made.insert(name.to_owned(), self.value(other, 0)?);
            }
        }
        let fewest = count_of(keywords, "minProperties").unwrap_or(0);
        let mut number = 0;
        while made.len() < fewest {
            number += 1;
            made.insert(format!("property{number}"), self.value(other, 0)?);
        }
        Ok(Value::Object(made))
    }
}
