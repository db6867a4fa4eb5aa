//! Tricky documents, cut at every character.

use serde_json::json;

use super::*;

/// Pushes the characters one by one; returns the value after each.
fn values(text: &str) -> Vec<Option<Value>> {
    let mut partial = PartialJson::default();
    let mut bytes = [0; 4];
    let push = |c: char| {
        partial.push(c.encode_utf8(&mut bytes));
        partial.value()
    };
    text.chars().map(push).collect()
}

/// Returns true if more text can turn `part` into `whole`.
fn grows_into(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|it| grows_into(part, it)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(a, b)| grows_into(a, b))
        }
        (Value::String(part), Value::String(whole)) => whole.starts_with(part),
        (part, whole) => part == whole,
    }
}

const TRICKY: [&str; 14] = [
    r#"{}"#,
    r#"[]"#,
    r#"{"a":1,"b":[true,false,null],"c":{"d":-1.5e-3}}"#,
    r#"[1,12,123.456,1E5,0]"#,
    r#"["\"quoted\"","back\\slash\\","tab\tline\nslash\/","\b\f\r"]"#,
    r#"["\u0041\u00e9\u4e2d","\ud83d\ude00 smile","x\ud83d\ude00\ud83d\ude01"]"#,
    r#"{"key with \"quotes\" and \ud83d\ude00":"v","":""}"#,
    r#"["é中😀","{not:\"an object\"}","[1,2","a,b:c"]"#,
    r#"[[[[[["deep"]]]]],{"a":{"b":{"c":{}}}}]"#,
    " \n\t{ \"a\" : [ 1 , 2 ] ,\r\n \"b\" : { } , \"c\" : \"x\" } ",
    r#"[{"a":1},{"a":2},{"a":"three"}]"#,
    r#"{"a":true,"b":"true","c":null,"d":"null"}"#,
    r#"{"a":"```","b":"ends with a backslash \\"}"#,
    r#"[-0,0.0,10000000000000000000,1.7976931348623157e308]"#,
];

#[test]
fn every_cut_gives_a_value_that_grows_into_the_whole() {
    for text in TRICKY {
        let whole: Value = serde_json::from_str(text).unwrap();
        let values = values(text);
        let start = text.len() - text.trim_start().len();
        for (cut, value) in values.iter().enumerate().skip(start) {
            let value = value.as_ref().unwrap_or_else(|| panic!("{text} has none at {cut}"));
            assert!(grows_into(value, &whole), "{text} at {cut}: {value}");
        }
        for pair in values[start..].windows(2) {
            let (Some(before), Some(after)) = (&pair[0], &pair[1]) else { unreachable!() };
            assert!(grows_into(before, after), "{text}: {before} does not grow into {after}");
        }
        assert_eq!(values.last().unwrap().as_ref(), Some(&whole), "{text}");
    }
}

#[test]
fn the_value_does_not_depend_on_the_size_of_pieces() {
    for text in TRICKY {
        let each: Vec<_> = values(text);
        let ends: Vec<_> = text.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        for (end, expected) in ends.into_iter().zip(each) {
            let mut partial = PartialJson::default();
            partial.push(&text[..end]);
            assert_eq!(partial.value(), expected, "{text} up to {end}");
        }
    }
}

#[test]
fn a_cut_omits_incomplete_values() {
    let rows = [
        ("", None),
        ("  ", None),
        ("{", Some(json!({}))),
        (r#"{"na"#, Some(json!({}))),
        (r#"{"name""#, Some(json!({}))),
        (r#"{"name":"#, Some(json!({}))),
        (r#"{"name":""#, Some(json!({ "name": "" }))),
        (r#"{"name":"An"#, Some(json!({ "name": "An" }))),
        (r#"{"name":"An\"#, Some(json!({ "name": "An" }))),
        (r#"{"name":"An\u00"#, Some(json!({ "name": "An" }))),
        (r#"{"name":"An\ud83d\ude"#, Some(json!({ "name": "An" }))),
        (r#"{"n":12"#, Some(json!({}))),
        (r#"{"n":12 "#, Some(json!({ "n": 12 }))),
        (r#"{"n":12,"#, Some(json!({ "n": 12 }))),
        (r#"[tru"#, Some(json!([]))),
        (r#"[true"#, Some(json!([]))),
        (r#"[true,[1,"#, Some(json!([true, [1]]))),
    ];
    for (text, expected) in rows {
        let mut partial = PartialJson::default();
        partial.push(text);
        assert_eq!(partial.value(), expected, "{text}");
    }
}

#[test]
fn invalid_json_has_no_value() {
    let deep = "[".repeat(1000);
    let rows = [
        "no idea",
        "true",
        "12",
        "\"text\"",
        "{]",
        "[}",
        "{\"a\" 1,",
        "[1 2,",
        "{1:2,",
        "[nope,",
        "[\"\\x\"]",
        "[\"\\ud83dx\"]",
        "[1e999,",
        &deep,
    ];
    for text in rows {
        let mut partial = PartialJson::default();
        partial.push(text);
        assert_eq!(partial.value(), None, "{text}");
    }
}

#[test]
fn a_fence_and_surrounding_text_are_ignored() {
    let json = "{\"a\":\"```\"}";
    let rows = [
        format!("```json\n{json}\n```\nDone: {{}}"),
        format!("```\n{json}```"),
        format!("Here it is:\n```json\n{json}\n```"),
        format!(" \n{json}\n\nAnything {{else}}?"),
    ];
    for text in &rows {
        let (mut whole, mut written) = (PartialJson::default(), String::new());
        assert_eq!(whole.push(text), json, "{text}");
        let mut pieces = PartialJson::default();
        for c in text.chars() {
            written.push_str(pieces.push(c.encode_utf8(&mut [0; 4])));
        }
        assert_eq!(written, json, "{text}");
        assert_eq!((pieces.text(), pieces.value()), (json, Some(json!({ "a": "```" }))));
    }
}

#[test]
fn a_long_prefix_is_not_stored() {
    let mut partial = PartialJson::default();
    for _ in 0..10_000 {
        assert_eq!(partial.push("word "), "");
    }
    assert!(partial.head.len() <= HEAD_BYTES_MAX + 5);
    assert_eq!(partial.push("{\"a\":1}"), "");
}
