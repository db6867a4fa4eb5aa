//! A resolved run, before it starts.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::agent::AgentDefinition;
use crate::agent::generation::active::ActiveGuard;
use crate::agent::generation::memory::{CONTEXT_LIMIT_DEFAULT, CONTEXT_LIMIT_MAX, Sent};
use crate::agent::generation::recording::Recording;
use crate::agent::generation::subscribers::{Replay, Subscribers};
use crate::agent::generation::turn::choices;
use crate::agent::generation::{
    Begins, GenerateError, GenerationDeps, GenerationRequest, GenerationSubscriber,
};
use crate::domain::message::Message;
use crate::domain::trace::{EntityType, RootRow, Trace};
use crate::observe::log_record::LogScope;
use crate::ports::model::{LanguageModel, ModelOptions, ToolChoice, ToolSpec};
use crate::ports::store::{ConversationKey, GenerationRecord, GenerationStatus, Row};
use crate::requests::{Unavailable, operation_context};

use super::Outcome;

/// A run that has not started, ready to be sent to its thread.
pub(in crate::agent::generation) struct Start {
    pub(in crate::agent::generation) deps: GenerationDeps,
    pub(super) agent: Arc<AgentDefinition>,
    pub(super) model: Arc<dyn LanguageModel>,
    pub(super) id: Arc<str>,
    pub(super) input: RunInput,
    pub(super) record: GenerationRecord,
    /// Row of the record.
    pub(super) row: Row,
    pub(super) recording: Recording,
    pub(super) active: ActiveGuard,
    pub(super) begin: Option<oneshot::Sender<()>>,
    pub(super) answer: oneshot::Sender<Outcome>,
    /// Ids attached to log records of the run.
    scope: Arc<LogScope>,
    subscriber: Option<GenerationSubscriber>,
    is_resumable_chat: bool,
    /// True if the caller chose the id, which may then be taken.
    pub(super) is_id_chosen: bool,
    pub(super) begins: Begins,
}

/// Input of a run.
pub(in crate::agent::generation) struct RunInput {
    pub(super) messages: Vec<Message>,
    pub(super) sent: Sent,
    pub(super) options: ModelOptions,
    pub(super) schema: Option<Value>,
    pub(super) client_tools: Arc<[ToolSpec]>,
    pub(super) tool_choice: ToolChoice,
    pub(super) object_repairs: Option<u32>,
    pub(super) max_steps: Option<u32>,
    pub(super) context_limit: u32,
    pub(super) context: Arc<Map<String, Value>>,
    pub(super) depth: u32,
    pub(super) continues: bool,
    pub(super) parent: Option<Arc<str>>,
    pub(super) is_chat: bool,
}

/// Returns the model that the agent chooses for this context.
fn model_of(
    deps: &GenerationDeps,
    agent: &AgentDefinition,
    context: &Map<String, Value>,
) -> Result<Arc<dyn LanguageModel>, GenerateError> {
    let name = choices::model(&deps.compiled, agent, context)?;
    let model = deps.registry.models.get(&*name).cloned();
    model.ok_or_else(|| GenerateError::Failed(format!("model {name} is not registered")))
}

