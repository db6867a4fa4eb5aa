//! Tokens for a server over HTTP, with credentials of this process (OAuth 2.0, `client_credentials`).
//!
//! A token is kept in memory, and fetched again shortly before it ends, beside the requests, or once the
//! server refuses it.

mod answer;
mod challenge;
mod discovery;
mod fetch;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use url::Url;

use self::answer::{Credentials, Given, token_of};
use self::challenge::{Challenge, add_scopes, scopes_of};
use self::discovery::{Endpoint, find, resource_name};
use self::fetch::Fetcher;
use crate::adapters::mcp::refusal::Refusal;
use crate::adapters::mcp::secrets::Sent;
use crate::adapters::mcp::settings::{OAuth, SecretIn};
use crate::adapters::tools::OutgoingHost;

/// Longest time before its end at which a token is fetched again.
const MARGIN_MAX: Duration = Duration::from_secs(30);
/// Time limit of a fetch while the token before is still good. If that ends meanwhile, requests wait for it.
const EARLY_LIMIT: Duration = Duration::from_secs(5);
/// Pause after a failed fetch while the token before is still good.
const EARLY_PAUSE: Duration = Duration::from_secs(10);
/// Pause after a new token was refused: what is wrong then, such as the audience, is corrected by people, and
/// authorization servers count what they give.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
/// Time for which a failure is that of all requests.
const FAILURE_KEPT: Duration = Duration::from_secs(1);

/// A token of a server.
pub(super) struct Token {
    pub(super) text: String,
    /// Time from which another one is fetched, and time of its end.
    times: Option<(Instant, Instant)>,
}

impl Token {
    fn given(Given { token, lifetime }: Given) -> Self {
        let times = lifetime.map(|lifetime| {
            let (now, margin) = (Instant::now(), MARGIN_MAX.min(lifetime / 4));
            (now + (lifetime - margin), now + lifetime)
        });
        Self { text: token, times }
    }

    fn is_good(&self, now: Instant) -> bool {
        self.times.is_none_or(|(_, end)| end > now)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.times.is_some_and(|(renewal, _)| renewal <= now)
    }
}

/// Shows no token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Tokens for the requests of one connection. Clones share them.
#[derive(Clone)]
pub(super) struct Tokens(Arc<Source>);

struct Source {
    name: Arc<str>,
    /// Address of the server.
    url: Url,
    oauth: OAuth,
    secret: String,
    fetcher: Fetcher,
    /// Time limit of a fetch, with all that leads to it.
    limit: Duration,
    /// Secrets that are removed from texts, to which tokens are added.
    sent: Sent,
    /// Held while a token is fetched, so that there is one fetch at a time.
    held: Arc<Mutex<Held>>,
    /// Changed only while `held` is held, except for `refused`.
    newest: RwLock<Newest>,
}

/// State that requests see without waiting for a fetch.
#[derive(Clone, Default)]
struct Newest {
    token: Option<Arc<Token>>,
    /// A token that was refused although it was new, and the time until which none is fetched in its place.
    refused: Option<(Arc<Token>, Instant)>,
}

#[derive(Default)]
struct Held {
    endpoint: Option<Endpoint>,
    /// Scopes that the server has asked for.
    asked: Vec<String>,
    /// Scopes of the newest request that got a token.
    requested: Vec<String>,
    /// Address of its metadata, as the server has said.
    resource_metadata: Option<String>,
    /// The newest failure, until there is a token again.
    failed: Option<(Instant, Refusal)>,
    /// Time until which no token is fetched before the end of the one before.
    early_after: Option<Instant>,
}

/// Server for which tokens are fetched.
pub(super) struct TokenSettings<'s> {
    pub(super) name: &'s Arc<str>,
    pub(super) url: &'s Url,
    pub(super) oauth: &'s OAuth,
    pub(super) secret: String,
    pub(super) hosts: &'s [OutgoingHost],
    pub(super) connect_timeout: Duration,
}

impl Tokens {
    /// Prepares to fetch tokens. Adds them to what was `sent`.
    pub(super) fn new(settings: TokenSettings<'_>, sent: Sent) -> Result<Self, String> {
        let TokenSettings { name, url, oauth, secret, hosts, connect_timeout } = settings;
        let configured: Vec<_> = [url].into_iter().chain(&oauth.token_url).cloned().collect();
        Ok(Self(Arc::new(Source {
            name: Arc::clone(name),
            url: url.clone(),
            oauth: oauth.clone(),
            secret,
            fetcher: Fetcher::new(hosts, &configured)?,
            // shorter than that of the connection, whose failure would not name the reason
            limit: connect_timeout * 9 / 10,
            sent,
            held: Arc::default(),
            newest: RwLock::default(),
        })))
    }

