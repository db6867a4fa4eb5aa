//! Routes in Rust: equal to those of a file, and refused for the same reasons.

use super::*;
use crate::app::openapi;
use crate::builder::{AgentAnswer, Step, Workflow, WorkflowAnswer};
use crate::config::Config;
use crate::greenroom::Problems;

const DEFINED: &str = "[models.offline]\nprovider = \"rehearsal\"\n\
                       [agents.clerk]\nmodel = \"offline\"\n\
                       [workflows.pay]\nsteps = [{ id = \"a\", map = 1 }]\n";

const ROUTES: &str = "[[routes]]\npath = \"/pay\"\nworkflow = \"pay\"\n\
                      [[routes]]\npath = \"/hook\"\nworkflow = \"pay\"\nbody = \"input\"\n\
                      answer = \"stream\"\nsummary = \"Takes a payment\"\n\
                      [[routes]]\npath = \"/ask\"\nagent = \"clerk\"\n\
                      [[routes]]\npath = \"/chat\"\nagent = \"clerk\"\nanswer = \"chat\"\n\
                      [[routes]]\npath = \"/manifest\"\nstatic = \"Cargo.toml\"\n\
                      [[routes]]\npath = \"/code/*\"\nstatic = \"src\"\n";

fn known() -> Greenroom {
    Greenroom::over(Config::parse(DEFINED, "c.toml").unwrap())
}

fn whole() -> Greenroom {
    known()
        .route(Route::workflow("/pay", "pay"))
        .route(
            Route::workflow("/hook", "pay")
                .takes_input()
                .answer(WorkflowAnswer::Stream)
                .summary("Takes a payment"),
        )
        .route(Route::agent("/ask", "clerk"))
        .route(Route::agent("/chat", "clerk").answer(AgentAnswer::Chat))
        .route(Route::files("/manifest", "Cargo.toml"))
        .route(Route::files("/code/*", "src"))
}

fn problems(greenroom: Greenroom) -> Vec<String> {
    greenroom.checked().err().map(|Problems(problems)| problems).unwrap_or_default()
}

#[test]
fn routes_in_rust_are_those_of_a_file() {
    let of_file = Config::parse(&format!("{DEFINED}{ROUTES}"), "c.toml").unwrap();
    let (built, _) = whole().checked().unwrap();
    let shown = |config: &Config| -> Vec<_> {
        let routes = config.routes.iter();
        routes.map(|it| (it.path.clone(), it.target.clone(), it.summary.clone())).collect()
    };
    assert_eq!(shown(&built), shown(&of_file));
    let paths = |config: &Config| openapi(config).unwrap()["paths"].clone();
    assert_eq!(paths(&built), paths(&of_file));
    assert!(paths(&built).get("/hook").is_some());
    // they stay when the file is read again
    let mut again = Config::parse(DEFINED, "c.toml").unwrap();
    again.keep_choices_of(&built);
    assert_eq!(shown(&again), shown(&built));
}

#[test]
fn mistakes_in_routes_are_refused_with_their_place() {
    let rows: [(Route, &[&str]); 13] = [
        (
            Route::workflow("/a", "pya"),
            &["route /a: workflow: workflow pya is not configured; did you mean pay?"],
        ),
        (
            Route::agent("/a", "clrk"),
            &["route /a: agent: agent clrk is not configured; did you mean clerk?"],
        ),
        (Route::workflow("a", "pay"), &["route a: path: must start with `/`"]),
        (
            Route::workflow("/a/:id", "pay"),
            &["route /a/:id: path: must not have `:name` segments: no target reads them"],
        ),
        (
            Route::agent("/a/*", "clerk"),
            &["route /a/*: path: may end in `/*` only if `static` is a folder"],
        ),
        (Route::files("/a", "src"), &["route /a: path: must end in `/*`: `static` is a folder"]),
        (
            Route::files("/a/*", "Cargo.toml"),
            &["route /a/*: path: ends in `/*`, but `static` is a file"],
        ),
        (Route::files("/a", "nope"), &["route /a: static: there is no file \"nope\""]),
        (Route::files("/a/*", "nope"), &["route /a/*: static: there is no folder \"nope\""]),
        (Route::agent("/a", "clerk").summary(""), &["route /a: summary: must not be empty"]),
        (
            Route::workflow("/a", "pay").answer(AgentAnswer::Chat),
            &["route /a: answer: is one of an agent"],
        ),
        (
            Route::agent("/a", "clerk").answer(WorkflowAnswer::Stream).takes_input(),
            &[
                "route /a: answer: is one of a workflow",
                "route /a: takes_input: only a workflow has an input",
            ],
        ),
        (
            Route::workflow("/workflows/pay/execute", "pay"),
            &[
                "route /workflows/pay/execute: POST /workflows/pay/execute would be answered by POST \
               /workflows/:id/execute",
            ],
        ),
    ];
    for (route, expected) in rows {
        assert_eq!(problems(known().route(route)), expected);
    }
    let twice = whole().route(Route::agent("/pay", "clerk"));
    assert_eq!(problems(twice), ["route /pay: POST /pay would be answered by POST /pay"]);
    let handler = whole().routes(|routes| {
        routes.post("/pay", || async { "here" });
    });
    assert_eq!(problems(handler), ["routes: POST /pay would be answered by POST /pay"]);
    let later = known().route(Route::workflow("/a", "late"));
    let late = Workflow::new("late").step(Step::map("a", serde_json::json!(1)));
    assert_eq!(problems(later.workflow(late)), Vec::<String>::new());
}

#[test]
fn no_route_shows_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    std::fs::write(&path, DEFINED).unwrap();
    let greenroom = Greenroom::from_config(&path)
        .unwrap()
        .route(Route::files("/a/*", directory.path()))
        .route(Route::files("/b", &path));
    let found = problems(greenroom);
    let expected = [
        "route /a/*: static: contains the configuration, which would become public",
        "route /b: static: is the configuration, which would become public",
    ];
    assert_eq!(found, expected);
}
