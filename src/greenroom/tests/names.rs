//! Names of every kind: unknown, twice and invalid ones, all refused before the start.

use super::*;
use crate::builder::{Compensation, Route, Tool, run};
use crate::step::StepContext;

/// Everything that the rows refer to.
fn known() -> Greenroom {
    with_tool(base(), "lookup", json!({ "type": "object" }))
        .function("charge", |_| async { Ok(json!(1).into()) })
        .agent(Agent::new("desk").model("offline"))
        .workflow(Workflow::new("pay").step(Step::map("a", json!(1))))
}

fn w(step: Step) -> Greenroom {
    known().workflow(Workflow::new("w").step(step))
}

fn desk(agent: Agent) -> Greenroom {
    known().agent(agent)
}

#[test]
fn unknown_names_in_steps_are_refused_with_the_nearest_one() {
    let paid = || Step::run("paid", "charge");
    let inside = |step: Step| Block::new("inside").step(step);
    let rows = [
        (
            w(Step::run("s", "chrage")),
            "workflow w: steps.s.run: function chrage is not registered; did you mean charge?",
        ),
        (
            w(Step::tap("s", run("chrage"))),
            "workflow w: steps.s.run: function chrage is not registered; did you mean charge?",
        ),
        (
            w(Step::then("s", tool("lokup"))),
            "workflow w: steps.s.tool: tool lokup is not configured; did you mean lookup?",
        ),
        (
            w(Step::then("s", tool("ask_user"))),
            "workflow w: steps.s.tool: ask_user is for agents; a step asks people with `suspend`",
        ),
        (
            w(Step::agent("s", "dsek")),
            "workflow w: steps.s.agent: agent dsek is not configured; did you mean desk?",
        ),
        (
            w(Step::workflow("s", "pya")),
            "workflow w: steps.s.workflow: workflow pya is not configured; did you mean pay?",
        ),
        (
            w(paid().compensate(Compensation::run("chrage"))),
            "workflow w: steps.paid.compensate.run: function chrage is not registered; \
             did you mean charge?",
        ),
        (
            w(paid().compensate(Compensation::workflow("pya"))),
            "workflow w: steps.paid.compensate.workflow: workflow pya is not configured; \
             did you mean pay?",
        ),
        (
            w(paid().compensate(Compensation::new(tool("lokup")))),
            "workflow w: steps.paid.compensate.tool: tool lokup is not configured; \
             did you mean lookup?",
        ),
        (
            w(Step::when("if", "data", inside(Step::run("s", "chrage")))),
            "workflow w: steps.s.run: function chrage is not registered; did you mean charge?",
        ),
        (
            w(Step::for_each("each", json!("[1]"), inside(Step::agent("s", "dsek")))),
            "workflow w: steps.s.agent: agent dsek is not configured; did you mean desk?",
        ),
    ];
    for (greenroom, expected) in rows {
        assert_eq!(problems(greenroom), [expected]);
    }
}

#[test]
fn unknown_names_elsewhere_are_refused_with_the_nearest_one() {
    let clerk = || Agent::new("clerk").model("offline");
    let rows = [
        (
            desk(Agent::new("clerk").model("ofline")),
            "agent clerk: model ofline is not configured; did you mean offline?",
        ),
        (
            desk(Agent::new("clerk").model("gpt-9")),
            "agent clerk: model gpt-9 is not configured; configured: offline",
        ),
        (
            desk(clerk().tools(["lokup"])),
            "agent clerk: tool lokup is not configured; did you mean lookup?",
        ),
        (
            desk(clerk().tools(["ask_usr"])),
            "agent clerk: tool ask_usr is not configured; did you mean ask_user?",
        ),
        (
            desk(clerk().sub_agents(["dsek"])),
            "agent clerk: agent dsek is not configured; did you mean desk?",
        ),
        (
            known().define_tool(Tool::agent("t", "d", "dsek")),
            "tool t: agent: agent dsek is not configured; did you mean desk?",
        ),
        (
            known().define_tool(Tool::workflow("t", "d", "pya")),
            "tool t: workflow: workflow pya is not configured; did you mean pay?",
        ),
        (
            known().approval("lokup", Approval::always()),
            "approval of tool lokup: it is not registered; did you mean lookup?",
        ),
        (
            known().route(Route::workflow("/a", "pya")),
            "route /a: workflow: workflow pya is not configured; did you mean pay?",
        ),
        (
            known().route(Route::agent("/a", "dsek")),
            "route /a: agent: agent dsek is not configured; did you mean desk?",
        ),
    ];
    for (greenroom, expected) in rows {
        assert_eq!(problems(greenroom), [expected]);
    }
    assert_eq!(problems(desk(clerk().tools(["ask_user", "lookup"]))), Vec::<String>::new());
}