impl Start {
    /// Looks up the agent and its model.
    pub(in crate::agent::generation) fn resolve(
        deps: GenerationDeps,
        mut request: GenerationRequest,
        id: String,
        subscriber: Option<GenerationSubscriber>,
        begin: oneshot::Sender<()>,
        answer: oneshot::Sender<Outcome>,
    ) -> Result<Self, GenerateError> {
        let Some(agent) = deps.registry.agents.get(&request.agent_id).cloned() else {
            return Err(GenerateError::UnknownAgent(request.agent_id));
        };
        request.check_depth(deps.tool_limits.value_depth_max)?;
        let is_resumable_chat = request.is_resumable_chat(&agent);
        let (is_id_chosen, begins) = (request.chosen_id.is_some(), request.begins);
        let (sent, context_limit) = (Sent::of(&request), context_limit(&request));
        let (user, conversation) = (request.user_id.as_deref(), request.conversation_id.as_deref());
        let context = operation_context(std::mem::take(&mut request.context), user, conversation);
        let model = model_of(&deps, &agent, &context)?;
        let active = deps.active.enter(&request.agent_id);
        let row = deps.generations.next_generation_row().ok_or_else(Unavailable::no_rows)?;
        let agent_id = Arc::from(request.agent_id.as_str());
        let trace = Trace::of(&id, EntityType::Agent, &agent_id, request.trace)
            .anchored(RootRow::Generation(row));
        let record = GenerationRecord {
            agent_id: request.agent_id,
            status: GenerationStatus::Working,
            start_time: deps.clock.now(),
            end_time: None,
            input: request.input,
            output: None,
            usage: None,
            error: None,
            user_id: request.user_id,
            conversation_id: request.conversation_id,
            origin: request.origin,
            trace,
            id,
        };
        let input = RunInput {
            messages: request.messages,
            sent,
            options: request.options,
            schema: request.schema,
            client_tools: request.client_tools,
            tool_choice: request.tool_choice,
            object_repairs: request.object_repairs,
            max_steps: request.max_steps,
            context_limit,
            context: Arc::new(context),
            depth: request.depth,
            continues: request.continues,
            parent: request.parent,
            is_chat: request.is_chat,
        };
        let id = Arc::from(record.id.as_str());
        let scope = scope_of(&record, &id);
        let begin = (subscriber.is_some() || begins == Begins::OnceRecorded).then_some(begin);
        Ok(Self {
            deps,
            agent,
            model,
            id,
            input,
            record,
            row,
            recording: Recording::default(),
            active,
            begin,
            answer,
            scope,
            subscriber,
            is_resumable_chat,
            is_id_chosen,
            begins,
        })
    }

    pub(in crate::agent::generation) fn id(&self) -> Arc<str> {
        Arc::clone(&self.id)
    }

    pub(in crate::agent::generation) fn recording(&self) -> Recording {
        self.recording.clone()
    }

    /// Returns true if a step waits for the run, or for the generation that has asked for it.
    pub(in crate::agent::generation) fn is_for_step(&self) -> bool {
        let is_in_execution = self.record.trace.root_type == EntityType::Workflow;
        self.record.origin.is_some() || self.input.parent.is_some() && is_in_execution
    }

    pub(in crate::agent::generation) fn scope(&self) -> Arc<LogScope> {
        Arc::clone(&self.scope)
    }

    /// Takes the subscriber of the start. Called once.
    pub(in crate::agent::generation) fn subscribers(&mut self) -> Subscribers {
        let replay = self.is_resumable_chat.then(|| Replay::new(self.deps.bytes_max));
        let is_of_step = self.record.origin.is_some();
        Subscribers::new(self.subscriber.take(), replay, self.is_resumable_chat || is_of_step)
    }

    /// Returns the conversation of a resumable chat.
    pub(super) fn resumable_chat(&self) -> Option<ConversationKey> {
        if self.is_resumable_chat { conversation_key(&self.record) } else { None }
    }
}

/// Returns the log ids of the generation, added to those of the surrounding request or execution.
fn scope_of(record: &GenerationRecord, id: &Arc<str>) -> Arc<LogScope> {
    let around = LogScope::current().unwrap_or_default();
    let execution = record.origin.as_ref().map(|origin| origin.execution_id.clone());
    Arc::new(LogScope {
        trace_id: Some(Arc::clone(&record.trace.id)),
        span_id: Some(record.trace.span(&[id])),
        root_type: Some(record.trace.root_type),
        root_id: Some(Arc::clone(&record.trace.root_id)),
        execution_id: execution.or_else(|| around.execution_id.clone()),
        generation_id: Some(Arc::clone(id)),
        agent_id: Some(Arc::from(record.agent_id.as_str())),
        conversation_id: record.conversation_id.as_deref().map(Arc::from),
        user_id: record.user_id.as_deref().map(Arc::from),
        ..(*around).clone()
    })
}

fn context_limit(request: &GenerationRequest) -> u32 {
    request.context_limit.unwrap_or(CONTEXT_LIMIT_DEFAULT).min(CONTEXT_LIMIT_MAX)
}

/// Returns the conversation that a generation belongs to.
pub(super) fn conversation_key(record: &GenerationRecord) -> Option<ConversationKey> {
    Some(ConversationKey {
        agent_id: Arc::from(record.agent_id.as_str()),
        user_id: record.user_id.as_deref().map(Arc::from),
        conversation_id: Arc::from(record.conversation_id.as_deref()?),
    })
}
