//! JSON objects of tokens, read more strictly than usual: a name that is there twice means one
//! thing to one reader and another to the next, and depth costs more to read than to write.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Deepest nesting; the object itself is the first level.
const DEPTH_MAX: usize = 16;

/// Reads an object. `None` for anything else, for a name that is there twice on any level, and
/// for what is nested too deeply.
pub(super) fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = reader.deserialize_any(Strict { depth: 0 }).ok()?;
    reader.end().ok()?;
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// Reads a value that is inside `depth` others.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > DEPTH_MAX { Err(E::custom("too deep")) } else { Ok(Self { depth }) }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let item = self.inside()?;
        let mut read = Vec::new();
        while let Some(value) = items.next_element_seed(item)? {
            read.push(value);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let member = self.inside()?;
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(member)?;
            if read.insert(name, value).is_some() {
                return Err(A::Error::custom("a name is there twice"));
            }
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_as_it_is() {
        let text =
            r#"{"a":1,"b":[-2,2.5,true,null,"x\u00e9",{}],"c":{"a":{"a":18446744073709551615}}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(object(text.as_bytes()).map(Value::Object), Some(expected));
        assert_eq!(object(b" {} \n"), Some(Map::new()));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        let deepest = format!("{}1{}", "{\"a\":".repeat(DEPTH_MAX), "}".repeat(DEPTH_MAX));
        assert!(object(deepest.as_bytes()).is_some());
        let deeper = format!("{{\"a\":{}{}}}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        let rows: [&[u8]; 15] = [
            br#"{"a":1,"a":1}"#,
            br#"{"a":1,"\u0061":2}"#,
            br#"{"a":{"b":1,"b":2}}"#,
            br#"{"a":[{"b":1,"b":2}]}"#,
            br#"{"a":1}{"a":1}"#,
            br#"{"a":1} x"#,
            br#"{"a":1e999}"#,
            br#"{"a":NaN}"#,
            br#"{'a':1}"#,
            br#"{"a":"\ud800"}"#,
            b"{\"a\":\"\xff\"}",
            b"\xef\xbb\xbf{}",
            b"[]",
            b"",
            deeper.as_bytes(),
        ];
        for bytes in rows {
            assert_eq!(object(bytes), None, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
