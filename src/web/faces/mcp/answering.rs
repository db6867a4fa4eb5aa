//! Questions of executions that wait, and the answers of people.

use std::cell::Cell;
use std::time::Duration;

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{ASK_PREFIX, Ask, AskState, AskSubject, Status};
use greenroom_actors::requests::{
    AskDetail, DescribeError, ExecutionOutcome, ExecutionState, ResumeExecution, Target,
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::Outcome;
use super::asks::{is_of, problem_of};
use super::feed::Feed;
use super::session::Session;
use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::faces::mcp::{
    Advice, Asked, AskedFor, Asking, CallParams, Question, Refusal, Response, Responses,
    ResumeArguments, Run, RunState, Tool, failed, input_required, resume_name, suspended,
};
use crate::api::{ApiError, executions, inbox};
use crate::web::peer::WATCH_INTERVAL;

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
            let url = inbox::page_for(links, &detail.ask, &self.call.caller, now)?;
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
                match self.while_connected(self.until_answered(&ask.id)).await {
                    Some(()) => self.settle_now(&run, None).await,
                    None => self.left(&run).await,
                }
            }
            Some(Response::Accepted(content)) => self.answer(&run, &ask.id, content, feed).await,
            Some(Response::Declined) => self.decline(&run).await,
            None => self.settle_now(&run, None).await,
        }
    }

    /// Answers an ask of an execution, and answers with what becomes of it; if another answer was
    /// first, with the current state.
    async fn answer(&self, run: &Run, ask: &str, content: Value, feed: Option<&Feed>) -> Outcome {
        let (runtime, target) = (&self.call.runtime, self.target(run));
        let before = match executions::describe(runtime, &target).await {
            Ok(state) => state.last_seq,
            Err(refusal) => return self.refuse_for(run, &refusal),
        };
        let is_of_call = Cell::new(false);
        let is_expected = |ask: &Ask| {
            is_of_call.set(matches!(ask.subject, AskSubject::Call(_)));
            is_of(ask, run) && (is_of_call.get() || self.may(RouteName::ResumeExecution, run))
        };
        let answered = self.answer_form(ask, content, is_expected).await;
        let is_taken = answered.is_ok();
        match problem_of(answered) {
            Ok(None) => {}
            Ok(Some(problem)) => return self.settle_now(run, Some(&problem)).await,
            Err(refusal) => return self.refuse_for(run, &refusal),
        }
        let halted = async {
            if is_taken && is_of_call.get() {
                self.until_continued(run, &target, before).await;
            }
            runtime.state_when(&target, |state| state.status != Status::Running).await
        };
        self.settle_once(run, Feed::around(feed, self, (&target, before), halted), None).await
    }

    /// Waits a while until a step has continued, which it does once all of its asks are answered.
    async fn until_continued(&self, run: &Run, target: &Target, before: u64) {
        let runtime = &self.call.runtime;
        let Ok(state) = executions::describe(runtime, target).await else { return };
        if self.all_asked(run, &state.suspensions).await.is_empty() {
            let moved = runtime.state_when(target, |state| state.last_seq > before);
            let _ = timeout(PAGE_WAIT, moved).await;
        }
    }

    /// Answers for a person who does not: the execution still waits.
    async fn decline(&self, run: &Run) -> Outcome {
        let target = self.target(run);
        match executions::describe(&self.call.runtime, &target).await {
            Ok(described) => match RunState::of_state(&described) {
                RunState::Suspended(waiting) => {
                    let asked = self.asked(run, &waiting).await;
                    let tool = self.resume_tool(run, asked.as_ref());
                    let advice = Advice::Declined(tool.as_deref());
                    Ok(suspended(run, &waiting, asked.as_ref(), advice))
                }
                state => Ok(self.ended(run, &state)),
            },
            Err(refusal) => self.refuse_for(run, &refusal),
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
    /// the current state.
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
        let Some(resumed) = self.while_connected(resuming).await else {
            return self.left(run).await;
        };
        match resumed {
            Ok(outcome) => self.settle(run, RunState::of_outcome(&outcome), None).await,
            Err(
                ApiError::SuspensionPassed { .. }
                | ApiError::NotSuspended(_)
                | ApiError::ExecutionAlready { .. },
            ) => self.settle_now(run, None).await,
            Err(
                refusal @ (ApiError::ResumeDataInvalid(_) | ApiError::Ask(AskRefusal::Refused(_))),
            ) if self.request.abilities().shows_forms => {
                self.settle_now(run, Some(&refusal.to_string())).await
            }
            Err(refusal) => self.refuse_for(run, &refusal),
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
        let after = match feed {
            Some(_) => executions::describe(runtime, &target).await?.last_seq,
            None => 0,
        };
        let resuming = executions::resume(runtime, &target, Ok(resume));
        Feed::around(feed, self, (&target, after), resuming).await
    }

    /// Answers with the current state, once the execution has left `running`.
    async fn settle_now(&self, run: &Run, refusal: Option<&str>) -> Outcome {
        let target = self.target(run);
        let halted = self.call.runtime.state_when(&target, |state| state.status != Status::Running);
        self.settle_once(run, halted, refusal).await
    }

    /// Answers with a state that there is at some time.
    async fn settle_once(
        &self,
        run: &Run,
        state: impl Future<Output = Result<ExecutionState, DescribeError>>,
        refusal: Option<&str>,
    ) -> Outcome {
        match self.while_connected(state).await {
            Some(Ok(state)) => self.settle(run, RunState::of_state(&state), refusal).await,
            Some(Err(error)) => {
                self.refuse_for(run, &ApiError::from_describe(&run.execution, error))
            }
            None => self.left(run).await,
        }
    }
}
