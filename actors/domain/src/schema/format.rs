//! Names of `format`: asserted, descriptive and unknown ones.

use serde_json::Value;

use super::guard::each_schema;

/// Formats that are asserted for strings.
const ASSERTED: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Formats of OpenAPI and of code generators that describe storage or display; they are not
/// asserted.
const DESCRIPTIVE: [&str; 17] = [
    "binary", "byte", "char", "decimal", "double", "float", "int16", "int32", "int64", "int8",
    "markdown", "password", "uint", "uint16", "uint32", "uint64", "uint8",
];

/// A `format` with an unknown name, which is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat {
    /// Keys from the schema down to its `format`.
    pub place: Vec<String>,
    pub name: String,
}

impl UnknownFormat {
    /// Returns the asserted formats.
    pub fn known() -> &'static [&'static str] {
        &ASSERTED
    }
}

/// Returns every `format` of a schema with an unknown name.
pub fn unknown_formats(schema: &Value) -> Vec<UnknownFormat> {
    let mut found = Vec::new();
    each_schema(schema, &mut |schema, place| {
        let name = schema.get("format").and_then(Value::as_str);
        let is_known = |name: &&str| ASSERTED.contains(name) || DESCRIPTIVE.contains(name);
        if let Some(name) = name.filter(|name| !is_known(name)) {
            let place = place.iter().cloned().chain(["format".to_owned()]).collect();
            found.push(UnknownFormat { place, name: name.to_owned() });
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    /// Asserted formats, each with a valid and an invalid value.
    const EXAMPLES: [(&str, &str, &str); 19] = [
        ("date", "2026-01-31", "2026-02-30"),
        ("date-time", "2026-01-31T12:00:00Z", "tomorrow"),
        ("duration", "P1D", "one day"),
        ("email", "ann@example.com", "ann at example.com"),
        ("hostname", "example.com", "-example"),
        ("idn-email", "ann@exämple.com", "ann"),
        ("idn-hostname", "exämple.com", "-a"),
        ("ipv4", "192.0.2.1", "192.0.2.256"),
        ("ipv6", "2001:db8::1", "2001:db8"),
        ("iri", "https://exämple.com/a", "a b"),
        ("iri-reference", "/ä", "a b"),
        ("json-pointer", "/a/0", "a"),
        ("regex", "^a+$", "("),
        ("relative-json-pointer", "1/a", "/a"),
        ("time", "12:00:00Z", "noon"),
        ("uri", "https://example.com/a", "example.com/a"),
        ("uri-reference", "/a", "a b"),
        ("uri-template", "/a/{id}", "/a/{id"),
        ("uuid", "0197d2a0-0000-7000-8000-000000000000", "0197"),
    ];

    #[test]
    fn every_known_format_is_asserted() {
        assert_eq!(EXAMPLES.map(|(name, ..)| name), ASSERTED);
        for (name, good, bad) in EXAMPLES {
            let schema = Schema::compile(&json!({ "type": "string", "format": name })).unwrap();
            assert_eq!(schema.check(&json!(good)), Ok(()), "{name}");
            let refused = schema.check(&json!(bad)).unwrap_err().detail;
            assert_eq!(refused, format!("{:?} is not a {name:?}", bad), "{name}");
        }
        let number = Schema::compile(&json!({ "format": "date" })).unwrap();
        assert_eq!(number.check(&json!(3)), Ok(()), "formats apply to strings only");
    }

    #[test]
    fn unknown_formats_are_found_where_keywords_are() {
        let schema = json!({
            "format": "datetime",
            "properties": {
                "format": { "type": "string", "format": "uuid" },
                "n": { "type": "integer", "format": "int64" },
                "list": { "items": [{ "format": "e-mail" }], "const": { "format": "x" } },
            },
            "allOf": [{ "if": { "format": "colour" } }],
        });
        let found = unknown_formats(&schema);
        let mut shown: Vec<_> =
            found.iter().map(|it| format!("{}: {}", it.place.join("/"), it.name)).collect();
        shown.sort();
        assert_eq!(
            shown,
            [
                "allOf/0/if/format: colour",
                "format: datetime",
                "properties/list/items/0/format: e-mail",
            ]
        );
    }
}
