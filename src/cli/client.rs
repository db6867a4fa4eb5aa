//! Commands that call a running server.

mod agents;
mod api;
mod bench;
mod complete;
mod events;
mod executions;
mod exit;
mod follow;
mod graph;
mod inbox;
mod logs;
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
mod workflows;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Subcommand};
use clap_complete::CompleteEnv;

pub(super) use self::exit::quoted;
use self::exit::{Exit, Failure};
use self::session::Session;
pub(super) use self::session::duration_of;
use self::settings::Options;
pub(super) use self::text::{compact, plain, pretty};
use super::Arguments;

/// Commands that call a running server.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(super) enum Command {
    /// Workflows of a running server: list, show and run them.
    Workflows(Group<workflows::Action>),
    /// Executions of a running server: find, follow and move them.
    Executions(Group<executions::Action>),
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
pub(super) fn run(command: &Command) -> ExitCode {
    finish(start(command))
}

/// Refuses a command because of an option of the server.
pub(super) fn refuse(option: &str) -> ExitCode {
    let refusal = Failure::usage(format!("{option} is for the server itself"));
    finish(Err(refusal.advise("name the server to call with --server URL")))
}

/// Prints a failure and returns the exit code.
fn finish(done: Result<Exit, Failure>) -> ExitCode {
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.is_silent() {
                // a closed terminal must not change the exit code
                let _ = writeln!(io::stderr(), "{failure}");
            }
            failure.exit.into()
        }
    }
}

fn start(command: &Command) -> Result<Exit, Failure> {
    // one thread is enough: nothing here computes
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(dispatch(command));
    // a thread that waits for a line of stdin must not keep the process
    runtime.shutdown_background();
    done
}

async fn dispatch(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Workflows(Group { options, action }) => {
            workflows::run(&Session::open(options)?, action).await
        }
        Command::Executions(Group { options, action }) => {
            executions::run(&Session::open(options)?, action).await
        }
        Command::Inbox(Group { options, action }) => {
            inbox::run(&Session::open(options)?, action).await
        }
        Command::Agents(Group { options, action }) => {
            agents::run(&Session::open(options)?, action).await
        }
        Command::Logs(logs) => logs::run(&Session::open(&logs.options)?, logs).await,
        Command::Traces(Group { options, action }) => {
            traces::run(&Session::open(options)?, action).await
        }
        Command::Tools(Group { options, action }) => {
            tools::run(&Session::open(options)?, action).await
        }
        Command::Top(top) => top::run(&Session::open(&top.options)?, top).await,
        Command::Bench(bench) => bench::run(&Session::open(&bench.options)?, bench).await,
        Command::Profile(Group { options, action }) => profile::run(options, action).await,
        Command::Completions(options) => complete::script(options),
        Command::Man(options) => complete::man(options),
    }
}
