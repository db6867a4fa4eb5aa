//! Hints for sources that do not compile because they use the syntax of another language.

use super::without_texts;

/// Returns a hint for an expression that does not compile.
pub(super) fn of_expression(source: &str) -> Option<&'static str> {
    let code = without_texts(source);
    if code.contains("{{") || code.contains("{%") {
        return Some("write an expression without {{ }}");
    }
    if code.contains("${") {
        return Some("write an expression without ${ }");
    }
    if is_prose(source) {
        return Some("a string is written \"'a text'\"");
    }
    of_code(&code)
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
pub(super) fn of_template(source: &str) -> Option<&'static str> {
    let opened = source.match_indices("{{").map(|(at, open)| at + open.len());
    let pieces = opened.map(|from| {
        let rest = &source[from..];
        &rest[..rest.find("}}").unwrap_or(rest.len())]
    });
    pieces.into_iter().find_map(|piece| of_code(&without_texts(piece)))
}

fn of_code(code: &str) -> Option<&'static str> {
    const OPERATORS: [(&str, &str); 6] = [
        ("&&", "`&&` is written `and`"),
        ("||", "`||` is written `or`"),
        ("===", "`===` is written `==`"),
        ("!==", "`!==` is written `!=`"),
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
