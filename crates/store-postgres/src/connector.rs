//! Opens connections.

pub(crate) mod losses;
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, Error, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

pub use self::tls::problem_of_authorities;
pub(crate) use self::tls::{UnusableAuthorities, certificate_problem};

use crate::address::{Host, HostPlace, Tls};
use crate::fault::{advice_on, reason_of};
use crate::replication::CanceledWaits;
use crate::settings::{PostgresDurability, PostgresSettings};

/// Time that a host has to accept a connection, with everything that precedes the first statement.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Idle time, interval and number of the probes that find a dead host.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);
/// Time after which sent bytes that the host has not confirmed end the connection.
const UNCONFIRMED_MAX: Duration = Duration::from_secs(15);

/// Purpose of a connection, which decides its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Checks and migrates the database; may take long.
    Opening,
    /// Shows that this server is alive.
    Beat,
    /// Writes batches of one lane.
    Lane,
    /// Everything else.
    Pooled,
}

impl Purpose {
    /// Settings of a session, as one batch of statements.
    ///
    /// A plan made while tables are empty is kept for the session, so plans that scan or hash
    /// whole tables are switched off. Most statements cost more to plan than to run. With the usual
    /// cost of a random page, a list would be read whole and sorted, not read along its index.
    fn settings(self) -> &'static str {
        match self {
            Self::Opening => "SET statement_timeout = 0; SET lock_timeout = '60s'",
            Self::Beat => "SET jit = off; SET statement_timeout = '3s'; SET lock_timeout = '2s'",
            Self::Lane => {
                "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
                SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;
                SET enable_material = off; SET jit = off; SET statement_timeout = '10s';
                SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '5s'"
            }
            Self::Pooled => {
                "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
                SET random_page_cost = 1.1; SET jit = off; SET statement_timeout = '30s';
                SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'"
            }
        }
    }

    /// Returns the statements that begin a session; the first value that they return is whether it
    /// is read-only.
    fn begin_session(self, durability: PostgresDurability) -> String {
        let durability = match durability {
            PostgresDurability::Full => "",
            PostgresDurability::Normal => "; SET synchronous_commit = off",
            // a stronger setting stays
            PostgresDurability::Replicated => {
                "; SELECT set_config('synchronous_commit', 'on', false)
                WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
            }
        };
        // a warning reports that the wait of a commit for replicas was canceled
        let warnings = "SET client_min_messages = warning";
        format!("SHOW transaction_read_only; {warnings}; {}{durability}", self.settings())
    }

    /// Returns true if a connection may be to a server without replicas, though acknowledgements
    /// are to depend on them.
    fn needs_no_replica(self) -> bool {
        matches!(self, Self::Opening | Self::Beat)
    }
}

/// Opens connections, which the store's thread drives. Clones share it.
#[derive(Clone)]
pub(crate) struct Connector {
    targets: Arc<Targets>,
    tls: MakeRustlsConnect,
    durability: PostgresDurability,
    driver: Handle,
}

/// Index that no host has.
const NO_HOST: usize = usize::MAX;

/// The hosts, each with its configuration.
struct Targets {
    hosts: Vec<(String, Config)>,
    /// The host that accepted the last connection, which is tried first; [`NO_HOST`] before that.
    last: AtomicUsize,
    /// Reason of the last failure of each host, by its index; none once a connection succeeds.
    failures: Mutex<BTreeMap<usize, String>>,
}

