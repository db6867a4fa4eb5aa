//! `[mcp.*]`: values, refusals and warnings.

use std::time::Duration;

use url::Url;

use super::problems_of;
use crate::adapters::mcp::settings::{McpTransport, OnChange, OnInput, Protocol, SecretIn};
use crate::config::Config;

const AGENT: &str = "[models.m]\nprovider = \"mock\"\n";
const URL: &str = "[mcp.s]\nurl = \"https://a.example/mcp\"\n";

#[test]
fn all_keys_of_a_server_are_read() {
    let text = "[mcp.files]\ncommand = [\"npx\", \"server\"]\nenv = { A = \"x secret:PATH y\" }\n\
                cwd = \"/tmp\"\nmemory_bytes_max = 1048576\ntools = [\"get_*\", \"!get_key\"]\n\
                approval = [\"get_a*\"]\nretry = [\"get_b\"]\ntimeout = \"3s\"\nconcurrency = 2\n\
                connect_timeout = \"4s\"\ntask_timeout = \"2d\"\nrestart = { delay = \"2s\", max_delay = \"5s\" }\n\
                message_bytes_max = 1024\ntools_max = 1\ntools_seen_max = 3\n\
                on_change = \"drop\"\nprotocol = \"2025-11-25\"\n\
                on_input = { to = [\"role:staff\", \"!self\"], deadline = \"2d\", questions_max = 3, \
                state_bytes_max = 7 }\n";
    let config = Config::parse(text, "c.toml").unwrap();
    let server = &config.mcp["files"].server;
    let McpTransport::Program { argv, env, cwd, memory_bytes_max } = &server.transport else {
        panic!("{server:?}")
    };
    assert_eq!((argv.len(), env.len(), cwd.as_deref()), (2, 1, Some("/tmp")));
    assert_eq!(*memory_bytes_max, Some(1 << 20));
    let text = env[0].1.resolved(|name| Ok::<_, ()>(format!("<{name}>"))).unwrap();
    assert_eq!((&*env[0].0, text.as_str()), ("A", "x <PATH> y"));
    assert!(server.tools.selects("get_a") && !server.tools.selects("get_key"));
    let (approved, _) = server.approval.as_ref().unwrap();
    assert!(approved.selects("get_ab") && !approved.selects("get_b"));
    assert!(server.retry.as_ref().unwrap().selects("get_b"));
    let seconds = Duration::from_secs;
    assert_eq!(server.limits.timeout, Some(seconds(3)));
    assert_eq!((server.restart.delay, server.restart.max_delay), (seconds(2), seconds(5)));
    assert_eq!(server.limits.task_timeout, seconds(2 * 86_400));
    assert_eq!((server.limits.connect_timeout, server.limits.concurrency), (seconds(4), 2));
    assert_eq!((server.limits.message_bytes_max, server.limits.tools_max), (1024, 1));
    assert_eq!((server.on_change, server.limits.tools_seen_max), (OnChange::Drop, 3));
    assert_eq!(server.protocol, Protocol::Handshake);
    let on_input = server.on_input.as_ref().unwrap();
    let to: Vec<_> = on_input.to.iter().map(ToString::to_string).collect();
    assert_eq!(
        (to, on_input.deadline),
        (vec!["role:staff".into(), "!self".into()], Some(seconds(172_800)))
    );
    assert_eq!((on_input.questions_max, on_input.state_bytes_max), (3, 7));
    assert_eq!(config.mcp["files"].secrets().collect::<Vec<_>>(), ["PATH"]);
}

#[test]
fn changes_of_tools_are_asked_about_unless_they_are_used_or_left_out() {
    for (line, expected) in [
        ("", OnChange::Ask),
        ("on_change = \"ask\"\n", OnChange::Ask),
        ("on_change = \"use\"\n", OnChange::Use),
        ("on_change = \"drop\"\n", OnChange::Drop),
    ] {
        let config = Config::parse(&format!("{URL}{line}"), "c.toml").unwrap();
        let server = &config.mcp["s"].server;
        assert_eq!((server.on_change, server.limits.tools_seen_max), (expected, 2000), "{line}");
    }
}

