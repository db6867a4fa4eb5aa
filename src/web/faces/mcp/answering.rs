//! Questions of executions that wait, and the answers of people.

use std::time::Duration;

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{ASK_PREFIX, AskState, Status};
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
        let tool = self.resume_tool(run);
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
    fn resume_tool(&self, run: &Run) -> Option<String> {
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
        let mut questions = Vec::new();
        for suspension in waiting.iter().take(ASKS_MAX) {
            let Some(asked) = self.asked_by(run, suspension).await else { continue };
            let question = self.shown(&asked.detail).filter(|_| asked.may_answer);
            questions.extend(question.map(|it| (asked.detail.ask.id.to_string(), it)));
        }
        questions
    }

    /// Returns the first ask that the caller may answer, else the first one.
    async fn asked(&self, run: &Run, waiting: &[Suspension]) -> Option<Asked> {
        let mut first = None;
        for suspension in waiting.iter().take(ASKS_MAX) {
            match self.asked_by(run, suspension).await {
                Some(asked) if asked.may_answer => return Some(asked),
                Some(asked) => drop(first.get_or_insert(asked)),
                None => {}
            }
        }
        first
    }

    /// Returns the ask of a suspension that the caller sees.
    async fn asked_by(&self, run: &Run, suspension: &Suspension) -> Option<Asked> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let id = format!("{ASK_PREFIX}{}", suspension.id.as_ref()?);
        let ask = inbox::find(runtime, &id, caller).await.ok()?;
        let answerer = Some(caller.answerer(None));
        let access = AskAccess { answerer, ..AskAccess::default() };
        let may_resume = self.may(RouteName::ResumeExecution, run);
        let may_answer = may_resume && access.check_asked(&ask).is_ok();
        let detail = inbox::describe(runtime, ask).await.ok()?;
        Some(Asked { detail, may_answer })
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
                self.resume(&run, Some(&ask.id), data, feed).await
            }
            Some(Response::Declined) => self.decline(&run).await,
            None => self.stand(&run, None).await,
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
                    let (asked, tool) = (self.asked(run, &waiting).await, self.resume_tool(run));
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
