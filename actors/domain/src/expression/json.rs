//! Conversion between JSON and values of the engine.
//!
//! A [`Node`] is a place inside a shared document: nothing is copied until a text or a number is
//! read. The conversion back counts bytes and stops at the limit, so a lazy `[0] * 100000000` costs
//! no more than the limit. Reads are charged; once the budget is spent, documents appear empty.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectExt, ObjectRepr, Value, ValueKind};
use serde_json::{Map, Number, Value as Json};

use super::error::{Refusal, index_step, key_step};
use crate::effort;

/// Maximum nesting of a result; the same as that of JSON parsers.
const DEPTH_MAX: usize = 128;

/// Copied bytes of a document per step.
pub(super) const DOCUMENT_BYTES: usize = 4;

/// An object or array inside a document.
#[derive(Debug)]
pub(super) enum Node {
    Root(Arc<Json>),
    Member(Arc<Node>, Box<str>),
    Item(Arc<Node>, usize),
}

impl Node {
    /// Wraps a document for the engine.
    pub(super) fn view(document: &Arc<Json>) -> Value {
        scalar(document).unwrap_or_else(|| Value::from_object(Self::Root(Arc::clone(document))))
    }

    /// Looks the place up from the root each time, to avoid copies and borrows.
    fn json(&self) -> &Json {
        match self {
            Self::Root(document) => document,
            Self::Member(parent, key) => parent.json().get(&**key).unwrap_or(&Json::Null),
            Self::Item(parent, index) => parent.json().get(*index).unwrap_or(&Json::Null),
        }
    }
}

impl Object for Node {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.json().is_array() { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if let Some(name) = key.as_str() {
            return self.get_value_by_str(name);
        }
        let index = key.as_usize()?;
        if !effort::charge(1) {
            return None;
        }
        let item = self.json().as_array()?.get(index)?;
        let nested = || Value::from_object(Self::Item(Arc::clone(self), index));
        Some(scalar(item).unwrap_or_else(nested))
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if !effort::charge(1) {
            return None;
        }
        let member = self.json().as_object()?.get(key)?;
        let nested = || Value::from_object(Self::Member(Arc::clone(self), key.into()));
        Some(scalar(member).unwrap_or_else(nested))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if !effort::charge(1) {
            return Enumerator::Empty;
        }
        match self.json() {
            Json::Array(items) => Enumerator::Seq(items.len()),
            Json::Object(_) => self.mapped_enumerator(|node| match node.json() {
                Json::Object(members) => {
                    let keys = members.keys().take_while(|key| effort::charge_text(key.len()));
                    Box::new(keys.map(|key| Value::from(key.as_str())))
                }
                _ => Box::new(std::iter::empty()),
            }),
            _ => Enumerator::Empty,
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        match self.json() {
            Json::Array(items) => Some(items.len()),
            Json::Object(members) => Some(members.len()),
            _ => Some(0),
        }
    }

    /// Used by `~`: containers are joined as JSON.
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A truncated text is discarded with the evaluation; an error would panic in the engine.
        let _ = fmt::write(&mut Paid(f), format_args!("{}", self.json()));
        Ok(())
    }
}

/// A writer that charges for each part.
struct Paid<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for Paid<'_, '_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if !effort::charge_text(part.len()) {
            return Err(fmt::Error);
        }
        self.0.write_str(part)
    }
}

/// Converts a value; `None` for arrays and objects.
fn scalar(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), _, _) => Value::from(integer),
            (None, Some(integer), _) => Value::from(integer),
            (None, None, Some(float)) => Value::from(float),
            (None, None, None) => Value::from(()),
        },
        Json::String(text) if !effort::charge_text(text.len()) => Value::from(()),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(_) | Json::Object(_) => return None,
    })
}

/// Remaining size of a result, in bytes of JSON. A float counts as three bytes, the rest exactly.
#[derive(Debug)]
pub(super) struct Allowance {
    left: usize,
    bytes_max: usize,
}

impl Allowance {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { left: bytes_max, bytes_max }
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Refusal> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                return Err(Refusal::of_whole(format!(
                    "value larger than {} bytes",
                    self.bytes_max
                )));
            }
        }
        Ok(())
    }

    pub(super) fn spend_text(&mut self, text: &str) -> Result<(), Refusal> {
        self.spend(text.len() + 2)?;
        self.spend(text.bytes().map(escape_bytes).sum())
    }

    /// Deducts a whole document.
    pub(super) fn spend_json(&mut self, json: &Json) -> Result<(), Refusal> {
        match json {
            Json::Null => self.spend(4),
            Json::Bool(flag) => self.spend(if *flag { 4 } else { 5 }),
            Json::Number(number) => self.spend(number_bytes(number)),
            Json::String(text) => self.spend_text(text),
            Json::Array(items) => {
                self.spend(2 + items.len().saturating_sub(1))?;
                items.iter().try_for_each(|item| self.spend_json(item))
            }
            Json::Object(members) => {
                self.spend(2 + members.len().saturating_sub(1))?;
                members.iter().try_for_each(|(key, member)| {
                    self.spend_text(key)?;
                    self.spend(1)?;
                    self.spend_json(member)
                })
            }
        }
    }
}

