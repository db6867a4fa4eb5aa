//! From texts to a [`Config`]: each section in turn, then the checks that need all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use greenroom_actors::domain::ids::is_definition_id;
use greenroom_actors::domain::plan::Callers;
use greenroom_actors::runtime::BULK_WORKFLOW;
use toml::de::DeValue;

use super::choices::AsRead;
use super::files::Files;
use super::keys::Keys as _;
use super::models::fallback_cycles;
use super::names::Names;
use super::problem::{ConfigProblem, Spot};
use super::section::{Place, Section, in_order};
use super::source::{Findings, Source};
use super::workflows::Read;
use super::{
    AuthConfig, ClusterConfig, Config, ConsoleConfig, CorsConfig, DocsConfig, FacesConfig,
    InboxConfig, LimitsConfig, LogsConfig, MetricsConfig, ModelConfig, ServerConfig, StoreConfig,
    SystemConfig, TelemetryConfig, UpdatesConfig, agents, document, include, mcp, retention,
    routes, tools, workflow_tests, workflows,
};
use crate::nearest::nearest;

/// A configuration or its problems, and the files that were read.
pub(super) type Loaded = (Result<Config, Vec<ConfigProblem>>, Files);

pub(super) fn load(path: &Path, registered: Option<&Names>) -> Loaded {
    let findings = Findings::default();
    match document::read_file(path, &findings) {
        Ok(source) => {
            let (read, files) = examine(&source, registered, findings);
            let read = read.map(|config| Config {
                path: Some(path.to_owned()),
                as_read: Some(Arc::new(AsRead::of(&config))),
                ..config
            });
            (read, files)
        }
        Err(problem) => (Err(vec![problem]), findings.into_parts().1),
    }
}

pub(super) fn parse(
    text: &str,
    file_name: &str,
    registered: Option<&Names>,
) -> Result<Config, Vec<ConfigProblem>> {
    examine(&Source::new(file_name, text), registered, Findings::default()).0
}

fn examine(source: &Source, registered: Option<&Names>, findings: Findings) -> Loaded {
    let mut config = read(source, &findings, registered);
    let assignments = findings.assignments.take();
    let lone_roles = findings.lone_roles.take();
    let (mut problems, files) = findings.into_parts();
    problems.extend(lone_roles.iter().filter_map(|it| it.check(&config, &assignments)));
    if let Some(registered) = registered {
        problems.extend(assignments.iter().flat_map(|it| it.check(&config, registered)));
        problems.extend(config.check_names(registered));
        problems.extend(config.check_rules(registered));
    }
    problems.sort_by(|one, other| {
        let order = |problem: &ConfigProblem| {
            let is_included = problem.file != source.file;
            (is_included, Arc::clone(&problem.file), problem.line, problem.column)
        };
        order(one).cmp(&order(other))
    });
    #[cfg(test)]
    super::tests::schema::compare(source, &problems);
    if problems.iter().any(ConfigProblem::is_error) {
        return (Err(problems), files);
    }
    config.warnings = problems;
    config.files.clone_from(&files);
    (Ok(config), files)
}

/// Reads as much as possible and reports problems to `findings`.
pub(super) fn read(source: &Source, findings: &Findings, registered: Option<&Names>) -> Config {
    let mut config = Config::default();
    let Some(table) = document::parse(source, findings) else { return config };
    let root = document::root(source, &table, findings);
    config.written = source.text.parse().unwrap_or_default();
    read_sections(&root, &mut config);
    read_models_and_agents(&root, &mut config);
    read_tools(&root, &mut config);
    let mut spots = BTreeMap::new();
    let callers = match registered {
        Some(registered) if !config.auth.checks_tokens(registered) => Callers::Any,
        Some(_) | None => Callers::Named,
    };
    read_workflows(&root, callers, &mut config, &mut spots);
    let base = Path::new(&*source.file).parent().unwrap_or_else(|| Path::new("."));
    let included = root.get("include").map(|entry| include::read(&entry, base));
    for source in included.unwrap_or_default() {
        read_included(&source, findings, callers, &mut config, &mut spots);
    }
    if let Some(faces) = root.section("faces") {
        config.faces = FacesConfig::read(faces, &mut config.references);
    }
    for section in root.sections("routes") {
        config.routes.extend(routes::read(section, base, &mut config.references));
    }
    declare_misplaced(&root, &mut config.declared);
    root.close();
    for problem in tools::check_workflows(&config, |id| config.workflows.get(id)) {
        findings.report(problem);
    }
    for warning in tools::warn_of_waiting(&config) {
        findings.report(warning);
    }
    for problem in config.check_arguments(|callee, name| config.schema_of(callee, name)) {
        findings.report(problem);
    }
    for warning in workflows::warn_of_recursion(&config.workflows, &spots) {
        findings.report(warning);
    }
    config
}

/// Declares the names under a misspelt section, so that the section is the only mistake reported.
fn declare_misplaced(root: &Section<'_>, declared: &mut Names) {
    for key in root.leftovers() {
        let names = match nearest(key, ["agents", "models", "tools", "workflows"]).as_deref() {
            Some("agents") => &mut declared.agents,
            Some("models") => &mut declared.models,
            Some("tools") => &mut declared.tools,
            Some("workflows") => &mut declared.workflows,
            Some(_) | None => continue,
        };
        if let Some(DeValue::Table(table)) = root.table.get(key).map(|value| value.get_ref()) {
            names.extend(in_order(table).into_iter().map(|(name, ..)| name.to_owned()));
        }
    }
}

