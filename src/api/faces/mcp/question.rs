//! Questions to a person: in a form that clients show, a flat object of plain values, or on a page.

use greenroom_actors::agent::ToolAsk;
use greenroom_actors::ports::store::AskKind;
use greenroom_actors::requests::AskDetail;
use serde_json::{Map, Value, json};

use crate::api::wire::form::{FieldView, form_of, plain_of};

/// Field of an answer that is one plain value: forms ask for objects.
const ANSWER: &str = "answer";

/// Largest payload that a question shows, in bytes of JSON: people have to read it.
const PAYLOAD_BYTES_MAX: usize = 4096;

/// Formats of texts that clients know.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// A question to a person.
#[derive(Debug, PartialEq)]
pub struct Question {
    message: String,
    way: Way,
}

/// Way in which a person answers.
#[derive(Debug, PartialEq)]
enum Way {
    /// In a form of the client, by this schema.
    Form(Value),
    /// On a page with this address.
    Page(String),
}

impl Question {
    /// Returns the question of an ask; `None` if its answer has no form that clients show.
    pub fn of(detail: &AskDetail) -> Option<Self> {
        let schema = match detail.ask.kind {
            AskKind::Step | AskKind::Function | AskKind::Compensation | AskKind::Input => {
                let schema = detail.schema.as_ref()?;
                requested(schema).or_else(|| requested_plain(schema))?
            }
            AskKind::Approval => json!({
                "type": "object",
                "properties": {
                    "approved": { "type": "boolean", "title": "Approve" },
                    "reason": { "type": "string", "title": "Reason" },
                },
                "required": ["approved"],
            }),
        };
        let shown = detail.payload.as_deref().and_then(shown).unwrap_or_default();
        Some(Self { message: format!("{}{shown}", detail.ask.reason), way: Way::Form(schema) })
    }

    /// Returns the question of an ask that is answered on a page.
    pub fn on_page(detail: &AskDetail, url: String) -> Self {
        Self { message: detail.ask.reason.to_string(), way: Way::Page(url) }
    }

    /// Returns the question of a tool; `None` if its answer has no form that clients show.
    pub fn of_tool(ask: &ToolAsk) -> Option<Self> {
        let any = json!({ "type": "string" });
        let schema = ask.schema.as_ref().unwrap_or(&any);
        let schema = requested(schema).or_else(|| requested_plain(schema))?;
        Some(Self { message: ask.question.clone(), way: Way::Form(schema) })
    }

    /// Returns the answer to a tool, by the schema of its question, from what a form has given.
    pub fn answer_to_tool(schema: Option<&Value>, content: Value) -> Value {
        let is_plain = schema.is_none_or(|schema| requested(schema).is_none());
        plain_answer(content, is_plain)
    }

    /// Returns the answer to an ask from what a form has given.
    pub fn answer(detail: &AskDetail, content: Value) -> Value {
        let schema = detail.schema.as_ref().filter(|_| detail.ask.kind != AskKind::Approval);
        let is_plain = schema.is_some_and(|schema| requested(schema).is_none());
        plain_answer(content, is_plain)
    }

    /// Returns true if the answer comes with the client's next request.
    pub fn is_form(&self) -> bool {
        matches!(self.way, Way::Form(_))
    }

    /// Asks again, after an answer that was refused.
    #[must_use]
    pub fn again(self, refusal: &str) -> Self {
        Self { message: format!("{refusal}\n\n{}", self.message), ..self }
    }

    /// Returns the request to ask.
    pub fn request(&self) -> Value {
        let message = &self.message;
        let params = match &self.way {
            Way::Form(schema) => {
                json!({ "mode": "form", "message": message, "requestedSchema": schema })
            }
            Way::Page(url) => json!({ "mode": "url", "message": message, "url": url }),
        };
        json!({ "method": "elicitation/create", "params": params })
    }
}

/// Returns the only field of a form that asks for a plain value.
fn plain_answer(mut content: Value, is_plain: bool) -> Value {
    match content.get_mut(ANSWER) {
        Some(answer) if is_plain => answer.take(),
        Some(_) | None => content,
    }
}

fn shown(payload: &Value) -> Option<String> {
    let text = match payload {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).ok()?,
    };
    (text.len() <= PAYLOAD_BYTES_MAX).then(|| format!("\n\n{text}"))
}