impl Targets {
    fn failures(&self) -> MutexGuard<'_, BTreeMap<usize, String>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the host of a new connection, and logs which one of several is in use.
    fn use_host(&self, index: usize) {
        self.failures().clear();
        let before = self.last.swap(index, Ordering::Relaxed);
        if before == index || self.hosts.len() < 2 {
            return;
        }
        let (host, _) = &self.hosts[index];
        match self.hosts.get(before) {
            Some((before, _)) => {
                log::info!("the database is now used at {host}, no longer at {before}");
            }
            None => log::info!("the database is used at {host}"),
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the configurations have the password
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Failures of all hosts.
#[derive(Debug)]
pub(crate) struct ConnectError(pub(crate) Vec<HostError>);

/// Failure of one host.
#[derive(Debug, thiserror::Error)]
#[error("{host}: {cause}")]
pub(crate) struct HostError {
    pub(crate) host: String,
    pub(crate) cause: HostFault,
}

/// Reason for not using a host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostFault {
    #[error("no answer within {CONNECT_MAX:?}")]
    NoAnswer,
    #[error("it accepts no writes")]
    ReadOnly,
    #[error("it has no synchronous replicas (synchronous_standby_names is empty)")]
    NotReplicated,
    #[error("{}", reason_of(.0))]
    Failed(Error),
}

impl HostFault {
    /// Returns true if the host answers and has no room for another connection.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Failed(error) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS))
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, failure) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "; " })?;
            failure.fmt(f)?;
        }
        Ok(())
    }
}

impl ConnectError {
    /// Returns true if a host has no room for another connection.
    fn lacks_room(&self) -> bool {
        let is_full = |failure: &HostError| {
            matches!(&failure.cause, HostFault::Failed(error)
                if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS))
        };
        self.0.iter().any(is_full)
    }

    /// Describes the failures, with what to do about them.
    pub(crate) fn advice(&self) -> String {
        let advice = |failure: &HostError| match &failure.cause {
            HostFault::Failed(error) => format!("{}: {}", failure.host, advice_on(error)),
            HostFault::NoAnswer | HostFault::ReadOnly | HostFault::NotReplicated => {
                failure.to_string()
            }
        };
        self.0.iter().map(advice).collect::<Vec<_>>().join("; ")
    }
}

/// Failure to connect, or of a statement that follows.
#[derive(Debug)]
pub(crate) enum SessionError {
    Unreachable(ConnectError),
    Failed(Error),
    /// An earlier commit waits for replicas.
    NotReplicated,
}

impl From<ConnectError> for SessionError {
    fn from(error: ConnectError) -> Self {
        Self::Unreachable(error)
    }
}

impl From<Error> for SessionError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl SessionError {
    /// Returns true if the database has no room for another connection.
    pub(crate) fn lacks_room(&self) -> bool {
        matches!(self, Self::Unreachable(error) if error.lacks_room())
    }

    /// Describes the failure, of each host that was tried, with what to do about it.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Unreachable(error) => error.advice(),
            Self::Failed(error) => advice_on(error),
            Self::NotReplicated => "no synchronous replica has confirmed an earlier commit; check \
                                    the replicas that synchronous_standby_names names"
                .to_owned(),
        }
    }
}

impl Connector {
    pub(crate) fn new(
        settings: &PostgresSettings,
        driver: Handle,
    ) -> Result<Self, UnusableAuthorities> {
        let tls = tls::connector(settings.authorities.as_deref())?;
        let address = &settings.address;
        let base = base_config(settings);
        let target = |host: &Host| {
            let mut config = base.clone();
            match &host.place {
                HostPlace::Network(name) => config.host(name),
                HostPlace::Socket(folder) => config.host_path(folder),
            };
            config.port(host.port).ssl_mode(match address.tls_to(host) {
                Tls::Off => SslMode::Disable,
                Tls::IfOffered => SslMode::Prefer,
                Tls::Verified => SslMode::Require,
            });
            (host.to_string(), config)
        };
        let hosts = address.hosts.iter().map(target).collect();
        let (last, failures) = (AtomicUsize::new(NO_HOST), Mutex::default());
        let targets = Arc::new(Targets { hosts, last, failures });
        Ok(Self { targets, tls, durability: settings.durability, driver })
    }

    /// Opens a connection under a name, which the database shows (`application_name`), like
    /// [`Connector::connect_to_any`].
    pub(crate) async fn connect(
        &self,
        name: String,
        purpose: Purpose,
    ) -> Result<(Client, JoinHandle<()>), ConnectError> {
        self.connect_to_any(name, purpose, CanceledWaits::default()).await
    }

