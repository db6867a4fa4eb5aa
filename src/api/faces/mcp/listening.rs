//! `subscriptions/listen`: what a client wants to notice, and the notifications.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::answers::Members;
use super::message::{Refusal, Request};

/// Key of the id of the request, with which all of its notifications are tagged.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Notifications that a client asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listening {
    /// True for changes of the list of tools.
    pub tools: bool,
    /// Addresses of resources.
    pub resources: Vec<String>,
    /// Ids of tasks.
    pub tasks: Vec<String>,
}

impl Listening {
    /// Takes the parameters of a request. Notifications of other kinds are not supported, and left
    /// out.
    pub fn take(request: &mut Request, subscriptions_max: usize) -> Result<Self, Refusal> {
        let asked = match request.params.shift_remove("notifications") {
            Some(Value::Object(asked)) => asked,
            Some(_) => return Err(request.invalid("notifications must be an object")),
            None => return Err(request.invalid("notifications is missing")),
        };
        let tools = match asked.get("toolsListChanged") {
            None => false,
            Some(Value::Bool(wanted)) => *wanted,
            Some(_) => {
                return Err(request.invalid("notifications.toolsListChanged must be a boolean"));
            }
        };
        let resources = texts(request, &asked, "resourceSubscriptions")?;
        let tasks = texts(request, &asked, "taskIds")?;
        if resources.len() + tasks.len() > subscriptions_max {
            return Err(request.invalid(too_many(subscriptions_max)));
        }
        Ok(Self { tools, resources, tasks })
    }

    /// Returns the first notification: what the client will notice.
    pub fn acknowledged(&self, id: &Value) -> Value {
        let mut agreed = Map::new();
        if self.tools {
            agreed.insert("toolsListChanged".to_owned(), json!(true));
        }
        for (key, names) in [("resourceSubscriptions", &self.resources), ("taskIds", &self.tasks)] {
            if !names.is_empty() {
                agreed.insert(key.to_owned(), json!(names));
            }
        }
        let params = Map::from_iter([("notifications".to_owned(), Value::Object(agreed))]);
        notification(id, "notifications/subscriptions/acknowledged", params)
    }
}

fn too_many(subscriptions_max: usize) -> String {
    format!("notifications: more than {subscriptions_max} resources and tasks; open another stream")
}

/// Takes a list of texts, without repetitions.
fn texts(request: &Request, asked: &Map<String, Value>, key: &str) -> Result<Vec<String>, Refusal> {
    let wrong = || request.invalid(format!("notifications.{key} must be an array of strings"));
    let Some(items) = asked.get(key) else { return Ok(Vec::new()) };
    let (mut texts, mut known) = (Vec::new(), HashSet::new());
    for item in items.as_array().ok_or_else(wrong)? {
        let text = item.as_str().ok_or_else(wrong)?;
        if known.insert(text) {
            texts.push(text.to_owned());
        }
    }
    Ok(texts)
}

/// Returns the notification that the list of tools has changed.
pub fn tools_changed(id: &Value) -> Value {
    notification(id, "notifications/tools/list_changed", Map::new())
}

/// Returns the notification that a resource has changed.
pub fn resource_updated(id: &Value, uri: &str) -> Value {
    let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
    notification(id, "notifications/resources/updated", params)
}

/// Returns the notification of what `tasks/get` answers now.
pub fn task_changed(id: &Value, task: Members) -> Value {
    notification(id, "notifications/tasks", task)
}

/// Returns the result of the request: the server ends the subscription.
pub fn listened(request: &Request) -> Members {
    Map::from_iter([("_meta".to_owned(), json!({ SUBSCRIPTION: request.id }))])
}

fn notification(id: &Value, method: &str, mut params: Map<String, Value>) -> Value {
    params.insert("_meta".to_owned(), json!({ SUBSCRIPTION: id }));
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::super::message::{Headers, Message};
    use super::*;

    fn read(params: &Value, max: usize) -> Result<Listening, String> {
        let method = "subscriptions/listen";
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        match Message::read(Headers::default(), body.to_string().as_bytes()) {
            Ok(Message::Request(mut request)) => {
                Listening::take(&mut request, max).map_err(|refusal| refusal.message)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn clients_say_what_they_want_to_notice() {
        let all = json!({ "notifications": {
            "toolsListChanged": true, "promptsListChanged": true,
            "resourceSubscriptions": ["a", "b", "a"], "taskIds": ["t"] } });
        let expected = Listening {
            tools: true,
            resources: vec!["a".to_owned(), "b".to_owned()],
            tasks: vec!["t".to_owned()],
        };
        assert_eq!(read(&all, 3), Ok(expected.clone()));
        assert_eq!(read(&json!({ "notifications": {} }), 0), Ok(Listening::default()));
        let acknowledged = expected.acknowledged(&json!(7));
        assert_eq!(acknowledged["params"]["_meta"], json!({ SUBSCRIPTION: 7 }));
        let agreed = json!({
            "toolsListChanged": true, "resourceSubscriptions": ["a", "b"], "taskIds": ["t"] });
        assert_eq!(acknowledged["params"]["notifications"], agreed);
        let nothing = Listening::default().acknowledged(&json!("x"));
        assert_eq!(nothing["params"]["notifications"], json!({}));
        let rows = [
            (json!({}), "notifications is missing"),
            (json!({ "notifications": [] }), "notifications must be an object"),
            (
                json!({ "notifications": { "toolsListChanged": 1 } }),
                "notifications.toolsListChanged must be a boolean",
            ),
            (
                json!({ "notifications": { "taskIds": "t" } }),
                "notifications.taskIds must be an array of strings",
            ),
            (
                json!({ "notifications": { "resourceSubscriptions": [5] } }),
                "notifications.resourceSubscriptions must be an array of strings",
            ),
            (all, "notifications: more than 2 resources and tasks; open another stream"),
        ];
        for (params, what) in rows {
            assert_eq!(read(&params, 2), Err(format!("Invalid params: {what}")));
        }
    }
}
