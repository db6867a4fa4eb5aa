//! Body of a request for a completion.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::json::{Object, present};

/// Body of `POST /v1/chat/completions`. Members that are not here are ignored, as OpenAI's clients
/// send some that only concern OpenAI's service.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatCompletionRequest)]
pub struct CompletionBody {
    /// Id of an agent, or `workflow/` and the id of a workflow.
    pub model: String,
    #[schema(value_type = Vec<Value>)]
    pub messages: Value,
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    #[schema(value_type = Option<StreamOptions>)]
    pub stream_options: Option<Object<StreamOptions>>,
    #[serde(default)]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Former name of `max_completion_tokens`.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_tokens: Option<u64>,
    #[serde(default)]
    #[schema(minimum = 1)]
    pub max_completion_tokens: Option<u64>,
    #[serde(default)]
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f64>,
    #[serde(default)]
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f64>,
    #[serde(default)]
    pub seed: Option<i64>,
    /// A text or an array of texts.
    #[serde(default)]
    pub stop: Option<Value>,
    /// `json_object`, or `json_schema` with the schema of the answer.
    #[serde(default)]
    pub response_format: Option<Value>,
    /// Functions of the client, beside the tools of the agent.
    #[serde(default)]
    pub tools: Option<Value>,
    /// `auto`, `none`, `required`, or one of `tools` by its name; of the first turn.
    #[serde(default)]
    pub tool_choice: Option<Value>,
    /// `false`: at most one call of a tool per answer of the model, if its provider knows this.
    #[serde(default)]
    pub parallel_tool_calls: Option<bool>,
    /// Id of the user, if the server does not check tokens.
    #[serde(default)]
    pub user: Option<String>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub unsupported: Unsupported,
}

/// `stream_options` of a request for a completion.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ChatCompletionStreamOptions)]
pub struct StreamOptions {
    /// True if the stream ends with the usage.
    #[serde(default)]
    pub include_usage: Option<bool>,
}

/// Members that ask for what the server does not do.
#[derive(Debug, Default, Deserialize)]
pub struct Unsupported {
    #[serde(default)]
    n: Option<Value>,
    #[serde(default)]
    logprobs: Option<Value>,
    #[serde(default)]
    top_logprobs: Option<Value>,
    #[serde(default)]
    logit_bias: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    audio: Option<Value>,
    #[serde(default)]
    modalities: Option<Value>,
    #[serde(default)]
    functions: Option<Value>,
    #[serde(default)]
    function_call: Option<Value>,
    #[serde(default)]
    web_search_options: Option<Value>,
}

impl Unsupported {
    /// Refuses a member that asks for something. Values that ask for nothing are accepted: clients
    /// send defaults.
    pub fn check(&self) -> Result<(), ApiError> {
        let asks = |value: &Option<Value>, nothing: &[Value]| {
            value.as_ref().is_some_and(|value| !value.is_null() && !nothing.contains(value))
        };
        let none = || vec![Value::from(false), Value::from(0)];
        let empty = || vec![Value::Array(Vec::new()), Value::Object(serde_json::Map::new())];
        let text_only = || vec![Value::from(vec!["text"])];
        let rows = [
            ("n", &self.n, vec![Value::from(1)], "one answer is given"),
            ("logprobs", &self.logprobs, none(), "models do not return probabilities here"),
            ("top_logprobs", &self.top_logprobs, none(), "models do not return probabilities here"),
            ("logit_bias", &self.logit_bias, empty(), "models differ in their tokens"),
            ("audio", &self.audio, Vec::new(), "answers are text"),
            ("modalities", &self.modalities, text_only(), "answers are text"),
            ("functions", &self.functions, empty(), "send `tools`"),
            (
                "function_call",
                &self.function_call,
                vec!["auto".into(), "none".into()],
                "send `tools`",
            ),
            ("web_search_options", &self.web_search_options, Vec::new(), "give the agent a tool"),
        ];
        match rows.into_iter().find(|(_, value, nothing, _)| asks(value, nothing)) {
            Some((name, _, _, what)) => Err(ApiError::unsupported(name, what)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_does_not_do_is_refused_by_its_name() {
        let rows = [
            (json!({ "n": 1, "logprobs": false, "audio": null, "store": true }), None),
            (json!({ "modalities": ["text"], "functions": [], "logit_bias": {} }), None),
            (json!({ "n": 2 }), Some("n is not supported: one answer is given")),
            (
                json!({ "logprobs": true }),
                Some("logprobs is not supported: models do not return probabilities here"),
            ),
            (
                json!({ "top_logprobs": 5 }),
                Some("top_logprobs is not supported: models do not return probabilities here"),
            ),
            (
                json!({ "logit_bias": { "5": 1 } }),
                Some("logit_bias is not supported: models differ in their tokens"),
            ),
            (json!({ "audio": {} }), Some("audio is not supported: answers are text")),
            (
                json!({ "modalities": ["text", "audio"] }),
                Some("modalities is not supported: answers are text"),
            ),
            (json!({ "functions": [{}] }), Some("functions is not supported: send `tools`")),
            (
                json!({ "function_call": { "name": "f" } }),
                Some("function_call is not supported: send `tools`"),
            ),
            (
                json!({ "web_search_options": {} }),
                Some("web_search_options is not supported: give the agent a tool"),
            ),
        ];
        for (mut body, expected) in rows {
            (body["model"], body["messages"]) = (json!("m"), json!([]));
            let read: CompletionBody = serde_json::from_value(body.clone()).unwrap();
            let refused = read.unsupported.check().err().map(|error| error.to_string());
            assert_eq!(refused.as_deref(), expected, "{body}");
        }
    }
}
