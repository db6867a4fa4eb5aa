//! Metrics, read by `promtool` and by a Prometheus that scrapes the real program. Debian has both
//! in its package `prometheus`.

mod page;
mod prometheus;
mod traffic;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::Programs as _;
use prometheus::{Prometheus, promtool};
use support::server::{Home, Server};
use support::store::Store;
use traffic::{CONFIG, drive};

/// Time limit for a Prometheus to have scraped all kinds of traffic.
const PATIENCE: Duration = Duration::from_secs(90);

/// Panels of the dashboard about servers that share a database.
const OF_MEMBERS: [&str; 5] = [
    "Slots by server",
    "Servers of the database",
    "Age of the last sign of life",
    "Commands for other servers",
    "Connections between servers",
];

#[cfg(feature = "postgres")]
fn members() -> Option<[(Home, Server); 2]> {
    crate::cluster::members(["a", "b"])
}

#[cfg(not(feature = "postgres"))]
fn members() -> Option<[(Home, Server); 2]> {
    None
}

fn start(home: &Home) -> Server {
    Server::start(home.greenroom(&[]))
}

#[test]
fn promtool_accepts_the_metrics() {
    let Some(promtool) = promtool() else { return };
    let home = Home::new(CONFIG);
    let server = start(&home);
    drive(&server);
    let metrics = server.get("/metrics");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let said = promtool.told(&["check", "metrics"], &metrics.body);
    assert_eq!(said, "", "promtool check metrics");
}

#[test]
fn the_alert_rules_pass_their_tests() {
    let Some(promtool) = promtool() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/grafana");
    promtool.runs(&folder, &["check", "rules", "alerts.yml"]);
    promtool.runs(&folder, &["test", "rules", "alerts_test.yml"]);
}

/// Returns every query of the dashboard, with the title of its panel.
fn queries() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/grafana/greenroom.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut queries = Vec::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "10s");
            let query = query.replace("$job", ".*").replace("$instance", ".*");
            assert!(!query.contains('$'), "{title}: {query}");
            queries.push((title.to_owned(), query));
        }
    }
    assert!(queries.len() > 40, "the dashboard has changed its form");
    queries
}

#[test]
fn every_query_of_the_dashboard_has_data() {
    let Some(prometheus) = Prometheus::find() else { return };
    // the dashboard shows the size of the log too, which a database does not have
    let home = Home::on(Store::Sqlite, CONFIG);
    let server = start(&home);
    // and servers that share one
    let members = members();
    let others = members.iter().flatten().map(|(_, member)| member.address);
    let prometheus =
        prometheus.scrape(&[server.address].into_iter().chain(others).collect::<Vec<_>>());
    let deadline = Instant::now() + PATIENCE;
    let mut missing = queries();
    if members.is_none() {
        missing.retain(|(title, _)| !OF_MEMBERS.contains(&title.as_str()));
    }
    while !missing.is_empty() {
        drive(&server);
        let mut answers = BTreeMap::new();
        missing.retain(|(title, query)| {
            let answer = prometheus.ask(query);
            let is_empty = !has_a_number(&answer);
            if is_empty {
                answers.insert((title.clone(), query.clone()), answer);
            }
            is_empty
        });
        assert!(Instant::now() < deadline, "nothing to show: {answers:#?}");
    }
    // 0 if Prometheus cannot parse what it scrapes.
    assert!(has_a_number(&prometheus.ask("up == 1")));
}

/// Returns true if any series has a value that can be drawn.
fn has_a_number(answer: &Value) -> bool {
    let series = answer["data"]["result"].as_array().into_iter().flatten();
    let mut values = series.filter_map(|series| series["value"][1].as_str()?.parse().ok());
    values.any(f64::is_finite)
}
