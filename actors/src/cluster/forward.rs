//! Commands for executions of other members, sent to their owners.
//!
//! A command waits while the slot has no owner: while it is handed over, or until a member that is
//! gone was fenced. When an owner is lost that may have carried the command out, the command is sent
//! again to the next owner only if it has a key or changes nothing; otherwise its caller is refused.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};

use crate::cluster::figures::Forwarded;
use crate::cluster::order::{Order, pass_answer};
use crate::cluster::request::Request;
use crate::cluster::said::Said;
use crate::commands::Deliver;
use crate::domain::cluster::NodeId;
use crate::domain::ids::ExecutionId;
use crate::domain::slot::slot_of;
use crate::execution::Subscribers;
use crate::ports::links::{Exchange, LinkError, Links};
use crate::requests::{EventBatch, Subscriber, Unavailable};
use crate::shard::memory_budget::Claim;
use crate::shared::Shared;

/// Time beyond the lease for which a command waits for an owner of its slot: to fence the last
/// owner, to claim the slot, and to learn of it.
const TAKEOVER: Duration = Duration::from_secs(3);

/// Minimum time between two checks whether a subscriber is still there.
pub(super) const PRUNE_MIN: Duration = Duration::from_millis(100);

/// Sends a command to the owner of its execution, or to the supervisor `here` if this process
/// becomes the owner. The permit bounds the number of such commands.
pub(crate) async fn forward(
    shared: Arc<Shared>,
    here: Recipient<Deliver>,
    Deliver { id, mut command }: Deliver,
    _permit: OwnedSemaphorePermit,
) {
    let Some(order) = Order::of(&id, &command) else {
        // repeated by the store, at the next owner
        return command.refuse(Unavailable::Moved { execution: None });
    };
    let counters = &shared.ownership.counters;
    let forwarding = match Forwarding::new(&shared, &id, order, command.has_values()) {
        Ok(forwarding) => forwarding,
        Err(why) => {
            counters.forwarded(Forwarded::Refused);
            return command.refuse(why);
        }
    };
    let patience = forwarding.patience();
    let answered_within = command.answered_within(shared.ownership.lease());
    // what its caller wished is carried out in time, but is not waited for
    let abandoned = async {
        command.abandoned().await;
        sleep(patience).await;
    };
    let found = tokio::select! {
        found = timeout(answered_within, forwarding.find_answer()) => {
            found.unwrap_or(Found::Refusal(Unavailable::Moved { execution: None }))
        }
        () = abandoned => return,
    };
    counters.forwarded(found.end());
    match found {
        Found::Here => drop(here.send(Deliver { id, command }).await),
        Found::Answer { first, exchange } => {
            let Some(Said::Answer(json)) = Said::read(&first) else {
                command.refuse(Unavailable::Moved { execution: Some(id) });
                return;
            };
            if let Some(subscriber) = pass_answer(&id, command, json) {
                pass_facts(&shared, &id, exchange, subscriber).await;
            }
        }
        Found::Refusal(why) => command.refuse(why),
    }
}

/// A command under way.
struct Forwarding<'f> {
    shared: &'f Shared,
    links: &'f dyn Links,
    id: &'f ExecutionId,
    /// The order, as it is sent.
    request: Bytes,
    /// Memory of the order.
    _claim: Claim,
    /// True if it may be sent again when its owner was lost while it carried it out.
    is_repeatable: bool,
}

/// Origin of the answer to a command.
enum Found {
    /// From this process, which serves the execution now.
    Here,
    Answer {
        first: Vec<u8>,
        exchange: Exchange,
    },
    Refusal(Unavailable),
}

impl Found {
    fn end(&self) -> Forwarded {
        match self {
            Self::Here => Forwarded::Here,
            Self::Answer { .. } => Forwarded::Answered,
            Self::Refusal(_) => Forwarded::Refused,
        }
    }
}

impl<'f> Forwarding<'f> {
    /// Returns the command as it is to be sent. Values need memory beside what their execution has;
    /// everything else is small.
    fn new(
        shared: &'f Shared,
        id: &'f ExecutionId,
        order: Order,
        has_values: bool,
    ) -> Result<Self, Unavailable> {
        let links = shared.ownership.links().ok_or(Unavailable::Moved { execution: None })?;
        let is_repeatable = order.is_repeatable();
        let request = Request::Order(order).write()?;
        let bytes = u64::try_from(request.len()).unwrap_or(u64::MAX);
        let memory = &shared.memory;
        let claim = if has_values { memory.claim(bytes) } else { Some(memory.claim_anyway(bytes)) };
        let claim = claim.ok_or_else(|| shared.no_memory())?;
        Ok(Self { shared, links: &**links, id, request, _claim: claim, is_repeatable })
    }

