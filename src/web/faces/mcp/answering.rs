//! Questions of executions that wait, and the answers of people.

use std::time::Duration;

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{ASK_PREFIX, Ask, AskState, AskSubject, AskedCall, Status};
use greenroom_actors::requests::{AskAccess, AskDetail, ExecutionOutcome, ResumeExecution, Target};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::Outcome;
use super::feed::Feed;
use super::session::Session;
use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::faces::mcp::{
    Advice, Asked, AskedFor, Asking, CallParams, Question, Refusal, Response, Responses,
    ResumeArguments, Run, Standing, Tool, failed, input_required, resume_name, suspended,
};
use crate::api::{ApiError, executions, inbox};
use crate::web::peer::WATCH_INTERVAL;

/// Suspensions among which one is looked for that the caller may answer.
const ASKS_MAX: usize = 10;

/// Time for which a repeated call waits until a person has answered on a page.
const PAGE_WAIT: Duration = Duration::from_secs(25);

impl Session {
    /// Answers for an execution that waits: with a question, if the client can show it.
    pub(super) async fn ask(
        &self,
        run: &Run,
        waiting: &[Suspension],
        refusal: Option<&str>,
    ) -> Outcome {
        let asked = self.asked(run, waiting).await;
        if let Some(Asked { detail, may_answer: true }) = &asked
            && let Some(question) = self.shown(detail)
        {
            let question = match refusal {
                Some(refusal) => question.again(refusal),
                None => question,
            };
            let (id, execution) = (run.workflow.clone(), run.execution.to_string());
            let ask = AskedFor { id: detail.ask.id.to_string(), is_on_page: !question.is_form() };
            return self.question(
                Asking::Workflow { id, execution, ask },
                &detail.ask.id,
                &question,
            );
        }
        let tool = self.resume_tool(run, asked.as_ref());
        let advice = tool.as_deref().map_or(Advice::Inbox, Advice::Ask);
        Ok(suspended(run, waiting, asked.as_ref(), advice))
    }

    /// Returns the question of an ask, as the client can show it.
    pub(super) fn shown(&self, detail: &AskDetail) -> Option<Question> {
        let abilities = self.request.abilities();
        let form = abilities.shows_forms.then(|| Question::of(detail)).flatten();
        let page = || {
            let ids = [(":askId", &*detail.ask.id)];
            let links =
                self.call.settings.config.links.as_ref().filter(|_| abilities.opens_pages)?;
            self.call.check_like(RouteName::LinkToAsk, &ids).ok()?;
            let now = self.call.runtime.clock().now();
            let url = inbox::page_for(links, &detail.ask, &self.call.caller, now).ok()?;
            Some(Question::on_page(detail, url))
        };
        form.or_else(page)
    }

    /// Waits a while for the answer to an ask that is given on a page.
    pub(super) async fn until_answered(&self, ask: &str) {
        let answered = async {
            let (runtime, caller) = (&self.call.runtime, &self.call.caller);
            while inbox::find(runtime, ask, caller)
                .await
                .is_ok_and(|ask| ask.state == AskState::Open)
            {
                sleep(WATCH_INTERVAL).await;
            }
        };
        // without an answer it is asked again
        let _ = timeout(PAGE_WAIT, answered).await;
    }

    /// Returns the tool that answers what an execution waits for, if the face offers it.
    fn resume_tool(&self, run: &Run, asked: Option<&Asked>) -> Option<String> {
        if asked.is_some_and(|asked| matches!(asked.detail.ask.subject, AskSubject::Call(_))) {
            return None;
        }
        let name = resume_name(&run.workflow);
        let tool = self.server.offer.find(&self.call.runtime.registry(), &name)?;
        (matches!(tool, Tool::Resume(_)) && self.may_use(&tool)).then_some(name)
    }

