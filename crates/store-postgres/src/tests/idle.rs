//! Statements of stores that nothing is asked of.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::ports::members::View;
use greenroom_actors::ports::meter::NoMeter;
use support::eventually;
use support::postgres::{Auth, Server};

use crate::{ClusterSettings, PostgresSettings, PostgresStore};

/// Settings by which the log has the statements of all connections, each with its name.
const LOG_ALL: &[(&str, &str)] = &[("log_statement", "all"), ("log_line_prefix", "%a|")];
const LOG: &str = "SELECT pg_read_file(current_setting('data_directory') || '/../log')";
/// Beginning of a beat.
const BEAT: &str = "WITH own AS (UPDATE nodes SET beat = beat + 1";

/// Returns the statements of stores in a log, without the names of prepared ones.
fn statements(log: &str) -> Vec<&str> {
    let of_stores = log.lines().filter_map(|line| {
        let (name, message) = line.split_once("|LOG:  ")?;
        let (kind, statement) = message.split_once(": ")?;
        let is_statement = kind == "statement" || kind.starts_with("execute ");
        (name.starts_with("greenroom/") && is_statement).then_some(statement)
    });
    of_stores.collect()
}

#[tokio::test]
async fn an_idle_store_sends_beats_and_nothing_else() {
    let Some(server) = Server::start_with(Auth::Trust, LOG_ALL) else { return };
    let [of_alone, of_member] = [server.fresh_url(), server.fresh_url()];
    let alone = PostgresSettings::new(of_alone.parse().unwrap(), "alone");
    let _alone = PostgresStore::open(alone, Arc::new(NoMeter)).unwrap();
    let member = PostgresSettings::new(of_member.parse().unwrap(), "member");
    let cluster = Some(ClusterSettings { lease: Duration::from_millis(1200), address: None });
    let member = PostgresSettings { cluster, ..member };
    let member = Arc::new(PostgresStore::open(member, Arc::new(NoMeter)).unwrap());
    let members = member.members().unwrap();
    members.claim(&SlotSet::all()).await.unwrap();
    let (own, mut views) = (members.own(), members.views());
    let has_all = |view: &View| view.owners.slots_of(Some(own)).is_all();
    views.wait_for(|view| view.as_deref().is_some_and(has_all)).await.unwrap();
    eventually("a beat of the store that is alone, on a connection that stays", || {
        (server.answer(&of_alone, "SELECT beat > 0 FROM nodes").unwrap() == "t").then_some(())
    });

    let before = server.sql(LOG).len();
    for _ in 0..25 {
        views.changed().await.unwrap();
    }
    let log = server.sql(LOG);
    let sent = statements(&log[before..]);
    let others: Vec<_> = sent.iter().filter(|statement| !statement.starts_with(BEAT)).collect();
    assert_eq!(others, [] as [&&str; 0]);
    // those of the member alone; a view may have been there already
    assert!(sent.len() >= 24, "{} beats of two stores", sent.len());
}
