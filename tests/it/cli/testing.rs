//! `greenroom test`: the tests of workflows.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Output;

use serde_json::Value;

use crate::program::Programs as _;
use support::server::Home;

const SHIPPED: &str = include_str!("../../../config.toml");

/// A booking whose shipment fails, and one that a crash charges twice.
const ORDERS: &str = r#"
[workflows.order]
[[workflows.order.steps]]
id = "charge"
http = { method = "POST", url = "https://bank.example/charges", body = { n = "input.n" } }
compensate = { run = "bank.refund" }
[[workflows.order.steps]]
id = "ship"
run = "ship"

[[workflows.order.tests]]
name = "no truck"   # kept
input = { n = 1 }
mocks = { charge = { output = 7 }, "charge:compensate" = { output = 0 }, ship = { fail = "no <truck>" } }
EXPECT
[[workflows.order.tests]]
name = "charged once"
input = { n = 1 }
mocks = { charge = { output = 7, repeatable = false }, "charge:compensate" = { output = 0 }, ship = { output = 8 } }
expect = { result = "result == 8" }
crash_everywhere = true
"#;

/// A customer who refuses, a skipped step that is read with a default, JSON in a text, and a delay
/// that depends on data.
const DECIDED: &str = r#"
[workflows.trip]
result = { seat = "steps.seat.n | default(0)", nights = "steps.bill.nights" }
[[workflows.trip.steps]]
id = "reserve"
http = { method = "POST", url = "https://rooms.example/holds", body = { n = 1 } }
compensate = { http = { method = "DELETE", url = "https://rooms.example/holds/{{ data.hold }}" } }
[[workflows.trip.steps]]
id = "later"
type = "andSleepUntil"
until = "(execution.startedAt | epoch_ms) + input.days * 86400000"
[[workflows.trip.steps]]
id = "bill"
map = "input.bill | fromjson"
[[workflows.trip.steps]]
id = "extras"
type = "andBranch"
cases = [{ when = "input.extras.seat | default(false)", block = "seats" }]
[[workflows.trip.steps]]
id = "accepted"
map = "true if input.yes else fail('The customer refused ' ~ steps.bill.nights ~ ' nights')"
[[workflows.trip.blocks.seats]]
id = "seat"
map = { n = 7 }

[[workflows.trip.tests]]
name = "refused"
input = { yes = false, days = 2, bill = '{"nights": 3}' }
mocks = { reserve = { output = { hold = "h" } }, "reserve:compensate" = { output = 0 } }
expect = { status = "error", error = "The customer refused 3 nights", ran = ["reserve:compensate"], took = "48h" }
crash_everywhere = true
[[workflows.trip.tests]]
name = "accepted without a seat"
input = { yes = true, days = 1, bill = '{"nights": 3}' }
mocks = { reserve = { output = { hold = "h" } } }
expect = { result = "result == {'seat': 0, 'nights': 3}", not_ran = ["seat", "reserve:compensate"], took = "24h" }
[[workflows.trip.tests]]
name = "accepted with a seat"
input = { yes = true, days = 0, bill = '{"nights": 3}', extras = { seat = true } }
mocks = { reserve = { output = { hold = "h" } } }
expect = { result = "result.seat == 7" }
"#;

/// Returns what `greenroom test` says of a configuration.
fn test(home: &Home, arguments: &[&str]) -> Output {
    home.run(home.greenroom(&[&["test"], arguments].concat()))
}

/// Returns a folder with this configuration.
fn home_with(config: &str) -> Home {
    let home = Home::new("");
    fs::write(home.path("config.toml"), config).unwrap();
    home
}

