//! Paths that a Rust file names, read without a parser of the language.

use std::collections::BTreeSet;

/// Paths of a file, as written, and the modules that it declares. Tests are left out.
#[derive(Default)]
pub(super) struct Paths<'s> {
    /// Modules in files of their own.
    pub(super) children: BTreeSet<&'s str>,
    paths: Vec<Written<'s>>,
}

/// A path, and the inline modules around it.
struct Written<'s> {
    inside: Vec<&'s str>,
    names: Vec<&'s str>,
}

impl<'s> Paths<'s> {
    /// Returns the paths within the crate from the root on, each as it is written.
    pub(super) fn absolute(&self, module: &[&'s str]) -> Vec<(Vec<&'s str>, String)> {
        let paths = self.paths.iter();
        paths.filter_map(|it| Some((self.resolved(module, it)?, it.names.join("::")))).collect()
    }

    fn resolved(&self, module: &[&'s str], path: &Written<'s>) -> Option<Vec<&'s str>> {
        let here = [module, &path.inside[..]].concat();
        let (first, rest) = path.names.split_first()?;
        match *first {
            "crate" => Some(rest.to_vec()),
            "self" => Some([&here[..], rest].concat()),
            "super" => {
                let up = path.names.iter().take_while(|name| **name == "super").count();
                Some([&here[..here.len().checked_sub(up)?], &path.names[up..]].concat())
            }
            child if path.inside.is_empty() && self.children.contains(child) => {
                Some([&here[..], &path.names[..]].concat())
            }
            // of another crate, or of a name that a `use` has brought
            _ => None,
        }
    }
}

/// Reads a file.
pub(super) fn paths_of(text: &str) -> Paths<'_> {
    let tokens = tokens(text);
    let mut found = Paths::default();
    // inline modules around, each with the depth of its braces
    let mut inside: Vec<(&str, usize)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = &tokens[at..];
        let around = || inside.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        match (*token, rest) {
            ("#", _) if is_of_tests(rest) => at += item(rest),
            ("mod", [_, name, ";", ..]) => {
                found.children.insert(*name);
                at += 3;
            }
            ("mod", [_, name, "{", ..]) => {
                inside.push((*name, depth));
                depth += 1;
                at += 3;
            }
            ("use", [_, first, ..]) if *first != "<" => {
                let (length, leaves) = leaves(&rest[1..], &[]);
                let leaves = leaves.into_iter();
                found.paths.extend(leaves.map(|leaf| Written { inside: around(), names: leaf }));
                at += 1 + length;
            }
            ("{", _) => {
                depth += 1;
                at += 1;
            }
            ("}", _) => {
                depth -= 1;
                inside.pop_if(|(_, outside)| *outside == depth);
                at += 1;
            }
            (name, [_, "::", ..]) if is_name(name) && (at == 0 || tokens[at - 1] != "::") => {
                let path: Vec<&str> = rest
                    .chunks(2)
                    .take_while(|it| is_name(it[0]))
                    .scan(true, |goes_on, it| {
                        let is_part = *goes_on;
                        *goes_on = it.get(1) == Some(&"::");
                        is_part.then_some(it[0])
                    })
                    .collect();
                at += 2 * path.len() - 1;
                found.paths.push(Written { inside: around(), names: path });
            }
            _ => at += 1,
        }
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Returns the length of the tokens of a tree of paths behind `use`, and the paths.
fn leaves<'s>(tokens: &[&'s str], before: &[&'s str]) -> (usize, Vec<Vec<&'s str>>) {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match *token {
            "::" => at += 1,
            "{" => {
                at += 1;
                let mut found = Vec::new();
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    let (length, inner) = leaves(&tokens[at..], &path);
                    found.extend(inner);
                    at += length;
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                return (at + 1, found);
            }
            "*" => return (at + 1, vec![path]),
            name if is_name(name) => {
                path.push(name);
                at += 1;
                match tokens.get(at) {
                    Some(&"::") => {}
                    Some(&"as") => return (at + 2, vec![path]),
                    _ => break,
                }
            }
            _ => break,
        }
    }
    // `b::{self}` is the path of `b`
    if path.len() > 1 {
        path.pop_if(|name| *name == "self");
    }
    (at.max(1), vec![path])
}

/// True of `#[cfg(test)]` and of attributes that need it beside something else.
fn is_of_tests(tokens: &[&str]) -> bool {
    matches!(
        tokens,
        ["#", "[", "cfg", "(", "test", ..] | ["#", "[", "cfg", "(", "all", "(", "test", ..]
    )
}

/// Returns the length of an item with its attributes.
fn item(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            // the end of what is around
            ")" | "]" | "}" if depth == 0 => return index,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 && *token == "}" {
                    return index + 1;
                }
            }
            ";" if depth == 0 => return index + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the names and signs of a text, without comments, texts and characters.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = length_of_text(rest) {
            length
        } else {
            let is_part = |part: char| part.is_alphanumeric() || part == '_';
            let length = match first {
                _ if is_part(first) => rest.find(|part: char| !is_part(part)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            if !first.is_whitespace() {
                tokens.push(&rest[..length]);
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of a text or a character that the source begins with.
fn length_of_text(source: &str) -> Option<usize> {
    let unmarked = source.trim_start_matches(['b', 'c']);
    if source.len() - unmarked.len() > 1 {
        return None;
    }
    let marks = source.len() - unmarked.len();
    if let Some(raw) = unmarked.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if let Some(inner) = raw[hashes..].strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = inner.find(&end).map_or(inner.len(), |length| length + end.len());
            return Some(marks + 1 + hashes + 1 + length);
        }
    }
    let quote = unmarked.chars().next().filter(|first| ['"', '\''].contains(first))?;
    let inner = &unmarked[1..];
    // a lifetime has no quote at its end
    if quote == '\'' && !inner.starts_with('\\') {
        let character = inner.chars().next()?;
        let is_closed = inner[character.len_utf8()..].starts_with('\'');
        return is_closed.then_some(marks + 1 + character.len_utf8() + 1);
    }
    let mut is_escaped = false;
    let end = inner.find(|character: char| {
        let ends = character == quote && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    });
    Some(marks + 1 + end.map_or(inner.len(), |end| end + 1))
}
