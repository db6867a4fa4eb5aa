//! One request with its caller: what it may use, and how long its client is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::http::header::HeaderValue;
use greenroom_actors::requests::{Target, TraceOrigin, TraceParent};
use greenroom_actors::visibility::Visibility;
use serde_json::Value;
use tokio::time::sleep;

use super::Outcome;
use super::feed::Feed;
use crate::api::ApiError;
use crate::api::catalogue::RouteName;
use crate::api::faces::mcp::{
    CallParams, Given, Refusal, Request, Run, ServedFace, Tokens, Tool, failed, mismatch, shown,
};
use crate::auth::User;
use crate::faces::mcp_via;
use crate::web::call::Call;
use crate::web::peer::{WATCH_INTERVAL, Watch};
use crate::web::trace;

/// One request of a client.
pub(super) struct Session {
    pub(super) call: Call,
    pub(super) server: Arc<ServedFace>,
    pub(super) request: Request,
    /// Mark of the call, which its questions are bound to.
    pub(super) mark: String,
}

impl Session {
    pub(super) fn new(call: Call, server: Arc<ServedFace>, request: Request) -> Self {
        Self { call, server, request, mark: String::new() }
    }

    /// Carries `tools/call` out.
    pub(super) async fn call_tool(&mut self, feed: Option<&Feed>) -> Outcome {
        let params = CallParams::take(&mut self.request)?;
        self.mark = self.tokens().call(&params.name, &params.arguments);
        let tool = self.server.offer.find(&self.call.runtime.registry(), &params.name);
        let tool = tool.filter(|tool| self.may_use(tool));
        if let Some(schema) = tool.as_ref().and_then(Tool::parameters) {
            self.check_param_headers(schema, &params)?;
        }
        match tool {
            Some(Tool::Workflow(plan)) => self.call_workflow(&plan, params, feed).await,
            Some(Tool::Resume(plan)) => self.call_resume(&plan.definition.id, params, feed).await,
            Some(Tool::Agent(agent)) => self.call_agent(&agent, params).await,
            Some(Tool::Registered(tool)) => self.call_registered(&tool, params, feed).await,
            // the same for what the caller may not use
            None => Err(self.request.invalid(format!("unknown tool: {}", shown(&params.name)))),
        }
    }

    /// Returns the tools that the caller may use, by name.
    pub(super) fn tools(&self) -> BTreeMap<String, Tool> {
        let mut tools = self.server.offer.tools(&self.call.runtime.registry());
        tools.retain(|_, tool| self.may_use(tool));
        tools
    }

    /// Returns true if the caller may do what the tool does by its route.
    pub(super) fn may_use(&self, tool: &Tool) -> bool {
        let (route, id) = match tool {
            Tool::Workflow(plan) => (RouteName::ExecuteWorkflow, &plan.definition.id),
            Tool::Resume(plan) => (RouteName::ResumeExecution, &plan.definition.id),
            Tool::Agent(agent) => (RouteName::GenerateText, &agent.id),
            Tool::Registered(tool) => {
                let ids = [(":name", tool.spec.name.as_str())];
                return self.call.check_like(RouteName::ExecuteTool, &ids).is_ok();
            }
        };
        self.call.check_like(route, &[(":id", id)]).is_ok()
    }

    /// Checks the headers that repeat arguments, which older clients do not send.
    fn check_param_headers(&self, schema: &Value, params: &CallParams) -> Result<(), Refusal> {
        if self.request.is_legacy() {
            return Ok(());
        }
        let headers = self.call.request.headers();
        let given = |name: &str| {
            let mut values = headers.get_all(name);
            match (values.next().map(HeaderValue::to_str), values.next()) {
                (None, _) => Given::Absent,
                (Some(Ok(text)), None) => Given::Text(text),
                (Some(_), _) => Given::Unreadable,
            }
        };
        match mismatch(schema, &params.arguments, given) {
            Some(problem) => Err(self.request.mismatched(problem)),
            None => Ok(()),
        }
    }

    /// Returns true if the caller may do this to an execution.
    pub(super) fn may(&self, route: RouteName, run: &Run) -> bool {
        let ids = [(":id", run.workflow.as_str()), (":executionId", run.execution.as_str())];
        self.call.check_like(route, &ids).is_ok()
    }

    /// Returns the execution as the caller sees it.
    pub(super) fn target(&self, run: &Run) -> Target {
        target_of(run, self.call.caller.visibility())
    }

    /// Returns the maker of texts that the client keeps.
    pub(super) fn tokens(&self) -> Tokens<'_> {
        let user = self.call.caller.user().and_then(User::id);
        Tokens { key: &self.server.key, face: self.server.name.as_deref(), user }
    }

    /// Answers with a refusal: as a text for the model where that may help it.
    pub(super) fn refuse(&self, refusal: &ApiError) -> Outcome {
        if is_for_model(refusal) {
            let generation = refusal.generation_id().map(|id| ("generation", id));
            return Ok(failed(&refusal.to_string(), generation));
        }
        Err(self.request.refused(refusal))
    }

    /// Answers with a refusal to a call that is about an execution.
    pub(super) fn refuse_for(&self, run: &Run, refusal: &ApiError) -> Outcome {
        self.refuse(refusal).map_err(|refusal| refusal.about("execution", run.execution.as_str()))
    }

    /// Returns the trace that the call belongs to.
    pub(super) fn trace(&self) -> TraceOrigin {
        let text = |key| self.request.meta(key).and_then(Value::as_str);
        let parent = || TraceParent::parse(text("traceparent")?, text("tracestate"));
        let origin = match trace::origin_of(self.call.request.headers()) {
            TraceOrigin::New => parent().map_or(TraceOrigin::New, TraceOrigin::Remote),
            given => given,
        };
        origin.through(mcp_via(self.server.name.as_deref()))
    }

    /// Waits until the work is done, or the client has gone: then there is no result.
    pub(super) fn while_connected<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Option<T>> {
        // what is waited for is large
        let mut work = Box::pin(work);
        async move {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = sleep(WATCH_INTERVAL) => {}
            }
            let client = Watch::of(&self.call.request);
            tokio::select! {
                biased;
                done = work => Some(done),
                () = client.gone() => None,
            }
        }
    }

    /// Answers a client that has gone, which does not read it.
    pub(super) fn disconnected(&self) -> Outcome {
        Ok(failed("the client disconnected", None))
    }
}

/// Returns the execution as those see it who see this much.
pub(super) fn target_of(run: &Run, visibility: Visibility) -> Target {
    let Run { workflow, execution } = run.clone();
    Target { workflow_id: workflow, execution_id: execution, visibility }
}

/// Returns true if the refusal is for the model, which may do better the next time.
fn is_for_model(refusal: &ApiError) -> bool {
    matches!(
        refusal,
        ApiError::InputInvalid(_)
            | ApiError::InvalidBody(_)
            | ApiError::ResumeDataInvalid(_)
            | ApiError::GenerationFailed { .. }
            | ApiError::ToolInputInvalid(_)
            | ApiError::ToolFailed(_)
            | ApiError::ApprovalNeeded { .. }
            | ApiError::SeveralStepsWaiting(_)
            | ApiError::StepAsks(_)
            | ApiError::ExecutionNotFound(_)
            | ApiError::ExecutionAlready { .. }
            | ApiError::NotSuspended(_)
            | ApiError::SuspensionPassed { .. }
            | ApiError::Ask(_)
    )
}
