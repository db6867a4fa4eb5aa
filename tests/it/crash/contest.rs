//! Many people who answer one ask at once, each with an answer of their own.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::crowd::{CALLERS, crowd};
use support::client::{Reply, Wire};
use support::server::{Home, Server};
use support::store::Store;

const ROUNDS: u64 = 20;
/// Number of rounds whose asks wait side by side.
const ROUNDS_AT_ONCE: usize = 20;

const CONFIG: &str = r#"
[models.offline]
provider = "rehearsal"
[[models.offline.rules]]
when = "tool_results"
reply = "{{ tool_results[0].output if tool_results[0].output is defined else tool_results[0].denied }}"
[[models.offline.rules]]
when = "true"
tool_call = { name = "pay", args = { amount = "prompt | int" } }
[agents.clerk]
model = "offline"
tools = ["pay"]
[workflows.signing]
steps = [{ id = "sign", suspend = { reason = "{{ input.n }}" }, map = { by = "resumed_by.id", data = "resume" } }]
"#;

/// An ask that is fought over, and whose it is.
struct Prize {
    ask: String,
    /// The execution or the generation.
    owner: String,
    is_step: bool,
}

impl Prize {
    /// Starts what asks: an execution in the even rounds, a call of an agent in the others.
    fn offer(server: &Server, round: usize) -> Self {
        let (user, is_step) = (format!("r{round}"), round.is_multiple_of(2));
        let options = json!({ "userId": user });
        let owner = if is_step {
            let body = json!({ "input": { "n": round }, "options": options });
            let reply = server.post("/workflows/signing/execute", &body);
            reply.data()["executionId"].as_str().unwrap().to_owned()
        } else {
            let body = json!({ "input": amount(round).to_string(), "options": options });
            let reply = server.post("/agents/clerk/text", &body);
            reply.data()["generationId"].as_str().unwrap().to_owned()
        };
        let asks = server.get(&format!("/inbox?userId={user}")).data();
        let ask = asks["asks"][0]["askId"].as_str().unwrap().to_owned();
        Self { ask, owner, is_step }
    }

    /// Returns the answer of a caller, which is that of no other.
    fn answer(&self, caller: usize) -> Value {
        let approved = caller.is_multiple_of(2);
        json!({ "approved": approved, "reason": format!("{caller}") })
    }

    /// Checks that one caller has won, that the others know who and when, and that the answer of the
    /// winner is the one that counts; returns whether it was an approval.
    fn check(&self, server: &Server, replies: &[Reply]) -> bool {
        let won: Vec<_> = (0..replies.len()).filter(|at| replies[*at].status == 200).collect();
        let [winner] = won[..] else { panic!("{}: {won:?} have won", self.ask) };
        let answer = self.answer(winner);
        let shown = server.get(&format!("/inbox/{}", self.ask)).data();
        let by = json!({ "id": format!("u{winner}"), "verified": false });
        assert_eq!(
            (&shown["state"], &shown["answeredBy"], &shown["data"]),
            (&json!("answered"), &by, &answer),
            "u{winner} was told to have won: {shown:#}"
        );
        assert_eq!(replies[winner].data()["closedAt"], shown["closedAt"]);
        let at = shown["closedAt"].as_str().unwrap();
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            let refusal = (reply.status, reply.header("x-error-code"));
            assert_eq!(refusal, (409, Some("ask_answered")), "{}", reply.text());
            let error = reply.error();
            let says_it = error.contains(&format!("u{winner}")) && error.contains(at);
            assert!(says_it, "u{winner} at {at}: {error}");
        }
        answer["approved"] == true
    }

    /// Checks that the execution or the generation has gone on with the answer.
    fn check_end(&self, server: &Server, winner: &Value) {
        let place = match self.is_step {
            true => format!("/workflows/signing/executions/{}/state", self.owner),
            false => format!("/agents/clerk/generations/{}", self.owner),
        };
        let ended = support::eventually(&place, || {
            let shown = server.get(&place).data();
            (shown["status"] == "completed").then_some(shown)
        });
        if self.is_step {
            let result = json!({ "by": winner["answeredBy"]["id"], "data": winner["data"] });
            assert_eq!(ended["result"], result);
        }
    }
}

/// Amounts that end in 1 wait for an answer.
fn amount(round: usize) -> usize {
    round * 10 + 1
}

#[test]
fn one_of_many_concurrent_answers_wins() {
    contest(Store::chosen());
}

#[test]
fn one_of_many_concurrent_answers_wins_on_postgres() {
    Store::postgres().into_iter().for_each(contest);
}

fn contest(store: Store) {
    let rounds = usize::try_from(super::amount("GREENROOM_ROUNDS", ROUNDS)).unwrap();
    let home = Home::on(store, CONFIG);
    let server = Server::start(home.test_server());
    let start = Instant::now();
    let mut approved = BTreeMap::new();
    let mut winners = BTreeMap::<String, usize>::new();
    for first in (0..rounds).step_by(ROUNDS_AT_ONCE) {
        let range = first..(first + ROUNDS_AT_ONCE).min(rounds);
        let prizes: Vec<_> = range.clone().map(|round| Prize::offer(&server, round)).collect();
        let replies = crowd(&server, range.clone(), |round, caller| {
            let prize = &prizes[round - first];
            let options = json!({ "userId": format!("u{caller}") });
            let body = json!({ "data": prize.answer(caller), "options": options });
            (format!("/inbox/{}/answer", prize.ask), body.to_string())
        });
        for ((round, prize), replies) in range.zip(&prizes).zip(&replies) {
            assert_eq!(replies.len(), CALLERS);
            approved.insert(round, prize.check(&server, replies));
            let shown = server.get(&format!("/inbox/{}", prize.ask)).data();
            prize.check_end(&server, &shown);
            let winner = shown["answeredBy"]["id"].as_str().unwrap().to_owned();
            *winners.entry(winner).or_default() += 1;
        }
    }
    let mut wire = Wire::open(server.address).unwrap();
    wire.send("GET", "/inbox", &[], None).unwrap();
    assert_eq!(wire.reply().unwrap().data()["asks"], json!([]));
    let ledger = home.ledger_lines();
    let mut paid: Vec<usize> =
        ledger.iter().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    paid.sort_unstable();
    let calls = approved.iter().filter(|(round, is)| !round.is_multiple_of(2) && **is);
    let expected: Vec<_> = calls.map(|(round, _)| amount(*round)).collect();
    assert_eq!(paid, expected, "each approved call is made once, and no refused one");
    println!(
        "{rounds} rounds of {CALLERS} answers, one winner in each, {} different ones; {} approved \
         calls made; {:.1} s",
        winners.len(),
        paid.len(),
        start.elapsed().as_secs_f64()
    );
}
