//! A process that is killed at any moment of the course of an approval: question, answer, tool, next
//! turn.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::tool::{ApprovalFunction, ToolBody, ToolDefinition, ToolError};
use greenroom_actors::agent::{AgentDefinition, Approval, CallApproval, Choice, OnCrash};
use greenroom_actors::domain::machine::MachineLimits;
use greenroom_actors::domain::message::{Message, Part, Role};
use greenroom_actors::ports::model::{
    FinishReason, LanguageModel, ModelAnswer, ModelError, ModelEvent, ModelRequest, ToolCall,
    ToolSpec, Usage,
};
use greenroom_actors::ports::store::{AskFilter, ConversationKey, GenerationStatus, PageSize};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{AnswerAsk, AskAccess};
use greenroom_actors::testkit::{World, pass};
use greenroom_actors::visibility::Visibility;
use greenroom_actors::{Runtime, RuntimeLimits};
use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::generations::Collector;
use crate::workflows::add_agent;

/// Moments at which the process is killed; the course takes about as many.
const MOMENTS: usize = 260;

/// Calls `pay` and `refund`, and says `paid` once it has both results; as an object, if it is asked for
/// one and for its repair.
struct Cashier;

impl Cashier {
    fn answer(request: &ModelRequest) -> ModelAnswer {
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let has_results = parts.clone().any(|part| matches!(part, Part::ToolResult(_)));
        let call = |id: &str, name: &str| ToolCall {
            tool_call_id: id.to_owned(),
            tool_name: name.to_owned(),
            input: json!({}),
        };
        match has_results {
            true => {
                let is_repair =
                    request.messages.iter().flat_map(|message| &message.parts).any(
                        |part| matches!(part, Part::Text { text } if text.contains("the schema")),
                    );
                let text = if is_repair { PAID } else { "paid" };
                ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() }
            }
            false => ModelAnswer {
                tool_calls: vec![call("c1", "pay"), call("c2", "refund")],
                ..ModelAnswer::default()
            },
        }
    }
}

impl LanguageModel for Cashier {
    fn name(&self) -> &str {
        "cashier"
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let ModelAnswer { text, tool_calls, .. } = Self::answer(&request);
        let said = (!text.is_empty()).then_some(ModelEvent::TextDelta(text));
        let calls = tool_calls.into_iter().map(ModelEvent::ToolCall);
        let finish_reason = FinishReason::Stop;
        let usage = Usage::default();
        let finished = ModelEvent::Finished { usage, finish_reason, served: None };
        let pieces: Vec<_> = said.into_iter().chain(calls).chain([finished]).map(Ok).collect();
        some_time().map(|()| stream::iter(pieces)).flatten_stream().boxed()
    }
}

/// The object that the agent is asked for in the end.
const PAID: &str = r#"{"paid":true}"#;

/// Takes some turns of the scheduler.
async fn some_time() {
    for _ in 0..8 {
        yield_now().await;
    }
}

/// Keys under which tools have had their effects.
type Effects = Arc<Mutex<Vec<String>>>;

fn tool(name: &str, effects: &Effects) -> ToolDefinition {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
    };
    let effects = Arc::clone(effects);
    let body = ToolBody::Function(Arc::new(move |_, context| {
        effects.lock().unwrap().push(context.idempotency_key);
        async {
            some_time().await;
            Ok(json!("done"))
        }
        .boxed()
    }));
    ToolDefinition::new(spec, body).unwrap()
}

fn registry(effects: &Effects) -> Registry {
    let mut registry = Registry::default();
    let refund = tool("refund", effects);
    let refund = ToolDefinition { approval: Some(Arc::new(Approval::always())), ..refund };
    for tool in [tool("pay", effects), refund] {
        registry.tools.insert(tool.spec.name.clone(), Arc::new(tool));
    }
    let agent = AgentDefinition {
        memory: true,
        tools: Choice::Fixed(vec!["pay".to_owned(), "refund".to_owned()]),
        is_resumable: true,
        ..AgentDefinition::default()
    };
    add_agent(&mut registry, "desk", Cashier, agent);
    registry
}

