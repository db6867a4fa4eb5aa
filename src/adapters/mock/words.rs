//! Words: the tokens of the mock model, and the pieces of its streams.

use greenroom_actors::domain::message::{Message, Part, ToolOutcome};
use greenroom_actors::ports::model::Usage;
use serde_json::Value;

use super::rules::Script;

/// Counts the words of all messages, tool results included, and of the answer.
pub(super) fn usage(messages: &[Message], answer: &Script) -> Usage {
    let prompt_tokens = messages.iter().flat_map(|message| &message.parts).map(words_of).sum();
    let call_words: u64 = answer
        .tool_calls
        .iter()
        .map(|call| count(&call.tool_name) + count(&call.input.to_string()))
        .sum();
    let completion_tokens = count(&answer.text) + call_words;
    Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        ..Usage::default()
    }
}

/// Splits a text after each word, and JSON also after each comma, since it has few spaces. The
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

fn words_of(part: &Part) -> u64 {
    match part {
        Part::Text { text } | Part::Reasoning { text } => count(text),
        Part::ToolResult(result) => match &result.outcome {
            ToolOutcome::Output(Value::String(text))
            | ToolOutcome::Error(text)
            | ToolOutcome::Denied(text) => count(text),
            ToolOutcome::Output(output) => count(&output.to_string()),
        },
        Part::File { .. }
        | Part::ToolCall(_)
        | Part::ToolApproval(_)
        | Part::ProviderState { .. } => 0,
    }
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
