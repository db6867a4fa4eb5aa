//! Configurations in effect, and secrets planted in them.

use clap::Parser as _;
use serde_json::{Value, json};

use super::*;

/// Returns what `greenroom config show` prints for a file with this text.
fn shown_of(text: &str, options: &[&str]) -> Result<String, Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::write(directory.path().join("w.toml"), INCLUDED).unwrap();
    let begin = ["greenroom", "config", "show", "--config", path.to_str().unwrap()];
    let arguments = Arguments::parse_from([&begin, options].concat());
    let Some(crate::cli::Command::Config(Command::Show(options))) = arguments.command else {
        panic!("not `config show`");
    };
    let folder = format!("{}/", directory.path().display());
    let clean = |text: String| text.replace(&folder, "");
    let shown = shown(&arguments, options);
    shown.map(clean).map_err(|problems| problems.into_iter().map(clean).collect())
}

const INCLUDED: &str = "[workflows.included]\nsteps = [{ id = \"a\", map = 1 }]\n";

fn json_of(text: &str, options: &[&str]) -> Value {
    serde_json::from_str(&shown_of(text, &[&["-o", "json"], options].concat()).unwrap()).unwrap()
}

#[test]
fn each_value_has_an_origin() {
    let text = "include = [\"w.toml\"]\n[server]\nhost = \"::1\"\nworkers = 2\n\
                [logs]\nkeep = \"2d\"\n[models.m]\nprovider = \"mock\"\n";
    let shown = json_of(text, &["--port", "7", "--redacted"]);
    let server = &shown["config"]["server"];
    assert_eq!((&server["host"], &server["workers"]), (&json!("::1"), &json!(2)));
    assert_eq!((&server["port"], &server["keep_alive"]), (&json!(7), &json!("5s")));
    // the former name is shown as the present one
    assert_eq!(shown["config"]["logs"]["retention"], "2d");
    assert_eq!(shown["config"]["store"]["password"], Value::Null);
    assert_eq!(shown["config"]["workflows"]["included"]["steps"][0]["id"], "a");
    for (key, origin) in [
        ("server.host", "file"),
        ("server.port", "command line"),
        ("server.keep_alive", "default"),
        ("logs.retention", "file"),
        ("models.m", "file"),
        ("workflows.included", "file"),
        ("include", "file"),
    ] {
        assert_eq!(shown["origins"][key], origin, "{key}");
    }
}

#[test]
fn toml_marks_what_is_not_in_the_file() {
    let text =
        "[server]\nhost = \"::1\"\n[agents.a]\nmodel = \"m\"\n[models.m]\nprovider = \"mock\"\n";
    let shown = shown_of(text, &["--port", "7"]).unwrap();
    for line in [
        "# The configuration in effect of c.toml. Secrets are left out.",
        "host = \"::1\"",
        "port = 7 # command line",
        "keep_alive = \"5s\" # default",
        "[agents.a]",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "no {line} in\n{shown}");
    }
    shown.parse::<toml::Table>().unwrap();
    let shown = shown_of(crate::config::shipped::SHIPPED, &[]).unwrap();
    crate::config::Config::parse(&shown, "shown.toml").unwrap();
}

#[test]
fn a_broken_configuration_is_refused_with_its_problems() {
    let problems = shown_of("[server]\nhots = 1\nport = \"x\"\n", &[]).unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("c.toml:2:1: server.hots: unknown key"), "{problems:?}");
    let problems = shown_of("a = [", &[]).unwrap_err();
    assert!(problems[0].starts_with("c.toml:1:"), "{problems:?}");
}

#[test]
fn variables_are_named_with_their_state() {
    let text = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\napi_key = \"secret:NO_SUCH_KEY\"\n\
                [store]\nurl = \"memory:\"\npassword = \"${CARGO_PKG_NAME}\"\n";
    let shown = json_of(text, &[]);
    assert_eq!(shown["variables"], json!({ "CARGO_PKG_NAME": true, "NO_SUCH_KEY": false }));
    assert_eq!(shown["config"]["models"]["m"]["api_key"], "secret:NO_SUCH_KEY");
    assert_eq!(shown["config"]["store"]["password"], "${CARGO_PKG_NAME}");
    let shown = shown_of(text, &[]).unwrap();
    assert!(shown.contains("# The environment variable NO_SUCH_KEY is not set.\n"), "{shown}");
}

