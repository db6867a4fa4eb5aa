//! Outcomes and questions of calls, without the secrets of their connection.

use greenroom_actors::agent::tool::ToolError;
use greenroom_actors::domain::failure::shortened;
use serde_json::Value;

use crate::adapters::mcp::connection::link::Link;
use crate::adapters::mcp::question::{MESSAGE_BYTES_MAX, Question};
use crate::adapters::mcp::secrets::clean_value;
use crate::adapters::tools::secrets::Known;

/// Longest text of a failure for models and callers.
const FAILURE_BYTES_MAX: usize = 4096;

impl Link {
    /// Removes the secrets of the connection from the outcome of a call, and cuts the text of a failure
    /// after that, so that no part of a secret stays.
    pub(crate) fn cleaned(&self, outcome: Result<Value, ToolError>) -> Result<Value, ToolError> {
        let clean = |text: &str| self.without_secrets(text.to_owned());
        match outcome {
            Ok(value) if !self.has_secrets() => Ok(value),
            Ok(mut value) => {
                clean_value(&mut value, &clean);
                Ok(value)
            }
            Err(ToolError::Failed(mut failure)) => {
                let message = self.cleaned_error(std::mem::take(&mut failure.message));
                failure.message = shortened(&message, FAILURE_BYTES_MAX).to_owned();
                Err(ToolError::Failed(failure))
            }
            Err(other) => Err(other),
        }
    }

    /// Removes the secrets of the connection from a question that people see.
    pub(crate) fn cleaned_question(&self, question: &Question) -> Question {
        let mut question = question.clone();
        if self.has_secrets() {
            clean_question(&mut question, &self.secrets());
        }
        question
    }
}

fn clean_question(question: &mut Question, secrets: &Known) {
    let clean = |text: &str| secrets.removed_from(text.to_owned());
    // it may have been cut where a secret is
    let clean_message = |message: &mut String| {
        let text = std::mem::take(message);
        *message = match text.len() + char::MAX_LEN_UTF8 > MESSAGE_BYTES_MAX {
            true => secrets.removed_from_begin(text),
            false => secrets.removed_from(text),
        };
    };
    match question {
        Question::Form { message, schema } => {
            clean_message(message);
            if let Some(Value::String(description)) = schema.get_mut("description") {
                clean_message(description);
            }
            clean_value(schema, &clean);
        }
        Question::Page { message, url } => {
            clean_message(message);
            *url = clean(url);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_removed_from_questions() {
        let secrets = Known::of(["k3y-of-it"]);
        let form = |word: &str| Question::Form {
            message: format!("Use {word}?"),
            schema: json!({ "properties": { "a": { "title": word } }, "description": word }),
        };
        let page = |word: &str| Question::Page {
            message: format!("Use {word}?"),
            url: format!("https://a.example/?key={word}"),
        };
        let long = |end: &str| Question::Page {
            message: format!("{}{end}", "x".repeat(MESSAGE_BYTES_MAX - 5)),
            url: "https://a.example/".to_owned(),
        };
        for (mut question, expected) in [
            (form("k3y-of-it"), form("[secret]")),
            (page("k3y-of-it"), page("[secret]")),
            (page("k3y-o"), page("k3y-o")),
            (long("k3y-o"), long("")),
        ] {
            clean_question(&mut question, &secrets);
            assert_eq!(question, expected);
        }
    }
}
