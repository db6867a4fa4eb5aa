//! Functions of the client, which the model may call.

use std::sync::Arc;

use greenroom_actors::ports::model::ToolSpec;
use serde_json::{Value, json};

use super::parts::{object, required};
use crate::api::error::ApiError;

/// Maximum length of a name, that of OpenAI's API.
const NAME_CHARS_MAX: usize = 64;

/// Reads `tools` with `tool_choice`; refusals name the place.
pub fn tools_of(
    tools: Option<&Value>,
    choice: Option<&Value>,
    tools_max: usize,
) -> Result<Arc<[ToolSpec]>, ApiError> {
    let tools = match tools {
        None | Some(Value::Null) => return Ok(Arc::from([])),
        Some(Value::Array(tools)) if tools.len() > tools_max => {
            let what = format!("at most {tools_max} tools are accepted");
            return Err(ApiError::body("tools", what));
        }
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(ApiError::body("tools", "must be an array")),
    };
    let read = tools.iter().enumerate();
    let read = read.map(|(index, tool)| read_tool(&format!("tools[{index}]"), tool));
    let tools: Arc<[ToolSpec]> = read.collect::<Result<_, _>>()?;
    match choice {
        None | Some(Value::Null) => Ok(tools),
        Some(Value::String(word)) if word == "auto" => Ok(tools),
        Some(Value::String(word)) if word == "none" => Ok(Arc::from([])),
        Some(_) => Err(ApiError::unsupported("tool_choice", "must be \"auto\" or \"none\"")),
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

    fn names(tools: &Value, choice: &Value) -> Result<Vec<String>, String> {
        let read = tools_of(Some(tools), Some(choice), 2).map_err(|error| error.to_string())?;
        Ok(read.iter().map(|tool| tool.name.clone()).collect())
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
        let read = tools_of(Some(&tools), None, 2).unwrap();
        assert_eq!(read[0].parameters, json!({ "type": "object", "properties": {} }));
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
            (
                json!([function("a")]),
                json!("required"),
                "tool_choice is not supported: must be \"auto\" or \"none\"",
            ),
        ];
        for (tools, choice, text) in rows {
            assert_eq!(names(&tools, &choice), Err(text.to_owned()), "{tools}");
        }
    }
}
