//! Routes that lead to workflows, agents and files.

use std::path::Path;

use super::refusals::refused;
use crate::config::{AgentAnswer, Config, RouteTarget, WorkflowAnswer, WorkflowBody};

const BASE: &str = "[models.m]\nprovider = \"mock\"\n[agents.helper]\nmodel = \"m\"\n\
                    [workflows.order]\nsteps = [{ id = \"a\", map = 1 }]\n";

/// Loads a file from a folder with a page and a folder of pages.
fn problems_of(routes: &str) -> Result<Config, Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(at("site/css")).unwrap();
    std::fs::write(at("page.html"), "<p>").unwrap();
    std::fs::write(at("c.toml"), format!("{BASE}{routes}")).unwrap();
    let folder = format!("{}/", directory.path().display());
    Config::load(at("c.toml"))
        .map_err(|problems| problems.iter().map(|it| it.to_string().replace(&folder, "")).collect())
}

#[test]
fn a_route_leads_to_a_workflow_an_agent_or_files() {
    let text = "[[routes]]\npath = \"/orders\"\nworkflow = \"order\"\n\
                [[routes]]\nmethod = \"POST\"\npath = \"/hooks/order\"\nworkflow = \"order\"\n\
                answer = \"stream\"\nbody = \"input\"\nsummary = \"Orders of others\"\n\
                [[routes]]\npath = \"/ask\"\nagent = \"helper\"\n\
                [[routes]]\npath = \"/ask/object\"\nagent = \"helper\"\nanswer = \
                \"stream-object\"\n\
                [[routes]]\nmethod = \"GET\"\npath = \"/page\"\nstatic = \"page.html\"\n\
                [[routes]]\npath = \"/site/*\"\nstatic = \"site\"\n";
    let config = problems_of(text).unwrap();
    let workflow = |answer, body| RouteTarget::Workflow { id: "order".to_owned(), answer, body };
    let agent = |answer| RouteTarget::Agent { id: "helper".to_owned(), answer };
    let expected = [
        ("/orders", Some(workflow(WorkflowAnswer::Result, WorkflowBody::Request))),
        ("/hooks/order", Some(workflow(WorkflowAnswer::Stream, WorkflowBody::Input))),
        ("/ask", Some(agent(AgentAnswer::Text))),
        ("/ask/object", Some(agent(AgentAnswer::StreamObject))),
        ("/page", None),
        ("/site/*", None),
    ];
    assert_eq!(config.routes.len(), expected.len());
    for (route, (path, target)) in config.routes.iter().zip(expected) {
        assert_eq!(route.path, path);
        let is_file = |path: &Path| path.ends_with("page.html");
        match (&route.target, target) {
            (target, Some(expected)) => assert_eq!(*target, expected),
            (RouteTarget::File(file), None) => assert!(is_file(file) && path == "/page"),
            (RouteTarget::Folder(folder), None) => {
                assert!(folder.ends_with("site") && path == "/site/*");
            }
            (other, None) => panic!("{path} leads to {other:?}"),
        }
    }
    assert_eq!(config.routes[1].summary.as_deref(), Some("Orders of others"));
}

#[test]
fn missing_and_private_files_are_refused() {
    let rows = [
        (
            "path = \"/a\"\nstatic = \"gone.html\"",
            "routes[0].static: there is no file \"gone.html\" relative to this file",
        ),
        (
            "path = \"/a/*\"\nstatic = \"gone\"",
            "routes[0].static: there is no folder \"gone\" relative to this file",
        ),
        (
            "path = \"/a\"\nstatic = \"site\"",
            "routes[0].path: must end in `/*`: `static` is a folder",
        ),
        (
            "path = \"/a/*\"\nstatic = \"page.html\"",
            "routes[0].path: ends in `/*`, but `static` is a file",
        ),
        (
            "path = \"/a/*\"\nstatic = \".\"",
            "routes[0].static: contains the configuration, which would become public",
        ),
        (
            "path = \"/a/*\"\nstatic = \"site/..\"",
            "routes[0].static: contains the configuration, which would become public",
        ),
        (
            "path = \"/a\"\nstatic = \"site/../c.toml\"",
            "routes[0].static: is the configuration, which would become public",
        ),
    ];
    for (route, expected) in rows {
        let problems = problems_of(&format!("[[routes]]\n{route}\n")).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].ends_with(expected), "{problems:?}");
    }
}

#[test]
fn mistakes_in_routes() {
    refused(&[
        (
            "[[routes]]\npath = \"/a\"\n",
            &["c.toml:1:1: routes[0]: needs one of `workflow`, `agent`, `static`"],
        ),
        (
            "[[routes]]\npath = \"/a\"\nworkflow = \"w\"\nagent = \"a\"\n",
            &["c.toml:4:1: routes[0].agent: cannot be combined with `workflow`; remove one of \
             them"],
        ),
        (
            "[[routes]]\nworkflow = \"ordr\"\n[workflows.order]\nsteps = [{ id = \"a\", map = 1 \
             }]\n",
            &[
                "c.toml:1:1: routes[0]: key `path` is missing",
                "c.toml:2:12: routes[0].workflow: workflow ordr is not configured; did you mean \
                 order?",
            ],
        ),
        (
            "[[routes]]\npath = \"/a\"\nagent = \"helpr\"\n[agents.helper]\nmodel = \"m\"\n\
             [models.m]\nprovider = \"mock\"\n",
            &["c.toml:3:9: routes[0].agent: agent helpr is not configured; did you mean helper?"],
        ),
        (
            "[[routes]]\nmethod = \"GET\"\npath = \"/a/:id\"\nworkflow = \"w\"\nanswer = \
             \"strem\"\n\
             body = \"raw\"\nsumary = \"s\"\n[workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n",
            &[
                "c.toml:2:10: routes[0].method: must be \"POST\", as `workflow` needs it",
                "c.toml:5:10: routes[0].answer: must be one of result, stream; did you mean \
                 stream?",
                "c.toml:6:8: routes[0].body: must be one of request, input",
                "c.toml:7:1: routes[0].sumary: unknown key; did you mean summary?",
            ],
        ),
        (
            "[[routes]]\npath = \"/a/:id\"\nworkflow = \"w\"\n[[routes]]\npath = \"/b/*\"\n\
             workflow = \"w\"\n[workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n",
            &[
                "c.toml:2:8: routes[0].path: must not have `:name` segments: no target reads them",
                "c.toml:5:8: routes[1].path: may end in `/*` only if `static` is a folder",
            ],
        ),
        (
            "[[routes]]\npath = \"a/b\"\nworkflow = \"w\"\n[workflows.w]\n\
             steps = [{ id = \"a\", map = 1 }]\n",
            &["c.toml:2:8: routes[0].path: must start with `/`"],
        ),
        (
            "[[routes]]\npath = \"/a\"\nagent = \"a\"\nbody = \"input\"\n[agents.a]\nmodel = \
             \"m\"\n\
             [models.m]\nprovider = \"mock\"\n",
            &["c.toml:4:1: routes[0].body: unknown key"],
        ),
    ]);
}