#[test]
fn the_longest_pause_is_at_least_the_first_one() {
    for (line, delay, max_delay) in [
        ("", 1_000, 60_000),
        ("restart = { max_delay = \"500ms\" }\n", 1_000, 1_000),
        ("restart = { delay = \"2m\" }\n", 120_000, 120_000),
    ] {
        let config = Config::parse(&format!("{URL}{line}"), "c.toml").unwrap();
        let restart = &config.mcp["s"].server.restart;
        let shown = [restart.delay.as_millis(), restart.max_delay.as_millis()];
        assert_eq!(shown, [delay, max_delay], "{line}");
    }
}

#[test]
fn questions_of_servers_are_asked_unless_they_are_refused() {
    let on_input = |line: &str| {
        let config = Config::parse(&format!("{URL}{line}"), "c.toml").unwrap();
        config.mcp["s"].server.on_input.clone()
    };
    assert_eq!(on_input(""), Some(OnInput::default()));
    assert_eq!(on_input("on_input = {}\n"), Some(OnInput::default()));
    assert_eq!(on_input("on_input = \"refuse\"\n"), None);
}

#[test]
fn a_server_over_http_has_headers() {
    let text = format!("{URL}headers = {{ authorization = \"Bearer secret:PATH\" }}\n");
    let config = Config::parse(&text, "c.toml").unwrap();
    let server = &config.mcp["s"];
    let McpTransport::Http { url, headers } = &server.server.transport else { panic!() };
    assert_eq!((url.as_str(), headers[0].0.as_str()), ("https://a.example/mcp", "authorization"));
    let problems = |value: Option<&str>| -> Vec<String> {
        let found = config.check_secrets(|_| value.map(str::to_owned));
        found.iter().map(ToString::to_string).collect()
    };
    assert!(problems(Some("a")).is_empty());
    let place = "c.toml:3:29: mcp.s.headers.authorization: the environment variable PATH";
    assert_eq!(problems(None), [format!("{place} is not set")]);
    assert_eq!(problems(Some("")), [format!("{place} is empty")]);
    assert_eq!(problems(Some("a\nb")).len(), 1);
    assert!(!format!("{server:?}").contains("a.example"));
}

/// A server with credentials, and these further keys of them.
fn with_oauth(url: &str, keys: &str) -> String {
    format!("[mcp.s]\nurl = \"{url}\"\noauth = {{ client_id = \"id\", {keys} }}\n")
}

#[test]
fn a_server_over_http_may_want_tokens() {
    let text = with_oauth(
        "https://a.example/mcp",
        "client_secret = \"secret:PATH\", scope = \"a:b c\", client_auth = \"post\", \
         token_url = \"https://b.example/token\"",
    );
    let config = Config::parse(&text, "c.toml").unwrap();
    let server = &config.mcp["s"];
    let oauth = server.server.oauth.clone().unwrap();
    assert_eq!((oauth.client_id.as_str(), &*oauth.client_secret), ("id", "PATH"));
    assert_eq!((oauth.scope.as_deref(), oauth.secret_in), (Some("a:b c"), Some(SecretIn::Body)));
    assert_eq!(oauth.token_url.as_ref().map(Url::as_str), Some("https://b.example/token"));
    assert_eq!(server.secrets().collect::<Vec<_>>(), ["PATH"]);
    assert!(!format!("{server:?}").contains(".example"));
    for (value, problem) in [
        (Some("a"), None),
        (None, Some("is not set")),
        (Some(""), Some("is empty")),
        (Some("a\n"), Some("contains a line break or another control character")),
    ] {
        let found = config.check_secrets(|_| value.map(str::to_owned));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        let place = "c.toml:3:1: mcp.s.oauth: the environment variable PATH";
        let expected: Vec<_> = problem.map(|it| format!("{place} {it}")).into_iter().collect();
        assert_eq!(found, expected);
    }
    let plain = with_oauth("http://127.0.0.1/mcp", "client_secret = \"secret:PATH\"");
    let oauth = Config::parse(&plain, "c.toml").unwrap().mcp["s"].server.oauth.clone().unwrap();
    assert_eq!((oauth.scope, oauth.token_url, oauth.secret_in), (None, None, None));
}

