//! Hints for sources that do not compile because they use the syntax of another language.

mod arrow;

use std::borrow::Cow;

use super::{Expression, without_texts};

/// Longest template that a hint translates, in bytes.
const TRANSLATED_BYTES_MAX: usize = 200;

/// Returns a hint for an expression that does not compile.
pub(super) fn of_expression(source: &str) -> Option<Cow<'static, str>> {
    let code = without_texts(source);
    if has_braces(source) {
        return Some(translated(source).map_or_else(
            || Cow::Borrowed("write an expression without {{ }}: `'Hello ' ~ input.name`"),
            |expression| Cow::Owned(format!("write `{expression}`")),
        ));
    }
    if code.contains("${") {
        return Some(Cow::Borrowed("write an expression without ${ }"));
    }
    if is_prose(source) {
        return Some(Cow::Borrowed("a string is written \"'a text'\""));
    }
    of_code(&code)
}

/// Returns true if a source has braces of templates outside its strings.
fn has_braces(source: &str) -> bool {
    // the apostrophe of a word begins no string
    let mut before = None;
    let plain: String = source
        .chars()
        .map(|c| {
            let is_in_word = c == '\'' && before.is_some_and(char::is_alphabetic);
            before = Some(c);
            if is_in_word { ' ' } else { c }
        })
        .collect();
    let code = without_texts(&plain);
    code.contains("{{") || code.contains("{%")
}

/// Translates a short template of literal text and `{{ }}` to an expression.
fn translated(source: &str) -> Option<String> {
    let mut rest = source.trim();
    if rest.len() > TRANSLATED_BYTES_MAX || rest.contains("{%") || rest.contains("{#") {
        return None;
    }
    let mut parts = Vec::new();
    while let Some((literal, behind)) = rest.split_once("{{") {
        let (code, behind) = behind.split_once("}}")?;
        parts.extend(quoted(literal)?);
        let code = code.trim_matches('-').trim();
        let reading = Expression::compile(code).ok()?.reading();
        // everything else may bind less than `~`
        let is_operand = reading.is_path || (parts.is_empty() && behind.is_empty());
        parts.push(if is_operand { code.to_owned() } else { format!("({code})") });
        rest = behind;
    }
    parts.extend(quoted(rest)?);
    let expression = parts.join(" ~ ");
    Expression::compile(&expression).is_ok().then_some(expression)
}

/// Returns a literal of a text, nothing for an empty one; `None` if it needs escapes.
fn quoted(text: &str) -> Option<Option<String>> {
    if text.contains(['\\', '\n', '`']) {
        return None;
    }
    match (text.contains('\''), text.contains('"')) {
        _ if text.is_empty() => Some(None),
        (false, _) => Some(Some(format!("'{text}'"))),
        (true, false) => Some(Some(format!("\"{text}\""))),
        (true, true) => None,
    }
}

/// Returns true for several words, each with at most one mark at its end.
fn is_prose(source: &str) -> bool {
    let is_word = |word: &str| {
        let word = word.strip_suffix(['.', ',', ':', ';', '!', '?']).unwrap_or(word);
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '\''))
    };
    let begins_as_name = source.trim_start().starts_with(char::is_alphabetic);
    let words = || source.split_whitespace();
    begins_as_name && words().count() > 1 && words().all(is_word)
}

/// Returns a hint for a template that does not compile.
pub(super) fn of_template(source: &str) -> Option<Cow<'static, str>> {
    let opened = source.match_indices("{{").map(|(at, open)| at + open.len());
    let pieces = opened.map(|from| {
        let rest = &source[from..];
        &rest[..rest.find("}}").unwrap_or(rest.len())]
    });
    pieces.into_iter().find_map(|piece| of_code(&without_texts(piece)))
}

fn of_code(code: &str) -> Option<Cow<'static, str>> {
    // an arrow is the mistake, whatever operators are in its body
    arrow::hint(code).or_else(|| of_operators(code).map(Cow::Borrowed))
}

fn of_operators(code: &str) -> Option<&'static str> {
    const OPERATORS: [(&str, &str); 8] = [
        ("&&", "`&&` is written `and`"),
        ("||", "`||` is written `or`"),
        ("===", "`===` is written `==`"),
        ("!==", "`!==` is written `!=`"),
        ("=>", "`=>` is written `>=`"),
        ("=<", "`=<` is written `<=`"),
        ("??", "`a ?? b` is written `a | default(b)`"),
        ("?.", "`a?.b` is written `a.b | default(none)`"),
    ];
    if let Some((_, hint)) = OPERATORS.iter().find(|(operator, _)| code.contains(operator)) {
        return Some(hint);
    }
    let follows = |at: usize| code[at + 1..].chars().next();
    if code.match_indices('!').any(|(at, _)| follows(at) != Some('=')) {
        return Some("`!a` is written `not a`");
    }
    if code.contains('?') {
        return Some("`a ? b : c` is written `b if a else c`");
    }
    let is_alone = |at: usize| {
        let before = code[..at].chars().next_back();
        follows(at) != Some('=') && !before.is_some_and(|c| matches!(c, '=' | '!' | '<' | '>'))
    };
    if code.match_indices('=').any(|(at, _)| is_alone(at)) && !code.contains('(') {
        return Some("values are compared with `==`");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Template;

    #[test]
    fn syntax_of_other_languages_gets_a_hint() {
        for (source, hint) in [
            ("{{ a > 1 }}", "write `a > 1`"),
            ("Hello {{ input.name }}", "write `'Hello ' ~ input.name`"),
            ("{{ a or b }}, it's {{- a | f }}!", "write `(a or b) ~ \", it's \" ~ (a | f) ~ '!'`"),
            (
                "{{ a }} and {% if a %}",
                "write an expression without {{ }}: `'Hello ' ~ input.name`",
            ),
            ("a && b", "`&&` is written `and`"),
            ("a || b", "`||` is written `or`"),
            ("!a", "`!a` is written `not a`"),
            ("a === 1", "`===` is written `==`"),
            ("a ? 1 : 2", "`a ? b : c` is written `b if a else c`"),
            ("a ?? b", "`a ?? b` is written `a | default(b)`"),
            ("a = 1", "values are compared with `==`"),
            ("a => 1", "`=>` is written `>=`"),
            ("a =< 1", "`=<` is written `<=`"),
            ("${a}", "write an expression without ${ }"),
            ("nobody has answered", "a string is written \"'a text'\""),
            ("Really, this one?", "a string is written \"'a text'\""),
        ] {
            let said = Expression::compile(source).unwrap_err().message;
            assert!(said.ends_with(&format!("in `{source}`; {hint}")), "{said}");
        }
        let said = Template::compile("a {{ b && c }}").unwrap_err().message;
        assert!(said.ends_with("; `&&` is written `and`"), "{said}");
        for source in ["data.", "a !=", "'&&' ~", "f(a=", "1 +", "1 two"] {
            let said = Expression::compile(source).unwrap_err().message;
            assert!(said.ends_with(&format!("in `{source}`")), "{said}");
        }
    }
}