    /// Returns the token for a request; `None` before the server has said what it wants. Waits only if there
    /// is no good one.
    pub(super) async fn current(&self) -> Result<Option<Arc<Token>>, Refusal> {
        let (source, now) = (&*self.0, Instant::now());
        if let Some(token) = source.newest().token.filter(|token| token.is_good(now)) {
            if token.is_due(now) {
                self.renew_early(&token);
            }
            return Ok(Some(token));
        }
        let mut held = source.held.lock().await;
        match source.newest().token {
            // another request has fetched it meanwhile
            Some(token) if token.is_good(Instant::now()) => Ok(Some(token)),
            None if source.oauth.token_url.is_none() => Ok(None),
            Some(_) | None => source.again(&mut held, source.limit).await.map(Some),
        }
    }

    /// Fetches another token while requests have this one, unless that is under way or has just failed.
    fn renew_early(&self, token: &Arc<Token>) {
        let Ok(mut held) = Arc::clone(&self.0.held).try_lock_owned() else { return };
        let is_newest = self.0.is_newest(token);
        if !is_newest || held.early_after.is_some_and(|time| time > Instant::now()) {
            return;
        }
        let source = Arc::clone(&self.0);
        // ends by itself, also after the connection
        tokio::spawn(async move {
            let limit = source.limit.min(EARLY_LIMIT);
            let Err(refusal) = source.again(&mut held, limit).await else { return };
            held.early_after = Some(Instant::now() + EARLY_PAUSE);
            // requests without a good token try it with their own limit
            held.failed = None;
            let why = source.sent.known().removed_from(refusal.why);
            log::warn!("MCP server {}: {why}; the token before is used", source.name);
        });
    }

    /// Returns another token in place of one that the server refuses with status 401, or of none.
    pub(super) async fn renewed(
        &self,
        used: Option<&Arc<Token>>,
        header: &str,
    ) -> Result<Arc<Token>, Refusal> {
        let source = &*self.0;
        let mut held = source.held.lock().await;
        if let Some(newer) = source.other_than(used) {
            return Ok(newer);
        }
        if let Newest { token: Some(token), refused: Some((refused, until)) } = source.newest()
            && Arc::ptr_eq(&token, &refused)
            && until > Instant::now()
        {
            return Err(Refusal::of_newest_token(until - Instant::now()));
        }
        // the server may have moved to another authorization server
        held.endpoint = None;
        source.change(|newest| newest.token = None);
        let challenge = Challenge::read(header);
        if let Some(metadata) = challenge.resource_metadata {
            held.resource_metadata = Some(metadata);
        }
        let mut scopes = held.asked.clone();
        add_scopes(&mut scopes, &challenge.scopes);
        source.fetch(&mut held, scopes, source.limit).await
    }

    /// Notes that the server refuses a token which was fetched in place of a refused one: for a while, no
    /// other one is fetched for that reason. Returns the reason of the request.
    pub(super) fn refused_again(&self, used: Option<&Arc<Token>>) -> Refusal {
        let source = &*self.0;
        // a newer one is tried first
        if let Some(token) = used.filter(|token| source.is_newest(token)) {
            let refused = (Arc::clone(token), Instant::now() + REFUSED_PAUSE);
            source.change(|newest| newest.refused = Some(refused));
        }
        Refusal::of_new_token()
    }

    /// Returns a token of a wider scope in place of one that the server refuses with status 403; `None` if
    /// its scope is not the reason. The error says what to do.
    pub(super) async fn widened(
        &self,
        used: Option<&Arc<Token>>,
        header: &str,
    ) -> Result<Option<Arc<Token>>, Refusal> {
        let challenge = Challenge::read(header);
        if !challenge.is_of_scope() {
            return Ok(None);
        }
        let refused = |why: String| Err(Refusal { why, status: Some(403) });
        let wanted = challenge.scopes.join(" ");
        let source = &*self.0;
        if source.oauth.scope.is_some() {
            return refused(format!(
                "it wants a token with the scope `{wanted}` (status 403); see `oauth.scope`"
            ));
        }
        let mut held = source.held.lock().await;
        if let Some(newer) = source.other_than(used) {
            return Ok(Some(newer));
        }
        let mut wider = held.requested.clone();
        add_scopes(&mut wider, &challenge.scopes);
        if wider == held.requested {
            return refused(format!("it refuses a token with the scope `{wanted}` (status 403)"));
        }
        source.fetch(&mut held, wider, source.limit).await.map(Some)
    }
}

