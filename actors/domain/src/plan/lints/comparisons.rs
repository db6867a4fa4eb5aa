//! Comparisons with constants whose result is the same for each value of a known shape.

use serde_json::Value;

use crate::expression::{Compared, How, PathKey};

use super::remarks::{Remark, listed};
use super::shape::{NUMBER, Shape, TEXT, TRUTH};

/// Checks the comparison of a value with a constant.
pub(super) fn remark(compared: &Compared, shape: &Shape) -> Option<Remark> {
    let Compared { path, constant, how } = compared;
    let keys = path.keys.iter().map(|key| match key {
        PathKey::Name(name) => format!(".{name}"),
        PathKey::Computed => "[…]".to_owned(),
    });
    let way = format!("{}{}", path.root, keys.collect::<String>());
    if let (Shape::OneOf(known), Value::String(text), How::Equal | How::Among) =
        (shape, constant, how)
    {
        let known = known.iter().map(String::as_str);
        if known.clone().any(|it| it == text) {
            return None;
        }
        let message = format!("`{way}` is never '{text}'; it is one of {}", listed(known.clone()));
        return Some(Remark::warning(message).meant(text, known));
    }
    let what = shape.plain()?;
    let instead = match (what, constant) {
        (TEXT, Value::Number(_)) if *how == How::Order => "; `| float` makes it a number".into(),
        (TEXT, Value::Number(number)) => format!("; a string is written '{number}'"),
        (NUMBER, Value::String(text)) if text.parse::<f64>().is_ok() => {
            format!("; a number is written {text}")
        }
        (NUMBER, Value::String(_)) => String::new(),
        (TRUTH, Value::String(text)) if ["true", "false"].contains(&text.as_str()) => {
            format!("; write {text}")
        }
        (TRUTH, Value::String(_)) => String::new(),
        _ => return None,
    };
    let shown = match constant {
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    };
    let relation = match how {
        How::Equal | How::Among => "never equals",
        // the engine orders values of different types by type: truths, numbers, strings
        How::Order if what == TEXT => "is always greater than",
        How::Order => "is always less than",
    };
    let message = format!("`{way}` is {what} and {relation} {shown}{instead}");
    Some(Remark::warning(message))
}
