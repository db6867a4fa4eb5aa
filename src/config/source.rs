//! The text of a file and the problems found in it.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::asked::Assignment;
use super::files::Files;
use super::lone_role::LoneRole;
use super::problem::{ConfigProblem, Spot};

/// A file's text, with the starts of its lines.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: Arc<str>,
    pub(crate) text: String,
    line_starts: Vec<usize>,
}

impl Source {
    pub(crate) fn new(file: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { file: file.into(), text, line_starts }
    }

    /// Returns the place where a span begins.
    pub(crate) fn spot(&self, span: &Range<usize>, key: impl Into<String>) -> Spot {
        let (line, column) = self.line_and_column(span.start);
        Spot { file: Arc::clone(&self.file), line, column, key: key.into() }
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line.saturating_sub(1)];
        let before = self.text.as_bytes().get(start..offset).unwrap_or_default();
        // UTF-8 continuation bytes do not begin a character
        let chars = before.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count();
        (line, chars + 1)
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: RefCell<Vec<ConfigProblem>>,
    /// Assignments of asks.
    pub(crate) assignments: RefCell<Vec<Assignment>>,
    /// Roles in profiles of API keys that may give none.
    pub(crate) lone_roles: RefCell<Vec<LoneRole>>,
    /// Files that were read.
    pub(crate) files: RefCell<Files>,
    #[cfg(test)]
    pub(crate) known_keys: RefCell<std::collections::BTreeSet<String>>,
}

impl Findings {
    pub(crate) fn report(&self, problem: ConfigProblem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Adds a problem of a later check, unless its place or a part of it already has an error: one
    /// mistake gives one line.
    pub(crate) fn report_unless_known(&self, problem: ConfigProblem) {
        if !self.know(&problem) {
            self.report(problem);
        }
    }

    /// Returns true if the place of a problem, or a part of it, already has an error.
    pub(crate) fn know(&self, problem: &ConfigProblem) -> bool {
        let is_same_mistake = |known: &ConfigProblem| {
            let inner = known.key.strip_prefix(&problem.key);
            known.is_error()
                && known.file == problem.file
                && inner.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.problems.borrow().iter().any(is_same_mistake)
    }

    /// Returns true if a key of a file, or a part of it, has an error.
    pub(crate) fn refuses(&self, file: &str, is_key: impl Fn(&str) -> bool) -> bool {
        let problems = self.problems.borrow();
        problems.iter().any(|it| it.is_error() && &*it.file == file && is_key(&it.key))
    }

    /// Returns the problems and the files that were read.
    pub(crate) fn into_parts(self) -> (Vec<ConfigProblem>, Files) {
        (self.problems.into_inner(), self.files.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let source = Source::new("a.toml", "é = 1\nab");
        let spot = source.spot(&(5..6), "é");
        assert_eq!((spot.line, spot.column), (1, 5));
        let spot = source.spot(&(8..8), "");
        assert_eq!((spot.line, spot.column), (2, 2));
        let spot = source.spot(&(900..901), "");
        assert_eq!(spot.line, 2, "a span beyond the text is on its last line");
    }
}
