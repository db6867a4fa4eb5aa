//! Environment variables in the values that differ between servers with one configuration file:
//! `${NAME}`.

use greenroom_actors::domain::call::is_variable;

use super::cluster::{ADVERTISED, is_host_and_port};
use super::entry::Entry;
use super::problem::{ConfigProblem, Spot};
use super::secret::value_of;
use super::{Advertised, Config};

const OPENING: &str = "${";

/// Reads a text that is not empty and in which variables may be named.
pub(crate) fn text_with_variables(entry: &Entry<'_>) -> Option<String> {
    let written = entry.text_with_secrets("a string")?;
    let shown = filled(&written, |_| Some("1".to_owned()));
    match shown {
        Ok(text) if text.contains(OPENING) => {
            entry.refuse("has `${` without the name of a variable, as in `${POD_IP}`")
        }
        Ok(text) if text.contains("secret:") => {
            entry.refuse("is no secret; write `${NAME}` for an environment variable")
        }
        Ok(text) if text.is_empty() => entry.refuse("must not be empty"),
        Ok(_) => Some(written),
        Err(problem) => entry.refuse(problem),
    }
}

/// Replaces each `${NAME}` by the value of that variable; the error is about the first one that has
/// none.
pub(crate) fn filled(
    text: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once(OPENING) {
        let reference = from.split_once('}').filter(|(name, _)| is_variable(name));
        let Some((name, after)) = reference else { break };
        let value = value_of(name, &environment)?;
        filled.push_str(before);
        filled.push_str(value.trim());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

impl Config {
    /// Returns the problems of variables in names and addresses.
    pub(super) fn check_variables(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Vec<ConfigProblem> {
        let name = self.filled_name(&environment).err();
        name.into_iter().chain(self.filled_address(&environment).err()).collect()
    }

    /// Replaces variables in names and addresses. Called once, before the server starts.
    pub(crate) fn fill_variables(
        &mut self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(), ConfigProblem> {
        self.server.name = self.filled_name(&environment)?;
        self.cluster.advertise = self.filled_address(&environment)?;
        Ok(())
    }

    fn filled_name(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, ConfigProblem> {
        let name = self.server.name.as_deref().map(|name| filled(name, environment));
        name.transpose().map_err(|problem| placed(&self.name_spot, "server.name", problem))
    }

    fn filled_address(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Advertised>, ConfigProblem> {
        let problem = |problem| placed(&self.advertise_spot, "cluster.advertise", problem);
        let Some(Advertised(written)) = &self.cluster.advertise else { return Ok(None) };
        let address = filled(written, environment).map_err(problem)?;
        if !is_host_and_port(&address) {
            return Err(problem(format!("{ADVERTISED}, not {address:?}")));
        }
        Ok(Some(Advertised(address)))
    }
}

fn placed(spot: &Option<Spot>, key: &str, problem: String) -> ConfigProblem {
    spot.clone().unwrap_or_else(|| Spot::nowhere(key)).error(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_nothing_else() {
        let environment = |name: &str| match name {
            "IP" => Some("10.0.0.5".to_owned()),
            "PORT" => Some(" 3142\n".to_owned()),
            "NONE" => Some("  ".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("node-a", Ok("node-a")),
            ("${IP}", Ok("10.0.0.5")),
            ("${IP}:${PORT}", Ok("10.0.0.5:3142")),
            ("[${IP}]:1", Ok("[10.0.0.5]:1")),
            ("$IP {IP}", Ok("$IP {IP}")),
            ("${UNSET}:1", Err("the environment variable UNSET is not set")),
            ("${NONE}:1", Err("the environment variable NONE is empty")),
        ] {
            let found = filled(text, environment);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }
}
