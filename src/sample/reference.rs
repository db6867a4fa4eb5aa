//! References inside a schema.

use serde_json::Value;

/// Finds what a reference names: a JSON pointer, an anchor or an id in the same schema.
pub(super) fn resolved<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let Some(fragment) = reference.strip_prefix('#') else {
        return find(root, &|schema| named(schema, "$id", reference));
    };
    let fragment = percent_decoded(fragment)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&fragment);
    }
    find(root, &|schema| {
        named(schema, "$anchor", &fragment) || named(schema, "$dynamicAnchor", &fragment)
    })
}

fn named(schema: &Value, keyword: &str, name: &str) -> bool {
    schema.get(keyword).and_then(Value::as_str) == Some(name)
}

fn find<'a>(schema: &'a Value, is_meant: &dyn Fn(&Value) -> bool) -> Option<&'a Value> {
    if is_meant(schema) {
        return Some(schema);
    }
    match schema {
        Value::Object(members) => members.values().find_map(|member| find(member, is_meant)),
        Value::Array(items) => items.iter().find_map(|item| find(item, is_meant)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}
