//! `[tools.*]`: values and refusals.

use std::time::Duration;

use serde_json::json;

use super::problems_of;
use super::refusals::refused;
use crate::config::{Config, ToolKind};

const AGENT: &str = "[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\n";

/// Returns an HTTP tool with these lines from line 5.
fn http(lines: &str) -> String {
    let schema = "{ type = \"object\" }";
    format!("[tools.t]\nkind = \"http\"\ndescription = \"d\"\nparameters = {schema}\n{lines}\n")
}

#[test]
fn all_keys_of_a_tool_are_read() {
    let config = Config::parse(
        &format!(
            "{AGENT}[tools.\"ask.it\"]\nkind = \"agent\"\nagent = \"a\"\ndescription = \"d\"\n\
             parameters = {{ type = \"object\", required = [\"prompt\"] }}\n\
             timeout = \"2s\"\nconcurrency = 4\napproval = false\n"
        ),
        "c.toml",
    )
    .unwrap();
    let tool = &config.tools["ask.it"];
    assert!(matches!(&tool.kind, ToolKind::Agent(id) if id == "a"));
    let parameters = json!({ "type": "object", "required": ["prompt"] });
    assert_eq!(tool.parameters.as_ref(), Some(&parameters));
    assert_eq!((tool.timeout, tool.concurrency), (Some(Duration::from_secs(2)), Some(4)));
}

#[test]
fn secrets_of_an_http_tool_are_environment_variables() {
    let text = http(
        "url = \"https://a.example/{{ args.x }}\"\nmethod = \"POST\"\n\
         headers = { authorization = \"Bearer ${CARGO_MANIFEST_DIR}\", x-a = \"{{ user.id }}\" }\n\
         query = { a = \"args.a\", b = 1 }\nbody = { c = \"args.c\" }",
    );
    let config = Config::parse(&text, "c.toml").unwrap();
    let ToolKind::Http(tool) = &config.tools["t"].kind else { panic!("{config:?}") };
    assert_eq!((tool.headers.len(), tool.query.len()), (2, 2));
    assert_eq!(tool.secrets().collect::<Vec<_>>(), ["CARGO_MANIFEST_DIR"]);
    let shown = format!("{config:?}");
    assert!(!shown.contains(env!("CARGO_MANIFEST_DIR")), "{shown}");
}

#[test]
fn mistakes_in_tools() {
    let long = "x".repeat(65);
    let named = |name: &str| {
        format!("{AGENT}[tools.{name:?}]\nkind = \"agent\"\nagent = \"a\"\ndescription = \"d\"\n")
    };
    let charset = "must be 1 to 64 of the characters A-Z a-z 0-9 _ . -";
    for (name, shown, problem) in [
        ("a b", "\"a b\"", charset),
        ("é", "\"é\"", charset),
        ("", "\"\"", charset),
        (&long, &long, charset),
        ("delegate_task", "delegate_task", "delegate_task is reserved for agents with sub-agents"),
    ] {
        refused(&[(&named(name), &[&format!("c.toml:5:1: tools.{shown}: {problem}")])]);
    }
    refused(&[
        (
            "[tools.a]\n[tools.b]\nkind = \"comand\"\n[tools.c]\nkind = \"command\"\n\
             [tools.d]\nkind = \"mcp\"\ndescription = \"\"\n[tools.e]\nkind = \"htp\"\n\
             description = \"d\"\n",
            &[
                "c.toml:1:1: tools.a: key `description` is missing",
                "c.toml:1:1: tools.a: key `kind` is missing",
                "c.toml:2:1: tools.b: key `description` is missing",
                "c.toml:3:8: tools.b.kind: unknown kind \"comand\"; did you mean command?",
                "c.toml:4:1: tools.c: key `description` is missing",
                "c.toml:4:1: tools.c: key `parameters` is missing",
                "c.toml:4:1: tools.c: key `argv` is missing",
                "c.toml:7:8: tools.d.kind: tools of MCP servers need no definition: [mcp.NAME] brings all of \
                 them",
                "c.toml:8:15: tools.d.description: must not be empty",
                "c.toml:10:8: tools.e.kind: unknown kind \"htp\"; did you mean http?",
            ],
        ),
        (
            "[tools.a]\nkind = \"workflow\"\nworkflow = \"w\"\nagent = \"b\"\n\
             description = \"d\"\nparameters = { type = \"array\" }\ntimeout = \"0s\"\n\
             concurrency = 0\napproval = 1\non_crash = \"retry\"\n",
            &[
                "c.toml:3:12: tools.a.workflow: workflow w is not configured",
                "c.toml:4:1: tools.a.agent: unknown key",
                "c.toml:6:14: tools.a.parameters: arguments are an object: the schema needs \
                 type = \"object\"",
                "c.toml:7:11: tools.a.timeout: must be longer than 0ms",
                "c.toml:8:15: tools.a.concurrency: must be from 1 to 1000000",
                "c.toml:9:12: tools.a.approval: must be true, false or { when = ..., reason = ..., \
                 to = ... }",
                "c.toml:10:12: tools.a.on_crash: must be one of repeat, tell, ask",
            ],
        ),
        (
            "[tools.a]\nkind = \"workflow\"\nworkflow = \"w\"\ndescription = \"d\"\n\
             [workflows.w]\ninput_schema = { type = \"integer\" }\n\
             steps = [{ id = \"s\", map = 1 }]\n",
            &["c.toml:1:1: tools.a: takes the input of workflow w, but arguments are an object: \
               the schema needs type = \"object\""],
        ),
    ]);
}

