//! Fields of forms, from JSON Schemas of answers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::wire::shape::one_of;

/// Maximum number of fields of a form.
const FIELDS_MAX: usize = 50;

/// A field of a form.
#[skip_serializing_none]
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = FormField)]
#[serde(rename_all = "camelCase")]
pub struct FieldView<'a> {
    pub name: &'a str,
    #[serde(rename = "type")]
    #[schema(schema_with = field_type)]
    pub kind: &'static str,
    pub required: bool,
    pub title: Option<&'a str>,
    pub description: Option<&'a str>,
    /// `format` of the schema, such as `date` or `email`.
    pub format: Option<&'a str>,
    /// The values to choose from: one, or with the type `array` any number of them.
    #[schema(value_type = Option<Vec<Value>>)]
    pub options: Option<Cow<'a, [Value]>>,
    /// Texts to show in place of `options`, in their order.
    pub option_titles: Option<Vec<&'a str>>,
    #[schema(value_type = Option<Value>)]
    pub default: Option<&'a Value>,
}

/// Names of the types of fields.
pub const FIELD_TYPES: [&str; 5] = ["string", "number", "integer", "boolean", SEVERAL];

/// Type of a field of a form.
fn field_type() -> Object {
    one_of(FIELD_TYPES)
}

/// Type of a field of several choices.
pub const SEVERAL: &str = "array";

/// Returns the fields of a schema in their order. `None` if it is not an object of plain values: a
/// form could not ask for everything that it requires.
pub fn form_of(schema: &Value) -> Option<Vec<FieldView<'_>>> {
    const MEANT: [&str; 9] = [
        "$schema",
        "$id",
        "$comment",
        "title",
        "description",
        "type",
        "properties",
        "required",
        "additionalProperties",
    ];
    let schema = schema.as_object()?;
    let is_plain = schema.keys().all(|key| MEANT.contains(&key.as_str()))
        && schema.get("type").is_none_or(|kind| kind == "object");
    let properties = schema.get("properties")?.as_object().filter(|_| is_plain)?;
    let required = match schema.get("required") {
        Some(required) => required.as_array()?.as_slice(),
        None => &[],
    };
    let has_all =
        required.iter().all(|name| name.as_str().is_some_and(|it| properties.contains_key(it)));
    if !has_all || properties.is_empty() || properties.len() > FIELDS_MAX {
        return None;
    }
    properties.iter().map(|(name, property)| field_of(name, property, required)).collect()
}

/// Returns the field for a schema of one plain value; `None` if it is of something else.
pub fn plain_of(schema: &Value) -> Option<FieldView<'_>> {
    let required = [Value::String(String::new())];
    field_of("", schema, &required)
}

fn field_of<'a>(name: &'a str, property: &'a Value, required: &[Value]) -> Option<FieldView<'a>> {
    let property = property.as_object()?;
    let required = required.iter().any(|it| it == name);
    let text = |key| property.get(key).and_then(Value::as_str);
    let (kind, choices) = match text("type") {
        Some(SEVERAL) => {
            let items = property.get("items")?.as_object()?;
            // there is no control for a list of other values
            let choices = choices_of(items, true)?;
            choices.is_of_texts(items).then_some((SEVERAL, choices))?
        }
        _ => {
            let choices = choices_of(property, required)?;
            (type_of(property, choices.options.as_deref(), required)?, choices)
        }
    };
    let Choices { options, titles } = choices;
    Some(FieldView {
        name,
        kind,
        required,
        title: text("title"),
        description: text("description"),
        format: text("format"),
        options,
        option_titles: titles,
        default: property.get("default").filter(|default| !default.is_null()),
    })
}

/// Values to choose from, and what they are called. Both are absent where any value will do.
#[derive(Default)]
struct Choices<'a> {
    options: Option<Cow<'a, [Value]>>,
    titles: Option<Vec<&'a str>>,
}

impl Choices<'_> {
    /// Returns true if there are choices, all of them texts, as the schema has it.
    fn is_of_texts(&self, schema: &Map<String, Value>) -> bool {
        let kind = type_of(schema, self.options.as_deref(), true);
        self.options.is_some() && kind == Some("string")
    }
}

/// Returns the choices of a schema of one value; `None` if it has keywords that no form can follow.
fn choices_of(schema: &Map<String, Value>, required: bool) -> Option<Choices<'_>> {
    const BEYOND: [&str; 6] = ["$ref", "$dynamicRef", "allOf", "not", "if", "const"];
    if BEYOND.iter().any(|key| schema.contains_key(*key)) {
        return None;
    }
    let choices = match (schema.get("enum"), schema.get("oneOf"), schema.get("anyOf")) {
        (None, None, None) => Choices::default(),
        (Some(options), None, None) => {
            let options = without_null(options.as_array()?, required);
            let titles = schema.get("enumNames").and_then(|names| texts_of(names, options.len()));
            Choices { options: Some(Cow::Borrowed(options)), titles }
        }
        (None, Some(named), None) | (None, None, Some(named)) => titled(named.as_array()?)?,
        _ => return None,
    };
    let options = choices.options.as_deref().unwrap_or_default();
    options.iter().all(can_be_chosen).then_some(choices)
}

