//! Commands that call a running server.

mod api;
mod events;
mod executions;
mod exit;
mod follow;
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
mod workflows;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Subcommand;

use self::exit::{Exit, Failure};
use self::session::Session;
use self::settings::Options;

/// Commands that call a running server.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(super) enum Command {
    /// Workflows of a running server: list, show and run them.
    Workflows(Group<workflows::Action>),
    /// Executions of a running server: find, follow and move them.
    Executions(Group<executions::Action>),
    /// Servers and tokens by name.
    Profile(Group<profile::Action>),
}

/// Actions on one subject, with the options that all of them have.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Group<A: Subcommand> {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    action: A,
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
        Command::Profile(Group { options, action }) => profile::run(options, action),
    }
}
