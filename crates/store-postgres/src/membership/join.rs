//! Joining: the other servers are gone, or this one does not start.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Transaction};

use super::fence::{self, CUT, IMPATIENT, NOTE, TERMINATE, TERMINATIONS_MAX, connections_of};
use super::{BEAT, Membership, Peer};
use crate::lane;
use crate::migration::{self, Schema};
use crate::open::{OpenError, Use, checks};
use crate::settings::PostgresSettings;

/// Number of successive looks at an unchanged beat after which a server counts as gone.
const LOOKS: u32 = 6;

/// Removes servers that were fenced before; those that are still paused miss their rows as well.
const FORGET: &str = "DELETE FROM nodes WHERE state = 2";

/// Frees slots of servers that are no longer known: a person has deleted their rows.
const FREE: &str = "WITH freed AS (UPDATE slots s SET node = NULL
            WHERE node IS NOT NULL
            AND NOT EXISTS (SELECT FROM nodes n WHERE n.node = s.node AND n.state < 2)
            RETURNING 1)
        UPDATE meta SET map = map + 1 WHERE EXISTS (SELECT FROM freed)";

/// Adds the row of this process.
const ADD: &str = "INSERT INTO nodes (node, name, version, state, beat, lease, address, schema)
        VALUES (nextval('node_seq'), $1, $2, 0, 0, $3, $4, $5) RETURNING node";

/// Another server, as one look shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    node: i64,
    beat: i64,
    peer: Peer,
    /// Lease in milliseconds; `None` for a server that has the database alone.
    lease: Option<i64>,
    /// Version of the tables that it knows.
    schema: i32,
}

impl Seen {
    /// Returns the number of successive looks at an unchanged beat after which the server counts as
    /// gone: those that a member has time for are longer if its lease is.
    fn looks(&self) -> u32 {
        let beat = i64::try_from(BEAT.as_millis()).unwrap_or(i64::MAX);
        let lease = self.lease.map_or(0, |lease| lease.div_euclid(beat) + 1);
        u32::try_from(lease).unwrap_or(u32::MAX).max(LOOKS)
    }
}

/// Result of a look.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The database is free once these are fenced.
    Free(Vec<Seen>),
    /// These may be alive: look again.
    Wait(Vec<Seen>),
    /// This one is alive.
    Taken(Seen),
}

/// Beats of other servers over several looks.
struct Looks {
    name: String,
    /// Lease in milliseconds, if this process is to be a member.
    lease: Option<i64>,
    /// Least version of the tables that others must know to stay.
    least: i32,
    /// By node: its beat, and the number of looks since that have shown the same.
    beats: HashMap<i64, (i64, u32)>,
}

impl Looks {
    /// Returns true for a member that this process can join.
    fn admits(&self, other: &Seen) -> bool {
        self.lease.is_some() && other.lease == self.lease && other.schema >= self.least
    }

    /// Judges what one look shows.
    fn judge(&mut self, mut seen: Vec<Seen>) -> Verdict {
        seen.retain(|other| other.peer.name == self.name || !self.admits(other));
        let mut waits = false;
        for other in &seen {
            // a restarted process does not wait for itself
            if other.peer.name == self.name {
                continue;
            }
            let (before, unchanged) = self.beats.entry(other.node).or_insert((other.beat, 0));
            if *before != other.beat {
                return Verdict::Taken(other.clone());
            }
            waits |= *unchanged < other.looks();
            *unchanged += 1;
        }
        if waits { Verdict::Wait(seen) } else { Verdict::Free(seen) }
    }

    /// Returns the refusal because of a server that is alive.
    fn refusal(&self, Seen { peer, lease, .. }: &Seen) -> OpenError {
        let peer = peer.to_string();
        match (self.lease, lease) {
            (None, None) => OpenError::InUse(peer),
            (None, Some(_)) => OpenError::InUseByMembers(peer),
            (Some(_), None) => OpenError::InUseByOne(peer),
            (Some(own), Some(theirs)) if own == *theirs => OpenError::OlderMember(peer),
            (Some(own), Some(theirs)) => {
                let lease = |ms: i64| Duration::from_millis(ms.unsigned_abs());
                OpenError::Lease { peer, theirs: lease(*theirs), own: lease(own) }
            }
        }
    }
}

/// Result of an attempt to join.
enum Attempt {
    /// The number of this process.
    Joined(i64),
    Wait(Vec<Seen>),
    /// A server has shown a sign of life since the look.
    Again,
    /// A server holds locks in an open transaction.
    Hangs(Seen),
}

