//! Refusals of a server, as failures that say what to do next.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::exit::{Exit, Failure, quoted};
use super::settings::TOKEN;
use super::text::text;
use crate::api::error::ErrorCode;

/// An answer of the server.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn is_refusal(&self) -> bool {
        !(200..300).contains(&self.status)
    }

    /// Returns a header of the answer.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Returns the id by which the log of the server names a request.
pub(super) fn request_id_of(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("x-request-id")?.to_str().ok()?.to_owned())
}

/// Returns a refusal as a failure.
pub(super) fn refusal_of(reply: &Reply, has_token: bool) -> Failure {
    let code = reply.header("x-error-code").unwrap_or_default();
    let failure = Failure::new(exit_of(reply.status, code), text(&reply.body, "error"));
    let nearest = text(&reply.body["data"], "didYouMean");
    let failure = if nearest.is_empty() {
        advice_of(code, reply, has_token).into_iter().fold(failure, Failure::advise)
    } else {
        failure.advise(format!("did you mean {}?", quoted(nearest)))
    };
    failure.transient(reply.status == 503).of_request(request_id_of(&reply.headers))
}

fn exit_of(status: u16, code: &str) -> Exit {
    match status {
        401 | 403 => Exit::Auth,
        // the execution is there, and does not wait
        404 if code == "not_suspended" => Exit::Failed,
        404 | 410 => Exit::NotFound,
        400 if code.ends_with("_invalid") => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// Returns what to do about a refusal: with commands where there are some, else as the table of
/// errors says.
fn advice_of(code: &str, reply: &Reply, has_token: bool) -> Option<String> {
    let execution = reply.header("x-execution-id").map(quoted).unwrap_or_default();
    Some(match code {
        "auth_required" if !has_token => format!(
            "set {TOKEN}, or add a profile: greenroom profile add NAME --server URL --token -"
        ),
        "workflow_not_found" => "`greenroom workflows list` shows them".to_owned(),
        "agent_not_found" => "`greenroom agents list` shows them".to_owned(),
        "tool_not_found" => "`greenroom tools list` shows them".to_owned(),
        "trace_not_found" => "`greenroom traces list` shows them".to_owned(),
        "ask_not_found" => "`greenroom inbox list --state all` shows them".to_owned(),
        "execution_not_found" => "`greenroom executions list` shows them".to_owned(),
        "input_invalid" => "`greenroom workflows show ID -o json` has the schema".to_owned(),
        "answer_invalid" => "`greenroom inbox show ID` has the schema".to_owned(),
        "tool_input_invalid" => "`greenroom tools list -o json` has the parameters".to_owned(),
        "step_ambiguous" => "name one with --step or --suspension".to_owned(),
        "step_asks" => "`greenroom inbox list` shows what its agent asks".to_owned(),
        "execution_failed" if !execution.is_empty() => {
            format!("`greenroom executions why {execution}` has the reason")
        }
        _ => ErrorCode::ALL.iter().find(|it| it.as_str() == code)?.cure().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(status: u16, code: &'static str, data: &Value) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert("x-error-code", code.parse().unwrap());
        headers.insert("x-request-id", "r-1".parse().unwrap());
        headers.insert("x-execution-id", "e 1".parse().unwrap());
        let body = json!({ "success": false, "error": "No", "data": data });
        Reply { status, headers, body }
    }

    #[test]
    fn every_refusal_has_an_exit_code_and_an_advice() {
        let nearest = json!({ "didYouMean": "noop3" });
        let rows = [
            (404, "workflow_not_found", &nearest, Exit::NotFound, "did you mean noop3?"),
            (404, "workflow_not_found", &Value::Null, Exit::NotFound, "`greenroom workflows list`"),
            (404, "not_suspended", &Value::Null, Exit::Failed, "Check its state"),
            (401, "auth_required", &Value::Null, Exit::Auth, "set GREENROOM_TOKEN"),
            (403, "role_missing", &Value::Null, Exit::Auth, "The text names the roles"),
            (400, "input_invalid", &Value::Null, Exit::Usage, "greenroom workflows show"),
            (400, "execution_not_running", &Value::Null, Exit::Failed, "Check its state"),
            (500, "execution_failed", &Value::Null, Exit::Failed, "executions why 'e 1'"),
            (410, "link_expired", &Value::Null, Exit::NotFound, "Ask for another link"),
            (503, "busy", &Value::Null, Exit::Failed, "Try again at a lower rate"),
        ];
        for (status, code, data, exit, advice) in rows {
            let failure = refusal_of(&reply(status, code, data), false);
            assert_eq!(failure.exit, exit, "{code}");
            let shown = failure.to_string();
            assert!(shown.starts_with("greenroom: No\n  "), "{shown}");
            assert!(shown.contains(advice), "{shown}");
            assert!(shown.ends_with("\n  request r-1"), "{shown}");
        }
        for code in ErrorCode::ALL {
            let reply = reply(code.status(), code.as_str(), &Value::Null);
            assert!(refusal_of(&reply, true).to_string().lines().count() > 2, "{code}");
        }
    }
}
