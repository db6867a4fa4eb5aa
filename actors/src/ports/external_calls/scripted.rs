//! External calls for tests, with scripted outcomes and recorded calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::Value;

use super::{CallOrigin, ExternalCalls};
use crate::domain::call::{CommandRun, HttpRequest};
use crate::domain::failure::{AttemptFailure, ErrorKind};

/// Behaviour of [`ScriptedCalls`] for one call.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedEnd {
    Gives(Value),
    /// Fails like a broken connection.
    Fails(String),
    Refuses(AttemptFailure),
    /// Returns the value after a pause in Tokio's time.
    Later(Duration, Value),
    /// Never ends.
    Hangs,
    /// Panics, as a defect of an adapter would.
    Panics,
}

/// A recorded call.
#[derive(Debug, Clone)]
pub struct ExternalCall {
    /// The URL, or the program.
    pub callee: String,
    /// Number of calls before it.
    pub number: usize,
    pub origin: CallOrigin,
}

type Script = dyn Fn(&ExternalCall) -> ScriptedEnd + Send + Sync;

/// Scripted servers and programs. Clones share script and records.
#[derive(Clone)]
pub struct ScriptedCalls {
    script: Arc<Script>,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    calls: Mutex<Vec<ExternalCall>>,
    abandoned: AtomicUsize,
}

impl ScriptedCalls {
    /// Creates calls whose behaviour the script decides.
    pub fn new(script: impl Fn(&ExternalCall) -> ScriptedEnd + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), seen: Arc::default() }
    }

    /// Returns all calls so far.
    pub fn calls(&self) -> Vec<ExternalCall> {
        self.seen.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of calls dropped before their end.
    pub fn abandoned(&self) -> usize {
        self.seen.abandoned.load(Ordering::SeqCst)
    }

    fn call(
        &self,
        callee: String,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let call = {
            let mut calls = self.seen.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let call = ExternalCall { callee, number: calls.len(), origin };
            calls.push(call.clone());
            call
        };
        let end = (self.script)(&call);
        let pending = PendingCall { seen: Arc::clone(&self.seen), has_ended: false };
        async move {
            let result = match end {
                ScriptedEnd::Gives(value) => Ok(value),
                ScriptedEnd::Fails(error) => Err(AttemptFailure::new(ErrorKind::Connection, error)),
                ScriptedEnd::Refuses(failure) => Err(failure),
                ScriptedEnd::Later(pause, value) => {
                    tokio::time::sleep(pause).await;
                    Ok(value)
                }
                ScriptedEnd::Hangs => std::future::pending().await,
                ScriptedEnd::Panics => {
                    pending.ended();
                    // unwinds like a panic, without the panic hook's output
                    std::panic::resume_unwind(Box::new("scripted panic"))
                }
            };
            pending.ended();
            result
        }
        .boxed()
    }
}

impl std::fmt::Debug for ScriptedCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedCalls").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl ExternalCalls for ScriptedCalls {
    fn http(
        &self,
        request: HttpRequest,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        self.call(request.url.to_string(), origin)
    }

    fn command(
        &self,
        run: CommandRun,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        self.call(run.program.to_string(), origin)
    }
}

/// A running call; counts it as abandoned on drop.
struct PendingCall {
    seen: Arc<Seen>,
    has_ended: bool,
}

impl PendingCall {
    /// Marks the end. Takes `self`, so that the future captures the whole guard.
    fn ended(mut self) {
        self.has_ended = true;
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if !self.has_ended {
            self.seen.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}
