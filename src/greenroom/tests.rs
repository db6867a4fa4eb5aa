//! Checks before the start of a server with Rust code, and its registry.

mod names;

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_actors::agent::{AgentHooks, Approval, Budget, Choice};
use greenroom_actors::ports::model::ModelOptions;
use serde_json::{Value, json};

use super::*;
use crate::adapters::mock::{MockConfig, MockModel};
use crate::auth::{AuthError, User};
use crate::builder::{Agent, Block, Command, Step, command, tool};
use crate::config::{self, DefaultAccess};

struct Silent;

impl AgentHooks for Silent {}

fn base() -> Greenroom {
    let model = MockModel::new(MockConfig::default()).unwrap();
    Greenroom::new().model("offline", Arc::new(model))
}

fn with_tool(greenroom: Greenroom, name: &str, parameters: Value) -> Greenroom {
    greenroom.tool(name, "Says it back", parameters, |arguments, _| async { Ok(arguments) })
}

fn problems(greenroom: Greenroom) -> Vec<String> {
    greenroom.checked().err().map(|Problems(problems)| problems).unwrap_or_default()
}

#[test]
fn tools_and_agents_are_checked_before_the_start() {
    let object = || json!({ "type": "object" });
    let agent = |id: &str| Agent::new(id).model("offline");
    let rows = [
        (with_tool(base(), "echo", object()), vec![]),
        (base().agent(agent("a").tools(["echo"])), vec!["agent a: tool echo is not configured"]),
        (
            with_tool(base(), "echo", object()).agent(agent("a").tools(["ecoh"])),
            vec!["agent a: tool ecoh is not configured; did you mean echo?"],
        ),
        (
            base().agent(Agent::new("a").model("ofline")),
            vec!["agent a: model ofline is not configured; did you mean offline?"],
        ),
        (
            base().agent(agent("a").sub_agents(["b", "a"])),
            vec![
                "agent a: an agent cannot be its own sub-agent",
                "agent a: agent b is not configured",
            ],
        ),
        (
            base().agent(agent("a b").instructions("{{")),
            vec![
                "agent a b: the id must be a letter or digit, then letters, digits, `.`, `_` or \
                 `-`",
                "agent a b: instructions: syntax error: unexpected end of input, expected \
                 expression in `{{`",
            ],
        ),
        (
            with_tool(with_tool(base(), "echo", object()), "echo", object()),
            vec!["tool echo is registered twice"],
        ),
        (
            with_tool(base(), "delegate_task", object()),
            vec!["tool delegate_task: delegate_task is reserved for agents with sub-agents"],
        ),
        (
            with_tool(base(), "echo", json!({ "type": "string" })),
            vec![
                "tool echo: parameters: arguments are an object: the schema needs type = \"object\"",
            ],
        ),
        (
            with_tool(base(), "echo", json!({ "type": "object", "required": 1 })),
            vec!["tool echo: parameters: schema at /required: 1 is not of type \"array\""],
        ),
    ];
    for (greenroom, expected) in rows {
        assert_eq!(problems(greenroom), expected);
    }
}

#[test]
fn a_file_and_rust_code_may_refer_to_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let text = "[models.m]\nprovider = \"rehearsal\"\n[agents.a]\nmodel = \"m\"\n\
                tools = [\"echo\"]\n[tools.ask]\nkind = \"agent\"\nagent = \"b\"\n\
                description = \"d\"\n";
    std::fs::write(&path, text).unwrap();
    let from_file = || Greenroom::from_config(&path).unwrap();
    let missing = problems(from_file());
    assert!(missing[0].ends_with("agents.a.tools[0]: tool echo is not configured"), "{missing:?}");
    assert!(missing[1].ends_with("tools.ask.agent: agent b is not configured"), "{missing:?}");
    let b = Agent::new("b").model("m").tools(["ask", "echo"]);
    let whole = with_tool(from_file().agent(b), "echo", json!({ "type": "object" }));
    assert_eq!(problems(whole), Vec::<String>::new());
}

