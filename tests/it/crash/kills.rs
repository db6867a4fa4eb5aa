//! Clients work while the server is killed at random moments; nothing that it has acknowledged may
//! be lost, undone or done twice.

use std::time::{Duration, Instant};

use super::client::{Client, check, heal, round};
use super::ledger;
use super::rng::Rng;
use support::server::{Home, Server};
use support::store::Store;

const KILLS: u64 = 30;
/// Longest life of a server after it is ready.
const LIFE_MS: u64 = 500;

#[test]
fn acknowledged_work_is_never_lost_or_repeated() {
    drill(Store::chosen());
}

#[test]
fn acknowledged_work_is_never_lost_or_repeated_on_postgres() {
    Store::postgres().into_iter().for_each(drill);
}

fn drill(store: Store) {
    let kills = super::amount("GREENROOM_KILLS", KILLS);
    let mut rng = Rng::new();
    // every interruption is a kill of this test: no step may fail because of them
    let home = Home::on(store, "limits.crash_attempts = 1000");
    let ledger = home.ledger();
    let mut clients = Client::crowd(&mut rng);
    let start = Instant::now();
    for kill in 0..kills {
        let server = Server::start(home.test_server());
        // sometimes it is killed again before it has recovered
        if kill > 0 && rng.below(3) > 0 {
            check(&mut clients, &server, &ledger, false);
        }
        round(&mut clients, server, Duration::from_millis(rng.below(LIFE_MS)));
    }
    let server = Server::start(home.test_server());
    check(&mut clients, &server, &ledger, true);
    heal(&mut clients, &[&server], &ledger);
    check(&mut clients, &server, &ledger, true);

    let promises = || clients.iter().flat_map(|client| &client.promises);
    let acknowledged = promises().filter(|promise| promise.is_acknowledged).count();
    let lines = ledger::read(&ledger);
    let interrupted = lines.values().filter(|lines| lines.len() > 1).count();
    println!(
        "{kills} kills, {} executions, {acknowledged} acknowledged, 0 lost; {} steps, \
         {interrupted} interrupted and run again with the same key; {:.1} s",
        promises().count(),
        lines.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(acknowledged > 0 && interrupted > 0, "the drill has drilled nothing");
    assert!(promises().all(|promise| promise.refusals == 0), "the store never failed");
}
