//! Many callers with the same request at once.

use std::ops::Range;
use std::sync::Barrier;
use std::time::Instant;

use serde_json::json;

use support::client::{Reply, Wire};
use support::server::{Home, Server};

pub(super) const CALLERS: usize = 50;
const ROUNDS: usize = 50;
const SUSPENDS: usize = 300;

/// Sends requests from many connections at once in each round: path and body, by the round and the
/// number of the caller. Returns the replies of each round.
pub(super) fn crowd(
    server: &Server,
    rounds: Range<usize>,
    request: impl Fn(usize, usize) -> (String, String) + Sync,
) -> Vec<Vec<Reply>> {
    let barrier = Barrier::new(CALLERS);
    let by_caller: Vec<Vec<Reply>> = std::thread::scope(|scope| {
        let (barrier, request, rounds) = (&barrier, &request, &rounds);
        let call = |caller| {
            let mut wire = Wire::open(server.address).unwrap();
            let ask = |round| {
                let (path, body) = request(round, caller);
                barrier.wait();
                wire.send("POST", &path, &[], Some(body.as_bytes())).unwrap();
                wire.reply().unwrap()
            };
            rounds.clone().map(ask).collect()
        };
        let callers: Vec<_> =
            (0..CALLERS).map(|caller| scope.spawn(move || call(caller))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    (0..rounds.len()).map(|at| by_caller.iter().map(|it| it[at].clone()).collect()).collect()
}

/// One is served, the others get this refusal.
fn assert_one_winner(replies: &[Reply], status: u16, text: &str) {
    let won = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(won, 1, "{text}");
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!((reply.status, reply.error().as_str()), (status, text));
    }
}

#[test]
fn one_of_many_concurrent_resumes_wins() {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    for round in 0..ROUNDS {
        let body =
            json!({ "input": { "n": 0 }, "options": { "executionId": format!("r{round}") } });
        assert_eq!(server.post("/workflows/approval/execute", &body).data()["status"], "suspended");
    }
    let answer = json!({ "resumeData": { "approved": true } }).to_string();
    let rounds = crowd(&server, 0..ROUNDS, |round, _| {
        (format!("/workflows/approval/executions/r{round}/resume"), answer.clone())
    });
    for (round, replies) in rounds.iter().enumerate() {
        assert_one_winner(replies, 404, &format!("Execution r{round} is not suspended"));
    }
    let ledger = super::ledger::read(&home.ledger());
    assert_eq!(ledger.len(), ROUNDS * 3);
    assert!(ledger.values().all(|lines| lines.len() == 1), "a step ran twice");
}

#[test]
fn one_of_many_concurrent_starts_with_an_id_wins() {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    let request = |round: usize, _| {
        let body =
            json!({ "input": { "n": 0 }, "options": { "executionId": format!("e{round}") } });
        ("/workflows/chain/execute".to_owned(), body.to_string())
    };
    let rounds = crowd(&server, 0..ROUNDS, request);
    for (round, replies) in rounds.iter().enumerate() {
        assert_one_winner(replies, 409, &format!("Execution e{round} already exists"));
    }
    server.kill();
    let server = Server::start(home.test_server());
    for round in 0..ROUNDS {
        let (path, body) = request(round, 0);
        let reply = server.send("POST", &path, &[], Some(body.as_bytes()));
        assert_eq!(reply.status, 409, "{}", reply.text());
    }
    let ledger = super::ledger::read(&home.ledger());
    assert_eq!(ledger.len(), ROUNDS * 3);
    assert!(ledger.values().all(|lines| lines.len() == 1), "a step ran twice");
}

#[test]
fn a_suspend_does_not_wait_for_the_running_step() {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    let gate = home.path("gate");
    let mut streams = Vec::new();
    for n in 0..SUSPENDS {
        let body =
            json!({ "input": { "gate": gate }, "options": { "executionId": format!("g{n}") } });
        let mut wire = Wire::open(server.address).unwrap();
        wire.send("POST", "/workflows/gated/stream", &[], Some(body.to_string().as_bytes()))
            .unwrap();
        let mut events = support::client::Events::read(wire).unwrap();
        while events.next().unwrap().unwrap().kind() != "step-start" {}
        streams.push(events);
    }
    let mut wire = Wire::open(server.address).unwrap();
    let mut times = Vec::new();
    for n in 0..SUSPENDS {
        let start = Instant::now();
        let path = format!("/workflows/gated/executions/g{n}/suspend");
        wire.send("POST", &path, &[], Some(b"{}")).unwrap();
        let reply = wire.reply().unwrap();
        times.push(start.elapsed());
        assert_eq!(reply.data()["status"], "suspended");
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    println!("suspend while a step runs: p50 {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100));

    // the gate was shut until here, so no suspend waited for its step; the step in flight finishes and is recorded; nothing follows until the resume
    home.write("gate", "");
    let state = server.state_when("gated", "g0", |it| it["steps"][0]["status"] == "completed");
    assert_eq!(
        (&state["status"], state["steps"].get(1).map(|it| &it["status"])),
        (&json!("suspended"), None)
    );
    let resumed = server.post("/workflows/gated/executions/g0/resume", &json!({})).data();
    assert_eq!(resumed["result"], json!({ "n": 2 }));
}
