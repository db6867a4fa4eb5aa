//! The command line.

mod check;
mod client;
mod config_show;
mod dev;
mod doctor;
mod healthcheck;
mod init;
mod loading;
#[cfg(feature = "postgres")]
mod nodes;
mod openapi;
mod output;
#[cfg(feature = "sqlite")]
mod restore;
mod schema;
#[cfg(feature = "sqlite")]
mod store;
#[cfg(feature = "testing")]
mod test;
#[cfg(feature = "jwt")]
mod token;
mod whole_file;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

#[cfg(feature = "testing")]
use self::loading::read_open;
use self::loading::{
    checked, load, load_or_examples, problems_of_rules, problems_of_secrets, read, read_or_examples,
};
use crate::app::{self, Registered, StopsOn, StoreLost};
use crate::config::Config;
use crate::handle::Handle;
use crate::telemetry::logs;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
#[cfg(feature = "sqlite")]
use greenroom_store_sqlite::Backup;

/// Exit code after another server has taken the store over, or this one could not use it any longer
/// (`EX_TEMPFAIL`): a restart finds out whether it can be used.
const STORE_LOST: u8 = 75;

/// Exit code after the reader of the output has closed it, as of programs that SIGPIPE ends.
const OUTPUT_CLOSED: u8 = 141;

/// The configuration file if none is named.
const CONFIG_FILE: &str = "config.toml";

/// Name of the examples in messages, in place of a file.
const EXAMPLES: &str = "the built-in examples";

const NO_FILE: &str = "greenroom: there is no config.toml here: serving the built-in examples; \
                       `greenroom init` writes a configuration of your own";

/// AI agents and durable workflows as actors, behind HTTP.
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, next_help_heading = "Server options")]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The configuration file [default: config.toml].
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen at, overriding the configuration.
    #[arg(long, global = true)]
    host: Option<String>,
    /// Port to listen at, overriding the configuration.
    #[arg(long, global = true)]
    port: Option<u16>,
    /// Level of the console log, or levels by module as in `warn,greenroom=debug`.
    #[arg(long, global = true, value_name = "FILTER", default_value = "info")]
    log: String,
    #[command(flatten)]
    leading: client::Leading,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
enum Command {
    /// Serves agents and workflows; the default. Without a file, the built-in examples.
    Serve,
    /// Serves to this machine while a configuration is being written, and prints what to try.
    Dev(dev::Options),
    /// Writes a small configuration to begin with.
    Init(init::Options),
    /// Prints all problems of the configuration without starting the server.
    Check(check::Options),
    /// Runs the tests of workflows, in virtual time and without leaving this process.
    #[cfg(feature = "testing")]
    Test(test::Options),
    /// Looks whether this machine has what the server needs: port, disk, store, secrets, network.
    Doctor(doctor::Options),
    /// Shows the configuration in effect.
    #[command(subcommand)]
    Config(config_show::Command),
    /// Prints the JSON Schema of the configuration, with which editors complete and check it.
    Schema(schema::Options),
    /// Asks the configured server whether it lives; exits with 1 if it does not.
    Healthcheck(healthcheck::Options),
    /// Copies the configured store to a new file, also while a server is using it.
    #[cfg(feature = "sqlite")]
    Backup {
        /// The new file; an existing one is never overwritten.
        file: PathBuf,
    },
    /// Makes the configured store out of a backup, while no server uses it.
    #[cfg(feature = "sqlite")]
    Restore(restore::Options),
    /// Prints the API document (OpenAPI 3.1) of the configuration.
    Openapi,
    /// Issues tokens that the server accepts, and shows what is in others.
    #[cfg(feature = "jwt")]
    #[command(subcommand)]
    Token(token::Command),
    /// Shows the servers that use the configured database, also if none of them answers.
    #[cfg(feature = "postgres")]
    Nodes(nodes::Options),
    /// Moves stores that no server uses.
    #[cfg(feature = "sqlite")]
    #[command(subcommand)]
    Store(store::Command),
    #[command(flatten)]
    Client(Box<client::Command>),
}

impl Command {
    /// Returns true for commands that call a running server, as named by the user.
    fn calls_a_server(&self) -> bool {
        matches!(self, Self::Client(_))
    }
}

