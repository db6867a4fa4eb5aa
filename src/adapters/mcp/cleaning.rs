//! Removal of the secrets of a connection from what its server sends.

use greenroom_actors::agent::tool::ToolError;
use serde_json::Value;

use super::elicit::Question;
use super::link::Link;

impl Link {
    /// Removes the secrets of the connection from the outcome of a call.
    pub(super) fn cleaned(&self, outcome: Result<Value, ToolError>) -> Result<Value, ToolError> {
        if !self.has_secrets() {
            return outcome;
        }
        let clean = |text: &str| self.without_secrets(text.to_owned());
        match outcome {
            Ok(mut value) => {
                clean_value(&mut value, &clean);
                Ok(value)
            }
            Err(ToolError::Failed(mut failure)) => {
                failure.message = clean(&failure.message);
                Err(ToolError::Failed(failure))
            }
            Err(other) => Err(other),
        }
    }
}

impl Link {
    /// Removes the secrets of the connection from a question that people see.
    pub(super) fn cleaned_question(&self, question: &Question) -> Question {
        let mut question = question.clone();
        if self.has_secrets() {
            clean_question(&mut question, &|text: &str| self.without_secrets(text.to_owned()));
        }
        question
    }
}

fn clean_question(question: &mut Question, clean: &impl Fn(&str) -> String) {
    match question {
        Question::Form { message, schema } => {
            *message = clean(message);
            clean_value(schema, clean);
        }
        Question::Page { message, url } => {
            *message = clean(message);
            *url = clean(url);
        }
    }
}

/// Cleans all texts of a value, names of members included. A number that is a secret becomes a text.
fn clean_value(value: &mut Value, clean: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = clean(text),
        Value::Number(number) => {
            let text = number.to_string();
            let cleaned = clean(&text);
            if cleaned != text {
                *value = Value::String(cleaned);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean_value(item, clean)),
        Value::Object(members) => {
            for (name, mut member) in std::mem::take(members) {
                clean_value(&mut member, clean);
                members.insert(clean(&name), member);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_removed_from_texts_names_and_numbers() {
        let clean = |text: &str| text.replace("10482093", "[secret]");
        let mut value = json!({
            "account": 10_482_093, "10482093": true, "text": ["say \"10482093\"", 7], "none": null,
        });
        clean_value(&mut value, &clean);
        let expected = json!({
            "account": "[secret]", "[secret]": true, "text": ["say \"[secret]\"", 7], "none": null,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn secrets_are_removed_from_questions() {
        let clean = |text: &str| text.replace("k3y", "[secret]");
        let form = |word: &str| Question::Form {
            message: format!("Use {word}?"),
            schema: json!({ "properties": { "a": { "title": word } } }),
        };
        let page = |word: &str| Question::Page {
            message: format!("Use {word}?"),
            url: format!("https://a.example/?key={word}"),
        };
        for (mut question, expected) in
            [(form("k3y"), form("[secret]")), (page("k3y"), page("[secret]"))]
        {
            clean_question(&mut question, &clean);
            assert_eq!(question, expected);
        }
    }
}