    /// Describes why hosts could not be connected to; `None` if the last connection succeeded.
    pub(crate) fn failures(&self) -> Option<String> {
        let failures = self.targets.failures();
        let all: Vec<_> = failures.values().map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Opens a connection to the first host that accepts writes, whose canceled waits for replicas
    /// are counted. May be awaited on any runtime. Returns the task that drives the connection, too.
    pub(crate) async fn connect_to_any(
        &self,
        name: String,
        purpose: Purpose,
        waits: CanceledWaits,
    ) -> Result<(Client, JoinHandle<()>), ConnectError> {
        let this = self.clone();
        let connecting = self.driver.spawn(async move {
            let count = this.targets.hosts.len();
            let last = this.targets.last.load(Ordering::Relaxed);
            let first = if last == NO_HOST { 0 } else { last };
            let mut failures = Vec::new();
            for index in (0..count).map(|index| (first + index) % count) {
                let (host, config) = &this.targets.hosts[index];
                let mut config = config.clone();
                config.application_name(&name);
                let connecting = this.connect_to(config, name.clone(), purpose, waits.clone());
                let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
                match connected.unwrap_or(Err(HostFault::NoAnswer)) {
                    Ok(connected) => {
                        this.targets.use_host(index);
                        return Ok(connected);
                    }
                    Err(cause) => {
                        let failure = HostError { host: host.clone(), cause };
                        this.targets.failures().insert(index, failure.to_string());
                        failures.push(failure);
                    }
                }
            }
            Err(ConnectError(failures))
        });
        // an error: the thread has ended, or the task panicked
        connecting.await.unwrap_or_else(|_| Err(ConnectError(Vec::new())))
    }

    async fn connect_to(
        &self,
        config: Config,
        name: String,
        purpose: Purpose,
        waits: CanceledWaits,
    ) -> Result<(Client, JoinHandle<()>), HostFault> {
        let (client, mut connection) =
            config.connect(self.tls.clone()).await.map_err(HostFault::Failed)?;
        let driving = tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notice(notice)) => {
                        log::debug!("{}: {}", notice.severity(), notice.message());
                        waits.note(&notice);
                    }
                    Ok(_) => {}
                    Err(error) => return losses::report(&format!("{name}: {}", reason_of(&error))),
                }
            }
        });
        let begin = purpose.begin_session(self.durability);
        if shown(&client, &begin).await? == "on" {
            return Err(HostFault::ReadOnly);
        }
        if self.durability == PostgresDurability::Replicated
            && !purpose.needs_no_replica()
            && shown(&client, "SHOW synchronous_standby_names").await?.is_empty()
        {
            return Err(HostFault::NotReplicated);
        }
        Ok((client, driving))
    }
}

/// Waits for an answer of the database, for a limited time: a host that hangs gives none.
pub(crate) async fn answered<T, E: From<Error>>(
    within: Duration,
    asking: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let answer = tokio::time::timeout(within, asking).await;
    answer.unwrap_or_else(|_| {
        losses::report(&format!("no answer within {within:?}"));
        Err(Error::__private_api_timeout().into())
    })
}

/// Returns the first value of the rows that statements give.
async fn shown(client: &Client, statements: &str) -> Result<String, HostFault> {
    let messages = client.simple_query(statements).await.map_err(HostFault::Failed)?;
    let value = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(value.unwrap_or_default().to_owned())
}

/// Returns what the configurations of all hosts share.
fn base_config(settings: &PostgresSettings) -> Config {
    let address = &settings.address;
    let mut config = Config::new();
    let (idle, interval, retries) = KEEPALIVE;
    config
        .user(&address.user)
        .dbname(&address.database)
        .channel_binding(address.channel_binding)
        .connect_timeout(CONNECT_MAX)
        .tcp_user_timeout(UNCONFIRMED_MAX)
        .keepalives_idle(idle)
        .keepalives_interval(interval)
        .keepalives_retries(retries);
    if let Some(password) = settings.password.as_ref().or(address.password.as_ref()) {
        config.password(&password.0);
    }
    if let Some(options) = &address.options {
        config.options(options);
    }
    config
}
