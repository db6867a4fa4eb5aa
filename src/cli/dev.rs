//! `greenroom dev`: the server while its configuration is being written.

use std::io::Write;
use std::iter;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use super::client::{compact, quoted};
use super::{Arguments, checked, print, read_or_examples, run_server};
use crate::api::examples::example_of;
use crate::config::{Config, ConfigProblem, ServerConfig, StoreConfig, StoreUrl};
use crate::telemetry::logs;

/// Interval in which changed files are noticed, sooner than a server in production has to.
const RELOAD_EVERY: Duration = Duration::from_millis(300);

/// Definitions of each kind that are named.
const SHOWN_MAX: usize = 3;

/// Exit code of a command line that is refused.
const USAGE: u8 = 2;

/// Options of `dev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Keep everything in memory: each start begins with nothing.
    #[arg(long)]
    fresh: bool,
}

/// Serves to this machine only, reloads what is saved, and prints what to try.
pub(super) fn run(arguments: &Arguments, options: Options, screen: &mut dyn Write) -> ExitCode {
    let (config, are_examples) = match chosen(arguments, options) {
        Ok(chosen) => chosen,
        Err((exit, problems)) => {
            print(screen, &problems);
            return exit;
        }
    };
    let from = match are_examples {
        true => "the built-in examples; `greenroom init` writes a configuration of your own".into(),
        false => format!("{}, read again when it is saved", arguments.config_file().display()),
    };
    let shown = Shown {
        from,
        has_console: config.console.is_on(config.environment),
        tries: tries(&config),
        is_fresh: options.fresh,
    };
    run_server(config, screen, |address| print(&mut logs::screen(), &shown.banner(address)))
}

/// Loads the configuration, changed for development, and checks the result.
fn chosen(
    arguments: &Arguments,
    options: Options,
) -> Result<(Config, bool), (ExitCode, Vec<String>)> {
    let refused = |problems: Vec<ConfigProblem>| {
        (ExitCode::FAILURE, problems.iter().map(ToString::to_string).collect())
    };
    let (mut config, are_examples) = read_or_examples(arguments).map_err(refused)?;
    let is_open = !config.server.is_loopback();
    if let Some(host) = arguments.host.as_ref().filter(|_| is_open) {
        let why = format!(
            "greenroom: `dev` serves to this machine only, not at {host}; use `greenroom serve`"
        );
        return Err((ExitCode::from(USAGE), vec![why]));
    }
    // also of a host that is open to this machine only: one that is saved later may be another
    let host = if is_open { ServerConfig::default().host } else { config.server.host.clone() };
    config.set_host(host, "dev");
    config.system.reload_every = RELOAD_EVERY;
    if options.fresh {
        config.store = StoreConfig { url: StoreUrl::Memory, ..StoreConfig::default() };
    }
    Ok((checked(config).map_err(refused)?, are_examples))
}

/// Parts of what a start prints.
struct Shown {
    from: String,
    has_console: bool,
    tries: Vec<String>,
    is_fresh: bool,
}

impl Shown {
    fn banner(&self, address: SocketAddr) -> Vec<String> {
        let Self { from, has_console, tries, is_fresh } = self;
        let mut lines = vec![format!("greenroom dev: {from}")];
        if *has_console {
            lines.push(format!("  console  http://{address}/console"));
        }
        lines.push(format!("  API      http://{address}/ui"));
        // a profile or a variable could name another server
        let server = format!("--server http://{address}");
        let heads = iter::once("  try      ").chain(iter::repeat("           "));
        let lines_of_tries = heads
            .zip(tries)
            .map(|(head, line)| head.to_owned() + &line.replacen("{server}", &server, 1));
        lines.extend(lines_of_tries);
        let then = match is_fresh {
            true => "nothing is kept",
            false => "what waits continues at the next start",
        };
        lines.push(format!("  Ctrl-C ends it; {then}"));
        lines
    }
}

/// Returns command lines that call what is configured, with `{server}` in place of the server.
fn tries(config: &Config) -> Vec<String> {
    let token = match (config.auth.signs_tokens(), config.auth.has_provider()) {
        (true, _) => Some("export GREENROOM_TOKEN=$(greenroom token issue me)"),
        (false, true) => Some("export GREENROOM_TOKEN=…"),
        (false, false) => None,
    };
    let agents = config.agents.keys().take(SHOWN_MAX);
    let agents = agents.map(|id| format!("greenroom agents run {{server}} {id} Hello"));
    let workflows = config.workflows.iter().take(SHOWN_MAX).map(|(id, plan)| {
        let input = plan.definition.input_schema.as_ref().map(example_of);
        let input = input.map(|input| format!(" -i {}", quoted(&compact(&input))));
        format!("greenroom workflows run {{server}} {id} --watch{}", input.unwrap_or_default())
    });
    token.map(str::to_owned).into_iter().chain(workflows).chain(agents).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn commands_have_an_input_that_their_workflow_takes() {
        let text = "[workflows.greet]\ninput_schema = { type = \"object\", required = [\"who\"], \
                    properties = { who = { type = \"string\", examples = [\"Ann\"] } } }\n\
                    steps = [{ id = \"a\", map = { n = \"1\" } }]\n";
        let config = Config::parse(text, "c.toml").unwrap();
        let tries = tries(&config);
        let shown = Shown { from: "c.toml".into(), has_console: false, tries, is_fresh: true };
        let expected = [
            "greenroom dev: c.toml",
            "  API      http://127.0.0.1:4000/ui",
            "  try      greenroom workflows run --server http://127.0.0.1:4000 greet --watch -i \
             '{\"who\":\"Ann\"}'",
            "  Ctrl-C ends it; nothing is kept",
        ];
        assert_eq!(shown.banner("127.0.0.1:4000".parse().unwrap()), expected);
    }

    #[test]
    fn only_this_machine_is_served() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        let path = path.to_str().unwrap();
        let chosen = |text: &str, more: &[&str]| {
            std::fs::write(path, text).unwrap();
            let line = [&["greenroom", "dev", "--config", path], more].concat();
            chosen(&Arguments::parse_from(line), Options { fresh: true })
        };
        // what a file for production has is no reason to refuse
        let text = "server.host = \"0.0.0.0\"\n[store]\nurl = \"sqlite://no/where.db\"\n";
        let (config, _) = chosen(text, &[]).unwrap();
        assert_eq!(
            (config.server.host.as_str(), &config.store.url),
            ("127.0.0.1", &StoreUrl::Memory)
        );
        let (exit, problems) = chosen("", &["--host", "0.0.0.0"]).unwrap_err();
        assert_eq!(exit, ExitCode::from(USAGE));
        assert!(problems[0].starts_with("greenroom: `dev` serves to this machine only"));
    }

    #[test]
    fn callers_get_a_token_first() {
        let config = |text: &str| Config::parse(text, "c.toml").unwrap();
        let of_secret = tries(&config("[auth.jwt]\n"));
        assert_eq!(of_secret, ["export GREENROOM_TOKEN=$(greenroom token issue me)"]);
        let of_keys = tries(&config("[auth.jwt]\njwks_url = \"https://login.example/keys\"\n"));
        assert_eq!(of_keys, ["export GREENROOM_TOKEN=…"]);
    }
}
