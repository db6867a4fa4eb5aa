//! `greenroom check`: problems of a configuration, as text or JSON.

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use super::output::Output;
use super::{Arguments, counted, load, print_result};
use crate::app::outline_of_store;
use crate::config::{Config, ConfigProblem, Severity};

/// Options of `check`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Fail on warnings, too.
    #[arg(long)]
    strict: bool,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

/// The JSON output. Names and meanings are stable; more members may be added.
#[derive(Debug, Serialize)]
struct Report<'a> {
    /// True if the exit code is 0.
    ok: bool,
    errors: usize,
    warnings: usize,
    problems: Vec<Reported<'a>>,
}

#[derive(Debug, Serialize)]
struct Reported<'a> {
    file: &'a str,
    /// From 1; null if the problem has no place in a text.
    line: Option<usize>,
    /// In characters, from 1; null if the problem has no place in a text.
    column: Option<usize>,
    /// Dotted path of the key; empty if the problem is not about a key.
    path: &'a str,
    severity: &'static str,
    message: &'a str,
    /// The replacement that the author probably meant.
    suggestion: Option<&'a str>,
}

impl<'a> Report<'a> {
    fn of(problems: &'a [ConfigProblem], strict: bool) -> Self {
        let errors = problems.iter().filter(|problem| problem.is_error()).count();
        let warnings = problems.len() - errors;
        let ok = errors == 0 && (warnings == 0 || !strict);
        Self { ok, errors, warnings, problems: problems.iter().map(Reported::of).collect() }
    }
}

impl<'a> Reported<'a> {
    fn of(problem: &'a ConfigProblem) -> Self {
        let ConfigProblem { file, line, column, key, message, suggestion, severity } = problem;
        let has_place = *line > 0;
        Self {
            file,
            line: has_place.then_some(*line),
            column: has_place.then_some(*column),
            path: key,
            severity: match severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message,
            suggestion: suggestion.as_deref(),
        }
    }
}