    /// Asks a person through the client.
    pub(super) fn question(&self, asking: Asking, key: &str, question: &Question) -> Outcome {
        match self.tokens().state(&self.mark, asking, self.call.runtime.clock().now()) {
            Some(state) => Ok(input_required(key, question, &state)),
            None => Ok(failed("The answers so far are too large to ask another question.", None)),
        }
    }

    /// Returns what asked, of a state that came back with the same call.
    pub(super) fn asked_before(&self, state: &str) -> Result<Asking, Refusal> {
        let asking = self.tokens().read_state(&self.mark, state, self.call.runtime.clock().now());
        asking.ok_or_else(|| self.invalid_state())
    }

    /// Returns the answer to a question, if there is one.
    pub(super) fn response(
        &self,
        responses: &Responses,
        key: &str,
    ) -> Result<Option<Response>, Refusal> {
        responses.of(key).map_err(|problem| self.request.invalid(problem))
    }

    pub(super) fn invalid_state(&self) -> Refusal {
        self.request.invalid(
            "requestState is not valid; it is good for an hour, for the same user, tool and arguments",
        )
    }

    /// Returns the questions that a task shows, with the ids of their asks.
    pub(super) async fn open_questions(
        &self,
        run: &Run,
        waiting: &[Suspension],
    ) -> Vec<(String, Question)> {
        let asks = self.all_asked(run, waiting).await.into_iter();
        let question = |asked: Asked| {
            let question = self.shown(&asked.detail).filter(|_| asked.may_answer)?;
            Some((asked.detail.ask.id.to_string(), question))
        };
        asks.filter_map(question).collect()
    }

    /// Returns the first ask that the caller may answer, else the first one.
    async fn asked(&self, run: &Run, waiting: &[Suspension]) -> Option<Asked> {
        let mut all = self.all_asked(run, waiting).await;
        let first = all.iter().position(|asked| asked.may_answer).unwrap_or_default();
        (first < all.len()).then(|| all.swap_remove(first))
    }

