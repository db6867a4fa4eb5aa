//! Parameters of requests.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::message::{Refusal, Request, shown};

/// Parameters of `tools/call`.
#[derive(Debug, PartialEq)]
pub struct CallParams {
    pub name: String,
    pub arguments: Map<String, Value>,
    /// State of the question that is answered.
    pub state: Option<String>,
    pub responses: Responses,
}

/// Answers of a person to questions, by their keys.
#[derive(Debug, Default, PartialEq)]
pub struct Responses(Map<String, Value>);

/// The answer of a person to a question.
#[derive(Debug, PartialEq)]
pub enum Response {
    Accepted(Value),
    /// It was declined, or closed.
    Declined,
}

/// Parameters of a tool that answers what an execution waits for.
#[derive(Debug, PartialEq)]
pub struct ResumeArguments {
    pub execution: String,
    pub ask: Option<String>,
    pub data: Value,
}

impl CallParams {
    /// Takes the parameters of a request.
    pub fn take(request: &mut Request) -> Result<Self, Refusal> {
        let name = text(request, "name")?;
        let name = name.ok_or_else(|| request.invalid("name is missing"))?;
        let arguments = object(request, "arguments")?.unwrap_or_default();
        let state = text(request, "requestState")?;
        let responses = Responses::take(request)?;
        Ok(Self { name, arguments, state, responses })
    }
}

impl Responses {
    /// Takes the answers of a request. Those to unknown questions are ignored, whatever they are.
    pub fn take(request: &mut Request) -> Result<Self, Refusal> {
        Ok(Self(object(request, "inputResponses")?.unwrap_or_default()))
    }

    /// Returns the answer with this key. The error says what is wrong with it.
    pub fn of(&self, key: &str) -> Result<Option<Response>, String> {
        let Some(response) = self.0.get(key) else { return Ok(None) };
        match read_response(response) {
            Some(response) => Ok(Some(response)),
            None => {
                Err(format!("inputResponses.{key} must have an action, and content if accepted"))
            }
        }
    }

