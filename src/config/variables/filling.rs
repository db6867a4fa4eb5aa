//! Variables in the names and addresses of a configuration.

use super::filled;
use crate::config::cluster::{ADVERTISED, is_host_and_port};
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::{Advertised, Config};

impl Config {
    /// Returns the problems of variables in names and addresses.
    pub(in crate::config) fn check_variables(
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
