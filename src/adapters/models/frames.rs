//! The body of an answer, split into JSON values: server-sent events, or one value.
//!
//! The first byte decides which of the two it is: content types are not reliable, and some servers
//! answer whole if a stream was requested. Pieces may end anywhere, also inside a character.
//! Buffers are bounded.

use greenroom_actors::domain::foreign;
use serde_json::Value;

use crate::http_client::Lines;

/// Longest event, and longest answer that is one value.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A complete value of the body.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    Json(Value),
    /// `[DONE]`, which ends some streams.
    Done,
}

/// Reason why a body cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("an answer that is not JSON")]
    NotJson,
    #[error("an event of more than 16 MiB")]
    TooLong,
}

/// Received bytes that are not a frame yet.
#[derive(Debug, Default)]
pub(super) struct Frames {
    kind: Kind,
    lines: Lines,
    /// Data of the current event.
    data: Vec<u8>,
    /// True after the first `data` line.
    any: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Events,
    Whole,
}

impl Frames {
    /// Adds received bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        if self.lines.bytes().len() + self.data.len() + bytes.len() > FRAME_BYTES_MAX {
            return Err(FrameError::TooLong);
        }
        self.lines.feed(bytes);
        if self.kind == Kind::Unknown {
            let first = self.lines.bytes().iter().find(|byte| !byte.is_ascii_whitespace());
            self.kind = match first {
                None => Kind::Unknown,
                Some(b'{' | b'[') => Kind::Whole,
                Some(_) => Kind::Events,
            };
        }
        Ok(())
    }

    /// Returns the next complete frame.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.kind != Kind::Events {
            return Ok(None);
        }
        while let Some(line) = self.lines.next() {
            if let Some(frame) = self.line(&line)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Returns the remaining frames at the end of the body.
    pub(super) fn rest(&mut self) -> Result<Option<Frame>, FrameError> {
        let buffer = self.lines.take_rest();
        match self.kind {
            Kind::Whole => {
                self.kind = Kind::Unknown;
                foreign::from_slice(&buffer)
                    .map(|json| Some(Frame::Json(json)))
                    .map_err(|_| FrameError::NotJson)
            }
            Kind::Events => {
                let line = buffer.strip_suffix(b"\r").unwrap_or(&buffer);
                let last = self.line(line).and_then(|frame| match frame {
                    Some(frame) => Ok(Some(frame)),
                    None => self.line(b""),
                });
                match last {
                    // an event without its end is incomplete and ignored
                    Err(FrameError::NotJson) if self.any => Ok(None),
                    last => last,
                }
            }
            Kind::Unknown => Ok(None),
        }
    }

    /// Returns true if the body had any data, readable or not.
    pub(super) fn had_data(&self) -> bool {
        self.any || self.kind == Kind::Whole
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Frame>, FrameError> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return if data.is_empty() { Ok(None) } else { frame(&data).map(Some) };
        }
        if line.starts_with(b":") {
            return Ok(None);
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        match field {
            b"data" => {
                self.any = true;
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                let value = value.strip_prefix(b":").unwrap_or(value);
                self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
                Ok(None)
            }
            b"event" | b"id" | b"retry" => Ok(None),
            // unknown fields are ignored; other text is an error
            _ if colon.is_some_and(|at| line[..at].iter().all(u8::is_ascii_lowercase)) => Ok(None),
            _ => Err(FrameError::NotJson),
        }
    }
}

fn frame(data: &[u8]) -> Result<Frame, FrameError> {
    if data.trim_ascii() == b"[DONE]" {
        return Ok(Frame::Done);
    }
    foreign::from_slice(data).map(Frame::Json).map_err(|_| FrameError::NotJson)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frames(body: &[u8], cut: usize) -> Result<Vec<Frame>, FrameError> {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for piece in body.chunks(cut) {
            frames.feed(piece)?;
            while let Some(frame) = frames.next()? {
                found.push(frame);
            }
        }
        while let Some(frame) = frames.rest()? {
            found.push(frame);
        }
        Ok(found)
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let json = |value| Frame::Json(value);
        let rows = [
            (
                "data: {\"a\":\"ü€🙂\"}\n\ndata: [DONE]\n\n",
                vec![json(json!({ "a": "ü€🙂" })), Frame::Done],
            ),
            ("event: x\r\ndata:{\"a\":1}\r\nid: 7\r\n\r\n", vec![json(json!({ "a": 1 }))]),
            (
                ": warm\n\ndata: {\"a\":\ndata: 1}\n\n: keep-alive\n\n",
                vec![json(json!({ "a": 1 }))],
            ),
            (
                "data: {\"a\":1}\n\ndata: {\"b\":2}",
                vec![json(json!({ "a": 1 })), json(json!({ "b": 2 }))],
            ),
            ("data: {\"a\":1}\n\ndata: {\"b\":", vec![json(json!({ "a": 1 }))]),
            ("data: {\"a\":1}\n\nda", vec![json(json!({ "a": 1 }))]),
            (" {\"a\":\n\n1}", vec![json(json!({ "a": 1 }))]),
            ("[{\"a\":1}]", vec![json(json!([{ "a": 1 }]))]),
            ("", vec![]),
            ("\n\n", vec![]),
            ("data:\n\n", vec![]),
        ];
        for (body, expected) in rows {
            for cut in 1..=body.len().max(1) {
                assert_eq!(frames(body.as_bytes(), cut).as_ref(), Ok(&expected), "{body:?} {cut}");
            }
        }
    }

    #[test]
    fn a_body_that_is_not_a_stream_is_rejected() {
        for body in ["<html>\n", "hello\n\n", "data: {\n\n", "{\"a\":", "data: \"\u{1}\n\n"] {
            assert_eq!(frames(body.as_bytes(), 3), Err(FrameError::NotJson), "{body:?}");
        }
        assert_eq!(frames(b"data: \xff\n\n", 1), Err(FrameError::NotJson));
    }

    #[test]
    fn an_endless_line_is_rejected() {
        let mut frames = Frames::default();
        let piece = vec![b'a'; 1024 * 1024];
        let refused =
            (0..17).find_map(|_| frames.feed(&piece).err().or_else(|| frames.next().err()));
        assert_eq!(refused, Some(FrameError::TooLong));
    }
}
