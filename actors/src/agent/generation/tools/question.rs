//! Checks the questions of tools before people are asked.

use serde_json::Value;

use crate::agent::ask::ToolAsk;
use crate::ports::workers::Lane;
use crate::shard::evaluation::Evaluations;

use super::call::bytes_within;

/// Maximum size of the schema of an answer, in bytes of JSON.
pub(super) const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Rejects a question whose schema is too large or does not compile: an answer to it could not be
/// checked. The error is for the model.
pub(super) async fn check(
    evaluations: &Evaluations,
    lane: Lane,
    question: &ToolAsk,
) -> Result<(), String> {
    let Some(schema) = question.schema.as_ref().filter(|schema| !is_text(schema)) else {
        return Ok(());
    };
    let size = bytes_within(schema, SCHEMA_BYTES_MAX);
    if size.is_none() {
        return Err(format!(
            "the question was not asked: schema: larger than {SCHEMA_BYTES_MAX} bytes"
        ));
    }
    match evaluations.compile(lane, schema.clone()).await {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(format!("the question was not asked: {error}")),
        None => Err("the question was not asked: the server is shutting down".to_owned()),
    }
}

/// Returns true for the schema of a free text, which `ask_user` gives by itself.
fn is_text(schema: &Value) -> bool {
    schema.as_object().is_some_and(|keys| keys.len() == 1 && schema["type"] == "string")
}
