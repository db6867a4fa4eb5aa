//! Answers that a person gives in a form without scripts: every value is a text.

use greenroom_actors::domain::foreign;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::AskKind;
use greenroom_actors::requests::AskDetail;
use serde_json::{Map, Number, Value, json};

use crate::api::query::{Pairs, value_of};
use crate::api::wire::form::{FieldView, SEVERAL, form_of, plain_of};

/// Name of the control with the decision about an approval.
pub const DECISION: &str = "approved";

/// Name of the control with the reason of that decision.
pub const REASON: &str = "reason";

/// Name of the control with a value as JSON, and prefix of the names of those of its fields.
pub const DATA: &str = "data";

/// Name of the button that declines to answer.
pub const DECLINE: &str = "decline";

/// Refusal of a value that is not among the options.
const NO_CHOICE: &str = "Must be one of the choices";

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
    /// Arguments as the model has written them.
    pub written: &'a Value,
}

/// The controls for a value.
#[derive(Debug, PartialEq)]
pub enum ValueForm<'a> {
    /// The fields of a flat schema.
    Fields(Vec<FieldView<'a>>),
    /// One plain value.
    Plain(FieldView<'a>),
    /// Anything else, as JSON that matches the schema.
    Json(Option<&'a Value>),
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
        Self::Value(ValueForm::of(detail.schema.as_ref()))
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
            ValueForm::Fields(fields) if are_shown_by(written, &fields) => {
                ValueForm::Fields(fields)
            }
            ValueForm::Fields(_) | ValueForm::Plain(_) | ValueForm::Json(_) => {
                ValueForm::Json(Some(schema))
            }
        };
        Some(Self { form, written })
    }

    /// Returns the submitted arguments if they are others.
    fn changed(&self, pairs: &Pairs) -> Result<Option<Value>, Vec<Mistake>> {
        let given = self.form.read(pairs, Some(self.written))?;
        Ok((given != *self.written).then_some(given))
    }
}

impl<'a> ValueForm<'a> {
    fn of(schema: Option<&'a Value>) -> Self {
        let fields = || schema.and_then(form_of).map(Self::Fields);
        let plain = || schema.and_then(plain_of).map(Self::Plain);
        fields().or_else(plain).unwrap_or(Self::Json(schema))
    }

    /// Converts submitted values. What is still as it was shown keeps its value.
    fn read(&self, pairs: &Pairs, shown: Option<&Value>) -> Result<Value, Vec<Mistake>> {
        match self {
            Self::Fields(fields) => values(fields, pairs, shown),
            Self::Plain(field) if field.kind == SEVERAL => {
                several(field, DATA, pairs).map_err(|what| vec![Mistake::at(DATA, what)])
            }
            Self::Plain(field) => {
                match value_of(pairs, DATA).filter(|text| !text.trim().is_empty()) {
                    Some(text) => value(field, text).map_err(|what| vec![Mistake::at(DATA, what)]),
                    None => Err(vec![Mistake::at(DATA, "Needed")]),
                }
            }
            Self::Json(_) => match (value_of(pairs, DATA).map(str::trim), shown) {
                (None, Some(shown)) => Ok(shown.clone()),
                // not the form of the page, which always has it
                (None, None) => Err(vec![Mistake::at(DATA, "Needed")]),
                (Some(""), _) => Ok(Value::Null),
                (Some(text), _) => foreign::from_str(text)
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
            Self::Plain(_) | Self::Json(_) => Some(Mistake::at(DATA, refusal)),
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

/// Returns the answer that declines, if that was submitted and the ask may be declined.
pub fn declining(detail: &AskDetail, pairs: &Pairs) -> Option<Value> {
    let is_declined = detail.can_decline && value_of(pairs, DECLINE).is_some();
    is_declined.then(|| json!({ "action": "decline" }))
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
        if field.kind == SEVERAL {
            // no choice is one too where something is needed, or was shown
            if text.is_some() || field.required || shown.is_some() {
                match several(field, &control, pairs) {
                    // boxes have no order
                    Ok(chosen) => {
                        let same = shown.filter(|shown| has_same_items(shown, &chosen)).cloned();
                        answer.insert(field.name.to_owned(), same.unwrap_or(chosen));
                    }
                    Err(what) => mistakes.push(Mistake::at(&control, what)),
                }
            }
            continue;
        }
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
    if let Some(options) = &field.options {
        return match (field.kind, value) {
            (SEVERAL, Value::Array(values)) => {
                let mut seen = values.iter().enumerate();
                seen.all(|(at, value)| options.contains(value) && !values[..at].contains(value))
            }
            _ => options.contains(value),
        };
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

fn has_same_items(list: &Value, other: &Value) -> bool {
    let (Value::Array(list), Value::Array(other)) = (list, other) else { return false };
    list.len() == other.len() && list.iter().all(|item| other.contains(item))
}

/// Returns the choices that were made for a control, in the order of the options.
fn several(field: &FieldView<'_>, control: &str, pairs: &Pairs) -> Result<Value, &'static str> {
    let options = field.options.as_deref().unwrap_or_default();
    let texts = || pairs.iter().filter(|(name, _)| name == control).map(|(_, text)| text.as_str());
    let is = |option: &Value, text: &str| choice_text(option) == text;
    if texts().any(|text| !options.iter().any(|option| is(option, text))) {
        return Err(NO_CHOICE);
    }
    let chosen = options.iter().filter(|option| texts().any(|text| is(option, text)));
    Ok(chosen.cloned().collect())
}

fn value(field: &FieldView<'_>, text: &str) -> Result<Value, &'static str> {
    if let Some(options) = &field.options {
        let chosen = options.iter().find(|option| choice_text(option) == text);
        return chosen.cloned().ok_or(NO_CHOICE);
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
mod tests;
