//! Checks of a configuration together with the definitions of Rust code.

mod agent;

use std::collections::BTreeSet;

use greenroom_actors::domain::plan::Callee;

#[cfg(feature = "postgres")]
use super::cluster;
use super::{Registered, Variables, access, check};
use crate::config::tools::check_workflows;
use crate::config::workflows::{StepArguments, named};
use crate::config::{Assignment, Config, ConfigProblem, Names, Spot, programs, steps};

/// Returns the names that Rust code adds.
pub(crate) fn names(registered: &Registered) -> Names {
    fn of<'a>(names: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
        names.cloned().collect()
    }
    let Registered { registry, providers, .. } = registered;
    Names {
        agents: of(registry.agents.keys()),
        functions: of(registry.functions.keys()),
        models: of(registry.models.keys()),
        providers: providers.kinds().map(str::to_owned).collect(),
        servers: BTreeSet::new(),
        tools: of(registry.tools.keys()),
        workflows: of(registry.workflows.keys()),
    }
}

/// Returns the problems of a configuration whose own references have been checked, one per line.
/// `names` are those of Rust code, and of parts of it that are refused for reasons of their own.
pub(crate) fn problems(config: &Config, registered: &Registered, names: &Names) -> Vec<String> {
    let configured = config.names();
    let known = [&configured, names];
    let agents = registered.registry.agents.values();
    let mut problems: Vec<_> = agents.flat_map(|agent| agent::agent(agent, known)).collect();
    let mut rest: Vec<ConfigProblem> = config.check_exposure(names).err().into_iter().collect();
    let variables = Variables::of(config);
    let environment = |name: &str| variables.found(name);
    if registered.parts.store.is_some() && config.cluster.listen.is_some() {
        problems.push(
            "cluster.listen: servers share a database of PostgreSQL, and this program \
                       has a store of its own"
                .to_owned(),
        );
    }
    rest.extend(config.check_secrets(environment));
    let secrets = steps::secrets(registered.registry.workflows.values());
    rest.extend(secrets.filter_map(|secret| secret.check(&environment)));
    rest.extend(check(config, registered));
    rest.extend(misfits(config, registered));
    rest.extend(tools(config, registered, known));
    let routes = config.coded_routes().iter().filter_map(|route| route.reference());
    rest.extend(routes.filter_map(|it| it.check(known[0], known[1])));
    rest.extend(steps::without_http(config.workflows.values()));
    rest.extend(steps::without_http(registered.registry.workflows.values()));
    let plans = registered.registry.workflows.values();
    let references = plans.flat_map(|plan| named(plan));
    rest.extend(references.filter_map(|it| it.check(known[0], known[1])));
    problems.extend(rest.iter().map(ToString::to_string));
    problems
}

/// Returns warnings about definitions that probably do not work as intended, including those that
/// depend on this machine.
pub(crate) fn warnings(config: &Config, registered: &Registered) -> Vec<ConfigProblem> {
    let Registered { registry, .. } = registered;
    let mut warnings = config.check_programs();
    #[cfg(feature = "postgres")]
    warnings.extend(config.check_certificate(|files| cluster::tls_of(files).check()));
    let path = std::env::var_os("PATH");
    let built = programs(registry.workflows.values());
    warnings.extend(built.filter_map(|program| program.check(path.as_deref())));
    let agents = registry.agents.values().flat_map(|it| agent::remarks(it));
    warnings.extend(agents.filter(|problem| !problem.is_error()));
    warnings.extend(access::open_answers(config, registered));
    let plans = || registry.workflows.values();
    warnings.extend(plans().flat_map(|plan| steps::plain_secrets(plan)));
    let asked = plans().flat_map(|plan| steps::assignments(plan));
    let asked = asked.chain(approvals(config, registered));
    let names = names(registered);
    warnings.extend(asked.flat_map(|asked| asked.check(config, &names)));
    warnings
}

/// Returns who is asked before calls of tools of Rust code.
fn approvals(config: &Config, registered: &Registered) -> Vec<Assignment> {
    let coded = config.coded_tools().map(|(name, tool)| (name, tool.approval.as_ref()));
    let functions = registered.registry.tools.iter();
    let functions = functions.map(|(name, tool)| (name, tool.approval.as_deref()));
    let asked = coded.chain(functions).filter_map(|(name, approval)| {
        let spot = Spot::nowhere(&format!("tool {name}"));
        let to = approval?.assignees().iter().map(ToString::to_string);
        Some(Assignment::of(Spot { key: "approval.to".to_owned(), ..spot }, to))
    });
    asked.collect()
}

/// Returns the problems of tools with Rust code on either side.
fn tools(config: &Config, registered: &Registered, known: [&Names; 2]) -> Vec<ConfigProblem> {
    let coded = || config.coded_tools().map(|(_, tool)| tool);
    let missing = coded().filter_map(|it| it.reference()?.check(known[0], known[1]));
    let variables = Variables::of(config);
    let environment = |name: &str| variables.found(name);
    let secrets = coded().flat_map(steps::tool_secrets);
    let secrets = secrets.filter_map(|secret| secret.check(&environment));
    let workflows = &registered.registry.workflows;
    let inputs =
        check_workflows(config, |id| workflows.get(id).or_else(|| config.workflows.get(id)));
    missing.chain(secrets).chain(inputs).collect()
}

/// Returns mismatches between arguments of steps and schemas, where Rust code is on either side.
/// Those within the configuration were found when it was read.
fn misfits(config: &Config, registered: &Registered) -> Vec<ConfigProblem> {
    let registry = &registered.registry;
    let registered_schema = |callee, name: &str| match callee {
        Callee::Workflow => registry.workflows.get(name)?.input_schema.clone(),
        Callee::Tool => registry.tools.get(name).map(|tool| (*tool.arguments).clone()),
    };
    let any_schema = |callee, name: &str| {
        let is_registered = match callee {
            Callee::Workflow => registry.workflows.contains_key(name),
            Callee::Tool => registry.tools.contains_key(name),
        };
        if is_registered { registered_schema(callee, name) } else { config.schema_of(callee, name) }
    };
    let mut misfits = config.check_arguments(registered_schema);
    let arguments = registry.workflows.values().flat_map(|plan| StepArguments::of_plan(plan));
    misfits.extend(arguments.filter_map(|it| it.check(any_schema)));
    misfits
}
