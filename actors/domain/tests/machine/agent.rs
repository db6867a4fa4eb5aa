//! Agents as steps: their prompts and their token usage.

use std::sync::Arc;

use greenroom_domain::effort::Budget;
use greenroom_domain::expression::Closures;
use greenroom_domain::fact::{Fact, McpCall, Recorded};
use greenroom_domain::failure::{AttemptFailure, ErrorKind};
use greenroom_domain::machine::{AgentCall, Moment, Spent, StepResult};
use greenroom_domain::state::State;
use greenroom_domain::usage::Usage;
use serde_json::{Value, from_value, json, to_value};

use crate::machine::build::{Adorned, agent, all, map};
use crate::machine::world::World;

fn call(world: &World, path: &str) -> Result<AgentCall, AttemptFailure> {
    let ids = || unreachable!("no child is started");
    let missing = |_: &_| None;
    let moment = Moment {
        now: world.now,
        new_id: &ids,
        missing: &missing,
        limits: &world.limits,
        budget: &Budget::turn(),
        closures: &Closures::default,
    };
    world.machine.agent_call(path, &moment).unwrap()
}

fn tokens(total_tokens: u64) -> Spent {
    let usage = Usage { prompt_tokens: 1, total_tokens, ..Usage::default() };
    Spent { usage: Some(usage), mcp: None }
}

fn finish(world: &mut World, path: &str, output: Value, used: u64) -> Vec<String> {
    world.end_step_using(path, StepResult::Completed(Arc::new(output)), tokens(used))
}

fn used(world: &World) -> Option<u64> {
    world.machine.state().usage.as_ref().map(|usage| usage.total_tokens)
}

#[test]
fn the_prompt_is_a_template_or_the_data() {
    let mut world = World::of(vec![
        map("a", json!({ "city": "'Rome'" })),
        agent("asked", Some("Weather in {{ data.city }}?")),
        agent("plain", None),
    ]);
    assert_eq!(call(&world, "asked").unwrap().prompt, "Weather in Rome?");
    world.finish("asked", json!({ "text": "sun" }));
    assert_eq!(call(&world, "plain").unwrap().prompt, "{\"text\":\"sun\"}");
}

#[test]
fn usage_is_recorded_with_each_attempt_and_summed() {
    let mut world = World::of(vec![
        all("both", [("x", vec![agent("a", None)]), ("y", vec![agent("b", None).tries(3)])]),
        agent("c", None).gives(json!({ "type": "object" })).ignoring(),
    ]);
    assert_eq!(used(&world), None, "no agent has answered");
    let failed = StepResult::Failed(AttemptFailure::new(ErrorKind::Agent, "no answer"));
    assert_eq!(
        world.end_step_using("both/y/b", failed, tokens(5)),
        ["both/y/b fails: no answer for 5 tokens; again at 100"]
    );
    world.due("both/y/b");
    assert_eq!(world.fail("both/y/b", "lost"), ["both/y/b fails: lost; again at 300"]);
    assert_eq!(used(&world), Some(5), "usage of the second attempt is unknown");
    world.due("both/y/b");
    assert_eq!(finish(&mut world, "both/y/b", json!(1), 7), ["both/y/b gives 1 for 7 tokens"]);
    world.crash();
    world.recover();
    assert_eq!(used(&world), Some(12), "read from the record");
    assert_eq!(finish(&mut world, "both/x/a", json!(1), 11)[0], "both/x/a gives 1 for 11 tokens");
    let lines = finish(&mut world, "c", json!("text"), 2);
    assert!(lines[0].ends_with("for 2 tokens; continues with [1,1]"), "{lines:?}");
    assert_eq!(used(&world), Some(25), "an invalid answer has used tokens, too");
    for batches in 1..=world.batches.len() {
        world.restore_from(batches);
        assert_eq!(used(&world), Some(25), "after {batches} batches in the snapshot");
    }
}

#[test]
fn the_retry_number_does_not_count_crashes() {
    let mut world = World::of(vec![agent("a", None).tries(3)]);
    assert_eq!(call(&world, "a").unwrap().retry, 0);
    world.crash();
    world.recover();
    assert_eq!(call(&world, "a").unwrap().retry, 0, "the same call, made again");
    world.fail("a", "no answer");
    world.due("a");
    assert_eq!(call(&world, "a").unwrap().retry, 1);
}

#[test]
fn records_of_earlier_versions_name_no_usage() {
    let mut world = World::of(vec![agent("a", None), map("b", "data")]);
    finish(&mut world, "a", json!(1), 3);
    let mut end = to_value(&world.batches[1][0]).unwrap();
    assert_eq!(end["f"]["StepCompleted"]["usage"]["totalTokens"], 3);
    end["f"]["StepCompleted"].as_object_mut().unwrap().remove("usage");
    let Recorded { fact: Fact::StepCompleted { usage, .. }, .. } = from_value(end).unwrap() else {
        panic!("another fact");
    };
    assert_eq!(usage, None);

    let mut state = to_value(world.machine.state()).unwrap();
    state.as_object_mut().unwrap().remove("usage");
    assert_eq!(from_value::<State>(state).unwrap().usage, None);
}

#[test]
fn a_request_to_an_mcp_server_is_recorded_with_the_end_of_its_attempt() {
    let mut world = World::of(vec![agent("a", None).tries(3), map("b", "data")]);
    let request = McpCall { tool: Some("own.sum".into()), is_http: true, ..McpCall::default() };
    let spent = Spent { usage: None, mcp: Some(Box::new(request)) };
    let failed = StepResult::Failed(AttemptFailure::new(ErrorKind::Tool, "no"));
    let lines = world.end_step_using("a", failed, spent.clone());
    assert!(lines[0].starts_with("a fails: no by own.sum; again at"), "{lines:?}");
    world.due("a");
    let asked = StepResult::Suspended { reason: Some("why".to_owned()), payload: None };
    let lines = world.end_step_using("a", asked, spent.clone());
    assert_eq!(lines[0], "a asks: why by own.sum");
    let fact = to_value(&world.batches.last().unwrap()[0]).unwrap();
    let stored = &fact["f"]["StepSuspended"]["mcp"];
    assert_eq!(*stored, json!({ "isHttp": true, "tool": "own.sum" }));

    let mut world = World::of(vec![agent("a", None)]);
    let done = || StepResult::Completed(Arc::new(json!(1)));
    assert_eq!(world.end_step_using("a", done(), spent)[0], "a gives 1 by own.sum");
    let mut world = World::of(vec![agent("a", None)]);
    world.end_step("a", done());
    let fact = to_value(&world.batches[1][0]).unwrap();
    assert_eq!(fact["f"]["StepCompleted"].get("mcp"), None, "absent without one");
}

#[test]
fn a_prompt_that_cannot_be_made_fails_the_attempt() {
    let world = |prompt: &str| World::of(vec![agent("a", Some(prompt))]);
    for (prompt, message, is_terminal) in
        [("{{ fail('Sold out') }}", "Sold out", true), ("{{ input.nope }}", "prompt: ", false)]
    {
        let failure = call(&world(prompt), "a").unwrap_err();
        assert!(failure.message.starts_with(message), "{failure:?}");
        assert_eq!(failure.class.map(|class| class.is_terminal), Some(is_terminal), "{failure:?}");
    }
}