/// Adds the workflows of an included file to those of the file that includes it.
fn note_written(source: &Source, written: &mut toml::Table) {
    const WORKFLOWS: &str = "workflows";
    let included: toml::Table = source.text.parse().unwrap_or_default();
    let all = written.entry(WORKFLOWS).or_insert_with(|| toml::Table::new().into());
    if let (Some(all), Some(more)) =
        (all.as_table_mut(), included.get(WORKFLOWS).and_then(toml::Value::as_table))
    {
        all.extend(more.clone());
    }
}

/// Reads an included file, which may contain only workflows.
fn read_included(
    source: &Source,
    findings: &Findings,
    callers: Callers,
    config: &mut Config,
    spots: &mut BTreeMap<String, Spot>,
) {
    let Some(table) = document::parse(source, findings) else { return };
    let root = document::root(source, &table, findings);
    note_written(source, &mut config.written);
    read_workflows(&root, callers, config, spots);
    for key in root.leftovers() {
        root.key_place(key).refuse("an included file may contain only workflows");
    }
}

fn read_sections(root: &Section<'_>, config: &mut Config) {
    if let Some(server) = root.section("server") {
        config.host_spot = server.get("host").map(|entry| entry.place.spot());
        config.name_spot = server.get("name").map(|entry| entry.place.spot());
        server.later(&["base_path", "tls"]);
        config.server = ServerConfig::read(server);
    }
    config.store = root.section("store").map(StoreConfig::read_all).unwrap_or_default();
    if let Some(cluster) = root.section("cluster") {
        config.advertise_spot = cluster.get("advertise").map(|entry| entry.place.spot());
        config.certificate_spot = cluster.get("certificate").map(|entry| entry.place.spot());
        config.cluster = ClusterConfig::read_all(cluster, &config.store);
    }
    config.auth = root.section("auth").map(AuthConfig::read).unwrap_or_default();
    config.cors = root.section("cors").map(CorsConfig::read).unwrap_or_default();
    config.console = root.section("console").map(ConsoleConfig::read).unwrap_or_default();
    config.docs = root.section("docs").map(DocsConfig::read).unwrap_or_default();
    config.inbox = root.section("inbox").map(InboxConfig::read_all).unwrap_or_default();
    config.limits = root.section("limits").map(LimitsConfig::read_all).unwrap_or_default();
    config.logs = root.section("logs").map(LogsConfig::read).unwrap_or_default();
    config.metrics = root.section("metrics").map(MetricsConfig::read).unwrap_or_default();
    let retention = root.section("retention");
    let idempotency_ttl = config.limits.runtime.idempotency_ttl;
    config.retention = retention.map(|it| retention::read(it, idempotency_ttl)).unwrap_or_default();
    config.system = root.section("system").map(SystemConfig::read).unwrap_or_default();
    config.updates = root.section("updates").map(UpdatesConfig::read).unwrap_or_default();
    config.telemetry = root.section("telemetry").map(TelemetryConfig::read).unwrap_or_default();
}

fn read_models_and_agents(root: &Section<'_>, config: &mut Config) {
    for (id, section) in root.named_sections("models") {
        check_id(&id, &section.place);
        config.declared.models.insert(id.clone());
        if let Some(model) =
            ModelConfig::read(section, &mut config.references, &mut config.rule_calls)
        {
            config.models.insert(id, model);
        }
    }
    for problem in fallback_cycles(&config.models) {
        root.place.findings.report(problem);
    }
    for (name, section) in root.named_sections("mcp") {
        config.declared.servers.insert(name.clone());
        if let Some(server) = mcp::read(&name, section) {
            config.mcp.insert(name, server);
        }
    }
    for (id, section) in root.named_sections("agents") {
        check_id(&id, &section.place);
        config.declared.agents.insert(id.clone());
        if let Some(agent) = agents::read(&id, section, &mut config.references) {
            config.agents.insert(id, agent);
        }
    }
}

fn read_tools(root: &Section<'_>, config: &mut Config) {
    for (name, section) in root.named_sections("tools") {
        config.declared.tools.insert(name.clone());
        if let Some(tool) = tools::read(&name, section, &mut config.references) {
            config.tools.insert(name, tool);
        }
    }
}

fn read_workflows(
    root: &Section<'_>,
    callers: Callers,
    config: &mut Config,
    spots: &mut BTreeMap<String, Spot>,
) {
    for (id, section) in root.named_sections("workflows") {
        check_id(&id, &section.place);
        if id == BULK_WORKFLOW {
            section.place.refuse("is the workflow of bulk operations; choose another id");
        }
        let spot = section.place.spot();
        if let Some(first) = spots.get(&id) {
            let Spot { file, line, .. } = first;
            section.place.refuse(format!("is already defined in {file} at line {line}"));
            continue;
        }
        spots.insert(id.clone(), spot);
        config.declared.workflows.insert(id.clone());
        let ttl = config.limits.runtime.idempotency_ttl;
        let keep = section.get("retention");
        if let Some(keep) = keep.and_then(|entry| retention::read_of_workflow(&entry, ttl)) {
            config.retention.workflows.insert(id.clone(), keep);
        }
        let tests = section.sections("tests");
        let Config { references, arguments, needs, .. } = config;
        let read = Read { references, arguments, needs };
        if let Some(plan) = workflows::read(&id, section, callers, read) {
            config.tests.extend(workflow_tests::read(tests, &plan, &mut config.rule_calls));
            config.workflows.insert(id, plan);
        }
    }
}

fn check_id(id: &str, place: &Place<'_>) {
    if !is_definition_id(id) {
        place.refuse(
            "must be a letter or digit, then letters, digits, `.`, `_` or `-`, and not \
             `executions`",
        );
    }
}
