//! Routes that Rust code adds to a configuration.

use std::path::{Path, PathBuf};

use super::{
    ConfigProblem, RouteConfig, RouteTarget, Spot, expected_at, exposed, files_at, path_problem,
    segment_problems, without_files,
};
use crate::config::Config;

/// Target of a route before it is checked.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// A workflow or an agent.
    Definition(RouteTarget),
    /// A file or a folder, relative to the working directory.
    Files(PathBuf),
}

impl Config {
    /// Checks a route of Rust code as the reader of `[[routes]]` does, and adds it.
    pub(crate) fn add_route(
        &mut self,
        path: String,
        destination: Destination,
        summary: Option<String>,
    ) -> Vec<ConfigProblem> {
        let spot = Spot::nowhere(&format!("route {path}"));
        let at =
            |key: &str, problem: &str| Spot { key: key.to_owned(), ..spot.clone() }.error(problem);
        let mut problems = Vec::new();
        if summary.as_deref() == Some("") {
            problems.push(at("summary", "must not be empty"));
        }
        let path_problem = path_problem(&path);
        problems.extend(path_problem.iter().map(|problem| at("path", problem)));
        let target = match destination {
            Destination::Definition(target) => Some(target),
            Destination::Files(place) => {
                if let Some(refusal) = without_files() {
                    problems.push(at("static", &refusal));
                    return problems;
                }
                problems.extend(self.exposed(&place).map(|problem| at("static", problem)));
                let missing = format!("there is no {} {place:?}", expected_at(&path));
                let target = files_at(place);
                problems.extend(target.is_none().then(|| at("static", &missing)));
                target
            }
        };
        let Some(target) = target else { return problems };
        if path_problem.is_none() {
            problems.extend(segment_problems(&path, &target).map(|problem| at("path", problem)));
        }
        if problems.is_empty() {
            let route = RouteConfig { path, target, summary, spot };
            self.routes.push(route.clone());
            self.coded_routes.push(route);
        }
        problems
    }

    /// Returns the routes of Rust code.
    pub(crate) fn coded_routes(&self) -> &[RouteConfig] {
        &self.coded_routes
    }

    fn exposed(&self, place: &Path) -> Option<&'static str> {
        let file = self.path.as_deref()?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        exposed(place, folder.unwrap_or_else(|| Path::new(".")), file)
    }
}
