//! The filters that are measured.

use greenroom_actors::domain::time::Timestamp;

const DAY_MS: u64 = 24 * 3_600_000;

/// Query of a list.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) query: String,
    /// The query with words in place of values that differ from run to run.
    pub(crate) name: String,
    /// Share of the asks that match, where it matters; else empty.
    pub(crate) note: &'static str,
}

/// Returns all filters. The caller is `ada` with the role `staff`.
pub(crate) fn all(now: Timestamp) -> Vec<Filter> {
    let tomorrow = now.plus_ms(DAY_MS).to_iso();
    let rows = [
        ("", ""),
        ("limit=200", ""),
        ("kind=approval", ""),
        ("workflowId=workflow-7", ""),
        ("agentId=agent-2", ""),
        ("userId=user-7", ""),
        ("to=me", ""),
        ("claimed=true", ""),
        ("due=TOMORROW", ""),
        ("due=TOMORROW&to=role:staff", ""),
        ("to=role:staff", "one ask of 30"),
        ("to=role:nobody", "no ask"),
        ("state=closed", ""),
        ("state=closed&workflowId=workflow-7", "one ask of 33"),
        ("state=closed&agentId=agent-2", "one ask of 13"),
        ("state=closed&userId=user-7", "one ask of 1,000"),
        ("state=closed&kind=input", "one ask of 10"),
        ("state=closed&to=role:staff", "one ask of 30"),
        ("state=closed&to=role:nobody", "no ask"),
        ("state=all", ""),
    ];
    let filter = |(name, note): (&str, &'static str)| Filter {
        query: name.replace("TOMORROW", &tomorrow),
        name: name.to_owned(),
        note,
    };
    rows.map(filter).into()
}
