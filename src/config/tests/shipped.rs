//! The `config.toml` of the repository.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use greenroom_actors::RetentionRules;
use toml::de::{DeTable, DeValue};

use super::problems_of;
use crate::adapters::mcp::settings::{McpLimits, OnInput, Restart};
use crate::config::keys::{Keys, rows_with_defaults};
use crate::config::reader::read;
use crate::config::shipped::SHIPPED;
use crate::config::source::{Findings, Source};
use crate::config::{
    AuthConfig, ClusterConfig, Config, CorsConfig, InboxConfig, LimitsConfig, LogsConfig, Names,
    ServerConfig, StoreConfig, SystemConfig, TelemetryConfig, UpdatesConfig,
};

/// Keys without a line in the file: `run` needs Rust code.
const WITHOUT_LINE: [&str; 1] = ["workflows.*.steps.run"];

/// Returns the file with every key uncommented.
pub(super) fn everything() -> String {
    let mut text = String::new();
    for line in SHIPPED.lines() {
        let rest = line.strip_prefix('#').unwrap_or_default();
        let is_key = rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
        let line = if is_key { rest } else { line };
        // the tests have no files to include
        let line = if line.starts_with("include") { "include = []" } else { line };
        let line = line.replace("static = \"site\"", "static = \"docs\"");
        // cargo sets this variable
        let line = line.replace("secret:ORDERS_TOKEN", "secret:CARGO_PKG_NAME");
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Collects the dotted paths of all keys, in the form of [`Findings`].
fn shown(table: &DeTable<'_>, path: &str, keys: &mut BTreeSet<String>) {
    for (key, value) in table {
        let key = key.get_ref();
        let at = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        keys.insert(at.clone());
        let is_named = match path {
            "models" | "agents" | "mcp" | "tools" | "workflows" => true,
            "workflows.*.tests.mocks" => !matches!(&**key, "models" | "tools" | "workflows"),
            _ => false,
        };
        let inner = if is_named { format!("{path}.*") } else { at };
        let inner = match inner.strip_prefix("workflows.*.blocks.") {
            Some(_) => "workflows.*.steps".to_owned(),
            None => inner,
        };
        match value.get_ref() {
            DeValue::Table(table) => shown(table, &inner, keys),
            DeValue::Array(items) => {
                for item in items {
                    if let DeValue::Table(table) = item.get_ref() {
                        shown(table, &inner, keys);
                    }
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_shipped_file_is_clean() {
    let config = Config::parse(SHIPPED, "config.toml").unwrap();
    assert_eq!(config.warnings, []);
    assert!(config.check_exposure(&Names::default()).is_ok());
    let workflows: Vec<_> = config.workflows.keys().map(String::as_str).collect();
    assert_eq!(
        workflows,
        ["expense-approval", "newsletter", "noop3", "refund", "reminder", "trip"]
    );
    assert_eq!(config.agents["assistant"].model.fixed().unwrap(), "offline");
    assert_eq!(config.models.len(), 1);
    assert_eq!(config.tools.keys().collect::<Vec<_>>(), ["add_three", "ask_researcher", "refund"]);
}

#[test]
fn the_shipped_file_shows_the_defaults() {
    let config = Config::parse(SHIPPED, "config.toml").unwrap();
    assert_eq!(config.server, ServerConfig::default());
    assert_eq!(config.store, StoreConfig::default());
    assert_eq!(config.cluster, ClusterConfig::default());
    assert_eq!(config.auth, AuthConfig::default());
    assert_eq!(config.cors, CorsConfig::default());
    assert_eq!(config.inbox, InboxConfig::default());
    assert_eq!(config.limits, LimitsConfig::default());
    assert_eq!(config.logs, LogsConfig::default());
    assert_eq!(config.retention, RetentionRules::default());
    assert_eq!(config.system, SystemConfig::default());
    assert_eq!(config.updates, UpdatesConfig::default());
    assert_eq!(config.telemetry, TelemetryConfig::default());
}

/// Compares the keys of a table with their defaults, where they have one.
fn assert_defaults<T: Keys>(shown: &toml::Table) {
    for (row, default) in rows_with_defaults::<T>() {
        let shown = serde_json::to_value(&shown[row.name]).unwrap();
        let time = |value: &serde_json::Value| humantime::parse_duration(value.as_str()?).ok();
        if let Some(default) = default {
            let name = row.name;
            assert!(
                shown == default || time(&shown).is_some_and(|it| Some(it) == time(&default)),
                "{name}: {shown}"
            );
        }
    }
}

#[test]
fn the_commented_keys_of_mcp_servers_show_the_defaults() {
    let all: toml::Table = everything().parse().unwrap();
    let table = |name: &str| all["mcp"][name].as_table().unwrap();
    assert_defaults::<McpLimits>(table("github"));
    assert_defaults::<OnInput>(table("github")["on_input"].as_table().unwrap());
    assert_defaults::<Restart>(table("files")["restart"].as_table().unwrap());
}

#[test]
fn every_commented_key_works() {
    let text = everything();
    let alternatives = ["provider = \"none\"", "public_key = ", "jwks_url = "];
    let is_alternative = |line: &&str| alternatives.iter().any(|key| line.starts_with(key));
    assert_eq!(text.lines().filter(is_alternative).count(), alternatives.len());
    // a build without the exporter refuses its address
    let is_missing = |line: &&str| !cfg!(feature = "otel") && line.starts_with("endpoint = ");
    // several servers need a database
    let is_of_file =
        |line: &&str| cfg!(feature = "postgres") && line.starts_with("url = \"sqlite:");
    let needs_database =
        ["listen = ", "advertise = ", "certificate = ", "key = ", "ca = \"cluster-"];
    let is_of_cluster = |line: &&str| needs_database.iter().any(|key| line.starts_with(key));
    let is_left_out = |line: &&str| {
        let is_unused = match cfg!(feature = "postgres") {
            // a file that would be read
            true => line.starts_with("ca = \"database-"),
            false => is_of_cluster(line),
        };
        is_unused || is_alternative(line) || is_missing(line)
    };
    let database = "url = \"postgres://ann@db/shop\"";
    let lines = text.lines().filter(|line| !is_left_out(line));
    let lines: Vec<_> = lines.map(|line| if is_of_file(&line) { database } else { line }).collect();
    let config = Config::parse(&lines.join("\n"), "config.toml").unwrap();
    assert_eq!(config.warnings, []);
    assert!(config.auth.jwt.is_some() && config.auth.api_keys.len() == 1);
}

/// Uncomments every line of a block, as the file instructs.
#[test]
fn every_block_of_a_provider_works_when_uncommented() {
    let blocks: Vec<_> =
        SHIPPED.split("\n\n").filter(|block| block.contains("#[models.")).collect();
    assert!(blocks.len() >= 4, "{blocks:#?}");
    for block in blocks {
        // comments precede the block
        let start = block.find("#[models.").unwrap();
        let lines = block[start..].lines().map(|line| line.strip_prefix('#').unwrap());
        let bare: Vec<_> = lines.collect();
        let text = format!("[models.offline]\nprovider = \"mock\"\n{}\n", bare.join("\n"));
        let config = Config::parse(&text, "c.toml").unwrap_or_else(|problems| {
            panic!("{block}: {problems:#?}");
        });
        assert_eq!((config.models.len(), config.warnings), (2, vec![]), "{block}");
    }
}

#[test]
fn every_known_key_is_in_the_shipped_file() {
    let (source, findings) = (Source::new("config.toml", everything()), Findings::default());
    read(&source, &findings, None);
    let mut keys = BTreeSet::new();
    shown(DeTable::parse(&source.text).unwrap().get_ref(), "", &mut keys);
    let known = findings.known_keys.borrow();
    assert!(known.len() > 80, "sections ask for their keys: {known:#?}");
    let of_mocks = ["tools", "models", "workflows"];
    let of_mocks = of_mocks.map(|kind| format!("workflows.*.tests.mocks.{kind}.*."));
    let hidden: Vec<_> = known
        .iter()
        .filter(|key| !keys.contains(*key) && !WITHOUT_LINE.contains(&key.as_str()))
        // those of a compensation are shown at steps
        .filter(|key| !key.starts_with("workflows.*.steps.compensate."))
        // those of mocks are shown at mocks of steps, and at models
        .filter(|key| !of_mocks.iter().any(|mocks| key.starts_with(mocks)))
        .collect();
    assert!(hidden.is_empty(), "not in config.toml: {hidden:#?}");
}

#[test]
fn a_file_cut_anywhere_is_read_or_refused() {
    for text in [SHIPPED.to_owned(), everything()] {
        // cutting after a comment equals cutting before it
        let says_something = |cut: &usize| {
            let line = text[..*cut].rsplit('\n').next().unwrap_or_default();
            !line.is_empty() && !line.starts_with('#')
        };
        for cut in text.match_indices('\n').map(|(cut, _)| cut).filter(says_something) {
            if let Err(problems) = Config::parse(&text[..cut], "config.toml") {
                assert!(!problems.is_empty());
            }
        }
    }
    // also within lines, at a sample of places
    let workflow = &SHIPPED[SHIPPED.find("[workflows.expense").unwrap()..];
    for cut in (0..workflow.len()).step_by(13).filter(|cut| workflow.is_char_boundary(*cut)) {
        let _ = Config::parse(&workflow[..cut], "config.toml");
    }
}

#[test]
fn the_shipped_file_states_the_bounds_of_containers() {
    for (step, key) in [
        ("type = 'andForEach'\nitems = 'data'\nconcurrency = 0", "concurrency"),
        ("type = 'andDoUntil'\nwhen = 'data'\nmax_iterations = 0", "max_iterations"),
    ] {
        let text = format!(
            "[[workflows.w.steps]]\nid = 'a'\n{step}\nblock = 'x'\n\
             [[workflows.w.blocks.x]]\nid = 'b'\nmap = 1\n"
        );
        let problems = problems_of(&text);
        let (_, bounds) = problems[0].split_once(&format!("{key}: must be from ")).unwrap();
        let is_named = |line: &str| line.contains(key) && line.contains(&format!("({bounds}, "));
        assert!(SHIPPED.lines().any(is_named), "{key}: {bounds}");
    }
}
