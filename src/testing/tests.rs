//! Tests of worlds and cases.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::builder::{Block, Compensation, Retry, Scope, Step, Suspend, Workflow};
use crate::config::Config;
use crate::greenroom::Problems;
use crate::model::ToolCall;
use crate::{Greenroom, RunError};

mod answers;
mod compensations;
mod mocks;
mod names;

const HOUR: Duration = Duration::from_secs(3600);

/// An approval within two days, then a charge.
fn expense() -> Workflow {
    let manager =
        Suspend::always().deadline(48 * HOUR).on_timeout_resume(json!({ "approved": false }));
    let approval = Step::map("manager", json!({ "approved": "resume.approved" })).suspend(manager);
    let paid = Block::new("paid").step(Step::run("pay", "bank.pay").retry(Retry::attempts(3)));
    Workflow::new("expense")
        .result(json!({ "paid": "steps.pay is defined" }))
        .step(approval)
        .step(Step::when("if-approved", "steps.manager.approved", paid))
}

fn server() -> Greenroom {
    Greenroom::new().workflow(expense())
}

fn case() -> Case {
    Case::new("expense").input(&json!({ "amount": 900 })).mock_step("pay", Mock::output(json!(7)))
}

/// A case whose payment fails.
fn refusing() -> Case {
    let pay = Mock::failure("no money");
    case().mock_step("pay", pay).answer("manager", HOUR, &json!({ "approved": true }))
}

fn problems_of(case: &Case, server: impl Fn() -> Greenroom) -> Vec<String> {
    run(case.run(server)).map_or_else(|Problems(problems)| problems, |_| Vec::new())
}

#[test]
fn two_days_pass_in_a_moment() {
    let case = case()
        .expect("result.paid == false and steps.manager.approved == false")
        .expect_ran(["manager"])
        .expect_not_ran(["pay"])
        .expect_took(48 * HOUR);
    let outcome = run(case.run(server)).unwrap();
    assert_eq!((outcome.status, outcome.took.as_secs()), (Status::Completed, 48 * 3600));
}

#[test]
fn years_pass_in_a_moment_too() {
    let night = Block::new("night").step(Step::sleep("sleep", 24 * HOUR));
    let nights = Step::for_each("nights", json!("input"), night).concurrency(1);
    let flow = Workflow::new("w").step(nights).step(Step::sleep("rest", 3 * 365 * 24 * HOUR));
    let case = Case::new("w")
        .input(&(0..400).collect::<Vec<_>>())
        .expect_took((400 + 3 * 365) * 24 * HOUR);
    assert_eq!(problems_of(&case, move || Greenroom::new().workflow(flow.clone())), [""; 0]);
}

/// Regular work is rare in virtual time: deadlines of calls do not wait for it.
#[test]
fn deadlines_of_calls_are_punctual() {
    let text = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\n\
                api_key = \"secret:NO_KEY\"\n\
                [agents.a]\nmodel = \"m\"\ninstructions = \"i\"\ntools = [\"pay\"]\n\
                [tools.pay]\nkind = \"workflow\"\nworkflow = \"pay\"\ndescription = \"Pays\"\n\
                approval = { deadline = \"3h\" }\n\
                [workflows.pay]\n[[workflows.pay.steps]]\nid = \"a\"\nmap = \"1\"\n\
                [workflows.w]\n[[workflows.w.steps]]\nid = \"think\"\ntype = \"andAgent\"\n\
                agent = \"a\"\n";
    let server = || Greenroom::over(Config::parse(text, "c.toml").unwrap());
    let call = ToolCall {
        tool_call_id: "c1".to_owned(),
        tool_name: "pay".to_owned(),
        input: json!({ "amount": 1 }),
    };
    let call = ScriptedAnswer::ToolCalls(vec![call]);
    let answers = [call, ScriptedAnswer::Text("not paid".to_owned())];
    let case = Case::new("w")
        .mock_model("m", Arc::new(ScriptedModel::local(answers)))
        .mock_tool("pay", Mock::output(1))
        .expect("result.text == 'not paid'")
        .expect_took(3 * HOUR);
    assert_eq!(problems_of(&case, server), [""; 0]);
}

