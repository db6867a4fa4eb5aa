//! Lints of workflows as configuration problems.

use greenroom_actors::domain::plan::{Callers, Finding, Misspelt, Plan, lints};

use crate::config::problem::{ConfigProblem, Spot};
use crate::nearest::nearest;

/// Returns a finding as a problem at its place.
pub(super) fn problem(finding: Finding, spot: &Spot) -> ConfigProblem {
    let meant = suggestion(&finding);
    let Finding { message, is_error, .. } = finding;
    let problem = if is_error { spot.error(message) } else { spot.warning(message) };
    problem.meant(meant)
}

/// Returns the name that the author probably meant.
pub(crate) fn suggestion(finding: &Finding) -> Option<String> {
    let Misspelt { written, known } = finding.misspelt.as_ref()?;
    nearest(written, known.iter().map(String::as_str))
}

/// Returns the warnings about a workflow that was built in Rust, without those that depend on
/// whether the program checks tokens.
pub(crate) fn warnings(plan: &Plan) -> Vec<ConfigProblem> {
    let findings = lints(&plan.definition, Callers::Named).into_iter();
    let warnings = findings.filter(|finding| !finding.is_error);
    warnings.map(|finding| problem(finding.clone(), &spot(plan, &finding.place))).collect()
}

/// Returns the place of a key in a workflow that has no file.
pub(in crate::config) fn spot(plan: &Plan, place: &[String]) -> Spot {
    let Spot { file, line, column, .. } =
        Spot::nowhere(&format!("workflow {}", plan.definition.id));
    Spot { file, line, column, key: place.join(".") }
}
