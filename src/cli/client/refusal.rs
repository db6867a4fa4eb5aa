//! Refusals of a server, as failures that say what to do next.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::exit::{Exit, Failure, quoted};
use super::text::text;
use crate::api::error::ErrorCode;

/// An answer of the server.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    /// Parts of the path of its request.
    pub(super) path: Vec<String>,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn is_refusal(&self) -> bool {
        !(200..300).contains(&self.status)
    }

    /// Returns true for the refusal of a route that the server does not have.
    pub(super) fn is_of_route(&self) -> bool {
        matches!(self.header("x-error-code"), Some("not_found" | "method_not_allowed"))
    }

    /// Puts the ids of the request into an advice.
    fn name_ids(&self, advice: &str) -> String {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let (workflow, execution, ask) = match *path {
            ["workflows", "executions", ..] => (None, None, None),
            ["workflows", workflow, "executions", execution, ..] => {
                (Some(workflow), Some(execution), None)
            }
            ["workflows", workflow, ..] => (Some(workflow), None, None),
            ["inbox", ask, ..] => (None, None, Some(ask)),
            _ => (None, None, None),
        };
        let execution = self.header("x-execution-id").or(execution);
        let ids = [("{workflow}", workflow), ("{execution}", execution), ("{ask}", ask)];
        ids.into_iter().fold(advice.to_owned(), |advice, (place, id)| {
            advice.replace(place, &id.map_or_else(|| "ID".to_owned(), quoted))
        })
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
        let advice = advice_of(code, has_token).map(|advice| reply.name_ids(advice));
        advice.into_iter().fold(failure, Failure::advise)
    } else {
        failure.advise(format!("did you mean {}?", quoted(nearest)))
    };
    let failure = if code.is_empty() { failure } else { failure.of_refusal(reply.status, code) };
    failure.transient(reply.status == 503).of_request(request_id_of(&reply.headers))
}

/// Codes of a step or an option that does not fit the execution; nothing was changed.
const NAMED_WRONGLY: [&str; 4] =
    ["step_ambiguous", "step_does_not_suspend", "step_not_found", "step_not_replayable"];

