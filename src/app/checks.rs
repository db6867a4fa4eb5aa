//! Everything that keeps a configuration from being used, once the code beside it is known.

mod agent;

use std::collections::BTreeSet;

use super::{Registered, check};
use crate::config::{Config, ConfigProblem, Names, steps};

/// The names that Rust code adds.
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
        tools: of(registry.tools.keys()),
        workflows: of(registry.workflows.keys()),
    }
}

/// What is wrong with a configuration whose references have been checked, line by line.
pub(crate) fn problems(config: &Config, registered: &Registered) -> Vec<String> {
    let names = names(registered);
    let known = [&config.names(), &names];
    let agents = registered.registry.agents.values();
    let mut problems: Vec<_> = agents.flat_map(|agent| agent::agent(agent, known)).collect();
    let mut rest: Vec<ConfigProblem> = config.check_exposure(&names).err().into_iter().collect();
    let environment = |name: &str| std::env::var(name).ok();
    rest.extend(config.check_secrets(environment));
    let secrets = steps::secrets(registered.registry.workflows.values());
    rest.extend(secrets.filter_map(|secret| secret.check(&environment)));
    rest.extend(check(config, registered));
    problems.extend(rest.iter().map(ToString::to_string));
    problems
}
