//! All problems of data of which a server has named the first one.

use greenroom_actors::domain::schema::Schema;
use serde_json::Value;

use super::exit::Failure;

/// Most problems that are shown.
const SHOWN_MAX: usize = 20;

/// Adds to a refusal of data what else does not fit its schema.
pub(super) fn all_of(failure: Failure, schema: &Value, data: &Value) -> Failure {
    let Ok(schema) = Schema::compile(schema) else { return failure };
    let found = schema.violations(data, SHOWN_MAX).into_iter().map(|found| found.to_string());
    let others: Vec<_> = found.filter(|found| !failure.says(found)).collect();
    others.into_iter().fold(failure, |failure, other| failure.advise(format!("also {other}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_other_problems_are_named_as_well() {
        let schema = json!({
            "required": ["a", "b"],
            "properties": { "c": { "type": "integer" }, "d": { "maximum": 4 } },
        });
        let refused = Failure::usage("Invalid workflow input: a: missing");
        let shown = all_of(refused.clone(), &schema, &json!({ "c": "x", "d": 5 })).to_string();
        assert_eq!(shown.lines().count(), 4, "{shown}");
        for part in ["also b: missing", "also c: \"x\" is not of type", "also d: 5 is greater"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert_eq!(all_of(refused.clone(), &json!({ "type": 7 }), &json!({})), refused);
    }
}