fn escape_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0,
    }
}

fn number_bytes(number: &Number) -> usize {
    fn digits(value: u64) -> usize {
        value.checked_ilog10().map_or(1, |log| log as usize + 1)
    }
    match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => digits(value),
        (None, Some(value)) => 1 + digits(value.unsigned_abs()),
        (None, None) => 3,
    }
}

/// Converts a result to JSON; fails on values that JSON cannot represent.
pub(super) fn to_json(value: &Value, allowance: &mut Allowance) -> Result<Json, Refusal> {
    nested_to_json(value, allowance, 0)
}

fn nested_to_json(value: &Value, allowance: &mut Allowance, depth: usize) -> Result<Json, Refusal> {
    if let Some(node) = value.downcast_object_ref::<Node>() {
        let json = node.json();
        let before = allowance.left();
        allowance.spend_json(json)?;
        effort::charge_all((before - allowance.left()) / DOCUMENT_BYTES, 1);
        return if effort::is_exceeded() { Ok(Json::Null) } else { Ok(json.clone()) };
    }
    if !effort::charge(1) {
        return Ok(Json::Null);
    }
    if depth > DEPTH_MAX {
        return Err(Refusal::of_whole(format!("nested deeper than {DEPTH_MAX} levels")));
    }
    let json = match value.kind() {
        ValueKind::Undefined => return Err(Refusal::undefined()),
        ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => number_to_json(value)?,
        ValueKind::String => Json::String(text_to_json(value, allowance)?),
        ValueKind::Seq | ValueKind::Iterable => return items_to_json(value, allowance, depth),
        ValueKind::Map => return members_to_json(value, allowance, depth),
        ValueKind::Invalid => return Err(Refusal::new(value.to_string())),
        kind => return Err(Refusal::new(format!("{kind} is not a value of JSON"))),
    };
    if !json.is_string() {
        allowance.spend_json(&json)?;
    }
    Ok(json)
}

fn text_to_json(value: &Value, allowance: &mut Allowance) -> Result<String, Refusal> {
    let text = value.as_str().unwrap_or_default();
    allowance.spend_text(text)?;
    effort::charge_text(text.len());
    Ok(text.to_owned())
}

fn number_to_json(value: &Value) -> Result<Json, Refusal> {
    if !value.is_integer() {
        let float = f64::try_from(value.clone()).ok().and_then(Number::from_f64);
        return float.map(Json::Number).ok_or_else(|| Refusal::new("not a finite number"));
    }
    match (i64::try_from(value.clone()), u64::try_from(value.clone())) {
        (Ok(integer), _) => Ok(Json::from(integer)),
        (Err(_), Ok(integer)) => Ok(Json::from(integer)),
        (Err(_), Err(_)) => Err(Refusal::new("integer beyond 64 bits")),
    }
}

fn items_to_json(value: &Value, allowance: &mut Allowance, depth: usize) -> Result<Json, Refusal> {
    allowance.spend(2)?;
    let mut items = Vec::new();
    for (index, item) in iterated(value)?.take_while(|_| !effort::is_exceeded()).enumerate() {
        if index > 0 {
            allowance.spend(1)?;
        }
        let item = nested_to_json(&item, allowance, depth + 1);
        items.push(item.map_err(|refusal| refusal.inside(&index_step(index)))?);
    }
    Ok(Json::Array(items))
}

fn members_to_json(
    value: &Value,
    allowance: &mut Allowance,
    depth: usize,
) -> Result<Json, Refusal> {
    allowance.spend(2)?;
    let mut members = Map::new();
    for key in iterated(value)?.take_while(|_| !effort::is_exceeded()) {
        let name = member_name(&key)?;
        allowance.spend_text(&name)?;
        allowance.spend(1 + usize::from(!members.is_empty()))?;
        let member = value.get_item(&key).map_err(|error| Refusal::new(error.to_string()))?;
        let member = nested_to_json(&member, allowance, depth + 1)
            .map_err(|refusal| refusal.inside(&key_step(&name)))?;
        members.insert(name, member);
    }
    Ok(Json::Object(members))
}

fn iterated(value: &Value) -> Result<impl Iterator<Item = Value> + use<>, Refusal> {
    value.try_iter().map_err(|error| Refusal::new(error.to_string()))
}

fn member_name(key: &Value) -> Result<String, Refusal> {
    match key.kind() {
        ValueKind::String | ValueKind::Number | ValueKind::Bool => Ok(key.to_string()),
        kind => Err(Refusal::new(format!("{kind} as a key"))),
    }
}

/// Converts a value to the output of a template: strings unchanged, others as JSON.
pub(super) fn to_text(value: &Value, bytes_max: usize) -> Result<String, Refusal> {
    let mut allowance = Allowance::new(bytes_max);
    if let Some(text) = value.as_str() {
        allowance.spend(text.len())?;
        effort::charge_text(text.len());
        return Ok(text.to_owned());
    }
    Ok(to_json(value, &mut allowance)?.to_string())
}
