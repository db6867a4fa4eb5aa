//! Beats, on their own connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::cluster::{NodeId, SlotMap};
use greenroom_actors::domain::slot::Slot;
use greenroom_actors::ports::members::{Member, MemberState, View};
use greenroom_actors::ports::meter::JournalMeter;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::fence::NOTE;
use super::wall_clock::WallClock;
use super::{BEAT, Cause, Cluster, Membership, Peer};
use crate::connector::{Connector, Purpose, SessionError, answered};
use crate::lane::outage::{OutageOfOne, Outages};
use crate::migration::Tables;
use crate::replication::{CanceledWaits, explained};

/// Maximum time for an answer; afterwards another connection is tried.
const ANSWER_MAX: Duration = Duration::from_secs(4);

/// Increments the beat of a process that still has its row and lanes; returns the members, the number
/// of changes of the owners of slots, whether another session has a lock on executions, or waits for
/// one, that writes would wait for, the version of the tables, and the time. The beat itself waits for no such
/// lock.
const UPDATE: &str = "WITH own AS (UPDATE nodes SET beat = beat + 1, unreachable = $2
        WHERE node = $1 AND state < 2 AND EXISTS (SELECT FROM lanes l WHERE l.node = $1)
        RETURNING beat)
    SELECT n.node, n.name, n.version, n.state, n.address,
        CASE WHEN n.node = $1 THEN own.beat ELSE n.beat END AS beat,
        (SELECT map FROM meta) AS map, EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation'
            AND relation = 'executions'::regclass
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                'AccessExclusiveLock')) AS is_locked,
        (SELECT schema FROM meta) AS tables, (SELECT schema_min FROM meta) AS tables_least,
        extract(epoch FROM clock_timestamp())::float8 AS clock
    FROM own, nodes n WHERE n.state < 2 ORDER BY n.node";
/// Reads the last batch of each lane.
const BATCHES: &str = "SELECT lane, batch FROM lanes WHERE node = $1";
/// Reads the owners of slots, in the order of slots.
const OWNERS: &str = "SELECT (SELECT map FROM meta),
    (SELECT array_agg(node ORDER BY slot) FROM slots)";
/// Finds a newer server, one of the same name first.
const TAKER: &str = "SELECT name, version FROM nodes WHERE state < 2 AND node > $1
        ORDER BY name = $2 DESC, node DESC LIMIT 1";
/// Changes nothing, and waits for the lock that every write of an execution needs. Sent only after a
/// beat that has found that lock taken.
const PROBE: &str = "DELETE FROM executions WHERE false";
/// Reads of the owners of slots that a beat tries: each may be older than a change.
const READS_MAX: u32 = 3;

/// Probes that fail one after the other in an outage. A short lock is none.
const PROBES_FAILED: u32 = 2;

/// The connection of the beats.
struct Pulse {
    connector: Connector,
    meter: Arc<dyn JournalMeter>,
    name: String,
    session: Option<Session>,
    /// Number of connections.
    connections: u64,
    /// Number of the connection on which the lanes were compared.
    compared: u64,
    /// Newer version of the tables that was reported.
    newer: Option<i32>,
    /// Maximum wait for an answer.
    answer_max: Duration,
    /// True if the last beat has found a lock that writes would wait for.
    is_locked: bool,
    wall_clock: WallClock,
}

/// A connection, with the statements that it has prepared: a beat is the same again and again.
struct Session {
    client: Client,
    prepared: HashMap<String, Statement>,
}

impl Session {
    async fn query(
        &mut self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let prepared = match self.prepared.get(statement) {
            Some(prepared) => prepared.clone(),
            None => {
                let prepared = self.client.prepare(statement).await?;
                self.prepared.insert(statement.to_owned(), prepared.clone());
                prepared
            }
        };
        self.client.query(&prepared, values).await
    }
}