#[test]
fn a_rust_workflow_sets_its_retention() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let one = |id: &str| {
        format!("[workflows.{id}]\nretention = \"1h\"\nsteps = [{{ id = \"a\", map = 1 }}]\n")
    };
    std::fs::write(&path, one("a") + &one("b") + &one("c") + &one("d")).unwrap();
    let workflow = |id: &str| Workflow::new(id).step(Step::map("a", json!(1)));
    let greenroom = Greenroom::from_config(&path)
        .unwrap()
        .workflow(workflow("b"))
        .workflow(workflow("c").retention(Duration::from_secs(60)))
        .workflow(workflow("d").keep_forever())
        .workflow(workflow("e").retention(Duration::from_secs(1)));
    let (config, _) = greenroom.checked().unwrap();
    let kept: BTreeMap<_, _> = config.runtime_limits().retention.workflows.into_iter().collect();
    let hour = Some(Duration::from_secs(3600));
    let expected = [
        ("a", hour),
        ("b", hour),
        ("c", Some(Duration::from_secs(60))),
        ("d", None),
        ("e", Some(Duration::from_secs(1))),
    ];
    assert_eq!(kept, expected.map(|(id, keep)| (id.to_owned(), keep)).into());
    // it stays, and is not a change, when the file is read again
    let mut again = Config::load_open(&path).unwrap();
    again.keep_choices_of(&config);
    assert_eq!(again.retention, config.retention);
    let wrong = base().workflow(workflow("w").retention(Duration::ZERO));
    assert_eq!(problems(wrong), ["workflow w: retention: must be longer than 0ms"]);
}

#[test]
fn what_code_has_chosen_stays_when_the_file_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let again = |text: &str, change: fn(Greenroom) -> Greenroom, edit: &str| {
        std::fs::write(&path, text).unwrap();
        let (started, registered) =
            change(Greenroom::from_config(&path).unwrap()).checked().unwrap();
        std::fs::write(&path, edit).unwrap();
        let names = checks::names(&registered);
        let mut config = Config::look(&path, &names).0.unwrap();
        config.keep_choices_of(&started);
        let changes = config::Changes::between(&started, &started, &config).at_next_start;
        (checks::problems(&config, &registered, &names), changes, config)
    };
    let face: fn(Greenroom) -> Greenroom =
        |it| it.auth(Badge("GET /agents")).face(McpFace::new().workflows(["*"]));
    let host: fn(Greenroom) -> Greenroom =
        |it| it.configure(|config| config.server.host = "127.0.0.1".to_owned());
    let store: fn(Greenroom) -> Greenroom =
        |it| it.configure(|config| config.store.url = config::StoreUrl::Memory);
    let auth: fn(Greenroom) -> Greenroom =
        |it| it.configure(|config| config.auth.provider = Some(config::AuthProvider::None));
    let rule = "[auth]\nrules = [{ route = \"POST /mcp\", roles = [\"x\"] }]\n";
    let open = "[server]\nhost = \"0.0.0.0\"\n";
    let private =
        "[store]\nurl = \"postgres://ann@db.example/shop\"\npassword = \"secret:NO_SUCH\"\n";
    for (text, change) in [(rule, face), (open, host), (private, store), (open, auth)] {
        let (problems, changes, _) = again(text, change, text);
        assert_eq!((problems, changes), (vec![], vec![]), "{text}");
        // what needs a restart is named, although code decides it
        let edit = text.replace("0.0.0.0", "::").replace("ann@", "eve@").replace("\"x\"", "\"y\"");
        let (problems, changes, _) = again(text, change, &edit);
        let section = text.lines().next().unwrap();
        assert_eq!((problems, changes), (vec![], vec![section.to_owned()]), "{text}");
    }
    // both faces are there, once
    let other = "[[faces.mcp]]\nname = \"ops\"\nworkflows = \"*\"\n";
    let (.., config) = again(other, face, other);
    let faces: Vec<_> = config.faces.mcp.iter().map(|face| face.name.as_deref()).collect();
    assert_eq!(faces, [Some("ops"), None]);
    // what code has not chosen is checked as at a start
    let (problems, ..) = again("", |it| it, open);
    assert!(problems[0].contains("other machines can reach 0.0.0.0"), "{problems:?}");
}

