//! Agents whose calls wait for people, while the server is killed at random moments: between
//! question, answer, call and next turn. Whatever the moment, each call has its effect under one key,
//! each answer counts once, and everything ends as it would have without the kills.

mod errand;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::errand::{CONFIG, Errand, PLANS};
use super::client::live;
use super::rng::Rng;
use support::client::Wire;
use support::server::{Home, Server};
use support::store::Store;

const KILLS: u64 = 8;
/// Longest life of a server after it is ready.
const LIFE_MS: u64 = 1_000;
const CLIENTS: u64 = 8;
/// Longest time that a call takes.
const CALL_MS: u64 = 40;
const PAGE: u64 = 100;

/// Sends a client's errands, one after the other.
struct Client {
    number: u64,
    rng: Rng,
    errands: Vec<Errand>,
}

impl Client {
    fn crowd(rng: &mut Rng) -> Vec<Self> {
        let client = |number| Self { number, rng: rng.split(), errands: Vec::new() };
        (0..CLIENTS).map(client).collect()
    }

    /// Works until the server is gone.
    fn work(&mut self, address: SocketAddr) -> io::Result<()> {
        let mut wire = Wire::open(address)?;
        loop {
            self.finish(&mut wire)?;
            let count = self.errands.len() as u64;
            let plan = &PLANS[self.rng.below(PLANS.len() as u64) as usize];
            let number = count * CLIENTS + self.number;
            self.errands.push(Errand::new(plan, number, self.rng.below(CALL_MS)));
        }
    }

    /// Brings the errand that was begun last to its end.
    fn finish(&mut self, wire: &mut Wire) -> io::Result<()> {
        match self.errands.last_mut() {
            Some(errand) => errand.go_on(wire, &mut self.rng),
            None => Ok(()),
        }
    }
}

#[test]
fn calls_that_wait_are_made_under_one_key_and_end_whatever_is_killed() {
    drill(Store::chosen());
}

#[test]
fn calls_that_wait_are_made_under_one_key_and_end_whatever_is_killed_on_postgres() {
    Store::postgres().into_iter().for_each(drill);
}

fn drill(store: Store) {
    let kills = super::amount("GREENROOM_KILLS", KILLS);
    let mut rng = Rng::new();
    let home = Home::on(store, CONFIG);
    let mut clients = Client::crowd(&mut rng);
    let start = Instant::now();
    for _ in 0..kills {
        let server = Server::start(home.test_server());
        live(&mut clients, server, Duration::from_millis(rng.below(LIFE_MS)), Client::work);
    }
    let server = Server::start(home.test_server());
    for client in &mut clients {
        client.finish(&mut Wire::open(server.address).unwrap()).unwrap();
    }
    let errands: Vec<_> = clients.iter().flat_map(|client| &client.errands).collect();
    let history = Found::read(&server, &errands);
    server.kill();

    // what a server that has only the store shows
    let server = Server::start(home.test_server());
    assert_eq!(Found::read(&server, &errands), history);
    let effects = effects(&home);
    errands.iter().for_each(|errand| errand.check(&history, &effects));
    let expected: usize = errands.iter().map(|errand| errand.made().count()).sum();
    assert_eq!(effects.len(), expected, "effects of calls that nobody has made");
    let keys: BTreeSet<_> = effects.values().flatten().collect();
    assert_eq!(keys.len(), effects.len(), "calls share a key, or have several");
    assert_idle(&server);

    let repeated = effects.values().filter(|keys| keys.len() > 1).count();
    let answers: usize = errands.iter().map(|errand| errand.answered.len()).sum();
    let answers_repeated: u64 = errands.iter().map(|errand| errand.answers_repeated).sum();
    println!(
        "{kills} kills, {} errands {:?}, {answers} answers, {answers_repeated} of them sent again; \
         {} calls made, {repeated} interrupted and made again with the same key; {} generations \
         interrupted before their first turn; {:.1} s",
        errands.len(),
        plans(&errands),
        effects.len(),
        history.interrupted,
        start.elapsed().as_secs_f64()
    );
    assert!(answers > 0 && !effects.is_empty(), "the drill has drilled nothing");
}