/// Approves what is asked, until the process ends.
async fn approve(runtime: Runtime) {
    loop {
        let filter = AskFilter { is_open: true, ..AskFilter::default() };
        let open = runtime.inbox(&filter, None, 10).await.unwrap().asks;
        for ask in open {
            let data = json!({ "approved": true });
            let access = AskAccess::default();
            let answer = AnswerAsk { data, by: None, access, idempotency: None };
            // answered already
            drop(runtime.answer_ask(ask, answer).await);
        }
        some_time().await;
    }
}

async fn run_for(world: &World, moments: usize) {
    let person = actix::spawn(approve(world.runtime.clone()));
    for _ in 0..moments {
        yield_now().await;
    }
    person.abort();
}

/// Returns the texts of the assistant in the conversation.
async fn said(world: &World) -> Vec<String> {
    let key = ConversationKey {
        agent_id: Arc::from("desk"),
        user_id: None,
        conversation_id: Arc::from("talk"),
    };
    let messages =
        world.runtime.conversations().messages(&key, None, PageSize::of(10)).await.unwrap();
    let said = messages.into_iter().filter(|message| message.role == Role::Assistant);
    let texts = said.flat_map(|message| message.parts).filter_map(|part| match part {
        Part::Text { text } => Some(text),
        _ => None,
    });
    texts.collect()
}

#[actix::test]
async fn a_killed_process_makes_each_call_under_one_key_and_says_its_words_once() {
    kill_at_every_moment(None, "paid").await;
}

#[actix::test]
async fn a_killed_process_repairs_its_object_without_making_calls_again() {
    kill_at_every_moment(Some(json!({ "type": "object" })), PAID).await;
}

async fn kill_at_every_moment(schema: Option<Value>, last_words: &str) {
    tokio::time::pause();
    let mut completed = 0;
    for moment in 0..MOMENTS {
        let effects = Effects::default();
        let machine = MachineLimits { crash_attempts: 10, ..MachineLimits::default() };
        let limits = RuntimeLimits { machine, ..RuntimeLimits::default() };
        let mut world = World::launch(registry(&effects), limits).await;
        let (runtime, schema) = (world.runtime.clone(), schema.clone());
        let begun = actix::spawn(async move {
            let (subscriber, address) = Collector::default().subscribe();
            let request = GenerationRequest {
                agent_id: "desk".to_owned(),
                messages: vec![Message::text(Role::User, "pay")],
                conversation_id: Some("talk".to_owned()),
                is_chat: true,
                schema,
                ..GenerationRequest::default()
            };
            drop(runtime.stream_generation(request, subscriber).await);
            drop(address);
        });
        // a second kill may meet what the first one has left
        for moments in [moment, moment % 61] {
            run_for(&world, moments).await;
            begun.abort();
            world = world.restart().await;
        }
        run_for(&world, 400).await;
        pass(Duration::from_secs(1)).await;
        let all = &Visibility::Everything;
        let page = world.runtime.history("desk", all, 0, 10).await.unwrap();
        let Some(entry) = page.entries.first() else {
            assert_eq!(*effects.lock().unwrap(), [""; 0], "at {moment}");
            continue;
        };
        let keys = effects.lock().unwrap().clone();
        let distinct: BTreeSet<_> = keys.iter().collect();
        match entry.record.status {
            // killed before the model had answered: nothing was done
            GenerationStatus::Error => assert_eq!(keys, [""; 0], "at {moment}"),
            GenerationStatus::Completed => {
                completed += 1;
                assert_eq!(distinct.len(), 2, "at {moment}: {keys:?}");
                assert_eq!(said(&world).await, [last_words], "at {moment}");
            }
            status => panic!("at {moment}: {status:?}, {keys:?}"),
        }
    }
    assert!(completed > MOMENTS / 2, "{completed}");
}

