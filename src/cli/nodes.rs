//! `greenroom nodes`: the servers of the configured database, as the database knows them.

use std::process::ExitCode;

use greenroom_store_postgres::{Node, NodeState, Nodes};
use serde::Serialize;

use super::{Arguments, counted, finish, read};
use crate::app;

/// Options of `nodes`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
enum Action {
    /// Has a server hand its executions over to the others, before it is stopped.
    Drain {
        /// Name of the server.
        name: String,
        /// Wait until it has no slots.
        #[arg(long)]
        wait: bool,
    },
}

/// The JSON output. Names and meanings are stable; more members may be added.
#[derive(Debug, Serialize)]
struct Report<'a> {
    /// False while one server has the database for itself.
    shared: bool,
    /// Slots that no server serves; null if the database is not shared.
    unowned: Option<u64>,
    nodes: Vec<Reported<'a>>,
}

#[derive(Debug, Serialize)]
struct Reported<'a> {
    name: &'a str,
    node: i64,
    version: &'a str,
    address: Option<&'a str>,
    state: &'static str,
    beats: bool,
    slots: Option<u64>,
    /// Names of the servers that it has no connection to.
    unreachable: Vec<&'a str>,
}

impl<'a> Report<'a> {
    fn of(nodes: &'a Nodes) -> Self {
        let shared = nodes.alone().is_none();
        Self {
            shared,
            unowned: shared.then_some(nodes.slots_unowned),
            nodes: nodes.nodes.iter().map(|node| Reported::of(node, nodes)).collect(),
        }
    }
}

impl<'a> Reported<'a> {
    fn of(node: &'a Node, nodes: &'a Nodes) -> Self {
        Self {
            name: &node.name,
            node: node.node,
            version: &node.version,
            address: node.address.as_deref(),
            state: match node.state {
                NodeState::Active => "active",
                NodeState::Leaving => "leaving",
                NodeState::Gone => "gone",
            },
            beats: node.is_beating,
            slots: node.lease.map(|_| node.slots),
            unreachable: nodes.unreachable_from(node).collect(),
        }
    }

    /// Returns the cells of its line.
    fn cells(&self) -> [String; 7] {
        let slots = self.slots.map_or_else(|| "all".to_owned(), |slots| slots.to_string());
        [
            self.name.to_owned(),
            self.node.to_string(),
            self.version.to_owned(),
            self.address.unwrap_or("-").to_owned(),
            self.state.to_owned(),
            if self.beats { "yes" } else { "no" }.to_owned(),
            slots,
        ]
    }
}

/// Runs a command. Prints its result to stdout, problems to stderr.
pub(super) fn run(arguments: &Arguments, options: &Options) -> ExitCode {
    let lines = match &options.action {
        Some(Action::Drain { name, wait }) => drain(arguments, name, *wait).map(|line| vec![line]),
        None => list(arguments, options.json),
    };
    finish(lines)
}

fn list(arguments: &Arguments, json: bool) -> Result<Vec<String>, Vec<String>> {
    let nodes = open(arguments)?.look().map_err(refused)?;
    if json {
        let report = serde_json::to_string_pretty(&Report::of(&nodes));
        return report.map(|report| vec![report]).map_err(refused);
    }
    Ok(lines(&nodes))
}

fn drain(arguments: &Arguments, name: &str, wait: bool) -> Result<String, Vec<String>> {
    let reader = open(arguments)?;
    let is_new = reader.set_leaving(name).map_err(refused)?;
    if wait {
        reader.wait_until_left(name).map_err(refused)?;
        return Ok(format!("{name} has handed its slots over, and can be stopped"));
    }
    let hands = if is_new { "hands" } else { "is leaving already, and hands" };
    Ok(format!(
        "{name} {hands} its slots over to the other servers; stop it when `greenroom nodes` shows \
         that it has none"
    ))
}

/// Opens the configured database.
fn open(arguments: &Arguments) -> Result<greenroom_store_postgres::NodeReader, Vec<String>> {
    let config = read(arguments)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    app::open_nodes(&config).map_err(refused)
}

fn refused(why: impl std::fmt::Display) -> Vec<String> {
    vec![format!("greenroom: {why}")]
}

/// Returns a table, and what to know about it.
fn lines(nodes: &Nodes) -> Vec<String> {
    if nodes.nodes.is_empty() {
        return vec!["no server uses the database".to_owned()];
    }
    let head = ["NAME", "NODE", "VERSION", "ADDRESS", "STATE", "BEATS", "SLOTS"];
    let mut rows = vec![head.map(str::to_owned)];
    let reported: Vec<_> = nodes.nodes.iter().map(|node| Reported::of(node, nodes)).collect();
    rows.extend(reported.iter().map(Reported::cells));
    let mut lines = table(&rows);
    for node in reported.iter().filter(|node| !node.unreachable.is_empty()) {
        lines.push(format!("{} has no connection to {}", node.name, node.unreachable.join(", ")));
    }
    if let Some(alone) = nodes.alone() {
        lines.push(format!("{} has the database for itself", alone.name));
    } else if nodes.slots_unowned > 0 {
        lines.push(format!("no server serves {}", counted(nodes.slots_unowned, "slot")));
    }
    lines
}

/// Returns rows with their cells below each other.
fn table<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn cells_are_below_each_other() {
        let rows = [["NAME", "SLOTS"], ["a", "all"], ["knöte-b", "7"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), ["NAME     SLOTS", "a        all", "knöte-b  7"]);
    }

    #[test]
    fn a_store_that_is_no_database_has_no_servers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        std::fs::write(&path, "[store]\nurl = \"sqlite://a.db\"\n").unwrap();
        let line = ["greenroom", "nodes", "--config", path.to_str().unwrap()];
        let refusal = list(&Arguments::parse_from(line), false).unwrap_err();
        let expected = "greenroom: the configured store (sqlite://a.db) is not in PostgreSQL: one \
            server has it for itself";
        assert_eq!(refusal, [expected]);
    }
}
