//! The route of outcomes.

use greenroom_actors::runtime::OUTCOMES_COUNTED_MAX;

use super::components::Components;
use super::described::Described;
use super::parts;
use super::workflows::{not_found, time};
use crate::api::query::{PARTS_DEFAULT, PARTS_MAX};
use crate::api::wire::outcomes::OutcomesView;

pub(super) fn count_outcomes(components: &mut Components) -> Described {
    let data = components.answer::<OutcomesView<'_>>();
    Described::new("countOutcomes")
        .about(format!(
            "Counts executions that ended within a period, by default the last 24 hours, divided into \
             equal parts. Of each outcome only the last {OUTCOMES_COUNTED_MAX} are read; `countedFrom` \
             says from when on all were. Bulk operations are counted only with their `workflowId`. Retention deletes executions, and so their outcomes.",
        ))
        .with_query([
            parts::query("workflowId", "Executions of this workflow", parts::name()),
            parts::query("userId", "Executions of this user", parts::name()),
            parts::query(
                "from",
                "Begin of the period; by default a day before its end. A date means its beginning (UTC)",
                time(),
            ),
            parts::query(
                "to",
                "End of the period; by default now. A date means its end (UTC)",
                time(),
            ),
            parts::query(
                "parts",
                "Number of parts of the period",
                parts::number(1, PARTS_MAX.into(), PARTS_DEFAULT.into()),
            ),
        ])
        .answering(200, parts::json_answer("The outcomes", data))
        .refusing([not_found()])
        .using_runtime()
}
