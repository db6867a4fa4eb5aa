//! Commands that call a running server.

mod agents;
mod api;
mod attempts;
mod bench;
mod complete;
mod events;
mod executions;
mod exit;
mod find;
mod follow;
mod graph;
mod inbox;
mod logs;
mod problems;
mod profile;
mod profiles;
mod refusal;
mod screen;
mod session;
mod settings;
mod show;
mod sse;
mod table;
mod text;
mod tools;
mod top;
mod traces;
mod unreachable;
mod wait;
mod workflows;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Subcommand};
use clap_complete::CompleteEnv;

pub(super) use self::exit::quoted;
use self::exit::{Exit, Failure};
use self::screen::Form;
use self::session::Session;
#[cfg(feature = "jwt")]
pub(super) use self::session::duration_of;
pub(super) use self::settings::Leading;
use self::settings::Options;
pub(super) use self::text::{compact, plain, pretty};
use super::Arguments;

/// Commands that call a running server.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(super) enum Command {
    /// Workflows of a running server: list, show and run them.
    Workflows(Group<workflows::Action>),
    /// Executions of a running server: find, follow and move them.
    Executions(Box<Group<executions::Action>>),
    /// Everything that waits for a person: list, show and answer it.
    Inbox(Group<inbox::Action>),
    /// Agents of a running server: list, show and ask them.
    Agents(Group<agents::Action>),
    /// The log of a running server.
    Logs(logs::Logs),
    /// Traces of executions and generations.
    Traces(Group<traces::Action>),
    /// Tools of a running server: list and call them.
    Tools(Group<tools::Action>),
    /// Shows what a running server does now.
    Top(top::Top),
    /// Measures how fast a running server answers.
    Bench(bench::Bench),
    /// Servers and tokens by name.
    Profile(Group<profile::Action>),
    /// Prints the script with which a shell completes commands and ids.
    Completions(complete::Completions),
    /// Prints man pages.
    Man(complete::Man),
}

/// Actions on one subject, with the options that all of them have.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Group<A: Subcommand> {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    action: A,
}

/// Answers a shell that asks for completions. Returns true if this process is one that it asked.
pub(super) fn complete(arguments: &[OsString]) -> bool {
    let folder = std::env::current_dir().ok();
    let engine = CompleteEnv::with_factory(Arguments::command).var(complete::ASKED);
    // a refusal would stand in the prompt
    engine.try_complete(arguments, folder.as_deref()).unwrap_or(true)
}

/// Runs a command. Prints its result to stdout, problems to stderr.
pub(super) fn run(command: &Command, leading: &Leading) -> ExitCode {
    let options = command.options().map(|options| options.behind(leading)).unwrap_or_default();
    let done = start(command, &options);
    finish(done.map_err(|failure| failure.addressed(&options.addressing())), options.form())
}

/// Refuses a command because of an option of the server.
pub(super) fn refuse(option: &str) -> ExitCode {
    let refusal = Failure::usage(format!("{option} is for the server itself"));
    finish(Err(refusal.advise("name the server to call with --server URL")), Form::Table)
}

/// Refuses a command of the server because of an option of commands that call one.
pub(super) fn refuse_leading(option: &str) -> ExitCode {
    let refusal = Failure::usage(format!("{option} is for commands that call a server"));
    let advice = "`greenroom --help` lists them; a server itself has --config, --host and --port";
    finish(Err(refusal.advise(advice)), Form::Table)
}

/// Returns true if a command line that cannot be read asks for JSON, as `-o json`.
pub(super) fn asks_for_json(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        let form = match &*word {
            "-o" | "--output" => words.next(),
            word => {
                let short = || word.strip_prefix("-o").map(|it| it.strip_prefix('=').unwrap_or(it));
                let form = word.strip_prefix("--output=").or_else(short);
                form.map(|form| form.to_owned().into())
            }
        };
        if form.is_some_and(|form| form == "json" || form == "jsonl") {
            return true;
        }
    }
    false
}

/// Refuses a command line in one line of JSON. `text` is that for people.
pub(super) fn refuse_as_json(text: &str) -> ExitCode {
    let mut parts = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = parts.next().unwrap_or_default();
    let refusal = Failure::usage(message.strip_prefix("error: ").unwrap_or(message));
    finish(Err(parts.fold(refusal, |refusal, advice| refusal.advise(advice))), Form::Json)
}

/// Prints a failure and returns the exit code.
fn finish(done: Result<Exit, Failure>, form: Form) -> ExitCode {
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.is_silent() {
                // a closed terminal must not change the exit code
                let _ = match form {
                    Form::Table => writeln!(io::stderr(), "{failure}"),
                    Form::Json | Form::Jsonl => writeln!(io::stderr(), "{}", failure.to_json()),
                };
            }
            failure.exit.into()
        }
    }
}

fn start(command: &Command, options: &Options) -> Result<Exit, Failure> {
    // one thread is enough: nothing here computes
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(dispatch(command, options));
    // a thread that waits for a line of stdin must not keep the process
    runtime.shutdown_background();
    done
}

impl Command {
    /// Returns the options about the server and the output, of commands that have them.
    fn options(&self) -> Option<&Options> {
        match self {
            Self::Workflows(group) => Some(&group.options),
            Self::Executions(group) => Some(&group.options),
            Self::Inbox(group) => Some(&group.options),
            Self::Agents(group) => Some(&group.options),
            Self::Logs(logs) => Some(&logs.options),
            Self::Traces(group) => Some(&group.options),
            Self::Tools(group) => Some(&group.options),
            Self::Top(top) => Some(&top.options),
            Self::Bench(bench) => Some(&bench.options),
            Self::Profile(group) => Some(&group.options),
            Self::Completions(_) | Self::Man(_) => None,
        }
    }
}

async fn dispatch(command: &Command, options: &Options) -> Result<Exit, Failure> {
    let open = || Session::open(options);
    match command {
        Command::Workflows(group) => workflows::run(&open()?, &group.action).await,
        Command::Executions(group) => executions::run(&open()?, &group.action).await,
        Command::Inbox(group) => inbox::run(&open()?, &group.action).await,
        Command::Agents(group) => agents::run(&open()?, &group.action).await,
        Command::Logs(logs) => logs::run(&open()?, logs).await,
        Command::Traces(group) => traces::run(&open()?, &group.action).await,
        Command::Tools(group) => tools::run(&open()?, &group.action).await,
        Command::Top(top) => top::run(&open()?, top).await,
        Command::Bench(bench) => bench::run(&open()?, bench).await,
        Command::Profile(group) => profile::run(options, &group.action).await,
        Command::Completions(options) => complete::script(options),
        Command::Man(options) => complete::man(options),
    }
}
