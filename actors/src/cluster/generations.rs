//! Generations of this process and of other members: they run at the member that was asked for them,
//! whatever slots it serves.

use std::sync::Arc;

use actix::Addr;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::time::{interval, timeout};

use crate::agent::event::{GenerationEvent, GenerationProgress, GenerationSubscriber};
use crate::agent::generation::actor::{
    CancelGeneration, ForgetUserOfGeneration, GenerationActor, SubscribeToGeneration,
};
use crate::cluster::forward::PRUNE_MIN;
use crate::cluster::request::{MemberAnswer, Request};
use crate::cluster::said::Said;
use crate::limits::RuntimeLimits;
use crate::ports::links::Exchange;
use crate::ports::store::ConversationKey;
use crate::requests::Unavailable;
use crate::shard::messages::ForgetUser;
use crate::shared::{Shard, Shared};
use crate::visibility::Visibility;

impl Shared {
    /// Cancels a generation of this process, if it is visible; resolves when its end is durable.
    /// Returns true if it was live.
    pub(crate) async fn cancel_here(
        &self,
        agent: &str,
        generation: &str,
        visibility: &Visibility,
    ) -> Result<bool, Unavailable> {
        let deps = self.generations.get();
        let live = deps.and_then(|deps| deps.live.find(agent, generation, visibility));
        let Some(actor) = live else { return Ok(false) };
        self.unless_outage(None, cancelled(actor)).await?;
        Ok(true)
    }

    /// Cancels a generation of another member; resolves when its end is durable. Returns true if it
    /// was live.
    pub(crate) async fn cancel_elsewhere(
        &self,
        agent: &str,
        generation: &str,
        visibility: &Visibility,
    ) -> Result<bool, Unavailable> {
        let (agent, generation) = (agent.to_owned(), generation.to_owned());
        let request =
            Request::CancelGeneration { agent, generation, visibility: visibility.clone() };
        let time = self.time_to_record();
        let mut none = Vec::new();
        // those that the newest view shows, and then those that it did not show yet
        for is_sure in [false, true] {
            let mut asked = match is_sure {
                false => self.other_members(),
                true => self.other_members_by_now().await?,
            };
            asked.retain(|node| !none.contains(node));
            let answers: Vec<MemberAnswer<Result<bool, Unavailable>>> =
                self.ask_members(&asked, &request, time).await?;
            let mut is_unreachable = false;
            for (node, answer) in asked.into_iter().zip(answers) {
                match answer.map(|(answer, _)| answer) {
                    Some(Ok(false)) => none.push(node),
                    Some(known) => return known,
                    None => is_unreachable = true,
                }
            }
            if is_sure && is_unreachable {
                return Err(Unavailable::Unreachable);
            }
        }
        Ok(false)
    }

    /// Erases a user from the memory of this process, and first from its generations, whose records
    /// would restore deleted data: those for which a step waits continue without the user, the others
    /// are cancelled. Resolves when what this process had queued for the store is stored.
    pub(crate) async fn forget_here(&self, user: &Arc<str>) -> Result<(), Unavailable> {
        if let Some(deps) = self.generations.get() {
            let running = deps.live.of_user(user).into_iter().map(forgotten);
            self.unless_outage(None, join_all(running)).await?;
        }
        if let Some(routes) = self.routes.get() {
            let forget = |shard: &Shard| shard.forget.send(ForgetUser(Arc::clone(user)));
            join_all(routes.shards.iter().map(forget)).await;
        }
        self.feed.forget_user(Arc::clone(user)).await;
        // facts that are queued may name the user, and would come behind the erasure
        self.unless_outage(None, self.store.settled()).await??;
        Ok(())
    }

    /// Erases the user of a generation of this process. Returns true if it runs on without the user.
    pub(crate) async fn forget_user_of(&self, generation: &str) -> Result<bool, Unavailable> {
        let Some(deps) = self.generations.get() else { return Ok(false) };
        let Some(actor) = deps.live.actor(generation) else { return Ok(false) };
        self.unless_outage(None, forgotten(actor)).await?;
        Ok(deps.live.actor(generation).is_some())
    }

