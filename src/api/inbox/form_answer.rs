//! Answers that a person gives in a form without scripts: every value is a text.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::AskKind;
use greenroom_actors::requests::AskDetail;
use serde_json::{Map, Number, Value};

use crate::api::query::{Pairs, value_of};
use crate::api::wire::form::{FieldView, form_of};

/// Name of the control with the decision about an approval.
pub const DECISION: &str = "approved";

/// Name of the control with the reason of that decision.
pub const REASON: &str = "reason";

/// Name of the control with a value as JSON, and prefix of the names of those of its fields.
pub const DATA: &str = "data";

/// Key of an answer with other arguments.
const INPUT: &str = "input";

/// The way in which an ask is answered.
#[derive(Debug, PartialEq)]
pub enum AskForm<'a> {
    /// The call of a tool is approved or refused, with other arguments where people may change them.
    Decision(Option<Arguments<'a>>),
    /// A value is given.
    Value(ValueForm<'a>),
}

/// Arguments of a call that people may change.
#[derive(Debug, PartialEq)]
pub struct Arguments<'a> {
    pub form: ValueForm<'a>,
    /// What the model has written.
    pub written: &'a Value,
    pub schema: &'a Value,
}

/// The controls for a value.
#[derive(Debug, PartialEq)]
pub enum ValueForm<'a> {
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
            return Self::Decision(Arguments::of(detail));
        }
        Self::Value(ValueForm::of(detail.schema.as_ref().map(|schema| schema.source())))
    }

    /// Converts submitted values to an answer. Empty fields that are not required are left out.
    pub fn read(&self, pairs: &Pairs) -> Result<Value, Vec<Mistake>> {
        match self {
            Self::Decision(arguments) => decision(arguments.as_ref(), pairs),
            Self::Value(form) => form.read(pairs, None),
        }
    }

    /// Returns a refusal of the answer, at the control that it names.
    pub fn mistake(&self, refusal: &str) -> Mistake {
        let found = match self {
            Self::Decision(arguments) => match (behind(refusal, INPUT), arguments) {
                (Some(refusal), Some(Arguments { form, .. })) => return form.mistake(refusal),
                _ => behind(refusal, REASON).map(|text| Mistake::at(REASON, text)),
            },
            Self::Value(form) => return form.mistake(refusal),
        };
        found.unwrap_or_else(|| Mistake { control: None, text: refusal.to_owned() })
    }
}

impl<'a> Arguments<'a> {
    fn of(detail: &'a AskDetail) -> Option<Self> {
        let written = detail.payload.as_deref()?;
        let schema = detail.arguments.as_ref()?.source();
        let form = match ValueForm::of(Some(schema)) {
            ValueForm::Fields(fields) if !are_shown_by(written, &fields) => ValueForm::Json,
            form => form,
        };
        Some(Self { form, written, schema })
    }

    /// Returns the submitted arguments if they are others.
    fn changed(&self, pairs: &Pairs) -> Result<Option<Value>, Vec<Mistake>> {
        let given = self.form.read(pairs, Some(self.written))?;
        Ok((given != *self.written).then_some(given))
    }
}

impl<'a> ValueForm<'a> {
    fn of(schema: Option<&'a Value>) -> Self {
        schema.and_then(form_of).map_or(Self::Json, Self::Fields)
    }

    /// Converts submitted values. What is still as it was shown keeps its value.
    fn read(&self, pairs: &Pairs, shown: Option<&Value>) -> Result<Value, Vec<Mistake>> {
        match self {
            Self::Fields(fields) => values(fields, pairs, shown),
            Self::Json => match value_of(pairs, DATA).unwrap_or_default().trim() {
                "" => Ok(Value::Null),
                text => serde_json::from_str(text)
                    .map_err(|error| vec![Mistake::at(DATA, format!("Not JSON: {error}"))]),
            },
        }
    }

    fn mistake(&self, refusal: &str) -> Mistake {
        let at_field = |field: &FieldView<'_>| {
            Some(Mistake::at(&control_of(field.name), behind(refusal, field.name)?))
        };
        match self {
            Self::Fields(fields) => fields.iter().find_map(at_field),
            Self::Json => Some(Mistake::at(DATA, refusal)),
        }
        .unwrap_or_else(|| Mistake { control: None, text: refusal.to_owned() })
    }
}

impl Mistake {
    fn at(control: &str, text: impl Into<String>) -> Self {
        Self { control: Some(control.to_owned()), text: text.into() }
    }
}

/// Returns what a refusal says about the value at a name.
fn behind<'r>(refusal: &'r str, name: &str) -> Option<&'r str> {
    refusal.strip_prefix(name)?.strip_prefix(": ")
}

