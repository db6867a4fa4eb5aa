//! Questions of an execution that waits, and the commands that answer them.

use serde_json::Value;

use super::api::Call;
use super::exit::{Exit, Failure, quoted};
use super::follow::Located;
use super::session::Session;
use super::text::{cell, compact, items, shortened, text};

/// Steps whose questions are shown; `why` shows all of them.
const SHOWN_MAX: usize = 3;

/// Most characters of a payload or a schema.
const VALUE_CHARS_MAX: usize = 500;

/// Returns the failure of a command whose execution waits, which says how to continue it.
pub(super) async fn waiting(session: &Session, at: &Located, state: &Value) -> Failure {
    // without it, the state still says how to resume
    let why = session.api.data(Call::get(&at.path("why"))).await.unwrap_or_default();
    describe(at, state, &why)
}

fn describe(at: &Located, state: &Value, why: &Value) -> Failure {
    let id = quoted(&at.id);
    let suspensions = items(state, "suspensions");
    let first = suspensions.first().unwrap_or(&Value::Null);
    let reason = text(first, "reason");
    let failure =
        Failure::new(Exit::Suspended, format!("{} {} waits: {reason}", at.workflow, at.id));
    if first["pause"] == true {
        return failure.advise(format!("continue it: greenroom executions resume {id}"));
    }
    let waits: Vec<_> = items(why, "waitsFor").iter().filter(|it| is_question(it)).collect();
    let failure = if waits.is_empty() {
        failure.advise(format!("answer: greenroom executions resume {id} --data JSON"))
    } else {
        let shown = waits.iter().take(SHOWN_MAX);
        shown.fold(failure, |failure, wait| question(failure, wait, &id, waits.len() > 1))
    };
    let failure = match waits.len() {
        0..=SHOWN_MAX => failure,
        count => failure.advise(format!("{count} steps wait: greenroom executions why {id}")),
    };
    failure.advise(at.back())
}

/// Returns true for what a person can answer.
fn is_question(wait: &Value) -> bool {
    !items(wait, "asks").is_empty() || text(wait, "kind") == "resume"
}

/// Adds the question of a step: what it shows, what it takes, and how to answer.
fn question(failure: Failure, wait: &Value, id: &str, is_one_of_many: bool) -> Failure {
    let step = text(wait, "path");
    let mut failure = failure;
    if is_one_of_many {
        failure = failure.advise(format!("{step} {}", text(wait, "message")));
    }
    let schema = &wait["resumeSchema"];
    for (what, value) in [("shows", &wait["payload"]), ("takes", schema)] {
        if !value.is_null() {
            let value = compact(value);
            failure = failure.advise(format!("it {what} {}", shortened(&value, VALUE_CHARS_MAX)));
        }
    }
    let asks = items(wait, "asks");
    if asks.is_empty() {
        let step = if is_one_of_many { format!(" --step {}", quoted(step)) } else { String::new() };
        return failure
            .advise(format!("answer: greenroom executions resume {id}{step} --data JSON"));
    }
    asks.iter().fold(failure, |failure, ask| {
        let how = how_to_answer(text(ask, "kind"), schema);
        let failure = match asked(ask) {
            asked if asked.is_empty() => failure,
            asked => failure.advise(format!("it asks {asked}")),
        };
        let ask = quoted(text(ask, "askId"));
        failure.advise(format!("answer: greenroom inbox answer {ask} {how}"))
    })
}

/// Returns who is asked; empty if anyone is.
pub(super) fn asked(ask: &Value) -> String {
    items(ask, "to").iter().map(cell).collect::<Vec<_>>().join(", ")
}

/// Returns the option of `inbox answer` that fits an ask.
pub(super) fn how_to_answer(kind: &str, schema: &Value) -> &'static str {
    let approved = &schema["properties"]["approved"]["type"];
    let needs_more = items(schema, "required").iter().any(|key| key != "approved");
    if kind == "compensation" {
        r#"--data '{"action":"retry"}', or '{"action":"skip"}'"#
    } else if kind == "approval" || approved == "boolean" && !needs_more {
        "--approve, or --refuse"
    } else {
        "--data JSON"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_execution_waits_for_says_how_to_continue_it() {
        let at = Located { workflow: "w".to_owned(), id: "e 1".to_owned() };
        let approved = json!({ "required": ["approved"], "properties": { "approved": { "type": "boolean" } } });
        let wait = |path: &str, schema: &Value| {
            json!({
                "kind": "resume", "path": path, "payload": { "n": 1 }, "resumeSchema": schema,
                "message": "waits for a resume: yes?", "asks": [{ "askId": "ask_1", "kind": "step", "to": ["role:lead"] }],
            })
        };
        let bare = json!({ "kind": "resume", "path": "a/b" });
        let (pause, step) =
            (json!({ "reason": "later", "pause": true }), json!({ "reason": "yes?" }));
        for (suspension, waits, says) in [
            (&pause, json!([]), "continue it: greenroom executions resume 'e 1'"),
            (&step, json!([]), "answer: greenroom executions resume 'e 1' --data JSON"),
            (&step, json!([wait("a", &approved)]), "it shows {\"n\":1}\n  it takes {\"required\""),
            (&step, json!([wait("a", &approved)]), "inbox answer ask_1 --approve, or --refuse\n"),
            (&step, json!([wait("a", &approved)]), "it asks role:lead\n"),
            (&step, json!([wait("a", &json!(true))]), "inbox answer ask_1 --data JSON\n"),
            (&step, json!([bare, bare]), "resume 'e 1' --step a/b --data JSON"),
            (
                &step,
                json!([bare, bare, bare, bare]),
                "4 steps wait: greenroom executions why 'e 1'",
            ),
        ] {
            let state = json!({ "suspensions": [suspension] });
            let failure = describe(&at, &state, &json!({ "waitsFor": waits }));
            assert_eq!(failure.exit, Exit::Suspended);
            assert!(failure.to_string().contains(says), "{failure}");
        }
    }
}