    /// Erases a user from the memory of every process, as [`Self::forget_here`] does.
    pub(crate) async fn forget_everywhere(&self, user: &Arc<str>) -> Result<(), Unavailable> {
        let others = self.other_members_by_now().await?;
        let request = Request::ForgetUser { user: Arc::clone(user), generations: true };
        let asked = self.ask_members(&others, &request, self.time_to_record());
        let (here, others) = tokio::join!(self.forget_here(user), asked);
        here?;
        let answers: Vec<MemberAnswer<Result<(), Unavailable>>> = others?;
        for answer in answers {
            answer.ok_or(Unavailable::Unreachable)?.0?;
        }
        Ok(())
    }

    /// Adds a subscriber to the chat that runs in a conversation at this process; returns the
    /// generation's id, or `None` if there is none that takes it.
    pub(crate) async fn attach_here(
        &self,
        key: &ConversationKey,
        subscriber: GenerationSubscriber,
    ) -> Option<Arc<str>> {
        let chat = self.generations.get()?.live.chat(key)?;
        // fails if the chat ends in the meantime
        chat.send(SubscribeToGeneration(subscriber)).await.ok().flatten()
    }

    /// Finds the chat that runs in a conversation at another member; returns its generation's id,
    /// and its events.
    pub(crate) async fn find_chat_elsewhere(
        &self,
        key: &ConversationKey,
    ) -> Option<(Arc<str>, Exchange)> {
        let request = Request::FollowChat(key.clone()).write().ok()?;
        let members = self.other_members();
        let lease = self.ownership.lease();
        let asked = members.iter().map(|node| {
            self.ask_member::<Result<Option<Arc<str>>, Unavailable>>(*node, request.clone(), lease)
        });
        let mut answers: FuturesUnordered<_> = asked.collect();
        while let Some(answer) = answers.next().await {
            if let Some((Ok(Some(id)), exchange)) = answer {
                return Some((id, exchange));
            }
        }
        None
    }
}

/// Passes the events of a generation of another member on to a subscriber. It is disconnected if it
/// stalls, and if the events end before the last one: a gap could not be filled.
pub(crate) fn pass_events(
    mut events: Exchange,
    subscriber: GenerationSubscriber,
    limits: &RuntimeLimits,
) -> impl Future<Output = ()> + Send + use<> {
    let (every, stall) = (limits.passivate_after, limits.subscriber_stall_timeout);
    async move {
        let mut prunes = interval(every.max(PRUNE_MIN));
        loop {
            let message = tokio::select! {
                message = events.next() => message.and_then(Result::ok),
                _ = prunes.tick() => {
                    if subscriber.events.connected() { continue } else { return }
                }
            };
            let Some(Said::Events(events)) = message.as_deref().and_then(Said::read) else {
                return (subscriber.disconnect)();
            };
            let is_last = events.last().is_some_and(GenerationEvent::is_last);
            let taken = subscriber.events.send(GenerationProgress(events.into()));
            match timeout(stall, taken).await {
                Ok(Ok(())) if !is_last => {}
                // it has all of them, or is gone
                Ok(_) => return,
                Err(_) => return (subscriber.disconnect)(),
            }
        }
    }
}

/// Cancels a generation and waits until its end is durable.
async fn cancelled(actor: Addr<GenerationActor>) {
    let (ended, end) = oneshot::channel();
    // fails if the generation ends in the meantime
    let _ = actor.send(CancelGeneration { ended: Some(ended) }).await;
    // resolves when the actor drops the sender
    let _ = end.await;
}

/// Erases the user of a generation, and waits until nothing of the user is recorded any longer.
async fn forgotten(actor: Addr<GenerationActor>) {
    let (done, is_done) = oneshot::channel();
    // fails if the generation ends in the meantime
    let _ = actor.send(ForgetUserOfGeneration { done }).await;
    // resolves when the actor drops the sender
    let _ = is_done.await;
}
