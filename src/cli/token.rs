//! `greenroom token`: tokens that the configured server accepts, and why it refuses others.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value, json};

use super::client::{compact, duration_of, plain, pretty};
use super::output::Output;
use super::{Arguments, finish, print, print_result, read};
use crate::app::{self, Variables};
use crate::auth::{AuthError, Providers, RequestHead, TOKEN_BYTES_MAX, Unverified, User, sign};
use crate::config::Config;

/// Actions on tokens.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub(super) enum Command {
    /// Signs a token with the secret of [auth.jwt], and prints it.
    Issue(Issue),
    /// Shows what is in a token, and whether the configured server accepts it.
    Inspect(Inspect),
}

/// Options of `token issue`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(super) struct Issue {
    /// The user (claim `sub`).
    #[arg(value_name = "USER")]
    subject: String,
    /// A role of the user (claim `roles`); may be repeated.
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// A further claim, as NAME=JSON or NAME=TEXT; may be repeated.
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = claim)]
    claims: Vec<(String, Value)>,
    /// Time for which it is valid, such as 15m, 8h or 30d.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = validity)]
    expires_in: Duration,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

/// Options of `token inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(super) struct Inspect {
    /// The token; `-` or none: read from stdin, where other users of this machine do not see it.
    token: Option<String>,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

/// Runs a command. Prints its result to stdout, problems and notes to stderr.
pub(super) fn run(arguments: &Arguments, command: &Command) -> ExitCode {
    // the secrets of models and stores do not matter here
    let config = match read(arguments) {
        Ok(config) => config,
        Err(problems) => {
            print(&mut io::stderr(), &problems);
            return ExitCode::FAILURE;
        }
    };
    let variables = Variables::of(&config);
    let server = Server { config: &config, variable: &|name| variables.found(name) };
    match command {
        Command::Issue(options) => {
            let issued = server.issue(options).map(|issued| shown(options.output, &issued));
            finish(issued.map_err(|why| vec![why]))
        }
        Command::Inspect(options) => server.inspect(options),
    }
}

/// Returns what is printed of a token. For people, its user is a note beside it.
fn shown(output: Output, (token, user): &(String, User)) -> Vec<String> {
    if output == Output::Json {
        let mut issued = json!({ "token": token });
        put_user(&mut issued, user);
        return vec![pretty(&issued)];
    }
    // stdout has the token alone, for a variable of a script
    print(&mut io::stderr(), &[described(user)]);
    vec![token.clone()]
}

