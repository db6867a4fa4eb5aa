//! Tools of every kind in Rust: equal to those of a file, and refused for the same reasons.

mod approvals;
mod blocking;

use std::time::Duration;

use greenroom_actors::agent::{OnCrash, OnTimeout, Remember};
use serde_json::json;

use super::*;
use crate::builder::{Agent, Block, Command, Http, Step, Suspend, Workflow, http};
use crate::config::{Config, Spot, ToolConfig};
use crate::greenroom::Problems;

/// Definitions that tools of a file refer to.
const DEFINED: &str = "[models.offline]\nprovider = \"rehearsal\"\n\
                       [agents.clerk]\nmodel = \"offline\"\n\
                       [workflows.pay]\nsteps = [{ id = \"a\", map = 1 }]\n";

fn order() -> Value {
    json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } })
}

const ORDER: &str = "parameters = { type = \"object\", required = [\"id\"], properties = { id = { type = \"string\" } } }\n";

/// Returns all of a tool but its place.
fn shown(tool: &ToolConfig) -> String {
    format!("{:?}", ToolConfig { spot: Spot::nowhere(""), ..tool.clone() })
}

fn approval() -> Approval {
    Approval::when("args.id != ''")
        .and_then(|it| it.reason("Pay {{ args.id }}?"))
        .unwrap()
        .to(["role:desk".parse().unwrap()])
        .deadline(Duration::from_secs(3600))
        .on_timeout(OnTimeout::Approve)
        .remember(Remember::Chat)
        .edit()
}

#[test]
fn tools_in_rust_are_those_of_a_file() {
    let post = Http::post("https://a.example/{{ args.id }}")
        .header("X-Key", "Bearer secret:CARGO_PKG_NAME")
        .query("q", json!("args.id"))
        .query("n", json!(1))
        .body(json!({ "id": ["args.id"] }));
    let cat = Command::new("/bin/cat")
        .args(["-", "--id={{ args.id }}"])
        .input(json!("args"))
        .env("KEY", "secret:CARGO_PKG_NAME")
        .cwd("/tmp")
        .memory_bytes_max(1 << 20)
        .output_bytes_max(7);
    let rows = [
        (Tool::workflow("t", "d", "pay"), "kind = \"workflow\"\nworkflow = \"pay\"\n".to_owned()),
        (
            Tool::workflow("t", "d", "pay").parameters(order()).on_crash(OnCrash::Ask),
            format!("kind = \"workflow\"\nworkflow = \"pay\"\non_crash = \"ask\"\n{ORDER}"),
        ),
        (
            Tool::agent("t", "d", "clerk").timeout(Duration::from_secs(2)).concurrency(4),
            "kind = \"agent\"\nagent = \"clerk\"\ntimeout = \"2s\"\nconcurrency = 4\n".to_owned(),
        ),
        (
            Tool::http("t", "d", Http::get("https://a.example")).parameters(order()),
            format!("kind = \"http\"\nurl = \"https://a.example\"\n{ORDER}"),
        ),
        (
            Tool::http("t", "d", post).parameters(order()).approval(approval()),
            format!(
                "kind = \"http\"\nmethod = \"POST\"\nurl = \"https://a.example/{{{{ args.id }}}}\"\n\
                 headers = {{ X-Key = \"Bearer ${{CARGO_PKG_NAME}}\" }}\n\
                 query = {{ n = 1, q = \"args.id\" }}\nbody = {{ id = [\"args.id\"] }}\n{ORDER}\
                 [tools.t.approval]\nwhen = \"args.id != ''\"\nreason = \"Pay {{{{ args.id }}}}?\"\n\
                 to = [\"role:desk\"]\ndeadline = \"1h\"\non_timeout = \"approve\"\n\
                 remember = \"chat\"\nedit = true\n"
            ),
        ),
        (
            Tool::command("t", "d", cat).parameters(order()),
            format!(
                "kind = \"command\"\nargv = [\"/bin/cat\", \"-\", \"--id={{{{ args.id }}}}\"]\n\
                 input = \"args\"\nenv = {{ KEY = \"secret:CARGO_PKG_NAME\" }}\ncwd = \"/tmp\"\n\
                 memory_bytes_max = 1048576\noutput_bytes_max = 7\n{ORDER}"
            ),
        ),
    ];
    let mut seen = Vec::new();
    for (built, lines) in rows {
        let text = format!("{DEFINED}[tools.t]\ndescription = \"d\"\n{lines}");
        let of_file = Config::parse(&text, "c.toml").unwrap();
        let Checked { made: Some(Made::Configured(built)), problems, .. } = built.check() else {
            panic!("not built: {lines}");
        };
        assert_eq!(problems, [], "{lines}");
        assert_eq!(shown(&built), shown(&of_file.tools["t"]));
        seen.push(shown(&built));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 6, "what is compared has all of a tool");
}

