//! A model with retries within a time limit, and with fallbacks.
//!
//! A stream is restarted only before its first event.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::agent::tool::Content;
use greenroom_actors::ports::model::{
    LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Served,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::retry::{RetryPolicy, is_for_fallback, pause_before_next};

/// The model that answered, and the number of attempts that failed before.
struct Success {
    model: Arc<dyn LanguageModel>,
    failed: u32,
    /// Name of the first model, if a fallback answered.
    instead_of: Option<Arc<str>>,
}

impl Success {
    /// Adds the failed attempts to the model's own record.
    fn served(&self, own: Option<Box<Served>>) -> Option<Box<Served>> {
        let mut served = own.unwrap_or_else(|| Box::new(self.model.expected()));
        served.failed_attempts = served.failed_attempts.saturating_add(self.failed);
        if let Some(first) = &self.instead_of {
            served.instead_of = Some(Arc::clone(first));
        }
        Some(served)
    }

    fn recorded_in(self, events: Events) -> Events {
        let recorded = move |event| match event {
            ModelEvent::Finished { usage, finish_reason, served } => {
                ModelEvent::Finished { usage, finish_reason, served: self.served(served) }
            }
            event => event,
        };
        events.map(move |event| event.map(&recorded)).boxed()
    }
}

type Events = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A model with retries and fallbacks. Clones share them.
#[derive(Clone)]
pub struct RetryingModel {
    inner: Arc<dyn LanguageModel>,
    policy: RetryPolicy,
    total: Duration,
    fallback: Arc<[Arc<dyn LanguageModel>]>,
}

impl fmt::Debug for RetryingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingModel")
            .field("model", &self.inner.name())
            .field("policy", &self.policy)
            .field("total", &self.total)
            .field("fallback", &self.fallback.len())
            .finish()
    }
}

impl RetryingModel {
    /// Wraps `inner`. `total` limits its whole answer with all attempts. After its last failure,
    /// the models of `fallback` are tried in turn, each within its own limits.
    pub fn new(
        inner: Arc<dyn LanguageModel>,
        policy: RetryPolicy,
        total: Duration,
        fallback: Vec<Arc<dyn LanguageModel>>,
    ) -> Self {
        Self { inner, policy, total, fallback: fallback.into() }
    }

    /// Tries until an attempt succeeds. `attempt` gets the model and its deadline, if it has one.
    async fn first_success<T>(
        &self,
        attempt: impl Fn(
            Arc<dyn LanguageModel>,
            Option<Instant>,
        ) -> BoxFuture<'static, Result<T, ModelError>>,
    ) -> Result<(T, Success), ModelError> {
        let mut failed = 0;
        let mut error = match self.retried(&attempt, &mut failed).await {
            Ok(answered) => {
                let model = Arc::clone(&self.inner);
                return Ok((answered, Success { model, failed, instead_of: None }));
            }
            Err(error) => error,
        };
        for model in &*self.fallback {
            if !is_for_fallback(&error) {
                break;
            }
            log::warn!("model {}: {error}; falling back to {}", self.inner.name(), model.name());
            match attempt(Arc::clone(model), None).await {
                Ok(answered) => {
                    let (model, first) = (Arc::clone(model), Arc::from(self.inner.name()));
                    return Ok((answered, Success { model, failed, instead_of: Some(first) }));
                }
                Err(next) => error = next,
            }
            failed += 1;
        }
        Err(error)
    }

    /// Tries the first model until it succeeds or its attempts are used up.
    async fn retried<T>(
        &self,
        attempt: &impl Fn(
            Arc<dyn LanguageModel>,
            Option<Instant>,
        ) -> BoxFuture<'static, Result<T, ModelError>>,
        failed: &mut u32,
    ) -> Result<T, ModelError> {
        let deadline = Instant::now() + self.total;
        loop {
            let error = match attempt(Arc::clone(&self.inner), Some(deadline)).await {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            *failed += 1;
            let left = deadline.saturating_duration_since(Instant::now());
            let pause = pause_before_next(&self.policy, *failed, &error, left, random());
            let Some(pause) = pause else { return Err(error) };
            let attempts = self.policy.attempts;
            log::warn!(
                "model {}: {error}; attempt {} of {attempts} follows in {pause:?}",
                self.inner.name(),
                *failed + 1
            );
            sleep(pause).await;
        }
    }

    fn too_late(name: &str, total: Duration) -> ModelError {
        let total = humantime::format_duration(total);
        let message = format!("{name} did not finish within {total} (timeouts.total)");
        ModelError::new(ModelErrorKind::Timeout, message)
    }
}

impl LanguageModel for RetryingModel {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote() || self.fallback.iter().any(|model| model.is_remote())
    }

    /// Each model gets what it reads.
    fn reads_content(&self) -> bool {
        true
    }

    fn expected(&self) -> Served {
        self.inner.expected()
    }

    fn generate(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let model = self.clone();
        let total = self.total;
        async move {
            let attempt = |inner: Arc<dyn LanguageModel>, deadline: Option<Instant>| {
                let answer = inner.generate(Content::read_by(&*inner, request.clone()));
                async move {
                    let Some(deadline) = deadline else { return answer.await };
                    let in_time = timeout_at(deadline, answer).await;
                    in_time.unwrap_or_else(|_| Err(Self::too_late(inner.name(), total)))
                }
                .boxed()
            };
            let (answer, success) = model.first_success(attempt).await?;
            Ok(ModelAnswer { served: success.served(answer.served), ..answer })
        }
        .boxed()
    }

    fn stream(&self, request: ModelRequest) -> Events {
        let model = self.clone();
        let total = self.total;
        async move {
            let attempt = |inner: Arc<dyn LanguageModel>, deadline: Option<Instant>| {
                let events = inner.stream(Content::read_by(&*inner, request.clone()));
                let events = match deadline {
                    Some(deadline) => until(events, inner, deadline, total),
                    None => events,
                };
                begun(events).boxed()
            };
            match model.first_success(attempt).await {
                Ok((events, success)) => success.recorded_in(events),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        }
        .flatten_stream()
        .boxed()
    }
}

/// Waits for the first event; an error in its place is an error of the attempt.
async fn begun(mut events: Events) -> Result<Events, ModelError> {
    match events.next().await {
        Some(Ok(first)) => Ok(stream::iter([Ok(first)]).chain(events).boxed()),
        Some(Err(error)) => Err(error),
        None => Ok(events),
    }
}

/// Ends a stream with an error at the deadline.
fn until(
    events: Events,
    model: Arc<dyn LanguageModel>,
    deadline: Instant,
    total: Duration,
) -> Events {
    stream::unfold(Some((events, model)), move |rest| async move {
        let (mut events, model) = rest?;
        match timeout_at(deadline, events.next()).await {
            Ok(Some(event)) => Some((event, Some((events, model)))),
            Ok(None) => None,
            Err(_) => Some((Err(RetryingModel::too_late(model.name(), total)), None)),
        }
    })
    .boxed()
}

/// Returns a random number from 0 to 1.
fn random() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    let [high, low, ..] = random.to_be_bytes();
    f64::from(u16::from_be_bytes([high, low])) / f64::from(u16::MAX)
}