impl Source {
    fn newest(&self) -> Newest {
        self.newest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Newest)) {
        change(&mut self.newest.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the newest token if it is another one than that which was used.
    fn other_than(&self, used: Option<&Arc<Token>>) -> Option<Arc<Token>> {
        let is_used = |token: &Arc<Token>| used.is_some_and(|used| Arc::ptr_eq(used, token));
        self.newest().token.filter(|token| !is_used(token))
    }

    fn is_newest(&self, token: &Arc<Token>) -> bool {
        self.newest().token.is_some_and(|newest| Arc::ptr_eq(&newest, token))
    }

    /// Fetches a token of the same scopes.
    async fn again(&self, held: &mut Held, limit: Duration) -> Result<Arc<Token>, Refusal> {
        let scopes = held.asked.clone();
        self.fetch(held, scopes, limit).await
    }

    /// Fetches a token of these scopes, or of those of the server if there are none. A failure is that of
    /// all requests for a second.
    async fn fetch(
        &self,
        held: &mut Held,
        scopes: Vec<String>,
        limit: Duration,
    ) -> Result<Arc<Token>, Refusal> {
        let now = Instant::now();
        if let Some((at, refusal)) = &held.failed
            && *at + FAILURE_KEPT > now
        {
            return Err(refusal.clone());
        }
        let fetched = timeout(limit, self.ask(held, &scopes)).await;
        let fetched = fetched.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")));
        match fetched {
            Ok((given, requested)) => {
                // scopes that got no token are not asked for again
                (held.asked, held.requested) = (scopes, requested);
                self.sent.add_token(&given.token);
                let lifetime = given.lifetime;
                log::debug!("MCP server {}: a token was fetched, for {lifetime:?}", self.name);
                let token = Arc::new(Token::given(given));
                (held.failed, held.early_after) = (None, None);
                self.change(|newest| newest.token = Some(Arc::clone(&token)));
                Ok(token)
            }
            Err(why) => {
                held.endpoint = None;
                let refusal = Refusal { why: format!("it gets no token: {why}"), status: None };
                held.failed = Some((Instant::now(), refusal.clone()));
                Err(refusal)
            }
        }
    }

    /// Asks for a token; returns it with the scopes that were asked for.
    async fn ask(&self, held: &mut Held, asked: &[String]) -> Result<(Given, Vec<String>), String> {
        let endpoint = match &held.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => {
                let found = self.endpoint(held.resource_metadata.clone()).await?;
                held.endpoint.insert(found).clone()
            }
        };
        let Endpoint { url, resource, scopes, secret_in } = endpoint;
        let requested = match &self.oauth.scope {
            Some(scope) => scopes_of(scope),
            None if asked.is_empty() => scopes,
            None => asked.to_vec(),
        };
        let ours = Credentials { id: &self.oauth.client_id, secret: &self.secret };
        let secret_in = self.oauth.secret_in.unwrap_or(secret_in);
        let form = ours.form(secret_in, &requested, &resource);
        let host = url.host_str().unwrap_or_default();
        let failed = |why: String| format!("{host}: {why}");
        let answer = self.fetcher.post(&url, authorization(&ours, secret_in), form).await;
        let given = token_of(&answer.map_err(failed)?, &self.sent.known()).map_err(failed)?;
        Ok((given, requested))
    }

    /// Returns where tokens are fetched.
    async fn endpoint(&self, resource_metadata: Option<String>) -> Result<Endpoint, String> {
        match &self.oauth.token_url {
            Some(url) => Ok(Endpoint {
                url: url.clone(),
                resource: resource_name(&self.url),
                scopes: Vec::new(),
                secret_in: SecretIn::Header,
            }),
            None => {
                let challenge = Challenge { resource_metadata, ..Challenge::default() };
                find(&self.fetcher, &self.url, &challenge).await
            }
        }
    }
}

/// Returns the header with the credentials, if they are in a header.
fn authorization(ours: &Credentials<'_>, secret_in: SecretIn) -> Option<HeaderValue> {
    if secret_in == SecretIn::Body {
        return None;
    }
    // base64 fits
    let mut value = HeaderValue::from_str(&format!("Basic {}", ours.basic())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the forms in which a secret is sent, beside itself.
pub(super) fn forms_of(oauth: &OAuth, secret: &str) -> Vec<String> {
    let encoded = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    vec![Credentials { id: &oauth.client_id, secret }.basic(), encoded]
}

/// Shows no credentials.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokens").field(&self.0.name).finish()
    }
}

#[cfg(test)]
mod tests;
