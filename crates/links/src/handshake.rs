//! The beginning of a connection: both sides prove that they know the secret of the cluster.
//!
//! The side that dialled sends a [`Hello`], the other one answers with its own and a proof; then
//! the first one proves itself and waits until it is accepted. A proof covers both greetings, with
//! their random numbers, and the keys of TLS: a connection that someone passes on is refused.

mod hello;

use std::io;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use greenroom_actors::domain::cluster::NodeId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::connection::Socket;
use crate::limits::Limits;
use crate::settings::LinkIdentity;

pub(crate) use self::hello::{Hello, NONCE_BYTES, Versions};

/// Maximum number of bytes that are accepted from a connection before it is established.
const HANDSHAKE_BYTES_MAX: usize = 4096;

/// Material that only the ends of one encrypted connection share; `None` without encryption.
pub(crate) type Binding = Option<[u8; 32]>;

/// Reason for not establishing a connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("it ended the connection")]
    Ended,
    #[error("{0}")]
    Failed(io::Error),
    #[error("it does not speak the protocol of links")]
    NoLink,
    #[error("it sent too much before the connection was established")]
    TooLong,
    #[error("its handshake is malformed")]
    Malformed,
    #[error("it speaks versions {theirs} of the protocol, this server {ours}")]
    Versions { theirs: Versions, ours: Versions },
    #[error("none of the versions of the protocol that this server speaks is known there")]
    VersionsRefused,
    #[error("it belongs to another cluster")]
    OtherCluster,
    #[error("another server is at this address")]
    OtherNode,
    #[error("it has another secret; all servers of a cluster must use one database")]
    OtherSecret,
    #[error("it has left the cluster")]
    Gone,
    #[error("it was informed that this server has left the cluster")]
    GoneHere,
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Ended } else { Self::Failed(error) }
    }
}

/// An established connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) peer: NodeId,
    /// Version of the protocol: the highest one that both sides speak.
    pub(crate) version: u16,
    pub(crate) limits: Limits,
}

/// This server in handshakes.
#[derive(Debug)]
pub(crate) struct Greeter {
    own: NodeId,
    versions: Versions,
    cluster: Vec<u8>,
    key: hmac::Key,
    message_bytes_max: u32,
}

const HELLO: u8 = 1;
const PROOF: u8 = 2;
const READY: u8 = 3;
const REFUSED: u8 = 4;

const ASKER: &[u8] = b"greenroom links, asker";
const ANSWERER: &[u8] = b"greenroom links, answerer";

impl Greeter {
    pub(crate) fn new(identity: &LinkIdentity, message_bytes_max: u32) -> Self {
        Self {
            own: identity.own,
            versions: Versions::OWN,
            cluster: identity.cluster.clone(),
            key: hmac::Key::new(hmac::HMAC_SHA256, &identity.secret.0),
            message_bytes_max,
        }
    }

    /// Establishes a connection that this server has dialled.
    pub(crate) async fn ask(
        &self,
        socket: &mut dyn Socket,
        peer: NodeId,
        binding: Binding,
    ) -> Result<Session, HandshakeError> {
        let mut talk = Talk::new(socket);
        let ours = self.hello(peer)?;
        talk.send(HELLO, &ours.written()).await?;
        let (theirs_written, theirs) = talk.hello(self.versions).await?;
        let version =
            self.check(&theirs).map_err(|refusal| refusal.of_them(&theirs, self.versions))?;
        if theirs.from != peer {
            return Err(HandshakeError::OtherNode);
        }
        let signed = signed(&ours.written(), &theirs_written, binding);
        let proof = talk.receive(PROOF).await?;
        if !self.is_proven(ANSWERER, &signed, &proof) {
            talk.refuse(Refusal::Secret).await;
            return Err(HandshakeError::OtherSecret);
        }
        talk.send(PROOF, self.proof(ASKER, &signed).as_ref()).await?;
        talk.receive(READY).await?;
        Ok(self.session(&theirs, version))
    }

    /// Establishes a connection that this server has accepted.
    pub(crate) async fn answer(
        &self,
        socket: &mut dyn Socket,
        binding: Binding,
        is_gone: impl Fn(NodeId) -> bool,
    ) -> Result<Session, HandshakeError> {
        let mut talk = Talk::new(socket);
        let (theirs_written, theirs) = talk.hello(self.versions).await?;
        let mut checked = self.check(&theirs);
        if checked.is_ok() && is_gone(theirs.from) {
            checked = Err(Refusal::Gone);
        }
        let version = match checked {
            Ok(version) => version,
            Err(refusal) => {
                talk.refuse(refusal).await;
                return Err(refusal.of_them(&theirs, self.versions));
            }
        };
        let ours = self.hello(theirs.from)?;
        let signed = signed(&theirs_written, &ours.written(), binding);
        talk.send(HELLO, &ours.written()).await?;
        talk.send(PROOF, self.proof(ANSWERER, &signed).as_ref()).await?;
        let proof = talk.receive(PROOF).await?;
        if !self.is_proven(ASKER, &signed, &proof) {
            talk.refuse(Refusal::Secret).await;
            return Err(HandshakeError::OtherSecret);
        }
        talk.send(READY, &[]).await?;
        Ok(self.session(&theirs, version))
    }

