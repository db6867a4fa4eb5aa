//! Beats, on their own connection.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::ports::meter::JournalMeter;
use tokio::time::{MissedTickBehavior, interval_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::{BEAT, Cause, Membership, Peer};
use crate::connector::{Connector, Purpose, SessionError, answered};
use crate::lane::outage::{OutageOfOne, Outages};
use crate::replication::{CanceledWaits, explained};

/// Time for an answer; afterwards another connection is tried.
const ANSWER_MAX: Duration = Duration::from_secs(4);

/// Increments the beat of a process that still has its row and lanes.
const UPDATE: &str = "UPDATE nodes SET beat = beat + 1
    WHERE node = $1 AND state < 2 AND EXISTS (SELECT FROM lanes l WHERE l.node = $1)
    RETURNING beat";
const TAKER: &str = "SELECT name, version FROM nodes WHERE state < 2 AND node > $1
        ORDER BY node DESC LIMIT 1";
/// Changes nothing, and waits for the lock that every write of an execution needs. The beats
/// themselves would not notice a table that another session has locked.
const PROBE: &str = "DELETE FROM executions WHERE false";
const LEAVE: &str = "WITH own AS (DELETE FROM lanes WHERE node = $1)
        DELETE FROM nodes WHERE node = $1 RETURNING node";

/// Probes that fail one after the other in an outage. A short lock is none.
const PROBES_FAILED: u32 = 2;

/// The connection of the beats.
struct Pulse {
    connector: Connector,
    meter: Arc<dyn JournalMeter>,
    name: String,
    client: Option<Client>,
    /// True after the first connection.
    was_connected: bool,
}

impl Pulse {
    /// Runs a statement; on a new connection if there is none, or if it does not answer.
    async fn ask(
        &mut self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, SessionError> {
        if let Some(client) = self.client.take()
            && let Ok(row) = answered(ANSWER_MAX, client.query_opt(statement, values)).await
        {
            self.client = Some(client);
            return Ok(row);
        }
        // beats need no replica: they are looked at on the server that they are on
        let waits = CanceledWaits::default();
        let connecting = self.connector.connect_to_any(self.name.clone(), Purpose::Beat, waits);
        let (client, _) = connecting.await?;
        if std::mem::replace(&mut self.was_connected, true) {
            self.meter.reconnected();
        }
        match answered(ANSWER_MAX, client.query_opt(statement, values)).await {
            Ok(row) => {
                self.client = Some(client);
                Ok(row)
            }
            Err(error) => Err(explained(&client, error, &self.name).await),
        }
    }
}

impl Pulse {
    /// Returns the reason for which a write would fail.
    async fn probe(&mut self) -> Result<(), SessionError> {
        let Some(client) = self.client.take() else { return Ok(()) };
        let probed = answered(ANSWER_MAX, client.batch_execute(PROBE)).await;
        match probed {
            // the connection failed: the next beat reports it if another one fails too
            Err(error) if error.code().is_none() => Ok(()),
            probed => {
                self.client = Some(client);
                Ok(probed?)
            }
        }
    }
}

/// Outages that the beats notice.
#[derive(Default)]
struct Noticed {
    beats: OutageOfOne,
    probes: OutageOfOne,
    /// Number of the last probes that failed.
    probes_failed: u32,
}

impl Noticed {
    fn beat(&mut self, all: &Outages, beat: &Result<Option<Cause>, SessionError>) {
        all.set_beating(beat.is_ok());
        match beat {
            Ok(_) => self.beats.end(all),
            Err(error) => drop(self.beats.begin(all, &error.advice())),
        }
    }

    fn probe(&mut self, all: &Outages, probe: &Result<(), SessionError>) {
        match probe {
            Ok(()) => {
                self.probes_failed = 0;
                self.probes.end(all);
            }
            Err(error) => {
                self.probes_failed += 1;
                if self.probes_failed >= PROBES_FAILED {
                    self.probes.begin(all, &error.advice());
                }
            }
        }
    }
}

impl Membership {
    /// Increments the row every second, until this process leaves or has lost the database.
    pub(super) async fn beat(self: Arc<Self>, connector: Connector, meter: Arc<dyn JournalMeter>) {
        let name = format!("greenroom/{}/beat", self.node);
        let mut pulse = Pulse { connector, meter, name, client: None, was_connected: false };
        let mut leave = self.leave.subscribe();
        let mut ticks = interval_at(tokio::time::Instant::now() + BEAT, BEAT);
        // what was missed is never caught up: others count beats
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut noticed = Noticed::default();
        loop {
            let beat = async {
                tokio::select! {
                    _ = ticks.tick() => {}
                    () = self.look.notified() => {}
                }
                let beat = self.beat_once(&mut pulse).await;
                noticed.beat(&self.outages, &beat);
                if beat.is_ok() {
                    noticed.probe(&self.outages, &pulse.probe().await);
                }
                beat.ok().flatten()
            };
            let lost = tokio::select! {
                lost = beat => lost,
                _ = leave.wait_for(|leave| *leave) => break,
            };
            if let Some(cause) = lost {
                return self.lose(cause);
            }
        }
        if let Err(error) = pulse.ask(LEAVE, &[&self.node]).await {
            log::warn!("the database still names this server as running: {}", error.advice());
        }
    }

    /// Increments the row; returns the loss if the row is gone, or a lane did not find its own.
    async fn beat_once(&self, pulse: &mut Pulse) -> Result<Option<Cause>, SessionError> {
        let is_gone = pulse.ask(UPDATE, &[&self.node]).await?.is_none();
        let is_unannounced = self.outages.is_lost() && self.lost.borrow().is_none();
        if is_gone || is_unannounced {
            let taker = pulse.ask(TAKER, &[&self.node]).await?;
            let taker = taker.and_then(|row| {
                Some(Peer { name: row.try_get(0).ok()?, version: row.try_get(1).ok()? })
            });
            return Ok(Some(Cause::Taken(taker)));
        }
        Ok(None)
    }
}