impl Arguments {
    /// Returns an option that overrides the configuration, which only a server has.
    fn overriding(&self) -> Option<&'static str> {
        let given = [
            ("--config", self.config.is_some()),
            ("--host", self.host.is_some()),
            ("--port", self.port.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }

    fn config_file(&self) -> &Path {
        self.config.as_deref().unwrap_or_else(|| Path::new(CONFIG_FILE))
    }

    /// Returns false if no file is named and the default one is not there.
    fn has_default_file(&self) -> bool {
        // a link to nothing, or a file that may not be seen, is a broken configuration
        let is_missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        let found = Path::new(CONFIG_FILE).symlink_metadata();
        self.config.is_some() || !found.is_err_and(is_missing)
    }
}

/// Runs the command line.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if client::complete(&arguments) {
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::try_parse_from(&arguments) {
        Ok(arguments) => arguments,
        Err(refusal) if refusal.use_stderr() && client::asks_for_json(&arguments) => {
            return client::refuse_as_json(&refusal.render().to_string());
        }
        Err(refusal) => {
            // a closed terminal must not change the exit code
            let _ = refusal.print();
            if let Some(file) = stray_file(&refusal) {
                let _ = writeln!(io::stderr(), "\nto use this configuration: --config {file}");
            }
            return ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(2));
        }
    };
    let command = arguments.command.as_ref().unwrap_or(&Command::Serve);
    if let (Some(option), false) = (arguments.leading.given(), command.calls_a_server()) {
        return client::refuse_leading(option);
    }
    match command {
        Command::Serve => {
            // flush the log before the exit; the terminal may be closed
            let exit = serve(&arguments, &mut logs::screen());
            logs::drain_screen();
            exit
        }
        Command::Dev(options) => {
            let exit = dev::run(&arguments, *options, &mut logs::screen());
            logs::drain_screen();
            exit
        }
        Command::Check(options) => check::check(&arguments, *options, &mut io::stdout()),
        #[cfg(feature = "testing")]
        Command::Test(options) => test::run(&arguments, options),
        Command::Doctor(options) => doctor::run(&arguments, *options),
        Command::Init(options) => finish(init::init(options).map_err(|why| vec![why])),
        Command::Config(command) => config_show::run(&arguments, *command),
        Command::Schema(options) => finish(schema::run(options).map_err(|why| vec![why])),
        Command::Healthcheck(options) => {
            let answer = healthcheck::ask(&arguments, *options);
            finish(answer.map(|text| vec![text]).map_err(|why| vec![why]))
        }
        #[cfg(feature = "sqlite")]
        Command::Backup { file } => finish(copy_store(&arguments, file).map(|text| vec![text])),
        #[cfg(feature = "sqlite")]
        Command::Restore(options) => finish(restore::restore(&arguments, options)),
        Command::Openapi => openapi::run(&arguments),
        #[cfg(feature = "jwt")]
        Command::Token(command) => token::run(&arguments, command),
        #[cfg(feature = "postgres")]
        Command::Nodes(options) => nodes::run(&arguments, options),
        #[cfg(feature = "sqlite")]
        Command::Store(command) => store::run(&arguments, command),
        Command::Client(command) => match arguments.overriding() {
            Some(option) => client::refuse(option),
            None => client::run(command, &arguments.leading),
        },
    }
}

/// Returns a `.toml` file that was given where no argument is expected.
fn stray_file(refusal: &clap::Error) -> Option<&str> {
    let (ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) = refusal.kind() else {
        return None;
    };
    let kinds = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let written = kinds.into_iter().find_map(|kind| refusal.get(kind))?;
    let ContextValue::String(written) = written else { return None };
    written.ends_with(".toml").then_some(written)
}

fn serve(arguments: &Arguments, screen: &mut dyn Write) -> ExitCode {
    let config = match load_or_examples(arguments) {
        Ok((config, are_examples)) => {
            if are_examples {
                print(screen, &[NO_FILE]);
            }
            config
        }
        Err(problems) => {
            print(screen, &problems);
            return ExitCode::FAILURE;
        }
    };
    run_server(config, screen, |_| {})
}

/// Runs a server to its end. `begun` is called with its address.
fn run_server(config: Config, screen: &mut dyn Write, begun: impl FnOnce(SocketAddr)) -> ExitCode {
    match doctor::reach::accepted(SystemClock.now()) {
        Ok(warning) => print(screen, warning.as_slice()),
        Err(refusal) => {
            print(screen, &[refusal]);
            return ExitCode::FAILURE;
        }
    }
    let begun = |handle: Handle| begun(handle.address());
    match app::run(config, Registered::default(), StopsOn::Signals, begun) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print(screen, &[format!("greenroom: {error}")]);
            let is_store_lost = error.get_ref().is_some_and(|error| error.is::<StoreLost>());
            if is_store_lost { ExitCode::from(STORE_LOST) } else { ExitCode::FAILURE }
        }
    }
}