    /// Returns the time for which the command waits for an owner of its slot.
    fn patience(&self) -> Duration {
        self.shared.ownership.lease() + TAKEOVER
    }

    async fn find_answer(&self) -> Found {
        let ownership = &self.shared.ownership;
        let _asking = ownership.asking();
        let owners = ownership.owners();
        let mut until = Instant::now() + self.patience();
        let mut may_be_recorded = false;
        let moved = |may_be_recorded: bool| {
            let execution = may_be_recorded.then(|| self.id.clone());
            Found::Refusal(Unavailable::Moved { execution })
        };
        loop {
            // noted from here on, also while an owner is asked
            let mut next_view = pin!(ownership.next_view());
            next_view.as_mut().enable();
            if ownership.serves(self.id) {
                return Found::Here;
            }
            let owner = owners.borrow().owner(slot_of(self.id));
            if let Some(node) = owner.filter(|node| Some(*node) != ownership.own()) {
                match self.ask(node, self.request.clone()).await {
                    Asked::Answered(first, exchange) => return Found::Answer { first, exchange },
                    Asked::NotTaken => {}
                    Asked::Lost if self.is_repeatable => {
                        may_be_recorded = true;
                        until = Instant::now() + self.patience();
                    }
                    Asked::Lost | Asked::Failed => return moved(true),
                    Asked::TooLarge if may_be_recorded => return moved(true),
                    Asked::TooLarge => return Found::Refusal(Unavailable::TooLarge),
                }
            }
            let is_over = !self.is_changed(next_view, until).await;
            if is_over || self.shared.ending.is_cancelled() {
                return moved(may_be_recorded);
            }
        }
    }

    /// Waits for the next view; returns false if there is none in time. While commands wait, views
    /// are more frequent than beats.
    async fn is_changed(&self, mut next_view: Pin<&mut Notified<'_>>, until: Instant) -> bool {
        let ownership = &self.shared.ownership;
        loop {
            let next = until.min(Instant::now() + ownership.refresh_interval());
            match timeout_at(next, next_view.as_mut()).await {
                Ok(()) => return true,
                Err(_) if next == until => return false,
                Err(_) => ownership.refresh(),
            }
        }
    }

    /// Sends the order to a member; returns its first message.
    async fn ask(&self, node: NodeId, request: Bytes) -> Asked {
        let mut exchange = self.links.open(node, request);
        let first = tokio::select! {
            first = exchange.next() => first,
            // its caller is answered before this process ends
            () = self.shared.ending.cancelled() => return Asked::Failed,
        };
        match first {
            Some(Ok(first)) => match Said::read(&first) {
                Some(Said::Elsewhere) => Asked::NotTaken,
                Some(_) | None => Asked::Answered(first, exchange),
            },
            Some(Err(LinkError::NotSent)) => Asked::NotTaken,
            Some(Err(LinkError::TooLarge)) => Asked::TooLarge,
            Some(Err(LinkError::Lost)) | None => Asked::Lost,
            Some(Err(LinkError::Failed)) => Asked::Failed,
        }
    }
}

enum Asked {
    Answered(Vec<u8>, Exchange),
    /// The member has done nothing.
    NotTaken,
    /// It cannot be sent to this member.
    TooLarge,
    /// It may have carried the order out.
    Lost,
    /// It may have carried the order out, and is not asked again: it would fail to answer, or this
    /// process ends.
    Failed,
}

/// Passes facts and progress on to a subscriber, until the execution ends or its owner is lost.
/// Facts that the subscriber has no room for are in the record, as for executions of this process.
async fn pass_facts(
    shared: &Shared,
    id: &ExecutionId,
    mut exchange: Exchange,
    subscriber: Subscriber,
) {
    let limits = &shared.limits;
    let subscribers = Subscribers::default();
    subscribers.add(subscriber);
    let mut prunes = interval(limits.passivate_after.max(PRUNE_MIN));
    while !subscribers.is_empty() {
        let message = tokio::select! {
            message = exchange.next() => message,
            _ = prunes.tick() => {
                subscribers.remove_disconnected();
                continue;
            }
        };
        let Some(Ok(message)) = message else { return };
        match Said::read(&message) {
            Some(Said::Facts(facts)) => {
                let batch = Arc::new(EventBatch::new(id.clone(), facts.into()));
                subscribers.publish_events(&batch, limits.subscriber_stall_timeout);
            }
            Some(Said::Progress(batch)) => subscribers.publish_progress(batch),
            // of another version
            _ => {}
        }
    }
}
