//! Generations of several processes over one store: any process cancels, forgets and attaches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use futures_util::FutureExt as _;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::Approval;
use greenroom_actors::agent::generation::{
    GenerationEvent, GenerationProgress, GenerationRequest, GenerationSubscriber,
};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::principal::FORGOTTEN;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use greenroom_actors::ports::model::{FinishReason, ModelEvent, Usage};
use greenroom_actors::ports::store::{AskFilter, Executions as _, GenerationStatus, Status};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{Principal, ResumeExecution, Unavailable};
use greenroom_actors::runtime::{CancelGenerationError, StreamedGeneration};
use greenroom_actors::testkit::{pass, registry_of};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{self, Effects, calls, decision, guarded, over_100};
use crate::generations::{Collector, piece, registry, request, slowly};
use crate::processes::{Cluster, LEASE, Process, TAKEN_OVER, target};
use crate::workflows::{ask, map, workflow};

/// Returns a registry whose agent `writer` answers slowly.
pub(crate) fn writers() -> Registry {
    let writers = registry(ScriptedModel::remote([slowly(), slowly(), slowly()]));
    let steps = vec![ask("manager"), ask("again"), map("after", json!("data"))];
    let workflows = registry_of([workflow("asks", steps)]).workflows;
    Registry { workflows, ..writers }
}

pub(crate) fn chat_of(user: &str) -> GenerationRequest {
    GenerationRequest { user_id: Some(user.to_owned()), ..request(true) }
}

impl Process {
    /// Starts a chat that continues without its client.
    pub(crate) async fn chat(&self, request: GenerationRequest) -> Arc<str> {
        let (subscriber, _client) = Collector::default().subscribe();
        let chat = self.runtime.stream_generation(request, subscriber).await.unwrap();
        let StreamedGeneration { id, .. } = &chat;
        Arc::clone(id)
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<(), CancelGenerationError> {
        self.runtime.cancel_generation("writer", id, &Visibility::Everything).await
    }

    async fn attach(&self, subscriber: GenerationSubscriber) -> Option<Arc<str>> {
        self.runtime.attach_to_chat("writer", None, "talk", subscriber).await
    }

    /// Returns the statuses of all generations, newest first.
    async fn statuses(&self) -> Vec<GenerationStatus> {
        let page = self.runtime.history("writer", &Visibility::Everything, 0, 10).await.unwrap();
        page.entries.into_iter().map(|entry| entry.record.status).collect()
    }
}

/// A subscriber that notes whether it was disconnected.
fn watched(subscriber: GenerationSubscriber) -> (GenerationSubscriber, Arc<AtomicBool>) {
    let is_disconnected = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&is_disconnected);
    let disconnect = Arc::new(move || noted.store(true, Ordering::Relaxed));
    (GenerationSubscriber { disconnect, ..subscriber }, is_disconnected)
}

#[actix::test]
async fn a_generation_is_cancelled_at_any_process() {
    let cluster = Cluster::linked_with(writers());
    let [first, second, third] = cluster.of(["a", "b", "c"]).await;
    let id = first.chat(chat_of("anna")).await;
    let not_found = |id: &str| Err(CancelGenerationError::NotFound(id.to_owned()));
    assert_eq!(second.cancel("nothing").await, not_found("nothing"));
    let of_ben = Visibility::Of("ben".into());
    let hidden = second.runtime.cancel_generation("writer", &id, &of_ben).await;
    assert_eq!(hidden, not_found(&id));
    let other = second.runtime.cancel_generation("editor", &id, &Visibility::Everything).await;
    assert_eq!(other, not_found(&id));
    assert_eq!(second.cancel(&id).await, Ok(()));
    assert_eq!(third.statuses().await, [GenerationStatus::Cancelled], "its end is durable");
    let status = GenerationStatus::Cancelled;
    let ended = Err(CancelGenerationError::Ended { id: id.to_string(), status });
    assert_eq!(third.cancel(&id).await, ended);
    assert_eq!(first.cancel(&id).await, ended);
}