/// Returns false for what a choice in a form cannot mean: nothing chosen is an empty text, and browsers
/// change line ends.
fn can_be_chosen(option: &Value) -> bool {
    option.as_str().is_none_or(|text| !text.is_empty() && !text.contains(['\r', '\n']))
}

/// Reads the names of the options of an older version of MCP.
fn texts_of(names: &Value, count: usize) -> Option<Vec<&str>> {
    let names = names.as_array().filter(|names| names.len() == count)?;
    names.iter().map(Value::as_str).collect()
}

/// Returns choices that have titles: schemas of one text each.
fn titled(named: &[Value]) -> Option<Choices<'_>> {
    const MEANT: [&str; 4] = ["const", "title", "description", "type"];
    let read = |schema| {
        let schema: &Map<String, Value> = Value::as_object(schema)?;
        let option = schema.get("const")?;
        let text = option.as_str()?;
        let is_text = schema.get("type").is_none_or(|kind| kind == "string");
        let is_plain = is_text && schema.keys().all(|key| MEANT.contains(&key.as_str()));
        let title = schema.get("title").and_then(Value::as_str);
        is_plain.then(|| (option.clone(), title.unwrap_or(text)))
    };
    let (options, titles): (Vec<_>, Vec<_>) =
        named.iter().map(read).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    Some(Choices { options: Some(Cow::Owned(options)), titles: Some(titles) })
}

/// Returns the options that a person can choose. Null is left out of them where the field itself can
/// be left out.
fn without_null(options: &[Value], required: bool) -> &[Value] {
    match options {
        [others @ .., Value::Null] if !required => others,
        all => all,
    }
}