/// Returns a folder without a configuration.
fn empty_home() -> Home {
    let home = home_with("");
    fs::remove_file(home.path("config.toml")).unwrap();
    home
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn shipped_workflows_pass_their_tests_and_mutants_do_not() {
    let ran = test(&home_with(SHIPPED), &[]);
    let said = text(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", text(&ran.stderr));
    for line in ["expense-approval: nobody answers ", " took 48 h, killed at ", ", 0 failed, in "] {
        assert!(said.contains(line), "{line}: {said}");
    }

    let mutants = [
        ("data.n + 1", "data.n + 2", "three is added"),
        ("\"input.amount > 500\"", "\"input.amount > 5000\"", "nobody answers"),
        ("approved = \"false\", by", "approved = \"true\", by", "nobody answers"),
        ("deadline = \"48h\"", "deadline = \"24h\"", "nobody answers"),
        ("when = \"steps.manager.approved\"", "when = \"false\"", "a manager approves"),
        ("input.nights * 95", "input.nights * 59", "the faster carrier"),
        ("duration = \"20ms\"", "duration = \"40s\"", "the faster carrier"),
        ("duration = \"5s\"", "duration = \"50s\"", "it waits"),
        ("max_iterations = 5", "max_iterations = 1", "the editor asks"),
    ];
    for (right, wrong, name) in mutants {
        assert!(SHIPPED.contains(right), "{right}");
        let home = home_with(&SHIPPED.replace(right, wrong));
        let ran = test(&home, &["--filter", name]);
        let said = text(&ran.stdout);
        assert_eq!(ran.status.code(), Some(1), "{right} as {wrong}: {said}");
        assert!(said.contains("FAIL  ") && said.contains("config.toml:"), "{said}");
    }
}

#[test]
fn what_check_accepts_of_expressions_runs() {
    let home = home_with(DECIDED);
    let checked = home.run(home.greenroom(&["check", "--strict"]));
    assert!(checked.status.success(), "{}{}", text(&checked.stdout), text(&checked.stderr));
    let ran = test(&home, &["-o", "json"]);
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((&report["ok"], &report["failed"]), (&true.into(), &0.into()), "{report}");
    assert_eq!(report["tests"][0]["error"], "The customer refused 3 nights", "{report}");
}

#[test]
fn a_charge_that_a_crash_repeats_is_found() {
    let home = home_with(&ORDERS.replace("EXPECT", "expect = { error = \"truck\" }"));
    let ran = test(&home, &[]);
    let said = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("ok    order: no truck "), "{said}");
    let found = "killed before change 2 of 3: charge is called 2 times with the key test/charge";
    assert!(said.contains(found), "{said}");
    assert!(said.contains("2 tests, 1 failed, in "), "{said}");
    assert!(!home.path("greenroom.db").exists(), "a test stores nothing");

    let ran = test(&home, &["-o", "json"]);
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((&report["ok"], &report["failed"]), (&false.into(), &1.into()), "{report}");
    assert_eq!(report["tests"][0]["error"], "no <truck>", "{report}");
    assert_eq!(report["tests"][1]["line"], 16, "{report}");

    let ran = test(&home, &["-o", "junit", "--filter", "order: charged"]);
    let report = text(&ran.stdout);
    let begin = "<testsuite name=\"order\" tests=\"1\" skipped=\"0\" errors=\"0\" failures=\"1\">";
    assert!(report.contains(begin) && report.contains("<failure message="), "{report}");
}

#[test]
fn expectations_are_written_into_the_file() {
    let home = home_with(&ORDERS.replace("EXPECT", ""));
    // a link stays one
    fs::rename(home.path("config.toml"), home.path("linked.toml")).unwrap();
    symlink("linked.toml", home.path("config.toml")).unwrap();
    let ran = test(&home, &["--update"]);
    // the second test fails only when it is killed: nothing to write for it
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran.stdout));
    let said = text(&ran.stderr);
    assert!(said.contains("config.toml: wrote `expect` of order: no truck"), "{said}");
    let written = fs::read_to_string(home.path("config.toml")).unwrap();
    let expected = "expect = { status = \"error\", error = \"no <truck>\", \
                    ran = [\"charge\", \"ship\", \"charge:compensate\"] }";
    assert!(written.contains(expected), "{written}");
    assert!(written.contains("name = \"no truck\"   # kept"), "{written}");
    let ran = test(&home, &["--filter", "no truck"]);
    assert!(ran.status.success(), "{}", text(&ran.stdout));
    let again = test(&home, &["--update", "--filter", "no truck"]);
    assert!(text(&again.stdout).contains("nothing to write"), "{}", text(&again.stdout));
    assert_eq!(fs::read_to_string(home.path("config.toml")).unwrap(), written);
    assert!(home.path("config.toml").is_symlink());
}

