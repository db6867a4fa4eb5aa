//! `greenroom init`: a first configuration.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::client::plain;
use super::{CONFIG_FILE, schema};

/// Text of the configuration.
const CONFIG: &str = include_str!("init/config.toml");

/// File of the schema, which the first line of the configuration names for editors.
const SCHEMA_FILE: &str = "config.schema.json";

/// Options of `init`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Folder for the configuration; made if it is missing.
    #[arg(default_value = ".")]
    folder: PathBuf,
}

/// Writes the configuration and its schema, and returns what to do next. An existing configuration is
/// never overwritten, nor is a file in the place of the schema that is something else.
pub(super) fn init(Options { folder }: &Options) -> Result<Vec<String>, String> {
    let (file, described) = (folder.join(CONFIG_FILE), folder.join(SCHEMA_FILE));
    // a name may have control characters, which would change what a terminal shows
    let shown = |path: &Path| plain(&path.display().to_string());
    if !file.exists() {
        schema::may_write(&described)?;
    }
    write_new(folder, &file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "greenroom: {} exists already and stays as it is; name another folder: greenroom init \
             FOLDER",
            shown(&file)
        ),
        _ => format!("greenroom: {} cannot be written: {error}", shown(&file)),
    })?;
    schema::write(&described).inspect_err(|_| drop(fs::remove_file(&file)))?;
    let enter = (folder != Path::new(".")).then(|| format!("  cd {}", shown(folder)));
    let next = [
        "  greenroom dev      serves it while you write, and prints what to try",
        "  greenroom check    finds mistakes in it",
        "  greenroom test     runs the tests of its workflows",
        "  greenroom          starts the server",
    ];
    let lines = [format!("{}: an agent, a tool and a workflow. Next:", shown(&file))];
    Ok(lines.into_iter().chain(enter).chain(next.map(str::to_owned)).collect())
}

fn write_new(folder: &Path, file: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut new = File::create_new(file)?;
    let written = new.write_all(CONFIG.as_bytes()).and_then(|()| new.sync_all());
    // what is left of it would be in the way of the next attempt
    written.inspect_err(|_| drop(fs::remove_file(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Registered, checks};
    use crate::config::Config;

    #[test]
    fn what_is_written_has_no_problems() {
        let config = Config::parse(CONFIG, CONFIG_FILE).unwrap();
        assert_eq!(config.warnings, []);
        assert_eq!(checks::warnings(&config, &Registered::default()), []);
        assert!(!config.workflows.is_empty() && !config.agents.is_empty());
    }

    #[test]
    fn an_existing_file_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { folder: directory.path().join("new") };
        let lines = init(&options).unwrap();
        let folder = options.folder.display();
        assert_eq!(lines[1], format!("  cd {folder}"));
        let file = options.folder.join(CONFIG_FILE);
        fs::write(&file, "mine").unwrap();
        let refusal = init(&options).unwrap_err();
        assert!(refusal.contains("exists already and stays as it is"), "{refusal}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }

    #[test]
    fn the_schema_for_editors_is_beside_the_configuration() {
        let directory = tempfile::tempdir().unwrap();
        let at = |folder: &str| directory.path().join(folder);
        init(&Options { folder: at("new") }).unwrap();
        let first = format!("#:schema ./{SCHEMA_FILE}\n");
        assert!(fs::read_to_string(at("new").join(CONFIG_FILE)).unwrap().starts_with(&first));
        let written = fs::read(at("new").join(SCHEMA_FILE)).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), crate::config::schema::text());
        // another file is in its place
        fs::create_dir(at("taken")).unwrap();
        fs::write(at("taken").join(SCHEMA_FILE), "{}").unwrap();
        let refusal = init(&Options { folder: at("taken") }).unwrap_err();
        assert!(refusal.contains("stays as it is"), "{refusal}");
        assert!(!at("taken").join(CONFIG_FILE).exists());
        // one of an earlier configuration is replaced
        fs::remove_file(at("new").join(CONFIG_FILE)).unwrap();
        init(&Options { folder: at("new") }).unwrap();
    }

    #[test]
    fn the_name_of_a_folder_does_not_reach_the_terminal_raw() {
        let directory = tempfile::tempdir().unwrap();
        let lines = init(&Options { folder: directory.path().join("a\u{1b}[2J") }).unwrap();
        assert!(lines[1].ends_with("/a\\u{1b}[2J"), "{lines:?}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let refusal = init(&Options { folder: file.join("in") }).unwrap_err();
        assert!(refusal.starts_with(&format!("greenroom: {}", file.display())), "{refusal}");
    }
}
