//! The server that a command calls, and the token that it shows: from the command line, the
//! environment and the profiles.

use url::Url;

use super::complete;
use super::exit::{Failure, quoted};
use super::profiles::{Profile, Profiles, Token, default_path};
use super::screen::Form;

/// Environment variable with the URL of the server.
pub(super) const SERVER: &str = "GREENROOM_SERVER";

/// Environment variable with the token.
pub(super) const TOKEN: &str = "GREENROOM_TOKEN";

/// The server if none is named: a local one with the port of the shipped configuration.
const SERVER_DEFAULT: &str = "http://127.0.0.1:3141";

/// Options of all client commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Client options")]
pub(in crate::cli) struct Options {
    /// Form of the output [default: table].
    #[arg(short, long, global = true, value_enum, value_name = "FORM")]
    pub(super) output: Option<Form>,
    /// URL of the server. Default: GREENROOM_SERVER, then the profile, then http://127.0.0.1:3141.
    #[arg(long, global = true, value_name = "URL")]
    pub(super) server: Option<String>,
    /// Profile with the server and the token. Default: the one of `greenroom profile use`.
    #[arg(long, global = true, value_name = "NAME", add = complete::profiles())]
    pub(super) profile: Option<String>,
}

/// The same options before the command, as in `greenroom --server URL workflows list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Options of commands that call a server")]
pub(in crate::cli) struct Leading {
    /// Form of the output [default: table].
    #[arg(id = "leading_output", short = 'o', long = "output", value_enum, value_name = "FORM")]
    output: Option<Form>,
    /// URL of the server.
    #[arg(id = "leading_server", long = "server", value_name = "URL")]
    server: Option<String>,
    /// Profile with the server and the token.
    #[arg(id = "leading_profile", long = "profile", value_name = "NAME", add = complete::profiles())]
    profile: Option<String>,
}

impl Leading {
    /// Returns the first option that is given.
    pub(in crate::cli) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--server", self.server.is_some()),
            ("--profile", self.profile.is_some()),
            ("--output", self.output.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

impl Options {
    /// Adds options from before the command; those behind it win.
    pub(super) fn behind(&self, leading: &Leading) -> Self {
        Self {
            output: self.output.or(leading.output),
            server: self.server.clone().or_else(|| leading.server.clone()),
            profile: self.profile.clone().or_else(|| leading.profile.clone()),
        }
    }

    /// Returns the options with which another command calls the same server, with a space before
    /// them; empty if it needs none.
    pub(super) fn addressing(&self) -> String {
        match (&self.server, &self.profile) {
            (Some(server), Some(profile)) => {
                format!(" --server {} --profile {}", quoted(server), quoted(profile))
            }
            (Some(server), None) => format!(" --server {}", quoted(server)),
            (None, Some(profile)) => format!(" --profile {}", quoted(profile)),
            (None, None) => String::new(),
        }
    }

    /// Returns the form of the output.
    pub(super) fn form(&self) -> Form {
        self.output.unwrap_or_default()
    }
}

/// A server, and the token for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) server: Url,
    pub(super) token: Option<Token>,
}

impl Target {
    /// Chooses the server and the token.
    pub(super) fn of(options: &Options) -> Result<Self, Failure> {
        let profiles = default_path().map(|path| Profiles::read(&path)).transpose()?;
        let variable = |name: &str| std::env::var(name).ok();
        Self::choose(options, &profiles.unwrap_or_default(), variable)
    }

    fn choose(
        options: &Options,
        profiles: &Profiles,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let profile = profile(options, profiles)?;
        let named = options.profile.as_ref().and(profile);
        let server = options
            .server
            .clone()
            .or_else(|| named.map(|profile| profile.server.clone()))
            .or_else(|| variable(SERVER))
            .or_else(|| profile.map(|profile| profile.server.clone()))
            .unwrap_or_else(|| SERVER_DEFAULT.to_owned());
        let server = parse(&server)?;
        // a token goes to the server of its profile only
        let of_profile = profile
            .filter(|it| parse(&it.server).is_ok_and(|own| is_within(&server, &own)))
            .and_then(|profile| profile.token.clone());
        let token = match variable(TOKEN) {
            Some(text) => Token::of(&text)
                .map_err(|why| Failure::usage(format!("{TOKEN}: {why}")))?
                .or(of_profile),
            None => of_profile,
        };
        Ok(Self { server, token })
    }
}

/// Returns the named profile, or the current one.
fn profile<'a>(options: &Options, profiles: &'a Profiles) -> Result<Option<&'a Profile>, Failure> {
    let Some(name) = options.profile.as_ref().or(profiles.current.as_ref()) else {
        return Ok(None);
    };
    match profiles.profiles.get(name) {
        Some(profile) => Ok(Some(profile)),
        None => Err(unknown_profile(name, profiles)),
    }
}

