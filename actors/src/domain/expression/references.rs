//! What a text reads, by name: for whoever checks texts before they run.

use std::collections::{BTreeSet, HashSet};

use super::{Expression, TEMPLATE_NAME, Template, without_texts};

const STEPS: &str = "steps";

/// The names that an expression or a template reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Functions included, without what the text sets itself.
    pub names: BTreeSet<String>,
    /// Ids in `steps.<id>` and `steps['<id>']`.
    pub steps: BTreeSet<String>,
}

impl References {
    fn of(dotted: HashSet<String>, code: &[&str]) -> Self {
        let own = code.iter().flat_map(|code| names_set(code)).collect::<HashSet<_>>();
        let mut references = Self::default();
        for path in dotted {
            let mut parts = path.split('.');
            let Some(name) = parts.next().filter(|name| !own.contains(name)) else { continue };
            references.names.insert(name.to_owned());
            if let Some(id) = parts.next().filter(|_| name == STEPS) {
                references.steps.insert(id.to_owned());
            }
        }
        if references.names.contains(STEPS) {
            let bracketed = code.iter().flat_map(|code| bracketed_steps(code));
            references.steps.extend(bracketed.map(str::to_owned));
        }
        references
    }
}

impl Expression {
    /// Everything that the expression reads.
    pub fn references(&self) -> References {
        References::of(self.inner.code.undeclared_variables(true), &[self.source()])
    }
}

impl Template {
    /// Everything that the template reads.
    pub fn references(&self) -> References {
        let template = self.inner.environment.get_template(TEMPLATE_NAME);
        let dotted = template.map(|it| it.undeclared_variables(true)).unwrap_or_default();
        References::of(dotted, &code_of(self.source()))
    }
}

/// The parts of a template that are code, without their braces.
fn code_of(source: &str) -> Vec<&str> {
    const BRACES: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
    let mut parts = Vec::new();
    let (mut rest, mut is_raw) = (source, false);
    while let Some(at) = rest.find('{') {
        rest = &rest[at..];
        let Some((open, close)) = BRACES.into_iter().find(|(open, _)| rest.starts_with(open))
        else {
            rest = &rest[1..];
            continue;
        };
        let inside = &rest[open.len()..];
        // braces in a string literal end nothing
        let blanked = if open == "{#" { inside.to_owned() } else { without_texts(inside) };
        let Some(end) = blanked.find(close) else { break };
        let code = inside[..end].trim_matches(['-', '+']).trim();
        rest = match (open, code) {
            ("{%", "raw") => {
                is_raw = true;
                &inside[end..]
            }
            ("{%", "endraw") => {
                is_raw = false;
                &inside[end..]
            }
            // what is raw may look like anything
            _ if is_raw => inside,
            ("{#", _) => &inside[end..],
            _ => {
                parts.push(code);
                &inside[end..]
            }
        };
    }
    parts
}

/// Names that a `set` gives a value: the engine forgets those that are set inside of an `if`.
fn names_set(code: &str) -> impl Iterator<Item = &str> {
    let targets = code.strip_prefix("set").filter(|rest| rest.starts_with(char::is_whitespace));
    let targets = targets.map_or("", |rest| &rest[..rest.find(['=', '|']).unwrap_or(rest.len())]);
    targets.split([',', '(', ')']).map(str::trim).filter(|name| !name.is_empty())
}

/// Ids in `steps['<id>']`.
fn bracketed_steps(code: &str) -> Vec<&str> {
    let blanked = without_texts(code);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let found = blanked.match_indices(STEPS).filter(|(at, _)| !blanked[..*at].ends_with(is_name));
    found
        .filter_map(|(at, word)| {
            let inside = code[at + word.len()..].trim_start().strip_prefix('[')?.trim_start();
            let quote = inside.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
            let (id, rest) = inside[1..].split_once(quote)?;
            rest.trim_start().starts_with(']').then_some(id)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(references: &References) -> (String, String) {
        let joined = |names: &BTreeSet<String>| {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        (joined(&references.names), joined(&references.steps))
    }

    #[test]
    fn an_expression_reads_names_and_steps() {
        for (source, names, steps) in [
            ("1 + 2", "", ""),
            ("data.steps.a", "data", ""),
            ("steps.a.b + steps['b-c'].d + steps[ \"e\" ]", "steps", "a b-c e"),
            ("steps[data.x] and steps['a' ~ data.x]", "data steps", ""),
            ("'steps[\"a\"]' in data['steps.b']", "data", ""),
            ("steps | length > range(3) | length", "range steps", ""),
            ("x_steps['a'] or data.steps['b'] or steps.c is defined", "data steps x_steps", "c"),
        ] {
            let found = Expression::compile(source).unwrap().references();
            assert_eq!(listed(&found), (names.to_owned(), steps.to_owned()), "{source}");
        }
    }

    #[test]
    fn a_template_reads_what_it_does_not_set() {
        for (source, names, steps) in [
            ("see steps['a'] and {data}", "", ""),
            ("{{ steps['a'] }}, don't {{ steps.b }}{# {{ steps['c'] }} #}", "steps", "a b"),
            ("{% for x in data %}{{ x.y }}{{ loop.index }}{% endfor %}", "data", ""),
            ("{% if data %}{%- set x, y = data %}{% endif %}{{ x }}{{ y }}", "data", ""),
            ("{% set x %}{{ input }}{% endset %}{{ x }}{{ settle }}", "input settle", ""),
            ("{% raw %}{{ steps['a'] {% {% endraw %}{{ steps['b'] }}", "steps", "b"),
            ("{{ '}}' ~ steps['a'] }}", "steps", "a"),
        ] {
            let found = Template::compile(source).unwrap().references();
            assert_eq!(listed(&found), (names.to_owned(), steps.to_owned()), "{source}");
        }
    }
}
