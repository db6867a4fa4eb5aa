//! Pictures, sounds and documents in results of tools.
//!
//! A provider refuses a whole prompt because of one file that is not what it says, and the conversation
//! could never continue. So a file is of the type that its first bytes show, and files of other types,
//! older ones and larger ones are described in words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom_actors::agent::tool::Content;
use greenroom_actors::domain::message::{Message, Part, ToolOutcome};
use serde_json::{Value, json};

/// Maximum number of files in the results of a prompt, the newest ones.
const FILES_MAX: usize = 20;
/// Maximum size of all of them, in bytes of base64: providers refuse requests of 20 MB.
const ALL_BYTES_MAX: usize = 12 << 20;
/// Maximum size of one, in bytes of base64: providers refuse pictures of 5 MB.
const FILE_BYTES_MAX: usize = 5_000_000;

/// A file in the result of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultFile<'a> {
    /// Type that its bytes show, whatever the tool says.
    pub(super) media_type: &'static str,
    /// In base64.
    pub(super) data: &'a str,
}

impl<'a> ResultFile<'a> {
    /// Returns the file of a block; `None` if it has none, or one of another type.
    pub(super) fn of(block: &'a Value) -> Option<Self> {
        let data = data_of(block)?;
        let media_type = media_type_of(&STANDARD.decode(data).ok()?)?;
        Some(Self { media_type, data })
    }
}

fn data_of(block: &Value) -> Option<&str> {
    match block["type"].as_str()? {
        "image" | "audio" => block["data"].as_str(),
        "resource" => block["resource"]["blob"].as_str(),
        _ => None,
    }
}

/// Returns the type that the first bytes of a file show.
pub(super) fn media_type_of(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        _ => return None,
    })
}

/// Describes files in results beyond the limits, from the newest one on.
pub(super) fn within_limits(messages: &mut [Message]) {
    let (mut files, mut bytes) = (0, 0);
    for part in messages.iter_mut().rev().flat_map(|message| message.parts.iter_mut().rev()) {
        let Part::ToolResult(result) = part else { continue };
        let ToolOutcome::Output(output) = &mut result.outcome else { continue };
        if Content::blocks(output).is_none() {
            continue;
        }
        let blocks = output["content"].as_array_mut().into_iter().flatten();
        for block in blocks {
            let Some(size) = data_of(block).map(str::len) else { continue };
            let fits = size <= FILE_BYTES_MAX && files < FILES_MAX && bytes + size <= ALL_BYTES_MAX;
            if fits {
                (files, bytes) = (files + 1, bytes + size);
            } else {
                *block = json!({ "type": "text", "text": Content::describe(block) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::message::{Role, ToolResult};

    use super::*;

    #[test]
    fn the_type_of_a_file_is_what_its_bytes_are() {
        let png = b"\x89PNG\r\n\x1a\n.".as_slice();
        for (bytes, media_type) in [
            (png, Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF....WEBPVP8 ", Some("image/webp")),
            (b"RIFF....WAVEfmt ", Some("audio/wav")),
            (b"ID3.", Some("audio/mpeg")),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"<svg/>", None),
            (b"", None),
        ] {
            for part in
                [Content::image("image/bmp", bytes), Content::resource_bytes("a:b", "x/y", bytes)]
            {
                let result = Content::result([part]);
                let file = ResultFile::of(&result["content"][0]);
                assert_eq!(file.map(|file| file.media_type), media_type);
            }
        }
        for block in [
            json!({ "type": "image", "mimeType": "image/png", "data": "no base64" }),
            json!({ "type": "text", "text": "iVBORw0KGgo=" }),
        ] {
            assert_eq!(ResultFile::of(&block), None, "{block}");
        }
    }

    fn message(sizes: &[usize]) -> Message {
        let picture = |bytes: &usize| {
            let (tool_call_id, tool_name) = ("c".to_owned(), "draw".to_owned());
            // three bytes are four of base64
            let picture = Content::image("image/png", vec![0; *bytes / 4 * 3]);
            let outcome = ToolOutcome::Output(Content::result([picture]));
            Part::ToolResult(ToolResult { tool_call_id, tool_name, input: json!({}), outcome })
        };
        Message { id: None, role: Role::Tool, parts: sizes.iter().map(picture).collect() }
    }

    /// Returns whether each file is left.
    fn left(messages: &[Message]) -> String {
        let parts = messages.iter().flat_map(|message| &message.parts);
        let is_left = |part: &Part| {
            let Part::ToolResult(ToolResult { outcome: ToolOutcome::Output(output), .. }) = part
            else {
                panic!("{part:?}")
            };
            if output["content"][0]["type"] == "image" { 'x' } else { '.' }
        };
        parts.map(is_left).collect()
    }

    #[test]
    fn the_newest_files_are_left_within_the_limits() {
        let max = FILE_BYTES_MAX;
        let many = [4; FILES_MAX];
        for (messages, expected) in [
            (vec![message(&[4, 4]), message(&[4])], "xxx".to_owned()),
            (vec![message(&[max, max + 4, max])], "x.x".to_owned()),
            (vec![message(&[max]), message(&[max, max])], ".xx".to_owned()),
            (vec![message(&[4]), message(&many)], format!(".{}", "x".repeat(FILES_MAX))),
        ] {
            let mut messages = messages;
            within_limits(&mut messages);
            assert_eq!(left(&messages), expected);
        }
    }
}
