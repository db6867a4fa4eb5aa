//! Requests of other members, carried out by this process.

use std::sync::{Arc, Weak};

use actix::ArbiterHandle;
use futures_util::future::ready;
use futures_util::stream::{BoxStream, StreamExt as _, empty, once};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::cluster::feed_relay::relay_feed;
use crate::cluster::order::{AnswerTime, Control, Order, OrderedCommand};
use crate::cluster::relay::{Facts, relay_events, relay_facts};
use crate::cluster::request::Request;
use crate::cluster::said::{write_answer, write_elsewhere};
use crate::commands::{
    Answer, ControlCommand, ExecutionCommand, ResumeCommand, StartAnswer, StartCommand,
    StartRefusal,
};
use crate::domain::cluster::NodeId;
use crate::domain::fact::Start;
use crate::domain::footprint;
use crate::domain::ids::ExecutionId;
use crate::ports::links::Answerer;
use crate::ports::store::{IdempotencyRecord, read_stored};
use crate::requests::{ControlError, Subscriber, Unavailable, is_refused_as};
use crate::shared::Shared;

/// Messages of one exchange.
type Messages = BoxStream<'static, Vec<u8>>;

/// Carries out requests of other members.
pub(crate) struct Answers {
    /// Weak: `Shared` owns the links, which own this.
    shared: Weak<Shared>,
    /// The thread of relays.
    arbiter: ArbiterHandle,
}

impl Answers {
    pub(crate) fn new(shared: &Arc<Shared>, arbiter: ArbiterHandle) -> Self {
        Self { shared: Arc::downgrade(shared), arbiter }
    }
}

impl Answerer for Answers {
    fn answer(&self, from: NodeId, request: Vec<u8>) -> Messages {
        let Some(shared) = self.shared.upgrade() else { return empty().boxed() };
        let request = match read_stored(&request) {
            Ok(request) => request,
            Err(error) => {
                log::error!("a request of another server (node {from}) is not understood: {error}");
                return said(write_elsewhere());
            }
        };
        let receiver = Receiver { shared, arbiter: self.arbiter.clone() };
        once(async move { receiver.carry_out(request).await }).flatten().boxed()
    }
}

/// Returns a single message.
fn said(message: Vec<u8>) -> Messages {
    once(ready(message)).boxed()
}

/// Returns an answer as a single message.
fn answered<T: Serialize, E: Serialize>(answer: &Result<T, E>) -> Messages {
    said(write_answer(answer))
}

/// The receiver of one request.
struct Receiver {
    shared: Arc<Shared>,
    arbiter: ArbiterHandle,
}

impl Receiver {
    async fn carry_out(self, request: Request) -> Messages {
        let shared = &self.shared;
        match request {
            Request::Order(order) => self.carry_out_order(order).await,
            Request::CancelGeneration { agent, generation, visibility } => {
                let cancelled = shared.cancel_here(&agent, &generation, &visibility).await;
                answered(&cancelled)
            }
            Request::ForgetUser { user, .. } => answered(&shared.forget_here(&user).await),
            Request::Activity => answered(&Ok::<_, Unavailable>(shared.activity_here())),
            Request::Stuck => answered(&Ok::<_, Unavailable>(shared.stuck_here())),
            Request::FollowChat(key) => {
                let (subscriber, events) = relay_events(&self.arbiter);
                let chat = shared.attach_here(&key, subscriber).await;
                let first = answered(&Ok::<_, Unavailable>(chat));
                first.chain(events.messages()).boxed()
            }
            Request::FollowFeed(wish) => {
                let (observer, observed) = relay_feed(&self.arbiter, &shared.feed, wish);
                let id = shared.feed.observe(observer).await;
                let first = answered(&Ok::<_, Unavailable>(()));
                first.chain(observed.messages(id)).boxed()
            }
        }
    }

    async fn carry_out_order(self, order: Order) -> Messages {
        let Order { execution: id, command } = order;
        let ownership = &self.shared.ownership;
        let is_leaving = self.shared.ending.is_cancelled();
        if is_leaving || !ownership.serves(&id) || !ownership.is_believed() {
            return said(write_elsewhere());
        }
        match command {
            OrderedCommand::Start { start, idempotency, answered, streams, progress } => {
                let (subscriber, facts) =
                    streams.then(|| relay_facts(&self.arbiter, progress)).unzip();
                let first = self.start(id, start, idempotency, answered, subscriber).await;
                followed(first, facts)
            }
            OrderedCommand::Suspend(control) => {
                self.answer(id, |answer| ExecutionCommand::Suspend(with_answer(control, answer)))
                    .await
            }
            OrderedCommand::Cancel(control) => {
                self.answer(id, |answer| ExecutionCommand::Cancel(with_answer(control, answer)))
                    .await
            }
            OrderedCommand::Resume { subject, resume, idempotency } => {
                let command = |answer| {
                    let command = ResumeCommand { subject, resume, idempotency, answer };
                    ExecutionCommand::Resume(Box::new(command))
                };
                self.answer(id, command).await
            }
            OrderedCommand::PassResume { subject, resume, idempotency, access } => {
                let command = |answer| ExecutionCommand::PassResume {
                    subject: Some(subject),
                    resume,
                    idempotency,
                    access: *access,
                    answer,
                };
                self.answer(id, command).await
            }
            OrderedCommand::AwaitOutcome { subject, after_seq } => {
                let command =
                    |answer| ExecutionCommand::AwaitOutcome { subject, after_seq, answer };
                self.answer(id, command).await
            }
            OrderedCommand::Why { subject } => {
                self.answer(id, |answer| ExecutionCommand::Why { subject, answer }).await
            }
            OrderedCommand::Subscribe { subject, progress } => {
                let (subscriber, facts) = relay_facts(&self.arbiter, progress);
                let command = |answer| ExecutionCommand::Subscribe { subject, subscriber, answer };
                followed(self.ask(id, command).await, Some(facts))
            }
        }
    }

