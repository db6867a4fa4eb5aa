//! Arguments that clients repeat in headers, `Mcp-Param-NAME`, where `x-mcp-header` of a schema says
//! so: what is between client and server routes by them, so that they have to agree.

use serde_json::{Map, Value};

use super::message::decoded;

/// Keyword of a property, with the end of the name of its header.
const KEYWORD: &str = "x-mcp-header";

/// Beginning of the names of these headers.
const PREFIX: &str = "mcp-param-";

/// Largest depth at which properties are looked for.
const DEPTH_MAX: usize = 16;

/// Header of a request with a name in lower case.
pub enum Given<'a> {
    Absent,
    Text(&'a str),
    /// It is repeated, or no text.
    Unreadable,
}

/// Returns what is wrong with a header about the arguments; `None` if all agree.
pub fn mismatch<'a>(
    schema: &Value,
    arguments: &Map<String, Value>,
    header: impl Fn(&str) -> Given<'a>,
) -> Option<String> {
    let mut levels = vec![(schema, Some(arguments), 0)];
    while let Some((schema, arguments, depth)) = levels.pop() {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let argument = arguments.and_then(|arguments| arguments.get(name));
            if let Some(suffix) = property.get(KEYWORD).and_then(Value::as_str) {
                let problem = problem(argument, &header(&header_name(suffix)));
                if let Some(problem) = problem {
                    return Some(format!("Mcp-Param-{suffix} {problem} {name}"));
                }
            }
            if depth < DEPTH_MAX {
                levels.push((property, argument.and_then(Value::as_object), depth + 1));
            }
        }
    }
    None
}

fn header_name(suffix: &str) -> String {
    format!("{PREFIX}{}", suffix.to_ascii_lowercase())
}

/// Completes the sentence `HEADER ... ARGUMENT`.
fn problem(argument: Option<&Value>, header: &Given<'_>) -> Option<&'static str> {
    let text = match argument {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => {
            return match header {
                Given::Absent => None,
                Given::Text(_) | Given::Unreadable => Some("is given without the argument"),
            };
        }
    };
    let given = match header {
        Given::Absent => return Some("is missing; it must repeat the argument"),
        Given::Text(text) => decoded(text),
        Given::Unreadable => None,
    };
    let Some(given) = given else { return Some("cannot be read; it must repeat the argument") };
    let is_same = given == text || is_same_number(argument, &given);
    (!is_same).then_some("differs from the argument")
}

/// Clients write 1.0 as `1`.
fn is_same_number(argument: Option<&Value>, given: &str) -> bool {
    let number = argument.and_then(Value::as_f64);
    number.zip(given.parse::<f64>().ok()).is_some_and(|(number, given)| number == given)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(arguments: &Value, headers: &[(&str, &str)]) -> Option<String> {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "number", "x-mcp-header": "Count" },
            "free": { "type": "string" },
            "inner": { "properties": { "flag": { "type": "boolean", "x-mcp-header": "Flag" } } },
        } });
        mismatch(&schema, arguments.as_object().unwrap(), |name| {
            match headers.iter().find(|(header, _)| *header == name) {
                Some((_, "?")) => Given::Unreadable,
                Some((_, text)) => Given::Text(text),
                None => Given::Absent,
            }
        })
    }

    #[test]
    fn headers_repeat_arguments() {
        let rows = [
            (json!({}), vec![]),
            (json!({ "free": "a", "region": null }), vec![]),
            (json!({ "region": "eu" }), vec![("mcp-param-region", "eu")]),
            (json!({ "region": "zürich" }), vec![("mcp-param-region", "=?base64?esO8cmljaA==?=")]),
            (json!({ "region": "SGVs" }), vec![("mcp-param-region", "SGVs")]),
            (json!({ "count": 1.0 }), vec![("mcp-param-count", "1")]),
            (json!({ "count": 12 }), vec![("mcp-param-count", "12")]),
            (json!({ "inner": { "flag": true } }), vec![("mcp-param-flag", "true")]),
        ];
        for (arguments, headers) in rows {
            assert_eq!(found(&arguments, &headers), None, "{arguments}");
        }
    }

    #[test]
    fn other_headers_are_refused() {
        let region = "mcp-param-region";
        let rows = [
            (
                json!({}),
                vec![(region, "eu")],
                "Mcp-Param-Region is given without the argument region",
            ),
            (
                json!({ "region": "eu" }),
                vec![],
                "Mcp-Param-Region is missing; it must repeat the argument region",
            ),
            (
                json!({ "region": "eu" }),
                vec![(region, "us")],
                "Mcp-Param-Region differs from the argument region",
            ),
            (
                json!({ "region": "Hello" }),
                vec![(region, "=?base64?SGVs!!!bG8=?=")],
                "Mcp-Param-Region cannot be read; it must repeat the argument region",
            ),
            (
                json!({ "region": "?" }),
                vec![(region, "?")],
                "Mcp-Param-Region cannot be read; it must repeat the argument region",
            ),
            (
                json!({ "count": 1 }),
                vec![("mcp-param-count", "one")],
                "Mcp-Param-Count differs from the argument count",
            ),
            (
                json!({ "inner": { "flag": true } }),
                vec![],
                "Mcp-Param-Flag is missing; it must repeat the argument flag",
            ),
        ];
        for (arguments, headers, problem) in rows {
            assert_eq!(found(&arguments, &headers).as_deref(), Some(problem), "{arguments}");
        }
    }
}