/// Returns the refusal of a name that no profile has.
pub(super) fn unknown_profile(name: &str, profiles: &Profiles) -> Failure {
    let known = profiles.profiles.keys().map(String::as_str);
    let refusal = Failure::usage(format!("there is no profile {name}"));
    match crate::nearest::nearest(name, known) {
        Some(nearest) => refusal.advise(format!("did you mean {}?", quoted(&nearest))),
        None => {
            refusal.advise("`greenroom profile list` shows them, `greenroom profile add` adds one")
        }
    }
}

/// Returns true if a URL has the origin of another one, and a path in or below its path: others
/// behind the same address may be of other people.
fn is_within(server: &Url, own: &Url) -> bool {
    let folder = |url: &Url| format!("{}/", url.path().trim_end_matches('/'));
    server.origin() == own.origin() && folder(server).starts_with(&folder(own))
}

fn parse_bare(server: &str) -> Option<Url> {
    let url = Url::parse(server).ok()?;
    let is_good =
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.password().is_none();
    is_good.then_some(url)
}

/// Parses the URL of a server.
pub(super) fn parse(server: &str) -> Result<Url, Failure> {
    let url = parse_bare(server);
    let refusal =
        || Failure::usage("the server must be a URL as http://127.0.0.1:3141, without a password");
    // a name with a port reads as a scheme
    let full = format!("http://{server}");
    let is_bare = !server.contains("//") && parse_bare(&full).is_some();
    url.ok_or_else(|| match is_bare {
        true => refusal().advise(format!("did you mean {}?", quoted(&full))),
        false => refusal(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn profiles(current: Option<&str>) -> Profiles {
        let profile = |name: &str, token: &str| {
            let server = format!("https://{name}.example/base");
            (name.to_owned(), Profile { server, token: Token::of(token).unwrap() })
        };
        Profiles {
            current: current.map(str::to_owned),
            profiles: BTreeMap::from([profile("one", "t-one"), profile("two", "t-two")]),
        }
    }

    #[test]
    fn the_command_line_wins_over_the_environment_and_the_profiles() {
        type Row = (
            Option<&'static str>,
            Option<&'static str>,
            &'static [(&'static str, &'static str)],
            Option<&'static str>,
            (&'static str, Option<&'static str>),
        );
        let rows: [Row; 10] = [
            (None, None, &[], None, ("http://127.0.0.1:3141/", None)),
            (None, None, &[], Some("one"), ("https://one.example/base", Some("t-one"))),
            (None, None, &[(SERVER, "")], Some("one"), ("https://one.example/base", Some("t-one"))),
            (
                None,
                Some("two"),
                &[(SERVER, "http://e")],
                Some("one"),
                ("https://two.example/base", Some("t-two")),
            ),
            // the token of a profile is not for other servers
            (None, None, &[(SERVER, "http://e")], Some("one"), ("http://e/", None)),
            // nor for other paths of its server
            (Some("https://one.example"), None, &[], Some("one"), ("https://one.example/", None)),
            (
                Some("https://one.example/base2"),
                None,
                &[],
                Some("one"),
                ("https://one.example/base2", None),
            ),
            (
                Some("https://one.example/base/in"),
                None,
                &[],
                Some("one"),
                ("https://one.example/base/in", Some("t-one")),
            ),
            (Some("http://one.example"), Some("one"), &[], None, ("http://one.example/", None)),
            (None, None, &[(TOKEN, " t \n")], Some("one"), ("https://one.example/base", Some("t"))),
        ];
        for (server, profile, variables, current, (expected, token)) in rows {
            let options = Options {
                server: server.map(str::to_owned),
                profile: profile.map(str::to_owned),
                ..Options::default()
            };
            let variable = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let target = Target::choose(&options, &profiles(current), variable).unwrap();
            assert_eq!(target.server.as_str(), expected);
            assert_eq!(target.token.as_ref().map(Token::reveal), token, "{expected}");
        }
    }

    #[test]
    fn unknown_profiles_and_servers_are_refused() {
        let options = Options { profile: Some("tow".to_owned()), ..Options::default() };
        let refused = Target::choose(&options, &profiles(None), |_| None).unwrap_err();
        let expected = "greenroom: there is no profile tow\n  did you mean two?";
        assert_eq!(refused.to_string(), expected);
        for server in ["localhost:3141", "ftp://x", "x", "http://", "http://ann:pw@x"] {
            let refused = parse(server).unwrap_err();
            assert!(!refused.to_string().contains("pw"), "{refused}");
            let is_bare = !server.contains("//");
            let advice = format!("did you mean http://{server}?");
            assert_eq!(refused.to_string().contains(&advice), is_bare, "{refused}");
        }
    }
}
