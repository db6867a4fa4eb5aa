//! Answers that a person gives in a form without scripts: every value is a text.

use greenroom_actors::ports::store::AskKind;
use greenroom_actors::requests::AskDetail;
use serde_json::{Map, Number, Value};

use crate::api::query::{Pairs, value_of};
use crate::api::wire::form::{FieldView, form_of};

/// Name of the control with the decision about an approval.
pub const DECISION: &str = "approved";

/// Name of the control with the reason of that decision.
pub const REASON: &str = "reason";

/// Name of the control with the answer as JSON.
pub const DATA: &str = "data";

/// The way in which an ask is answered.
#[derive(Debug, PartialEq)]
pub enum AskForm<'a> {
    /// The call of a tool is approved or refused.
    Decision,
    /// The fields of a flat schema.
    Fields(Vec<FieldView<'a>>),
    /// Anything else, as JSON.
    Json,
}

/// Mistake in a submitted form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Name of the control; `None` if it concerns the whole.
    pub control: Option<String>,
    pub text: String,
}

impl<'a> AskForm<'a> {
    /// Returns the form of an ask.
    pub fn of(detail: &'a AskDetail) -> Self {
        if detail.ask.kind == AskKind::Approval {
            return Self::Decision;
        }
        let schema = detail.schema.as_ref().map(|schema| schema.source());
        schema.and_then(form_of).map_or(Self::Json, Self::Fields)
    }

    /// Converts submitted values to an answer. Empty fields that are not required are left out.
    pub fn read(&self, pairs: &Pairs) -> Result<Value, Vec<Mistake>> {
        match self {
            Self::Decision => decision(pairs).map_err(|mistake| vec![mistake]),
            Self::Fields(fields) => values(fields, pairs),
            Self::Json => match value_of(pairs, DATA).unwrap_or_default().trim() {
                "" => Ok(Value::Null),
                text => serde_json::from_str(text)
                    .map_err(|error| vec![Mistake::at(DATA, format!("Not JSON: {error}"))]),
            },
        }
    }

    /// Returns a refusal of the answer, at the control that it names.
    pub fn mistake(&self, refusal: &str) -> Mistake {
        let controls = match self {
            Self::Decision => vec![REASON.to_owned()],
            Self::Fields(fields) => fields.iter().map(|field| control_of(field.name)).collect(),
            Self::Json => Vec::new(),
        };
        let found = controls.into_iter().find_map(|control| {
            let name = control.strip_prefix(FIELD).unwrap_or(&control);
            let text = refusal.strip_prefix(name)?.strip_prefix(": ")?;
            Some(Mistake::at(&control, text.to_owned()))
        });
        found.unwrap_or_else(|| Mistake { control: None, text: refusal.to_owned() })
    }
}

impl Mistake {
    fn at(control: &str, text: impl Into<String>) -> Self {
        Self { control: Some(control.to_owned()), text: text.into() }
    }
}

/// Prefix of the names of fields: a schema may name its fields as it likes.
const FIELD: &str = "data.";

/// Returns the name of the control of a field.
pub fn control_of(field: &str) -> String {
    format!("{FIELD}{field}")
}

/// Returns the text of a value to choose, shown and submitted.
pub fn choice_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn decision(pairs: &Pairs) -> Result<Value, Mistake> {
    let approved = match value_of(pairs, DECISION) {
        Some("true") => true,
        Some("false") => false,
        Some(_) | None => return Err(Mistake::at(DECISION, "Approve or refuse")),
    };
    let mut answer = Map::from_iter([(DECISION.to_owned(), Value::Bool(approved))]);
    if let Some(reason) = value_of(pairs, REASON).filter(|reason| !reason.trim().is_empty()) {
        answer.insert(REASON.to_owned(), Value::String(with_line_ends(reason)));
    }
    Ok(Value::Object(answer))
}