/// Prints a result to stdout, problems to stderr.
fn finish(result: Result<Vec<String>, Vec<String>>) -> ExitCode {
    match result {
        Ok(lines) => print_result(&mut io::stdout(), &lines, ExitCode::SUCCESS),
        Err(problems) => {
            print(&mut io::stderr(), &problems);
            ExitCode::FAILURE
        }
    }
}

/// Prints what a command was asked for, and returns its exit code: another one if that could not be
/// written, since its reader has only a part.
fn print_result<T: std::fmt::Display>(
    screen: &mut dyn Write,
    lines: &[T],
    exit: ExitCode,
) -> ExitCode {
    let mut write = || {
        lines.iter().try_for_each(|line| screen.write_all(format!("{line}\n").as_bytes()))?;
        screen.flush()
    };
    match write() {
        Ok(()) => exit,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(OUTPUT_CLOSED),
        Err(error) => {
            print(
                &mut io::stderr(),
                &[format!("greenroom: the output cannot be written: {error}")],
            );
            ExitCode::FAILURE
        }
    }
}

/// Copies the store and returns a summary. Secrets, ports and hosts of the configuration are not
/// checked, because they do not matter here.
#[cfg(feature = "sqlite")]
fn copy_store(arguments: &Arguments, file: &Path) -> Result<String, Vec<String>> {
    let config = read(arguments)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let backup = app::back_up(&config.store, file)
        .map_err(|refusal| vec![format!("greenroom: {refusal}")])?;
    Ok(format!("{}: ok, {}", file.display(), content(backup)))
}

#[cfg(feature = "sqlite")]
fn content(Backup { bytes, executions, generations, conversations }: Backup) -> String {
    let executions = counted(executions, "execution");
    let generations = counted(generations, "generation");
    let conversations = counted(conversations, "conversation");
    format!("{bytes} bytes, {executions}, {generations}, {conversations}")
}

fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Writes lines. Ignores a closed output (`greenroom check | head`).
fn print<T: std::fmt::Display>(screen: &mut dyn Write, lines: &[T]) {
    for line in lines {
        let _ = screen.write_all(format!("{line}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let arguments = Arguments::parse_from(["greenroom", "--config", "no/such.toml"]);
        let mut screen = Vec::new();
        assert_eq!(serve(&arguments, &mut screen), ExitCode::FAILURE);
        let printed = String::from_utf8(screen).unwrap();
        assert_eq!(
            printed,
            "no/such.toml: no such file; name the configuration with --config FILE, or write one \
             with `greenroom init`\n"
        );
    }

    #[test]
    fn a_busy_port_ends_the_start_before_the_store_is_touched() {
        let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = busy.local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let (file, store) = (directory.path().join("c.toml"), directory.path().join("s.db"));
        let text =
            format!("[server]\nport = {port}\n[store]\nurl = \"sqlite://{}\"\n", store.display());
        std::fs::write(&file, text).unwrap();
        let line = ["greenroom", "--log", "off", "--config", file.to_str().unwrap()];
        let mut screen = Vec::new();
        assert_eq!(serve(&Arguments::parse_from(line), &mut screen), ExitCode::FAILURE);
        let printed = String::from_utf8(screen).unwrap();
        let expected = format!("greenroom: cannot listen at 127.0.0.1:{port}: ");
        assert!(printed.starts_with(&expected), "{printed}");
        assert!(!store.exists(), "the store was opened");
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_database_is_backed_up_by_its_own_tools() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        std::fs::write(&path, "[store]\nurl = \"postgres://ann:hidden@db/shop\"\n").unwrap();
        let line = ["greenroom", "backup", "copy.db", "--config", path.to_str().unwrap()];
        let refusal = copy_store(&Arguments::parse_from(line), Path::new("copy.db")).unwrap_err();
        assert_eq!(
            refusal,
            ["greenroom: the configured store is in PostgreSQL, whose own tools back it up while \
              the server runs: pg_basebackup or pgBackRest copy the whole server, and this \
              database alone is copied by pg_dump --format=custom --username=ann \
              --file=greenroom.dump shop"]
        );
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        std::fs::write(&path, "[server]\nhost = \"0.0.0.0\"\nport = 1\n").unwrap();
        let path = path.to_str().unwrap();
        let line = ["greenroom", "--host", "::1", "--port", "0", "serve", "--config", path];
        let config = load(&Arguments::parse_from(line)).unwrap();
        assert_eq!((config.server.host.as_str(), config.server.port), ("::1", 0));
    }
}
