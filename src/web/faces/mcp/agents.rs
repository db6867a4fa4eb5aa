//! Calls of agents.

use std::time::Duration;

use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::{AgentDefinition, PendingAsk};
use greenroom_actors::ports::store::{Ask, AskSubject, GenerationRecord, GenerationStatus};
use greenroom_actors::runtime::Readiness;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Outcome;
use super::asks::problem_of;
use super::session::Session;
use crate::api::agents::{self, RequestKind, read_request};
use crate::api::catalogue::RouteName;
use crate::api::error::Recorded;
use crate::api::faces::mcp::{
    AskedFor, Asking, CallParams, Members, Question, Response, agent_body, completed, failed,
};
use crate::api::wire::pending_ask::PendingAskView;
use crate::api::{ApiError, inbox};
use crate::web::peer::WATCH_INTERVAL;

/// Longest pause before a generation that continues is looked at again; the first ones are shorter.
const PAUSE_MAX: Duration = Duration::from_secs(2);

impl Session {
    /// Asks an agent, or takes the answer to a question of a call before. The generation ends when
    /// its client disconnects, unless it waits for a person.
    pub(super) async fn call_agent(&self, agent: &AgentDefinition, params: CallParams) -> Outcome {
        if let Some(state) = &params.state {
            let Asking::Agent { id, generation, ask } = self.asked_before(state)? else {
                return Err(self.invalid_state());
            };
            if id != agent.id {
                return Err(self.invalid_state());
            }
            let mut response = self.response(&params.responses, &ask.id)?;
            if ask.is_on_page && matches!(response, Some(Response::Accepted(_))) {
                // the person has only opened the page
                let Some(()) = self.while_connected(self.until_answered(&ask.id)).await else {
                    return self.disconnected();
                };
                response = None;
            }
            return self.answer_agent(agent, &generation, &ask.id, response).await;
        }
        let body = match agent_body(params.arguments) {
            Ok(body) => body.to_string(),
            Err(text) => return Ok(failed(&text, None)),
        };
        let caller = &self.call.caller;
        let request = match read_request(&agent.id, RequestKind::Text, body.as_bytes(), caller) {
            Ok(request) => GenerationRequest { trace: self.trace(), ..request },
            Err(refusal) => return self.refuse(&refusal),
        };
        let generating = agents::generate(&self.call.runtime, request);
        let generation = match self.while_connected(generating).await {
            Some(Ok(generation)) => generation,
            Some(Err(refusal)) => return self.refuse(&refusal),
            None => return self.disconnected(),
        };
        if generation.is_suspended() {
            return self.ask_for(agent, &generation.id, &generation.asks, None).await;
        }
        Ok(self.agent_answer(&generation.id, &generation.text))
    }

    /// Takes the answer to what a generation asks, and waits for what becomes of it.
    async fn answer_agent(
        &self,
        agent: &AgentDefinition,
        generation: &str,
        ask: &str,
        response: Option<Response>,
    ) -> Outcome {
        let refuse = |refusal: ApiError| {
            self.refuse(&refusal).map_err(|refusal| refusal.about("generation", generation))
        };
        let answered = match response {
            Some(Response::Accepted(content)) => {
                let is_call = |ask: &Ask| matches!(ask.subject, AskSubject::Call(_));
                self.answer_form(ask, content, is_call).await
            }
            Some(Response::Declined) => {
                return match self.call.runtime.pending_asks(generation).await {
                    Ok(asks) => Ok(self.waiting(generation, &asks)),
                    Err(cause) => refuse(cause.into()),
                };
            }
            None => Ok(()),
        };
        let refusal = match problem_of(answered) {
            Ok(problem) => problem,
            Err(refusal) => return refuse(refusal),
        };
        match self.while_connected(self.generation_now(agent, generation)).await {
            Some(Ok(record)) => self.settle_agent(agent, &record, refusal.as_deref()).await,
            Some(Err(refusal)) => refuse(refusal),
            None => {
                self.stop(agent, generation).await;
                self.disconnected()
            }
        }
    }

