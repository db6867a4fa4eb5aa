//! Hints for functions as JavaScript writes them, `x => x.id`: filters take their place.

use std::borrow::Cow;

/// Methods of arrays in JavaScript whose argument is a function.
const METHODS: [&str; 11] = [
    "map",
    "filter",
    "find",
    "findIndex",
    "some",
    "every",
    "flatMap",
    "forEach",
    "reduce",
    "sort",
    "toSorted",
];

/// Operators of other languages that may be written for a comparison.
const WORDS: [&str; 7] = ["and", "or", "not", "in", "if", "else", "is"];

/// Longest list that a hint repeats, in bytes.
const LIST_BYTES_MAX: usize = 100;

/// Most arrows that are looked at.
const ARROWS_MAX: usize = 16;

/// A function as the argument of a call.
#[derive(Debug)]
struct Arrow<'a> {
    /// The list before the method; `None` if it is not a plain path.
    list: Option<&'a str>,
    method: &'a str,
    /// The only parameter.
    parameter: Option<&'a str>,
    body: &'a str,
}

/// Returns a hint for the first function in code whose texts are blanked.
pub(super) fn hint(code: &str) -> Option<Cow<'static, str>> {
    let arrow =
        code.match_indices("=>").take(ARROWS_MAX).find_map(|(at, _)| Arrow::at(code, at))?;
    let list = arrow.list.filter(|list| list.len() <= LIST_BYTES_MAX).unwrap_or("rows");
    let key = arrow.key();
    Some(match (arrow.method, key) {
        ("map", Some(key)) => {
            Cow::Owned(format!("there is no `=>`: write `{list} | map(attribute='{key}') | list`"))
        }
        ("filter", Some(key)) => {
            Cow::Owned(format!("there is no `=>`: write `{list} | selectattr('{key}') | list`"))
        }
        _ => Cow::Borrowed(
            "there is no `=>`: filters take its place, as in `rows | map(attribute='id') | list` and \
             `rows | selectattr('n', '>', 3) | list`",
        ),
    })
}

impl<'a> Arrow<'a> {
    /// Returns the function whose arrow is at a byte; `None` if it is rather a comparison.
    fn at(code: &'a str, at: usize) -> Option<Self> {
        let (left, parameters) = parameters(code[..at].trim_end())?;
        // it is an argument of a call, the first one or a later one
        let open = open_parenthesis(left)?;
        if !left.trim_end().ends_with(['(', ',']) {
            return None;
        }
        let called = &left[..open];
        let method = &called[path_start(called, |c| c == '_')..];
        if method.is_empty() || WORDS.contains(&method) {
            return None;
        }
        let parameter = match *parameters.as_slice() {
            [parameter] => Some(parameter),
            _ => None,
        };
        let body = body(&code[at + "=>".len()..]);
        let is_used = parameter.is_none_or(|parameter| words(body).any(|word| word == parameter));
        if !is_used && !METHODS.contains(&method) {
            return None;
        }
        let list = called[..called.len() - method.len()].strip_suffix('.');
        let is_path = |list: &&str| list.starts_with(char::is_alphabetic);
        let list = list.map(|list| &list[path_start(list, |c| "._[]".contains(c))..]);
        Some(Self { list: list.filter(is_path), method, parameter, body })
    }

    /// Returns the key that the function takes of its parameter, if it does nothing else.
    fn key(&self) -> Option<&'a str> {
        let key = self.body.strip_prefix(self.parameter?)?.strip_prefix('.')?;
        let is_key = key.starts_with(is_inner) && path_start(key, |c| "._".contains(c)) == 0;
        is_key.then_some(key)
    }
}

fn is_inner(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns where the letters, digits and such characters at the end of a text begin.
fn path_start(text: &str, is_more: impl Fn(char) -> bool) -> usize {
    text.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || is_more(c)).len()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_inner(c))
}

/// Splits the parameters, `x`, `()` or `(x, y)`, from the end of a text.
fn parameters(text: &str) -> Option<(&str, Vec<&str>)> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_inner)
    };
    if let Some(inside) = text.strip_suffix(')') {
        let (left, inside) = inside.rsplit_once('(')?;
        let names: Vec<&str> = match inside.trim() {
            "" => Vec::new(),
            inside => inside.split(',').map(str::trim).collect(),
        };
        return names.iter().all(|name| is_name(name)).then_some((left, names));
    }
    let (left, name) = text.split_at(path_start(text, |c| c == '_'));
    is_name(name).then(|| (left, vec![name]))
}

