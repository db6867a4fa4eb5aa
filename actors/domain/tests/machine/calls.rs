//! Calls of bodies, and their values.

use greenroom_domain::definition::{
    Body, CommandBody, HttpBody, HttpMethod, Mapping, StepDefinition,
};
use greenroom_domain::effort::Budget;
use greenroom_domain::expression::Closures;
use greenroom_domain::machine::{Callee, MachineLimits, Moment};
use greenroom_domain::plan::Plan;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, body, map, workflow};
use crate::machine::world::{Setting, World};

fn post(url: &str) -> HttpBody {
    HttpBody {
        method: HttpMethod::Post,
        url: url.to_owned(),
        headers: [("x-user".to_owned(), "{{ user.id }} secret:KEY".to_owned())].into(),
        query: [("first".to_owned(), Mapping(json!("steps.first")))].into(),
        body: None,
    }
}

fn world(step: StepDefinition) -> World {
    Setting { input: json!({ "id": "a/b" }), ..Setting::default() }
        .start(workflow(vec![map("first", 7), step]))
}

/// Returns the call that the step at a path makes now.
pub(crate) fn call_at(world: &World, path: &str) -> Option<Result<Callee, String>> {
    let limits = MachineLimits::default();
    let moment = Moment {
        now: world.now,
        new_id: &|| unreachable!("no child is started"),
        missing: &|_| None,
        limits: &limits,
        budget: &Budget::turn(),
        closures: &Closures::default,
    };
    let call = world.machine.call(path, &moment);
    call.map(|call| call.map(|call| call.callee).map_err(|failure| failure.message))
}

fn called(world: &World) -> Option<Result<Callee, String>> {
    call_at(world, "a")
}

#[test]
fn a_call_has_the_values_of_its_scope() {
    let url = "https://a.example/{{ input.id }}?e={{ execution.workflowId }}";
    let world = world(body("a", Body::Http(post(url))));
    assert_eq!(world.running(), ["a #1"]);
    let Some(Ok(Callee::Http(request))) = called(&world) else { panic!("no call") };
    assert_eq!(request.url.as_str(), "https://a.example/a%2Fb?e=order&first=7");
    assert_eq!(request.body.as_deref(), Some("7"), "the step's data");
    let header = request.headers[0].1.resolved(|name| Ok::<_, ()>(format!("<{name}>")));
    assert_eq!(header.as_deref(), Ok("ann <KEY>"));
}

#[test]
fn programs_and_tools_get_data_by_default() {
    let argv = ["jq", "--x={{ input.id }}"].map(str::to_owned).to_vec();
    let run = CommandBody { argv, ..CommandBody::default() };
    for (input, expected) in [(None, json!(7)), (Some(Mapping(json!(["data"]))), json!([7]))] {
        let run = CommandBody { input: input.clone(), ..run.clone() };
        let Some(Ok(Callee::Command(run))) = called(&world(body("a", Body::Command(run)))) else {
            panic!("no run")
        };
        assert_eq!((&*run.program, &run.arguments[..]), ("jq", &["--x=a/b".to_owned()][..]));
        assert_eq!(*run.input, expected);
        let tool = Body::Tool { tool: "t".to_owned(), args: input };
        let Some(Ok(Callee::Tool { tool, args, .. })) = called(&world(body("a", tool))) else {
            panic!("no call")
        };
        assert_eq!((&*tool, args), ("t", expected));
    }
}

#[test]
fn a_call_that_cannot_be_made_has_a_reason() {
    let http = |url: &str| Body::Http(post(url));
    let argument = |text: &str| {
        let argv = vec!["jq".to_owned(), text.to_owned()];
        Body::Command(CommandBody { argv, ..CommandBody::default() })
    };
    for (call, expected) in [
        (http("https://a.example/{{ input.none }}"), "url: undefined value in `input.none`"),
        (http("https://{{ input.id }}/"), "url: `input.id` is not a host"),
        (argument("{{ input.none }}"), "argv[1]: "),
        (argument("{{ 0 - data }}"), "argv[1]: begins with `-`"),
        (
            Body::Tool { tool: "t".to_owned(), args: Some(Mapping(json!({ "a": "data.b.c" }))) },
            "args: ",
        ),
    ] {
        let Some(Err(why)) = called(&world(body("a", call))) else { panic!("{expected}") };
        assert!(why.starts_with(expected), "{why}");
    }
}

#[test]
fn a_definition_of_an_impossible_call_is_refused() {
    let command = |argv: &[&str]| {
        let argv = argv.iter().map(|&it| it.to_owned()).collect();
        Body::Command(CommandBody { argv, ..CommandBody::default() })
    };
    let get = Body::Http(HttpBody {
        method: HttpMethod::Get,
        body: Some(Mapping(Value::from(1))),
        ..post("https://a.example")
    });
    for (call, place) in [
        (get, "steps.a.http.body"),
        (Body::Http(post("ftp://a.example")), "steps.a.http.url"),
        (command(&[]), "steps.a.command.argv"),
        (command(&[""]), "steps.a.command.argv"),
        (command(&["{{ data }}"]), "steps.a.command.argv.0"),
        (command(&["a", "secret:KEY"]), "steps.a.command.argv.1"),
        (command(&["a", "{{"]), "steps.a.command.argv.1"),
    ] {
        let problems = Plan::compile(workflow(vec![body("a", call)])).unwrap_err();
        assert_eq!(problems[0].place.join("."), place, "{problems:?}");
    }
}

#[test]
fn calls_have_retries_and_on_error() {
    let step = body("a", Body::Http(post("https://a.example"))).tries(2);
    let mut world = world(step);
    assert_eq!(world.fail("a", "HTTP 500").len(), 1);
    world.due("a");
    assert_eq!(world.running(), ["a #2"]);
    assert_eq!(world.finish("a", 1).last().unwrap(), "completed 1");
}
