//! Compensations of steps in the file: refused with the place and the nearest name.

use super::problems_of;

/// Returns the problems of a workflow whose step `a` has these keys.
fn problems(keys: &str) -> Vec<String> {
    problems_of(&format!(
        "[[workflows.undo.steps]]\nid = 'u'\nmap = 1\n[[workflows.w.steps]]\nid = 'a'\n{keys}\n"
    ))
}

const HTTP: &str = "http = { url = 'https://a.example' }\n";

#[test]
fn a_compensation_of_each_kind_is_accepted() {
    for with in [
        "http = { method = 'DELETE', url = 'https://a.example/{{ data.id }}/{{ error.kind }}' }",
        "command = { argv = ['true'] }, timeout = '1s'",
        "workflow = 'undo', input = { id = 'steps.a.id' }, retry = { attempts = 5 }",
    ] {
        let found = problems(&format!("{HTTP}compensate = {{ {with} }}"));
        assert_eq!(found, Vec::<String>::new(), "{with}");
    }
}

#[test]
fn mistakes_have_a_place_and_a_suggestion() {
    let sleep = "type = 'andSleep'\nduration = '1s'\ncompensate = { workflow = 'undo' }";
    for (keys, expected) in [
        (
            sleep.to_owned(),
            "c.toml:8:1: workflows.w.steps.a.compensate: key `compensate` does not belong to andSleep",
        ),
        (
            format!("{HTTP}compensate = {{ workflow = 'udno' }}"),
            "workflow udno is not configured; did you mean undo?",
        ),
        (
            format!("{HTTP}compensate = {{ workfow = 'undo' }}"),
            "c.toml:7:16: workflows.w.steps.a.compensate.workfow: unknown key; did you mean workflow?",
        ),
        (
            format!("{HTTP}compensate = {{ timeout = '1s' }}"),
            "needs one of `run`, `http`, `command`, `tool`, `workflow`",
        ),
        (
            format!("{HTTP}compensate = {{ map = 1 }}"),
            "a compensation acts outside: run, http, command, tool, workflow",
        ),
        (format!("{HTTP}compensate = {{ workflow = 'undo', map = 1 }}"), "c.toml"),
        (
            format!("{HTTP}compensate = {{ workflow = 'undo', input = 'steps.b' }}"),
            "there is no step b",
        ),
        (
            format!("{HTTP}compensate = {{ workflow = 'undo', retry = {{ attempts = 0 }} }}"),
            "compensate.retry.attempts",
        ),
    ] {
        let found = problems(&keys);
        assert!(found.iter().any(|it| it.contains(expected)), "{keys}: {found:#?}");
    }
    let found = problems_of(
        "[workflows.w]\ncompensate_on_cancel = true\n[[workflows.w.steps]]\nid = 'a'\nmap = 1\n",
    );
    let expected = "c.toml:2:24: workflows.w.compensate_on_cancel: no step has a `compensate`";
    assert_eq!(found, [expected]);
}