fn problems(greenroom: Greenroom) -> Vec<String> {
    greenroom.checked().err().map(|Problems(problems)| problems).unwrap_or_default()
}

fn known() -> Greenroom {
    let config = Config::parse(DEFINED, "c.toml").unwrap();
    let number = Workflow::new("count").input_schema(json!({ "type": "integer" }));
    Greenroom::over(config)
        .agent(Agent::new("desk").model("offline").tools(["t"]))
        .workflow(number.step(Step::map("a", json!(1))))
}

/// Refuses tools `t`, each for these reasons.
#[track_caller]
fn refused<const N: usize>(rows: [(Tool, &[&str]); N]) {
    for (tool, expected) in rows {
        assert_eq!(problems(known().define_tool(tool)), expected);
    }
}

#[test]
fn mistakes_in_tools_are_refused_with_their_place() {
    refused([
        (
            Tool::agent("t", "d", "clrk"),
            &["tool t: agent: agent clrk is not configured; did you mean clerk?"],
        ),
        (
            Tool::agent("t", "d", "desc"),
            &["tool t: agent: agent desc is not configured; did you mean desk?"],
        ),
        (
            Tool::workflow("t", "d", "pya"),
            &["tool t: workflow: workflow pya is not configured; did you mean pay?"],
        ),
        (
            Tool::workflow("t", "d", "count"),
            &[
                "tool t: takes the input of workflow count, but arguments are an object: the schema \
               needs type = \"object\"",
            ],
        ),
        (
            Tool::agent("t", "", "clerk")
                .timeout(Duration::ZERO)
                .concurrency(0)
                .parameters(json!({})),
            &[
                "tool t: description: must not be empty",
                "tool t: parameters: arguments are an object: the schema needs type = \"object\"",
                "tool t: timeout: must be longer than 0ms",
                "tool t: concurrency: must be from 1 to 1000000",
            ],
        ),
    ]);
}

#[test]
fn mistakes_in_http_tools_are_refused_with_their_place() {
    let get = |url: &str| Tool::http("t", "d", Http::get(url)).parameters(order());
    refused([
        (
            Tool::http("t", "d", Http::get("https://a.example")),
            &["tool t: parameters: is missing: it is the JSON Schema of the arguments"],
        ),
        (get("https://a.example/{{ args.id"), &["tool t: url: a `{{` has no `}}`"]),
        (
            get("https://a.example/{{ arg.id }}?k=secret:KEY"),
            &[
                "tool t: url: `secret:KEY` is allowed in keys and headers only",
                "tool t: url: `arg` is not in scope; in scope: args, context, user; did you mean \
                 args?",
            ],
        ),
        (
            Tool::http(
                "t",
                "d",
                Http::get("https://a.example")
                    .header("host", "x")
                    .header("x-a", "secret:GREENROOM_NO_SUCH")
                    .query("q", json!([1]))
                    .body(json!({ "a": ["data"] })),
            )
            .parameters(order()),
            &[
                "tool t: headers.host: is set by the HTTP client; it cannot be configured",
                "tool t: query.q: must be an expression in a string",
                "tool t: body: a GET sends no body; method = \"POST\" does",
                "tool t: body.a.0: `data` is not in scope; in scope: args, context, user; a string \
                 is written \"'data'\"",
            ],
        ),
        (
            Tool::http(
                "t",
                "d",
                Http::get("https://a.example").header("a", "secret:GREENROOM_NO_SUCH"),
            )
            .parameters(order()),
            &["tool t: headers.a: the environment variable GREENROOM_NO_SUCH is not set"],
        ),
    ]);
}