#[test]
fn routes_are_checked_before_the_start() {
    let rows: [(&[&str], &[&str]); 6] = [
        (&["/a", "/b/:id", "/c/*"], &[]),
        (&["/a", "/a"], &["routes: GET /a would be answered by GET /a"]),
        (&["/c/*", "/c/d"], &["routes: GET /c/d would be answered by GET /c/*"]),
        (&["/doc"], &["routes: GET /doc would be answered by GET /doc"]),
        (
            &["/workflows/:name"],
            &["routes: GET /workflows/:name would be answered by GET \
               /workflows/executions"],
        ),
        (
            &["a", "/b/", "/b"],
            &[
                "routes: GET a: the path must start with `/`",
                "routes: GET /b/: the path must not end with `/`",
            ],
        ),
    ];
    for (paths, expected) in rows {
        let greenroom = base().routes(|routes| {
            for path in paths {
                routes.get(path, || async { "here" }).public();
            }
        });
        assert_eq!(problems(greenroom), expected, "{paths:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let text = "[[routes]]\npath = \"/a\"\nworkflow = \"w\"\n\
                [workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n";
    std::fs::write(&path, text).unwrap();
    let add = |path: &'static str| {
        let greenroom = Greenroom::from_config(directory.path().join("c.toml")).unwrap();
        greenroom.routes(|routes| {
            routes.post(path, || async { "here" });
        })
    };
    assert_eq!(problems(add("/b")), Vec::<String>::new());
    let taken = "routes: POST /a would be answered by POST /a";
    assert_eq!(problems(add("/a")), [taken]);
}

#[test]
fn the_builder_of_an_agent_sets_all_fields() {
    let budget = Budget { tool_calls: Some(3), ..Budget::default() };
    let options = ModelOptions { seed: Some(7), ..ModelOptions::default() };
    let agent = Agent::new("a")
        .name("A")
        .description("d")
        .instructions_with(|_| Ok("i".to_owned()))
        .model_with(|_| Err("no model".to_owned()))
        .tools_with(|_| Ok(vec!["t".to_owned()]))
        .without_memory()
        .max_steps(4)
        .budget(budget.clone())
        .options(options.clone())
        .resumable()
        .hooks(Silent);
    let made = AgentDefinition::from(agent);
    assert_eq!((made.name.as_str(), made.description.as_str()), ("A", "d"));
    assert_eq!((made.memory, made.max_steps, made.is_resumable), (false, Some(4), true));
    assert_eq!((made.budget, made.options, made.hooks.is_some()), (budget, options, true));
    let nothing = serde_json::Map::new();
    let Choice::Function(model) = made.model else { panic!("a function") };
    assert_eq!(model(&nothing), Err("no model".to_owned()));
    let Choice::Function(tools) = made.tools else { panic!("a function") };
    assert_eq!(tools(&nothing), Ok(vec!["t".to_owned()]));
    assert!(AgentDefinition::from(Agent::new("b")).memory);
}

/// A provider that knows no token and has a public route.
struct Badge(&'static str);

impl AuthProvider for Badge {
    fn kind(&self) -> &str {
        "badge"
    }

    fn verify<'a>(
        &'a self,
        _: &'a str,
    ) -> futures_util::future::BoxFuture<'a, Result<User, AuthError>> {
        Box::pin(async { Err(AuthError::Foreign) })
    }

    fn public_routes(&self) -> Vec<String> {
        vec![self.0.to_owned()]
    }
}

#[test]
fn providers_are_checked_before_the_start() {
    let others = |config: &mut Config| config.set_host("0.0.0.0".to_owned(), "the program");
    let private = |config: &mut Config| config.auth.default = DefaultAccess::Private;
    let none = |config: &mut Config| config.auth.provider = Some(config::AuthProvider::None);
    let badge = || base().auth(Badge("GET /agents"));
    let idle = "auth.default: has no effect without a provider that checks tokens: [auth.jwt], \
                [[auth.api_keys]] or a provider in Rust";
    let rows = [
        (badge().configure(others).configure(private), vec![]),
        (base().configure(private), vec![idle]),
        (
            base().configure(others),
            vec![
                "the program: other machines can reach 0.0.0.0 and nothing is protected; configure a \
                 provider in [auth.jwt] or [[auth.api_keys]], or set provider = \"none\" under \
                 [auth] if that is intended",
            ],
        ),
        (
            badge().configure(none),
            vec!["auth.provider: \"none\" contradicts the providers registered in Rust: badge"],
        ),
        (
            base().auth(Badge("POST /login")),
            vec!["public route \"POST /login\" of the provider badge: matches no route"],
        ),
        (
            base().auth(Badge("/agents")),
            vec![
                "public route \"/agents\" of the provider badge: write it as \"POST /path\", \
                 with `:name` for a segment and `*` at the end for everything below",
            ],
        ),
    ];
    for (greenroom, expected) in rows {
        assert_eq!(problems(greenroom), expected);
    }
}

#[test]
fn arguments_in_rust_workflows_are_checked() {
    let schema = json!({
        "type": "object",
        "required": ["n"],
        "properties": { "n": { "type": "integer" } },
        "additionalProperties": false,
    });
    let child = Workflow::new("child").input_schema(schema.clone()).step(Step::map("a", json!(1)));
    let calls = |input: Value, args: Value| {
        let parent = Workflow::new("parent")
            .step(Step::workflow("sub", "child").input(input))
            .step(Step::then("call", tool("counts")).args(args));
        problems(
            with_tool(base(), "counts", schema.clone()).workflow(child.clone()).workflow(parent),
        )
    };
    assert_eq!(calls(json!({ "n": 1 }), json!({ "n": "data" })), Vec::<String>::new());
    assert_eq!(
        calls(json!({ "n": "'1'" }), json!({ "nn": "data" })),
        [
            "workflow parent: steps.sub.input: does not match the input of workflow child: n: \
             \"1\" \
             is not of type \"integer\"",
            "workflow parent: steps.call.args.nn: does not match the parameters of tool counts: \
             unknown key `nn`; did you mean n?",
        ]
    );
}

