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

/// Pieces of a text, made one by one as the stream is read: it ends after each word, and in JSON also
/// after each comma, since it has few spaces. The pieces together are the text.
#[derive(Debug)]
pub(super) struct Pieces {
    text: String,
    is_json: bool,
    /// Offset of the next piece.
    start: usize,
}

impl Pieces {
    pub(super) fn of(text: String, is_json: bool) -> Self {
        Self { text, is_json, start: 0 }
    }
}

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let rest = self.text.get(self.start..).filter(|rest| !rest.is_empty())?;
        let is_boundary = |c: char| c.is_whitespace() || (self.is_json && c == ',');
        // white space before the first word belongs to it
        let (mut has_word, mut after_word) = (false, false);
        let end = rest.char_indices().find(|(_, character)| {
            let is_boundary = is_boundary(*character);
            let ends = after_word && !is_boundary;
            has_word |= !is_boundary;
            after_word = has_word && is_boundary;
            ends
        });
        let piece = rest.get(..end.map_or(rest.len(), |(at, _)| at))?.to_owned();
        self.start += piece.len();
        Some(piece)
    }
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
            let pieces: Vec<_> = Pieces::of(text.to_owned(), is_json).collect();
            assert_eq!(pieces, expected, "{text:?}");
            assert_eq!(pieces.concat(), text);
        }
    }
}