fn values(fields: &[FieldView<'_>], pairs: &Pairs) -> Result<Value, Vec<Mistake>> {
    let (mut answer, mut mistakes) = (Map::new(), Vec::new());
    for field in fields {
        let control = control_of(field.name);
        match value_of(pairs, &control).filter(|text| !text.trim().is_empty()) {
            None if field.required => mistakes.push(Mistake::at(&control, "Needed")),
            None => {}
            Some(text) => match value(field, text) {
                Ok(value) => drop(answer.insert(field.name.to_owned(), value)),
                Err(what) => mistakes.push(Mistake::at(&control, what)),
            },
        }
    }
    if mistakes.is_empty() { Ok(Value::Object(answer)) } else { Err(mistakes) }
}

fn value(field: &FieldView<'_>, text: &str) -> Result<Value, &'static str> {
    if let Some(options) = field.options {
        let chosen = options.iter().find(|option| choice_text(option) == text);
        return chosen.cloned().ok_or("Must be one of the choices");
    }
    let number = text.trim();
    match field.kind {
        "boolean" => number.parse().map(Value::Bool).map_err(|_| "Must be yes or no"),
        "integer" => whole(number).map(Value::Number).ok_or("Must be a whole number"),
        "number" => {
            let fraction = || Number::from_f64(number.parse().ok()?);
            whole(number).or_else(fraction).map(Value::Number).ok_or("Must be a number")
        }
        _ => Ok(Value::String(with_line_ends(text))),
    }
}

fn whole(text: &str) -> Option<Number> {
    let signed = text.parse::<i64>().map(Number::from);
    signed.or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

/// Returns a text with the line ends of JSON: forms send those of the web.
fn with_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn schema() -> Value {
        json!({ "type": "object", "required": ["ok", "amount"], "properties": {
            "ok": { "type": "boolean" },
            "amount": { "type": "number" },
            "count": { "type": "integer" },
            "level": { "enum": ["low", "<b>high"] },
            "size": { "type": "integer", "enum": [1, 2] },
            "note": { "type": "string" },
        } })
    }

    #[test]
    fn texts_become_values_of_the_schema() {
        let (schema, needed) = (schema(), json!({ "ok": true, "amount": 2 }));
        let form = AskForm::Fields(form_of(&schema).unwrap());
        let rows = [
            ("data.note", "", json!({})),
            ("data.note", "  ", json!({})),
            ("data.note", " a\r\nb ", json!({ "note": " a\nb " })),
            ("data.count", "-3", json!({ "count": -3 })),
            ("data.count", " 18446744073709551615 ", json!({ "count": u64::MAX })),
            ("data.level", "<b>high", json!({ "level": "<b>high" })),
            ("data.level", "", json!({})),
            ("data.size", "2", json!({ "size": 2 })),
            ("note", "not a field", json!({})),
        ];
        for (control, text, more) in rows {
            let given = pairs(&[("data.ok", "true"), ("data.amount", "2"), (control, text)]);
            let mut expected = needed.clone();
            expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(form.read(&given), Ok(expected), "{control}={text}");
        }
        for (text, amount) in [("1e3", 1000.0), (".5", 0.5), ("-1.25", -1.25)] {
            let given = pairs(&[("data.ok", "false"), ("data.amount", text)]);
            assert_eq!(form.read(&given), Ok(json!({ "ok": false, "amount": amount })), "{text}");
        }
    }

    #[test]
    fn wrong_texts_are_refused_at_their_control() {
        let schema = schema();
        let form = AskForm::Fields(form_of(&schema).unwrap());
        let rows = [
            ("data.ok", "maybe", "Must be yes or no"),
            ("data.ok", "", "Needed"),
            ("data.amount", "much", "Must be a number"),
            ("data.amount", "inf", "Must be a number"),
            ("data.amount", "NaN", "Must be a number"),
            ("data.amount", "1,5", "Must be a number"),
            ("data.count", "1.5", "Must be a whole number"),
            ("data.count", "99999999999999999999", "Must be a whole number"),
            ("data.level", "high", "Must be one of the choices"),
            ("data.size", "3", "Must be one of the choices"),
        ];
        for (control, text, what) in rows {
            let given = pairs(&[("data.ok", "true"), ("data.amount", "2"), (control, text)]);
            let mistake = Mistake::at(control, what);
            assert_eq!(form.read(&given), Err(vec![mistake]), "{control}={text}");
        }
        assert_eq!(form.read(&[]).unwrap_err().len(), 2, "both that are needed");
    }

    #[test]
    fn a_decision_is_explicit() {
        let read = |given: &[(&str, &str)]| AskForm::Decision.read(&pairs(given));
        assert_eq!(read(&[("approved", "true")]), Ok(json!({ "approved": true })));
        let refused = read(&[("reason", "no\r\nway"), ("approved", "false")]);
        assert_eq!(refused, Ok(json!({ "approved": false, "reason": "no\nway" })));
        for bad in [&[][..], &[("approved", "")], &[("approved", "yes")], &[("reason", "x")]] {
            assert_eq!(read(bad).unwrap_err()[0].control.as_deref(), Some("approved"), "{bad:?}");
        }
    }

    #[test]
    fn other_answers_are_json() {
        let read = |text: &str| AskForm::Json.read(&pairs(&[("data", text)]));
        assert_eq!(read(" [1, {\"a\": null}] "), Ok(json!([1, { "a": null }])));
        assert_eq!((read("  "), AskForm::Json.read(&[])), (Ok(Value::Null), Ok(Value::Null)));
        for bad in ["{", "yes", "1 2", "'a'"] {
            assert_eq!(read(bad).unwrap_err()[0].control.as_deref(), Some("data"), "{bad}");
        }
    }

    #[test]
    fn refusals_are_shown_where_they_belong() {
        let schema = schema();
        let form = AskForm::Fields(form_of(&schema).unwrap());
        assert_eq!(form.mistake("amount: too much"), Mistake::at("data.amount", "too much"));
        for whole in ["amounts: too much", "too much", "amount.x: too much"] {
            let mistake = Mistake { control: None, text: whole.to_owned() };
            assert_eq!(form.mistake(whole), mistake);
        }
    }
}