/// Returns the schema with what clients know; the answer is checked against the whole one.
fn requested(schema: &Value) -> Option<Value> {
    let fields = form_of(schema)?;
    let own = schema.get("properties")?;
    let mut properties = Map::new();
    for field in &fields {
        properties.insert(field.name.to_owned(), property(field, own.get(field.name)?)?);
    }
    let required: Vec<_> =
        fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    Some(json!({ "type": "object", "properties": properties, "required": required }))
}

/// Returns a schema with one field, for an answer that is one plain value.
fn requested_plain(schema: &Value) -> Option<Value> {
    let answer = property(&plain_of(schema)?, schema)?;
    Some(json!({ "type": "object", "properties": { ANSWER: answer }, "required": [ANSWER] }))
}

fn property(field: &FieldView<'_>, own: &Value) -> Option<Value> {
    let mut property = Map::from_iter([("type".to_owned(), json!(field.kind))]);
    for (key, text) in [("title", field.title), ("description", field.description)] {
        if let Some(text) = text {
            property.insert(key.to_owned(), json!(text));
        }
    }
    if let Some(options) = &field.options {
        // only texts can be chosen from
        if field.kind != "string" || options.is_empty() || !options.iter().all(Value::is_string) {
            return None;
        }
        property.insert("enum".to_owned(), json!(options));
    }
    if let Some(format) = field.format.filter(|format| FORMATS.contains(format)) {
        property.insert("format".to_owned(), json!(format));
    }
    let bounds: &[&str] = match field.kind {
        "string" if field.options.is_none() => &["minLength", "maxLength"],
        "number" | "integer" => &["minimum", "maximum"],
        _ => &[],
    };
    for key in bounds {
        if let Some(bound) = own.get(*key).filter(|bound| bound.is_number()) {
            property.insert((*key).to_owned(), bound.clone());
        }
    }
    if let Some(default) = field.default {
        property.insert("default".to_owned(), default.clone());
    }
    Some(Value::Object(property))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_what_clients_know() {
        let schema = json!({
            "type": "object",
            "required": ["approved"],
            "additionalProperties": false,
            "properties": {
                "approved": { "type": "boolean", "title": "Approve?" },
                "note": { "type": ["string", "null"], "maxLength": 80, "pattern": "^[a-z]" },
                "until": { "type": "string", "format": "date", "description": "Last day" },
                "code": { "type": "string", "format": "hostname" },
                "amount": { "type": "number", "minimum": 0, "exclusiveMaximum": 9, "default": 1 },
                "level": { "enum": ["low", "high"], "minLength": 1 },
            },
        });
        let expected = json!({
            "type": "object",
            "required": ["approved"],
            "properties": {
                "approved": { "type": "boolean", "title": "Approve?" },
                "note": { "type": "string", "maxLength": 80 },
                "until": { "type": "string", "description": "Last day", "format": "date" },
                "code": { "type": "string" },
                "amount": { "type": "number", "minimum": 0, "default": 1 },
                "level": { "type": "string", "enum": ["low", "high"] },
            },
        });
        assert_eq!(requested(&schema), Some(expected));
    }

    #[test]
    fn other_answers_have_no_form() {
        let of = |property: Value| json!({ "type": "object", "properties": { "a": property } });
        for schema in [
            json!(true),
            json!({ "type": "string" }),
            json!({ "type": "array" }),
            of(json!({ "type": "array", "items": { "type": "string" } })),
            of(json!({ "type": "object" })),
            of(json!({ "type": "integer", "enum": [1, 2] })),
        ] {
            assert_eq!(requested(&schema), None, "{schema}");
        }
    }

    #[test]
    fn a_plain_answer_is_one_field() {
        let schema = json!({ "type": "string", "title": "Which?", "maxLength": 9 });
        let expected = json!({
            "type": "object",
            "properties": { "answer": { "type": "string", "title": "Which?", "maxLength": 9 } },
            "required": ["answer"],
        });
        assert_eq!(requested_plain(&schema), Some(expected));
        assert_eq!(requested_plain(&json!({ "type": "array" })), None);
    }

    #[test]
    fn questions_show_payloads_that_people_can_read() {
        let rows = [
            (Value::Null, None),
            (json!("900 EUR"), Some("\n\n900 EUR")),
            (json!({ "n": 1 }), Some("\n\n{\n  \"n\": 1\n}")),
            (json!("x".repeat(PAYLOAD_BYTES_MAX + 1)), None),
        ];
        for (payload, expected) in rows {
            assert_eq!(shown(&payload).as_deref(), expected);
        }
        assert!(shown(&json!("x".repeat(PAYLOAD_BYTES_MAX))).is_some());
    }
}
