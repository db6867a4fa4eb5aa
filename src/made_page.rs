//! Pages of the documentation that are made from code.

use std::path::Path;

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
