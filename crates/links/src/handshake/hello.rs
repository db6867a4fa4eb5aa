//! The greeting of a server.

use std::fmt;

use bytes::{Buf as _, BufMut as _};
use greenroom_actors::domain::cluster::NodeId;

use super::HandshakeError;

const MAGIC: &[u8; 8] = b"grmlinks";

pub(crate) const NONCE_BYTES: usize = 32;

/// Versions of the protocol that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) lowest: u16,
    pub(crate) highest: u16,
}

impl Versions {
    /// Versions that this server speaks.
    pub(crate) const OWN: Self = Self { lowest: 1, highest: 1 };

    /// Returns the highest version that both speak, if there is one.
    pub(crate) fn common(self, other: Self) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (self.lowest.max(other.lowest) <= highest).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.lowest, self.highest)
    }
}

/// A greeting. All versions begin it with the magic and the versions; a later one may append to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) versions: Versions,
    pub(crate) from: NodeId,
    /// The server that is expected at the other end.
    pub(crate) to: NodeId,
    /// Maximum size of a message that the sender takes.
    pub(crate) message_bytes_max: u32,
    /// Random bytes, so that no proof is valid twice.
    pub(crate) nonce: [u8; NONCE_BYTES],
    pub(crate) cluster: Vec<u8>,
}

impl Hello {
    pub(crate) fn written(&self) -> Vec<u8> {
        let mut to = Vec::new();
        to.put_slice(MAGIC);
        to.put_u16(self.versions.lowest);
        to.put_u16(self.versions.highest);
        to.put_i64(self.from.0);
        to.put_i64(self.to.0);
        to.put_u32(self.message_bytes_max);
        to.put_slice(&self.nonce);
        to.put_u16(u16::try_from(self.cluster.len()).expect("its size was checked at the start"));
        to.put_slice(&self.cluster);
        to
    }

    /// Reads a greeting; one without a version of those that are known as far as all versions agree.
    pub(crate) fn read(written: &[u8], known: Versions) -> Result<Self, HandshakeError> {
        let mut rest = written.strip_prefix(MAGIC).ok_or(HandshakeError::NoLink)?;
        let malformed = |_| HandshakeError::Malformed;
        let lowest = rest.try_get_u16().map_err(malformed)?;
        let highest = rest.try_get_u16().map_err(malformed)?;
        let versions = Versions { lowest, highest };
        if versions.common(known).is_none() {
            // the rest may have another form; the caller refuses it by its versions
            let (from, to, nonce) = (NodeId(0), NodeId(0), [0; NONCE_BYTES]);
            let cluster = Vec::new();
            return Ok(Self { versions, from, to, message_bytes_max: 0, nonce, cluster });
        }
        let from = NodeId(rest.try_get_i64().map_err(malformed)?);
        let to = NodeId(rest.try_get_i64().map_err(malformed)?);
        let message_bytes_max = rest.try_get_u32().map_err(malformed)?;
        let mut nonce = [0; NONCE_BYTES];
        rest.try_copy_to_slice(&mut nonce).map_err(malformed)?;
        let cluster_bytes = usize::from(rest.try_get_u16().map_err(malformed)?);
        let cluster = rest.get(..cluster_bytes).ok_or(HandshakeError::Malformed)?.to_vec();
        Ok(Self { versions, from, to, message_bytes_max, nonce, cluster })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_read_as_it_was_written() {
        let hello = Hello {
            versions: Versions { lowest: 1, highest: 3 },
            from: NodeId(7),
            to: NodeId(i64::MAX),
            message_bytes_max: 80,
            nonce: [5; NONCE_BYTES],
            cluster: b"shop".to_vec(),
        };
        let mut written = hello.written();
        let read = |written: &[u8]| Hello::read(written, Versions::OWN);
        assert_eq!(read(&written).unwrap(), hello);
        written.extend(b"of a later version");
        assert_eq!(read(&written).unwrap(), hello);
        for length in 0..hello.written().len() {
            assert!(read(&written[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn the_highest_common_version_is_spoken() {
        let versions = |lowest, highest| Versions { lowest, highest };
        for (one, other, expected) in [
            (versions(1, 3), versions(3, 5), Some(3)),
            (versions(1, 4), versions(2, 3), Some(3)),
            (versions(2, 2), versions(1, 9), Some(2)),
            (versions(1, 2), versions(3, 5), None),
        ] {
            assert_eq!((one.common(other), other.common(one)), (expected, expected));
        }
    }

    #[test]
    fn of_unknown_versions_only_the_beginning_is_read() {
        let written = [MAGIC.as_slice(), &[0, 2, 0, 9], b"rest"].concat();
        let versions = Hello::read(&written, Versions::OWN).unwrap().versions;
        assert_eq!(versions, Versions { lowest: 2, highest: 9 });
    }
}
