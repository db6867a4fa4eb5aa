//! Two simultaneous commands, in both orders: the table of `docs/races.md`.
//!
//! One step is suspended with a deadline, another one runs. The second command is decided by the
//! facts of the first, and by nothing else.

use std::sync::Arc;

use greenroom_domain::machine::{Command, Decision, Handled, StepResult};
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, run};
use crate::machine::picture;
use crate::machine::world::{World, ZERO, resume};

const HAPPENINGS: [&str; 6] = ["suspend", "lift", "answer", "deadline", "step end", "cancel"];

/// The step `q` is suspended and `w` is running; the deadline of `q` is due.
fn world() -> World {
    let asking = run("q").asks_for(100).ignoring();
    let mut world = World::of(vec![all("both", [("one", vec![asking]), ("two", vec![run("w")])])]);
    world.now = *world.timers.get("both/one/q").unwrap();
    world
}

fn command(happening: &str) -> Command {
    match happening {
        "suspend" => Command::Suspend { reason: Arc::from("stop"), by: None },
        "lift" => resume(None, Value::Null),
        "answer" => resume(Some("q"), json!(7)),
        "deadline" => Command::TimerFired { path: Arc::from("both/one/q") },
        "step end" => Command::StepFinished {
            path: Arc::from("both/two/w"),
            attempt: 1,
            result: StepResult::Completed(Arc::new(json!(5))),
            spent: greenroom_domain::machine::Spent::default(),
        },
        "cancel" => Command::Cancel { reason: Arc::from("enough"), by: None, compensate: false },
        other => panic!("{other}"),
    }
}

/// Returns the recorded facts, or the refusal.
fn happens(world: &mut World, happening: &str) -> String {
    match world.try_send(command(happening)) {
        Ok(Handled::Decided(Decision::Recorded(batch))) if batch.facts.is_empty() => {
            "nothing".to_owned()
        }
        Ok(Handled::Decided(Decision::Recorded(batch))) => {
            picture::lines(&batch.facts, ZERO).join("; ")
        }
        Ok(Handled::Decided(Decision::Forward { .. })) => panic!("there is no child"),
        Ok(Handled::Decided(Decision::Admit { .. })) => panic!("nobody is named"),
        Ok(Handled::Decided(Decision::Check { .. })) => panic!("the program checks nothing"),
        Ok(Handled::PutOff(_)) => panic!("no command is that costly"),
        Err(refusal) => format!("refused: {refusal:?}"),
    }
}

fn row(first: &str, second: &str) -> String {
    let mut world = world();
    let (one, two) = (happens(&mut world, first), happens(&mut world, second));
    let status: Status = world.status();
    format!("| {first} | {second} | {one} | {two} | {} |", status.as_str())
}

#[test]
fn the_second_of_two_commands_is_decided_by_the_facts_of_the_first() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/races.md");
    let document = std::fs::read_to_string(path).unwrap();
    let pairs = HAPPENINGS.iter().flat_map(|first| HAPPENINGS.map(|second| (*first, second)));
    let rows: Vec<String> = pairs.map(|(first, second)| row(first, second)).collect();
    let missing: Vec<&String> = rows.iter().filter(|row| !document.contains(*row)).collect();
    assert!(missing.is_empty(), "docs/races.md does not have: {missing:#?}");
}
