//! Servers of a database, as others than them see it.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::slot::{Slot, SlotSet};
use greenroom_actors::ports::meter::NoMeter;
use support::postgres::Server;

use crate::{ClusterSettings, Node, NodeReader, NodeState, Nodes, PostgresSettings, PostgresStore};

const LEASE: Duration = Duration::from_millis(1200);

fn settings(url: &str, name: &str) -> PostgresSettings {
    PostgresSettings::new(url.parse().unwrap(), name)
}

fn member(url: &str, name: &str) -> Arc<PostgresStore> {
    let cluster = Some(ClusterSettings { lease: LEASE, address: Some(format!("{name}:1")) });
    let settings = PostgresSettings { cluster, ..settings(url, name) };
    Arc::new(PostgresStore::open(settings, Arc::new(NoMeter)).unwrap())
}

fn look(url: &str) -> Nodes {
    NodeReader::open(&settings(url, "")).unwrap().look().unwrap()
}

fn refusal(url: &str) -> String {
    NodeReader::open(&settings(url, "")).unwrap_err().to_string()
}

fn shown(nodes: &Nodes) -> Vec<(&str, NodeState, bool, u64)> {
    let shown = |node: &'_ Node| (node.state, node.is_beating, node.slots);
    let all = nodes.nodes.iter().map(|node| {
        let (state, is_beating, slots) = shown(node);
        (node.name.as_str(), state, is_beating, slots)
    });
    all.collect()
}

#[test]
fn servers_are_shown_with_their_slots_and_signs_of_life() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    assert!(refusal(&url).starts_with("the database has no store"));
    let one = member(&url, "one");
    let two = member(&url, "two");
    let few: SlotSet = (0..7).filter_map(Slot::new).collect();
    let (of_two, claimed) = (two.members().unwrap(), few.clone());
    let claiming = async move { of_two.claim(&claimed).await.unwrap() };
    assert_eq!(two.driver.run(claiming, None), Some(few));
    // as a server that was killed leaves it
    let dead = "INSERT INTO nodes (node, name, version, state, beat, lease)
        VALUES (nextval('node_seq'), 'dead', '1.0.0', 0, 5, 1200)";
    server.answer(&url, dead).unwrap();
    let nodes = look(&url);
    let expected = [
        ("dead", NodeState::Active, false, 0),
        ("one", NodeState::Active, true, 0),
        ("two", NodeState::Active, true, 7),
    ];
    assert_eq!(shown(&nodes), expected);
    assert_eq!((nodes.slots_unowned, nodes.alone()), (4089, None));
    assert_eq!(nodes.nodes[1].lease, Some(LEASE));
    assert_eq!(nodes.nodes[1].address.as_deref(), Some("one:1"));
    assert_eq!(nodes.nodes[1].version, env!("CARGO_PKG_VERSION"));

    server.answer(&url, "UPDATE nodes SET state = 2 WHERE name = 'dead'").unwrap();
    let reader = NodeReader::open(&settings(&url, "")).unwrap();
    assert!(reader.set_leaving("one").unwrap());
    assert!(!reader.set_leaving("one").unwrap(), "it leaves already");
    let refused = reader.set_leaving("two").unwrap_err().to_string();
    assert!(refused.starts_with("no other server is active"), "{refused}");
    let nodes = reader.look().unwrap();
    assert_eq!(
        shown(&nodes)[..2],
        [("dead", NodeState::Gone, false, 0), ("one", NodeState::Leaving, true, 0),]
    );
    drop(one);
    // one that starts again is active, and another of the name is no longer shown
    drop(member(&url, "dead"));
    let names: Vec<_> = look(&url).nodes.into_iter().map(|node| node.name).collect();
    assert_eq!(names, ["two"]);
}

#[test]
fn a_server_for_itself_is_shown_as_one() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let store = PostgresStore::open(settings(&url, "me"), Arc::new(NoMeter)).unwrap();
    let nodes = look(&url);
    let alone = nodes.alone().unwrap();
    assert_eq!((alone.name.as_str(), alone.is_beating, nodes.nodes.len()), ("me", true, 1));
    drop(store);
    assert_eq!(look(&url).nodes, [], "it has left");
    for (version, least, expected) in [
        (1, 1, "the tables of the database are of an older version"),
        (99, 99, "the database was written by a newer version"),
    ] {
        let change = format!("UPDATE meta SET schema = {version}, schema_min = {least}");
        server.answer(&url, &change).unwrap();
        assert!(refusal(&url).starts_with(expected), "{}", refusal(&url));
    }
    server.answer(&url, "UPDATE meta SET schema_min = 1").unwrap();
    assert_eq!(look(&url).nodes, [], "newer tables, which this version knows enough of");
}
