//! Missing programs of steps and tools.
//!
//! They are warnings, not errors: a configuration is also checked on machines where it does not
//! run, and a program may be installed later.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use greenroom_actors::domain::plan::{Call, Plan};

use super::problem::{ConfigProblem, Spot};
use super::steps::{calls, place_in};
use super::workflows::spot_in;

/// A program that is run by name.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    name: Arc<str>,
    /// True if `cwd` is set: a relative path then starts there.
    has_folder: bool,
    spot: Spot,
}

impl Program {
    pub(super) fn new(name: Arc<str>, has_folder: bool, spot: Spot) -> Self {
        Self { name, has_folder, spot }
    }

    /// Returns a warning if the program cannot be run. `path` is the value of `PATH`.
    pub(crate) fn check(&self, path: Option<&OsStr>) -> Option<ConfigProblem> {
        let name = Path::new(&*self.name);
        let is_path = self.name.contains('/');
        if is_path && self.has_folder && name.is_relative() {
            return None;
        }
        let places: Vec<PathBuf> = match is_path {
            true => vec![name.to_owned()],
            false => path
                .map(std::env::split_paths)
                .into_iter()
                .flatten()
                .map(|it| it.join(name))
                .collect(),
        };
        if places.iter().any(|place| is_executable(place)) {
            return None;
        }
        let name = &self.name;
        let message = match (places.iter().find(|place| place.is_file()), is_path) {
            (Some(place), _) => format!("{} is not executable", place.display()),
            (None, true) => format!("program {name} does not exist"),
            (None, false) => format!("program {name} is not in PATH"),
        };
        Some(self.spot.warning(message))
    }
}

/// Returns the programs of the steps of a workflow. `spot` maps keys of the workflow to places.
pub(super) fn programs_at(plan: &Plan, spot: impl Fn(&[String]) -> Spot) -> Vec<Program> {
    let programs = calls(&plan.steps).into_iter().filter_map(|(step, call)| match call {
        Call::Command(call) => {
            let place = place_in(step, &["command", "argv", "0"]);
            Some(Program::new(Arc::clone(&call.program), call.cwd.is_some(), spot(&place)))
        }
        Call::Function(_) | Call::Http(_) | Call::Tool { .. } => None,
    });
    programs.collect()
}

/// Returns the programs of workflows that were built in Rust.
pub(crate) fn programs<'a>(
    plans: impl IntoIterator<Item = &'a Arc<Plan>>,
) -> impl Iterator<Item = Program> {
    plans.into_iter().flat_map(|plan| programs_at(plan, |keys| spot_in(plan, keys)))
}

fn is_executable(place: &Path) -> bool {
    place.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn programs_are_looked_up_like_at_their_start() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("tool", 0o755), ("notes", 0o644)] {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        let at = |name: &str| folder.path().join(name).display().to_string();
        let path = std::env::join_paths([Path::new("/nowhere"), folder.path()]).unwrap();
        let notes = format!("{} is not executable", at("notes"));
        for (name, has_folder, expected) in [
            ("tool".to_owned(), false, None),
            (at("tool"), false, None),
            ("gone".to_owned(), false, Some("program gone is not in PATH")),
            ("/usr/bin/nope".to_owned(), true, Some("program /usr/bin/nope does not exist")),
            ("./nope".to_owned(), false, Some("program ./nope does not exist")),
            ("./nope".to_owned(), true, None),
            (at("notes"), false, Some(notes.as_str())),
            ("notes".to_owned(), false, Some(notes.as_str())),
        ] {
            let program = Program::new(name.as_str().into(), has_folder, Spot::nowhere("c.toml"));
            let message = program.check(Some(&path)).map(|problem| problem.message);
            assert_eq!(message.as_deref(), expected, "{name}");
        }
    }
}
