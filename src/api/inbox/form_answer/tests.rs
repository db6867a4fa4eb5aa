//! Forms: what submitted texts become, and where mistakes are shown.

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
fn checked_boxes_become_a_list() {
    let list = json!({ "type": "array", "items": { "oneOf": [
        { "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] } });
    let schema = json!({ "required": ["a"], "properties": { "a": list, "b": list } });
    let form = AskForm::Value(ValueForm::Fields(form_of(&schema).unwrap()));
    let read = |given: &[(&str, &str)]| form.read(&pairs(given));
    assert_eq!(read(&[("data.a", "b"), ("data.a", "r")]), Ok(json!({ "a": ["r", "b"] })));
    assert_eq!(read(&[("data.b", "b")]), Ok(json!({ "a": [], "b": ["b"] })));
    let mistake = Mistake::at("data.a", "Must be one of the choices");
    assert_eq!(read(&[("data.a", "r"), ("data.a", "Red")]), Err(vec![mistake]));

    let plain = AskForm::Value(ValueForm::Plain(plain_of(&list).unwrap()));
    assert_eq!(plain.read(&pairs(&[("data", "b")])), Ok(json!(["b"])));
    assert_eq!(plain.read(&pairs(&[])), Ok(json!([])));

    // of arguments, what was shown and is unchecked is left out of the list
    let written = json!({ "a": ["b"], "b": ["r"] });
    let form = with_arguments(&schema, &written);
    let read =
        |given: &[(&str, &str)]| form.read(&pairs(&[&[("approved", "true")], given].concat()));
    assert_eq!(read(&[("data.a", "b"), ("data.b", "r")]), Ok(json!({ "approved": true })));
    let other = json!({ "approved": true, "input": { "a": ["b"], "b": [] } });
    assert_eq!(read(&[("data.a", "b")]), Ok(other));

    // approving what was shown changes nothing, also not its order
    let written = json!({ "a": ["b", "r"] });
    let read = with_arguments(&schema, &written).read(&pairs(&[
        ("approved", "true"),
        ("data.a", "r"),
        ("data.a", "b"),
    ]));
    assert_eq!(read, Ok(json!({ "approved": true })));
    let twice = json!({ "a": ["b", "b"] });
    let AskForm::Decision(Some(arguments)) = with_arguments(&schema, &twice) else { panic!() };
    assert!(matches!(arguments.form, ValueForm::Json(_)), "boxes do not show a value twice");
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
    let (schema, written) = (json!({}), json!({ "amount": 5 }));
    let form = with_arguments(&schema, &written);
    assert_eq!(form.read(&pairs(&[("approved", "true")])), Ok(json!({ "approved": true })));
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
        _ => ValueForm::Json(Some(schema)),
    };
    AskForm::Decision(Some(Arguments { form, written }))
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
        matches!(arguments.form, ValueForm::Json(_))
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
fn a_plain_answer_is_what_was_written() {
    let schema = json!({ "type": "string" });
    let form = AskForm::Value(ValueForm::of(Some(&schema)));
    let read = |text: &str| form.read(&pairs(&[("data", text)]));
    assert_eq!(read("the left\r\none"), Ok(json!("the left\none")));
    assert_eq!(read("7"), Ok(json!("7")));
    assert_eq!(read(" "), Err(vec![Mistake::at("data", "Needed")]));
    assert_eq!(form.mistake("too short"), Mistake::at("data", "too short"));
    let schema = json!({ "type": "integer" });
    let form = AskForm::Value(ValueForm::of(Some(&schema)));
    assert_eq!(form.read(&pairs(&[("data", "7")])), Ok(json!(7)));
    let mistake = Mistake::at("data", "Must be a whole number");
    assert_eq!(form.read(&pairs(&[("data", "many")])), Err(vec![mistake]));
}

#[test]
fn other_answers_are_json() {
    let form = AskForm::Value(ValueForm::Json(None));
    let read = |text: &str| form.read(&pairs(&[("data", text)]));
    assert_eq!(read(" [1, {\"a\": null}] "), Ok(json!([1, { "a": null }])));
    assert_eq!(read("  "), Ok(Value::Null));
    assert_eq!(form.read(&pairs(&[("a", "1")])), Err(vec![Mistake::at("data", "Needed")]));
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