#[test]
fn mistakes_in_http_tools() {
    let url = "url = \"https://a.example\"";
    refused(&[
        (
            "[tools.t]\nkind = \"http\"\ndescription = \"d\"\n",
            &[
                "c.toml:1:1: tools.t: key `parameters` is missing",
                "c.toml:1:1: tools.t: key `url` is missing",
            ],
        ),
        (
            &http("url = \"https://a.example/{{ args.id\"\nmethod = \"post\"\nbody = 1"),
            &[
                "c.toml:5:7: tools.t.url: a `{{` has no `}}`",
                "c.toml:6:10: tools.t.method: must be one of GET, POST, PUT, PATCH, DELETE; did \
                 you mean POST?",
            ],
        ),
        (
            &http(&format!("{url}\nbody = 1\nquery = {{ a = \"(\", b = [1] }}")),
            &[
                "c.toml:6:8: tools.t.body: a GET sends no body; method = \"POST\" does",
                "c.toml:7:15: tools.t.query.a: syntax error: unexpected end of input, expected \
                 expression in `(`",
                "c.toml:7:24: tools.t.query.b: must be an expression in a string",
            ],
        ),
        (
            &http(&format!(
                "{url}\nheaders = {{ \"a b\" = \"x\", host = \"x\", a = 1, b = \"{{{{\", \
                 c = \"secret:GREENROOM_NO_SUCH\" }}"
            )),
            &[
                "c.toml:6:21: tools.t.headers.\"a b\": is not a valid header name",
                "c.toml:6:33: tools.t.headers.host: is set by the HTTP client; it cannot be \
                 configured",
                "c.toml:6:42: tools.t.headers.a: must be a template in a string",
                "c.toml:6:49: tools.t.headers.b: syntax error: unexpected end of input, expected \
                 expression in `{{`",
                "c.toml:6:59: tools.t.headers.c: the environment variable GREENROOM_NO_SUCH is \
                 not set",
            ],
        ),
        (
            &http(
                "url = \"https://a.example/{{ input.x }}\"\nmethod = \"PUT\"\n\
                 headers = { a = \"{{ data }}\" }\nquery = { q = \"item\" }\nbody = [\"steps.a\"]",
            ),
            &[
                "c.toml:5:7: tools.t.url: `input` is not in scope; in scope: args, context, user",
                "c.toml:7:17: tools.t.headers.a: `data` is not in scope; in scope: args, context, \
                 user",
                "c.toml:8:15: tools.t.query.q: `item` is not in scope; in scope: args, context, \
                 user; a string is written \"'item'\"",
                "c.toml:9:9: tools.t.body[0]: `steps` is not in scope; in scope: args, context, \
                 user",
            ],
        ),
        (
            &http("url = \"https://a.example/?key=secret:KEY\""),
            &["c.toml:5:7: tools.t.url: `secret:KEY` is allowed in keys and headers only"],
        ),
    ]);
}

/// Returns a command tool with these lines from line 5.
fn command(lines: &str) -> String {
    let schema = "{ type = \"object\" }";
    format!("[tools.t]\nkind = \"command\"\ndescription = \"d\"\nparameters = {schema}\n{lines}\n")
}

