//! Filters that read texts: JSON and times.

use std::sync::Arc;

use minijinja::value::Value;
use minijinja::{Environment, Error, State};
use serde_json::Value as Json;

use super::bare::{bounded_text, paid, refused};
use super::json::{DOCUMENT_BYTES, Node};
use crate::effort;
use crate::foreign;
use crate::time::Timestamp;

/// Names of the filters.
#[cfg(test)]
pub(super) const FILTERS: [&str; 2] = ["fromjson", "epoch_ms"];

/// Adds the filters.
pub(super) fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("fromjson", fromjson);
    environment.add_filter("epoch_ms", epoch_ms);
}

/// Reads JSON. Charges for the values that a text of this length can have.
fn fromjson(state: &mut State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let text = text_of("fromjson", value)?;
    bounded_text(state, Some(text.len()))?;
    paid(effort::charge_all(1 + text.len() / DOCUMENT_BYTES, 1))?;
    let json: Json = foreign::from_str(text)
        .map_err(|problem| refused(format!("the text is no JSON: {problem}")))?;
    Ok(Node::view(&Arc::new(json)))
}

/// Returns the milliseconds since 1970 of an ISO 8601 time with a zone.
fn epoch_ms(value: &Value) -> Result<i64, Error> {
    let text = text_of("epoch_ms", value)?;
    paid(effort::charge_text(text.len()))?;
    let time = Timestamp::from_iso(text.trim()).ok_or_else(|| {
        refused("epoch_ms reads an ISO 8601 time with a zone, such as 2026-01-31T09:00:00Z")
    })?;
    Ok(time.0)
}

fn text_of<'v>(filter: &str, value: &'v Value) -> Result<&'v str, Error> {
    if value.is_undefined() {
        // a lookup in an undefined value gives an error with its name
        value.get_attr("")?;
    }
    value
        .as_str()
        .ok_or_else(|| refused(format!("{filter} reads a text; this is a {}", value.kind())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::effort::{self, Budget};
    use crate::expression::{Expression, Scope};

    use super::*;

    fn scope(text: &str) -> Scope {
        let input =
            json!({ "text": text, "number": 3, "at": "2026-01-31T09:00:00.250+01:00", "days": 2 });
        Scope::new().with("input", Arc::new(input)).with("data", Arc::new(json!("{\"a\":1}")))
    }

    #[track_caller]
    fn row(source: &str, text: &str, expected: Result<Json, &str>) {
        let value = Expression::compile(source).unwrap().evaluate(&scope(text));
        match (value, expected) {
            (Err(error), Err(said)) => {
                assert!(error.message.starts_with(said), "{source} of {text}: {error}");
            }
            (value, expected) => assert_eq!(
                value.map_err(|error| error.message),
                expected.map_err(str::to_owned),
                "{source} of {text}"
            ),
        }
    }

    #[test]
    fn json_is_read_from_a_text() {
        let read = "input.text | fromjson";
        row(
            read,
            r#"{"b":[1,2.5,null,true,"x"],"a":{}}"#,
            Ok(json!({ "b": [1, 2.5, null, true, "x"], "a": {} })),
        );
        row(read, " 7 ", Ok(json!(7)));
        row(read, "null", Ok(json!(null)));
        row("(data | fromjson).a + 1", "", Ok(json!(2)));
        row("(input.text | fromjson).a.b | default('-')", "{}", Ok(json!("-")));
        row("input.text | fromjson | tojson", "[ 1 ]", Ok(json!("[1]")));
        row(
            read,
            "{\"a\":\n tru}",
            Err("the text is no JSON: expected ident at line 2 column 5 in `input"),
        );
        row(read, "", Err("the text is no JSON: EOF while parsing a value at line 1 column 0"));
        row(read, "{} {}", Err("the text is no JSON: trailing characters at line 1 column 4"));
        row("input.number | fromjson", "", Err("fromjson reads a text; this is a number in"));
        row("input.nope | fromjson", "", Err("`input.nope` is undefined in"));
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        row("input.text | fromjson | length", &deep(127), Ok(json!(1)));
        row(read, &deep(128), Err("the text is no JSON: recursion limit exceeded at line 1"));
    }

    #[test]
    fn reading_json_is_bounded_and_charged() {
        let read = Expression::compile("input.text | fromjson | length").unwrap();
        let text = format!("[{}0]", "0,".repeat(999));
        let bounded = |bytes: usize| read.evaluate(&scope(&text).value_bytes_max(bytes));
        assert_eq!(bounded(text.len()), Ok(json!(1000)));
        let refused = bounded(text.len() - 1).unwrap_err().message;
        assert!(refused.starts_with("text larger than 2000 bytes"), "{refused}");
        let (_, effort) = effort::within(&Budget::whole(), || read.evaluate(&scope(&text)));
        assert!(effort.steps > 500, "{}", effort.steps);
        let large = format!("[{}0]", "0,".repeat(300_000));
        let (_, effort) = effort::within(&Budget::turn(), || read.evaluate(&scope(&large)));
        assert!(effort.is_exceeded, "belongs on a worker");
    }

    #[test]
    fn times_become_milliseconds() {
        row("'1970-01-01T00:00:01Z' | epoch_ms", "", Ok(json!(1000)));
        row("(input.at | epoch_ms) + input.days * 86400000", "", Ok(json!(1_770_019_200_250_i64)));
        row("'1969-12-31T23:59:59Z' | epoch_ms", "", Ok(json!(-1000)));
        let said = "epoch_ms reads an ISO 8601 time with a zone, such as 2026-01-31T09:00:00Z in";
        for text in ["yesterday", "2026-01-31", "2026-01-31T09:00:00", ""] {
            row("input.text | epoch_ms", text, Err(said));
        }
        row("input.number | epoch_ms", "", Err("epoch_ms reads a text; this is a number in"));
        row("input.nope | epoch_ms", "", Err("`input.nope` is undefined in"));
    }

    #[test]
    fn a_member_of_a_text_says_how_it_is_read() {
        let hint = "; `data` is a text: `data | fromjson` reads JSON in it";
        row("data.a", "", Err(&format!("undefined value in `data.a`{hint}")));
        row("data.a.b", "", Err(&format!("`data.a` is undefined in `data.a.b`{hint}")));
        row(
            "input.text.x == 1",
            "t",
            Err("`input.text.x` is undefined in `input.text.x == 1`; `input.text` is a text: \
                 `input.text | fromjson` reads JSON in it"),
        );
        let counted = "; `data` is a text: `data | length` counts its characters";
        row("data.length", "", Err(&format!("undefined value in `data.length`{counted}")));
        row(
            "input.number.x",
            "",
            Err("undefined value in `input.number.x`; `input.number` is a number"),
        );
    }
}
