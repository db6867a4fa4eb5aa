//! `docs/expressions.md`: the words of expressions, each with an example that is evaluated.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use greenroom_actors::domain::expression::{Expression, FILTERS, FUNCTIONS, Scope, TESTS};
use serde_json::json;

use crate::made_page;

const BEGIN: &str = "\
# Words of expressions

Made from the table in `src/config/tests/expressions.rs` by `UPDATE_DOCS=1 cargo test --lib the_page_of_expressions`; the
test evaluates every example, and finds words that are missing.

[Workflows](workflows.md#expressions-and-schemas) has the names in scope, what may be missing, and how a definition fails on
purpose. The language is that of [minijinja](https://docs.rs/minijinja) without files, macros and namespaces; what is not
here does not exist, and `greenroom check` says so. In the examples, `input` is
`{\"name\": \"Ada\", \"rows\": [{\"n\": 2, \"ok\": true}, {\"n\": 5, \"ok\": false}]}`.

Expressions are pure: the same values give the same result, whenever and however often it is evaluated. So there is no
`now()` and nothing at random. Numbers, booleans and `none` are written as `1`, `2.5`, `true`, `none`, texts as `'a'` or
`\"a\"`, lists as `[1, 2]`, objects as `{'a': 1}`.
";

/// A word, or several with one meaning; an example; what it does.
type Row = (&'static [&'static str], &'static str, &'static str);

const OPERATORS: [Row; 11] = [
    (&["~"], "'Hello ' ~ input.name ~ ', ' ~ 2", "joins as texts; lists and objects as JSON"),
    (&["+", "-", "*", "/"], "7 + 3 * 2 - 8 / 4", "numbers; `/` gives a fraction"),
    (&["//", "%", "**"], "[7 // 2, 7 % 2, 7 ** 2]", "whole part, remainder, power"),
    (&["==", "!=", "<", "<=", ">", ">="], "1 < 2 and 'a' != 'b'", "compare"),
    (&["and", "or", "not"], "not (true and false) or false", "of truths"),
    (
        &["in", "not in"],
        "'da' in input.name and 3 not in [1, 2]",
        "part of a text, item of a list, key of an object",
    ),
    (&["if … else"], "'many' if input.rows | length > 1 else 'one'", "chooses"),
    (&[".", "[…]"], "[input.rows[0].n, input['name'], input.rows[-1].n]", "look up"),
    (&["[…:…]"], "[1, 2, 3, 4][1:3]", "a part of a list or a text"),
    (&["|"], "input.name | upper | length", "gives a value to a filter"),
    (&["is", "is not"], "3 is odd and 3 is not even", "test a value"),
];

const FILTER_ROWS: [Row; 44] = [
    (&["abs"], "(-3) | abs", "without its sign"),
    (&["attr"], "{'a': 1} | attr('a')", "the value of a key"),
    (&["bool"], "0 | bool", "true unless empty, zero, none or false"),
    (&["capitalize"], "'two Words' | capitalize", "first letter large, others small"),
    (&["chain"], "[1] | chain([2, 3]) | list", "lists one after the other"),
    (&["length", "count"], "input.rows | length", "number of items, keys or characters"),
    (
        &["default", "d"],
        "input.note.text | default('-')",
        "a value in place of one that is missing",
    ),
    (&["dictsort"], "{'b': 1, 'a': 2} | dictsort", "pairs of an object, sorted by key"),
    (
        &["epoch_ms"],
        "'2026-01-31T09:00:00+01:00' | epoch_ms",
        "milliseconds since 1970 of an ISO 8601 time with a zone",
    ),
    (&["escape", "e"], "'<b>' | escape", "for HTML"),
    (&["first"], "input.rows | first", "the first item"),
    (&["float"], "'2.5' | float", "a number of a text"),
    (&["format"], "'%05.1f %s' | format(2.5, 'm')", "as `printf` does"),
    (&["fromjson"], "('{\"n\": [1, 2]}' | fromjson).n", "the value of a text that is JSON"),
    (
        &["groupby"],
        "input.rows | groupby('ok') | map('last') | list",
        "groups of items with one value of a key: pairs of the value and its items",
    ),
    (&["indent"], "'a\\nb' | indent(2)", "spaces before all lines but the first"),
    (&["int"], "'7' | int", "a whole number of a text or a fraction"),
    (&["items"], "{'a': 1, 'b': 2} | items | list", "pairs of an object"),
    (&["join"], "input.rows | join(', ', attribute='n')", "one text of all items"),
    (&["last"], "input.rows | last", "the last item"),
    (&["lines"], "'a\\nb' | lines", "the lines of a text"),
    (&["list"], "range(3) | list", "a list of what can be iterated"),
    (&["lower"], "'ABC' | lower", "small letters"),
    (
        &["map"],
        "input.rows | map(attribute='n') | list",
        "a key, or a filter (`map('upper')`), of each item",
    ),
    (&["max"], "[2, 9, 4] | max", "the largest item"),
    (&["min"], "[2, 9, 4] | min", "the smallest item"),
    (&["reject"], "[1, 2, 3] | reject('odd') | list", "items for which a test fails"),
    (&["rejectattr"], "input.rows | rejectattr('ok') | list", "items for whose key a test fails"),
    (&["replace"], "'a-b-c' | replace('-', '+')", "another text in place of one"),
    (&["reverse"], "[1, 2, 3] | reverse | list", "from the end"),
    (&["round"], "2.567 | round(1)", "to this many digits"),
    (&["safe"], "'<b>' | safe", "marks a text as escaped"),
    (&["select"], "[1, 2, 3] | select('odd') | list", "items for which a test holds"),
    (
        &["selectattr"],
        "input.rows | selectattr('n', '>', 3) | list",
        "items for whose key a test holds",
    ),
    (
        &["sort"],
        "input.rows | sort(attribute='n', reverse=true) | map(attribute='n') | list",
        "sorted, also by a key",
    ),
    (&["split"], "'a,b' | split(',') | list", "parts of a text"),
    (&["string"], "7 | string", "as a text"),
    (&["sum"], "input.rows | map(attribute='n') | sum", "of numbers"),
    (&["title"], "'two words' | title", "first letters large"),
    (&["tojson"], "{'n': 1} | tojson", "a text with the value as JSON"),
    (&["trim"], "' a ' | trim", "without space at the ends"),
    (&["unique"], "[1, 2, 1] | unique | list", "each item once"),
    (&["upper"], "'abc' | upper", "large letters"),
    (&["zip"], "[1, 2] | zip(['a', 'b']) | list", "pairs of two lists"),
];

const TEST_ROWS: [Row; 31] = [
    (&["boolean"], "true is boolean", "true or false"),
    (&["defined"], "input.note.text is defined", "exists, with everything before it"),
    (&["divisibleby"], "9 is divisibleby(3)", "without a remainder"),
    (&["endingwith"], "input.name is endingwith('a')", "end of a text"),
    (&["eq", "equalto", "=="], "2 is eq(2)", "equal"),
    (&["escaped", "safe"], "('<b>' | safe) is escaped", "marked as escaped"),
    (&["even"], "2 is even", "an even number"),
    (&["false"], "false is false", "false itself"),
    (&["filter"], "'upper' is filter", "name of a filter"),
    (&["float"], "2.5 is float", "a fraction"),
    (&["ge", ">="], "2 is ge(2)", "at least"),
    (&["gt", "greaterthan", ">"], "3 is gt(2)", "more"),
    (&["in"], "2 is in([1, 2])", "contained"),
    (&["integer", "int"], "2 is integer", "a whole number"),
    (&["iterable"], "[] is iterable", "has items"),
    (&["le", "<="], "2 is le(2)", "at most"),
    (&["lower"], "'abc' is lower", "small letters only"),
    (&["lt", "lessthan", "<"], "1 is lt(2)", "less"),
    (&["mapping"], "input is mapping", "an object"),
    (&["ne", "!="], "1 is ne(2)", "not equal"),
    (&["none"], "none is none", "none, which is null in JSON"),
    (&["number"], "2 is number", "a number"),
    (&["odd"], "3 is odd", "an odd number"),
    (&["sameas"], "1 is sameas(1)", "equal and of one type"),
    (&["sequence"], "input.rows is sequence", "a list"),
    (&["startingwith"], "input.name is startingwith('A')", "beginning of a text"),
    (&["string"], "input.name is string", "a text"),
    (&["test"], "'odd' is test", "name of a test"),
    (&["true"], "true is true", "true itself"),
    (&["undefined"], "input.note.text is undefined", "does not exist"),
    (&["upper"], "'ABC' is upper", "large letters only"),
];

const FUNCTION_ROWS: [Row; 3] = [
    (&["dict"], "dict(a=1, b=2)", "an object"),
    (&["fail"], "fail('Sold out')", "fails with this message, which is not retried"),
    (&["range"], "range(2, 5) | list", "numbers from the first to before the last"),
];

fn result_of(example: &str) -> String {
    let input = json!({ "name": "Ada", "rows": [{ "n": 2, "ok": true }, { "n": 5, "ok": false }] });
    let scope = Scope::new().with("input", Arc::new(input));
    match Expression::compile(example).unwrap().evaluate(&scope) {
        Ok(value) => format!("`{value}`"),
        Err(error) if error.is_raised => format!("fails: {error}"),
        Err(error) => panic!("{example}: {error}"),
    }
}

fn table(page: &mut String, title: &str, rows: &[Row]) {
    write!(page, "\n## {title}\n\n| | Example | Result | Meaning |\n|---|---|---|---|\n").unwrap();
    for (words, example, meaning) in rows {
        let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        let cells = [words.join(", "), format!("`{example}`"), result_of(example)];
        // a bar ends a cell, also inside code
        let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', "\\n"));
        writeln!(page, "| {} | {meaning} |", cells.join(" | ")).unwrap();
    }
}

fn page() -> String {
    let mut page = BEGIN.to_owned();
    table(&mut page, "Operators", &OPERATORS);
    table(&mut page, "Filters", &FILTER_ROWS);
    table(&mut page, "Tests", &TEST_ROWS);
    table(&mut page, "Functions", &FUNCTION_ROWS);
    page
}

#[test]
fn the_page_of_expressions_is_that_of_the_engine() {
    made_page::compare("docs/expressions.md", &page(), "the_page_of_expressions");
}

#[test]
fn every_word_of_the_engine_has_an_example() {
    let words = |rows: &[Row]| -> BTreeSet<&str> {
        rows.iter().flat_map(|(words, ..)| words.iter().copied()).collect()
    };
    assert_eq!(words(&FILTER_ROWS), BTreeSet::from(FILTERS));
    assert_eq!(words(&TEST_ROWS), BTreeSet::from(TESTS));
    assert_eq!(words(&FUNCTION_ROWS), BTreeSet::from(FUNCTIONS));
    for (words, example, _) in [&FILTER_ROWS[..], &TEST_ROWS].concat() {
        assert!(words.iter().any(|word| example.contains(word)), "{words:?}: {example}");
    }
}