fn claim(text: &str) -> Result<(String, Value), String> {
    let named = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = named.ok_or("must be NAME=VALUE")?;
    let other = match name {
        "sub" => "USER sets it",
        "roles" => "--role sets it",
        "exp" => "--expires-in sets it",
        "iat" => "it is the time of the signature",
        _ => "",
    };
    if !other.is_empty() {
        return Err(other.to_owned());
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}

/// Longest validity: what the claims of a token can say, and more than any token should have.
const VALIDITY_MAX: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

fn validity(text: &str) -> Result<Duration, String> {
    let validity = duration_of(text)?;
    match validity {
        short if short < Duration::from_secs(1) => Err("must be at least 1s".to_owned()),
        long if long > VALIDITY_MAX => Err("must be at most 3650d".to_owned()),
        validity => Ok(validity),
    }
}

/// The configured server, with its environment variables.
struct Server<'a> {
    config: &'a Config,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Server<'_> {
    /// Signs a token. Returns it with its user, as the server's own check sees it.
    fn issue(&self, options: &Issue) -> Result<(String, User), String> {
        let jwt = self.config.auth.jwt.as_ref().ok_or(
            "greenroom: there is no [auth.jwt], whose secret signs tokens; add it, and set the \
             secret in the environment variable JWT_SECRET",
        )?;
        let signer = jwt.signer(self.variable);
        let (secret, algorithm) = signer.map_err(|problem| problem.to_string())?;
        let mut claims = Map::new();
        claims.insert("sub".to_owned(), options.subject.clone().into());
        if !options.roles.is_empty() {
            claims.insert("roles".to_owned(), options.roles.clone().into());
        }
        for (name, accepted) in [("iss", &jwt.issuer), ("aud", &jwt.audience)] {
            if let Some(first) = accepted.first() {
                claims.insert(name.to_owned(), first.clone().into());
            }
        }
        claims.extend(options.claims.iter().cloned());
        let now = SystemClock.now().0.div_euclid(1000);
        let until =
            now.saturating_add(i64::try_from(options.expires_in.as_secs()).unwrap_or(i64::MAX));
        claims.insert("iat".to_owned(), now.into());
        claims.insert("exp".to_owned(), until.into());
        let token = sign(&claims, &secret, algorithm);
        let token = token.map_err(|error| format!("greenroom: {error}"))?;
        let user = self.user_of(&token).map_err(|error| {
            format!(
                "greenroom: the server would refuse this token: {error}; change USER or --claim"
            )
        })?;
        Ok((token, user))
    }

    /// Prints what is in a token, and what the server makes of it.
    fn inspect(&self, options: &Inspect) -> ExitCode {
        let token = match options.token.as_deref() {
            None | Some("-") => from_stdin(),
            Some(token) => Ok(token.trim().to_owned()),
        };
        let token = match token {
            Ok(token) => token,
            Err(why) => return finish(Err(vec![format!("greenroom: {why}")])),
        };
        let content = Unverified::read(&token);
        let verdict = self.user_of(&token);
        let lines = match options.output {
            Output::Json => vec![pretty(&report(&content, &verdict))],
            Output::Text => lines(&content, &verdict),
        };
        let exit = if verdict.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        print_result(&mut io::stdout(), &lines, exit)
    }

    /// Returns the user of a token, as the server's own providers see it.
    fn user_of(&self, token: &str) -> Result<User, String> {
        let configured = self.config.auth.providers(self.variable);
        let mut providers = Providers::default();
        configured.map_err(|it| it.to_string())?.into_iter().for_each(|it| providers.push(it));
        if providers.is_empty() {
            return Err("no provider is configured: the server does not look at tokens".to_owned());
        }
        let request = Bearing(format!("Bearer {token}"));
        match app::block_on(providers.identify(&request)) {
            Ok(Some(user)) => Ok(user),
            Ok(None) => Err("there is no token".to_owned()),
            // clients do not see why, but who has the configuration may
            Err(AuthError::Unavailable(why)) => Err(format!("it cannot be checked: {why}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Reads a token that was piped in, or is typed.
fn from_stdin() -> Result<String, String> {
    if io::stdin().is_terminal() {
        print(&mut io::stderr(), &["reading the token from stdin; Ctrl-D ends it"]);
    }
    let mut text = String::new();
    let limit = TOKEN_BYTES_MAX as u64 + 1024;
    let read = io::stdin().take(limit).read_to_string(&mut text);
    read.map_err(|error| format!("the token cannot be read from stdin: {error}"))?;
    Ok(text.trim().to_owned())
}

/// A request with this token and nothing else.
struct Bearing(String);

impl RequestHead for Bearing {
    fn header(&self, name: &str) -> Option<&str> {
        (name == "authorization").then_some(&self.0)
    }

    fn query(&self, _name: &str) -> Option<String> {
        None
    }

    fn is_upgrade(&self) -> bool {
        false
    }
}

fn described(user: &User) -> String {
    let id = user.id().map_or_else(|| "no user id".to_owned(), |id| format!("user {}", plain(id)));
    let roles = match user.roles() {
        [] => "no roles".to_owned(),
        roles => format!("roles {}", plain(&roles.join(", "))),
    };
    let until = user.expires_at().map_or_else(|| "without end".to_owned(), until);
    format!("{id}, {roles}, {until}")
}

fn until(end: Timestamp) -> String {
    format!("valid until {}", end.to_iso())
}

fn lines(content: &Unverified, verdict: &Result<User, String>) -> Vec<String> {
    let parts = [("header", &content.header), ("claims", &content.claims)];
    let parts = parts
        .into_iter()
        .filter_map(|(name, part)| Some(format!("{name:<9} {}", compact(&part.clone()?.into()))));
    let mut lines: Vec<_> = parts.collect();
    if lines.is_empty() {
        lines.push("content   not a JSON Web Token, perhaps an API key".to_owned());
    }
    lines.push(match verdict {
        Ok(user) => format!("accepted  {}", described(user)),
        Err(why) => format!("refused   {why}"),
    });
    lines
}

fn report(content: &Unverified, verdict: &Result<User, String>) -> Value {
    let mut report = json!({
        "accepted": verdict.is_ok(),
        "reason": verdict.as_ref().err(),
        "header": content.header,
        "claims": content.claims,
    });
    if let Ok(user) = verdict {
        put_user(&mut report, user);
    }
    report
}

fn put_user(report: &mut Value, user: &User) {
    report["user"] = Value::Object(user.profile().clone());
    report["expiresAt"] = user.expires_at().map(Timestamp::to_iso).into();
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Command as Any;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    /// Returns the options of a command line.
    fn parsed(line: &[&str]) -> Result<Command, clap::Error> {
        let line = [&["greenroom", "token"], line].concat();
        let Some(Any::Token(command)) = Arguments::try_parse_from(line)?.command else {
            panic!("a token")
        };
        Ok(command)
    }

    fn issued(text: &str, line: &[&str]) -> Result<(String, User), String> {
        let config = Config::parse(text, "c.toml").unwrap();
        let Command::Issue(options) = parsed(line).unwrap() else { panic!("an issue") };
        Server { config: &config, variable: &variable }.issue(&options)
    }

    fn variable(name: &str) -> Option<String> {
        (name == "JWT_SECRET").then(|| SECRET.to_owned())
    }

    #[test]
    fn what_is_issued_is_accepted() {
        let text = "[auth.jwt]\nissuer = \"me\"\naudience = [\"a\", \"b\"]\n";
        let line = ["issue", "ann", "--role", "admin", "--claim", "tier=3", "--expires-in", "15m"];
        let (token, user) = issued(text, &line).unwrap();
        let Unverified { header, claims } = Unverified::read(&token);
        let (header, claims) = (header.unwrap(), claims.unwrap());
        assert_eq!(header["alg"], "HS256");
        assert_eq!((&claims["iss"], &claims["aud"]), (&json!("me"), &json!("a")));
        assert_eq!(claims["tier"], 3);
        let seconds = |name: &str| claims[name].as_i64().unwrap();
        assert_eq!(seconds("exp") - seconds("iat"), 900);
        assert_eq!((user.id(), user.roles()), (Some("ann"), &["admin".to_owned()][..]));
        assert_eq!(shown(Output::Text, &(token.clone(), user)), [token]);
        // a claim that makes the server refuse it
        let why = issued(text, &["issue", "ann", "--claim", "iss=other"]).unwrap_err();
        assert!(why.contains("would refuse this token: Invalid token: invalid issuer"), "{why}");
    }

    #[test]
    fn nothing_is_issued_without_a_secret() {
        for (text, says) in [
            ("", "there is no [auth.jwt]"),
            ("[auth.jwt]\njwks_url = \"https://login.example/keys\"\n", "only checks tokens"),
            ("[auth.jwt]\nsecret = \"secret:OTHER\"\n", "variable OTHER is not set"),
        ] {
            let why = issued(text, &["issue", "ann"]).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn wrong_options_are_refused_with_the_reason() {
        for (line, says) in [
            (&["issue", "ann", "--claim", "tier"][..], "must be NAME=VALUE"),
            (&["issue", "ann", "--claim", "exp=1"], "--expires-in sets it"),
            (&["issue", "ann", "--expires-in", "0s"], "must be at least 1s"),
            (&["issue", "ann", "--expires-in", "4000d"], "must be at most 3650d"),
        ] {
            let refusal = parsed(line).unwrap_err().to_string();
            assert!(refusal.contains(says), "{refusal}");
        }
    }

    #[test]
    fn a_token_that_no_server_reads_is_shown_as_far_as_possible() {
        // {"alg":"none","crit":["x"]} and {"sub":"a"}, without a signature
        let token = "eyJhbGciOiJub25lIiwiY3JpdCI6WyJ4Il19.eyJzdWIiOiJhIn0.";
        let lines = lines(&Unverified::read(token), &Err("jwt malformed".to_owned()));
        let expected =
            ["header    {\"alg\":\"none\",\"crit\":[\"x\"]}", "claims    {\"sub\":\"a\"}"];
        assert_eq!(lines[..2], expected);
    }

    #[test]
    fn a_refused_token_is_shown_with_the_reason() {
        let claims = json!({ "sub": "a\u{202e}b", "exp": 1 });
        let token =
            sign(claims.as_object().unwrap(), SECRET.as_bytes(), crate::auth::Algorithm::HS256);
        let content = Unverified::read(&token.unwrap());
        let lines = lines(&content, &Err("Token expired".to_owned()));
        assert_eq!(lines[1], "claims    {\"sub\":\"a\\u202eb\",\"exp\":1}");
        assert_eq!(lines[2], "refused   Token expired");
        let none = Unverified::read("key");
        assert_eq!(none, Unverified { header: None, claims: None });
        let report = report(&none, &Err("no".to_owned()));
        assert_eq!(
            report,
            json!({ "accepted": false, "reason": "no", "header": null, "claims": null })
        );
    }
}