/// Checks that nothing runs and no ask is open.
fn assert_idle(server: &Server) {
    let open = server.get("/inbox").data();
    assert_eq!((&open["asks"], &open["nextCursor"]), (&json!([]), &Value::Null));
    let zero = ["live", "waiting"].map(|what| format!("greenroom_executions_{what}"));
    let kinds = ["step", "function", "approval", "input"];
    let asks = kinds.map(|kind| format!("greenroom_asks{{kind=\"{kind}\"}}"));
    let others = ["generations_live", "steps_running", "sse_subscribers", "timers_pending"];
    let others = others.map(|what| format!("greenroom_{what}"));
    for name in zero.iter().chain(&asks).chain(&others) {
        assert_eq!(server.figure(name), Some(0.0), "{name}");
    }
}

/// Returns the number of errands of each plan.
fn plans(errands: &[&Errand]) -> BTreeMap<&'static str, usize> {
    let mut plans = BTreeMap::new();
    errands.iter().for_each(|errand| *plans.entry(errand.plan.name).or_default() += 1);
    plans
}

/// Returns the keys of the calls, in their order, by amount.
fn effects(home: &Home) -> BTreeMap<u64, Vec<String>> {
    let mut effects = BTreeMap::<u64, Vec<String>>::new();
    for line in home.ledger_lines() {
        let ["pay", amount, key] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a torn line: {line:?}")
        };
        effects.entry(amount.parse().unwrap()).or_default().push(key.to_owned());
    }
    effects
}

/// Everything that a server shows of the errands.
#[derive(Debug, PartialEq)]
struct Found {
    /// Generations that have completed, by their user.
    completed: BTreeMap<String, Vec<Value>>,
    /// Generations that a kill has ended before their first turn was recorded.
    interrupted: usize,
    /// Messages of the conversations, and all asks, by user.
    messages: BTreeMap<String, Vec<Value>>,
    asks: BTreeMap<String, Vec<Value>>,
}

impl Found {
    fn read(server: &Server, errands: &[&Errand]) -> Self {
        let mut wire = Wire::open(server.address).unwrap();
        let mut get = |path: &str| {
            wire.send("GET", path, &[], None).unwrap();
            wire.reply().unwrap().data()
        };
        let list = |data: &Value, key: &str| data[key].as_array().unwrap().clone();
        let mut found = Self {
            completed: BTreeMap::new(),
            interrupted: 0,
            messages: BTreeMap::new(),
            asks: BTreeMap::new(),
        };
        for page in 0.. {
            let data = get(&format!("/agents/clerk/history?page={page}&limit={PAGE}"));
            list(&data, "entries").into_iter().for_each(|entry| found.add(entry));
            if (page + 1) * PAGE >= data["pagination"]["total"].as_u64().unwrap() {
                break;
            }
        }
        for user in errands.iter().map(|errand| errand.user()) {
            let path = format!(
                "/api/memory/conversations/{user}/messages?agentId=clerk&userId={user}&limit={PAGE}"
            );
            found.messages.insert(user.clone(), list(&get(&path), "messages"));
            let asks = list(&get(&format!("/inbox?state=all&userId={user}")), "asks");
            found.asks.insert(user, asks);
        }
        found
    }

    fn add(&mut self, entry: Value) {
        if entry["status"] == "error" {
            assert_eq!(entry["error"], "interrupted by a restart", "{entry:#}");
            assert_eq!(entry["steps"], json!([]), "{entry:#}");
            self.interrupted += 1;
            return;
        }
        assert_eq!(entry["status"], "completed", "{entry:#}");
        let user = entry["userId"].as_str().unwrap().to_owned();
        self.completed.entry(user).or_default().push(entry);
    }
}
