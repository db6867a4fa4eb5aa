//! `greenroom profile`: servers and tokens by name.

use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use super::complete;
use super::exit::{Exit, Failure};
use super::profiles::{Profile, Profiles, TOKEN_BYTES_MAX, Token, default_path};
use super::screen::{Screen, note};
use super::session::attended;
use super::settings::{Options, parse, unknown_profile};
use super::text::cell;
use crate::loopback::is_loopback;

/// Actions on profiles.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Adds a profile, or replaces one. The first one is used from then on.
    Add {
        /// Name of the profile.
        name: String,
        /// `-`: read a token from stdin, where other users do not see it.
        #[arg(long, value_name = "-", value_parser = ["-"])]
        token: Option<String>,
    },
    /// Lists the profiles, without their tokens.
    List,
    /// Uses a profile when no other one is named.
    Use {
        /// Name of the profile.
        #[arg(add = complete::profiles())]
        name: String,
    },
    /// Removes a profile with its token.
    Remove {
        /// Name of the profile.
        #[arg(add = complete::profiles())]
        name: String,
    },
}

/// Runs an action.
pub(super) async fn run(options: &Options, action: &Action) -> Result<Exit, Failure> {
    let path = default_path().ok_or_else(|| {
        Failure::new(Exit::Failed, "no folder for the file of profiles is known")
            .advise("set HOME or XDG_CONFIG_HOME")
    })?;
    let mut profiles = Profiles::read(&path)?;
    match action {
        Action::List => return list(options, &profiles),
        Action::Add { name, token } => {
            let Some(server) = &options.server else {
                return Err(Failure::usage("a profile needs a server")
                    .advise("add --server URL, as http://127.0.0.1:3141"));
            };
            let server = parse(server)?;
            if token.is_some() && server.scheme() == "http" && !is_loopback(&server) {
                note("the token will be sent unencrypted: others on the network can read it");
            }
            let token = if token.is_some() { Some(read_token().await?) } else { None };
            profiles.profiles.insert(name.clone(), Profile { server: server.to_string(), token });
            profiles.current.get_or_insert_with(|| name.clone());
            save(&profiles, &path, &format!("profile {name} added"))?;
        }
        Action::Use { name } => {
            if !profiles.profiles.contains_key(name) {
                return Err(unknown_profile(name, &profiles));
            }
            profiles.current = Some(name.clone());
            save(&profiles, &path, &format!("profile {name} is used from now on"))?;
        }
        Action::Remove { name } => {
            if profiles.profiles.remove(name).is_none() {
                return Err(unknown_profile(name, &profiles));
            }
            profiles.current = profiles.current.take().filter(|current| current != name);
            save(&profiles, &path, &format!("profile {name} removed"))?;
        }
    }
    Ok(Exit::Ok)
}

fn save(profiles: &Profiles, path: &Path, what: &str) -> Result<(), Failure> {
    profiles.write(path)?;
    note(&format!("{what}: {}", path.display()));
    Ok(())
}

fn list(options: &Options, profiles: &Profiles) -> Result<Exit, Failure> {
    let item = |(name, profile): (&String, &Profile)| {
        json!({
            "name": name,
            "server": profile.server,
            "hasToken": profile.token.is_some(),
            "isCurrent": profiles.current.as_ref() == Some(name),
        })
    };
    let items: Vec<Value> = profiles.profiles.iter().map(item).collect();
    let yes = |value: &Value| if *value == true { "yes" } else { "-" }.to_owned();
    Screen::new(options.form()).list(
        &items,
        ["NAME", "SERVER", "TOKEN", "CURRENT"],
        |it| [cell(&it["name"]), cell(&it["server"]), yes(&it["hasToken"]), yes(&it["isCurrent"])],
        "no profiles; `greenroom profile add NAME --server URL` adds one",
    )?;
    Ok(Exit::Ok)
}

/// Reads a line from stdin, which a terminal does not show.
async fn read_token() -> Result<Token, Failure> {
    let stdin = io::stdin();
    let hidden = stdin.is_terminal().then(|| hide_input(&stdin)).flatten();
    if stdin.is_terminal() {
        let _ = write!(io::stderr(), "token: ");
    }
    let reading = async {
        let line = tokio::task::spawn_blocking(|| {
            let mut text = Vec::new();
            let input = io::stdin().lock().take(TOKEN_BYTES_MAX as u64 + 3);
            // a person ends a line, a file itself
            if io::stdin().is_terminal() {
                BufReader::new(input).read_until(b'\n', &mut text)?;
            } else {
                BufReader::new(input).read_to_end(&mut text)?;
            }
            String::from_utf8(text).map_err(|_| io::Error::other("the token is not UTF-8"))
        });
        Ok(line.await.map_err(io::Error::other)??)
    };
    // also after Ctrl-C the terminal has to show again what is typed
    let line = attended(reading, None, |exit| Failure::new(exit, "interrupted")).await;
    if let Some(shown) = hidden {
        let _ = tcsetattr(&stdin, OptionalActions::Now, &shown);
        let _ = writeln!(io::stderr());
    }
    let token = Token::of(&line?).map_err(|why| Failure::usage(format!("stdin: {why}")))?;
    token.ok_or_else(|| {
        Failure::usage("stdin has no token").advise("echo \"$TOKEN\" | greenroom profile add …")
    })
}

/// Switches off that a terminal shows what is typed, and returns its mode before.
fn hide_input(stdin: &io::Stdin) -> Option<Termios> {
    let shown = tcgetattr(stdin).ok()?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stdin, OptionalActions::Now, &hidden).ok()?;
    Some(shown)
}
