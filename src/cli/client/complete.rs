//! Shell completions, which ask the server for its ids, and man pages.

mod words;

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory as _, ValueEnum};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use serde_json::Value;

use super::api::{Api, Call};
use super::exit::{Exit, Failure, quoted};
use super::settings::{Options, Target};
use super::text::text;
use crate::cli::Arguments;

pub(super) use self::words::{json_files, profiles, steps};

/// Has bash take ids such as `orders:7`, URLs and `@FILE` as one word each.
const BASH_WORDS: &str = "COMP_WORDBREAKS=${COMP_WORDBREAKS//[:@]/}\n";

/// Environment variable by which a shell asks for completions.
pub(in crate::cli) const ASKED: &str = "GREENROOM_COMPLETE";

/// Completes at the first request as well if zsh loaded the script from a folder of `fpath`: it runs
/// such a script then, which only defines what completes.
const ZSH_FIRST: &str = "
if [[ $funcstack[1] == _greenroom ]]; then
    _clap_dynamic_completer_greenroom \"$@\"
fi
";

/// Time in which a server has to answer: someone waits at the prompt.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shell that completes commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Options of `completions`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Man {
    /// Command to print the page of, as `executions watch`.
    command: Vec<String>,
    /// Write the pages of all commands into this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

/// Prints the script that a shell reads at its start.
pub(super) fn script(options: &Completions) -> Result<Exit, Failure> {
    let shell = match options.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let mut script = match options.shell {
        Shell::Bash => BASH_WORDS.as_bytes().to_vec(),
        Shell::Zsh | Shell::Fish => Vec::new(),
    };
    let name = "greenroom";
    if let Some(shell) = Shells::builtins().completer(shell) {
        shell.write_registration(ASKED, name, name, name, &mut script)?;
    }
    if options.shell == Shell::Zsh {
        script.extend_from_slice(ZSH_FIRST.as_bytes());
    }
    io::stdout().write_all(&script)?;
    Ok(Exit::Ok)
}

/// Prints a page, or writes all of them.
pub(super) fn man(options: &Man) -> Result<Exit, Failure> {
    let mut command = Arguments::command();
    command.build();
    if let Some(folder) = &options.dir {
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
            .map_err(|error| {
                Failure::new(Exit::Failed, format!("{}: {error}", folder.display()))
                    .advise("name a folder that can be written to")
            })?;
        return Ok(Exit::Ok);
    }
    let mut found = &command;
    for name in &options.command {
        found = found.find_subcommand(name).ok_or_else(|| {
            let known = found.get_subcommands().map(clap::Command::get_name);
            let failure =
                Failure::usage(format!("there is no command {}", options.command.join(" ")));
            match crate::nearest::nearest(name, known) {
                Some(near) => failure.advise(format!("did you mean {}?", quoted(&near))),
                None => failure.advise("`greenroom --help` lists them"),
            }
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone()).render(&mut page)?;
    io::stdout().write_all(&page)?;
    Ok(Exit::Ok)
}

/// A list of the server with ids.
#[derive(Debug, Clone, Copy, Default)]
struct List {
    path: &'static [&'static str],
    /// Member of the answer that has the items; empty if the answer is the list itself.
    member: &'static str,
    /// Member of an item that is its id.
    id: &'static str,
    /// Parameter that takes the begin of ids, of lists that are long.
    prefix: &'static str,
}

/// Completes ids of workflows.
pub(super) fn workflows() -> ArgValueCompleter {
    ids(List { path: &["workflows"], id: "id", ..List::default() })
}

/// Completes ids of agents.
pub(super) fn agents() -> ArgValueCompleter {
    ids(List { path: &["agents"], id: "id", ..List::default() })
}

/// Completes names of tools.
pub(super) fn tools() -> ArgValueCompleter {
    ids(List { path: &["tools"], id: "name", ..List::default() })
}

/// Completes ids of executions.
pub(super) fn executions() -> ArgValueCompleter {
    let path = &["workflows", "executions"];
    ids(List { path, member: "executions", id: "executionId", prefix: "idPrefix" })
}

/// Completes ids of open asks.
pub(super) fn asks() -> ArgValueCompleter {
    ids(List { path: &["inbox"], member: "asks", id: "askId", prefix: "" })
}

/// Completes ids of traces.
pub(super) fn traces() -> ArgValueCompleter {
    let path = &["observability", "traces"];
    ids(List { path, member: "traces", id: "traceId", prefix: "" })
}

/// Maximum number of ids that a shell gets.
const CANDIDATES_MAX: usize = 1_000;

/// Returns true for an id, or several in a path.
fn is_word(word: &str) -> bool {
    word.split('/').all(is_safe)
}

/// Returns true if a shell reads an id as a word and nothing else: as control characters, it could
/// run a part of it.
fn is_safe(id: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | ':' | '-' | '@' | '+');
    id.len() <= 512 && !id.starts_with('-') && id.chars().all(is_plain)
}

fn ids(list: List) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let has_prefix = !list.prefix.is_empty() && !current.is_empty();
        let query = has_prefix.then_some((list.prefix, &*current));
        let found = read(list.path, query.as_slice()).unwrap_or_default();
        let items = if list.member.is_empty() { &found } else { &found[list.member] };
        let items = items.as_array().map_or(&[][..], Vec::as_slice).iter();
        begins(items.map(|item| text(item, list.id)), &current)
    })
}

/// Returns the words that begin like this one, if a shell can have them.
fn begins<'a>(words: impl Iterator<Item = &'a str>, current: &str) -> Vec<CompletionCandidate> {
    let words = words.filter(|word| word.starts_with(current));
    words.filter(|word| is_word(word)).take(CANDIDATES_MAX).map(CompletionCandidate::new).collect()
}

/// Reads a list, if the server gives it in time. Nothing is printed: it would stand in the prompt.
fn read(path: &[&str], query: &[(&str, &str)]) -> Option<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let found = runtime.block_on(async {
        let api = Api::new(Target::of(&written(std::env::args())).ok()?).ok()?;
        tokio::time::timeout(PATIENCE, api.data(Call::get(path).query(query))).await.ok()?.ok()
    });
    runtime.shutdown_background();
    found
}

/// Returns the options about the server in an unfinished command line.
fn written(words: impl Iterator<Item = String>) -> Options {
    let mut options = Options::default();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word, words.peek().cloned()),
        };
        match name.as_str() {
            "--server" => options.server = value,
            "--profile" => options.profile = value,
            _ => {}
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_words_only() {
        for id in ["exp-1", "orders:7.b", "käse", "a@b+c_d"] {
            assert!(is_safe(id), "{id}");
        }
        let long = "x".repeat(513);
        for id in ["$(touch x)", "`x`", "a;b", "a b", "--server=x", "a\u{1b}", "a\u{202e}", &long] {
            assert!(!is_safe(id), "{id:?}");
        }
    }

    #[test]
    fn an_unfinished_command_line_names_its_server() {
        for (line, server, profile) in [
            ("-- greenroom workflows run ", None, None),
            ("greenroom --server http://x run", Some("http://x"), None),
            ("greenroom --server=http://x --profile two", Some("http://x"), Some("two")),
            ("greenroom run --server", None, None),
        ] {
            let options = written(line.split_whitespace().map(str::to_owned));
            assert_eq!(options.server.as_deref(), server, "{line}");
            assert_eq!(options.profile.as_deref(), profile, "{line}");
        }
    }

    #[test]
    fn every_command_is_described() {
        Arguments::command().debug_assert();
    }
}
