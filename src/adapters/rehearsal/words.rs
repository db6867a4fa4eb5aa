//! Words: the rehearsal model's tokens and the pieces of its streams.

use greenroom_actors::ports::model::{ModelMessage, Usage};
use serde_json::Value;

use super::rules::Said;

/// Counts the words of all messages, tool results included, and of what is said.
pub(super) fn usage(messages: &[ModelMessage], said: &Said) -> Usage {
    let prompt_tokens = messages.iter().map(|message| words_of(&message.content)).sum();
    let call_words: u64 = said
        .tool_calls
        .iter()
        .map(|call| count(&call.tool_name) + count(&call.input.to_string()))
        .sum();
    let completion_tokens = count(&said.text) + call_words;
    Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        ..Usage::default()
    }
}

/// The text of a message's content: as it stands, or that of its text parts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> =
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Cuts a text after each word, and JSON after each comma too, since it has few spaces. The
/// pieces together are the text.
pub(super) fn pieces(text: &str, is_json: bool) -> Vec<&str> {
    let is_boundary = |c: char| c.is_whitespace() || (is_json && c == ',');
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut after_boundary = false;
    for (at, character) in text.char_indices() {
        let boundary = is_boundary(character);
        if after_boundary && !boundary {
            pieces.push(&text[start..at]);
            start = at;
        }
        // white space before the first word belongs to it
        after_boundary = boundary && (after_boundary || at > start);
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

fn words_of(content: &Value) -> u64 {
    match content {
        Value::String(text) => count(text),
        Value::Array(parts) => parts.iter().map(words_of_part).sum(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            count(&other.to_string())
        }
    }
}

fn words_of_part(part: &Value) -> u64 {
    let text = part.get("text").and_then(Value::as_str).map_or(0, count);
    let output = match part.get("output") {
        None => 0,
        Some(Value::String(text)) => count(text),
        Some(output) => count(&output.to_string()),
    };
    text + output
}

fn count(text: &str) -> u64 {
    text.split_whitespace().map(|_| 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_words_and_together_the_text() {
        let cases: [(&str, bool, &[&str]); 7] = [
            ("", false, &[]),
            ("one", false, &["one"]),
            ("one two  three", false, &["one ", "two  ", "three"]),
            (" one two ", false, &[" one ", "two "]),
            ("a,b c", false, &["a,b ", "c"]),
            (r#"{"a":1,"b":[2,3]}"#, true, &[r#"{"a":1,"#, r#""b":[2,"#, "3]}"]),
            ("\n", false, &["\n"]),
        ];
        for (text, is_json, expected) in cases {
            assert_eq!(pieces(text, is_json), expected, "{text:?}");
            assert_eq!(pieces(text, is_json).concat(), text);
        }
    }
}
