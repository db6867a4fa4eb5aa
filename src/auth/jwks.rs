//! Keys of another server, published as a JSON Web Key Set and changed without notice.
//!
//! The set is fetched when a token first needs it, again in the background when it is stale, and
//! immediately for an unknown key. All requests that need it share one fetch, which does not end
//! with any of them. While the server does not answer, the known keys remain valid.

mod set;
mod source;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock;
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use url::Url;

use self::set::KeySet;
use self::source::{FETCH_TIMEOUT, Source};
use super::AuthError;

/// Minimum time between fetches once there are keys, whatever the number of tokens with unknown
/// keys.
const PAUSE: Duration = Duration::from_secs(30);

/// Minimum time between fetches while there are no keys: no token is accepted until one succeeds.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(5);

/// Longest wait for a fetch, which also has its own time limit.
const WAIT_MAX: Duration = FETCH_TIMEOUT.saturating_add(Duration::from_secs(1));

/// The keys of one address, shared by clones.
#[derive(Clone)]
pub(super) struct Jwks(Arc<Shared>);

struct Shared {
    source: Source,
    algorithms: Vec<Algorithm>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: Option<Known>,
    fetch_started_at: Option<Timestamp>,
    /// Closed when the running fetch has ended, in whatever way.
    running_fetch: Option<watch::Receiver<()>>,
}

struct Known {
    keys: KeySet,
    fetched_at: Timestamp,
    fresh_for: Duration,
}

/// Result of a lookup.
enum Lookup {
    Key(Arc<DecodingKey>),
    /// Unknown; to be looked up again after this fetch.
    AfterFetch(watch::Receiver<()>),
    Refused(AuthError),
}

impl Jwks {
    /// Creates a set for these algorithms. Fetches nothing yet.
    pub(super) fn new(
        url: Url,
        algorithms: Vec<Algorithm>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let source = Source::new(url)?;
        Ok(Self(Arc::new(Shared { source, algorithms, clock, state: Mutex::default() })))
    }

    /// Returns the key with that id for that algorithm. Without an id, the only suitable one.
    pub(super) async fn key(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<DecodingKey>, AuthError> {
        match self.look_up(kid, algorithm) {
            Lookup::Key(key) => return Ok(key),
            Lookup::Refused(error) => return Err(error),
            Lookup::AfterFetch(end) => wait_for(end).await,
        }
        self.0.find(&self.0.state(), kid, algorithm)
    }

    /// Looks up a known key, and starts a fetch if the keys are stale or the key is unknown.
    fn look_up(&self, kid: Option<&str>, algorithm: Algorithm) -> Lookup {
        let shared = &self.0;
        let now = shared.clock.now();
        let mut state = shared.state();
        let found = shared.find(&state, kid, algorithm);
        let is_needed = found.is_err() || !state.is_fresh(now);
        let fetch = (is_needed && state.may_fetch(now)).then(|| {
            let (end, ended) = watch::channel(());
            state.fetch_started_at = Some(now);
            state.running_fetch = Some(ended);
            Fetch { shared: Arc::clone(shared), _end: end }
        });
        let running_fetch = state.running_fetch.clone();
        // a fetch that cannot start locks the state when it is dropped
        drop(state);
        if let Some(fetch) = fetch {
            fetch.start();
        }
        match (found, running_fetch) {
            (Ok(key), _) => Lookup::Key(key),
            (Err(_), Some(end)) => Lookup::AfterFetch(end),
            (Err(error), None) => Lookup::Refused(error),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(
        &self,
        state: &State,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<DecodingKey>, AuthError> {
        let Some(known) = &state.known else {
            let reason = format!("no key set from {} yet", self.source.host());
            return Err(AuthError::Unavailable(reason));
        };
        known.keys.find(kid, algorithm).ok_or_else(|| AuthError::invalid("unknown key"))
    }
}

impl State {
    fn is_fresh(&self, now: Timestamp) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| between(known.fetched_at, now) < known.fresh_for)
    }

    fn may_fetch(&self, now: Timestamp) -> bool {
        let pause = if self.known.is_some() { PAUSE } else { PAUSE_WITHOUT_KEYS };
        self.running_fetch.is_none()
            && self.fetch_started_at.is_none_or(|at| between(at, now) >= pause)
    }
}

/// Waits for the end of a fetch, with a time limit in case its thread is blocked.
async fn wait_for(mut fetch: watch::Receiver<()>) {
    let end = async { while fetch.changed().await.is_ok() {} };
    if timeout(WAIT_MAX, end).await.is_err() {
        log::warn!(
            "the fetch of a key set has not ended after {WAIT_MAX:?}; its thread is blocked"
        );
    }
}

/// Returns the time between two readings of the clock, in either direction: keys are fetched again
/// after the clock was set back, too.
fn between(one: Timestamp, other: Timestamp) -> Duration {
    Duration::from_millis(one.0.abs_diff(other.0))
}

/// A running fetch. It ends when this is dropped: done, failed, or lost with its thread.
struct Fetch {
    shared: Arc<Shared>,
    _end: watch::Sender<()>,
}

impl Fetch {
    /// Runs in a separate task, so that it does not end with the request that needed it.
    fn start(self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.run());
        }
    }

    async fn run(self) {
        let Shared { source, algorithms, clock, .. } = &*self.shared;
        match source.fetch(algorithms).await {
            Ok((keys, fresh_for)) => {
                if keys.is_empty() {
                    log::warn!(
                        "no key of {} is usable for {algorithms:?}; all tokens are refused",
                        source.host()
                    );
                }
                let known = Known { keys, fetched_at: clock.now(), fresh_for };
                self.shared.state().known = Some(known);
            }
            Err(reason) => {
                log::warn!("cannot fetch the key set from {}: {reason}", source.host());
            }
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.shared.state().running_fetch = None;
    }
}
