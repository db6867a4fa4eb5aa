//! Keys that a schema requires but does not allow, so that no value is valid.

use serde_json::Value;

use super::guard::each_schema;

/// A key that is required but not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForbiddenKey {
    /// Keys from the schema down to the item of its `required`.
    pub place: Vec<String>,
    pub name: String,
    /// Allowed keys.
    pub known: Vec<String>,
}

/// Returns every key of a schema that is required but not allowed.
pub fn forbidden_keys(schema: &Value) -> Vec<ForbiddenKey> {
    let mut found = Vec::new();
    each_schema(schema, &mut |schema, place| found.extend(of_object(schema, place)));
    found
}

fn of_object(schema: &Value, place: &[String]) -> Vec<ForbiddenKey> {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema.get("patternProperties").is_none();
    let required = schema.get("required").and_then(Value::as_array);
    let (Some(required), true) = (required, is_closed) else { return Vec::new() };
    let properties = schema.get("properties").and_then(Value::as_object);
    let known: Vec<_> = properties.into_iter().flat_map(|it| it.keys().cloned()).collect();
    let named = required.iter().enumerate().filter_map(|(index, it)| Some((index, it.as_str()?)));
    let forbidden = named.filter(|(_, name)| !known.iter().any(|known| known == name));
    let forbidden = forbidden.map(|(index, name)| ForbiddenKey {
        place: place.iter().cloned().chain(["required".to_owned(), index.to_string()]).collect(),
        name: name.to_owned(),
        known: known.clone(),
    });
    forbidden.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn required_keys_that_are_not_allowed_are_found() {
        let closed = |required: &str| {
            let properties = json!({ "employee": {}, "required": {} });
            json!({ "required": [required], "properties": properties, "additionalProperties": false })
        };
        let mut open = closed("employe");
        open["additionalProperties"] = json!(true);
        let mut pattern = closed("employe");
        pattern["patternProperties"] = json!({ "^e": {} });
        for (schema, expected) in [
            (closed("employee"), ""),
            (open, ""),
            (pattern, ""),
            (json!({ "default": closed("employe"), "enum": [closed("employe")] }), ""),
            (json!(true), ""),
            (closed("employe"), "required.0 employe"),
            (
                json!({ "properties": { "x": { "items": closed("employe") } } }),
                "properties.x.items.required.0 employe",
            ),
            (json!({ "required": ["a"], "additionalProperties": false }), "required.0 a"),
        ] {
            let shown = |it: ForbiddenKey| format!("{} {}", it.place.join("."), it.name);
            let found: Vec<_> = forbidden_keys(&schema).into_iter().map(shown).collect();
            assert_eq!(found.join(", "), expected, "{schema}");
        }
    }
}