/// Checks the configuration and prints the result.
pub(super) fn check(arguments: &Arguments, options: Options, screen: &mut dyn Write) -> ExitCode {
    let loaded = load(arguments);
    let problems = match &loaded {
        Ok(config) => &config.warnings,
        Err(problems) => problems,
    };
    let report = Report::of(problems, options.strict);
    let mut lines = Vec::new();
    match options.output {
        Output::Json => lines.push(serde_json::to_string_pretty(&report).unwrap_or_default()),
        Output::Text => {
            lines.extend(problems.iter().map(ToString::to_string));
            if let Ok(config) = &loaded {
                lines.extend(outline_of_store(&config.store));
                lines.push(summary(arguments, config, &report));
            }
        }
    }
    print_result(screen, &lines, if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(arguments: &Arguments, config: &Config, report: &Report<'_>) -> String {
    let file = arguments.config_file().display();
    if !report.ok {
        let warnings = counted(report.warnings as u64, "warning");
        return format!("{file}: refused by --strict, {warnings}");
    }
    let workflows = counted(config.workflows.len() as u64, "workflow");
    let agents = counted(config.agents.len() as u64, "agent");
    let tools = counted(config.tools.len() as u64, "tool");
    format!("{file}: ok, {workflows}, {agents}, {tools}")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::Command;

    /// Returns exit code and output of `greenroom check` for a file with this text.
    fn checked(text: &str, options: &[&str]) -> (ExitCode, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        let line = [&["greenroom", "check", "--config", path.to_str().unwrap()], options].concat();
        let mut screen = Vec::new();
        let arguments = Arguments::parse_from(line);
        let Some(Command::Check(options)) = arguments.command else { panic!("a check") };
        let exit = check(&arguments, options, &mut screen);
        let folder = format!("{}/", directory.path().display());
        (exit, String::from_utf8(screen).unwrap().replace(&folder, ""))
    }

    const ODD: &str = "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\nsuspend = {}\n";
    const WARNING: &str = "c.toml:4:11: warning: workflows.w.steps.a.suspend: has no deadline";

    #[test]
    fn check_counts_definitions_and_prints_warnings() {
        let (exit, screen) = checked(ODD, &[]);
        assert_eq!(exit, ExitCode::SUCCESS);
        assert_eq!(screen, format!("{WARNING}\nc.toml: ok, 1 workflow, 0 agents, 0 tools\n"));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn an_address_of_a_database_is_explained_without_its_password() {
        let url = "postgres://ann:hidden@db1,localhost:7/shop?options=-c%20a%3Dhidden";
        let (exit, screen) = checked(&format!("[store]\nurl = \"{url}\"\n"), &[]);
        assert_eq!(exit, ExitCode::SUCCESS);
        let lines: Vec<_> = screen.lines().collect();
        assert!(lines[0].starts_with("c.toml:2:7: warning: store.url: has a password"), "{screen}");
        assert_eq!(
            lines[1..],
            [
                "store: PostgreSQL at db1:5432 (TLS verified), localhost:7 (TLS off), database \
                 shop, user ann, durability full; not connected to by this check",
                "c.toml: ok, 0 workflows, 0 agents, 0 tools",
            ]
        );
        assert!(!screen.contains("hidden"), "{screen}");
    }

    #[test]
    fn people_that_no_caller_can_be_are_named_with_their_place() {
        const STEP: &str = "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n";
        let tool =
            "[tools.t]\nkind = \"http\"\nurl = \"http://127.0.0.1:1\"\ndescription = \"d\"\n";
        let key = "[[auth.api_keys]]\nid = \"k\"\nhash = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"\n";
        let no_roles = "roles come with tokens, and there is no [auth]";
        let no_key = "no key in [[auth.api_keys]] has this user or role";
        let step = |to: &str| format!("{STEP}suspend = {{ deadline = \"1h\", to = {to} }}\n");
        let with = |auth: &str, to: &str| format!("{}{key}user = {auth}\n", step(to));
        let at_step = "workflows.w.steps.a.suspend.to";
        let rows = [
            (step("[\"user:ann\", \"!self\"]"), None),
            (step("[\"role:{{ input.role }}\"]"), None),
            (
                step("[\"role:lead\", \"!self\"]"),
                Some(format!("4:35: warning: {at_step}: no caller can answer this: {no_roles}")),
            ),
            (
                step("[\"user:ann\", \"role:lead\"]"),
                Some(format!("4:48: warning: {at_step}[1]: no caller is role:lead: {no_roles}")),
            ),
            (
                format!("{tool}approval = {{ to = [\"role:lead\"] }}\n"),
                Some(format!(
                    "5:19: warning: tools.t.approval.to: no caller can answer this: {no_roles}"
                )),
            ),
            (with("{ id = \"ann\", roles = [\"lead\"] }", "[\"role:lead\", \"user:ann\"]"), None),
            (with("{}", "[\"user:k\"]"), None),
            (
                with("{ id = \"ann\" }", "[\"user:bob\"]"),
                Some(format!("4:35: warning: {at_step}: no caller can answer this: {no_key}")),
            ),
        ];
        for (text, expected) in rows {
            let (_, screen) = checked(&text, &[]);
            let found = screen.lines().find(|line| line.contains("no caller"));
            let expected = expected.map(|line| format!("c.toml:{line}"));
            assert_eq!(found.map(str::to_owned), expected, "{text}{screen}");
        }
        let spaces = "the role has spaces in it, which separate the roles of a token: only a token \
                      with an array of roles can have it";
        let rows = [
            ("[\"role: lead\"]", Some(format!("{spaces}; did you mean role:lead?"))),
            ("[\"role:team lead\"]", Some(spaces.to_owned())),
            ("[\"role:{{ input.role }}\", \"user:team lead\"]", None),
        ];
        for (to, expected) in rows {
            let (_, screen) = checked(&step(to), &[]);
            let found = screen.lines().find(|line| line.contains("spaces"));
            let expected =
                expected.map(|text| format!("c.toml:4:36: warning: {at_step}[0]: {text}"));
            assert_eq!(found.map(str::to_owned), expected, "{to}: {screen}");
        }
    }

    #[test]
    fn asks_that_ownership_hides_from_those_who_are_asked_are_named() {
        let ask = "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n";
        let hash = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let jwt = "[auth.jwt]\njwks_url = \"https://id.example/keys\"\nissuer = \"https://id.example\"\naudience = \"a\"\n";
        let keys = format!(
            "[[auth.api_keys]]\nid = \"k\"\nhash = \"{}\"\nuser = {{ roles = [\"lead\", \"admin\"] }}\n\
             [[auth.api_keys]]\nid = \"l\"\nhash = \"{}\"\nuser = {{ roles = [\"clerk\"] }}\n",
            hash("1"),
            hash("2"),
        );
        let links = "[inbox]\nsecret = \"secret:CARGO_PKG_DESCRIPTION\"\nbase_url = \"https://green.example\"\n";
        let warning = |who: &str, hidden: &str, cure: &str| {
            Some(format!(
                "c.toml:4:35: warning: workflows.w.steps.a.suspend.to: {who} can answer this: with \
                 [auth] ownership, {hidden} what belongs to other users; {cure}"
            ))
        };
        let none = "no caller";
        let lead = "role:lead alone does not see";
        let add = "add lead to auth.ownership.roles";
        let owner = "only the user who asks";
        let give = "give those who answer a role of auth.ownership.roles";
        let more = "add a role to auth.ownership.roles";
        let admin = "roles = [\"admin\"]";
        let clerk =
            "add clerk to auth.ownership.roles, or ask a role that is in it, such as role:admin";
        let rows = [
            // a token may have both roles
            (admin, jwt, "[\"role:lead\", \"!self\"]", None),
            ("", jwt, "[\"role:lead\", \"!self\"]", warning(none, lead, add)),
            ("", jwt, "[\"role:lead\"]", warning(owner, lead, add)),
            ("", jwt, "[\"!self\"]", warning(none, "no role sees", more)),
            (admin, jwt, "[\"!self\"]", None),
            (admin, jwt, "[\"role:lead\", \"role:admin\", \"!self\"]", None),
            (admin, jwt, "[\"role:lead\", \"user:ann\", \"!self\"]", None),
            (admin, jwt, "[\"role:{{ input.role }}\", \"!self\"]", None),
            // a key has both roles
            (admin, &keys, "[\"role:lead\", \"!self\"]", None),
            (admin, &keys, "[\"user:k\", \"!self\"]", None),
            (
                admin,
                &keys,
                "[\"role:clerk\", \"!self\"]",
                warning(none, "role:clerk alone does not see", clerk),
            ),
            (
                admin,
                &keys,
                "[\"user:l\", \"!self\"]",
                warning(none, "user:l alone does not see", give),
            ),
        ];
        for (roles, callers, to, expected) in rows {
            let suspend = format!("suspend = {{ deadline = \"1h\", to = {to} }}\n");
            let auth = format!("[auth]\ndefault = \"private\"\nownership = {{ {roles} }}\n");
            let text = format!("{ask}{suspend}{auth}{callers}");
            let (_, screen) = checked(&text, &[]);
            let found = screen.lines().find(|line| line.contains("can answer"));
            assert_eq!(found.map(str::to_owned), expected, "{to}: {screen}");
            // a link for a role has no user, so `!self` excludes it
            let (_, screen) = checked(&format!("{text}{links}"), &[]);
            let is_linked = !to.contains("!self") || to.contains("user:");
            let found = screen.lines().find(|line| line.contains("can answer"));
            let expected = expected.filter(|_| !is_linked);
            assert_eq!(found.map(str::to_owned), expected, "{to}: {screen}");
        }
    }

    #[test]
    fn strict_fails_on_warnings() {
        let (exit, screen) = checked(ODD, &["--strict"]);
        assert_eq!(exit, ExitCode::FAILURE);
        assert_eq!(screen, format!("{WARNING}\nc.toml: refused by --strict, 1 warning\n"));
        let (exit, screen) = checked("", &["--strict"]);
        assert_eq!(exit, ExitCode::SUCCESS, "{screen}");
    }

    #[test]
    fn check_prints_every_problem() {
        let (exit, screen) = checked("[server]\nhots = 1\n[store]\nurl = 1\n", &[]);
        assert_eq!(exit, ExitCode::FAILURE);
        assert_eq!(screen.lines().count(), 2, "{screen}");
        let (exit, screen) = checked("", &["--host", "0.0.0.0"]);
        assert_eq!(exit, ExitCode::FAILURE);
        assert!(screen.starts_with("--host: other machines can reach"), "{screen}");
    }

    #[test]
    fn json_output_has_the_same_problems() {
        let json = |text: &str, options: &[&str]| {
            let (exit, screen) = checked(text, &[&["-o", "json"], options].concat());
            (exit, serde_json::from_str::<Value>(&screen).unwrap())
        };
        let warning = json!({
            "file": "c.toml", "line": 4, "column": 11, "path": "workflows.w.steps.a.suspend",
            "severity": "warning", "message": "has no deadline", "suggestion": null,
        });
        let of = |ok| json!({ "ok": ok, "errors": 0, "warnings": 1, "problems": [warning] });
        assert_eq!(json(ODD, &[]), (ExitCode::SUCCESS, of(true)));
        assert_eq!(json(ODD, &["--strict"]), (ExitCode::FAILURE, of(false)));
        let (exit, report) = json("[server]\nhots = 1\n", &[]);
        assert_eq!(exit, ExitCode::FAILURE);
        let error = json!({
            "file": "c.toml", "line": 2, "column": 1, "path": "server.hots", "severity": "error",
            "message": "unknown key", "suggestion": "host",
        });
        assert_eq!(report, json!({ "ok": false, "errors": 1, "warnings": 0, "problems": [error] }));
        let (_, report) = json("", &["--host", "0.0.0.0"]);
        assert_eq!(report["problems"][0]["line"], Value::Null);
    }

    #[test]
    fn a_missing_program_is_a_warning() {
        let text = "[[workflows.w.steps]]\nid = \"a\"\ncommand = { argv = [\"/usr/bin/nope\"] }\n\
                    [tools.t]\nkind = \"command\"\ndescription = \"d\"\n\
                    parameters = { type = \"object\" }\nargv = [\"no-such-program\"]\n";
        let (exit, screen) = checked(text, &[]);
        assert_eq!(exit, ExitCode::SUCCESS);
        let expected = [
            "c.toml:3:21: warning: workflows.w.steps.a.command.argv[0]: program /usr/bin/nope \
             does not exist",
            "c.toml:4:1: warning: tools.t: program no-such-program is not in PATH",
            "c.toml: ok, 1 workflow, 0 agents, 1 tool",
        ];
        assert_eq!(screen.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn unprotected_approvals_are_a_warning_if_tokens_are_checked() {
        let keys = "api_keys = [{ id = \"ci\", hash = \"sha256:HASH\" }]\n"
            .replace("HASH", &"0".repeat(64));
        let auth = |rest: &str| checked(&format!("[auth]\n{keys}{rest}"), &[]).1;
        let warning = "tokens are checked, but not for POST /workflows/:id/executions/:executionId/resume \
                    and POST /workflows/:id/executions/:executionId/suspend: any client can answer an \
                    approval whose step has no `to`";
        assert!(auth("").contains(warning), "{}", auth(""));
        assert!(auth("default = \"spec\"").contains(warning));
        for closed in [
            "default = \"private\"",
            "ownership = {}",
            "public = [\"POST /workflows/:id/executions/*\"]",
            "rules = [{ route = \"POST /workflows/:id/executions/*\" }]",
        ] {
            assert_eq!(auth(closed).lines().count(), 1, "{closed}: {}", auth(closed));
        }
    }
}