/// Plants a secret in every field that can have one.
const PLANTED: &str = r#"
[store]
url = "postgres://ann:PLANTED1@db/shop?options=-c%20a%3DPLANTED2"
[inbox]
base_url = "https://green.example/a1b2c3d4e5f6PLANTED3"
[auth]
api_keys = [{ id = "k", hash = "sha256:HASH", user = { token = "PLANTED4" } }]
[auth.jwt]
jwks_url = "https://login.example/keys?code=PLANTED5"
[console]
login_url = "https://login.example/?key=PLANTED6"
[updates]
install = ["cargo", "install", "--token", "PLANTED7", "--secret=PLANTED8", "{package}"]
registry = "sparse+https://index.example/a1b2c3d4e5f6a7PLANTED9/"
[telemetry]
headers = { authorization = "Bearer PLANTED10", x-scope = "PLANTED11" }
resource = { "team.password" = "PLANTED12" }
[models.m]
provider = "openai"
model = "x"
base_url = "https://gateway.example/v1a2b3c4d5e6PLANTED13/"
[agents.a]
model = "m"
instructions = "Call https://ann:PLANTED14@a.example/?sig=PLANTED15 with Bearer PLANTED16"
options = { provider_options = { api_key = "PLANTED17", inner = [{ clientSecret = "PLANTED18" }] } }
[tools.h]
kind = "http"
description = "d"
parameters = { type = "object" }
method = "POST"
url = "https://a.example/?key=PLANTED19&n={{ args.n }}"
headers = { authorization = "Basic PLANTED20", cookie = "a=PLANTED21", x-any = "{{ 'PLANTED22' }}" }
query = { sig = "'PLANTED23'", n = "args.n" }
body = { password = "'PLANTED24'" }
[tools.parameters]
kind = "http"
description = "d"
parameters = { type = "object" }
url = "https://a.example/"
headers = { x-key = "PLANTED36" }
[tools.c]
kind = "command"
description = "d"
parameters = { type = "object" }
argv = ["true", "--password=PLANTED25", "--api-key", "PLANTED26", "https://u:PLANTED27@a.example"]
env = { ANY = "PLANTED28" }
[[workflows.w.steps]]
id = "a"
http = { url = "https://a.example/?t=PLANTED29", headers = { x = "PLANTED30" }, query = { k = "'PLANTED31'" } }
[[workflows.w.steps]]
id = "b"
command = { argv = ["true", "--token=PLANTED32"], env = { K = "PLANTED33" } }
[[workflows.w.steps]]
id = "c"
map = { key = "'sk-PLANTED34'", access_token = "'PLANTED35'" }
[mcp.p]
command = ["true", "--token=PLANTED37", "--api-key", "PLANTED38"]
env = { ANY = "PLANTED39" }
[mcp.h]
url = "https://mcp.example/?key=PLANTED40"
headers = { x-any = "PLANTED41" }
"#;

#[cfg(all(feature = "postgres", feature = "otel"))]
#[test]
fn planted_secrets_do_not_appear() {
    let hash = "a".repeat(64);
    let text = PLANTED.replace("HASH", &hash);
    for options in [&["-o", "toml"], &["-o", "json"]] {
        let shown = shown_of(&text, options).unwrap();
        let left: Vec<_> = shown.lines().filter(|line| line.contains("PLANTED")).collect();
        assert!(left.is_empty() && !shown.contains(&hash), "{left:#?}");
        // what is no secret is still there
        for rest in ["db/shop", "n={{ args.n }}", "login.example", "\"args.n\""] {
            assert!(shown.contains(rest), "{rest}:\n{shown}");
        }
    }
}

#[test]
fn programs_of_mcp_servers_are_shown_with_their_references() {
    let text = "[mcp.p]\ncommand = [\"npx\", \"-y\", \"files\", \"--token\", \"s3cret\"]\n\
                env = { KEY = \"Bearer secret:NO_SUCH_KEY\" }\n";
    let shown = json_of(text, &[]);
    let program = &shown["config"]["mcp"]["p"];
    assert_eq!(program["command"], json!(["npx", "-y", "files", "--token", "[redacted]"]));
    assert_eq!(program["env"]["KEY"], "Bearer secret:NO_SUCH_KEY");
    assert_eq!(shown["variables"], json!({ "NO_SUCH_KEY": false }));
}

#[test]
fn values_of_variables_do_not_appear_where_they_are_written_out() {
    let value = env!("CARGO_PKG_DESCRIPTION");
    for names_it in [
        "provider = \"openai\"\nmodel = \"x\"\napi_key = \"secret:CARGO_PKG_DESCRIPTION\"\n",
        "provider = \"mock\"\n[[faces.mcp]]\nagents = \"*\"\nsecret = \"secret:CARGO_PKG_DESCRIPTION\"\n",
    ] {
        let agent = format!("[agents.a]\nmodel = \"m\"\ninstructions = \"The key is {value}\"\n");
        let shown = shown_of(&format!("[models.m]\n{names_it}{agent}"), &[]).unwrap();
        assert!(!shown.contains(value), "{shown}");
    }
}
