//! Messages that name what can be written instead.

use super::{check, of_a_container, of_a_step};
use crate::config::tests::problems_of;

#[test]
fn an_unknown_type_names_the_others() {
    let kinds = "it is one of andThen, andTap, andWhen, andAll, andRace, andAgent, andWorkflow, \
                 andSleep, andSleepUntil, andMap, andForEach, andBranch, andDoWhile, andDoUntil";
    let unknown = |written: &str, rest: &str| {
        let text = format!("[[workflows.w.steps]]\nid = \"a\"\ntype = {written:?}\n");
        let expected =
            format!("c.toml:3:8: workflows.w.steps.a.type: unknown type {written:?}; {rest}");
        assert_eq!(problems_of(&text), [expected]);
    };
    unknown("http", "http is a key of andThen: http = { url = \"…\" }");
    unknown("command", "command is a key of andThen: command = { argv = [\"…\"] }");
    unknown("function", "run is a key of andThen: run = \"…\"");
    unknown("map", "map is a key of andThen: map = { … }");
    unknown("tool", "tool is a key of andThen: tool = \"…\"");
    unknown("agent", "did you mean andAgent?");
    unknown("forEach", "did you mean andForEach?");
    unknown("python", kinds);
}

#[test]
fn tables_and_keys_name_what_to_write() {
    of_a_step(&[
        (
            "map = 1\nretry = 3",
            &["4:9: steps.a.retry: must be a table, not an integer: { attempts = 3 }"],
        ),
        (
            "http = { url = \"https://x.example\", timeout = \"1s\" }",
            &["3:37: steps.a.http.timeout: is a key of the step: write it beside `http`"],
        ),
        (
            "command = { argv = [\"ls\"], retry = 3 }",
            &["3:28: steps.a.command.retry: is a key of the step: write it beside `command`"],
        ),
        (
            "command = [\"ls\", \"-l\"]",
            &["3:11: steps.a.command: must be a table, { argv = [\"…\"] }, not an array"],
        ),
        (
            "command = \"ls\"",
            &["3:11: steps.a.command: must be a table, { argv = [\"…\"] }, not a string"],
        ),
        (
            "map = 1\ncompensate = { command = [\"ls\"] }",
            &[
                "4:26: steps.a.compensate.command: must be a table, { argv = [\"…\"] }, not an array",
            ],
        ),
    ]);
    of_a_container(&[
        (
            "type = \"andForEach\"\nitems = \"data\"\nblock = \"x\"\nsteps = []",
            &["6:1: steps.a.steps: its steps are a block of the workflow: block = \"…\""],
        ),
        (
            "type = \"andAll\"\nblocks = [\"x\"]\nsteps = []",
            &["5:1: steps.a.steps: its steps are a block of the workflow: blocks = [\"…\"]"],
        ),
    ]);
    check(
        &[
            (
                "[workflows.w.steps]\nid = \"a\"\nmap = 1\n",
                &["1:1: steps: must be an array, not a table: write [[workflows.w.steps]]"],
            ),
            (
                "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWhen\"\nwhen = \"data\"\n\
                 block = \"x\"\n[workflows.w.blocks.x]\nid = \"b\"\nmap = 1\n",
                &[
                    "1:1: steps.a: at least one step is needed",
                    "6:1: blocks.x: must be an array, not a table: write [[workflows.w.blocks.x]]",
                ],
            ),
        ],
        str::to_owned,
    );
    let kinds = "it is one of workflow, agent, http, command";
    for kind in ["python", "function"] {
        let text = format!("[tools.t]\nkind = {kind:?}\ndescription = \"d\"\n");
        let expected = format!("c.toml:2:8: tools.t.kind: unknown kind {kind:?}; {kinds}");
        assert_eq!(problems_of(&text), [expected]);
    }
}

#[test]
fn every_expression_of_a_map_is_reported() {
    of_a_step(&[(
        "map = { a = \"1 +\", b = 2, c = [\"data\", \"(\"], d = \"Hello {{ input.name }}\" }",
        &[
            "3:13: steps.a.map.a: syntax error: unexpected end of input, expected expression in \
             `1 +`",
            "3:40: steps.a.map.c[1]: syntax error: unexpected end of input, expected expression \
             in `(`",
            "3:50: steps.a.map.d: syntax error: unexpected input after expression in `Hello {{ \
             input.name }}`; write `'Hello ' ~ input.name`",
        ],
    )]);
}
