//! Values of sections.

use std::path::PathBuf;
use std::time::Duration;

use greenroom_actors::Placement;
use greenroom_actors::domain::definition::Mapping;
use serde_json::json;

use super::problems_of;
use crate::adapters::mock::{MockAction, MockConfig, MockRule};
use crate::config::{Config, Durability, ModelConfig, Names, StoreUrl};
use crate::faces::OpenAiFace;
use crate::telemetry::redact::Redactor;

fn parsed(text: &str) -> Config {
    Config::parse(text, "c.toml").unwrap()
}

#[test]
fn all_secrets_are_collected_for_redaction() {
    let config = parsed(
        "[auth.jwt]\nsecret = \"secret:SIGNS\"\n[inbox]\nsecret = \"secret:LINKS\"\n\
         base_url = \"https://a.example\"\n\
         [models.m]\nprovider = \"openai\"\nmodel = \"x\"\napi_key = \"secret:KEY\"\n\
         [models.other]\nprovider = \"openai\"\nmodel = \"x\"\napi_key = \"secret:NOT_SET\"\n\
         [tools.t]\nkind = \"http\"\nurl = \"https://a.example/\"\ndescription = \"d\"\n\
         parameters = { type = \"object\" }\nheaders = { a = \"${CARGO_MANIFEST_DIR}\" }\n\
         [[workflows.w.steps]]\nid = \"a\"\n\
         http = { url = \"https://a.example\", headers = { a = \"b secret:HEADER\" } }\n\
         [[workflows.w.steps]]\nid = \"b\"\n\
         command = { argv = [\"a\"], env = { A = \"secret:ENVIRONMENT\" } }\n",
    );
    let environment = |name: &str| match name {
        "SIGNS" | "LINKS" | "KEY" | "SERVICE_SECRET_KEY" | "OTHER" | "CARGO_MANIFEST_DIR"
        | "HEADER" | "ENVIRONMENT" => Some(format!("value of {name}")),
        _ => None,
    };
    let redactor = Redactor::new(&config.secrets(environment));
    for (text, expected) in [
        ("value of SIGNS, value of KEY", "[redacted], [redacted]"),
        ("value of LINKS", "[redacted]"),
        ("value of SERVICE_SECRET_KEY", "[redacted]"),
        ("value of CARGO_MANIFEST_DIR", "[redacted]"),
        ("value of HEADER, value of ENVIRONMENT", "[redacted], [redacted]"),
        ("value of OTHER", "value of OTHER"),
    ] {
        let mut text = text.to_owned();
        redactor.redact(&mut text, 1000);
        assert_eq!(text, expected);
    }
}

#[test]
fn retention_of_workflows_overrides_that_of_the_server() {
    let config = parsed(
        "[retention]\nexecutions = \"30d\"\ngenerations = \"forever\"\nbatch = 1\n\
         [workflows.own]\nretention = \"12h\"\nsteps = [{ id = \"a\", map = 1 }]\n\
         [workflows.all]\nretention = \"forever\"\nsteps = [{ id = \"a\", map = 1 }]\n\
         [workflows.plain]\nsteps = [{ id = \"a\", map = 1 }]\n",
    );
    let rules = config.runtime_limits().retention;
    let days = |days: u64| Some(Duration::from_secs(days * 24 * 3600));
    assert_eq!((rules.executions, rules.generations, rules.batch), (days(30), None, 1));
    let own = [("own".to_owned(), Some(Duration::from_secs(12 * 3600))), ("all".to_owned(), None)];
    assert_eq!(rules.workflows, own.into());
    let [warning] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
    assert!(warning.key.ends_with("own.retention"), "{warning}");
    assert!(warning.message.contains("shorter than limits.idempotency_ttl"), "{warning}");
    let bare = parsed("[workflows.own]\nsteps = [{ id = \"a\", map = 1 }]\n");
    let hash = |config: &Config| config.workflows["own"].hash.clone();
    assert_eq!(hash(&config), hash(&bare), "it is no part of the definition");
}

