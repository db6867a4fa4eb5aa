//! Ids of executions where those of asks are expected.

use serde_json::Value;

use crate::cli::client::api::Call;
use crate::cli::client::exit::{Failure, quoted};
use crate::cli::client::find::existing;
use crate::cli::client::session::Session;
use crate::cli::client::text::{items, text};
use crate::cli::client::wait::how_to_answer;

/// Returns the result of a command of `inbox`. If its id is that of an execution, the refusal names
/// the asks of that.
pub(super) async fn known(
    session: &Session,
    id: &str,
    command: &str,
    result: Result<Value, Failure>,
) -> Result<Value, Failure> {
    let failure = match result {
        Err(failure) if failure.is_refused_as("ask_not_found") => failure,
        result => return result,
    };
    // a caller who may not see the execution gets the answer of any other id
    let Ok(at) = existing(&session.api, id, None).await else { return Err(failure) };
    let why = session.api.data(Call::get(&at.path("why"))).await.unwrap_or_default();
    Err(with_asks(failure, (id, command), &why))
}

fn with_asks(failure: Failure, (id, command): (&str, &str), why: &Value) -> Failure {
    let id = quoted(id);
    let waits = items(why, "waitsFor");
    if waits.iter().all(|wait| items(wait, "asks").is_empty()) {
        let advice = "is an execution without open asks: greenroom executions why";
        return failure.advise(format!("{id} {advice} {id}"));
    }
    let mut failure = failure.advise(format!("{id} is an execution, which asks:"));
    for wait in waits {
        for ask in items(wait, "asks") {
            let how = match command {
                "answer" => format!(" {}", how_to_answer(text(ask, "kind"), &wait["resumeSchema"])),
                _ => String::new(),
            };
            let (ask, reason) = (quoted(text(ask, "askId")), text(ask, "reason"));
            failure = failure.advise(format!("{reason}: greenroom inbox {command} {ask}{how}"));
        }
    }
    failure
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_execution_is_named_with_its_asks() {
        let refused = Failure::usage("Ask e not found");
        let ask = json!({ "askId": "ask_1", "kind": "step", "reason": "buy?" });
        let schema = json!({ "properties": { "approved": { "type": "boolean" } } });
        let asks = json!({ "waitsFor": [{ "asks": [ask], "resumeSchema": schema }] });
        for (why, command, says) in [
            (&json!({ "waitsFor": [{}] }), "show", "without open asks: greenroom executions why e"),
            (&Value::Null, "show", "without open asks: greenroom executions why e"),
            (&asks, "claim", "is an execution, which asks:\n  buy?: greenroom inbox claim ask_1"),
            (&asks, "answer", "greenroom inbox answer ask_1 --approve, or --refuse"),
        ] {
            let shown = with_asks(refused.clone(), ("e", command), why).to_string();
            assert!(shown.ends_with(says), "{shown}");
        }
    }
}
