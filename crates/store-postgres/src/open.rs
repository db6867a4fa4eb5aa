//! Opens the store: connects, checks the database, migrates it, and registers this process.

pub(crate) mod checks;
pub(crate) mod error;
mod names;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::threads::Driver;
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub(crate) use self::checks::{Identity, Use};
pub use self::error::OpenError;

use crate::connector::{Connector, Purpose};
use crate::key_purge::{self, NewestAppend};
use crate::lane::Lanes;
use crate::membership::Membership;
use crate::migration::Schema;
use crate::numbers::{self, Numbers};
use crate::pool::Pool;
use crate::replication::CanceledWaits;
use crate::settings::PostgresSettings;
use crate::shared::Shared;
use crate::store::PostgresStore;

/// Time between two measurements of the database.
const MEASURE_EVERY: Duration = Duration::from_secs(60);

/// Pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);

/// Longer than the wait for a server that was killed.
const LONG: Duration = Duration::from_secs(10);

/// Time that open work has when the thread of the connections ends.
const END_AFTER: Duration = Duration::from_secs(5);

/// Starts the thread of the connections.
pub(crate) fn start_driver() -> Result<Driver, OpenError> {
    Driver::start("store-pg", END_AFTER).map_err(OpenError::Thread)
}

impl PostgresStore {
    /// Opens the store, creates its tables if there are none, and reports commits to a meter;
    /// blocks. A database that cannot be used is rejected and left unchanged.
    ///
    /// Waits up to [`PostgresSettings::patience`] for a database that does not answer, and for
    /// seven seconds if a server of another name was killed.
    pub fn open(
        settings: PostgresSettings,
        meter: Arc<dyn JournalMeter>,
    ) -> Result<Self, OpenError> {
        Self::open_as(Schema::OWN, settings, meter)
    }

    /// Opens the store as a program that knows these versions of the tables.
    pub(crate) fn open_as(
        schema: Schema,
        settings: PostgresSettings,
        meter: Arc<dyn JournalMeter>,
    ) -> Result<Self, OpenError> {
        let driver = start_driver()?;
        let connector = Connector::new(&settings, driver.handle().clone())
            .map_err(|problem| OpenError::Authorities(problem.to_string()))?;
        let opening =
            prepare(connector.clone(), settings.clone(), Use::Serving, schema, Arc::clone(&meter));
        let (membership, identity) = driver
            .run(opening, None)
            .ok_or_else(|| OpenError::Failed("it panicked".to_owned()))??;
        let name = format!("greenroom/{}/pool", membership.node);
        let outages = Arc::clone(&membership.outages);
        let pool = Pool::new(connector.clone(), name, &settings, outages, Arc::clone(&meter))
            .map_err(|error| OpenError::Failed(error.to_string()))?;
        let node = membership.node;
        let room_for_changes = Arc::new(Semaphore::new(settings.connections));
        let room_for_searches = Arc::new(Semaphore::new(settings.connections.div_ceil(2)));
        let shared = Arc::new(Shared {
            settings,
            connector,
            pool,
            meter,
            sink: OnceLock::new(),
            newest_append: NewestAppend::none(),
            outages: Arc::clone(&membership.outages),
            room_for_changes,
            room_for_searches,
            execution_rows: Numbers::of("execution_rows"),
            generation_rows: Numbers::of("generation_rows"),
            node,
            membership,
            database_bytes: AtomicU64::new(0),
        });
        driver.handle().spawn(measure(Arc::downgrade(&shared)));
        driver.handle().spawn(key_purge::run(Arc::downgrade(&shared)));
        if let Err(failure) = numbers::start(&shared, driver.handle()) {
            // the next server would wait for this one
            shared.membership.leave_within(&driver);
            return Err(failure.into());
        }
        let lanes = Lanes::start(&shared, driver.handle());
        Ok(Self { shared, lanes, driver, identity })
    }
}

/// Says so in the log if this takes long.
async fn told<T>(joining: impl Future<Output = T>) -> T {
    let mut joining = pin!(joining);
    if let Ok(joined) = timeout(LONG, &mut joining).await {
        return joined;
    }
    log::warn!(
        "the database has not let this server in for {LONG:?}: another session may hold a lock on \
         its tables (pg_locks)"
    );
    joining.await
}

/// Checks and migrates the database and registers this process; returns its membership and what
/// identifies the database. Begins again while the database may be starting or stopping, up to the patience.
pub(crate) async fn prepare(
    connector: Connector,
    settings: PostgresSettings,
    of: Use,
    schema: Schema,
    meter: Arc<dyn JournalMeter>,
) -> Result<(Arc<Membership>, Identity), OpenError> {
    let until = Instant::now() + settings.patience;
    let mut has_reported = false;
    loop {
        let error = match told(join(&connector, &settings, of, schema)).await {
            Ok((membership, identity)) => {
                membership.start(connector, meter);
                return Ok((membership, identity));
            }
            Err(error) => error,
        };
        if !error.may_pass() || Instant::now() + PAUSE >= until {
            return Err(error);
        }
        if !has_reported {
            log::warn!("waiting {:?} for the database: {error}", settings.patience);
            has_reported = true;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Connects, checks and migrates the database and registers this process, once.
async fn join(
    connector: &Connector,
    settings: &PostgresSettings,
    of: Use,
    schema: Schema,
) -> Result<(Arc<Membership>, Identity), OpenError> {
    let connecting = connector.connect_to_any(
        "greenroom/open".to_owned(),
        Purpose::Opening,
        CanceledWaits::default(),
    );
    let refusal = |failure| OpenError::of_connecting(failure, &settings.address);
    let (mut client, _) = connecting.await.map_err(refusal)?;
    let identity = checks::prepare(&mut client, settings.durability, of, schema).await?;
    Ok((Membership::join(&mut client, settings, of, schema).await?, identity))
}

/// Measures the size of the database from time to time, while the store is open.
async fn measure(shared: Weak<Shared>) {
    let mut ticks = tokio::time::interval(MEASURE_EVERY);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        let size = shared.pool.read(
            || "the size of the database".to_owned(),
            |reading| async move {
                let size = "SELECT pg_database_size(current_database())";
                let row = reading.row(size, &[]).await?;
                row.map(|row| row.value::<i64>(0)).transpose()
            },
        );
        if let Ok(Some(size)) = size.await {
            shared.database_bytes.store(u64::try_from(size).unwrap_or(0), Ordering::Relaxed);
        }
    }
}