#[test]
fn expectations_of_skipped_compensations_are_written() {
    let answers = "answers = [{ step = \"charge:compensate\", data = { action = \"skip\" } }]\n";
    let orders = ORDERS.replace("EXPECT", answers);
    let failing = "\"charge:compensate\" = { fail = \"closed\" }, ship";
    let home = home_with(&orders.replace(
        "\"charge:compensate\" = { output = 0 }, ship = { fail",
        &format!("{failing} = {{ fail"),
    ));
    let ran = test(&home, &["--update", "--filter", "no truck"]);
    assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let written = fs::read_to_string(home.path("config.toml")).unwrap();
    let expected = "ran = [\"charge\", \"ship\", \"charge:compensate\"]";
    assert!(written.contains(expected), "{written}");
}

#[test]
fn files_without_permission_to_write_are_not_written() {
    let config = ORDERS.replace("EXPECT", "");
    let home = home_with(&config);
    fs::set_permissions(home.path("config.toml"), Permissions::from_mode(0o444)).unwrap();
    let ran = test(&home, &["--update"]);
    let said = text(&ran.stderr);
    assert!(said.contains("config.toml cannot be written: it is read-only"), "{said}");
    assert_eq!(fs::read_to_string(home.path("config.toml")).unwrap(), config);
}

#[test]
fn names_of_tests_break_no_report() {
    let home = home_with(
        "[workflows.w]\n[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n\
         [[workflows.w.tests]]\nname = \"\\u001b[31m \\ufffe\"\nexpect = { result = \"false\" }\n",
    );
    let said = text(&test(&home, &[]).stdout);
    assert!(said.contains("w: \\u{1b}[31m") && !said.contains('\u{1b}'), "{said}");
    let report = text(&test(&home, &["--output", "junit"]).stdout);
    assert!(report.contains("\u{fffd}\"") && !report.contains('\u{fffe}'), "{report}");
}

#[test]
fn without_a_test_to_run_it_says_what_there_is() {
    let shown = |home: &Home, arguments: &[&str]| {
        let ran = test(home, arguments);
        assert_eq!(ran.status.code(), Some(1), "{}", text(&ran.stdout));
        text(&ran.stderr)
    };
    let none = home_with("[workflows.w]\n[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n");
    let said = shown(&none, &[]);
    assert!(
        said.contains("no workflow has tests") && said.contains("[[workflows.w.tests]]"),
        "{said}"
    );
    let said = shown(&empty_home(), &["--filter", "zzz"]);
    assert!(said.contains("no test has \"zzz\" in its name; there are\n  "), "{said}");
    assert!(said.contains("\n  expense-approval: nobody answers\n"), "{said}");
    let said = shown(&home_with("[workflows.w]\nstep = 1\n"), &[]);
    assert!(said.contains("config.toml:2:1: "), "{said}");
}

#[test]
fn a_wrong_name_fails_its_test_alone() {
    let home = home_with(&ORDERS.replace("EXPECT", "expect = { ran = [\"shp\"] }"));
    let ran = test(&home, &[]);
    let said = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    let wrong = "config.toml:15:19: workflows.order.tests[0].expect.ran[0]: must be one of charge, \
                 charge:compensate, ship; did you mean ship?";
    assert!(said.contains(wrong), "{said}");
    assert!(said.contains("killed before change 2 of 3: charge is called 2 times"), "{said}");
}

#[test]
fn a_first_configuration_has_tests_that_pass() {
    let home = empty_home();
    assert!(home.run(home.greenroom(&["init"])).status.success());
    let ran = test(&home, &[]);
    let said = text(&ran.stdout);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("ok    order: nobody answers "), "{said}");
}
