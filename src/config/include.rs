//! `include`: further files with workflows.

use std::path::{Path, PathBuf};

use super::document::read_file;
use super::entry::Entry;
use super::source::Source;

/// Reads the files that the patterns name, relative to the file that includes them.
pub(crate) fn read(entry: &Entry<'_>, base: &Path) -> Vec<Source> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for item in entry.items().unwrap_or_default() {
        for path in matches(&item, base) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    let mut sources = Vec::new();
    for path in paths {
        match read_file(&path, entry.place.findings) {
            Ok(source) => sources.push(source),
            Err(problem) => entry.place.findings.report(problem),
        }
    }
    sources
}

/// Returns the files that a pattern matches, sorted by name. Only the last part may contain `*`.
fn matches(item: &Entry<'_>, base: &Path) -> Vec<PathBuf> {
    let Some(pattern) = item.filled_text() else { return Vec::new() };
    let whole = base.join(&pattern);
    let name = whole.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = whole.parent().unwrap_or(base);
    if folder.to_string_lossy().contains('*') {
        item.place.refuse("may contain `*` only in the last part");
        return Vec::new();
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut files = item.place.findings.files.borrow_mut();
    let found = if name.contains('*') {
        let names = files.matching(folder, name).into_iter();
        names.map(|name| folder.join(name)).collect()
    } else {
        files.note(&whole);
        vec![whole.clone()]
    };
    drop(files);
    let found: Vec<_> = found.into_iter().filter(|path| path.is_file()).collect();
    if found.is_empty() {
        item.place.refuse(format!("no file matches {pattern:?}"));
    }
    found
}

/// Returns the sorted names in a folder that match a pattern.
pub(super) fn names_like(pattern: &str, folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| is_like(name, pattern)).collect();
    names.sort();
    names
}

/// Returns true if a name matches a pattern; `*` matches any characters. As in a shell, a leading
/// `*` does not match hidden files.
fn is_like(name: &str, pattern: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            let Some(at) = str::find(rest, middle) else { return false };
            rest = &rest[at + middle.len()..];
        }
    }
    last.map_or(rest.is_empty(), |end| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        for (name, pattern, expected) in [
            ("a.toml", "*.toml", true),
            ("a.toml", "a.toml", true),
            ("a.tom", "*.toml", false),
            (".a.toml", "*.toml", false),
            ("order-v2.toml", "order-*.toml", true),
            ("abcab", "a*b*b", true),
            ("ab", "a*b*b", false),
            ("a", "a*a", false),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{name} for {pattern}");
        }
    }
}
