//! Keys that somebody else publishes as a JSON Web Key Set, and changes without notice.
//!
//! The set is fetched when a token first needs it, again in the background when it has grown old,
//! and at once for a key that it does not have. Any number of requests wait for the same fetch,
//! which belongs to none of them. While nobody answers there, the keys that are known count.

mod set;
mod source;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock;
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::Url;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use self::set::KeySet;
use self::source::{FETCH_TIMEOUT, Source};
use super::AuthError;

/// Between fetches once there are keys, however many tokens name keys that are not among them.
const PAUSE: Duration = Duration::from_secs(30);

/// Between fetches as long as there are none: nobody can call until one succeeds.
const PAUSE_WITHOUT_KEYS: Duration = Duration::from_secs(5);

/// Longest wait for a fetch, which is bounded itself where it runs.
const WAIT_MAX: Duration = FETCH_TIMEOUT.saturating_add(Duration::from_secs(1));

/// The keys of one address. Clones share them.
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
    asked_at: Option<Timestamp>,
    /// Closed when the fetch that is under way has ended, however it did.
    under_way: Option<watch::Receiver<()>>,
}

struct Known {
    keys: KeySet,
    fetched_at: Timestamp,
    fresh_for: Duration,
}

/// What a look at the keys gives.
enum Found {
    Key(Arc<DecodingKey>),
    /// Not now, perhaps after this fetch.
    Later(watch::Receiver<()>),
    Nothing(AuthError),
}

impl Jwks {
    /// Takes the address of a set and the algorithms that its keys may be used with. Fetches
    /// nothing yet.
    pub(super) fn new(
        url: Url,
        algorithms: Vec<Algorithm>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let source = Source::new(url)?;
        Ok(Self(Arc::new(Shared { source, algorithms, clock, state: Mutex::default() })))
    }

    /// The key of that name for that algorithm. Without a name, the only one that suits.
    pub(super) async fn key(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<DecodingKey>, AuthError> {
        match self.look(kid, algorithm) {
            Found::Key(key) => return Ok(key),
            Found::Nothing(error) => return Err(error),
            Found::Later(end) => over(end).await,
        }
        self.0.find(&self.0.state(), kid, algorithm)
    }

    /// Looks among the keys that are known, and has them fetched if they are old or too few.
    fn look(&self, kid: Option<&str>, algorithm: Algorithm) -> Found {
        let shared = &self.0;
        let now = shared.clock.now();
        let mut state = shared.state();
        let found = shared.find(&state, kid, algorithm);
        let is_needed = found.is_err() || !state.is_fresh(now);
        let fetch = (is_needed && state.may_ask(now)).then(|| {
            let (end, ended) = watch::channel(());
            state.asked_at = Some(now);
            state.under_way = Some(ended);
            Fetch { shared: Arc::clone(shared), _end: end }
        });
        let under_way = state.under_way.clone();
        // A fetch that cannot begin takes the lock to say so.
        drop(state);
        if let Some(fetch) = fetch {
            fetch.begin();
        }
        match (found, under_way) {
            (Ok(key), _) => Found::Key(key),
            (Err(_), Some(end)) => Found::Later(end),
            (Err(error), None) => Found::Nothing(error),
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
            let reason = format!("the keys of {} could not be fetched yet", self.source.host());
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

    fn may_ask(&self, now: Timestamp) -> bool {
        let pause = if self.known.is_some() { PAUSE } else { PAUSE_WITHOUT_KEYS };
        self.under_way.is_none() && self.asked_at.is_none_or(|at| between(at, now) >= pause)
    }
}

/// Waits for the end of a fetch, but not for a thread that is stuck with it.
async fn over(mut fetch: watch::Receiver<()>) {
    let end = async { while fetch.changed().await.is_ok() {} };
    if timeout(WAIT_MAX, end).await.is_err() {
        log::warn!("the fetch of a key set does not end");
    }
}

/// The time between two readings of the clock, which may have been set back: then it is time to
/// ask as well.
fn between(one: Timestamp, other: Timestamp) -> Duration {
    Duration::from_millis(one.0.abs_diff(other.0))
}

/// A fetch that is under way. It is over when this is dropped: done, failed, or lost with the
/// thread that it ran on.
struct Fetch {
    shared: Arc<Shared>,
    _end: watch::Sender<()>,
}

impl Fetch {
    /// Runs on its own, so that it does not end with the request that needed it.
    fn begin(self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.run());
        }
    }

    async fn run(self) {
        let Shared { source, algorithms, clock, .. } = &*self.shared;
        match source.fetch(algorithms).await {
            Ok((keys, fresh_for)) => {
                if keys.is_empty() {
                    log::warn!("none of the keys of {} is for {algorithms:?}", source.host());
                }
                let known = Known { keys, fetched_at: clock.now(), fresh_for };
                self.shared.state().known = Some(known);
            }
            Err(why) => log::warn!("the keys of {} cannot be fetched: {why}", source.host()),
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.shared.state().under_way = None;
    }
}