/// A kill may replace the ask of a call by another one, which gets the answer then.
#[test]
fn approvals_are_answered_over_kills() {
    let text = "[models.m]\nprovider = \"rehearsal\"\n\
                rules = [{ when = \"not tool_results\", tool_call = { name = \"pay\" } }, \
                { reply = \"paid\" }]\n\
                [agents.a]\nmodel = \"m\"\ninstructions = \"i\"\ntools = [\"pay\"]\n\
                [tools.pay]\nkind = \"workflow\"\nworkflow = \"pay\"\ndescription = \"Pays\"\n\
                approval = true\n\
                [workflows.pay]\n[[workflows.pay.steps]]\nid = \"a\"\nmap = \"1\"\n\
                [workflows.w]\n[[workflows.w.steps]]\nid = \"think\"\ntype = \"andAgent\"\n\
                agent = \"a\"\n";
    let server = || Greenroom::over(Config::parse(text, "c.toml").unwrap());
    let case = Case::new("w")
        .mock_tool("pay", Mock::output(1))
        .answer("pay", HOUR, &json!({ "approved": true }))
        .expect("result.text == 'paid'")
        .crash_everywhere();
    let outcome = run(case.run(server)).unwrap();
    assert!(outcome.kills > 4, "{outcome:?}");
}

#[test]
fn the_context_is_that_of_the_caller() {
    let flow = Workflow::new("w").step(Step::map("a", json!("context.tenant")));
    let server = move || Greenroom::new().workflow(flow.clone());
    let case = Case::new("w").context(&json!({ "tenant": "acme" })).expect("result == 'acme'");
    assert_eq!(problems_of(&case, &server), [""; 0]);
    let refused = problems_of(&Case::new("w").context(&json!([1])), &server);
    assert_eq!(refused, ["context: must be an object"]);
}

#[test]
fn answers_are_given_when_they_are_due() {
    let yes = json!({ "approved": true });
    let case =
        case().answer("manager", 30 * HOUR, &yes).expect("result.paid").expect_took(30 * HOUR);
    let outcome = run(case.run(server)).unwrap();
    assert_eq!(outcome.ran, ["manager", "if-approved", "pay"]);
}

#[test]
fn a_killed_run_ends_like_any_other() {
    let pay = Mock::output(json!(7)).failing(2, "the bank is closed").taking(HOUR);
    let case = case()
        .mock_step("pay", pay)
        .answer("manager", HOUR, &json!({ "approved": true }))
        .expect("result.paid")
        .expect_took(4 * HOUR)
        .crash_everywhere();
    let outcome = run(case.run(server)).unwrap();
    assert!(outcome.kills >= 7, "{outcome:?}");
}

#[test]
fn a_charge_without_its_key_is_found() {
    let ledger = Arc::new(Mutex::new(Vec::new()));
    let entries = Arc::clone(&ledger);
    let server = move || {
        ledger.lock().unwrap().clear();
        let ledger = Arc::clone(&ledger);
        let pay = move |_| {
            // an entry of each call, whatever its key
            ledger.lock().unwrap().push(900);
            async { Ok(json!(1).into()) }
        };
        server().function("bank.pay", pay)
    };
    let yes = json!({ "approved": true });
    let case =
        Case::new("expense").answer("manager", HOUR, &yes).crash_everywhere().check(move |_| {
            match entries.lock().unwrap().as_slice() {
                [] | [_] => Ok(()),
                entries => Err(format!("charged {} times", entries.len())),
            }
        });
    let problems = problems_of(&case, server);
    assert!(problems.iter().any(|it| it.ends_with("charged 2 times")), "{problems:?}");
}

#[test]
fn a_mock_that_recognizes_no_keys_is_not_called_twice() {
    let pay = Mock::output(json!(7)).unrepeatable();
    let case = case()
        .mock_step("pay", pay)
        .answer("manager", HOUR, &json!({ "approved": true }))
        .crash_everywhere();
    let problems = problems_of(&case, server);
    let said = "is called 2 times with the key test/if-approved/paid/pay, without a crash 1";
    assert!(problems.iter().any(|it| it.contains(said)), "{problems:?}");
}

/// The error of the step around a child names the child, whose id may be another one after a crash.
#[test]
fn a_killed_run_whose_child_fails_ends_like_any_other() {
    let child = Workflow::new("payout").step(Step::run("bank", "bank"));
    let parent = Workflow::new("order").step(Step::workflow("pay", "payout"));
    let server = move || Greenroom::new().workflow(child.clone()).workflow(parent.clone());
    let case = Case::new("order")
        .mock_step_of("payout", "bank", Mock::failure("closed"))
        .expect_error("closed")
        .crash_everywhere();
    let outcome = run(case.run(server)).unwrap();
    assert!(outcome.kills >= 3, "{outcome:?}");
}

