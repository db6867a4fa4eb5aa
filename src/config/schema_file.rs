//! JSON Schemas in separate files, named by a path in place of the schema.

use std::path::Path;

use greenroom_actors::domain::schema::Schema;
use serde_json::Value;

use super::entry::Entry;

/// Largest file of a schema, in bytes.
pub(super) const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;

/// Reads a schema from a path relative to the configuration file. Errors name both the place of the
/// path and the place in the schema file.
pub(super) fn read(entry: &Entry<'_>) -> Option<Value> {
    let written = entry.filled_text()?;
    let base = Path::new(&*entry.place.source.file).parent().unwrap_or_else(|| Path::new("."));
    match schema(entry, &written, &base.join(&written)) {
        Ok(schema) => Some(schema),
        Err(problem) => entry.refuse(problem),
    }
}

fn schema(entry: &Entry<'_>, written: &str, path: &Path) -> Result<Value, String> {
    let files = &entry.place.findings.files;
    files.borrow_mut().note(path);
    let size = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("there is no file {written:?}; a string here is the path of a JSON Schema")
        }
        _ => format!("the file {written:?} cannot be read: {error}"),
    })?;
    if !size.is_file() {
        return Err(format!("{written:?} is not a file"));
    }
    if size.len() > SCHEMA_BYTES_MAX {
        return Err(format!("the file {written:?} is larger than {SCHEMA_BYTES_MAX} bytes"));
    }
    let bytes = files.borrow_mut().read(path);
    let bytes = bytes.map_err(|error| format!("the file {written:?} cannot be read: {error}"))?;
    let schema: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let place = format!(" at line {line} column {column}");
        let what = error.to_string().replace(&place, "");
        format!("{written}:{line}:{column}: is not valid JSON: {what}")
    })?;
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err(format!("{written}:1:1: a JSON Schema is an object, or true or false"));
    }
    Schema::compile(&schema).map_err(|error| format!("{written}: {error}"))?;
    Ok(schema)
}
