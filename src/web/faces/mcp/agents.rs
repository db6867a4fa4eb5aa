//! Calls of agents.

use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::{AgentDefinition, PendingAsk};
use greenroom_actors::ports::store::{AskSubject, GenerationRecord, GenerationStatus};
use greenroom_actors::requests::{AnswerAsk, AskAccess};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Outcome;
use super::session::Session;
use crate::api::agents::{self, RequestKind, read_request};
use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::faces::mcp::{
    AskedFor, Asking, CallParams, Members, Question, Response, agent_body, completed, failed,
};
use crate::api::wire::pending_ask::PendingAskView;
use crate::api::{ApiError, inbox};
use crate::web::peer::WATCH_INTERVAL;

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
                let Some(()) = self.unless_gone(self.until_answered(&ask.id)).await else {
                    return self.unheard();
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
        let generation = match self.unless_gone(generating).await {
            Some(Ok(generation)) => generation,
            Some(Err(refusal)) => return self.refuse(&refusal),
            None => return self.unheard(),
        };
        if generation.is_suspended() {
            return self.ask_for(agent, &generation.id, &generation.asks, None).await;
        }
        Ok(self.said(&generation.id, &generation.text))
    }

    /// Takes the answer to what a generation asks, and waits for what becomes of it.
    async fn answer_agent(
        &self,
        agent: &AgentDefinition,
        generation: &str,
        ask: &str,
        response: Option<Response>,
    ) -> Outcome {
        let answered = match response {
            Some(Response::Accepted(content)) => {
                let data = self.answer_from(ask, content).await;
                self.answer_call(ask, data).await
            }
            Some(Response::Declined) => {
                return match self.call.runtime.pending_asks(generation).await {
                    Ok(asks) => Ok(self.waiting(generation, &asks)),
                    Err(cause) => self.refuse(&cause.into()),
                };
            }
            None => Ok(()),
        };
        let refusal = match answered {
            Ok(()) => None,
            Err(refusal @ ApiError::Ask(AskRefusal::InvalidData(_) | AskRefusal::Refused(_))) => {
                Some(refusal.to_string())
            }
            // a lost race: what is true now
            Err(ApiError::Ask(
                AskRefusal::Answered { .. }
                | AskRefusal::Expired { .. }
                | AskRefusal::Withdrawn { .. },
            )) => None,
            Err(refusal) => return self.refuse(&refusal),
        };
        match self.unless_gone(self.generation_now(agent, generation)).await {
            Some(Ok(record)) => self.settle_agent(agent, &record, refusal.as_deref()).await,
            Some(Err(refusal)) => self.refuse(&refusal),
            None => self.unheard(),
        }
    }

    /// Answers what a call asks.
    pub(super) async fn answer_call(&self, id: &str, data: Value) -> Result<(), ApiError> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let ask = inbox::find(runtime, id, caller).await?;
        let AskSubject::Call(of) = &ask.subject else {
            return Err(ApiError::Ask(AskRefusal::NotFound(id.to_owned())));
        };
        // refused as in the inbox
        let ids = [(":id", &*of.agent_id), (":generationId", &*of.generation_id)];
        self.call.check_like(RouteName::CancelGeneration, &ids)?;
        let access = AskAccess { answerer: Some(caller.answerer(None)), ..AskAccess::default() };
        let answer = AnswerAsk { data, by: caller.principal(None)?, access, idempotency: None };
        let answered = runtime.answer_ask(ask, answer).await;
        answered.map(drop).map_err(|error| ApiError::from_ask(id, error))
    }

    /// Returns a generation once nothing works on it.
    async fn generation_now(
        &self,
        agent: &AgentDefinition,
        generation: &str,
    ) -> Result<GenerationRecord, ApiError> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        loop {
            let entry = agents::generation(runtime, agent, generation, caller).await?;
            if entry.record.status != GenerationStatus::Working {
                return Ok(entry.record);
            }
            sleep(WATCH_INTERVAL).await;
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
                Ok(self.said(&record.id, text.unwrap_or_default()))
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

    /// Returns the question of an ask that the caller may answer in a form.
    async fn question_of(&self, ask: &str) -> Option<Question> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let ask = inbox::find(runtime, ask, caller).await.ok()?;
        let access = AskAccess { answerer: Some(caller.answerer(None)), ..AskAccess::default() };
        access.check_asked(&ask).ok()?;
        self.shown(&inbox::describe(runtime, ask).await.ok()?)
    }

    fn said(&self, generation: &str, text: &str) -> Members {
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
