//! `docs/configuration.md`, generated from the tables of keys.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toml::{Table, Value};

use super::shipped::SHIPPED;
use crate::config::keys::{Row, Takes, rows};
use crate::made_page;

const BEGIN: &str = "\
# Configuration

Made from the tables in `src/config` by `UPDATE_DOCS=1 cargo test --lib the_page_of_keys`; a test
compares the two.

The server reads `config.toml`, or the file of `--config`. `greenroom check` reports every mistake in
it, with line, column and key. Durations are texts such as `\"500ms\"`, `\"3s\"`, `\"5m\"` or `\"48h\"`,
in whole milliseconds and at most 3650 days. Sizes are bytes. `name` of `[server]` and `advertise` of
`[cluster]`, which differ between servers with one file, may contain environment variables, as in
`\"${POD_IP}:3142\"`.

These sections hold one value per key. `[auth]`, `[models.*]`, `[agents.*]`, `[tools.*]`,
`[workflows.*]`, `[[routes]]` and `include` are described in [config.toml](../config.toml), which shows
every key.
";

const FORMER: &str = "
## Former names

Files with names of earlier versions are still read. The former and the new name of one key are an
error where both are written.

| Former | Now |
|---|---|
";

/// Former names outside of the tables.
const FORMER_ELSEWHERE: &str = "\
| `omit` in `[models.*]` | `unsupported_options` |
| `objects` in `[models.*]` | `object_mode` |
| `provider = \"rehearsal\"` in `[models.*]` | `provider = \"mock\"` |
| `default = \"spec\"` in `[auth]` | `default = \"standard\"` |
";

fn kind(takes: &Takes) -> String {
    match takes {
        Takes::Integer(bounds) => format!("integer, {} to {}", bounds.start(), bounds.end()),
        Takes::Bytes(bounds) if *bounds.end() == i64::MAX => {
            format!("bytes, at least {}", bounds.start())
        }
        Takes::Bytes(bounds) => format!("bytes, {} to {}", bounds.start(), bounds.end()),
        Takes::Duration => "duration, at least 1ms".to_owned(),
        Takes::DurationOrZero => "duration".to_owned(),
        Takes::DurationOrForever => "duration or `\"forever\"`".to_owned(),
        Takes::Flag => "`true` or `false`".to_owned(),
        Takes::Share => "number, 0 to 1".to_owned(),
        Takes::Text => "string".to_owned(),
        Takes::TextWithVariables => "string, with `${NAME}` for a variable".to_owned(),
        Takes::Texts(_, words) | Takes::Own(words) => (*words).to_owned(),
        Takes::Elsewhere(message) => (*message).to_owned(),
    }
}

/// Returns the value in the shipped file, which another test compares with the default.
fn default(shipped: &Table, row: &Row) -> String {
    let value = shipped.get(row.section).and_then(|section| section.get(row.name));
    match value {
        Some(Value::Table(table)) if table.is_empty() => "`{}`".to_owned(),
        Some(value) => format!("`{value}`"),
        None => "see there".to_owned(),
    }
}

fn about(row: &Row) -> String {
    row.about.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

fn page() -> String {
    let shipped: Table = SHIPPED.parse().unwrap();
    let mut page = BEGIN.to_owned();
    let mut former = FORMER.to_owned();
    let mut section = "";
    for row in rows() {
        if row.section != section {
            section = row.section;
            let head = "| Key | Takes | Default | Meaning |\n|---|---|---|---|";
            writeln!(page, "\n## `[{section}]`\n\n{head}").unwrap();
        }
        let (name, takes, default) = (row.name, kind(row.takes), default(&shipped, &row));
        writeln!(page, "| `{name}` | {takes} | {default} | {} |", about(&row)).unwrap();
        if let Some(old) = row.former {
            writeln!(former, "| `{old}` in `[{section}]` | `{name}` |").unwrap();
        }
    }
    page + &former + FORMER_ELSEWHERE
}

#[test]
fn the_page_of_keys_is_that_of_the_tables() {
    made_page::compare("docs/configuration.md", &page(), "the_page_of_keys");
}

#[test]
fn the_tables_can_be_read() {
    let shipped: Table = SHIPPED.parse().unwrap();
    let mut seen = BTreeSet::new();
    for row in rows() {
        let name = format!("{}.{}", row.section, row.name);
        let about = about(&row);
        assert!(seen.insert(name.clone()), "{name} is there twice");
        assert!(about.ends_with('.') && !about.contains(['|', '\n']), "{name}: {about}");
        let says_default = about.contains("Default: ");
        assert_eq!(default(&shipped, &row) == "see there", says_default, "{name}: {about}");
    }
}
