//! Keys that a value of a known shape does not have.

use crate::expression::PathKey;

use super::remarks::{Remark, listed};
use super::shape::Shape;

/// Checks the lookup of keys in the value at `way`.
pub(super) fn remark(way: &str, keys: &[PathKey], shape: &Shape) -> Option<Remark> {
    let (key, rest) = keys.split_first()?;
    match (shape, key) {
        (Shape::Object { keys: known, is_closed, .. }, PathKey::Name(name)) => {
            match known.get(name) {
                Some(inner) => remark(&format!("{way}.{name}"), rest, inner),
                None => Some(unknown(way, name, known.keys().map(String::as_str), *is_closed)),
            }
        }
        (Shape::List(items), PathKey::Computed) => remark(&format!("{way}[…]"), rest, items),
        (Shape::List(_), PathKey::Name(name)) if name.parse::<usize>().is_err() => {
            let instead = match name.as_str() {
                "length" | "size" | "count" => "; `| length` counts its items",
                _ => "",
            };
            Some(Remark::error(format!("`{way}` is a list and has no `{name}`{instead}")))
        }
        (Shape::Plain(_) | Shape::OneOf(_), PathKey::Name(name)) => {
            let what = shape.plain()?;
            Some(Remark::error(format!("`{way}` is {what} and has no `{name}`")))
        }
        (Shape::Any, _)
        | (Shape::Object { .. } | Shape::Plain(_) | Shape::OneOf(_), PathKey::Computed)
        | (Shape::List(_), PathKey::Name(_)) => None,
    }
}

fn unknown<'k>(
    way: &str,
    name: &str,
    known: impl Iterator<Item = &'k str> + Clone,
    is_closed: bool,
) -> Remark {
    let shown = listed(known.clone());
    let remark = match is_closed {
        true => Remark::error(format!("`{way}` has no `{name}`; it has {shown}")),
        false => Remark::warning(format!("`{way}` may have no `{name}`; its schema lists {shown}")),
    };
    remark.meant(name, known)
}
