//! Links: requests from one member of a cluster to another, and their answers.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::domain::cluster::NodeId;

/// Answers to one request, in order. Dropping it shows the other side that nothing waits for them.
pub type Exchange = BoxStream<'static, Result<Vec<u8>, LinkError>>;

/// Reason why no further answers come. A stream of answers ends after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// There is no connection to the member, or no room for the request, which was not sent.
    #[error("there is no connection to the other server")]
    NotSent,
    /// The request is larger than the connection carries. It was not sent, and never will be.
    #[error("the request is too large for the connection to the other server")]
    TooLarge,
    /// The connection failed after the request was sent: it may have been carried out.
    #[error("the connection to the other server failed")]
    Lost,
    /// The member has failed to answer, which its log explains: the request may have been carried
    /// out, and would fail again.
    #[error("the other server has failed to answer")]
    Failed,
}

/// Connections to the other members.
///
/// A connection is in order and loses nothing while it lasts. An exchange whose answers are not
/// read holds up no other one; its answerer waits.
pub trait Links: Send + Sync {
    /// Sets what answers the requests of other members. Called once, before the first request.
    fn attach(&self, answerer: Arc<dyn Answerer>);

    /// Sends a request to a member.
    fn open(&self, to: NodeId, request: Bytes) -> Exchange;

    /// Returns true if the process of a member has ended, as its host shows: it refuses connections
    /// at the address at which this process was connected to that member.
    fn has_ended(&self, _node: NodeId) -> bool {
        false
    }
}

/// Receiver of the requests of other members.
pub trait Answerer: Send + Sync {
    /// Carries out a request of a member and returns the answers. The stream is dropped when the
    /// other side no longer waits for them, or the connection fails.
    fn answer(&self, from: NodeId, request: Vec<u8>) -> BoxStream<'static, Vec<u8>>;
}
