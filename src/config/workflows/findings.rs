//! What the author of a workflow cannot have meant, in the words of a configuration.

use greenroom_actors::domain::plan::{Callers, Finding, Misspelt, Plan, findings};

use crate::config::problem::{ConfigProblem, Spot};
use crate::nearest::nearest;

/// A finding at its place.
pub(super) fn problem(finding: Finding, spot: &Spot) -> ConfigProblem {
    let meant = suggestion(&finding);
    let Finding { message, is_error, .. } = finding;
    let problem = if is_error { spot.error(message) } else { spot.warning(message) };
    problem.meant(meant)
}

/// What was probably meant.
pub(crate) fn suggestion(finding: &Finding) -> Option<String> {
    let Misspelt { written, known } = finding.misspelt.as_ref()?;
    nearest(written, known.iter().map(String::as_str))
}

/// What is odd about a workflow that was built in Rust, before it is known whether the program
/// checks tokens.
pub(crate) fn warnings(plan: &Plan) -> Vec<ConfigProblem> {
    let odd =
        findings(&plan.definition, Callers::Named).into_iter().filter(|finding| !finding.is_error);
    odd.map(|finding| problem(finding.clone(), &spot(plan, &finding.place))).collect()
}

/// The place of something in a workflow that has no file.
pub(in crate::config) fn spot(plan: &Plan, place: &[String]) -> Spot {
    let Spot { file, line, column, .. } =
        Spot::nowhere(&format!("workflow {}", plan.definition.id));
    Spot { file, line, column, key: place.join(".") }
}