#[test]
fn invalid_retention_is_refused() {
    let own = |keep: &str| {
        format!("[workflows.w]\nretention = {keep}\nsteps = [{{ id = \"a\", map = 1 }}]\n")
    };
    let wrong = "must be a duration such as \"30d\", or \"forever\"";
    for (text, expected) in [
        ("[retention]\nexecutions = \"never\"\n".to_owned(), wrong),
        ("[retention]\ngenerations = \"30 moons\"\n".to_owned(), "must be a duration such as"),
        ("[retention]\nbatch = 0\n".to_owned(), "must be from 1 to 10000"),
        ("[retention]\nevery = \"0s\"\n".to_owned(), "must be longer than 0ms"),
        ("[retention]\nexecutions = \"0d\"\n".to_owned(), "must be longer than 0ms"),
        ("[retention]\nlogs = \"1d\"\n".to_owned(), "is set with `retention` under [logs]"),
        ("[retention]\nexecution = \"1d\"\n".to_owned(), "unknown key"),
        (own("30"), wrong),
        (own("\"\""), wrong),
    ] {
        let problems = problems_of(&text);
        assert!(problems.iter().any(|it| it.contains(expected)), "{text}{problems:?}");
    }
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = parsed("");
    assert_eq!((config.server.host.as_str(), config.server.port), ("127.0.0.1", 3141));
    assert_eq!(config.store.url, StoreUrl::Sqlite(PathBuf::from("greenroom.db")));
    assert_eq!(config.limits.subscriber_queue_bytes, 8 * 1024 * 1024);
}

#[test]
fn values_reach_their_sections() {
    let config = parsed(
        "[server]\nport = 0\nbody_timeout = \"1m 30s\"\n\
         [store]\nurl = \"memory:\"\ndurability = \"normal\"\npassivate_after = \"250ms\"\n\
         [cors]\norigins = []\n[inbox]\nforce_roles = [\"lead\"]\nbase_url = \"https://a.example/b/\"\n\
         [limits]\narbiters = 3\nvalue_bytes_max = 1_000\n\
         executions_memory_max = 2_147_483_648\n\
         generation_steps_max = 7\ngeneration_bytes_max = 9\n",
    );
    assert_eq!(config.server.port, 0);
    assert_eq!(config.server.body_timeout, Duration::from_secs(90));
    assert_eq!(
        (config.store.url.clone(), config.store.durability),
        (StoreUrl::Memory, Durability::Normal)
    );
    assert!(config.cors.origins.is_empty());
    assert_eq!(config.inbox.force_roles, ["lead"]);
    assert_eq!(config.inbox.base_url.as_ref().unwrap().0, "https://a.example/b");
    let limits = config.runtime_limits();
    assert_eq!((limits.placement, limits.machine.value_bytes_max), (Placement::Threads(3), 1000));
    assert_eq!(limits.executions_memory_max, 2 << 30);
    assert!(parsed("").runtime_limits().executions_memory_max > 0);
    assert_eq!((limits.generation_steps_max, limits.generation_bytes_max), (7, 9));
    assert_eq!(limits.passivate_after, Duration::from_millis(250));
    assert_ne!(parsed("").runtime_limits().placement, Placement::Threads(0));
}

#[test]
fn system_and_updates_are_read() {
    let config = parsed(
        "[system]\nenv_file = \"etc/keys.env\"\n\
         [updates]\nregistry = \"sparse+https://index.example\"\n\
         install = [\"cargo\", \"install\", \"{package}\", \"\"]\ninstall_timeout = \"90s\"\n",
    );
    assert_eq!(config.system.env_file, PathBuf::from("etc/keys.env"));
    assert_eq!(config.updates.registry, "https://index.example/".parse().ok());
    assert_eq!(config.updates.install, ["cargo", "install", "{package}", ""]);
    assert_eq!(config.updates.install_timeout, Duration::from_secs(90));
    let config = parsed("");
    assert_eq!(config.system.env_file, PathBuf::from(".env"));
    assert!(config.updates.registry.is_none() && config.updates.install.is_empty());
}