#[test]
fn limits_of_a_command_tool_are_read() {
    let text = command(
        "argv = [\"/bin/cat\", \"-\", \"--x={{ args.x }}\"]\ninput = \"args\"\n\
         env = { KEY = \"k:secret:CARGO_PKG_NAME\" }\ncwd = \"/tmp\"\n\
         memory_bytes_max = 1048576\noutput_bytes_max = 7",
    );
    let config = Config::parse(&text, "c.toml").unwrap();
    let ToolKind::Command(call) = &config.tools["t"].kind else { panic!("{config:?}") };
    assert_eq!(
        (&*call.program, call.arguments.len(), call.cwd.as_deref()),
        ("/bin/cat", 2, Some("/tmp"))
    );
    assert_eq!((call.memory_bytes_max, call.output_bytes_max), (Some(1_048_576), Some(7)));
    assert_eq!(call.secrets().collect::<Vec<_>>(), ["CARGO_PKG_NAME"]);
}

#[test]
fn mistakes_in_programs() {
    refused(&[
        (&command("argv = []"), &["c.toml:5:8: tools.t.argv: must name a program"]),
        (&command("argv = [1]"), &["c.toml:5:9: tools.t.argv[0]: must be a string"]),
        (
            &command("argv = [\"{{ args.a }}\", \"secret:KEY\", \"{{ (\"]"),
            &[
                "c.toml:5:9: tools.t.argv[0]: the program cannot be a template: data must not \
                 select it",
                "c.toml:5:25: tools.t.argv[1]: arguments are visible to all users of the machine; \
                 pass a secret in `env`",
                "c.toml:5:39: tools.t.argv[2]: syntax error: unexpected end of input, expected \
                 expression in `{{ (`",
            ],
        ),
        (
            &command(
                "argv = [\"a\", \"{{ data }}\"]\ninput = \"steps.a\"\n\
                 env = { A = \"{{ item }}\", B = \"secret:GREENROOM_NO_SUCH\" }",
            ),
            &[
                "c.toml:5:14: tools.t.argv[1]: `data` is not in scope; in scope: args, context, \
                 user",
                "c.toml:6:9: tools.t.input: `steps` is not in scope; in scope: args, context, user",
                "c.toml:7:13: tools.t.env.A: `item` is not in scope; in scope: args, context, user",
                "c.toml:7:31: tools.t.env.B: the environment variable GREENROOM_NO_SUCH is not set",
            ],
        ),
        (
            &command("argv = [\"a\"]\nenv = { \"A=B\" = \"x\", TRACEPARENT = \"x\" }"),
            &[
                "c.toml:6:17: tools.t.env.\"A=B\": is not a valid variable name",
                "c.toml:6:36: tools.t.env.TRACEPARENT: is set by the server; it cannot be \
                 configured",
            ],
        ),
        (
            &command("argv = [\"a\"]\nmemory_bytes_max = 1\noutput_bytes_max = 0"),
            &[
                "c.toml:6:20: tools.t.memory_bytes_max: must be from 1048576 to 1099511627776",
                "c.toml:7:20: tools.t.output_bytes_max: must be from 1 to 1073741824",
            ],
        ),
    ]);
}

#[test]
fn tools_whose_workflows_wait_for_people() {
    let of = |agent_tools: &str| {
        format!(
            "[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\ntools = {agent_tools}\n\
             [tools.check]\nkind = \"workflow\"\nworkflow = \"review\"\ndescription = \"d\"\n\
             [[workflows.review.steps]]\nid = \"legal\"\ntype = \"andWorkflow\"\n\
             workflow = \"legal\"\n\
             [[workflows.legal.steps]]\nid = \"if\"\ntype = \"andWhen\"\nwhen = \"data.x\"\n\
             block = \"asks\"\n\
             [[workflows.legal.blocks.asks]]\nid = \"person\"\nmap = \"resume\"\n\
             suspend = {{ deadline = \"1h\", on_timeout = \"fail\" }}\n"
        )
    };
    let warned = "c.toml:6:1: warning: tools.check: step person of workflow legal waits for an \
                  answer: an agent that calls check does not get its result";
    for (agent_tools, expected) in [("[\"check\"]", vec![warned]), ("[]", vec![])] {
        let config = Config::parse(&of(agent_tools), "c.toml").unwrap();
        let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, expected, "{agent_tools}");
    }
}

#[test]
fn hosts_that_calls_may_go_to() {
    let text = "[limits]\noutgoing_hosts = [\"10.0.0.5\", \"*.corp\", \"http://x\", 3]\n";
    assert_eq!(
        problems_of(text),
        [
            "c.toml:2:41: limits.outgoing_hosts[2]: must be a host name, an address or `*.` and \
             the end of names, without a port",
            "c.toml:2:53: limits.outgoing_hosts[3]: must be a string, not an integer",
        ]
    );
    let good = text.replace(", \"http://x\", 3", "");
    assert_eq!(Config::parse(&good, "c.toml").unwrap().limits.outgoing_hosts.len(), 2);
}