#[test]
fn mistakes_in_commands_and_approvals_are_refused_with_their_place() {
    let run = |command: Command| Tool::command("t", "d", command).parameters(order());
    refused([
        (
            run(Command::new("{{ args.id }}").args(["secret:KEY"])),
            &[
                "tool t: argv.0: the program cannot be a template: data must not select it",
                "tool t: argv.1: arguments are visible to all users of the machine; pass a secret \
                 in `env`",
            ],
        ),
        (
            run(Command::new("cat")
                .args(["{{ data }}"])
                .memory_bytes_max(1)
                .env("TRACEPARENT", "x")),
            &[
                "tool t: memory_bytes_max: must be from 1048576 to 1099511627776",
                "tool t: env.TRACEPARENT: is set by the server; it cannot be configured",
            ],
        ),
        (
            run(Command::new("cat"))
                .approval(Approval::when("arg.id").unwrap().deadline(Duration::ZERO)),
            &[
                "tool t: approval.when: `arg` is not in scope; in scope: args, context, user; did \
                 you mean args?",
                "tool t: approval.deadline: must be longer than 0ms",
            ],
        ),
    ]);
}

#[test]
fn one_tool_has_one_definition() {
    let ask = || Tool::agent("t", "d", "clerk");
    assert_eq!(problems(known().define_tool(ask())), Vec::<String>::new());
    assert_eq!(
        problems(known().define_tool(ask()).define_tool(ask())),
        ["tool t is registered twice"]
    );
    let function = || Tool::function("t", "d", order(), |it, _| async { Ok(it) });
    for both in [
        known().define_tool(ask()).define_tool(function()),
        known().define_tool(function()).define_tool(ask()),
    ] {
        assert_eq!(problems(both), ["tool t is registered twice"]);
    }
    assert_eq!(
        problems(known().define_tool(ask()).approval("tt", Approval::always())),
        ["approval of tool tt: it is not registered; did you mean t?"]
    );
}

#[test]
fn options_of_functions_and_approvals_afterwards() {
    let function = Tool::function("f", "d", order(), |it, _| async { Ok(it) })
        .timeout(Duration::from_secs(1))
        .concurrency(3)
        .on_crash(OnCrash::Tell)
        .approval(approval());
    let config = Config::parse(DEFINED, "c.toml").unwrap();
    let greenroom = Greenroom::over(config)
        .define_tool(function)
        .define_tool(Tool::agent("ask", "d", "clerk"))
        .approval("ask", approval());
    let (config, registered) = greenroom.checked().unwrap();
    let made = &registered.registry.tools["f"];
    assert_eq!((made.timeout, made.on_crash), (Some(Duration::from_secs(1)), OnCrash::Tell));
    assert_eq!(made.permits.as_ref().map(|permits| permits.available_permits()), Some(3));
    let of_function = format!("{:?}", made.approval.as_deref());
    let of_agent = format!("{:?}", config.tools["ask"].approval.as_ref());
    assert_eq!((&of_function, of_function.contains("Pay")), (&of_agent, true));
    // a tool of Rust code stays when the file is read again
    let mut again = Config::parse(DEFINED, "c.toml").unwrap();
    again.keep_choices_of(&config);
    assert_eq!(shown(&again.tools["ask"]), shown(&config.tools["ask"]));
}