/// A child that a crash forgets before it is recorded gets another id, and so another key.
#[test]
fn steps_of_children_are_called_once() {
    let child = Workflow::new("child").step(Step::run("pack", "pack"));
    let item = Block::new("item").step(Step::workflow("parcel", "child"));
    let parent = Workflow::new("parent").step(Step::for_each("items", json!([1, 2, 3]), item));
    let server = move || Greenroom::new().workflow(child.clone()).workflow(parent.clone());
    let pack = Mock::output(json!("packed")).unrepeatable();
    let case = Case::new("parent").mock_step_of("child", "pack", Mock::output(json!("packed")));
    let case = case.expect("result == ['packed', 'packed', 'packed']").crash_everywhere();
    assert_eq!(problems_of(&case, &server), [""; 0]);
    let found = problems_of(&case.mock_step_of("child", "pack", pack), &server);
    assert!(found.iter().any(|it| it.contains("is called 2 times with the key")), "{found:?}");
}

/// Results of closures are recorded: a restart does not compute them again.
#[test]
fn killed_runs_with_closures_end_like_any_other() {
    let computed = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&computed);
    let line = Block::new("line").step(Step::run("pack", "pack"));
    let lines = Step::for_each(
        "lines",
        move |cx: &Scope| {
            *counted.lock().unwrap() += 1;
            cx.input::<Vec<u32>>()
        },
        line,
    );
    let asked = Suspend::when(|cx: &Scope| Ok(cx.data::<Vec<String>>()?.len() > 1));
    let check = Step::map("check", json!("resume")).suspend(asked);
    let flow = Workflow::new("parcels").step(lines).step(check);
    let server = move || Greenroom::new().workflow(flow.clone());
    let case = Case::new("parcels")
        .input(&[1, 2, 3])
        .mock_step("pack", Mock::output("packed"))
        .answer("check", HOUR, &json!("fine"))
        .expect("result == 'fine'")
        .expect_took(HOUR)
        .crash_everywhere();
    let outcome = run(case.run(server)).unwrap();
    let runs = outcome.kills + 1;
    let computed = *computed.lock().unwrap();
    assert!(computed >= runs && computed <= runs + 2, "{computed} times in {runs} runs");
}

#[test]
fn compensations_run_and_are_named() {
    let book = Step::run("book", "book").compensate(Compensation::run("unbook"));
    let flow = Workflow::new("trip").step(book).step(Step::run("pay", "pay"));
    let server = move || Greenroom::new().workflow(flow.clone());
    let case = Case::new("trip")
        .mock_step("book", Mock::output(1))
        .mock_step("book:compensate", Mock::output(2))
        .mock_step("pay", Mock::failure("no money"))
        .expect_error("no money");
    let undone = case.clone().expect_ran(["book:compensate"]);
    assert_eq!(problems_of(&undone, &server), [""; 0]);
    let kept = case.expect_not_ran(["book:compensate"]);
    assert_eq!(problems_of(&kept, &server), ["step book:compensate runs"]);
}

#[test]
fn what_is_not_as_expected_is_named() {
    let no = json!({ "approved": 1 });
    let cases: &[(Case, &str)] = &[
        (case().expect("result.paid"), "result.paid is false; the result is {\"paid\":false}"),
        (case().expect("result"), "result is neither true nor false: {\"paid\":false}"),
        (case().expect("reslt.paid"), "reslt.paid: "),
        (case().expect_ran(["pay"]), "step pay does not run"),
        (case().expect_not_ran(["manager"]), "step manager runs"),
        (case().expect_took(47 * HOUR), "it takes 2days, expected 1day 23h"),
        (case().expect_error("no"), "its status is completed, expected error"),
        (case().expect_status(Status::Cancelled), "its status is completed, expected cancelled"),
        (case().answer("pay", HOUR, &no), "pay never asked for its answer"),
        (refusing().expect_error("closed"), "the error is \"no money\", without \"closed\""),
    ];
    for (case, problem) in cases {
        let problems = problems_of(case, server);
        assert!(problems.iter().any(|it| it.contains(problem)), "{problem}: {problems:?}");
    }
}

#[test]
fn what_would_leave_the_process_fails_by_name() {
    let text = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\n\
                api_key = \"secret:NO_KEY\"\n\
                [agents.a]\nmodel = \"m\"\ninstructions = \"i\"\n\
                [workflows.w]\n[[workflows.w.steps]]\nid = \"call\"\n\
                http = { url = \"https://a.example/x\" }\non_error = \"ignore\"\n\
                [[workflows.w.steps]]\nid = \"run\"\ncommand = { argv = [\"/bin/true\"] }\non_error = \"ignore\"\n\
                [[workflows.w.steps]]\nid = \"think\"\ntype = \"andAgent\"\nagent = \"a\"\n";
    let server = || Greenroom::over(Config::parse(text, "c.toml").unwrap());
    let problems = problems_of(&Case::new("w").expect_error("mock"), server);
    assert_eq!(
        problems,
        [
            "model m would call its provider: mock models.m",
            "step call would call a.example: mock it",
            "step run would run /bin/true: mock it",
        ]
    );
    let answer = ScriptedModel::local([ScriptedAnswer::Text("fine".to_owned())]);
    let mocked = Case::new("w")
        .mock_step("call", Mock::output(1))
        .mock_step("run", Mock::output(2))
        .mock_model("m", Arc::new(answer))
        .expect("result.text == 'fine'");
    assert_eq!(problems_of(&mocked, server), [""; 0]);
}