/// Returns the parenthesis in which a text ends; `None` if it ends in none, or in another bracket.
fn open_parenthesis(text: &str) -> Option<usize> {
    let mut closed = 0_usize;
    let open = text.char_indices().rev().find(|(_, c)| match c {
        ')' | ']' | '}' => {
            closed += 1;
            false
        }
        '(' | '[' | '{' if closed > 0 => {
            closed -= 1;
            false
        }
        c => matches!(c, '(' | '[' | '{'),
    });
    open.filter(|(_, c)| *c == '(').map(|(at, _)| at)
}

/// Returns the body of a function: the text up to the end of its argument.
fn body(text: &str) -> &str {
    let mut open = 0_usize;
    let end = text.find(|c: char| {
        let is_end = open == 0 && matches!(c, ',' | ')' | ']' | '}');
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        is_end
    });
    text[..end.unwrap_or(text.len())].trim()
}

#[cfg(test)]
mod tests {
    use crate::expression::{Expression, Template};

    fn said(source: &str) -> String {
        Expression::compile(source).unwrap_err().message
    }

    #[test]
    fn functions_get_the_filter_in_their_place() {
        for (source, instead) in [
            ("input.rows.map(x => x.id)", "input.rows | map(attribute='id') | list"),
            (
                "input.rows[0].lines.map( (x)=>x.a.b )",
                "input.rows[0].lines | map(attribute='a.b') | list",
            ),
            ("1 + data.map(row => row.id)", "data | map(attribute='id') | list"),
            ("map(x => x.id)", "rows | map(attribute='id') | list"),
            ("map(input.rows, x => x.id)", "rows | map(attribute='id') | list"),
            ("input['a'].map(x => x.id)", "rows | map(attribute='id') | list"),
            ("input.rows | map(x => x.id)", "rows | map(attribute='id') | list"),
            ("input.rows.filter(x => x.ok)", "input.rows | selectattr('ok') | list"),
        ] {
            let end = format!("; there is no `=>`: write `{instead}`");
            assert!(said(source).ends_with(&end), "{}", said(source));
        }
        let long = format!("{}.map(x => x.id)", "a".repeat(101));
        assert!(
            said(&long).ends_with("write `rows | map(attribute='id') | list`"),
            "{}",
            said(&long)
        );
        let said = Template::compile("a {{ input.rows.map(x => x.id) }}").unwrap_err().message;
        assert!(said.ends_with("write `input.rows | map(attribute='id') | list`"), "{said}");
    }

    #[test]
    fn other_functions_get_examples() {
        for source in [
            "rows.filter(x => x.n > 3 && x.ok)",
            "rows.filter(x => x.kind === 'a')",
            "rows.map(x => 1)",
            "rows.map(x => x)",
            "rows.map(x => x.n + 1)",
            "rows.map(x => ({ a: x.id }))",
            "rows.map((x, i) => x.id)",
            "rows.map(() => 1)",
            "rows.some(x => !x.ok)",
            "rows.sort((a, b) => a.n - b.n)",
            "f(1, x => x.id)",
        ] {
            assert!(
                said(source).contains("; there is no `=>`: filters take its place"),
                "{source}: {}",
                said(source)
            );
        }
    }

    #[test]
    fn only_the_first_arrows_are_looked_at() {
        let after = |count: usize| said(&format!("{}map(x => x.id)", "a => 1 and ".repeat(count)));
        assert!(after(15).contains("there is no `=>`"), "{}", after(15));
        assert!(after(16).ends_with("; `=>` is written `>=`"), "{}", after(16));
    }

    #[test]
    fn comparisons_keep_their_hint() {
        for source in [
            "a => 1",
            "x => x.id",
            "(a => 1)",
            "not (a => 1) and b",
            "b and(a => a)",
            "[a => 1]",
            "f([b, a => a])",
            "bool(count => 3)",
            "f(input.n => n)",
            "f(1 => n)",
            "f(x) => 1",
            "f(a + (x) => 1)",
            "=> 1",
            "(=>",
            "f(=> 1)",
            "f(,) => 1",
        ] {
            assert!(said(source).ends_with("; `=>` is written `>=`"), "{source}: {}", said(source));
        }
    }
}
