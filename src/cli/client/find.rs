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
    let (newest, request_id) = page(api, &[]).await?;
    Err(unknown(&id, items(&newest, "executions")).of_request(request_id))
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

/// Returns the refusal of an id that no execution has.
fn unknown(id: &str, newest: &[Value]) -> Failure {
    let failure = Failure::new(Exit::NotFound, format!("Execution {id} not found"));
    match nearest(id, newest.iter().map(|it| text(it, "executionId"))) {
        Some(near) => failure.advise(format!("did you mean {}?", quoted(&near))),
        None => failure.advise("`greenroom executions list` shows them"),
    }
}
