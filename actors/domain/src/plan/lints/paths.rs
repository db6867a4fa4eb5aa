//! Lengths of paths, which stores have as keys of their indexes.

use crate::definition::StepDefinition;

use super::{Containers, Finding};

/// Maximum length of a path. Its letters are ASCII, and an index of PostgreSQL takes 2,704 bytes.
const PATH_CHARS_MAX: usize = 2000;

/// Characters around the names of a container and its block, with an index of any size.
const LANE_CHARS: usize = 24;

/// Reports a step whose path can be too long.
pub(super) fn of_step(step: &StepDefinition, containers: &Containers<'_>) -> Option<Finding> {
    let outer: usize = containers.iter().map(|(container, lane)| chars_of(container, *lane)).sum();
    let chars = outer + step.id.len();
    let message = format!(
        "the ids of this step and of the steps and blocks around it have {chars} characters with \
         the indexes between them; at most {PATH_CHARS_MAX} are possible"
    );
    let place = vec!["steps".to_owned(), step.id.clone(), "id".to_owned()];
    (chars > PATH_CHARS_MAX).then_some(Finding { place, message, is_error: true, misspelt: None })
}

fn chars_of(container: &StepDefinition, lane: usize) -> usize {
    let block = container.kind.blocks().get(lane).map_or(0, |block| block.name.len());
    container.id.len() + block + LANE_CHARS
}