/// Returns the type of a field; that of its options if it has no other. A field that can be left out
/// may also be null.
fn type_of(
    property: &Map<String, Value>,
    options: Option<&[Value]>,
    required: bool,
) -> Option<&'static str> {
    let is_plain = |name: &&str| *name != SEVERAL;
    let known = |name: &str| FIELD_TYPES.into_iter().filter(is_plain).find(|known| *known == name);
    match (property.get("type"), options) {
        (Some(Value::Array(names)), _) => match names.as_slice() {
            [name, null] | [null, name] if null == "null" && !required => known(name.as_str()?),
            _ => None,
        },
        (Some(name), _) => known(name.as_str()?),
        (None, Some(options)) => {
            (!options.is_empty() && options.iter().all(Value::is_string)).then_some("string")
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_those_of_the_schema_in_its_order() {
        let schema = json!({
            "type": "object",
            "required": ["ok"],
            "properties": {
                "ok": { "type": "boolean", "title": "Approve?" },
                "by": { "type": "string", "format": "date", "description": "Until" },
                "level": { "enum": ["low", "high"], "default": "low" },
                "amount": { "type": "number" },
            },
            "additionalProperties": false,
        });
        let fields = serde_json::to_value(form_of(&schema)).unwrap();
        let expected = json!([
            { "name": "ok", "type": "boolean", "required": true, "title": "Approve?" },
            { "name": "by", "type": "string", "required": false, "description": "Until",
              "format": "date" },
            { "name": "level", "type": "string", "required": false, "options": ["low", "high"],
              "default": "low" },
            { "name": "amount", "type": "number", "required": false },
        ]);
        assert_eq!(fields, expected);
    }

    #[test]
    fn choices_may_have_titles_and_be_several() {
        let (red, blue) = (json!({ "const": "r", "title": "Red" }), json!({ "const": "b" }));
        let one = json!({ "name": "a", "type": "string", "required": false, "options": ["r", "b"],
            "optionTitles": ["Red", "b"] });
        let several = json!({ "name": "a", "type": "array", "required": false,
            "options": ["r", "b"], "optionTitles": ["Red", "b"], "default": ["b"] });
        let plain =
            json!({ "name": "a", "type": "array", "required": false, "options": ["r", "b"] });
        let rows = [
            (json!({ "type": "string", "oneOf": [red, blue] }), &one),
            (json!({ "anyOf": [red, blue] }), &one),
            (json!({ "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "b"] }), &one),
            (
                json!({ "type": "array", "items": { "anyOf": [red, blue] }, "default": ["b"] }),
                &several,
            ),
            (json!({ "type": "array", "items": { "enum": ["r", "b"] }, "minItems": 1 }), &plain),
            (json!({ "type": "array", "items": { "type": "string", "enum": ["r", "b"] } }), &plain),
        ];
        for (property, field) in rows {
            let schema = json!({ "properties": { "a": property } });
            assert_eq!(serde_json::to_value(form_of(&schema)).unwrap()[0], *field, "{schema}");
        }
    }

    #[test]
    fn a_field_that_can_be_left_out_may_be_null() {
        let of = |property: Value| {
            let schema = json!({ "properties": { "a": property }, "required": [] });
            serde_json::to_value(form_of(&schema)).unwrap()[0].clone()
        };
        let field = json!({ "name": "a", "type": "string", "required": false });
        assert_eq!(of(json!({ "type": ["string", "null"] })), field);
        assert_eq!(of(json!({ "type": ["null", "string"], "default": null })), field);
        let level = json!({ "type": ["string", "null"], "enum": ["low", "high", null] });
        assert_eq!(of(level)["options"], json!(["low", "high"]));
    }

    #[test]
    #[cfg(feature = "schemars")]
    fn answers_of_a_type_have_a_form() {
        use schemars::JsonSchema;

        /// Urgency of a request.
        #[derive(JsonSchema)]
        #[serde(rename_all = "lowercase")]
        #[expect(dead_code, reason = "read by its schema")]
        enum Level {
            Low,
            High,
        }

        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "read by its schema")]
        struct Approval {
            approved: bool,
            note: Option<String>,
            days: Option<u32>,
            level: Level,
            #[serde(default)]
            former: Option<Level>,
        }

        let schema = crate::schema::inline::<Approval>();
        let fields = form_of(&schema).unwrap();
        let fields: Vec<_> = fields.iter().map(|it| (it.name, it.kind, it.required)).collect();
        let expected = [
            ("approved", "boolean", true),
            ("note", "string", false),
            ("days", "integer", false),
            ("level", "string", true),
            ("former", "string", false),
        ];
        assert_eq!(fields, expected, "{schema:#}");
    }

    #[test]
    fn a_plain_value_is_one_field() {
        for (schema, kind) in [
            (json!({ "type": "string", "format": "date" }), "string"),
            (json!({ "type": "integer", "minimum": 1 }), "integer"),
            (json!({ "enum": ["left", "right"] }), "string"),
        ] {
            let field = plain_of(&schema).unwrap();
            assert_eq!((field.kind, field.required), (kind, true), "{schema}");
        }
        for schema in [json!({}), json!(true), json!({ "type": "array" }), json!({ "anyOf": [] })] {
            assert_eq!(plain_of(&schema), None, "{schema}");
        }
    }

    #[test]
    fn other_schemas_have_no_form() {
        let of = |property: Value| json!({ "properties": { "a": property } });
        let many: Map<String, Value> =
            (0..=FIELDS_MAX).map(|n| (n.to_string(), json!({ "type": "string" }))).collect();
        let rows = [
            json!(true),
            json!({ "type": "string" }),
            json!({ "type": "object" }),
            json!({ "properties": {} }),
            json!({ "properties": many }),
            json!({ "type": ["object", "null"], "properties": { "a": { "type": "string" } } }),
            json!({ "oneOf": [], "properties": { "a": { "type": "string" } } }),
            json!({ "required": ["b"], "properties": { "a": { "type": "string" } } }),
            of(json!({ "type": "object" })),
            of(json!({ "type": "array", "items": { "type": "string" } })),
            of(json!({ "type": ["string", "number"] })),
            of(json!({ "type": ["string", "number", "null"] })),
            of(json!({ "type": ["null", "null"] })),
            json!({ "required": ["a"], "properties": { "a": { "type": ["string", "null"] } } }),
            json!({ "required": ["a"], "properties": { "a": { "enum": ["b", null] } } }),
            of(json!({ "$ref": "#/$defs/a" })),
            of(json!({ "type": "string", "not": {} })),
            of(json!({ "enum": ["a", 1] })),
            of(json!({ "enum": [] })),
            of(json!({ "type": "array" })),
            of(json!({ "type": "array", "items": { "enum": [1] } })),
            of(json!({ "type": "array", "items": { "type": "object", "enum": ["a"] } })),
            of(json!({ "oneOf": [{ "const": 1 }] })),
            of(json!({ "enum": ["", "a"] })),
            of(json!({ "enum": ["a\nb", "c"] })),
            of(json!({ "oneOf": [{ "const": "", "title": "None" }] })),
            of(json!({ "oneOf": [{ "const": "a", "minLength": 1 }] })),
            of(json!({ "oneOf": [{ "type": "string" }] })),
            of(json!({ "oneOf": [{ "const": "a" }], "enum": ["a"] })),
            of(json!({})),
            of(json!(true)),
        ];
        for schema in rows {
            assert_eq!(form_of(&schema), None, "{schema}");
        }
    }
}
