//! `greenroom dev`: the server while its configuration is being written.

use std::io::Write;
use std::iter;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use super::client::{compact, quoted};
use super::{Arguments, load_or_examples, print, run_server};
use crate::api::examples::example_of;
use crate::config::{Config, ServerConfig, StoreUrl};
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
    let (mut config, are_examples) = match load_or_examples(arguments) {
        Ok(loaded) => loaded,
        Err(problems) => {
            print(screen, &problems);
            return ExitCode::FAILURE;
        }
    };
    if !config.server.is_loopback() {
        if let Some(host) = &arguments.host {
            let why = format!(
                "greenroom: `dev` serves to this machine only, not at {host}; use `greenroom serve`"
            );
            print(screen, &[why]);
            return ExitCode::from(USAGE);
        }
        config.set_host(ServerConfig::default().host, "dev");
    }
    config.system.reload_every = RELOAD_EVERY;
    if options.fresh {
        config.store.url = StoreUrl::Memory;
    }
    let from = match are_examples {
        true => "the built-in examples; `greenroom init` writes a configuration of your own".into(),
        false => format!("{}, read again when it is saved", arguments.config_file().display()),
    };
    let tries = tries(&config);
    let begun =
        |address| print(&mut logs::screen(), &banner(&from, address, &tries, options.fresh));
    run_server(config, screen, begun)
}

/// Returns the lines that a start prints.
fn banner(from: &str, address: SocketAddr, tries: &[String], is_fresh: bool) -> Vec<String> {
    let mut lines = vec![
        format!("greenroom dev: {from}"),
        format!("  console  http://{address}/console"),
        format!("  API      http://{address}/ui"),
    ];
    let is_default = address.port() == ServerConfig::default().port;
    let server = if is_default { String::new() } else { format!(" --server http://{address}") };
    let heads = iter::once("  try      ").chain(iter::repeat("           "));
    lines.extend(heads.zip(tries).map(|(head, line)| format!("{head}{line}{server}")));
    let then = if is_fresh { "nothing is kept" } else { "what waits continues at the next start" };
    lines.push(format!("  Ctrl-C ends it; {then}"));
    lines
}

/// Returns command lines that call what is configured.
fn tries(config: &Config) -> Vec<String> {
    let agents = config.agents.keys().take(SHOWN_MAX);
    let agents = agents.map(|id| format!("greenroom agents run {id} Hello"));
    let workflows = config.workflows.iter().take(SHOWN_MAX).map(|(id, plan)| {
        let input = plan.definition.input_schema.as_ref().map(example_of);
        let input = input.map(|input| format!(" -i {}", quoted(&compact(&input))));
        format!("greenroom workflows run {id} --watch{}", input.unwrap_or_default())
    });
    workflows.chain(agents).collect()
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
        assert_eq!(tries, ["greenroom workflows run greet --watch -i '{\"who\":\"Ann\"}'"]);
        let address = "127.0.0.1:4000".parse().unwrap();
        let lines = banner("c.toml", address, &tries, true);
        assert_eq!(lines[3], format!("  try      {} --server http://127.0.0.1:4000", tries[0]));
        assert_eq!(lines[4], "  Ctrl-C ends it; nothing is kept");
    }

    #[test]
    fn other_machines_are_not_served() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        std::fs::write(&path, "[auth]\nprovider = \"none\"\n").unwrap();
        let path = path.to_str().unwrap();
        let line = ["greenroom", "dev", "--host", "0.0.0.0", "--config", path];
        let mut screen = Vec::new();
        let exit = run(&Arguments::parse_from(line), Options { fresh: true }, &mut screen);
        assert_eq!(exit, ExitCode::from(USAGE));
        let printed = String::from_utf8(screen).unwrap();
        assert!(printed.starts_with("greenroom: `dev` serves to this machine only"), "{printed}");
    }
}