#[test]
fn other_machines_need_explicit_access() {
    let mut config = parsed("[server]\n host = \"0.0.0.0\"\n");
    let problem = config.check_exposure(&Names::default()).unwrap_err().to_string();
    assert!(problem.starts_with("c.toml:2:9: server.host: other machines can reach"), "{problem}");
    config.set_host("::1".to_owned(), "--host");
    assert!(config.check_exposure(&Names::default()).is_ok());
    config.set_host("::".to_owned(), "--host");
    let problem = config.check_exposure(&Names::default()).unwrap_err().to_string();
    assert!(problem.starts_with("--host: other machines"), "{problem}");
    let config = parsed("[server]\nhost = \"0.0.0.0\"\n[auth]\nprovider = \"none\"\n");
    assert!(config.check_exposure(&Names::default()).is_ok());
}

#[test]
fn rules_of_the_mock_have_one_action() {
    let config = parsed(
        "[models.m]\nprovider = \"mock\"\n\
         rules = [\n { when = \"tools\", reply = \"r\" },\n { delay = \"1s\" },\n \
         { tool_call = { name = \"t\", args = { n = \"1\" } } },\n { tool_calls = [{ name = \"u\" }] },\n \
         { object = { x = 1 } },\n { error = \"e\", delay = \"2ms\" }]\n",
    );
    let rule = |action| MockRule { when: None, delay: Duration::ZERO, action };
    let tool = |name: &str, args| (name.to_owned(), Mapping(args));
    let rules = vec![
        MockRule { when: Some("tools".into()), ..rule(MockAction::Reply("r".into())) },
        MockRule { delay: Duration::from_secs(1), ..rule(MockAction::Default) },
        rule(MockAction::ToolCalls(vec![tool("t", json!({ "n": "1" }))])),
        rule(MockAction::ToolCalls(vec![tool("u", json!({}))])),
        rule(MockAction::Object(Mapping(json!({ "x": 1 })))),
        MockRule { delay: Duration::from_millis(2), ..rule(MockAction::Error("e".into())) },
    ];
    let expected = MockConfig { rules, ..MockConfig::default() };
    assert_eq!(config.models["m"], ModelConfig::Mock(expected));
}

#[test]
fn agents_have_defaults() {
    let config = parsed(
        "[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\nmemory = false\n\
         options = { temperature = 0, stop_sequences = [\"x\"], parallel_tool_calls = false }\n",
    );
    let agent = &config.agents["a"];
    assert_eq!((agent.name.as_str(), agent.description.as_str()), ("a", ""));
    assert_eq!((agent.memory, agent.max_steps), (false, None));
    assert_eq!(agent.options.temperature, Some(0.0));
    assert_eq!(agent.options.stop_sequences, Some(vec!["x".to_owned()]));
    assert_eq!(agent.options.parallel_tool_calls, Some(false));
}

#[test]
fn rust_code_may_register_names_of_the_file() {
    let text = "[workflows.w]\nsteps = [{ id = \"a\", run = \"charge\" }]\n";
    let missing = ["c.toml:2:28: workflows.w.steps.a.run: function charge is not registered"];
    assert_eq!(problems_of(text), missing);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    std::fs::write(&path, text).unwrap();
    let config = Config::load_open(&path).unwrap();
    let mut names = Names::default();
    assert_eq!(config.check_names(&names).len(), 1);
    names.functions.insert("charges".to_owned());
    assert_eq!(config.check_names(&names)[0].suggestion.as_deref(), Some("charges"));
    names.functions.insert("charge".to_owned());
    assert_eq!(config.check_names(&names), []);
}