    /// Returns the open asks of an execution that the caller sees: of steps, and of calls that agents
    /// of steps want to make.
    async fn all_asked(&self, run: &Run, waiting: &[Suspension]) -> Vec<Asked> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let ids = waiting.iter().take(ASKS_MAX).flat_map(ask_ids).take(ASKS_MAX);
        let mut all = Vec::new();
        for id in ids {
            let Ok(ask) = inbox::find(runtime, &id, caller).await else { continue };
            if ask.state != AskState::Open || !is_of(&ask, run) {
                continue;
            }
            let may_answer = self.may_answer(run, &ask);
            let Ok(detail) = inbox::describe(runtime, ask).await else { continue };
            all.push(Asked { detail, may_answer });
        }
        all
    }

    /// Returns true if the caller may answer an ask of the execution, as in the inbox.
    pub(super) fn may_answer(&self, run: &Run, ask: &Ask) -> bool {
        let may = match &ask.subject {
            AskSubject::Step(_) => self.may(RouteName::ResumeExecution, run),
            AskSubject::Call(of) => self.may_answer_call(of),
        };
        let answerer = Some(self.call.caller.answerer(None));
        may && AskAccess { answerer, ..AskAccess::default() }.check_asked(ask).is_ok()
    }

    /// Returns true if the caller may answer what a call of an agent asks, by the rules of its route.
    fn may_answer_call(&self, of: &AskedCall) -> bool {
        let ids = [(":id", &*of.agent_id), (":generationId", &*of.generation_id)];
        self.call.check_like(RouteName::CancelGeneration, &ids).is_ok()
    }

    /// Takes the answer to a question, which came back with its state.
    pub(super) async fn answer_question(
        &self,
        workflow: &str,
        state: &str,
        responses: &Responses,
        feed: Option<&Feed>,
    ) -> Outcome {
        let Asking::Workflow { id, execution, ask } = self.asked_before(state)? else {
            return Err(self.invalid_state());
        };
        let execution = ExecutionId::parse(&execution).ok().filter(|_| id == workflow);
        let execution = execution.ok_or_else(|| self.invalid_state())?;
        let run = Run { workflow: id, execution };
        match self.response(responses, &ask.id)? {
            // the person has only opened the page
            Some(Response::Accepted(_)) if ask.is_on_page => {
                match self.unless_gone(self.until_answered(&ask.id)).await {
                    Some(()) => self.stand(&run, None).await,
                    None => self.unheard(),
                }
            }
            Some(Response::Accepted(content)) => {
                let data = self.answer_from(&ask.id, content).await;
                match inbox::find(&self.call.runtime, &ask.id, &self.call.caller).await {
                    Ok(found) if matches!(found.subject, AskSubject::Call(_)) => {
                        self.answer_step_call(&run, &ask.id, data).await
                    }
                    Ok(_) | Err(_) => self.resume(&run, Some(&ask.id), data, feed).await,
                }
            }
            Some(Response::Declined) => self.decline(&run).await,
            None => self.stand(&run, None).await,
        }
    }

    /// Answers what a call of an agent in a step asks, and waits for what becomes of the execution.
    async fn answer_step_call(&self, run: &Run, ask: &str, data: Value) -> Outcome {
        let (runtime, target) = (&self.call.runtime, self.target(run));
        let before = match executions::describe(runtime, &target).await {
            Ok(state) => state.last_seq,
            Err(refusal) => return self.refuse(&refusal),
        };
        match self.answer_call(ask, data).await {
            Ok(()) => {}
            Err(refusal @ ApiError::Ask(AskRefusal::InvalidData(_) | AskRefusal::Refused(_))) => {
                return self.stand(run, Some(&refusal.to_string())).await;
            }
            // a lost race: what is true now
            Err(ApiError::Ask(
                AskRefusal::Answered { .. }
                | AskRefusal::Expired { .. }
                | AskRefusal::Withdrawn { .. },
            )) => return self.stand(run, None).await,
            Err(refusal) => return self.refuse(&refusal),
        }
        let continued = async {
            let state = executions::describe(runtime, &target).await;
            let is_open = match &state {
                Ok(state) => !self.all_asked(run, &state.suspensions).await.is_empty(),
                Err(_) => true,
            };
            // the step continues once all of its asks are answered
            if !is_open {
                let moved = runtime.state_when(&target, |state| state.last_seq > before);
                let _ = timeout(PAGE_WAIT, moved).await;
            }
        };
        match self.unless_gone(continued).await {
            Some(()) => self.stand(run, None).await,
            None => self.unheard(),
        }
    }

    /// Returns the answer to an ask from what a form has given.
    pub(super) async fn answer_from(&self, ask: &str, content: Value) -> Value {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let Ok(ask) = inbox::find(runtime, ask, caller).await else { return content };
        match inbox::describe(runtime, ask).await {
            Ok(detail) => Question::answer(&detail, content),
            Err(_) => content,
        }
    }

    /// Answers for a person who does not: the execution still waits.
    async fn decline(&self, run: &Run) -> Outcome {
        let target = self.target(run);
        match executions::describe(&self.call.runtime, &target).await {
            Ok(state) => match Standing::of_state(&state) {
                Standing::Suspended(waiting) => {
                    let asked = self.asked(run, &waiting).await;
                    let tool = self.resume_tool(run, asked.as_ref());
                    let advice = Advice::Declined(tool.as_deref());
                    Ok(suspended(run, &waiting, asked.as_ref(), advice))
                }
                standing => Ok(self.ended(run, &standing)),
            },
            Err(refusal) => self.refuse(&refusal),
        }
    }

    /// Carries out the tool that answers what an execution waits for.
    pub(super) async fn call_resume(
        &self,
        workflow: &str,
        params: CallParams,
        feed: Option<&Feed>,
    ) -> Outcome {
        if let Some(state) = &params.state {
            return self.answer_question(workflow, state, &params.responses, feed).await;
        }
        let read = ResumeArguments::read(params.arguments);
        let ResumeArguments { execution, ask, data } = match read {
            Ok(arguments) => arguments,
            Err(text) => return Ok(failed(&text, None)),
        };
        match ExecutionId::parse(&execution) {
            Ok(execution) => {
                let run = Run { workflow: workflow.to_owned(), execution };
                self.resume(&run, ask.as_deref(), data, feed).await
            }
            Err(_) => self.refuse(&ApiError::ExecutionNotFound(execution)),
        }
    }

    /// Resumes an execution and answers with what becomes of it; if another answer was first, with
    /// what is true now.
    async fn resume(
        &self,
        run: &Run,
        ask: Option<&str>,
        data: Value,
        feed: Option<&Feed>,
    ) -> Outcome {
        if !self.may(RouteName::ResumeExecution, run) {
            return self.refuse(&ApiError::ExecutionNotFound(run.execution.to_string()));
        }
        let resuming = self.resumed(run, ask, data, feed);
        let Some(resumed) = self.unless_gone(resuming).await else { return self.unheard() };
        match resumed {
            Ok(outcome) => self.settle(run, Standing::of_outcome(&outcome), None).await,
            Err(
                ApiError::SuspensionPassed { .. }
                | ApiError::NotSuspended(_)
                | ApiError::ExecutionAlready { .. },
            ) => self.stand(run, None).await,
            Err(
                refusal @ (ApiError::ResumeDataInvalid(_) | ApiError::Ask(AskRefusal::Refused(_))),
            ) if self.request.abilities().shows_forms => {
                self.stand(run, Some(&refusal.to_string())).await
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }

    async fn resumed(
        &self,
        run: &Run,
        ask: Option<&str>,
        data: Value,
        feed: Option<&Feed>,
    ) -> Result<ExecutionOutcome, ApiError> {
        let (runtime, caller, target) = (&self.call.runtime, &self.call.caller, self.target(run));
        let suspension_id = ask.map(|ask| ask.strip_prefix(ASK_PREFIX).unwrap_or(ask).to_owned());
        let resume = ResumeExecution {
            suspension_id,
            data,
            by: caller.principal(None)?,
            answerer: Some(caller.answerer(None)),
            ..ResumeExecution::default()
        };
        let Some(feed) = feed else {
            return executions::resume(runtime, &target, Ok(resume)).await;
        };
        let after = executions::describe(runtime, &target).await?.last_seq;
        let resuming = executions::resume(runtime, &target, Ok(resume));
        feed.during(self, &target, after, resuming).await
    }

    /// Answers with what is true now, once the execution has left `running`.
    async fn stand(&self, run: &Run, refusal: Option<&str>) -> Outcome {
        let target: Target = self.target(run);
        let halted = self.call.runtime.state_when(&target, |state| state.status != Status::Running);
        match self.unless_gone(halted).await {
            Some(Ok(state)) => self.settle(run, Standing::of_state(&state), refusal).await,
            Some(Err(error)) => self.refuse(&ApiError::from_describe(&run.execution, error)),
            None => self.unheard(),
        }
    }
}

/// Returns the ids of the asks of a suspension: its own, and those of calls, which an agent has.
fn ask_ids(suspension: &Suspension) -> Vec<String> {
    let own = suspension.id.iter().map(|id| format!("{ASK_PREFIX}{id}"));
    let payload = suspension.payload.as_deref().and_then(|payload| payload.get("asks"));
    let calls = payload.and_then(Value::as_array).into_iter().flatten();
    let calls = calls.filter_map(|ask| Some(ask.get("askId")?.as_str()?.to_owned()));
    own.chain(calls).collect()
}

/// Returns true if the ask is one of the execution.
pub(super) fn is_of(ask: &Ask, run: &Run) -> bool {
    let step = match &ask.subject {
        AskSubject::Step(step) => Some(step),
        AskSubject::Call(call) => call.step.as_ref(),
    };
    step.is_some_and(|step| step.execution_id == run.execution)
}
