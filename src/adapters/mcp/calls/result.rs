//! Results of calls as values of this server.

use greenroom_actors::agent::tool::{Content, ToolError};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// Returns the result of a call: the structured content, or else its parts if there are pictures, sounds or
/// files among them, or else its texts.
pub(crate) fn value_of(result: CallToolResult) -> Result<Value, ToolError> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let result = Content::of_blocks(content.iter().map(block));
    let text = || Content::described(&result).unwrap_or_default();
    if is_error == Some(true) {
        let text = match structured_content {
            Some(structured) if content.is_empty() => structured.to_string(),
            _ => text(),
        };
        let text = match text.as_str() {
            "" => "the tool failed without a reason",
            text => text,
        };
        return Err(ToolError::Failed(AttemptFailure::new(ErrorKind::Tool, text)));
    }
    Ok(match structured_content {
        Some(structured) => structured,
        None if content.iter().any(has_data) => result,
        None => Value::from(text()),
    })
}

/// Returns true for what texts cannot say.
fn has_data(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Image(_) | ContentBlock::Audio(_) => true,
        ContentBlock::Resource(resource) => {
            matches!(resource.resource, ResourceContents::BlobResourceContents { .. })
        }
        _ => false,
    }
}

/// Returns a block with the members that are passed on.
fn block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({ "type": "text", "text": text.text }),
        ContentBlock::Image(image) => {
            json!({ "type": "image", "data": image.data, "mimeType": image.mime_type })
        }
        ContentBlock::Audio(audio) => {
            json!({ "type": "audio", "data": audio.data, "mimeType": audio.mime_type })
        }
        ContentBlock::ResourceLink(link) => {
            json!({ "type": "resource_link", "uri": link.uri, "name": link.name })
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                of_resource(uri, mime_type.as_deref(), "text", text)
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                of_resource(uri, mime_type.as_deref(), "blob", blob)
            }
            _ => json!({ "type": "text", "text": "[resource of an unknown kind]" }),
        },
        _ => json!({ "type": "text", "text": "[content of an unknown kind]" }),
    }
}

fn of_resource(uri: &str, mime_type: Option<&str>, key: &str, content: &str) -> Value {
    let mut resource = json!({ "uri": uri, key: content });
    if let Some(mime_type) = mime_type {
        resource["mimeType"] = Value::from(mime_type);
    }
    json!({ "type": "resource", "resource": resource })
}

#[cfg(test)]
mod tests {
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
    fn pictures_sounds_and_files_make_a_result_of_parts() {
        let image = json!({ "type": "image", "data": "YWJjZA==", "mimeType": "image/png" });
        let audio = json!({ "type": "audio", "data": "YWJj", "mimeType": "audio/wav" });
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "a" });
        let words =
            json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "words" } });
        let file =
            json!({ "type": "resource", "resource": { "uri": "file:///a", "blob": "YQ==" } });
        let text = json!({ "type": "text", "text": "see" });
        let whole = |blocks: &[&Value]| json!({ "type": "content", "content": blocks });
        let mut annotated = image.clone();
        annotated["annotations"] = json!({ "audience": ["user"] });
        annotated["_meta"] = json!({ "a": 1 });
        for (blocks, expected) in [
            (vec![&text, &image], whole(&[&text, &image])),
            (vec![&annotated], whole(&[&image])),
            (vec![&audio, &words], whole(&[&audio, &words])),
            (vec![&file], whole(&[&file])),
            (vec![&text, &words, &link], json!("see\nwords\n[resource a: file:///a]")),
        ] {
            let said = value(json!({ "content": blocks })).unwrap();
            assert_eq!(said, expected);
            assert_eq!(Content::blocks(&said).is_some(), expected.is_object());
        }
        let structured = json!({ "content": [image], "structuredContent": { "n": 1 } });
        assert_eq!(value(structured), Ok(json!({ "n": 1 })));
        let failed = value(json!({ "content": [image, file], "isError": true }));
        let expected = "[image: image/png, 4 bytes]\n\
                        [resource file:///a: application/octet-stream, 1 bytes]";
        assert_eq!(failed, Err(expected.to_owned()));
    }

    #[test]
    fn errors_are_failures_with_their_text() {
        for (content, expected) in [
            (json!([{ "type": "text", "text": "no such file" }]), "no such file"),
            (json!([]), "the tool failed without a reason"),
        ] {
            let result = json!({ "content": content, "isError": true });
            assert_eq!(value(result), Err(expected.to_owned()));
        }
        let result = json!({ "content": [], "structuredContent": { "why": 1 }, "isError": true });
        assert_eq!(value(result), Err(r#"{"why":1}"#.to_owned()));
    }
}