impl Pulse {
    /// Runs a statement; on a new connection if there is none, or if it does not answer. Returns the
    /// time at which it was sent as well.
    async fn ask(
        &mut self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(Instant, Vec<Row>), SessionError> {
        if let Some(mut session) = self.session.take() {
            let sent = Instant::now();
            if let Ok(rows) = answered(self.answer_max, session.query(statement, values)).await {
                self.session = Some(session);
                return Ok((sent, rows));
            }
        }
        // beats need no replica: they are looked at on the server that they are on
        let waits = CanceledWaits::default();
        let connecting = self.connector.connect_to_any(self.name.clone(), Purpose::Beat, waits);
        let (client, _) = connecting.await?;
        self.connections += 1;
        if self.connections > 1 {
            self.meter.reconnected();
        }
        let mut session = Session { client, prepared: HashMap::new() };
        let sent = Instant::now();
        match answered(self.answer_max, session.query(statement, values)).await {
            Ok(rows) => {
                self.session = Some(session);
                Ok((sent, rows))
            }
            Err(error) => Err(explained(&session.client, error, &self.name).await),
        }
    }
}

impl Pulse {
    /// Returns the reason for which a write would fail.
    async fn probe(&mut self) -> Result<(), SessionError> {
        let Some(session) = self.session.take() else { return Ok(()) };
        let probed = answered(self.answer_max, session.client.batch_execute(PROBE)).await;
        match probed {
            // the connection failed: the next beat reports it if another one fails too
            Err(error) if error.code().is_none() => Ok(()),
            probed => {
                self.session = Some(session);
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
    fn beat(&mut self, all: &Outages, beat: &Result<Beat, SessionError>) {
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

/// Answer to a beat.
enum Beat {
    Alone,
    /// This process is a member, and this is what it has seen.
    Shared(View),
    Lost(Cause),
}

impl Membership {
    /// Returns the time between two beats, and to the first one.
    fn rhythm(&self) -> (Duration, Duration) {
        match &self.cluster {
            Some(cluster) => (cluster.lease.interval(), Duration::ZERO),
            None => (BEAT, BEAT),
        }
    }

    /// Returns the wait for an answer, after which there is time for another beat.
    fn answer_max(&self) -> Duration {
        self.cluster
            .as_ref()
            .map_or(ANSWER_MAX, |cluster| ANSWER_MAX.min(cluster.lease.length() * 2 / 3))
    }

    /// Increments the row again and again, until this process leaves or has lost the database.
    pub(super) async fn beat(self: Arc<Self>, connector: Connector, meter: Arc<dyn JournalMeter>) {
        let name = format!("greenroom/{}/beat", self.node);
        let answer_max = self.answer_max();
        let mut pulse = Pulse {
            connector,
            meter,
            name,
            session: None,
            connections: 0,
            compared: 0,
            newer: None,
            answer_max,
            is_locked: false,
            wall_clock: WallClock::default(),
        };
        let mut views = self.cluster.as_ref().and_then(Cluster::take_views);
        let mut leave = self.leave.subscribe();
        let (every, first) = self.rhythm();
        let mut ticks = interval_at(Instant::now() + first, every);
        // what was missed is never caught up: others count beats
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut noticed = Noticed::default();
        loop {
            let beat = async {
                tokio::select! {
                    _ = ticks.tick() => {}
                    () = self.beat_now.notified() => {}
                }
                let beat = self.beat_once(&mut pulse).await;
                noticed.beat(&self.outages, &beat);
                if beat.is_ok() && (pulse.is_locked || noticed.probes_failed > 0) {
                    noticed.probe(&self.outages, &pulse.probe().await);
                }
                beat
            };
            let beat = tokio::select! {
                beat = beat => beat,
                _ = leave.wait_for(|leave| *leave) => break,
            };
            match beat {
                Ok(Beat::Lost(cause)) => return self.lose(cause),
                // subscribers of views notice it
                _ if self.outages.is_lost() => views = None,
                Ok(Beat::Shared(view)) => {
                    if let Some(views) = &views {
                        views.send_replace(Some(Arc::new(view)));
                    }
                }
                Ok(Beat::Alone) | Err(_) => {}
            }
        }
        if let Err(error) = pulse.ask(&leave_of(self.node), &[]).await {
            log::warn!("the database still names this server as running: {}", error.advice());
        }
    }

    /// Increments the row; returns the loss if the row is gone, or a lane did not find its own.
    async fn beat_once(&self, pulse: &mut Pulse) -> Result<Beat, SessionError> {
        pulse.is_locked = false;
        let unreachable = self.cluster.as_ref().map(Cluster::unreachable).unwrap_or_default();
        let (sent, rows) = pulse.ask(UPDATE, &[&self.node, &unreachable]).await?;
        let took = sent.elapsed();
        let is_unannounced = self.outages.is_lost() && self.lost.borrow().is_none();
        let Some(first) = rows.first().filter(|_| !is_unannounced) else {
            let (_, takers) = pulse.ask(TAKER, &[&self.node, &self.name]).await?;
            let taker = takers.first().and_then(|row| {
                Some(Peer { name: row.try_get(0).ok()?, version: row.try_get(1).ok()? })
            });
            let is_taken = self.cluster.is_none()
                || taker.as_ref().is_some_and(|taker| taker.name == self.name);
            return Ok(Beat::Lost(if is_taken { Cause::Taken(taker) } else { Cause::Fenced }));
        };
        let (version, least) = (first.try_get("tables")?, first.try_get("tables_least")?);
        let tables = Tables { version, least };
        if !self.schema.works_on(tables) {
            return Ok(Beat::Lost(Cause::Outdated(tables.version)));
        }
        self.report(tables, pulse);
        let ahead = pulse.wall_clock.compare(took, first.try_get("clock")?);
        pulse.meter.compared_clocks(ahead);
        if self.has_lost_history(pulse).await? {
            return Ok(Beat::Lost(Cause::HistoryLost));
        }
        pulse.is_locked = first.try_get("is_locked")?;
        let Some(cluster) = &self.cluster else { return Ok(Beat::Alone) };
        let map = first.try_get("map")?;
        self.learn_owners(cluster, pulse, map).await?;
        let members = rows.iter().map(member_of).collect::<Result<_, _>>()?;
        let has_newer_tables = pulse.newer.is_some();
        Ok(Beat::Shared(View { sent, members, owners: cluster.owned().owners(), has_newer_tables }))
    }

    /// Returns true if the database has less than it has confirmed, as after a failover. A lane
    /// notices that itself with its next write, which may be long after that.
    async fn has_lost_history(&self, pulse: &mut Pulse) -> Result<bool, SessionError> {
        if pulse.compared == pulse.connections {
            return Ok(false);
        }
        // before they are read: a lane may continue meanwhile
        let confirmed = self.confirmed();
        let (_, rows) = pulse.ask(BATCHES, &[&self.node]).await?;
        for row in &rows {
            let (lane, batch): (i16, i64) = (row.try_get(0)?, row.try_get(1)?);
            if confirmed.get(&lane).is_some_and(|confirmed| batch < *confirmed) {
                pulse.meter.lost_history();
                return Ok(true);
            }
        }
        pulse.compared = pulse.connections;
        Ok(false)
    }

    /// Logs once that a newer server has migrated the tables.
    fn report(&self, tables: Tables, pulse: &mut Pulse) {
        let known = self.schema.version();
        let newer = (tables.version > known).then_some(tables.version);
        if let Some(version) = newer.filter(|_| newer != pulse.newer) {
            log::warn!(
                "a server of a newer version has migrated the tables of the database, from {known} \
                 to {version}; this server still works on them, and should be updated"
            );
        }
        pulse.newer = newer;
    }

    /// Reads the owners of slots, if they have changed or the connection is another one: a failover
    /// may have undone changes.
    async fn learn_owners(
        &self,
        cluster: &Cluster,
        pulse: &mut Pulse,
        map: i64,
    ) -> Result<(), SessionError> {
        if cluster.is_known((map, pulse.connections)) {
            return Ok(());
        }
        for _ in 0..READS_MAX {
            let changes = cluster.owned().changes();
            let (_, rows) = pulse.ask(OWNERS, &[]).await?;
            let Some(row) = rows.first() else { return Ok(()) };
            let read = (row.try_get(0)?, pulse.connections);
            let nodes: Option<Vec<Option<i64>>> = row.try_get(1)?;
            let mut owners = SlotMap::unowned();
            for (slot, node) in Slot::all().zip(nodes.into_iter().flatten()) {
                owners.set(slot, node.map(NodeId));
            }
            if cluster.learn(read, owners, changes) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn member_of(row: &Row) -> Result<Member, Error> {
    let (name, version): (String, String) = (row.try_get("name")?, row.try_get("version")?);
    Ok(Member {
        node: NodeId(row.try_get("node")?),
        name: Arc::from(name),
        version: Arc::from(version),
        state: match row.try_get::<_, i16>("state")? {
            0 => MemberState::Active,
            _ => MemberState::Leaving,
        },
        beat: row.try_get::<_, i64>("beat")?.unsigned_abs(),
        address: row.try_get::<_, Option<String>>("address")?.map(Arc::from),
    })
}

/// Returns the statement that deletes the rows of a process and frees its slots. In this order: what
/// others are giving to it at the moment is among them.
fn leave_of(node: i64) -> String {
    format!(
        "DO $$ BEGIN
            DELETE FROM nodes WHERE node = {node};
            DELETE FROM lanes WHERE node = {node};
            UPDATE slots SET node = NULL WHERE node = {node};
            IF FOUND THEN {NOTE}; END IF;
        END $$"
    )
}
