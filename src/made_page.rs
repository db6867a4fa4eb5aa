//! Pages of the documentation that are made from code.

use std::path::{Path, PathBuf};

/// Set, pages are written anew instead of compared.
const UPDATE: &str = "UPDATE_DOCS";

/// Compares a page with what the code makes of it. `test`: what to run to write it anew.
pub(crate) fn compare(name: &str, made: &str, test: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(made.lines()).find(|(written, made)| written != made);
    assert!(
        written == made,
        "{name} is not what the code makes of it, first at {differs:?}; \
         write it anew with {UPDATE}=1 cargo test --lib {test}"
    );
}

/// Returns the files in a folder, and in those below it, with this extension.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found
}
