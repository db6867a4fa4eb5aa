//! Tests of workflows in the file: read, and refused with the place and the nearest name.

use std::time::Duration;

use greenroom_actors::domain::status::Status;

use super::problems_of;
use crate::config::Config;
use crate::config::workflow_tests::{MockedFailure, TestAnswerer};

/// A configuration whose workflow `w` has a test with these keys.
fn text(keys: &str) -> String {
    format!(
        "[models.m]\nprovider = 'mock'\n[workflows.other]\n[[workflows.other.steps]]\nid = 'x'\nmap = 1\n\
         [[workflows.w.steps]]\nid = 'pay'\nmap = 1\n[[workflows.w.tests]]\nname = 't'\n{keys}\n"
    )
}

#[test]
fn a_test_is_read_whole() {
    let keys = "input = { n = 1 }\nuser = 'ann'\ncontext = { tier = 'gold' }\nnow = '2026-03-01T09:00:00Z'\n\
                mocks.pay = { output = 1, fail = 'no', times = 2, delay = '3s', repeatable = false }\n\
                mocks.models.m = { rules = [{ reply = 'hi' }] }\n\
                mocks.workflows.other.x = { fail = { message = 'never', kind = 'declined', terminal = true } }\n\
                answers = [{ step = 'pay', after = '1h', data = true, by = 'bo' }, \
                { step = 'pay', data = 1, by = { user = 'al', roles = ['lead'], verified = false }, \
                refused = 'no' }]\n\
                expect = { status = 'error', result = 'steps.pay == 1', error = 'no', \
                ran = ['pay'], took = '2h' }\ncrash_everywhere = true";
    let config = Config::parse(&text(keys), "c.toml").unwrap();
    let [test] = &config.tests[..] else { panic!("{:?}", config.tests) };
    assert_eq!((test.workflow.as_str(), test.name.as_str(), test.index), ("w", "t", 0));
    assert_eq!((test.user.as_deref(), test.crash_everywhere), (Some("ann"), true));
    assert_eq!(test.now.unwrap().to_iso(), "2026-03-01T09:00:00.000Z");
    assert_eq!(test.context["tier"], "gold");
    let pay = &test.mocks.steps["w"]["pay"];
    assert_eq!((pay.times, pay.delay, pay.is_repeatable), (2, Duration::from_secs(3), false));
    let declined = MockedFailure {
        message: "never".to_owned(),
        kind: Some("declined".to_owned()),
        is_terminal: true,
    };
    assert_eq!(test.mocks.steps["other"]["x"].fail, Some(declined));
    assert_eq!(pay.fail, Some(MockedFailure { message: "no".to_owned(), ..Default::default() }));
    assert_eq!(test.mocks.models["m"].rules.len(), 1);
    assert_eq!(test.answers[0].after, Duration::from_secs(3600));
    let by = |user: &str, roles: &[&str], is_verified| {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        Some(TestAnswerer { user: Some(user.to_owned()), roles, is_verified })
    };
    assert_eq!((&test.answers[0].by, &test.answers[0].refused), (&by("bo", &[], true), &None));
    assert_eq!(test.answers[1].by, by("al", &["lead"], false));
    assert_eq!(test.answers[1].refused.as_deref(), Some("no"));
    assert_eq!(test.expect.status, Some(Status::Error));
    assert_eq!(test.expect.took, Some(Duration::from_secs(7200)));
}

#[test]
fn tests_do_not_change_a_workflow() {
    let hash =
        |keys: &str| Config::parse(&text(keys), "c.toml").unwrap().workflows["w"].hash.clone();
    assert_eq!(hash("input = 1"), hash("input = 2\ncrash_everywhere = true"));
}

#[test]
fn mistakes_have_a_place_and_a_suggestion() {
    for (keys, expected) in [
        (
            "mocks.pya = { output = 1 }",
            "c.toml:12:13: workflows.w.tests[0].mocks.pya: must be one of pay",
        ),
        ("mocks.pya = { output = 1 }", "did you mean pay?"),
        ("mocks.tools.bank = { output = 1 }", "tool bank is not configured"),
        ("mocks.models.n = {}", "model n is not configured"),
        ("mocks.workflows.othr.x = { output = 1 }", "did you mean other?"),
        ("mocks.workflows.w.pya = { output = 1 }", "did you mean pay?"),
        ("mocks.pay = { fail = '' }", "tests[0].mocks.pay.fail: must not be empty"),
        ("mocks.pay = { fail = 7 }", "must be a message, or a table with `message`"),
        ("mocks.pay = { fail = { kind = 'x' } }", "key `message` is missing"),
        ("mocks.pay = { fail = { message = 'x', knd = 'x' } }", "did you mean kind?"),
        ("expect = { ran = ['pay'], not_ran = ['pay'] }", "pay is both in `ran` and in `not_ran`"),
        ("context = 1", "tests[0].context: must be a table"),
        ("mocks.pay = {}", "needs `output`, `fail` or both"),
        ("mocks.pay = { output = 1, fail = 'no' }", "needs `times`: how often it fails first"),
        ("mocks.pay = { output = 1, times = 2 }", "needs a `fail` beside it"),
        ("mocks.pay = { fail = 'no', times = 2 }", "needs an `output` beside it"),
        ("mocks.pay = { output = 1, time = 2 }", "unknown key"),
        ("answers = [{ step = 'pay' }]", "key `data` is missing"),
        (
            "answers = [{ step = 'pay', data = 1, by = 7 }]",
            "answers[0].by: must be the id of a user",
        ),
        ("answers = [{ step = 'pay', data = 1, by = { usr = 'bo' } }]", "did you mean user?"),
        ("answers = [{ step = 'pay', data = 1, refused = '' }]", "refused: must not be empty"),
        ("expect = { ran = ['pya'] }", "did you mean pay?"),
        ("expect = { status = 'failed' }", "expect.status: "),
        ("expect = { result = 'reslt == 1' }", "did you mean result?"),
        ("now = 'yesterday'", "must be a time with a zone"),
        ("[[workflows.w.tests]]\nname = 't'", "another test has the name \"t\""),
        ("[[workflows.w.tests]]", "key `name` is missing"),
    ] {
        let problems = problems_of(&text(keys)).join("\n");
        assert!(problems.contains(expected), "{keys}: {expected}: {problems}");
    }
}
