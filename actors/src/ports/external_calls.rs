//! Calls of steps out of this process: to other servers, and to programs.

pub mod scripted;

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::Value;

use crate::domain::call::{CommandRun, HttpRequest};
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::ids::ExecutionId;
use crate::domain::trace::Trace;

/// Makes the calls of steps. A call returns a value or a failure whose message contains no secret.
/// Dropping the future ends the call and everything it started.
pub trait ExternalCalls: Send + Sync {
    /// Calls another server.
    fn http(
        &self,
        request: HttpRequest,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>>;

    /// Runs a program.
    fn command(
        &self,
        run: CommandRun,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>>;
}

/// Originator of a call.
#[derive(Debug, Clone)]
pub struct CallOrigin {
    /// Name for the log, such as `step charge` or `tool weather`.
    pub name: Arc<str>,
    /// Same for every attempt, so that the other side can recognize repetitions.
    pub idempotency_key: String,
    /// Execution and attempt number, for a step.
    pub attempt: Option<(ExecutionId, u32)>,
    /// Trace for the other side to continue.
    pub trace: Option<Trace>,
}

/// Rejects every call.
#[derive(Debug, Clone, Copy)]
pub struct NoExternalCalls;

impl ExternalCalls for NoExternalCalls {
    fn http(
        &self,
        _: HttpRequest,
        _: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let why = "this process makes no HTTP calls";
        ready(Err(AttemptFailure::new(ErrorKind::Request, why))).boxed()
    }

    fn command(
        &self,
        _: CommandRun,
        _: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let why = "this process runs no programs";
        ready(Err(AttemptFailure::new(ErrorKind::Request, why))).boxed()
    }
}
