//! TOML files: reading and parsing, before any key is interpreted.

use toml::de::DeTable;

use super::problem::ConfigProblem;
use super::section::{Place, Section};
use super::source::{Findings, Source};

/// Maximum number of syntax errors reported per file: one mistake may cause all that follow.
const SYNTAX_ERRORS_MAX: usize = 10;

/// Reads a file as UTF-8.
pub(crate) fn read_file(
    path: &std::path::Path,
    findings: &Findings,
) -> Result<Source, ConfigProblem> {
    let name = path.to_string_lossy();
    let bytes = findings.files.borrow_mut().read(path).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        ConfigProblem::of_file(&name, message)
    })?;
    String::from_utf8(bytes).map(|text| Source::new(&name, text)).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
        Source::new(&name, text).spot(&(good..good), "").error("is not UTF-8")
    })
}

/// Parses a file. Reports syntax errors and returns `None` if there are any.
pub(crate) fn parse<'a>(source: &'a Source, findings: &Findings) -> Option<DeTable<'a>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if errors.is_empty() {
        return Some(table.into_inner());
    }
    let mut errors: Vec<_> = errors
        .into_iter()
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            source.spot(&span, "").error(error.message().replace('\n', "; "))
        })
        .collect();
    for error in &mut errors {
        if let Some(instead) = mixed_headers(source, error) {
            *error = instead;
        }
    }
    errors.sort_by_key(|error| (error.line, error.column));
    errors.dedup_by_key(|error| error.line);
    errors.truncate(SYNTAX_ERRORS_MAX);
    errors.into_iter().for_each(|error| findings.report(error));
    None
}

/// Returns the error in place of one about a header that is written as `[key]` and as `[[key]]`,
/// at the place of the former; `None` for other errors.
fn mixed_headers(source: &Source, error: &ConfigProblem) -> Option<ConfigProblem> {
    if error.message != "duplicate key" {
        return None;
    }
    let lines = || source.text.split_inclusive('\n');
    let (name, _) = header(lines().nth(error.line.checked_sub(1)?)?)?;
    let mut start = 0;
    let (mut of_table, mut is_array) = (None, false);
    for line in lines() {
        match header(line) {
            Some((it, true)) if it == name => is_array = true,
            Some((it, false)) if it == name => {
                let indent = line.len() - line.trim_start().len();
                of_table = of_table.or(Some(start + indent));
            }
            _ => {}
        }
        start += line.len();
    }
    let at = of_table.filter(|_| is_array)?;
    let message = format!(
        "is written [{name}] here and [[{name}]] elsewhere: write [[{name}]] for each item of an \
         array"
    );
    Some(source.spot(&(at..at), "").error(message))
}

/// Returns the name in a header of TOML, and true if it is that of an array.
fn header(line: &str) -> Option<(&str, bool)> {
    let line = line.trim_start();
    let (rest, end) = match line.strip_prefix("[[") {
        Some(rest) => (rest, "]]"),
        None => (line.strip_prefix('[')?, "]"),
    };
    let (name, _) = rest.split_once(end)?;
    Some((name.trim(), end == "]]"))
}

/// Returns the whole file as a section.
pub(crate) fn root<'a>(
    source: &'a Source,
    table: &'a DeTable<'a>,
    findings: &'a Findings,
) -> Section<'a> {
    let (path, pattern) = (String::new(), String::new());
    Section::new(Place { source, findings, span: 0..0, path, pattern }, table)
}