impl Membership {
    /// Registers this process as the only one that uses the database, as soon as the others are
    /// gone, or as a member beside other members. Refused if these have left tables that cannot be
    /// used in this way.
    pub(crate) async fn join(
        client: &mut Client,
        settings: &PostgresSettings,
        of: Use,
        schema: Schema,
    ) -> Result<Arc<Self>, OpenError> {
        let lease = settings.cluster.as_ref().map(|cluster| cluster.lease);
        let ms = lease.map(|lease| i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
        let (name, beats) = (settings.name.clone(), HashMap::new());
        let mut looks = Looks { name, lease: ms, least: 0, beats };
        let (mut has_reported, mut terminations) = (false, 0);
        let node = loop {
            match attempt(client, &mut looks, settings, (of, schema)).await? {
                Attempt::Joined(node) => break node,
                Attempt::Again => {}
                Attempt::Wait(seen) => {
                    if !std::mem::replace(&mut has_reported, true) {
                        report(&seen);
                    }
                    tokio::time::sleep(BEAT).await;
                }
                Attempt::Hangs(seen) if terminations < TERMINATIONS_MAX => {
                    terminations += 1;
                    client.query(TERMINATE, &[&connections_of(seen.node)]).await?;
                }
                Attempt::Hangs(seen) => {
                    let peer = seen.peer;
                    let hangs = format!("{peer} hangs inside a transaction; end it, and try again");
                    return Err(OpenError::Failed(hangs));
                }
            }
        };
        Ok(Arc::new(Self::new(node, settings.name.clone(), lease, schema)))
    }
}

/// Looks for other servers and, if they are gone, fences them, makes the migrations that they held
/// up, and adds the rows of this process, in one transaction.
async fn attempt(
    client: &mut Client,
    looks: &mut Looks,
    settings: &PostgresSettings,
    (of, schema): (Use, Schema),
) -> Result<Attempt, OpenError> {
    // dropping it undoes everything
    let transaction = client.transaction().await?;
    migration::lock(&transaction).await?;
    // a server of a newer version may have started since the first check
    let tables = migration::find(&transaction).await?.ok_or(OpenError::Missing)?;
    checks::allow_version(tables, of, schema)?;
    looks.least = schema.least_beside(tables);
    let gone = match looks.judge(others(&transaction).await?) {
        Verdict::Taken(seen) => return Err(looks.refusal(&seen)),
        Verdict::Wait(seen) => return Ok(Attempt::Wait(seen)),
        Verdict::Free(gone) => gone,
    };
    // a copy may have begun since the first check, and been killed
    checks::allow(&transaction, of).await?;
    transaction.batch_execute(IMPATIENT).await?;
    transaction.execute(FORGET, &[]).await?;
    for seen in gone {
        let is_older_self = seen.peer.name == settings.name;
        let beat = (!is_older_self).then_some(seen.beat);
        match fence(&transaction, seen.node, beat).await {
            Ok(false) => return Ok(Attempt::Again),
            Ok(true) => report_taken(&seen.peer, is_older_self),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                return Ok(Attempt::Hangs(seen));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let known = migration::known_by_all(&transaction, tables).await?;
    schema.migrate(&transaction, tables, known).await?;
    transaction.execute(FREE, &[]).await?;
    let version = env!("CARGO_PKG_VERSION");
    let address = settings.cluster.as_ref().and_then(|cluster| cluster.address.as_deref());
    let values: [&(dyn ToSql + Sync); 5] =
        [&settings.name, &version, &looks.lease, &address, &schema.version()];
    let added = transaction.query_one(ADD, &values).await?;
    let node = added.try_get(0)?;
    lane::register(&transaction, node, settings.writers).await?;
    transaction.commit().await?;
    Ok(Attempt::Joined(node))
}

/// Fences a server, if a beat is given only at that beat; returns false if it has another one.
async fn fence(transaction: &Transaction<'_>, node: i64, beat: Option<i64>) -> Result<bool, Error> {
    if transaction.query_opt(fence::LOCK, &[&node, &beat]).await?.is_none() {
        return Ok(false);
    }
    for cut in CUT {
        transaction.execute(cut, &[&node]).await?;
    }
    transaction.execute(NOTE, &[]).await?;
    Ok(true)
}

/// Returns the other servers.
async fn others(transaction: &Transaction<'_>) -> Result<Vec<Seen>, Error> {
    // as JSON, because tables of older versions do not have the column
    let live = "SELECT node, beat, name, version, lease,
            coalesce((to_jsonb(n) ->> 'schema')::int, 1)
        FROM nodes n WHERE state < 2 ORDER BY node";
    let rows = transaction.query(live, &[]).await?;
    let seen = rows.iter().map(|row| {
        let peer = Peer { name: row.try_get(2)?, version: row.try_get(3)? };
        let (node, beat) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Seen { node, beat, peer, lease: row.try_get(4)?, schema: row.try_get(5)? })
    });
    seen.collect()
}

/// Logs that a server loses the database. Another one of this name may be running: it was not looked
/// at. Any other may only be paused.
fn report_taken(peer: &Peer, has_this_name: bool) {
    if has_this_name {
        log::warn!(
            "{peer} has the name of this server and has not given the database up; this server \
             takes over, and if that one still runs, it ends: servers that run at the same time \
             need different names (`name` under [server])"
        );
    } else {
        log::warn!("{peer} shows no sign of life; this server takes over");
    }
}

fn report(seen: &[Seen]) {
    let names: Vec<_> = seen.iter().map(|seen| seen.peer.to_string()).collect();
    let wait = BEAT * seen.iter().map(Seen::looks).max().unwrap_or(LOOKS);
    log::warn!(
        "the database was in use by {}; waiting up to {wait:?} to see whether it is alive",
        names.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(node: i64, name: &str, beat: i64) -> Seen {
        let peer = Peer { name: name.to_owned(), version: "1.0.0".to_owned() };
        Seen { node, beat, peer, lease: None, schema: 3 }
    }

    fn looks() -> Looks {
        Looks { name: "me".to_owned(), lease: None, least: 3, beats: HashMap::new() }
    }

    fn member(node: i64, name: &str, beat: i64, lease: i64) -> Seen {
        Seen { lease: Some(lease), ..seen(node, name, beat) }
    }

    #[test]
    fn an_empty_database_and_an_older_self_are_no_obstacle() {
        assert_eq!(looks().judge(Vec::new()), Verdict::Free(Vec::new()));
        let older = || vec![seen(1, "me", 7), seen(2, "me", 9)];
        assert_eq!(looks().judge(older()), Verdict::Free(older()));
    }

    #[test]
    fn a_server_that_beats_has_the_database() {
        let mut looks = looks();
        let first = vec![seen(1, "a", 7), seen(2, "b", 0)];
        assert_eq!(looks.judge(first.clone()), Verdict::Wait(first.clone()));
        assert_eq!(looks.judge(first.clone()), Verdict::Wait(first));
        let verdict = looks.judge(vec![seen(1, "a", 7), seen(2, "b", 1)]);
        assert_eq!(verdict, Verdict::Taken(seen(2, "b", 1)));
    }

    #[test]
    fn six_looks_at_the_same_beat_after_the_first_show_that_a_server_is_gone() {
        let mut looks = looks();
        let killed = || vec![seen(1, "a", 7), seen(3, "me", 2)];
        for _ in 0..LOOKS {
            assert_eq!(looks.judge(killed()), Verdict::Wait(killed()));
        }
        assert_eq!(looks.judge(killed()), Verdict::Free(killed()));
    }

    #[test]
    fn each_server_is_looked_at_from_its_own_first_look_on() {
        let mut looks = looks();
        for _ in 0..LOOKS {
            looks.judge(vec![seen(1, "a", 7)]);
        }
        let both = || vec![seen(1, "a", 7), seen(2, "b", 0)];
        assert_eq!(looks.judge(both()), Verdict::Wait(both()));
        assert_eq!(looks.judge(vec![seen(1, "a", 7)]), Verdict::Free(vec![seen(1, "a", 7)]));
    }

    #[test]
    fn members_join_beside_each_other() {
        let mut looks = Looks { lease: Some(6000), ..looks() };
        let older = || member(3, "me", 9, 6000);
        let others = vec![member(1, "a", 7, 6000), member(2, "b", 8, 6000), older()];
        assert_eq!(looks.judge(others), Verdict::Free(vec![older()]), "an older self is fenced");
        let older = Seen { schema: 2, ..member(6, "older", 1, 6000) };
        for obstacle in [seen(4, "alone", 1), member(5, "long", 1, 9000), older] {
            let verdict = looks.judge(vec![member(1, "a", 7, 6000), obstacle.clone()]);
            assert_eq!(verdict, Verdict::Wait(vec![obstacle.clone()]));
            let alive = Seen { beat: 2, ..obstacle };
            assert_eq!(looks.judge(vec![alive.clone()]), Verdict::Taken(alive));
        }
    }

    #[test]
    fn a_member_is_waited_for_as_long_as_its_lease_is() {
        let mut looks = looks();
        let slow = || vec![member(1, "a", 7, 30_000)];
        for _ in 0..31 {
            assert_eq!(looks.judge(slow()), Verdict::Wait(slow()));
        }
        assert_eq!(looks.judge(slow()), Verdict::Free(slow()));
    }
}
