//! Values, attributes and times of OTLP.

use std::collections::BTreeMap;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::span::AttributeValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// Builds an attribute.
pub(super) fn pair(key: impl Into<String>, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(any(value)), ..KeyValue::default() }
}

/// Builds a text attribute.
pub(super) fn text(key: impl Into<String>, value: impl Into<String>) -> KeyValue {
    pair(key, Value::StringValue(value.into()))
}

pub(super) fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

/// Converts the value of a span's attribute.
pub(super) fn of_attribute(value: AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => Value::StringValue(text),
        AttributeValue::Int(number) => Value::IntValue(number),
        AttributeValue::Float(number) => Value::DoubleValue(number),
        AttributeValue::Bool(flag) => Value::BoolValue(flag),
        AttributeValue::Texts(texts) => {
            array(texts.into_iter().map(|text| any(Value::StringValue(text))).collect())
        }
    }
}

/// Converts a JSON value. `null` becomes an empty value.
pub(super) fn of_json(value: &serde_json::Value) -> AnyValue {
    use serde_json::Value as Json;
    let value = match value {
        Json::Null => return AnyValue { value: None },
        Json::Bool(flag) => Value::BoolValue(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::IntValue(number),
            (None, Some(number)) => Value::DoubleValue(number),
            (None, None) => Value::StringValue(number.to_string()),
        },
        Json::String(text) => Value::StringValue(text.clone()),
        Json::Array(items) => array(items.iter().map(of_json).collect()),
        Json::Object(members) => {
            let member = |(key, value): (&String, _)| KeyValue {
                key: key.clone(),
                value: Some(of_json(value)),
                ..KeyValue::default()
            };
            Value::KvlistValue(KeyValueList { values: members.iter().map(member).collect() })
        }
    };
    any(value)
}

fn array(values: Vec<AnyValue>) -> Value {
    Value::ArrayValue(ArrayValue { values })
}

/// Converts a time to nanoseconds since 1970; earlier times become 0.
pub(super) fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or_default().saturating_mul(1_000_000)
}

/// Decodes a trace id; `None` unless it has 32 hex digits.
pub(super) fn trace_bytes(id: &str) -> Option<Vec<u8>> {
    let number = u128::from_str_radix(id, 16).ok().filter(|_| id.len() == 32)?;
    Some(number.to_be_bytes().to_vec())
}

/// Builds the resource, which describes this process.
pub(super) fn resource(attributes: &BTreeMap<String, String>) -> Resource {
    let attributes = attributes.iter().map(|(name, value)| text(name, value)).collect();
    Resource { attributes, ..Resource::default() }
}

/// Returns the instrumentation scope: this program.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_values_keep_their_types() {
        let value = json!({ "a": [1, 1.5, "x", true, null], "b": u64::MAX });
        let Some(Value::KvlistValue(list)) = of_json(&value).value else { panic!("no list") };
        assert_eq!(list.values[0].key, "a");
        let Some(Value::ArrayValue(items)) = list.values[0].value.clone().unwrap().value else {
            panic!("no array")
        };
        let items: Vec<_> = items.values.into_iter().map(|item| item.value).collect();
        let expected = [
            Some(Value::IntValue(1)),
            Some(Value::DoubleValue(1.5)),
            Some(Value::StringValue("x".to_owned())),
            Some(Value::BoolValue(true)),
            None,
        ];
        assert_eq!(items, expected);
        let large = list.values[1].value.clone().unwrap().value;
        assert_eq!(large, Some(Value::DoubleValue(u64::MAX as f64)));
    }

    #[test]
    fn ids_and_times_are_bytes_and_nanoseconds() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(trace_bytes(id).unwrap()[..3], [0x0a, 0xf7, 0x65]);
        for bad in ["", "0af7", &format!("{id}0"), &"x".repeat(32)] {
            assert_eq!(trace_bytes(bad), None, "{bad}");
        }
        assert_eq!(nanoseconds(Timestamp(1_700_000_000_123)), 1_700_000_000_123_000_000);
        assert_eq!(nanoseconds(Timestamp(-1)), 0);
    }
}
