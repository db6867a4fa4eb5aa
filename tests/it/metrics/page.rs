//! `docs/metrics.md` compared with a running server: names, types, labels and texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::start;
use super::traffic::{CONFIG, drive};
use support::server::{Home, Server};
use support::store::Store;

/// Environment variable: rewrite the page.
const UPDATE: &str = "UPDATE_DOCS";

/// Head of the table.
const HEAD: &str = "| Metric | Type | Unit | Labels | Meaning |\n|---|---|---|---|---|\n";

/// Metrics that this traffic does not produce: name, labels, meaning. All are counters.
const RARE: [(&str, [&str; 2], &str); 3] = [
    (
        "gen_ai_client_inference_usage_cache_read_input_tokens_total",
        ["agent", "model"],
        "Input tokens of models that the provider read from its cache",
    ),
    (
        "gen_ai_client_inference_usage_reasoning_output_tokens_total",
        ["agent", "model"],
        "Reasoning tokens of models",
    ),
    (
        "greenroom_step_blocked_total",
        ["step", "workflow"],
        "Times that a step blocked its thread for 100 ms or more",
    ),
];

/// Metrics of a server that shares its database: name, type, label, meaning.
const OF_MEMBERS: [(&str, &str, Option<&str>, &str); 12] = [
    (
        "greenroom_beat_age_seconds",
        "gauge",
        None,
        "Time since the last sign of life that the database has confirmed",
    ),
    (
        "greenroom_cluster_members",
        "gauge",
        None,
        "Servers that share the database, this one included",
    ),
    (
        "greenroom_forwarded_total",
        "counter",
        Some("outcome"),
        "Commands for executions of other servers: answered there, carried out here after all, or \
         refused because their server was lost or none was found",
    ),
    ("greenroom_forwarding", "gauge", None, "Commands and streams that wait for other servers now"),
    (
        "greenroom_lease_seconds",
        "gauge",
        None,
        "Time without a sign of life after which a server counts as gone (cluster.lease)",
    ),
    (
        "greenroom_link_queued_bytes",
        "gauge",
        Some("peer"),
        "Requests to another server that wait to be sent",
    ),
    (
        "greenroom_link_up",
        "gauge",
        Some("peer"),
        "1 while this server is connected to another one of the database",
    ),
    (
        "greenroom_slots_given_total",
        "counter",
        None,
        "Slots that this server has handed over to others",
    ),
    (
        "greenroom_slots_owned",
        "gauge",
        None,
        "Slots of the database that this server serves, of 4096",
    ),
    ("greenroom_slots_taken_total", "counter", None, "Slots that this server has begun to serve"),
    (
        "greenroom_slots_unowned",
        "gauge",
        None,
        "Slots of the database that no server serves, as this one knows it",
    ),
    (
        "greenroom_takeovers_total",
        "counter",
        None,
        "Servers without a sign of life that this one has declared gone",
    ),
];

#[derive(Debug, Default, PartialEq, Eq)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' ')) {
            name.clone_into(&mut current);
            families.entry(current.clone()).or_default().help = help.to_owned();
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        {
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((_, labels)) = line.split_once('{') {
            let family = families.get_mut(&current).expect("samples follow their family");
            let names = labels
                .match_indices("=\"")
                .map(|(at, _)| labels[..at].rsplit(',').next().expect("a split has a last part"));
            let names = names.filter(|name| *name != "le");
            family.labels.extend(names.map(str::to_owned));
        }
    }
    families
}

fn row((name, family): (String, Family)) -> String {
    let stem = name.strip_suffix("_total").unwrap_or(&name);
    let unit = ["seconds", "bytes", "tokens"].into_iter().find(|unit| stem.ends_with(unit));
    let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
    let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
    let labels = labels.join(", ");
    let labels = if labels.is_empty() { labels } else { format!(" {labels}") };
    format!("| `{name}` | {} |{unit} |{labels} | {} |", family.kind, family.help)
}

fn scrape() -> String {
    // a collector that is not reachable is counted as well
    let config = format!("{CONFIG}\n[telemetry]\nendpoint = \"http://127.0.0.1:9\"\n");
    let home = Home::on(Store::Sqlite, &config);
    let server: Server = start(&home);
    drive(&server);
    server.get("/metrics").text()
}

#[test]
fn former_names_of_metrics_have_the_same_series() {
    let text = scrape();
    let samples = |name: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.filter(|rest| rest.starts_with([' ', '{'])).map(str::to_owned).collect()
    };
    for (name, former) in [
        ("greenroom_executions_finished_total", "greenroom_executions_total"),
        ("greenroom_executions_recovered_total", "greenroom_executions_rebuilt_total"),
        ("greenroom_export_items_total", "greenroom_telemetry_items_total"),
    ] {
        assert!(!samples(name).is_empty(), "{name}");
        assert_eq!(samples(name), samples(former), "{former}");
        assert!(text.contains(&format!("# HELP {former} Former name of {name}\n")), "{former}");
    }
}

fn source(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_of_metrics_is_that_of_a_server() {
    let mut families = families(&scrape());
    let code = ["executions", "turns"].map(|file| source(&format!("telemetry/metrics/{file}.rs")));
    for (name, labels, help) in RARE {
        assert!(code.iter().any(|code| code.contains(help)), "{name} has another text: {help}");
        let labels = labels.map(str::to_owned).into();
        let (kind, help) = ("counter".to_owned(), help.to_owned());
        families.entry(name.to_owned()).or_insert(Family { kind, help, labels });
    }
    families.extend(of_members());
    let rows: Vec<String> = families.into_iter().map(row).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, behind) = page.split_once(HEAD).expect("the page has its table");
    let end = behind.find("\n\n").map_or(behind.len(), |end| end + 1);
    let (table, rest) = behind.split_at(end);
    let made = rows.join("\n") + "\n";
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, format!("{before}{HEAD}{made}{rest}")).unwrap();
        return;
    }
    let differs = table.lines().zip(made.lines()).find(|(written, made)| written != made);
    assert!(
        table == made,
        "docs/metrics.md is not that of a server, first at {differs:?}; \
         write it anew with {UPDATE}=1 cargo test --test it the_page_of_metrics"
    );
}

fn of_members() -> BTreeMap<String, Family> {
    let family = |(name, kind, label, help): (&str, &str, Option<&str>, &str)| {
        let labels = label.map(str::to_owned).into_iter().collect();
        (name.to_owned(), Family { kind: kind.to_owned(), help: help.to_owned(), labels })
    };
    OF_MEMBERS.map(family).into()
}

#[cfg(feature = "postgres")]
#[test]
fn the_page_has_the_metrics_of_a_server_that_shares_its_database() {
    let Some([(_, a), (_, b)]) = crate::cluster::members(["a", "b"]) else { return };
    let text = support::eventually("the link", || {
        let text = a.get("/metrics").text();
        text.contains("greenroom_link_up{peer=\"b\"} 1").then_some(text)
    });
    let mut served = families(&text);
    let alone = families(&scrape());
    served.retain(|name, _| !alone.contains_key(name));
    assert_eq!(served, of_members());
    drop(b);
}
