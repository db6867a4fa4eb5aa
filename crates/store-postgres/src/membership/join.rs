//! Joining: the other servers are gone, or this one does not start.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Transaction};

use super::{BEAT, Membership, Peer};
use crate::lane;
use crate::open::{OpenError, Use, checks};
use crate::schema;
use crate::settings::PostgresSettings;

/// Number of successive looks at an unchanged beat after which a server counts as gone.
const LOOKS: u32 = 6;

/// Maximum number of times that the connections of a server are ended because it hangs inside a
/// transaction.
const FENCES_MAX: usize = 3;

/// Fences a server, if a beat is given only at that beat.
const FENCE: &str = "WITH dead AS (UPDATE nodes SET state = 2
            WHERE node = $1 AND state < 2 AND beat = coalesce($2, beat) RETURNING node),
        cut AS (DELETE FROM lanes l USING dead d WHERE l.node = d.node)
        SELECT count(*) FROM dead";

/// Ends the connections of a server that hold locks on the rows by which it is fenced. By name and
/// table, not by process number: after a failover that number is another connection's, and another
/// schema may have a server of the same number.
const TERMINATE: &str = "SELECT pg_terminate_backend(a.pid, 2000) FROM pg_stat_activity a
        WHERE a.datname = current_database()
        AND starts_with(a.application_name, $1) AND EXISTS (SELECT FROM pg_locks l
            WHERE l.pid = a.pid AND l.relation IN ('lanes'::regclass, 'nodes'::regclass))";

/// Removes servers that were fenced before; those that are still paused miss their rows as well.
const FORGET: &str = "DELETE FROM nodes WHERE state = 2";

/// Adds the row of this process.
const ADD: &str = "INSERT INTO nodes (node, name, version, state, beat)
        VALUES (nextval('node_seq'), $1, $2, 0, 0) RETURNING node";

/// Another server, as one look shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    node: i64,
    beat: i64,
    peer: Peer,
}

/// Result of a look.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The database is free once these are fenced.
    Free(Vec<Seen>),
    /// These may be alive: look again.
    Wait(Vec<Seen>),
    /// This one is alive.
    Taken(Peer),
}

/// Beats of other servers over several looks.
struct Looks {
    name: String,
    /// By node: its beat, and the number of looks since that have shown the same.
    beats: HashMap<i64, (i64, u32)>,
}

impl Looks {
    /// Judges what one look shows.
    fn judge(&mut self, seen: Vec<Seen>) -> Verdict {
        let mut waits = false;
        for Seen { node, beat, peer } in &seen {
            // a restarted process does not wait for itself
            if peer.name == self.name {
                continue;
            }
            let (before, unchanged) = self.beats.entry(*node).or_insert((*beat, 0));
            if before != beat {
                return Verdict::Taken(peer.clone());
            }
            waits |= *unchanged < LOOKS;
            *unchanged += 1;
        }
        if waits { Verdict::Wait(seen) } else { Verdict::Free(seen) }
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
    /// gone. Refused if these have left tables that cannot be used in this way.
    pub(crate) async fn join(
        client: &mut Client,
        settings: &PostgresSettings,
        of: Use,
    ) -> Result<Arc<Self>, OpenError> {
        let mut looks = Looks { name: settings.name.clone(), beats: HashMap::new() };
        let (mut has_reported, mut fences) = (false, 0);
        let node = loop {
            match attempt(client, &mut looks, settings, of).await? {
                Attempt::Joined(node) => break node,
                Attempt::Again => {}
                Attempt::Wait(seen) => {
                    if !std::mem::replace(&mut has_reported, true) {
                        report(&seen);
                    }
                    tokio::time::sleep(BEAT).await;
                }
                Attempt::Hangs(seen) if fences < FENCES_MAX => {
                    fences += 1;
                    let connections = format!("greenroom/{}/", seen.node);
                    client.query(TERMINATE, &[&connections]).await?;
                }
                Attempt::Hangs(seen) => {
                    let peer = seen.peer;
                    let hangs = format!("{peer} hangs inside a transaction; end it, and try again");
                    return Err(OpenError::Failed(hangs));
                }
            }
        };
        Ok(Arc::new(Self::new(node, settings.name.clone())))
    }
}

/// Looks for other servers and, if they are gone, fences them and adds the rows of this process, in
/// one transaction.
async fn attempt(
    client: &mut Client,
    looks: &mut Looks,
    settings: &PostgresSettings,
    of: Use,
) -> Result<Attempt, OpenError> {
    // dropping it undoes everything
    let transaction = client.transaction().await?;
    schema::lock(&transaction).await?;
    let gone = match looks.judge(others(&transaction).await?) {
        Verdict::Taken(peer) => return Err(OpenError::InUse(peer.to_string())),
        Verdict::Wait(seen) => return Ok(Attempt::Wait(seen)),
        Verdict::Free(gone) => gone,
    };
    // a copy may have begun since the first check, and been killed
    checks::allow(&transaction, of).await?;
    transaction.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
    transaction.execute(FORGET, &[]).await?;
    for seen in gone {
        let is_older_self = seen.peer.name == settings.name;
        let beat = (!is_older_self).then_some(seen.beat);
        match transaction.query_one(FENCE, &[&seen.node, &beat]).await {
            Ok(row) if row.try_get::<_, i64>(0)? == 0 => return Ok(Attempt::Again),
            Ok(_) => report_taken(&seen.peer, is_older_self),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                return Ok(Attempt::Hangs(seen));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    let added = transaction.query_one(ADD, &[&settings.name, &version]).await?;
    let node = added.try_get(0)?;
    lane::register(&transaction, node, settings.writers).await?;
    transaction.commit().await?;
    Ok(Attempt::Joined(node))
}

/// Returns the other servers.
async fn others(transaction: &Transaction<'_>) -> Result<Vec<Seen>, Error> {
    let live = "SELECT node, beat, name, version FROM nodes WHERE state < 2 ORDER BY node";
    let rows = transaction.query(live, &[]).await?;
    let seen = rows.iter().map(|row| {
        let peer = Peer { name: row.try_get(2)?, version: row.try_get(3)? };
        Ok(Seen { node: row.try_get(0)?, beat: row.try_get(1)?, peer })
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
    let wait = BEAT * LOOKS;
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
        Seen { node, beat, peer }
    }

    fn looks() -> Looks {
        Looks { name: "me".to_owned(), beats: HashMap::new() }
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
        assert_eq!(verdict, Verdict::Taken(seen(2, "b", 1).peer));
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
}
