//! Functions of the client, which the model may call.

use std::sync::Arc;

use greenroom_actors::ports::model::{ToolChoice, ToolSpec};
use serde_json::{Value, json};

use super::parts::{object, required};
use crate::api::error::ApiError;

/// Maximum length of a name, that of OpenAI's API.
const NAME_CHARS_MAX: usize = 64;

/// Functions of a client, and which of them have to be called.
pub(super) type ChosenTools = (Arc<[ToolSpec]>, ToolChoice);

/// Reads `tools` with `tool_choice`; refusals name the place.
pub fn tools_of(
    tools: Option<&Value>,
    choice: Option<&Value>,
    tools_max: usize,
) -> Result<ChosenTools, ApiError> {
    let tools = match tools {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(tools)) if tools.len() > tools_max => {
            let what = format!("at most {tools_max} tools are accepted");
            return Err(ApiError::body("tools", what));
        }
        Some(Value::Array(tools)) => tools.as_slice(),
        Some(_) => return Err(ApiError::body("tools", "must be an array")),
    };
    let read = tools.iter().enumerate();
    let read = read.map(|(index, tool)| read_tool(&format!("tools[{index}]"), tool));
    let tools: Arc<[ToolSpec]> = read.collect::<Result<_, _>>()?;
    let choice = match choice {
        None | Some(Value::Null) => return Ok((tools, ToolChoice::Auto)),
        Some(choice) => choice,
    };
    let is_function = choice.get("type").is_some_and(|kind| kind == "function");
    let name = choice.pointer("/function/name").and_then(Value::as_str).filter(|_| is_function);
    match (choice.as_str(), name) {
        (Some("auto"), _) => Ok((tools, ToolChoice::Auto)),
        (Some("none"), _) => Ok((Arc::from([]), ToolChoice::Auto)),
        (Some("required"), _) if tools.is_empty() => {
            Err(ApiError::body("tool_choice", "\"required\" needs `tools`"))
        }
        (Some("required"), _) => Ok((tools, ToolChoice::Required)),
        (None, Some(name)) if tools.iter().any(|tool| tool.name == name) => {
            Ok((tools, ToolChoice::Tool(name.into())))
        }
        (None, Some(_)) => {
            Err(ApiError::body("tool_choice.function.name", "must be the name of one of `tools`"))
        }
        _ => {
            let what = "must be \"auto\", \"none\", \"required\", or one of `tools` as \
                        {\"type\": \"function\", \"function\": {\"name\": …}}";
            Err(ApiError::unsupported("tool_choice", what))
        }
    }
}

fn read_tool(place: &str, tool: &Value) -> Result<ToolSpec, ApiError> {
    let tool = object(place, tool)?;
    let kind = required(place, tool, "type")?;
    if kind != "function" {
        return Err(ApiError::unsupported(format!("{place}.type"), "must be \"function\""));
    }
    let place = format!("{place}.function");
    let function = object(&place, tool.get("function").unwrap_or(&Value::Null))?;
    let name = required(&place, function, "name")?;
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.len() > NAME_CHARS_MAX || !name.bytes().all(is_fit) {
        let what = format!("must be 1 to {NAME_CHARS_MAX} of the characters A-Z a-z 0-9 _ -");
        return Err(ApiError::body(format!("{place}.name"), what));
    }
    let description = match function.get("description") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text,
        Some(_) => return Err(ApiError::body(format!("{place}.description"), "must be a string")),
    };
    let parameters = match function.get("parameters") {
        None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
        Some(schema @ Value::Object(_)) => schema.clone(),
        Some(_) => return Err(ApiError::body(format!("{place}.parameters"), "must be an object")),
    };
    Ok(ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tools: &Value, choice: &Value) -> Result<(Vec<String>, ToolChoice), String> {
        let read = tools_of(Some(tools), Some(choice), 2).map_err(|error| error.to_string());
        let (tools, choice) = read?;
        Ok((tools.iter().map(|tool| tool.name.clone()).collect(), choice))
    }

    fn names(tools: &Value, choice: &Value) -> Result<Vec<String>, String> {
        read(tools, choice).map(|(names, _)| names)
    }

    fn function(name: &str) -> Value {
        json!({ "type": "function", "function": { "name": name, "strict": true } })
    }

    #[test]
    fn tools_are_read_unless_the_choice_is_none() {
        let tools = json!([function("map"), function("a-b_C9")]);
        let both = Ok(vec!["map".to_owned(), "a-b_C9".to_owned()]);
        for choice in [json!(null), json!("auto")] {
            assert_eq!(names(&tools, &choice), both, "{choice}");
        }
        assert_eq!(names(&tools, &json!("none")), Ok(Vec::new()));
        assert_eq!(names(&json!(null), &json!(null)), Ok(Vec::new()));
        let (read, _) = tools_of(Some(&tools), None, 2).unwrap();
        assert_eq!(read[0].parameters, json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn a_choice_demands_calls() {
        let tools = json!([function("map"), function("add")]);
        let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
        let unsupported = "tool_choice is not supported: must be \"auto\", \"none\", \"required\", or \
                           one of `tools` as {\"type\": \"function\", \"function\": {\"name\": …}}";
        for (tools, choice, expected) in [
            (&tools, json!("auto"), Ok(ToolChoice::Auto)),
            (&tools, json!("required"), Ok(ToolChoice::Required)),
            (&tools, named("add"), Ok(ToolChoice::Tool("add".into()))),
            (
                &tools,
                named("sub"),
                Err("Invalid request body: tool_choice.function.name: must be the name of one of \
                     `tools`"),
            ),
            (
                &json!([]),
                json!("required"),
                Err("Invalid request body: tool_choice: \"required\" needs `tools`"),
            ),
            (&json!(null), json!(7), Err(unsupported)),
            (&tools, json!({ "type": "allowed_tools" }), Err(unsupported)),
        ] {
            let read = read(tools, &choice).map(|(_, choice)| choice);
            assert_eq!(read, expected.map_err(str::to_owned), "{choice}");
        }
    }

    #[test]
    fn wrong_tools_are_refused_with_their_place() {
        let with = |key: &str, value: Value| {
            let mut tool = function("map");
            tool["function"][key] = value;
            json!([tool])
        };
        let none = json!(null);
        let rows = [
            (json!({}), none.clone(), "Invalid request body: tools: must be an array"),
            (
                json!([function("a"), function("b"), function("c")]),
                none.clone(),
                "Invalid request body: tools: at most 2 tools are accepted",
            ),
            (json!([1]), none.clone(), "Invalid request body: tools[0]: must be an object"),
            (
                json!([{ "type": "custom" }]),
                none.clone(),
                "tools[0].type is not supported: must be \"function\"",
            ),
            (
                json!([{ "type": "function" }]),
                none.clone(),
                "Invalid request body: tools[0].function: must be an object",
            ),
            (
                with("name", json!("a b")),
                none.clone(),
                "Invalid request body: tools[0].function.name: must be 1 to 64 of the characters \
                 A-Z a-z 0-9 _ -",
            ),
            (
                with("name", json!("n".repeat(65))),
                none.clone(),
                "Invalid request body: tools[0].function.name: must be 1 to 64 of the characters \
                 A-Z a-z 0-9 _ -",
            ),
            (
                with("parameters", json!([])),
                none.clone(),
                "Invalid request body: tools[0].function.parameters: must be an object",
            ),
            (
                with("description", json!(1)),
                none,
                "Invalid request body: tools[0].function.description: must be a string",
            ),
        ];
        for (tools, choice, text) in rows {
            assert_eq!(names(&tools, &choice), Err(text.to_owned()), "{tools}");
        }
    }
}