#[actix::test]
async fn a_process_that_just_joined_is_asked_as_well() {
    let cluster = Cluster::linked_with(writers());
    let [first] = cluster.of(["a"]).await;
    let second = cluster.join("b").await;
    let id = second.chat(request(true)).await;
    assert_eq!(first.cancel(&id).await, Ok(()));
}

#[actix::test]
async fn a_generation_that_cannot_be_reached_is_not_said_to_be_cancelled() {
    let cluster = Cluster::linked_with(writers());
    let [first, second, third] = cluster.of(["a", "b", "c"]).await;
    let id = first.chat(request(true)).await;
    cluster.cut(&first, &second);
    let unreachable = Err(CancelGenerationError::Unavailable(Unavailable::Unreachable));
    assert_eq!(second.cancel(&id).await, unreachable);
    assert_eq!(third.cancel(&id).await, Ok(()), "this one reaches it");

    let id = first.chat(request(true)).await;
    first.kill().await;
    assert_eq!(third.cancel(&id).await, unreachable, "it may still run");
    pass(TAKEN_OVER).await;
    let status = GenerationStatus::Error;
    let ended = Err(CancelGenerationError::Ended { id: id.to_string(), status });
    assert_eq!(third.cancel(&id).await, ended, "it was interrupted");
}

#[actix::test]
async fn generations_of_a_process_that_is_gone_are_interrupted() {
    let cluster = Cluster::linked_with(writers());
    let [first, second] = cluster.of(["a", "b"]).await;
    let _of_first = first.chat(chat_of("anna")).await;
    pass(Duration::from_secs(1)).await;
    first.kill().await;
    pass(LEASE / 2).await;
    assert_eq!(second.statuses().await, [GenerationStatus::Working], "it is not known to be gone");
    let _of_second = second.chat(chat_of("ben")).await;
    pass(TAKEN_OVER).await;
    assert_eq!(second.statuses().await, [GenerationStatus::Working, GenerationStatus::Error]);
    pass(LEASE).await;
    assert_eq!(second.statuses().await, [GenerationStatus::Completed, GenerationStatus::Error]);
}

#[actix::test]
async fn a_user_is_forgotten_at_every_process() {
    let cluster = Cluster::linked_with(writers());
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("asks").await;
    let it = target("asks", &id);
    let by = Some(Principal::verified("anna"));
    let answer = ResumeExecution { data: json!({ "approved": 1 }), by, ..Default::default() };
    first.runtime.resume(&it, answer).await.unwrap();
    first.chat(chat_of("anna")).await;
    let by_name = async |process: &Process| {
        let state = process.runtime.describe(&it).await.unwrap();
        state.steps[0].resume.clone().unwrap().by.unwrap().id.to_string()
    };
    assert_eq!(by_name(&first).await, "anna");

    cluster.cut(&first, &second);
    assert_eq!(second.runtime.forget_user("anna").await, Err(Unavailable::Unreachable));
    assert_eq!(second.statuses().await, [GenerationStatus::Working], "nothing was forgotten");
    cluster.heal(&first, &second);
    assert_eq!(second.runtime.forget_user("anna").await, Ok(1));
    assert_eq!(by_name(&first).await, FORGOTTEN, "in the memory of the other process");
    pass(Duration::from_secs(20)).await;
    assert_eq!(second.statuses().await, [], "no later record brought the generation back");
}