/// A tool that asks for the approval of its change, which counts for later calls once it is `accepted`.
fn changed(effects: &Effects, accepted: &Arc<AtomicBool>) -> ToolDefinition {
    let spec = ToolSpec {
        name: "pay".to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
    };
    let (effects, known, accepted) =
        (Arc::clone(effects), Arc::clone(accepted), Arc::clone(accepted));
    let body = ToolBody::Function(Arc::new(move |_, context| {
        if !known.load(Ordering::Relaxed) {
            let needed = CallApproval {
                reason: "It is v2 now".to_owned(),
                subject: Arc::from("v2"),
                to: Vec::new(),
                deadline: None,
                permission: None,
            };
            return async { Err(ToolError::NeedsApproval(Box::new(needed))) }.boxed();
        }
        effects.lock().unwrap().push(context.idempotency_key);
        async { Ok(json!("done")) }.boxed()
    }));
    let on_approval: ApprovalFunction = Arc::new(move |subject| {
        assert_eq!(&*subject, "v2");
        let accepted = Arc::clone(&accepted);
        async move {
            some_time().await;
            accepted.store(true, Ordering::Relaxed);
            some_time().await;
            Ok(())
        }
        .boxed()
    });
    let made = ToolDefinition::new(spec, body).unwrap();
    ToolDefinition { on_approval: Some(on_approval), on_crash: OnCrash::Tell, ..made }
}

/// The call has not begun before its approval counts: a kill before that interrupts nothing.
#[actix::test]
async fn an_approval_that_a_tool_asked_for_counts_although_the_process_is_killed() {
    tokio::time::pause();
    let (mut begun, mut answered) = (0, 0);
    for moment in 0..160 {
        let (effects, accepted) = (Effects::default(), Arc::new(AtomicBool::default()));
        let mut registry = Registry::default();
        registry.tools.insert("pay".to_owned(), Arc::new(changed(&effects, &accepted)));
        let agent = AgentDefinition {
            tools: Choice::Fixed(vec!["pay".to_owned()]),
            is_resumable: true,
            ..AgentDefinition::default()
        };
        add_agent(&mut registry, "desk", Cashier, agent);
        let world = World::launch(registry, RuntimeLimits::default()).await;
        let (runtime, (subscriber, address)) =
            (world.runtime.clone(), Collector::default().subscribe());
        let request = GenerationRequest {
            agent_id: "desk".to_owned(),
            messages: vec![Message::text(Role::User, "pay")],
            ..GenerationRequest::default()
        };
        drop(runtime.stream_generation(request, subscriber).await);
        pass(Duration::from_secs(1)).await;
        drop(address);
        let open = AskFilter { is_open: true, ..AskFilter::default() };
        let ask = world.runtime.inbox(&open, None, 10).await.unwrap().asks.remove(0);
        let person = actix::spawn({
            let (runtime, ask) = (world.runtime.clone(), ask.clone());
            async move {
                let data = json!({ "approved": true });
                let access = AskAccess::default();
                runtime
                    .answer_ask(ask, AnswerAsk { data, by: None, access, idempotency: None })
                    .await
            }
        });
        for _ in 0..moment {
            yield_now().await;
        }
        let is_answered = person.is_finished();
        person.abort();
        let was_accepted = accepted.load(Ordering::Relaxed);
        let world = world.restart().await;
        run_for(&world, 400).await;
        pass(Duration::from_secs(1)).await;
        assert!(accepted.load(Ordering::Relaxed), "at {moment}");
        let made = effects.lock().unwrap().len();
        assert!(made <= 1, "at {moment}");
        if is_answered && !was_accepted {
            answered += 1;
            assert_eq!(made, 1, "at {moment}");
        }
        begun += made;
    }
    assert!(begun > 140 && answered > 0, "{begun}, {answered}");
}
