//! An outside for tests: does what it is told to and remembers who called.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::Value;

use super::{CallOrigin, ExternalCalls};
use crate::domain::call::{CommandRun, HttpRequest};
use crate::domain::failure::{AttemptFailure, ErrorKind};

/// What a [`ScriptedCalls`] does when it is called.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedEnd {
    Gives(Value),
    /// As a connection that breaks.
    Fails(String),
    Refuses(AttemptFailure),
    /// Gives it after a pause, which follows Tokio's time.
    Later(Duration, Value),
    /// Never ends.
    Hangs,
    /// Panics, as a defect of an adapter would.
    Panics,
}

/// A call as it came.
#[derive(Debug, Clone)]
pub struct ExternalCall {
    /// The URL, or the program.
    pub callee: String,
    /// How many calls came before it.
    pub number: usize,
    pub origin: CallOrigin,
}

type Script = dyn Fn(&ExternalCall) -> ScriptedEnd + Send + Sync;

/// The twin of other servers and programs for tests. Clones share the script and what was seen.
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
    /// Does with each call what the script says of it.
    pub fn new(script: impl Fn(&ExternalCall) -> ScriptedEnd + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), seen: Arc::default() }
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<ExternalCall> {
        self.seen.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls whose future was dropped before its end.
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
        let at_work = AtWork { seen: Arc::clone(&self.seen), has_ended: false };
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
                    at_work.ended();
                    // unwinds like a panic, without the hook that would print into the test's output
                    std::panic::resume_unwind(Box::new("scripted panic"))
                }
            };
            at_work.ended();
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

/// Counts a call that is dropped.
struct AtWork {
    seen: Arc<Seen>,
    has_ended: bool,
}

impl AtWork {
    /// The end; of a whole, so that a future has the whole of it.
    fn ended(mut self) {
        self.has_ended = true;
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.has_ended {
            self.seen.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}