#[actix::test]
async fn a_user_is_not_said_to_be_forgotten_while_another_process_has_its_answers_queued() {
    let cluster = Cluster::linked_with(writers());
    let [first, second] = cluster.of(["a", "b"]).await;
    let limits = RuntimeLimits::default();
    for (outage, is_forgotten) in
        [(limits.store_patience / 2, true), (limits.store_patience * 2, false)]
    {
        let id = first.start("asks").await;
        let (it, by) = (target("asks", &id), Some(Principal::verified("anna")));
        let answer = ResumeExecution { data: json!({ "approved": 1 }), by, ..Default::default() };
        let mut resumed = Box::pin(first.runtime.resume(&it, answer));
        assert!((&mut resumed).now_or_never().is_none(), "it was accepted");
        first.store.begin_outage();
        let ends = async {
            pass(outage).await;
            first.store.end_outage();
        };
        let forgotten = second.runtime.forget_user("anna");
        let (resumed, forgotten, ()) = tokio::join!(resumed, forgotten, ends);
        assert_eq!(resumed.is_ok(), is_forgotten, "{resumed:?}");
        assert_eq!(forgotten.is_ok(), is_forgotten, "{forgotten:?}");
        let facts = serde_json::to_string(&cluster.disk.facts(&id, 0, 100).await.unwrap()).unwrap();
        let names = (facts.contains(FORGOTTEN), facts.contains("anna"));
        assert_eq!(names, (is_forgotten, !is_forgotten), "{facts}");
    }
}

#[actix::test]
async fn a_chat_is_attached_to_at_any_process() {
    let cluster = Cluster::linked_with(writers());
    let processes = cluster.of(["a", "b", "c"]).await;
    let collectors = [(); 3].map(|()| Collector::default());
    let (other, _other) = Collector::default().subscribe();
    assert_eq!(processes[1].attach(other.clone()).await, None, "no chat runs");
    let id = processes[0].chat(request(true)).await;
    let mut readers = Vec::new();
    for (process, collector) in processes.iter().zip(&collectors) {
        let (subscriber, address) = collector.subscribe();
        let (subscriber, is_disconnected) = watched(subscriber);
        assert_eq!(process.attach(subscriber).await.as_deref(), Some(&*id));
        readers.push((address, is_disconnected));
        pass(Duration::from_secs(2)).await;
    }
    let hidden = processes[1].runtime.attach_to_chat("writer", Some("anna"), "talk", other.clone());
    assert_eq!(hidden.await, None, "the chat of another user");
    pass(Duration::from_secs(10)).await;
    for (collector, (_, is_disconnected)) in collectors.iter().zip(&readers) {
        assert_eq!(collector.text(), "ab");
        assert!(collector.last().unwrap().is_last());
        assert!(!is_disconnected.load(Ordering::Relaxed));
    }
    assert_eq!(processes[1].attach(other).await, None, "it has ended");
}

#[actix::test]
async fn a_process_that_drains_lets_readers_of_chats_elsewhere_read_to_the_end() {
    let cluster = Cluster::linked_with(writers());
    let [first, second] = cluster.of(["a", "b"]).await;
    first.chat(request(true)).await;
    let collector = Collector::default();
    let (subscriber, _reader) = collector.subscribe();
    second.attach(subscriber).await.unwrap();
    second.runtime.drain(Duration::from_secs(60)).await;
    assert_eq!(collector.text(), "ab");
    assert!(collector.last().unwrap().is_last());
}

#[actix::test]
async fn readers_of_a_chat_are_disconnected_when_its_process_is_lost() {
    let cluster = Cluster::linked_with(writers());
    let [first, second] = cluster.of(["a", "b"]).await;
    let read = async || {
        first.chat(request(true)).await;
        let collector = Collector::default();
        let (subscriber, reader) = collector.subscribe();
        let (subscriber, is_disconnected) = watched(subscriber);
        second.attach(subscriber).await.unwrap();
        pass(Duration::from_secs(1)).await;
        assert!(!is_disconnected.load(Ordering::Relaxed));
        (collector, reader, is_disconnected)
    };
    let (of_cut, _reader, is_disconnected) = read().await;
    cluster.cut(&first, &second);
    pass(Duration::from_millis(1)).await;
    assert!(is_disconnected.load(Ordering::Relaxed), "the link is lost");
    cluster.heal(&first, &second);
    let (of_killed, _reader, is_disconnected) = read().await;
    first.kill().await;
    pass(Duration::from_millis(1)).await;
    assert!(is_disconnected.load(Ordering::Relaxed), "the process is gone");
    assert_eq!((of_cut.text(), of_killed.text()), ("a".to_owned(), "a".to_owned()));
    let (subscriber, _reader) = Collector::default().subscribe();
    assert_eq!(second.attach(subscriber).await, None);
}