fn exit_of(status: u16, code: &str) -> Exit {
    match status {
        401 | 403 => Exit::Auth,
        // the execution is there, and does not wait
        404 if code == "not_suspended" => Exit::Failed,
        404 | 410 => Exit::NotFound,
        400 if code.ends_with("_invalid") || NAMED_WRONGLY.contains(&code) => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// Returns what to do about a refusal: with commands where there are some, else as the table of
/// errors says.
fn advice_of(code: &str, has_token: bool) -> Option<&'static str> {
    Some(match code {
        "auth_required" if !has_token => {
            "set GREENROOM_TOKEN, or add a profile: greenroom profile add NAME --server URL --token -"
        }
        "workflow_not_found" => "`greenroom workflows list` shows them",
        "agent_not_found" => "`greenroom agents list` shows them",
        "tool_not_found" => "`greenroom tools list` shows them",
        "trace_not_found" => "`greenroom traces list` shows them",
        "ask_not_found" => "`greenroom inbox list --state all` shows them",
        "execution_not_found" => "`greenroom executions list` shows them",
        "input_invalid" => "`greenroom workflows show {workflow} -o json` has the schema",
        "answer_invalid" => "`greenroom inbox show {ask}` has the schema",
        "tool_input_invalid" => "`greenroom tools list -o json` has the parameters",
        "step_ambiguous" => "name one with --step or --suspension",
        "step_asks" => "`greenroom inbox list` shows what its agent asks",
        _ => match option_for(code) {
            Some(advice) => advice,
            None => ErrorCode::ALL.iter().find(|it| it.as_str() == code)?.cure(),
        },
    })
}

/// Returns what to do about codes whose cure in the table of errors is a part of a request.
fn option_for(code: &str) -> Option<&'static str> {
    Some(match code {
        "not_found" | "method_not_allowed" => {
            "the server has no such route: compare its version with `greenroom --version`"
        }
        "auth_required" => "the token was not accepted as one; see GREENROOM_TOKEN and the profile",
        "mcp_tool_changed" => {
            "`greenroom tools servers -o json` has the hash of the definition that it has now"
        }
        "mcp_server_not_found" => "`greenroom config show` has the servers of a configuration",
        "upgrade_required" => "proxies on the way must forward WebSockets",
        "json_invalid" | "body_invalid" | "request_invalid" => "the text says what is wrong",
        "media_type_unsupported" | "encoding_unsupported" => "see proxies on the way",
        "execution_exists" => {
            "choose another --execution-id, or none; to repeat a command safely, use \
             --idempotency-key"
        }
        "execution_compensates" => {
            "it ends by itself, unless a compensation failed, which waits for a person: \
             `greenroom executions why {execution}` names the ask"
        }
        "execution_failed" => "`greenroom executions why {execution}` has the reason",
        "execution_not_running" | "not_suspended" | "ask_expired" | "ask_withdrawn" => {
            "`greenroom executions why {execution}` shows its state; nothing was changed"
        }
        "step_not_found" | "step_not_suspended" => {
            "`greenroom executions show {execution}` has its steps, and \
             `greenroom executions why {execution}` those that wait"
        }
        "suspension_passed" => "`greenroom executions why {execution}` shows what waits now",
        "step_not_replayable" => "name one of the steps in the text with --step",
        "definition_differs" => "name a --step before the difference, or replay without --current",
        "step_does_not_suspend" => "leave --data out",
        "resume_data_invalid" => "`greenroom executions why {execution} -o json` has the schema",
        "idempotency_key_reused" => "use another --idempotency-key for another command",
        "ask_claimed" => {
            "wait for the user in the text, or pass over the claim with --force, if your role may"
        }
        "ask_ambiguous" => "answer each by its id: `greenroom inbox list` shows them",
        "ask_changed" => "`greenroom inbox show {ask}` shows it as it is now",
        "not_assigned" => "`greenroom inbox show {ask}` says who is asked",
        "generation_not_found" | "generation_failed" | "generation_exists" => {
            "the history of the agent has its generations"
        }
        "conversation_not_found" | "conversation_exists" => "name another --conversation",
        "agent_required" => "name one of the agents in the text",
        "draining" => "try again; with --idempotency-key it takes effect once",
        "execution_moved" | "store_unavailable" => {
            "`greenroom executions list` shows whether it was carried out; with --idempotency-key a \
             repeated command takes effect once"
        }
        _ => return None,
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
        let path = ["workflows", "w 1", "execute"].map(str::to_owned).into();
        Reply { status, headers, path, body }
    }

    #[test]
    fn every_refusal_has_an_exit_code_and_an_advice() {
        let nearest = json!({ "didYouMean": "noop3" });
        let rows = [
            (404, "workflow_not_found", &nearest, Exit::NotFound, "did you mean noop3?"),
            (404, "workflow_not_found", &Value::Null, Exit::NotFound, "`greenroom workflows list`"),
            (
                404,
                "not_suspended",
                &Value::Null,
                Exit::Failed,
                "executions why 'e 1'` shows its state",
            ),
            (400, "step_not_replayable", &Value::Null, Exit::Usage, "with --step"),
            (401, "auth_required", &Value::Null, Exit::Auth, "set GREENROOM_TOKEN"),
            (403, "role_missing", &Value::Null, Exit::Auth, "The text names the roles"),
            (400, "input_invalid", &Value::Null, Exit::Usage, "greenroom workflows show 'w 1' -o"),
            (400, "execution_not_running", &Value::Null, Exit::Failed, "shows its state"),
            (500, "execution_failed", &Value::Null, Exit::Failed, "executions why 'e 1'"),
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
            let shown = refusal_of(&reply, true).to_string();
            assert!(shown.lines().count() > 2, "{code}");
            // no command makes links or asks for updates
            if !shown.contains("/link") && !shown.contains("/updates") {
                let of_http = ["options.", "Key`", "GET /", "POST /", "x-", "ETag", "Bearer"];
                let found = of_http.iter().find(|part| shown.contains(**part));
                assert_eq!(found, None, "{code}: {shown}");
            }
        }
    }

    #[test]
    fn ids_of_an_advice_are_those_of_the_request() {
        let advice = "{workflow} {execution} {ask}";
        for (path, is_about, expected) in [
            (&["workflows", "w", "executions", "e", "resume"][..], None, "w e ID"),
            (&["workflows", "w", "execute"], Some("e 1"), "w 'e 1' ID"),
            (&["workflows", "executions", "bulk"], None, "ID ID ID"),
            (&["inbox", "ask_1", "answer"], Some("e"), "ID e ask_1"),
        ] {
            let mut reply = reply(400, "body_invalid", &Value::Null);
            reply.path = path.iter().map(|part| (*part).to_owned()).collect();
            reply.headers.remove("x-execution-id");
            if let Some(id) = is_about {
                reply.headers.insert("x-execution-id", id.parse().unwrap());
            }
            assert_eq!(reply.name_ids(advice), expected);
        }
    }
}
