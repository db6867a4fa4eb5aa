//! Lines of a body that arrives in pieces.

/// Received bytes that are not a line yet. Each byte is searched once, however small the pieces are.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Length of the part of the buffer without a line end.
    scanned: usize,
}

impl Lines {
    /// Adds received bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the bytes of the lines that are not taken yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes the next complete line, without its end (`\n` or `\r\n`).
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let rest = &self.buffer[self.scanned..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + length;
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        self.scanned = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(line)
    }

    /// Takes what is left, which has no line end.
    #[cfg(feature = "providers")]
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        self.scanned = 0;
        std::mem::take(&mut self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_may_end_anywhere() {
        let body = b"one\r\n\ntwo \r x\nrest";
        for size in 1..=body.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in body.chunks(size) {
                lines.feed(piece);
                found.extend(std::iter::from_fn(|| lines.next()));
            }
            assert_eq!(found, [&b"one"[..], b"", b"two \r x"], "{size}");
            assert_eq!(lines.take_rest(), b"rest");
        }
    }
}