    /// Returns the keys of all answers.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

fn read_response(response: &Value) -> Option<Response> {
    match response.get("action")?.as_str()? {
        "accept" => {
            let content = response.get("content").cloned().unwrap_or_else(|| json!({}));
            content.is_object().then_some(Response::Accepted(content))
        }
        "decline" | "cancel" => Some(Response::Declined),
        _ => None,
    }
}

impl ResumeArguments {
    /// Reads arguments. The error says what the model has to change.
    pub fn read(mut arguments: Map<String, Value>) -> Result<Self, String> {
        let execution = match arguments.shift_remove("executionId") {
            Some(Value::String(id)) => id,
            Some(_) => return Err(refused("executionId", "must be a string")),
            None => return Err(refused("executionId", "missing")),
        };
        let ask = match arguments.shift_remove("askId") {
            Some(Value::String(id)) => Some(id),
            Some(Value::Null) | None => None,
            Some(_) => return Err(refused("askId", "must be a string")),
        };
        let data = arguments.shift_remove("data").unwrap_or_default();
        match arguments.keys().next() {
            Some(key) => Err(refused(key, "unknown argument; known: executionId, askId, data")),
            None => Ok(Self { execution, ask, data }),
        }
    }
}

/// Reads the arguments of an agent as the body of a request to it.
pub fn agent_body(mut arguments: Map<String, Value>) -> Result<Value, String> {
    let prompt = match arguments.shift_remove("prompt") {
        Some(Value::String(prompt)) if !prompt.is_empty() => prompt,
        Some(Value::String(_)) => return Err(refused("prompt", "must not be empty")),
        Some(_) => return Err(refused("prompt", "must be a string")),
        None => return Err(refused("prompt", "missing")),
    };
    let conversation = match arguments.shift_remove("conversationId") {
        Some(id @ Value::String(_)) => json!({ "conversationId": id }),
        Some(Value::Null) | None => json!({}),
        Some(_) => return Err(refused("conversationId", "must be a string")),
    };
    match arguments.keys().next() {
        Some(key) => Err(refused(key, "unknown argument; known: prompt, conversationId")),
        None => Ok(json!({ "input": prompt, "options": conversation })),
    }
}

fn refused(path: &str, what: impl Display) -> String {
    format!("Invalid arguments: {}: {what}", shown(path))
}

/// Takes a parameter that is a text.
pub fn text(request: &mut Request, key: &str) -> Result<Option<String>, Refusal> {
    match request.params.shift_remove(key) {
        Some(Value::String(text)) => Ok(Some(text)),
        None => Ok(None),
        Some(_) => Err(request.invalid(format!("{key} must be a string"))),
    }
}

fn object(request: &mut Request, key: &str) -> Result<Option<Map<String, Value>>, Refusal> {
    match request.params.shift_remove(key) {
        Some(Value::Object(members)) => Ok(Some(members)),
        None => Ok(None),
        Some(_) => Err(request.invalid(format!("{key} must be an object"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Headers, Message};
    use super::*;

    fn request(params: &Value) -> Request {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        match Message::read(Headers::default(), body.to_string().as_bytes()) {
            Ok(Message::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn members(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => members,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn calls_have_a_name_and_arguments() {
        let read = |params: Value| CallParams::take(&mut request(&params));
        let call = read(json!({ "name": "t", "arguments": { "a": 1 } })).unwrap();
        assert_eq!((call.name.as_str(), &call.arguments["a"]), ("t", &json!(1)));
        assert!(read(json!({ "name": "t" })).unwrap().arguments.is_empty());
        let rows = [
            (json!({}), "name is missing"),
            (json!({ "name": 5 }), "name must be a string"),
            (json!({ "name": "t", "arguments": [] }), "arguments must be an object"),
            (json!({ "name": "t", "requestState": {} }), "requestState must be a string"),
            (json!({ "name": "t", "inputResponses": [] }), "inputResponses must be an object"),
        ];
        for (params, what) in rows {
            let refused = read(params).unwrap_err();
            assert_eq!((refused.status, refused.code), (200, -32602));
            assert_eq!(refused.message, format!("Invalid params: {what}"));
        }
    }

    #[test]
    fn people_accept_or_decline() {
        let responses = json!({ "inputResponses": {
            "a": { "action": "accept", "content": { "ok": true } }, "b": { "action": "accept" },
            "c": { "action": "decline" }, "d": { "action": "cancel" },
            "f": { "action": "shrug" }, "g": { "action": "accept", "content": 5 }, "h": 1 } });
        let responses = Responses::take(&mut request(&responses)).unwrap();
        let accepted = |content| Ok(Some(Response::Accepted(content)));
        assert_eq!(responses.of("a"), accepted(json!({ "ok": true })));
        assert_eq!(responses.of("b"), accepted(json!({})));
        assert_eq!(responses.of("c"), Ok(Some(Response::Declined)));
        assert_eq!(responses.of("d"), Ok(Some(Response::Declined)));
        assert_eq!(responses.of("e"), Ok(None));
        for wrong in ["f", "g", "h"] {
            let what =
                format!("inputResponses.{wrong} must have an action, and content if accepted");
            assert_eq!(responses.of(wrong), Err(what));
        }
        assert_eq!(responses.keys().count(), 7);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let resume = |arguments| ResumeArguments::read(members(arguments));
        let whole = resume(json!({ "executionId": "x", "askId": null, "data": 5 })).unwrap();
        assert_eq!(whole, ResumeArguments { execution: "x".to_owned(), ask: None, data: json!(5) });
        let agent = |arguments| agent_body(members(arguments));
        let body = json!({ "input": "hi", "options": { "conversationId": "c" } });
        assert_eq!(agent(json!({ "prompt": "hi", "conversationId": "c" })), Ok(body));
        let rows = [
            (resume(json!({})).unwrap_err(), "executionId: missing"),
            (resume(json!({ "executionId": 5 })).unwrap_err(), "executionId: must be a string"),
            (
                resume(json!({ "executionId": "x", "resumeData": 5 })).unwrap_err(),
                "resumeData: unknown argument; known: executionId, askId, data",
            ),
            (agent(json!({})).unwrap_err(), "prompt: missing"),
            (agent(json!({ "prompt": "" })).unwrap_err(), "prompt: must not be empty"),
            (agent(json!({ "prompt": ["a"] })).unwrap_err(), "prompt: must be a string"),
            (
                agent(json!({ "prompt": "a", "userId": "b" })).unwrap_err(),
                "userId: unknown argument; known: prompt, conversationId",
            ),
        ];
        for (text, what) in rows {
            assert_eq!(text, format!("Invalid arguments: {what}"));
        }
    }
}