#[test]
fn mistakes_in_credentials() {
    let url = "https://a.example/mcp";
    let secret = "client_secret = \"secret:PATH\"";
    let with = |keys: &str| with_oauth(url, &format!("{secret}, {keys}"));
    let scope = |bytes: usize| with(&format!("scope = \"{}\"", "x".repeat(bytes)));
    assert_eq!(problems_of(&scope(2048)), [""; 0]);
    let program =
        format!("[mcp.s]\ncommand = [\"a\"]\noauth = {{ client_id = \"id\", {secret} }}\n");
    let header = format!("{}headers = {{ Authorization = \"Bearer secret:PATH\" }}\n", with(""));
    for (text, expected) in [
        (format!("{URL}oauth = \"id\"\n"), "mcp.s.oauth: must be a"),
        (with_oauth(url, ""), "mcp.s.oauth: key `client_secret` is missing"),
        (format!("{URL}oauth = {{ {secret} }}\n"), "mcp.s.oauth: key `client_id` is missing"),
        (
            with_oauth(url, "client_secret = \"s3cret\""),
            "3:45: mcp.s.oauth.client_secret: must name an environment variable",
        ),
        (with("scope = \"a  b\""), "mcp.s.oauth.scope: must be scopes with a space"),
        (scope(2049), "mcp.s.oauth.scope: must be scopes with a space"),
        (with("token_url = \"http://b.example/\""), "must begin with https://, as the secret"),
        (with("token_url = \"https://b.example/#a\""), "must end before #"),
        (with("client_auth = \"basics\""), "did you mean basic?"),
        (with("token_uri = \"https://b.example/\""), "did you mean token_url?"),
        (program, "mcp.s.oauth: belongs to a server with `url`"),
        (header, "c.toml:4:29: mcp.s.headers.Authorization: cannot be combined with `oauth`"),
        (with_oauth("http://a.example/mcp", secret), "warning: mcp.s.url: sends tokens over plain"),
    ] {
        let problems = problems_of(&text);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].contains(expected), "{text}: {problems:?}");
        assert!(!problems[0].contains("s3cret"), "{problems:?}");
    }
}

#[test]
fn mistakes_in_servers() {
    let long = format!("[mcp.{}]\ncommand = [\"true\"]\n", "x".repeat(33));
    let charset = "must be 1 to 32 of the characters A-Z a-z 0-9 _ -";
    for (text, expected) in [
        ("[mcp.\"a.b\"]\ncommand = [\"a\"]\n", format!("mcp.\"a.b\": {charset}")),
        (&long, charset.to_owned()),
        ("[mcp.s]\n", "mcp.s: needs `url` or `command`".to_owned()),
        (
            &format!("{URL}command = [\"a\"]\nenv = {{}}\n"),
            "mcp.s.command: cannot be combined with `url`; remove one of them".to_owned(),
        ),
        ("[mcp.s]\nurl = \"ftp://a\"\n", "must begin with http:// or https://".to_owned()),
        ("[mcp.s]\ncommand = []\n", "mcp.s.command: must name a program".to_owned()),
        ("[mcp.s]\ncommand = \"a b\"\n", "must be an array, not a string".to_owned()),
        (&format!("{URL}env = {{ A = \"b\" }}\n"), "belongs to a server with `command`".to_owned()),
        (
            "[mcp.s]\ncommand = [\"a\"]\nheaders = { a = \"b\" }\n",
            "belongs to a server with `url`".to_owned(),
        ),
        (
            &format!("{URL}headers = {{ mcp-method = \"b\" }}\n"),
            "is set by the server itself".to_owned(),
        ),
        (&format!("{URL}headers = {{ \"a b\" = \"b\" }}\n"), "not a valid header name".to_owned()),
        (
            &format!("{URL}headers = {{ a = \"{{{{ user.id }}}}\" }}\n"),
            "cannot be a template: all calls share the connection".to_owned(),
        ),
        (
            "[mcp.s]\ncommand = [\"a\"]\nenv = { \"A=\" = \"b\" }\n",
            "is not a valid name of a variable".to_owned(),
        ),
        (&format!("{URL}tools = [\"get *\"]\n"), "mcp.s.tools[0]: must be a name".to_owned()),
        (&format!("{URL}tools = []\n"), "must have 1 to 1000 patterns".to_owned()),
        (&format!("{URL}approval = \"all\"\n"), "must be true, false, patterns".to_owned()),
        (&format!("{URL}approval = {{ wen = \"a\" }}\n"), "did you mean when?".to_owned()),
        (
            &format!("{URL}restart = {{ delay = \"2s\", max_delay = \"1s\" }}\n"),
            "mcp.s.restart.max_delay: must not be shorter than `delay`".to_owned(),
        ),
        (&format!("{URL}concurrency = 0\n"), "must be from 1 to 1000000".to_owned()),
        (&format!("{URL}message_bytes_max = 1023\n"), "must be from 1024 to".to_owned()),
        (&format!("{URL}tools_max = 10001\n"), "must be from 1 to 10000".to_owned()),
        (&format!("{URL}on_change = \"asks\"\n"), "did you mean ask?".to_owned()),
        (&format!("{URL}tools_seen_max = 0\n"), "must be from 1 to 100000".to_owned()),
        (&format!("{URL}on_input = \"ask\"\n"), "mcp.s.on_input".to_owned()),
        (&format!("{URL}on_input = {{ too = [] }}\n"), "did you mean to?".to_owned()),
        (&format!("{URL}on_input = {{ to = [\"ann\"] }}\n"), "mcp.s.on_input.to[0]".to_owned()),
        (
            &format!("{URL}on_input = {{ questions_max = 0 }}\n"),
            "must be from 1 to 1000".to_owned(),
        ),
        (
            &format!("{URL}on_input = {{ state_bytes_max = 16777217 }}\n"),
            "must be from 1 to 16777216".to_owned(),
        ),
        (
            &format!(
                "{AGENT}{URL}[tools.\"s.a\"]\nkind = \"command\"\nargv = [\"true\"]\n\
                 description = \"d\"\nparameters = {{ type = \"object\" }}\n"
            ),
            "tools.\"s.a\": belongs to [mcp.s]; choose another name".to_owned(),
        ),
    ] {
        let problems = problems_of(text);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].contains(&expected), "{text}: {problems:?}");
    }
}

