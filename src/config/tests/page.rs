//! `docs/configuration.md`, generated from the tables of keys.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toml::Value;

use crate::config::keys::{Row, Takes, rows};
use crate::config::shipped::default_of;
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
`[mcp.*]`, `[workflows.*]`, `[faces]`, `[[routes]]` and `include` are described in
[config.toml](../config.toml), which shows every key. Editors complete and check all of them with the JSON Schema that
[`greenroom schema`](cli.md#schema) writes, and [`greenroom config show`](cli.md#config-show) prints
what is in effect.
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
        Takes::Flag | Takes::FlagOf(..) => "`true` or `false`".to_owned(),
        Takes::Share => "number, 0 to 1".to_owned(),
        Takes::Text => "string".to_owned(),
        Takes::TextWithVariables => "string, with `${NAME}` for a variable".to_owned(),
        Takes::OneOf(names) => listed(names),
        Takes::Secret => "`\"secret:NAME\"`".to_owned(),
        Takes::TableOfTexts => "a table of strings".to_owned(),
        Takes::Texts(_, words) | Takes::Own(words) | Takes::OwnTexts(words) => (*words).to_owned(),
        Takes::Elsewhere(message) => (*message).to_owned(),
    }
}

fn listed(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
    let (last, others) = names.split_last().unwrap();
    format!("{} or {last}", others.join(", "))
}

/// Returns the default in the shipped file, which another test compares with that of the code.
fn default(row: &Row) -> String {
    match default_of(row) {
        Some(Value::Table(table)) if table.is_empty() => "`{}`".to_owned(),
        Some(value) => format!("`{value}`"),
        None => "see there".to_owned(),
    }
}

fn page() -> String {
    let mut page = BEGIN.to_owned();
    let mut former = FORMER.to_owned();
    let mut section = "";
    for row in rows() {
        if row.section != section {
            section = row.section;
            let head = "| Key | Takes | Default | Meaning |\n|---|---|---|---|";
            writeln!(page, "\n## `[{section}]`\n\n{head}").unwrap();
        }
        let (name, takes, default) = (row.name, kind(row.takes), default(&row));
        writeln!(page, "| `{name}` | {takes} | {default} | {} |", row.about()).unwrap();
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
    let mut seen = BTreeSet::new();
    for row in rows() {
        let name = format!("{}.{}", row.section, row.name);
        let about = row.about();
        assert!(seen.insert(name.clone()), "{name} is there twice");
        assert!(about.ends_with('.') && !about.contains(['|', '\n']), "{name}: {about}");
        let says_default = about.contains("Default: ");
        assert_eq!(default(&row) == "see there", says_default, "{name}: {about}");
    }
}