/// Returns the name of the control of a field: a schema may name its fields as it likes.
pub fn control_of(field: &str) -> String {
    format!("{DATA}.{field}")
}

/// Returns the text of a value to choose, shown and submitted.
pub fn choice_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn decision(arguments: Option<&Arguments<'_>>, pairs: &Pairs) -> Result<Value, Vec<Mistake>> {
    let approved = match value_of(pairs, DECISION) {
        Some("true") => true,
        Some("false") => false,
        Some(_) | None => return Err(vec![Mistake::at(DECISION, "Approve or refuse")]),
    };
    let mut answer = Map::from_iter([(DECISION.to_owned(), Value::Bool(approved))]);
    if let Some(reason) = value_of(pairs, REASON).filter(|reason| !reason.trim().is_empty()) {
        answer.insert(REASON.to_owned(), Value::String(with_line_ends(reason)));
    }
    // a call that is refused is not made, whatever its arguments
    if let Some(arguments) = arguments.filter(|_| approved)
        && let Some(input) = arguments.changed(pairs)?
    {
        answer.insert(INPUT.to_owned(), input);
    }
    Ok(Value::Object(answer))
}

fn values(
    fields: &[FieldView<'_>],
    pairs: &Pairs,
    shown: Option<&Value>,
) -> Result<Value, Vec<Mistake>> {
    let (mut answer, mut mistakes) = (Map::new(), Vec::new());
    for field in fields {
        let control = control_of(field.name);
        let text = value_of(pairs, &control);
        let shown = shown.and_then(|shown| shown.get(field.name));
        let is_as_shown =
            |shown: &&Value| text.is_some_and(|text| is_same_text(text, &choice_text(shown)));
        if let Some(unchanged) = shown.filter(is_as_shown) {
            answer.insert(field.name.to_owned(), unchanged.clone());
            continue;
        }
        match text.filter(|text| !text.trim().is_empty()) {
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

/// Returns true if controls show arguments whole and as they are: browsers drop what does not suit
/// a control.
fn are_shown_by(written: &Value, fields: &[FieldView<'_>]) -> bool {
    written.as_object().is_some_and(|written| {
        written.iter().all(|(name, value)| {
            fields.iter().any(|field| field.name == name && suits(field, value))
        })
    })
}

fn suits(field: &FieldView<'_>, value: &Value) -> bool {
    if let Some(options) = field.options {
        return options.contains(value);
    }
    match (field.kind, value) {
        ("boolean", Value::Bool(_)) | ("integer" | "number", Value::Number(_)) => true,
        ("string", Value::String(text)) => match field.format {
            None => true,
            Some("date") => Timestamp::from_iso(&format!("{text}T00:00:00Z")).is_some(),
            Some(_) => text.trim() == text && !text.contains(['\r', '\n']),
        },
        _ => false,
    }
}

/// Compares texts as forms do, whose line ends are those of the web.
fn is_same_text(submitted: &str, shown: &str) -> bool {
    let plain = |text: &str| with_line_ends(text).replace('\r', "\n");
    plain(submitted) == plain(shown)
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
        let form = AskForm::Value(ValueForm::Fields(form_of(&schema).unwrap()));
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
        let form = AskForm::Value(ValueForm::Fields(form_of(&schema).unwrap()));
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
        let read = |given: &[(&str, &str)]| AskForm::Decision(None).read(&pairs(given));
        assert_eq!(read(&[("approved", "true")]), Ok(json!({ "approved": true })));
        let refused = read(&[("reason", "no\r\nway"), ("approved", "false")]);
        assert_eq!(refused, Ok(json!({ "approved": false, "reason": "no\nway" })));
        for bad in [&[][..], &[("approved", "")], &[("approved", "yes")], &[("reason", "x")]] {
            assert_eq!(read(bad).unwrap_err()[0].control.as_deref(), Some("approved"), "{bad:?}");
        }
    }

    fn with_arguments<'a>(schema: &'a Value, written: &'a Value) -> AskForm<'a> {
        let form = match form_of(schema) {
            Some(fields) if are_shown_by(written, &fields) => ValueForm::Fields(fields),
            _ => ValueForm::Json,
        };
        AskForm::Decision(Some(Arguments { form, written, schema }))
    }

    #[test]
    fn only_other_arguments_are_sent() {
        let written = json!({ "ok": true, "amount": 500.0, "note": "a\r\nb", "level": "low" });
        let schema = schema();
        let form = with_arguments(&schema, &written);
        let as_shown = [
            ("approved", "true"),
            ("data.ok", "true"),
            ("data.amount", "500.0"),
            ("data.note", "a\r\nb"),
            ("data.level", "low"),
            ("data.count", ""),
        ];
        assert_eq!(form.read(&pairs(&as_shown)), Ok(json!({ "approved": true })));
        let but = |control, text| {
            let other =
                as_shown.map(|(name, shown)| (name, if name == control { text } else { shown }));
            form.read(&pairs(&other))
        };
        let edited = but("data.amount", "450").unwrap();
        let input = json!({ "ok": true, "amount": 450, "note": "a\r\nb", "level": "low" });
        assert_eq!(edited, json!({ "approved": true, "input": input }));
        let emptied = but("data.note", "").unwrap();
        assert_eq!(emptied["input"].get("note"), None);
        let mistake = Mistake::at("data.amount", "Must be a number");
        assert_eq!(but("data.amount", "much"), Err(vec![mistake]));
        let refused = [("approved", "false"), ("data.amount", "much"), ("reason", "no")];
        let refusal = json!({ "approved": false, "reason": "no" });
        assert_eq!(form.read(&pairs(&refused)), Ok(refusal), "whatever the arguments are");
    }

    #[test]
    fn arguments_that_controls_cannot_show_are_json() {
        let schema = json!({ "properties": {
            "level": { "enum": ["low", "high"] },
            "day": { "type": "string", "format": "date" },
            "mail": { "type": "string", "format": "email" },
            "count": { "type": "integer" },
            "note": { "type": "string" },
        } });
        let is_json = |written: &Value| {
            let AskForm::Decision(Some(arguments)) = with_arguments(&schema, written) else {
                panic!("no decision");
            };
            arguments.form == ValueForm::Json
        };
        let shown = json!({ "level": "low", "day": "2026-02-28", "mail": "a@b.example",
                            "count": 1, "note": " a\nb" });
        assert!(!is_json(&shown) && !is_json(&json!({})));
        for (name, value) in [
            ("level", json!("middle")),
            ("day", json!("2026-02-30")),
            ("day", json!("soon")),
            ("mail", json!(" a@b.example")),
            ("mail", json!("a\nb")),
            ("count", json!("1")),
            ("count", Value::Null),
            ("note", json!(["a"])),
            ("other", json!("a")),
        ] {
            let mut written = shown.clone();
            written[name] = value;
            assert!(is_json(&written), "{written}");
        }
        assert!(is_json(&json!("text")));

        let (nested, written) = (json!({ "type": "object" }), json!({ "a": [1] }));
        let form = with_arguments(&nested, &written);
        let read = |text| form.read(&pairs(&[("approved", "true"), ("data", text)]));
        assert_eq!(read(" {\"a\":[1]} "), Ok(json!({ "approved": true })));
        let edited = json!({ "approved": true, "input": { "a": [] } });
        assert_eq!(read("{\"a\":[]}"), Ok(edited));
        assert_eq!(read("{").unwrap_err()[0].control.as_deref(), Some("data"));
        assert_eq!(form.mistake("input: a: too few"), Mistake::at("data", "a: too few"));
    }

    #[test]
    fn other_answers_are_json() {
        let form = AskForm::Value(ValueForm::Json);
        let read = |text: &str| form.read(&pairs(&[("data", text)]));
        assert_eq!(read(" [1, {\"a\": null}] "), Ok(json!([1, { "a": null }])));
        assert_eq!((read("  "), form.read(&[])), (Ok(Value::Null), Ok(Value::Null)));
        for bad in ["{", "yes", "1 2", "'a'"] {
            assert_eq!(read(bad).unwrap_err()[0].control.as_deref(), Some("data"), "{bad}");
        }
    }

    #[test]
    fn refusals_are_shown_where_they_belong() {
        let schema = schema();
        let form = AskForm::Value(ValueForm::Fields(form_of(&schema).unwrap()));
        assert_eq!(form.mistake("amount: too much"), Mistake::at("data.amount", "too much"));
        for whole in ["amounts: too much", "too much", "amount.x: too much"] {
            let mistake = Mistake { control: None, text: whole.to_owned() };
            assert_eq!(form.mistake(whole), mistake);
        }
        let written = json!({ "ok": true, "amount": 1 });
        let form = with_arguments(&schema, &written);
        assert_eq!(form.mistake("input: amount: too much"), Mistake::at("data.amount", "too much"));
        assert_eq!(form.mistake("reason: too long"), Mistake::at("reason", "too long"));
        for (refusal, text) in [("input: wrong", "wrong"), ("amount: wrong", "amount: wrong")] {
            let mistake = Mistake { control: None, text: text.to_owned() };
            assert_eq!(form.mistake(refusal), mistake);
        }
    }
}