#[test]
fn tools_of_servers_are_known_by_the_begin_of_their_names() {
    let agent = |tools: &str| {
        format!("{AGENT}{URL}tools = [\"get_*\"]\n[agents.a]\nmodel = \"m\"\ntools = {tools}\n")
    };
    let workflow = format!("{URL}[workflows.w]\nsteps = [{{ id = \"a\", tool = \"s.get_a\" }}]\n");
    for text in [agent("[\"s.get_a\", \"s.get_b.c\"]"), workflow] {
        assert_eq!(problems_of(&text), [""; 0], "{text}");
    }
    for (tools, expected) in [
        ("[\"s.put\"]", "`tools` of [mcp.s] leaves out put"),
        ("[\"t.get_a\"]", "tool t.get_a is not configured"),
        ("[\"s.\"]", "tool s. is not configured"),
        ("[\"s\"]", "tool s is not configured"),
    ] {
        let problems = problems_of(&agent(tools));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(expected), "{problems:?}");
    }
    let misspelt = "[mcp.github]\nurl = \"http://a\"\n[workflows.w]\n\
                    steps = [{ id = \"a\", tool = \"gitub.get\" }]\n";
    let problems = problems_of(misspelt);
    assert!(problems[0].ends_with("did you mean github.get?"), "{problems:?}");
}

#[test]
fn what_is_set_for_tools_that_are_left_out_is_a_warning() {
    let text = format!("{URL}tools = [\"get_*\"]\nretry = [\"put\", \"get_a\", \"x*\"]\n");
    let warning = "c.toml:4:1: warning: mcp.s.retry: names put, which `tools` leaves out";
    assert_eq!(problems_of(&text), [warning]);
    let text = format!("{URL}approval = [\"s.put\", \"put\"]\n");
    let warning =
        "c.toml:3:1: warning: mcp.s.approval: names s.put; here tools have their own names, as put";
    assert_eq!(problems_of(&text), [warning]);
    let plain = format!("{URL}headers = {{ authorization = \"Bearer abc\" }}\n");
    assert!(problems_of(&plain)[0].contains("looks like a secret in plain text"));
}
