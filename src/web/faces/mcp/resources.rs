//! Executions as resources.

use super::Outcome;
use super::session::Session;
use crate::api::catalogue::RouteName;
use crate::api::faces::mcp::{no_resource, resource, resource_of, text};
use crate::api::wire::state::StateView;
use crate::api::{ApiError, executions};

impl Session {
    /// Carries `resources/read` out. An execution that the caller does not see is not there, and
    /// neither is one of a workflow that the face does not offer.
    pub(super) async fn read_resource(&mut self) -> Outcome {
        let uri = text(&mut self.request, "uri")?;
        let uri = uri.ok_or_else(|| self.request.invalid("uri is missing"))?;
        let missing = || no_resource(&self.request, &uri);
        let run = resource_of(&uri).filter(|run| {
            self.server.offer.workflows.has(&run.workflow)
                && self.may(RouteName::DescribeExecution, run)
        });
        let run = run.ok_or_else(missing)?;
        let state = executions::describe(&self.call.runtime, &self.target(&run)).await;
        let state = state.map_err(|refusal| match refusal {
            ApiError::ExecutionNotFound(_) => missing(),
            refusal => self.request.refused(&refusal),
        })?;
        let shown = serde_json::to_string(&StateView::of(&state)).map_err(|error| {
            log::error!("cannot serialize a state: {error}");
            self.request.refused(&ApiError::Internal)
        })?;
        Ok(resource(&self.request, &uri, &shown))
    }
}
