//! Lists of patterns that select names: `get_*`, `!get_secret`.

use std::fmt;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 128;
/// Maximum number of patterns of a list.
const PATTERNS_MAX: usize = 1000;

/// Patterns of names. `*` stands for any characters. A name is selected if a pattern matches it and none
/// with `!` does; a list with only the latter selects all the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Globs {
    included: Vec<String>,
    excluded: Vec<String>,
}

/// A list of patterns that is refused, with the index of the pattern, if there is one to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidGlobs {
    pub(crate) index: Option<usize>,
    pub(crate) problem: String,
}

impl Globs {
    /// Parses patterns.
    pub(crate) fn parse(patterns: &[String]) -> Result<Self, InvalidGlobs> {
        if patterns.is_empty() || patterns.len() > PATTERNS_MAX {
            let problem = format!("must have 1 to {PATTERNS_MAX} patterns");
            return Err(InvalidGlobs { index: None, problem });
        }
        let mut globs = Self::default();
        for (index, written) in patterns.iter().enumerate() {
            let (list, pattern) = match written.strip_prefix('!') {
                Some(pattern) => (&mut globs.excluded, pattern),
                None => (&mut globs.included, written.as_str()),
            };
            if let Some(problem) = problem_of(pattern) {
                return Err(InvalidGlobs { index: Some(index), problem });
            }
            list.push(pattern.to_owned());
        }
        Ok(globs)
    }

    /// Returns true if the name is selected. Without patterns all are.
    pub fn selects(&self, name: &str) -> bool {
        let is_any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.included.is_empty() || is_any(&self.included)) && !is_any(&self.excluded)
    }

    /// Returns the patterns that match none of the names, as they were written.
    #[cfg(any(feature = "mcp", test))]
    pub(crate) fn idle(&self, names: &[&str]) -> Vec<String> {
        let is_idle = |pattern: &&String| !names.iter().any(|name| matches(pattern, name));
        let included = self.included.iter().filter(is_idle).cloned();
        let excluded = self.excluded.iter().filter(is_idle).map(|pattern| format!("!{pattern}"));
        included.chain(excluded).collect()
    }

    /// Returns the patterns that are names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.included.iter().map(String::as_str).filter(|pattern| !pattern.contains('*'))
    }
}

impl fmt::Display for InvalidGlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

fn problem_of(pattern: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '*');
    let is_good =
        !pattern.is_empty() && pattern.len() <= PATTERN_BYTES_MAX && pattern.chars().all(fits);
    (!is_good).then(|| {
        format!(
            "must be a name of at most {PATTERN_BYTES_MAX} characters A-Z a-z 0-9 _ . - /, in which \
             `*` stands for any; `!` before it excludes"
        )
    })
}

/// Returns true if the whole name matches. Takes time in proportion to both lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(patterns: &[&str]) -> Result<Globs, InvalidGlobs> {
        Globs::parse(&patterns.iter().map(|&it| it.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a", "", false),
            ("*", "", true),
            ("get_*", "get_", true),
            ("get_*", "get_issue", true),
            ("get_*", "forget_issue", false),
            ("*_issue", "get_issue", true),
            ("*_issue", "get_issues", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("*a*", "bab", true),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn exclusions_take_precedence() {
        for (patterns, selected, others) in [
            (&["get_*", "!get_key"][..], &["get_a"][..], &["get_key", "put"][..]),
            (&["!delete_*"], &["get", "put"], &["delete_all"]),
            (&["a", "b.*"], &["a", "b.c"], &["c", "b"]),
        ] {
            let globs = globs(patterns).unwrap();
            assert!(selected.iter().all(|name| globs.selects(name)), "{patterns:?}");
            assert!(!others.iter().any(|name| globs.selects(name)), "{patterns:?}");
        }
        assert!(Globs::default().selects("anything"));
    }

    #[test]
    fn patterns_without_a_match_are_named() {
        let globs = globs(&["a", "b*", "!c"]).unwrap();
        assert_eq!(globs.idle(&["a"]), ["b*", "!c"]);
        assert!(globs.idle(&["a", "bb", "c"]).is_empty());
        assert_eq!(globs.names().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn bad_patterns_are_refused_with_their_place() {
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        for (patterns, index) in [
            (&[][..], None),
            (&["a", ""][..], Some(1)),
            (&["!"], Some(0)),
            (&["a b"], Some(0)),
            (&["!!a"], Some(0)),
            (&[long.as_str()], Some(0)),
        ] {
            assert_eq!(globs(patterns).unwrap_err().index, index, "{patterns:?}");
        }
        assert!(globs(&[&long[1..]]).is_ok());
        assert!(globs(&vec!["a"; PATTERNS_MAX]).is_ok());
        assert!(globs(&vec!["a"; PATTERNS_MAX + 1]).is_err());
    }
}
