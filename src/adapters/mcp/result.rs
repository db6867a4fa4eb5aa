//! Results of calls as values of this server.

use greenroom_actors::agent::tool::ToolError;
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind, shortened};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// Longest text of a failure for models and callers.
const FAILURE_BYTES_MAX: usize = 4096;

/// Returns the result of a call: the structured content, or else the texts. What is no text is
/// described.
pub(super) fn value_of(result: CallToolResult) -> Result<Value, ToolError> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    if is_error == Some(true) {
        let text = joined(&content);
        let text = match structured_content {
            Some(content) if text.is_empty() => content.to_string(),
            _ => text,
        };
        let text = match text.as_str() {
            "" => "the tool failed without a reason",
            text => shortened(text, FAILURE_BYTES_MAX),
        };
        return Err(ToolError::Failed(AttemptFailure::new(ErrorKind::Tool, text)));
    }
    Ok(structured_content.unwrap_or_else(|| Value::from(joined(&content))))
}

fn joined(content: &[ContentBlock]) -> String {
    content.iter().map(text_of).collect::<Vec<_>>().join("\n")
}

fn text_of(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => described("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => described("audio", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
                described(&format!("resource {uri}"), kind, blob)
            }
            _ => "[resource of an unknown kind]".to_owned(),
        },
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Describes data in base64.
fn described(what: &str, kind: &str, data: &str) -> String {
    let bytes =
        data.trim_end_matches('=').len() / 4 * 3 + data.trim_end_matches('=').len() % 4 * 3 / 4;
    format!("[{what}: {kind}, {bytes} bytes]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(result: Value) -> Result<Value, String> {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        value_of(result).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn structured_content_takes_precedence_over_texts() {
        let text = json!({ "type": "text", "text": "a" });
        for (result, expected) in [
            (json!({ "content": [text], "structuredContent": { "n": 1 } }), json!({ "n": 1 })),
            (json!({ "content": [text, text] }), json!("a\na")),
            (json!({ "content": [] }), json!("")),
            (json!({ "content": [text], "structuredContent": null }), json!(null)),
        ] {
            assert_eq!(value(result.clone()), Ok(expected), "{result}");
        }
    }

    #[test]
    fn what_is_no_text_is_described() {
        for (block, expected) in [
            (
                json!({ "type": "image", "data": "YWJjZA==", "mimeType": "image/png" }),
                "[image: image/png, 4 bytes]",
            ),
            (
                json!({ "type": "audio", "data": "YWJj", "mimeType": "audio/wav" }),
                "[audio: audio/wav, 3 bytes]",
            ),
            (
                json!({ "type": "resource_link", "uri": "file:///a", "name": "a" }),
                "[resource a: file:///a]",
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "words" } }),
                "words",
            ),
            (
                json!({ "type": "resource", "resource": { "uri": "file:///a", "blob": "YQ==" } }),
                "[resource file:///a: application/octet-stream, 1 bytes]",
            ),
        ] {
            assert_eq!(value(json!({ "content": [block] })), Ok(json!(expected)));
        }
    }

    #[test]
    fn errors_are_failures_with_a_bounded_text() {
        let long = "é".repeat(FAILURE_BYTES_MAX);
        for (content, expected) in [
            (json!([{ "type": "text", "text": "no such file" }]), "no such file"),
            (json!([]), "the tool failed without a reason"),
            (json!([{ "type": "text", "text": long }]), &long[..FAILURE_BYTES_MAX]),
        ] {
            let result = json!({ "content": content, "isError": true });
            assert_eq!(value(result), Err(expected.to_owned()));
        }
        let result = json!({ "content": [], "structuredContent": { "why": 1 }, "isError": true });
        assert_eq!(value(result), Err(r#"{"why":1}"#.to_owned()));
    }
}
