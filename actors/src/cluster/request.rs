//! Requests of one member to others: orders for executions, and what concerns a process as a whole.
//!
//! Members of different versions understand each other: unknown fields are ignored, and a request
//! that is not understood is refused, so that its caller may try again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use crate::cluster::order::Order;
use crate::cluster::said::Said;
use crate::domain::cluster::NodeId;
use crate::observe::span::ObserverFilter;
use crate::ports::links::{Exchange, Links};
use crate::ports::members::View;
use crate::ports::store::{ConversationKey, read_stored};
use crate::requests::Unavailable;
use crate::shared::{Shared, refusal};
use crate::visibility::Visibility;

/// A request to another member.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Order(Order),
    /// Cancels a generation that runs there. Answered when its end is durable, with true, or with
    /// false if none runs that is visible.
    CancelGeneration {
        agent: String,
        generation: String,
        visibility: Visibility,
    },
    /// Erases a user from memory and from generations that run there.
    ForgetUser {
        user: Arc<str>,
        /// Always true. Members of earlier versions leave generations as they are without it.
        generations: bool,
    },
    /// Sends all events of the chat that runs in a conversation, after its generation's id.
    FollowChat(ConversationKey),
    /// Asks which workflows and agents are running there.
    Activity,
    /// Asks for the stuck executions there.
    Stuck,
    /// Sends spans and log records from now on, after an empty answer.
    FollowFeed(FeedWish),
}

/// Part of a feed that an observer wants.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FeedWish {
    pub(crate) filter: ObserverFilter,
    pub(crate) spans: bool,
    pub(crate) logs: bool,
}

impl Request {
    /// Returns the request as it is sent.
    pub(crate) fn write(&self) -> Result<Bytes, Unavailable> {
        serde_json::to_vec(self).map(Bytes::from).map_err(|error| {
            log::error!("a request to another server cannot be written: {error}");
            Unavailable::Unreachable
        })
    }
}

/// The answer of a member, with what follows it; `None` if it cannot be reached, or does not
/// understand the request.
pub(crate) type MemberAnswer<T> = Option<(T, Exchange)>;

impl Shared {
    /// Returns the other members, as of the newest view.
    pub(crate) fn other_members(&self) -> Vec<NodeId> {
        let Some(members) = self.ownership.members() else { return Vec::new() };
        others_of(members.views().borrow().as_deref(), members.own())
    }

    /// Returns every other member that has joined by now, as soon as a view shows that.
    pub(crate) async fn other_members_by_now(&self) -> Result<Vec<NodeId>, Unavailable> {
        let Some(members) = self.ownership.members() else { return Ok(Vec::new()) };
        let now = Instant::now();
        let mut views = members.views();
        let seen = views.wait_for(|view| view.as_ref().is_some_and(|view| view.sent >= now));
        match timeout(self.ownership.lease(), seen).await {
            Ok(Ok(_)) => Ok(self.other_members()),
            // there is an outage, or this process is no longer a member
            Ok(Err(_)) | Err(_) => Err(refusal(None)),
        }
    }

    /// Returns the time for which a member is waited for that records something before it answers.
    /// During an outage it answers when its patience is over.
    pub(crate) fn time_to_record(&self) -> Duration {
        self.ownership.lease() + self.limits.store_patience
    }

    /// Asks members at once, each for so long; returns their answers in the order of the members.
    pub(crate) async fn ask_members<T: DeserializeOwned + Send>(
        &self,
        members: &[NodeId],
        request: &Request,
        time: Duration,
    ) -> Result<Vec<MemberAnswer<T>>, Unavailable> {
        let request = request.write()?;
        let asked = members.iter().map(|node| self.ask_member(*node, request.clone(), time));
        Ok(join_all(asked).await)
    }

    /// Asks a member, for so long.
    pub(crate) async fn ask_member<T: DeserializeOwned + Send>(
        &self,
        node: NodeId,
        request: Bytes,
        time: Duration,
    ) -> MemberAnswer<T> {
        ask(&**self.ownership.links()?, node, request, time).await
    }
}

/// Asks a member over these links, for so long.
pub(crate) async fn ask<T: DeserializeOwned + Send>(
    links: &dyn Links,
    node: NodeId,
    request: Bytes,
    time: Duration,
) -> MemberAnswer<T> {
    let mut exchange = links.open(node, request);
    let first = timeout(time, exchange.next()).await.ok()??.ok()?;
    let Said::Answer(json) = Said::read(&first)? else { return None };
    let answer = read_stored(json).inspect_err(|error| {
        log::error!("the answer of another server (node {node}) is not understood: {error}");
    });
    Some((answer.ok()?, exchange))
}

/// Returns the members that a view shows, without this one.
pub(crate) fn others_of(view: Option<&View>, own: NodeId) -> Vec<NodeId> {
    let members = view.map(|view| &*view.members).unwrap_or_default();
    members.iter().map(|member| member.node).filter(|node| *node != own).collect()
}
