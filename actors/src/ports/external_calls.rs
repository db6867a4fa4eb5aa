//! What steps do outside of this process: calls of other servers, runs of programs.

pub mod scripted;

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::Value;

use crate::domain::call::{CommandRun, HttpRequest};
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::ids::ExecutionId;
use crate::domain::trace::Trace;

/// Makes the calls of steps. A call ends well with a value, or with its failure, whose words are
/// fit for callers, without a secret. Dropping the future ends the call and all that it began.
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

/// On whose behalf a call is made.
#[derive(Debug, Clone)]
pub struct CallOrigin {
    /// For the log, such as `step charge` or `tool weather`.
    pub name: Arc<str>,
    /// The same for every attempt, so that the other side can tell a repetition.
    pub idempotency_key: String,
    /// Of a step: its execution, and which attempt it is.
    pub attempt: Option<(ExecutionId, u32)>,
    /// What the other side goes on with.
    pub trace: Option<Trace>,
}

/// Nothing is outside.
#[derive(Debug, Clone, Copy)]
pub struct NoExternalCalls;

impl ExternalCalls for NoExternalCalls {
    fn http(
        &self,
        _: HttpRequest,
        _: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let why = "this process calls no other server";
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