#[test]
fn duplicate_and_invalid_names_are_refused() {
    let workflow = || Workflow::new("w").step(Step::map("a", json!(1)));
    let agent = || Agent::new("a").model("offline");
    let model = || Arc::new(MockModel::new(MockConfig::default()).unwrap());
    let rows = [
        (base().workflow(workflow()).workflow(workflow()), "workflow w is registered twice"),
        (
            base().workflow(Workflow::new("greenroom.bulk").step(Step::map("a", json!(1)))),
            "workflow greenroom.bulk: the id is that of bulk operations",
        ),
        (base().agent(agent()).agent(agent()), "agent a is registered twice"),
        (
            base().approval("refund", Approval::always()),
            "approval of tool refund: it is not registered",
        ),
        (base().model("offline", model()), "model offline is registered twice"),
        (
            base().model("a b", model()),
            "model a b: the name must be a letter or digit, then letters, digits, `.`, `_` or `-`",
        ),
        (base().agent(Agent::new("a")), "agent a: has no model: name one with `model`"),
        (
            base().agent(agent().instructions("{{ user.name | uper }} {{ usr }}")),
            "agent a: instructions: `usr` is not in scope; in scope: context, user; did you mean \
             user?\n\
             agent a: instructions: there is no filter `uper`; did you mean upper?",
        ),
    ];
    for (greenroom, expected) in rows {
        assert_eq!(problems(greenroom).join("\n"), expected);
    }
}

#[test]
fn unprotected_approvals_and_missing_programs_of_rust_code_are_warnings() {
    let run = Workflow::new("w").step(Step::then("a", command(Command::new("/usr/bin/nope"))));
    let (config, _) = base().auth(Badge("GET /agents")).workflow(run).checked().unwrap();
    let said: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    let program = "workflow w: warning: steps.a.command.argv.0: program /usr/bin/nope does not \
                   exist";
    assert_eq!(said[0], program);
    assert!(
        said[1].starts_with("auth: warning: tokens are checked, but not for POST "),
        "{said:?}"
    );
    let private = |config: &mut Config| config.auth.default = DefaultAccess::Private;
    let (config, _) = base().auth(Badge("GET /agents")).configure(private).checked().unwrap();
    assert_eq!(config.warnings, []);
}

#[actix_web::test]
async fn serve_inside_a_runtime_is_refused() {
    let serve = base().serve().unwrap_err();
    assert!(matches!(serve, ServeError::InsideRuntime), "{serve}");
    let refused = base().agent(Agent::new("a")).serve().unwrap_err();
    assert_eq!(format!("{refused:?}"), "agent a: has no model: name one with `model`");
}

#[tokio::test]
async fn build_outside_of_a_system_is_refused() {
    let built = base().build().await.err();
    assert!(matches!(built, Some(ServeError::OutsideSystem)), "{built:?}");
}

#[test]
fn lints_of_rust_workflows_are_warnings() {
    let odd = Workflow::new("odd").step(Step::map("a", json!("resume")));
    let (config, _) = base().workflow(odd).checked().unwrap();
    let said: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["workflow odd: warning: steps.a.map: `resume` is none here unless a caller paused the \
        execution: the step has no `suspend`"]
    );
}

#[tokio::test]
async fn blocking_functions_run_on_another_thread_in_the_scope_of_the_step() {
    use std::panic::AssertUnwindSafe;

    use futures_util::FutureExt;
    use greenroom_actors::function::StepContext;
    use greenroom_actors::observe::log_record::LogScope;

    let here = std::thread::current().id();
    let greenroom = base().blocking_function("there", move |step| {
        assert_ne!(step.data["panics"], true, "as wanted");
        assert_ne!(std::thread::current().id(), here);
        Ok(json!(LogScope::current().and_then(|scope| scope.user_id.clone())).into())
    });
    let function = Arc::clone(&greenroom.registry.functions["there"]);
    let scope = Arc::new(LogScope { user_id: Some("ann".into()), ..LogScope::default() });
    let ended = scope.during(function(StepContext::for_test(json!({})))).await;
    assert_eq!(ended, Ok(json!("ann").into()));
    let ended = function(StepContext::for_test(json!({ "panics": true })));
    assert!(AssertUnwindSafe(ended).catch_unwind().await.is_err());
}