/// Takes one message and no other.
struct Stuck(Collector);

impl Actor for Stuck {
    type Context = Context<Self>;
}

impl Handler<GenerationProgress> for Stuck {
    type Result = ();

    #[expect(clippy::disallowed_methods, reason = "a closed mailbox is what slow readers have")]
    fn handle(&mut self, progress: GenerationProgress, ctx: &mut Context<Self>) {
        self.0.take(&progress);
        ctx.wait(std::future::pending().into_actor(self));
    }
}

#[actix::test]
async fn readers_of_a_chat_that_fall_behind_are_disconnected() {
    let words =
        (0..2_000).flat_map(|_| [piece("x"), ScriptedPiece::Pause(Duration::from_millis(10))]);
    let finish_reason = FinishReason::Stop;
    let finished = ModelEvent::Finished { usage: Usage::default(), finish_reason, served: None };
    let words = ScriptedAnswer::Pieces(words.chain([finished.into()]).collect());
    let cluster = Cluster::linked_with(registry(ScriptedModel::remote([words])));
    let [first, second] = cluster.of(["a", "b"]).await;
    first.chat(request(true)).await;
    let (stuck, quick) = (Collector::default(), Collector::default());
    let events = Stuck(stuck.clone()).start().recipient();
    let (slow, is_disconnected) =
        watched(GenerationSubscriber { events, disconnect: Arc::new(|| {}) });
    second.attach(slow).await.unwrap();
    let (subscriber, _quick) = quick.subscribe();
    let (subscriber, is_lost) = watched(subscriber);
    second.attach(subscriber).await.unwrap();
    pass(Duration::from_secs(60)).await;
    assert!(is_disconnected.load(Ordering::Relaxed));
    assert!(stuck.text().len() < 10 && !stuck.last().unwrap().is_last());
    assert!(!is_lost.load(Ordering::Relaxed), "the others are not held up");
    assert_eq!(quick.text().len(), 2_000);
    assert!(matches!(quick.last(), Some(GenerationEvent::Finish { .. })));
}

/// Waits for approvals of steps at two processes; returns these, and the executions.
async fn guarded_steps(approval: Approval) -> (Cluster, [Process; 2], [ExecutionId; 2]) {
    let called = || calls(&[("c1", "refund", json!({ "amount": 500 }))]);
    let done = || ScriptedAnswer::Text("done".to_owned());
    let model = ScriptedModel::local([called(), called(), done(), done()]);
    let registry = approvals::registry(&model, vec![guarded(&Effects::default(), approval)]);
    let cluster = Cluster::linked_with(registry);
    let [first, second] = cluster.of(["a", "b"]).await;
    let ids = [first.start("w").await, second.start("w").await];
    (cluster, [first, second], ids)
}

/// The process that takes an answer need not have the execution.
#[actix::test]
async fn a_step_whose_agent_was_answered_elsewhere_continues() {
    let (cluster, [first, _second], ids) = guarded_steps(over_100()).await;
    let open = AskFilter { is_open: true, ..AskFilter::default() };
    let asks = first.runtime.inbox(&open, None, 10).await.unwrap().asks;
    assert_eq!(asks.len(), 2);
    for ask in asks {
        let approved = decision(json!({ "approved": true }));
        first.runtime.answer_ask(ask, approved).await.unwrap();
    }
    pass(Duration::from_secs(1)).await;
    for id in &ids {
        assert_eq!(cluster.status(id).await, Status::Completed);
    }
}

/// One process ends asks by their deadlines, also those of executions that others have.
#[actix::test]
async fn a_step_whose_ask_has_expired_elsewhere_continues() {
    let approval = over_100().deadline(Duration::from_secs(60));
    let (cluster, _processes, ids) = guarded_steps(approval).await;
    pass(Duration::from_secs(70)).await;
    for id in &ids {
        assert_eq!(cluster.status(id).await, Status::Completed);
    }
}
