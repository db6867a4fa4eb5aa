//! Plans of the statements that commit batches, as PostgreSQL has logged them.

use std::collections::BTreeMap;
use std::fmt;

/// Beginning of such a statement.
const COMMITS: &str = "Query Text: WITH fence AS";

/// The last plan of each statement, by the text of the statement.
#[derive(Debug, Default)]
pub(crate) struct Plans(BTreeMap<String, String>);

impl Plans {
    /// Reads a log with plans by `auto_explain`.
    pub(crate) fn read(log: &str) -> Self {
        let mut plans = BTreeMap::new();
        for entry in entries(log) {
            let Some(begin) = entry.iter().position(|line| line.contains(COMMITS)) else {
                continue;
            };
            // the plan follows the text of the statement
            let is_plan = |line: &&str| line.contains("(cost=");
            let Some(plan) = entry.iter().position(is_plan) else { continue };
            plans.insert(entry[begin..plan].join("\n"), without_costs(&entry[plan..]));
        }
        Self(plans)
    }

    /// Returns what no plan of a batch may do: read a whole table.
    pub(crate) fn failures(&self) -> Vec<String> {
        let lines = self.0.values().flat_map(|plan| plan.lines());
        let scans = lines.filter(|line| line.contains("Seq Scan"));
        let mut failures: Vec<_> =
            scans.map(|line| format!("a batch reads a whole table: {}", line.trim())).collect();
        if self.0.is_empty() {
            failures.push("no plan of a batch was found in the log of PostgreSQL".to_owned());
        }
        failures
    }
}

impl fmt::Display for Plans {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.values().try_for_each(|plan| writeln!(formatter, "```text\n{plan}\n```"))
    }
}

/// Splits a log into entries. Further lines of an entry begin with a tab.
fn entries(log: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut lines = log.lines().peekable();
    std::iter::from_fn(move || {
        let mut entry = vec![lines.next()?];
        while let Some(line) = lines.next_if(|line| line.starts_with('\t')) {
            entry.push(line);
        }
        Some(entry)
    })
}

fn without_costs(plan: &[&str]) -> String {
    let bare =
        |line: &&str| line.split("  (cost=").next().unwrap_or_default().replacen('\t', "", 1);
    plan.iter().map(bare).collect::<Vec<_>>().join("\n")
}
