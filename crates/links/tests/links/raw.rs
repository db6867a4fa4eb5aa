//! Connections without this crate: they can break every rule.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use aws_lc_rs::hmac;

use super::*;

pub(super) const HELLO: u8 = 1;
pub(super) const PROOF: u8 = 2;
pub(super) const READY: u8 = 3;
pub(super) const REFUSED: u8 = 4;

pub(super) const PING: u8 = 1;
pub(super) const REQUEST_END: u8 = 3;
pub(super) const ANSWER_END: u8 = 5;
pub(super) const ENDED: u8 = 6;

/// A connection to a server.
pub(super) struct Raw {
    stream: TcpStream,
}

/// Returns a greeting.
pub(super) fn hello(versions: (u16, u16), from: i64, to: NodeId) -> Vec<u8> {
    let mut hello = b"grmlinks".to_vec();
    hello.extend(versions.0.to_be_bytes());
    hello.extend(versions.1.to_be_bytes());
    hello.extend(from.to_be_bytes());
    hello.extend(to.0.to_be_bytes());
    hello.extend(1_000_000u32.to_be_bytes());
    hello.extend([7; 32]);
    hello.extend(u16::try_from(CLUSTER.len()).unwrap().to_be_bytes());
    hello.extend(CLUSTER);
    hello
}

impl Raw {
    pub(super) fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.links.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    /// Connects as a member.
    pub(super) fn established(server: &Server, node: i64) -> Self {
        let mut raw = Self::connect(server);
        let ours = hello((1, 1), node, server.node);
        raw.says(HELLO, &ours);
        let (kind, theirs) = raw.message().unwrap();
        assert_eq!((kind, raw.message().unwrap().0), (HELLO, PROOF));
        let mut signed = b"greenroom links, asker".to_vec();
        for part in [ours.as_slice(), &theirs, &[]] {
            signed.extend((part.len() as u64).to_be_bytes());
            signed.extend(part);
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
        raw.says(PROOF, hmac::sign(&key, &signed).as_ref());
        assert_eq!(raw.message(), Some((READY, Vec::new())));
        raw
    }

    /// Sends bytes; the server may have ended the connection before.
    pub(super) fn writes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a message of the handshake.
    pub(super) fn says(&mut self, kind: u8, body: &[u8]) {
        let length = u32::try_from(1 + body.len()).unwrap();
        self.writes(&[&length.to_be_bytes()[..], &[kind], body].concat());
    }

    /// Sends a frame.
    pub(super) fn sends(&mut self, kind: u8, number: u64, payload: &[u8]) {
        self.says(kind, &[&number.to_be_bytes(), payload].concat());
    }

    /// Receives a message of the handshake; `None`: the connection has ended.
    pub(super) fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut length = [0; 4];
        if let Err(error) = self.stream.read_exact(&mut length) {
            let is_end = error.kind() != std::io::ErrorKind::WouldBlock;
            assert!(is_end, "the connection lasts: {error}");
            return None;
        }
        let mut message = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        self.stream.read_exact(&mut message).unwrap();
        let (kind, body) = message.split_first().unwrap();
        Some((*kind, body.to_vec()))
    }

    /// Receives a frame; `None`: the connection has ended.
    pub(super) fn frame(&mut self) -> Option<(u8, u64, Vec<u8>)> {
        let (kind, body) = self.message()?;
        let (number, payload) = body.split_first_chunk().unwrap();
        Some((kind, u64::from_be_bytes(*number), payload.to_vec()))
    }

    /// Receives a frame, which is this.
    pub(super) fn receives(&mut self, kind: u8, number: u64, payload: &[u8]) {
        assert_eq!(self.frame(), Some((kind, number, payload.to_vec())));
    }

    /// Waits until the server ends the connection, whatever it says before.
    pub(super) fn is_ended(&mut self) {
        if let Err(error) = self.stream.read_to_end(&mut Vec::new()) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the connection lasts");
        }
    }
}
