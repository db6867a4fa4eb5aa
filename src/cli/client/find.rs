//! Finding the workflow of an execution.

use serde_json::Value;

use super::api::{Api, Call};
use super::exit::{Exit, Failure, quoted};
use super::follow::Located;
use super::refusal::request_id_of;
use super::text::{items, text};
use crate::nearest::nearest;

/// Executions in a page.
const PAGE_MAX: usize = 200;

/// Characters at the end of an id that may be misspelt.
const END_MAX: usize = 4;

/// Ids that a refusal names.
const NEAREST_MAX: usize = 3;

/// Finds an execution by its id, unless its workflow is given. Fails with the nearest id if there is
/// none.
pub(super) async fn locate(
    api: &Api,
    id: &str,
    workflow: Option<&String>,
) -> Result<Located, Failure> {
    let id = id.to_owned();
    if let Some(workflow) = workflow {
        return Ok(Located { workflow: workflow.clone(), id });
    }
    let mut cursor = String::new();
    loop {
        let (page, _) = page(api, &[("idPrefix", &id), ("cursor", &cursor)]).await?;
        if let Some(found) = found(&page, &id) {
            return Ok(Located { workflow: found.to_owned(), id });
        }
        let next = text(&page, "nextCursor");
        if next.is_empty() {
            break;
        }
        cursor = next.to_owned();
    }
    Err(unknown_of(api, &id).await?)
}

/// Reads what is near an id that no execution has, for its refusal.
async fn unknown_of(api: &Api, id: &str) -> Result<Failure, Failure> {
    for begin in begins(id) {
        let (page, request_id) = page(api, &[("idPrefix", begin)]).await?;
        let alike = items(&page, "executions");
        if !alike.is_empty() {
            let nearest = nearest_of(id, alike.iter().map(|it| text(it, "executionId")));
            return Ok(unknown(id, &nearest).of_request(request_id));
        }
    }
    let (newest, request_id) = page(api, &[]).await?;
    let newest = items(&newest, "executions").iter().map(|it| text(it, "executionId"));
    let near = nearest(id, newest);
    Ok(unknown(id, &Vec::from_iter(near.as_deref())).of_request(request_id))
}

/// Returns an execution that is there. Fails with the nearest id if there is none.
pub(super) async fn existing(
    api: &Api,
    id: &str,
    workflow: Option<&String>,
) -> Result<Located, Failure> {
    let at = locate(api, id, workflow).await?;
    if workflow.is_some() {
        at.state(api).await?;
    }
    Ok(at)
}

/// Returns a page of executions, and the id of the request.
async fn page(api: &Api, query: &[(&str, &str)]) -> Result<(Value, Option<String>), Failure> {
    let limit = PAGE_MAX.to_string();
    let mut query: Vec<_> = query.iter().copied().filter(|(_, value)| !value.is_empty()).collect();
    query.push(("limit", &limit));
    let mut reply = api.reply(Call::get(&["workflows", "executions"]).query(&query)).await?;
    Ok((reply.body["data"].take(), request_id_of(&reply.headers)))
}

/// Returns the workflow of the execution with exactly this id.
fn found<'a>(page: &'a Value, id: &str) -> Option<&'a str> {
    let execution = items(page, "executions").iter().find(|it| text(it, "executionId") == id)?;
    Some(text(execution, "workflowId"))
}

/// Returns the id and its begins, the longest first: what is left out of one may be misspelt.
fn begins(id: &str) -> impl Iterator<Item = &str> {
    let ends = id.char_indices().map(|(at, _)| at).chain([id.len()]).rev().take(END_MAX + 1);
    let is_telling = |at: &usize| *at > 0 && at * 2 >= id.len();
    ends.filter(is_telling).filter_map(|at| id.get(..at))
}

/// Returns the ids that differ least from one.
fn nearest_of<'a>(id: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<_> = known.collect();
    known.sort_by_cached_key(|known| strsim::levenshtein(id, known));
    known.truncate(NEAREST_MAX);
    known
}

/// Returns the refusal of an id that no execution has.
fn unknown(id: &str, nearest: &[&str]) -> Failure {
    let failure = Failure::new(Exit::NotFound, format!("Execution {id} not found"));
    let nearest: Vec<_> = nearest.iter().map(|id| quoted(id)).collect();
    match nearest.split_last() {
        None => failure.advise("`greenroom executions list` shows them"),
        Some((last, [])) => failure.advise(format!("did you mean {last}?")),
        Some((last, others)) => {
            failure.advise(format!("did you mean {} or {last}?", others.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_the_longest_common_begin_are_asked_for_first() {
        for (id, expected) in [
            ("t-0110", &["t-0110", "t-011", "t-01", "t-0"][..]),
            ("a", &["a"]),
            ("", &[]),
            ("grün-1", &["grün-1", "grün-", "grün", "grü"]),
        ] {
            assert_eq!(begins(id).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_refusal_names_the_nearest_ids() {
        let known = ["t-0200", "t-0111", "t-011", "t-0119", "t-0100"];
        let nearest = nearest_of("t-0110", known.into_iter());
        let refused = unknown("t-0110", &nearest).to_string();
        assert!(refused.contains("did you mean t-0111, t-011 or t-0119?"), "{refused}");
        assert!(unknown("x", &["a b"]).to_string().contains("did you mean 'a b'?"));
        assert!(unknown("x", &[]).to_string().contains("`greenroom executions list`"));
    }
}