    /// Cancels the generation of a client that has gone.
    async fn stop(&self, agent: &AgentDefinition, generation: &str) {
        let ids = [(":id", agent.id.as_str()), (":generationId", generation)];
        if self.call.check_like(RouteName::CancelGeneration, &ids).is_err() {
            return;
        }
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        if let Err(refusal) = agents::cancel(runtime, agent, generation, Ok(b"{}"), caller).await {
            log::debug!("generation {generation} continues without its client: {refusal}");
        }
    }

    /// Returns a generation once nothing works on it.
    async fn generation_now(
        &self,
        agent: &AgentDefinition,
        generation: &str,
    ) -> Result<GenerationRecord, ApiError> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let mut pause = WATCH_INTERVAL;
        loop {
            let entry = agents::generation(runtime, agent, generation, caller).await?;
            if entry.record.status != GenerationStatus::Working {
                return Ok(entry.record);
            }
            // one that works while the server stops may continue at the next start
            if runtime.readiness() == Readiness::Draining {
                let recorded = Some(Recorded::Generation(generation.into()));
                return Err(ApiError::Draining { recorded });
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn settle_agent(
        &self,
        agent: &AgentDefinition,
        record: &GenerationRecord,
        refusal: Option<&str>,
    ) -> Outcome {
        let id = Some(("generation", record.id.as_str()));
        match record.status {
            GenerationStatus::Suspended | GenerationStatus::Working => {
                match self.call.runtime.pending_asks(&record.id).await {
                    Ok(asks) => self.ask_for(agent, &record.id, &asks, refusal).await,
                    Err(cause) => self.refuse(&cause.into()),
                }
            }
            GenerationStatus::Completed => {
                let text = record.output.as_ref().and_then(Value::as_str);
                Ok(self.agent_answer(&record.id, text.unwrap_or_default()))
            }
            GenerationStatus::Error => Ok(failed("The agent failed.", id)),
            GenerationStatus::Cancelled => Ok(failed("The agent was stopped.", id)),
        }
    }

    /// Answers for a generation that waits: with a question, if the client can show it.
    async fn ask_for(
        &self,
        agent: &AgentDefinition,
        generation: &str,
        asks: &[PendingAsk],
        refusal: Option<&str>,
    ) -> Outcome {
        for pending in asks {
            let Some(question) = self.question_of(&pending.ask_id).await else { continue };
            let question = match refusal {
                Some(refusal) => question.again(refusal),
                None => question,
            };
            let (id, generation) = (agent.id.clone(), generation.to_owned());
            let ask = AskedFor { id: pending.ask_id.to_string(), is_on_page: !question.is_form() };
            let asking = Asking::Agent { id, generation, ask };
            return self.question(asking, &pending.ask_id, &question);
        }
        Ok(self.waiting(generation, asks))
    }

    /// Returns the question of an ask that the caller may answer, in a form or on a page.
    async fn question_of(&self, ask: &str) -> Option<Question> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let ask = inbox::find(runtime, ask, caller).await.ok()?;
        let may_answer = match &ask.subject {
            AskSubject::Call(of) => self.check_call(of).is_ok(),
            AskSubject::Step(_) => true,
        };
        if !may_answer || !self.is_asked(&ask) {
            return None;
        }
        self.shown(&inbox::describe(runtime, ask).await.ok()?)
    }

    fn agent_answer(&self, generation: &str, text: &str) -> Members {
        self.agent_result(generation, ("completed", text), None)
    }

    fn waiting(&self, generation: &str, asks: &[PendingAsk]) -> Members {
        let reasons: Vec<_> = asks.iter().map(|ask| ask.reason.as_str()).collect();
        let text = format!("Waits for a person: {}", reasons.join("; "));
        self.agent_result(generation, ("suspended", &text), Some(asks))
    }

    fn agent_result(
        &self,
        generation: &str,
        (status, text): (&str, &str),
        asks: Option<&[PendingAsk]>,
    ) -> Members {
        let mut content = json!({ "status": status, "generationId": generation, "text": text });
        if let Some(asks) = asks {
            content["asks"] = json!(PendingAskView::all(asks));
        }
        let mut result = completed(&content, Some(("generation", generation)), &self.request);
        result.insert("content".to_owned(), json!([{ "type": "text", "text": text }]));
        result
    }
}