#[test]
fn names_that_are_taken_are_refused() {
    async fn one(_: u32, _: StepContext) -> Result<u32, crate::step::StepError> {
        Ok(1)
    }
    async fn two(_: u32, _: StepContext) -> Result<u32, crate::step::StepError> {
        Ok(2)
    }
    let model = || Arc::new(MockModel::new(MockConfig::default()).unwrap());
    let function = || known().function("charge", |_| async { Ok(json!(2).into()) });
    let carried = "function charge is registered twice; a step with Step::call registers its \
                   function by the id of the step";
    let rows = [
        (function(), "function charge is registered twice"),
        (known().call("charge", one), "function charge is registered twice"),
        (
            known().blocking_function("charge", |_| Ok(json!(2).into())),
            "function charge is registered twice",
        ),
        (w(Step::call("charge", one)), carried),
        (
            base()
                .workflow(Workflow::new("v").step(Step::call("charge", one)))
                .workflow(Workflow::new("w").step(Step::call("charge", two))),
            carried,
        ),
        (known().model("offline", model()), "model offline is registered twice"),
        (known().agent(Agent::new("desk").model("offline")), "agent desk is registered twice"),
        (
            known().workflow(Workflow::new("pay").step(Step::map("a", json!(1)))),
            "workflow pay is registered twice",
        ),
        (
            with_tool(known(), "lookup", json!({ "type": "object" })),
            "tool lookup is registered twice",
        ),
        (
            known().define_tool(Tool::agent("lookup", "d", "desk")),
            "tool lookup is registered twice",
        ),
        (known().data(1_u8).data(2_u8), "data of type u8 is registered twice"),
        (
            known().route(Route::agent("/a", "desk")).route(Route::workflow("/a", "pay")),
            "route /a: POST /a would be answered by POST /a",
        ),
        (
            w(Step::map("a", json!(1))).workflow(
                Workflow::new("v").step(Step::map("a", json!(1))).step(Step::map("a", json!(2))),
            ),
            "workflow v: steps.a.id: step id `a` is used more than once",
        ),
    ];
    for (greenroom, expected) in rows {
        assert_eq!(problems(greenroom), [expected]);
    }
}

#[test]
fn names_of_a_wrong_form_are_refused() {
    let id = "the id must be a letter or digit, then letters, digits, `.`, `_` or `-`";
    let rows = [
        (
            known().function("", |_| async { Ok(json!(1).into()) }),
            "a function has no name: steps `run` it by one".to_owned(),
        ),
        (known().agent(Agent::new("a b").model("offline")), format!("agent a b: {id}")),
        (known().agent(Agent::new("").model("offline")), format!("agent : {id}")),
        (
            with_tool(known(), "a b", json!({ "type": "object" })),
            "tool a b: must be 1 to 64 of the characters A-Z a-z 0-9 _ . -".to_owned(),
        ),
        (
            known().workflow(Workflow::new("a b").step(Step::map("a", json!(1)))),
            "workflow a b: the id of a workflow must be letters".to_owned(),
        ),
        (
            known().workflow(Workflow::new("v").step(Step::map("a b", json!(1)))),
            "workflow v: steps.a b.id: ".to_owned(),
        ),
    ];
    for (greenroom, expected) in rows {
        let found = problems(greenroom);
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{expected}: {found:?}");
    }
}