#[test]
fn a_key_in_the_wrong_section_names_the_right_one() {
    for (text, expected) in [
        ("port = 1\n", "c.toml:1:1: port: belongs in [server]"),
        ("queue = 1\n", "c.toml:1:1: queue: belongs in [logs] or [telemetry]"),
        ("[server]\nheartbeat = \"1s\"\n", "c.toml:2:1: server.heartbeat: belongs in [limits]"),
        ("[limits]\nkeep_alive = \"1s\"\n", "c.toml:2:1: limits.keep_alive: belongs in [server]"),
        ("[port]\nx = 1\n", "c.toml:1:2: port: unknown key"),
        ("[models.m]\nprovider = \"mock\"\nport = 1\n", "c.toml:3:1: models.m.port: unknown key"),
    ] {
        assert_eq!(problems_of(text), [expected], "{text}");
    }
}

#[test]
fn a_rule_that_calls_an_unknown_tool_is_a_warning() {
    let rules = "[models.m]\nprovider = \"mock\"\n\
                 [[models.m.rules]]\nwhen = \"not tools\"\ntool_call = { name = \"ad\" }\n\
                 [[models.m.rules]]\ntool_calls = [{ name = \"add\" }, { name = \"delegate_task\" }]\n\
                 [tools.add]\nkind = \"agent\"\nagent = \"b\"\ndescription = \"Adds\"\n\
                 [agents.b]\nmodel = \"m\"\n[agents.a]\nmodel = \"m\"\n";
    let first = "c.toml:5:22: warning: models.m.rules[0].tool_call.name: no agent has the tool ad";
    let with = |keys: &str| problems_of(&format!("{rules}{keys}"));
    let all = with("tools = [\"add\"]\nsub_agents = [\"b\"]\n");
    assert_eq!(all, [format!("{first}; did you mean add?")]);
    let none = with("");
    assert_eq!(none.len(), 3, "{none:?}");
    assert_eq!(none[0], first);
    assert!(none[2].ends_with("rules[1].tool_calls[1].name: no agent has the tool delegate_task"));
    let computed = with("tools = \"['ad']\"\n");
    assert_eq!(computed, Vec::<String>::new(), "an agent may compute its tools");
    let face = with("[faces.openai]\n");
    assert_eq!(face, Vec::<String>::new(), "clients bring tools");
    let registered = Names { agents: ["c".to_owned()].into(), ..Names::default() };
    let config = Config::parse(rules, "c.toml").unwrap();
    assert_eq!(config.check_rules(&registered), [], "agents in Rust may have any");
}

#[test]
fn faces_are_closed_until_they_are_written() {
    let base = "[models.m]\nprovider = \"mock\"\n[agents.a]\nmodel = \"m\"\n";
    let openai = |text: &str| {
        let config = Config::parse(&format!("{base}{text}"), "c.toml").unwrap();
        config.faces.openai
    };
    assert_eq!(openai(""), None);
    assert_eq!(openai("[faces.openai]\n"), Some(OpenAiFace::default()));
    let text = "[faces.openai]\nagents = [\"a\"]\nworkflows = \"*\"\ntools_max = 0\n";
    let face = openai(text).unwrap();
    assert_eq!((face.agents.has("a"), face.agents.has("b")), (true, false));
    assert_eq!((face.workflows.has("w"), face.tools_max), (true, 0));
    let refused = [
        ("agents = \"a\"", "agents: must be \"*\" or an array of ids of agents"),
        ("agents = [\"b\"]", "agents[0]: agent b is not configured"),
        ("workflows = [\"w\"]", "workflows[0]: workflow w is not configured"),
        ("tools_max = 1001", "tools_max: must be from 0 to 1000"),
        ("model = \"m\"", "model: unknown key"),
    ];
    for (line, what) in refused {
        let problems = problems_of(&format!("{base}[faces.openai]\n{line}\n"));
        let is_found = problems.iter().any(|problem| problem.contains(what));
        assert!(is_found, "{line}: {problems:?}");
    }
}
