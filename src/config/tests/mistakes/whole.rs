//! Mistakes that need a whole file: blocks, names, and arguments of calls.

use super::{Row, check};

/// Checks rows that are files.
#[track_caller]
fn of_a_file(rows: &[Row<'_>]) {
    check(rows, str::to_owned);
}

#[test]
fn unused_and_reused_blocks() {
    of_a_file(&[
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[[workflows.w.blocks.x]]\n\
             id = \"in_x\"\nmap = 1\n",
            &["4:1: blocks.x: no step uses this block"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWhen\"\nwhen = \"data\"\n\
             block = \"y\"\n[[workflows.w.blocks.x]]\nid = \"in_x\"\nmap = 1\n",
            &["5:9: steps.a.block: there is no block y", "6:1: blocks.x: no step uses this block"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWhen\"\nwhen = \"data\"\n\
             block = \"in_x\"\n[[workflows.w.blocks.x]]\nid = \"in_x\"\nmap = 1\n",
            &[
                "5:9: steps.a.block: there is no block in_x",
                "6:1: blocks.x: no step uses this block",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWhen\"\nwhen = \"data\"\n\
             block = \"x\"\n[[workflows.w.blocks.x]]\nid = \"in_x\"\nmap = 1\n\
             [[workflows.w.steps]]\nid = \"b\"\ntype = \"andWhen\"\nwhen = \"data\"\n\
             block = \"x\"\n",
            &["13:9: steps.b.block: block x is already used by the step at line 5"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWhen\"\nwhen = \"data\"\n\
             block = \"x\"\n[[workflows.w.blocks.x]]\nid = \"in_x\"\nmap = 1\n\
             [[workflows.w.blocks.x]]\nid = \"a\"\nmap = 1\n",
            &["10:6: blocks.x.a.id: step id `a` is used more than once"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[workflows.w.blocks]\nx = 3\n",
            &[
                "5:5: blocks.x: must be an array, not an integer",
                "5:5: blocks.x: no step uses this block",
            ],
        ),
    ]);
}

#[test]
fn invalid_workflows() {
    of_a_file(&[
        (
            "[workflows.w]\nresutl = 1\nsteps = [{ id = \"a\", map = 1 }]\n",
            &["2:1: resutl: unknown key; did you mean result?"],
        ),
        (
            "[workflows.w]\nsteps = { id = \"a\", map = 1 }\n",
            &["2:9: steps: must be an array, not a table: write [[workflows.w.steps]]"],
        ),
        ("[workflows.w]\nsteps = [1]\n", &["2:10: steps[0]: must be a table, not an integer"]),
        ("workflows = []\n", &["1:13: workflows: must be a table, not an array"]),
        ("[workflow.w]\nsteps = []\n", &["1:2: workflow: unknown key; did you mean workflows?"]),
        (
            "[[workflows.w.steps]]\nid = 3\nmap = 1\n",
            &["2:6: steps[0].id: must be a string, not an integer"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a b\"\nmap = 1\n",
            &["2:6: steps.\"a b\".id: a step id is a letter, then letters, digits, `_` or `-`"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"\"\nmap = 1\n",
            &["2:6: steps.\"\".id: a step id is a letter, then letters, digits, `_` or `-`"],
        ),
        (
            "[[workflows.w.step]]\nid = \"a\"\nmap = 1\n",
            &[
                "1:13: workflows.w: key `steps` is missing",
                "1:15: step: unknown key; did you mean steps?",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[[workflows.w.steps]]\nid = \"a\"\n\
             map = 2\n",
            &["5:6: steps.a.id: step id `a` is used more than once"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = [1, 2\n",
            &["3:12: unclosed array, expected `]`"],
        ),
        ("[[workflows.w.steps]]\nid = \"a\"\nid = \"b\"\nmap = 1\n", &["3:1: duplicate key"]),
        (
            "[[workflows.\"a b\".steps]]\nid = \"a\"\nmap = 1\n",
            &["1:13: workflows.\"a b\": must be a letter or digit, then letters, digits, `.`, \
             `_` or `-`, and not `executions`"],
        ),
    ]);
}

#[test]
fn undefined_names() {
    of_a_file(&[
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[[workflows.w.steps]]\nid = \"b\"\n\
             map = \"steps.aa.x\"\n",
            &["6:7: steps.b.map: there is no step aa; did you mean a?"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[[workflows.w.steps]]\n\
             id = \"check-it\"\nmap = \"steps['chek-it'].x + dta.y\"\n",
            &[
                "6:7: steps.check-it.map: `dta` is not in scope; in scope: data, input, steps, \
                 resume, resumed_by, context, user, execution; did you mean data?",
                "6:7: steps.check-it.map: there is no step chek-it; did you mean check-it?",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[[workflows.w.steps]]\nid = \"b\"\n\
             http = { url = \"https://x/{{ steps.c }}\", headers = { x-a = \"{{ itm }}\" }, query \
             = { q = [\"steps.b\"] } }\n",
            &[
                "6:16: steps.b.http.url: there is no step c",
                "6:61: steps.b.http.headers.x-a: `itm` is not in scope; in scope: data, input, \
                 steps, resume, resumed_by, context, user, execution",
                "6:91: steps.b.http.query.q[0]: step b is this step, which has no output yet",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[[workflows.w.steps]]\nid = \"b\"\n\
             command = { argv = [\"ls\", \"{{ dat }}\"], env = { A = \"{{ item }}\" }, input = \
             \"inptu\" }\n",
            &[
                "6:27: steps.b.command.argv[1]: `dat` is not in scope; in scope: data, input, \
                 steps, resume, resumed_by, context, user, execution; did you mean data?",
                "6:53: steps.b.command.env.A: `item` is none here: this is not inside an \
                 andForEach",
                "6:77: steps.b.command.input: `inptu` is not in scope; in scope: data, input, \
                 steps, resume, resumed_by, context, user, execution; a string is written \
                 \"'inptu'\"; did you mean input?",
            ],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\nmap = 1\n[[workflows.w.steps]]\nid = \"b\"\n\
             map = 1\n\
             suspend = { when = \"steps.b\", reason = \"{{ resume }}\", payload = { a = \
             \"steps.zz\" }, deadline = \"1h\", on_timeout = { resume = { x = \"indx\" } } }\n\
             on_error = { value = \"steps.b\" }\n",
            &[
                "7:20: steps.b.suspend.when: step b is this step, which has no output yet",
                "7:40: warning: steps.b.suspend.reason: `resume` is none here: this is evaluated \
                 before the resume",
                "7:72: steps.b.suspend.payload.a: there is no step zz",
                "7:133: steps.b.suspend.on_timeout.resume.x: `indx` is not in scope; in scope: \
                 data, input, \
                 steps, resume, resumed_by, context, user, execution; a string is \
                 written \"'indx'\"",
                "8:22: steps.b.on_error.value: step b is this step, which has no output yet",
            ],
        ),
        (
            "[workflows.w]\nresult = { a = \"steps.b\", c = \"item\" }\n\
             steps = [{ id = \"a\", map = \"resume\" }]\n",
            &[
                "2:16: result.a: there is no step b",
                "2:31: result.c: `item` is none here: this is not inside an andForEach",
                "3:28: warning: steps.a.map: `resume` is none here unless a caller paused the \
                 execution: the step has no `suspend`",
            ],
        ),
    ]);
}

#[test]
fn constant_conditions_and_endless_waits() {
    of_a_file(&[
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWhen\"\nwhen = false\nblock = \"x\"\n\
             [[workflows.w.blocks.x]]\nid = \"in_x\"\nmap = 1\n",
            &["4:8: warning: steps.a.when: is never true: block x never runs"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andBranch\"\n\
             cases = [{ when = true, block = \"x\" }]\ndefault = \"y\"\n[[workflows.w.blocks.x]]\n\
             id = \"in_x\"\nmap = 1\n[[workflows.w.blocks.y]]\nid = \"in_y\"\nmap = 1\n",
            &["4:19: warning: steps.a.cases[0].when: is always true: block y never runs"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andDoWhile\"\nwhen = true\n\
             max_iterations = 3\nblock = \"x\"\n[[workflows.w.blocks.x]]\nid = \"in_x\"\nmap = 1\n",
            &["4:8: warning: steps.a.when: is always true: the step fails after max_iterations = \
                 3"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWhen\"\nwhen = \"data\"\n\
             block = \"x\"\n[[workflows.w.blocks.x]]\nid = \"q\"\ntype = \"andWorkflow\"\n\
             workflow = \"v\"\nsuspend = {}\n[workflows.v]\nsteps = [{ id = \"a\", map = 1 }]\n",
            &["10:11: warning: blocks.x.q.suspend: has no deadline"],
        ),
    ]);
}

#[test]
fn arguments_of_workflows_and_tools() {
    of_a_file(&[
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWorkflow\"\nworkflow = \"v\"\n\
             input = { n = \"'x'\" }\n[workflows.v]\n\
             input_schema = { type = \"object\", required = [\"n\"], properties = { n = { type = \
             \"integer\" } }, additionalProperties = false }\nsteps = [{ id = \"a\", map = 1 }]\n",
            &["5:9: steps.a.input: does not match the input of workflow v: n: \"x\" is not of \
                 type \"integer\""],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntype = \"andWorkflow\"\nworkflow = \"v\"\n\
             input = { nn = \"data\" }\n[workflows.v]\n\
             input_schema = { type = \"object\", required = [\"n\"], properties = { n = { type = \
             \"integer\" } }, additionalProperties = false }\nsteps = [{ id = \"a\", map = 1 }]\n",
            &["5:16: steps.a.input.nn: does not match the input of workflow v: unknown key \
                 `nn`; did \
                 you mean n?"],
        ),
        (
            "[[workflows.w.steps]]\nid = \"a\"\ntool = \"t\"\nargs = { m = \"data\" }\n\
             [tools.t]\nkind = \"workflow\"\nworkflow = \"v\"\ndescription = \"d\"\n\
             [workflows.v]\n\
             input_schema = { type = \"object\", required = [\"n\"], properties = { n = { type = \
             \"integer\" } } }\nsteps = [{ id = \"a\", map = 1 }]\n",
            &["4:8: steps.a.args: does not match the parameters of tool t: key `n` is missing"],
        ),
    ]);
}
