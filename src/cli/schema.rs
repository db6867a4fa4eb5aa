//! `greenroom schema`: the JSON Schema of the configuration, for editors.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::whole_file::write_whole;
use crate::config::schema::{TITLE, text};

/// Options of `schema`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Write to this file instead of the terminal; one with the schema of any version is replaced.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Returns the schema, or writes it and returns where.
pub(super) fn run(Options { output }: &Options) -> Result<Vec<String>, String> {
    let Some(file) = output else { return Ok(vec![text().trim_end().to_owned()]) };
    may_write(file)?;
    write(file)?;
    Ok(vec![format!("{}: the JSON Schema of the configuration", file.display())])
}

/// Refuses an existing file that is something else than the schema.
pub(super) fn may_write(file: &Path) -> Result<(), String> {
    let found = match fs::read(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failure(file, &error)),
    };
    let schema: serde_json::Value = serde_json::from_slice(&found).unwrap_or_default();
    if schema["title"].as_str().is_some_and(|title| title.starts_with(TITLE)) {
        return Ok(());
    }
    let file = file.display();
    Err(format!(
        "greenroom: {file} is not the schema of greenroom and stays as it is; move it, or choose \
         another name"
    ))
}

/// Writes the schema, whole or not at all.
pub(super) fn write(file: &Path) -> Result<(), String> {
    let written = write_whole(file, text().as_bytes(), Permissions::from_mode(0o666));
    written.map_err(|error| failure(file, &error))
}

fn failure(file: &Path, error: &io::Error) -> String {
    format!("greenroom: {} cannot be written: {error}", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_schema_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("s.json");
        let options = Options { output: Some(file.clone()) };
        run(&options).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text());
        fs::write(&file, format!("{{ \"title\": \"{TITLE} 0.0.1\" }}")).unwrap();
        run(&options).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text());
        for other in ["[server]\nport = 1\n", "{}", "{ \"title\": \"Mine\" }", ""] {
            fs::write(&file, other).unwrap();
            let refusal = run(&options).unwrap_err();
            assert!(refusal.contains("is not the schema of greenroom"), "{refusal}");
            assert_eq!(fs::read_to_string(&file).unwrap(), other);
        }
        let nowhere = Options { output: Some(directory.path().join("no/s.json")) };
        assert!(run(&nowhere).unwrap_err().contains("cannot be written"));
    }

    #[test]
    fn without_a_file_the_schema_is_printed() {
        let printed = run(&Options { output: None }).unwrap().join("\n");
        assert_eq!(printed.trim_end(), text().trim_end());
    }
}