#[test]
fn an_execution_that_waits_for_ever_is_suspended() {
    let flow = Workflow::new("w").step(Step::map("a", json!(1)).suspend(Suspend::always()));
    let server = move || Greenroom::new().workflow(flow.clone());
    let problems = problems_of(&Case::new("w"), &server);
    assert_eq!(problems, ["its status is suspended, expected completed: a waits for an answer"]);
    let expected = Case::new("w").expect_status(Status::Suspended);
    assert_eq!(problems_of(&expected, &server), [""; 0]);
}

/// Something waits for an answer that never comes, and something else does not.
#[test]
fn what_waits_is_not_the_whole_execution() {
    let asked = || Step::map("ask", json!(1)).suspend(Suspend::always());
    let late = || Block::new("late").step(Step::sleep("sleep", 60 * HOUR));
    let race = Step::race("first", [Block::new("answer").step(asked()), late()]);
    let both = Step::all("both", [Block::new("answer").step(asked()), late()]);
    let (race, both) = (Workflow::new("race").step(race), Workflow::new("both").step(both));
    let server = move || Greenroom::new().workflow(race.clone()).workflow(both.clone());
    let raced = Case::new("race").expect_took(60 * HOUR);
    assert_eq!(problems_of(&raced, &server), [""; 0]);
    let problems = problems_of(&Case::new("both"), &server);
    let waits = "its status is suspended, expected completed: both/answer/ask waits for an answer";
    assert_eq!(problems, [waits]);
}

#[test]
fn what_is_due_at_the_end_of_a_skip_has_happened() {
    let world = server().test().mock_step("expense", "pay", Mock::output(1));
    run(async move {
        let world = world.launch().await.unwrap();
        let run = world.start("expense", &Value::Null).await.unwrap();
        run.settled().await.unwrap();
        assert_eq!(world.waiting().await.unwrap(), ["manager"]);
        world.skip(48 * HOUR).await;
        assert_eq!(run.state().await.unwrap().status, Status::Completed);
        assert_eq!(world.waiting().await.unwrap(), [""; 0]);
        world.end().await;
    });
}

#[test]
fn calls_are_those_of_the_run_without_a_kill() {
    let pay = Mock::output(json!(7));
    let yes = json!({ "approved": true });
    let case = case().mock_step("pay", pay.clone()).answer("manager", HOUR, &yes);
    run(case.crash_everywhere().run(server)).unwrap();
    assert_eq!(pay.calls().len(), 1);
}

#[test]
fn a_world_is_driven_step_by_step() {
    let pay = Mock::with(|call| Ok(json!({ "of": call.input, "attempt": call.attempt })));
    let world = server().test().mock_step("expense", "pay", pay.clone());
    run(async move {
        let world = world.starting_at("2026-03-01T09:00:00Z").launch().await.unwrap();
        let run = world.start("expense", &Value::Null).execution_id("a").await.unwrap();
        run.settled().await.unwrap();
        world.skip(47 * HOUR).await;
        let world = world.restart().await.unwrap();
        let error = world.answer("pay", &json!(1)).await.unwrap_err();
        assert_eq!(error.to_string(), "pay waits for no answer; manager does");
        world.answer("manager", &json!({ "approved": true })).await.unwrap();
        let run = world.run("expense", "a");
        assert_eq!(run.result().await, Ok(json!({ "paid": true })));
        assert_eq!(
            run.state().await.unwrap().header.created_at.to_iso(),
            "2026-03-01T09:00:00.000Z"
        );
        let calls = pay.calls();
        assert_eq!(calls.len(), 1);
        assert_eq!((&*calls[0].name, calls[0].attempt), ("if-approved/paid/pay", 1));
        let lost = world.run("expense", "b").result().await;
        assert!(matches!(lost, Err(RunError::Unknown(_))), "{lost:?}");
    });
}

#[tokio::test]
async fn a_world_needs_virtual_time() {
    let refused = server().test().mock_step("expense", "pay", Mock::output(1)).launch().await;
    let Problems(problems) = refused.unwrap_err();
    assert_eq!(problems, ["a world needs virtual time: launch it within greenroom::testing::run"]);
}