    /// Starts an execution; returns the message with the answer, as [`Self::ask`] does.
    async fn start(
        &self,
        id: ExecutionId,
        start: Box<Start>,
        idempotency: Option<IdempotencyRecord>,
        answered: AnswerTime,
        subscriber: Option<Subscriber>,
    ) -> Option<Vec<u8>> {
        let shared = &self.shared;
        let refused = |why: Unavailable| Some(write_answer(&Err::<(), _>(StartRefusal::from(why))));
        let plan = match shared.plan(&start.definition_hash).await {
            Ok(plan) => plan,
            Err(why) => return refused(why),
        };
        if shared.is_draining() {
            return Some(write_elsewhere());
        }
        let Some(claim) = shared.memory.claim(footprint::of_start(&start)) else {
            return refused(shared.no_memory());
        };
        let command = |answer| {
            let (chosen_id, subscriber) = (true, subscriber);
            let command =
                StartCommand { plan, start, chosen_id, idempotency, subscriber, claim, answer };
            ExecutionCommand::Start(Box::new(command))
        };
        match answered {
            AnswerTime::OnSettled => {
                self.ask(id, |answer| command(StartAnswer::OnSettled(answer))).await
            }
            AnswerTime::AtStart => {
                self.ask(id, |answer| command(StartAnswer::AtStart(answer))).await
            }
        }
    }

    /// Sends a command to the execution; returns the answer, which nothing follows.
    async fn answer<T: Serialize, E: Serialize + From<Unavailable> + PartialEq>(
        &self,
        id: ExecutionId,
        command: impl FnOnce(Answer<T, E>) -> ExecutionCommand,
    ) -> Messages {
        followed(self.ask(id, command).await, None)
    }

    /// Sends a command to the execution; returns the message with the answer. `None` if this process
    /// may have carried it out and will not know the outcome: it ends, or its slot was given away.
    async fn ask<T: Serialize, E: Serialize + From<Unavailable> + PartialEq>(
        &self,
        id: ExecutionId,
        command: impl FnOnce(Answer<T, E>) -> ExecutionCommand,
    ) -> Option<Vec<u8>> {
        let (answer, reply) = oneshot::channel();
        self.shared.deliver(id.clone(), command(answer));
        let answer = match reply.await {
            Ok(answer) => answer,
            Err(_) if self.shared.is_draining() => return None,
            Err(_) => Err(Unavailable::ActorLost.into()),
        };
        match Carried::of(&answer, id) {
            Carried::Out => Some(write_answer(&answer)),
            Carried::Not => Some(write_elsewhere()),
            Carried::Perhaps => None,
        }
    }
}

/// Consequence of a command, as its answer shows it.
#[derive(Debug, PartialEq, Eq)]
enum Carried {
    Out,
    /// The slot was given away, or this process ends, before.
    Not,
    /// The same happened afterwards.
    Perhaps,
}

impl Carried {
    fn of<T, E: From<Unavailable> + PartialEq>(answer: &Result<T, E>, id: ExecutionId) -> Self {
        let is_about = |execution: Option<ExecutionId>| {
            let moved = Unavailable::Moved { execution: execution.clone() };
            is_refused_as(answer, moved)
                || is_refused_as(answer, Unavailable::Draining { execution })
        };
        if is_about(None) {
            Self::Not
        } else if is_about(Some(id)) {
            Self::Perhaps
        } else {
            Self::Out
        }
    }
}

/// Returns the answer, and the facts after it. Without an answer, the exchange ends, by which the
/// other member knows that the outcome is unknown here.
fn followed(first: Option<Vec<u8>>, facts: Option<Facts>) -> Messages {
    let Some(first) = first else { return empty().boxed() };
    once(ready(first)).chain(facts.map_or_else(|| empty().boxed(), Facts::messages)).boxed()
}

fn with_answer<T>(control: Control, answer: Answer<T, ControlError>) -> ControlCommand<T> {
    let Control { subject, reason, by } = control;
    ControlCommand { subject, reason, by, answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_its_command_was_carried_out() {
        let id = || ExecutionId::trusted("e");
        let refusals = [
            (Unavailable::Moved { execution: None }, Carried::Not),
            (Unavailable::Draining { execution: None }, Carried::Not),
            (Unavailable::Moved { execution: Some(id()) }, Carried::Perhaps),
            (Unavailable::Draining { execution: Some(id()) }, Carried::Perhaps),
            (Unavailable::Busy { execution: None }, Carried::Out),
            (Unavailable::Busy { execution: Some(id()) }, Carried::Out),
        ];
        for (why, carried) in refusals {
            let answer = Err::<(), _>(ControlError::from(why.clone()));
            assert_eq!(Carried::of(&answer, id()), carried, "{why:?}");
        }
        assert_eq!(Carried::of(&Ok::<_, ControlError>(()), id()), Carried::Out);
    }
}
