//! Results of tools that are more than JSON: texts, pictures, sounds and resources, and the JSON that
//! stands for them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// `type` of a result that is a list of parts.
const CONTENT: &str = "content";

/// Type of data of which none is known.
const ANY_DATA: &str = "application/octet-stream";

/// A part of the result of a tool. Clients of MCP get it as it is; steps and direct callers get it as
/// JSON: `{"type": "content", "content": [...]}`, with the blocks of MCP. Models that called the tool read
/// texts and a description of the rest, unless they take the rest as well
/// ([`LanguageModel::reads_content`]).
///
/// A result that is larger than results may be is replaced by its texts and descriptions.
///
/// [`LanguageModel::reads_content`]: crate::ports::model::LanguageModel::reads_content
///
/// ```
/// use greenroom_actors::agent::tool::Content;
/// use serde_json::json;
///
/// let picture = Content::image("image/png", b"...");
/// let result = Content::result([Content::text("A red dot:"), picture]);
/// assert_eq!(result["type"], "content");
/// assert_eq!(result["content"][0], json!({ "type": "text", "text": "A red dot:" }));
/// assert_eq!(result["content"][1]["data"], "Li4u");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Content(Value);

impl Content {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(json!({ "type": "text", "text": text.into() }))
    }

    /// Creates a picture from its bytes.
    pub fn image(mime_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::data("image", &mime_type.into(), bytes.as_ref())
    }

    /// Creates a sound from its bytes.
    pub fn audio(mime_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::data("audio", &mime_type.into(), bytes.as_ref())
    }

    /// Creates a resource that is a text.
    pub fn resource(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let resource =
            json!({ "uri": uri.into(), "mimeType": mime_type.into(), "text": text.into() });
        Self(json!({ "type": "resource", "resource": resource }))
    }

    /// Creates a resource from its bytes.
    pub fn resource_bytes(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        bytes: impl AsRef<[u8]>,
    ) -> Self {
        let blob = STANDARD.encode(bytes);
        let resource = json!({ "uri": uri.into(), "mimeType": mime_type.into(), "blob": blob });
        Self(json!({ "type": "resource", "resource": resource }))
    }

    /// Creates a reference to a resource that the client may read.
    pub fn resource_link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self(json!({ "type": "resource_link", "uri": uri.into(), "name": name.into() }))
    }

    fn data(kind: &str, mime_type: &str, bytes: &[u8]) -> Self {
        Self(json!({ "type": kind, "data": STANDARD.encode(bytes), "mimeType": mime_type }))
    }

    /// Returns the result that consists of these parts.
    pub fn result(parts: impl IntoIterator<Item = Self>) -> Value {
        Self::of_blocks(parts.into_iter().map(|Self(block)| block))
    }

    /// Returns the result that consists of these blocks of MCP.
    pub fn of_blocks(blocks: impl IntoIterator<Item = Value>) -> Value {
        json!({ "type": CONTENT, "content": blocks.into_iter().collect::<Vec<_>>() })
    }

    /// Returns the blocks of a result that is a list of parts; `None` for any other JSON.
    pub fn blocks(result: &Value) -> Option<&[Value]> {
        let members = result.as_object().filter(|members| members.len() == 2)?;
        let is_marked = members.get("type").and_then(Value::as_str) == Some(CONTENT);
        let blocks = members.get("content").and_then(Value::as_array).filter(|_| is_marked)?;
        blocks.iter().all(is_block).then_some(blocks.as_slice())
    }

    /// Returns the texts of a result that is a list of parts, with descriptions of the rest
    /// (`[image: image/png, 3821 bytes]`); `None` for any other JSON.
    pub fn described(result: &Value) -> Option<String> {
        let blocks = Self::blocks(result)?;
        Some(blocks.iter().map(Self::describe).collect::<Vec<_>>().join("\n"))
    }

    /// Returns the text of a block, or a description of it.
    pub fn describe(block: &Value) -> String {
        let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some(kind @ ("image" | "audio")) => {
                let bytes = bytes_of(&text(block, "data"));
                format!("[{kind}: {}, {bytes} bytes]", text(block, "mimeType"))
            }
            Some("resource_link") => {
                format!("[resource {}: {}]", text(block, "name"), text(block, "uri"))
            }
            Some("resource") => {
                let resource = &block["resource"];
                let Some(blob) = resource["blob"].as_str() else { return text(resource, "text") };
                let kind = resource["mimeType"].as_str().unwrap_or(ANY_DATA);
                format!("[resource {}: {kind}, {} bytes]", text(resource, "uri"), bytes_of(blob))
            }
            Some(_) | None => text(block, "text"),
        }
    }
}