    fn hello(&self, to: NodeId) -> Result<Hello, HandshakeError> {
        let mut nonce = [0; NONCE_BYTES];
        let failed = |_| io::Error::other("the system gives no random numbers");
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let (versions, cluster) = (self.versions, self.cluster.clone());
        let message_bytes_max = self.message_bytes_max;
        Ok(Hello { versions, from: self.own, to, message_bytes_max, nonce, cluster })
    }

    /// Returns the version that both speak.
    fn check(&self, theirs: &Hello) -> Result<u16, Refusal> {
        let version = theirs.versions.common(self.versions).ok_or(Refusal::Versions)?;
        if theirs.cluster != self.cluster {
            Err(Refusal::Cluster)
        } else if theirs.to != self.own || theirs.from == self.own {
            Err(Refusal::Node)
        } else {
            Ok(version)
        }
    }

    fn session(&self, theirs: &Hello, version: u16) -> Session {
        let smaller = self.message_bytes_max.min(theirs.message_bytes_max);
        let message_bytes_max = usize::try_from(smaller).unwrap_or(usize::MAX);
        Session { peer: theirs.from, version, limits: Limits { message_bytes_max } }
    }

    fn proof(&self, side: &[u8], signed: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(side);
        context.update(signed);
        context.sign()
    }

    /// Compares a proof in constant time.
    fn is_proven(&self, side: &[u8], signed: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.key, &[side, signed].concat(), proof).is_ok()
    }
}

/// Returns what proofs cover.
fn signed(asker: &[u8], answerer: &[u8], binding: Binding) -> Vec<u8> {
    let mut signed = Vec::new();
    for part in [asker, answerer, binding.as_ref().map_or(&[], |it| it)] {
        signed.extend((part.len() as u64).to_be_bytes());
        signed.extend(part);
    }
    signed
}

/// Word to a server that is refused. Not proven, so good for its log only.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Refusal {
    Versions = 1,
    Cluster = 2,
    Node = 3,
    Secret = 4,
    Gone = 5,
}

impl Refusal {
    const ALL: [Self; 5] = [Self::Versions, Self::Cluster, Self::Node, Self::Secret, Self::Gone];

    /// Returns the reason for refusing another server.
    fn of_them(self, theirs: &Hello, ours: Versions) -> HandshakeError {
        match self {
            Self::Versions => HandshakeError::Versions { theirs: theirs.versions, ours },
            Self::Cluster => HandshakeError::OtherCluster,
            Self::Node => HandshakeError::OtherNode,
            Self::Secret => HandshakeError::OtherSecret,
            Self::Gone => HandshakeError::Gone,
        }
    }

    /// Returns the reason for which another server refuses this one.
    fn by_them(code: &[u8]) -> HandshakeError {
        match Self::ALL.into_iter().find(|refusal| code == [*refusal as u8]) {
            Some(Self::Versions) => HandshakeError::VersionsRefused,
            Some(Self::Cluster) => HandshakeError::OtherCluster,
            Some(Self::Node) => HandshakeError::OtherNode,
            Some(Self::Secret) => HandshakeError::OtherSecret,
            Some(Self::Gone) => HandshakeError::GoneHere,
            None => HandshakeError::Malformed,
        }
    }
}

/// The messages of a handshake: a length of 4 bytes, a kind, and a body.
struct Talk<'a> {
    socket: &'a mut dyn Socket,
    /// Number of bytes that the other side may still send.
    left: usize,
}

impl<'a> Talk<'a> {
    fn new(socket: &'a mut dyn Socket) -> Self {
        Self { socket, left: HANDSHAKE_BYTES_MAX }
    }

    async fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 1).map_err(io::Error::other)?;
        let message = [&length.to_be_bytes(), &[kind][..], body].concat();
        self.socket.write_all(&message).await?;
        self.socket.flush().await
    }

    /// Sends the reason for ending the connection, as far as it still exists.
    async fn refuse(&mut self, refusal: Refusal) {
        if self.send(REFUSED, &[refusal as u8]).await.is_ok() {
            // an error: the other side has ended it first
            let _ = self.socket.shutdown().await;
        }
    }

    async fn hello(&mut self, known: Versions) -> Result<(Vec<u8>, Hello), HandshakeError> {
        let written = self.receive(HELLO).await?;
        let hello = Hello::read(&written, known)?;
        Ok((written, hello))
    }

    /// Receives a message of a kind.
    async fn receive(&mut self, expected: u8) -> Result<Vec<u8>, HandshakeError> {
        let length = self.socket.read_u32().await?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let size = length.saturating_add(4);
        // the first message of something else begins with any bytes
        let is_first = self.left == HANDSHAKE_BYTES_MAX;
        if size > self.left {
            return Err(if is_first { HandshakeError::NoLink } else { HandshakeError::TooLong });
        }
        self.left -= size;
        let mut message = vec![0; length];
        self.socket.read_exact(&mut message).await?;
        match message.split_first() {
            Some((kind, body)) if *kind == expected => Ok(body.to_vec()),
            Some((&REFUSED, code)) => Err(Refusal::by_them(code)),
            _ if is_first => Err(HandshakeError::NoLink),
            _ => Err(HandshakeError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests;