/// Returns true for a block that clients of MCP can read.
fn is_block(block: &Value) -> bool {
    let has = |of: &Value, keys: &[&str]| keys.iter().all(|key| of[*key].is_string());
    match block.get("type").and_then(Value::as_str) {
        Some("text") => has(block, &["text"]),
        Some("image" | "audio") => has(block, &["data", "mimeType"]),
        Some("resource") => {
            let resource = &block["resource"];
            has(resource, &["uri", "text"]) || has(resource, &["uri", "blob"])
        }
        Some("resource_link") => has(block, &["uri", "name"]),
        Some(_) | None => false,
    }
}

/// Returns the number of bytes that a text in base64 stands for.
fn bytes_of(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_blocks_of_mcp_and_texts_for_models() {
        let rows = [
            (Content::text("a"), json!({ "type": "text", "text": "a" }), "a"),
            (
                Content::image("image/png", b"abcd"),
                json!({ "type": "image", "data": "YWJjZA==", "mimeType": "image/png" }),
                "[image: image/png, 4 bytes]",
            ),
            (
                Content::audio("audio/wav", b"abc"),
                json!({ "type": "audio", "data": "YWJj", "mimeType": "audio/wav" }),
                "[audio: audio/wav, 3 bytes]",
            ),
            (
                Content::resource("app:a", "text/plain", "words"),
                json!({ "type": "resource", "resource": {
                    "uri": "app:a", "mimeType": "text/plain", "text": "words" } }),
                "words",
            ),
            (
                Content::resource_bytes("app:a", "image/png", [0]),
                json!({ "type": "resource", "resource": {
                    "uri": "app:a", "mimeType": "image/png", "blob": "AA==" } }),
                "[resource app:a: image/png, 1 bytes]",
            ),
            (
                Content::resource_link("app:a", "a"),
                json!({ "type": "resource_link", "uri": "app:a", "name": "a" }),
                "[resource a: app:a]",
            ),
        ];
        for (part, block, text) in rows {
            let result = Content::result([part.clone(), Content::text("z")]);
            assert_eq!(Content::blocks(&result).unwrap()[0], block);
            assert_eq!(Content::described(&result), Some(format!("{text}\nz")));
        }
        assert_eq!(Content::described(&Content::result([])).as_deref(), Some(""));
    }

    #[test]
    fn other_results_are_no_parts() {
        let text = json!({ "type": "text", "text": "a" });
        for other in [
            json!(null),
            json!("a"),
            json!([text]),
            json!({ "content": [text] }),
            json!({ "type": "text", "content": [text] }),
            json!({ "type": "content", "content": [text], "more": 1 }),
            json!({ "type": "content", "content": text }),
            json!({ "type": "content", "content": ["a"] }),
            json!({ "type": "content", "content": [{ "type": "text" }] }),
            json!({ "type": "content", "content": [{ "type": "image", "data": "YQ==" }] }),
            json!({ "type": "content", "content": [{ "type": "resource", "resource": {} }] }),
            json!({ "type": "content", "content": [{ "type": "video" }] }),
        ] {
            assert_eq!(Content::blocks(&other), None, "{other}");
            assert_eq!(Content::described(&other), None, "{other}");
        }
    }
}
